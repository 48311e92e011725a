#!/bin/sh
# Builds the LibTorch jobs into a folder: build.sh PYTHON OUT [CUDA_HOME]
# PYTHON is an interpreter with a CUDA build of PyTorch; its LibTorch is used.
set -eu
python=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
wheels=$(dirname "$torch")/nvidia
cuda=${3:-$wheels/cu13}
mkdir -p "$out"
for job in s06_copy_pageable s09_launch_tiny_batch; do
  runtime=$(find -L "$cuda/lib" "$cuda/lib64" -name 'libcudart.so*' 2>/dev/null | sort | head -1)
  ${CXX:-g++} -std=c++17 -O1 -o "$out/$job" "$here/$job.cpp" \
    -I"$torch/include" -I"$torch/include/torch/csrc/api/include" -I"$cuda/include" \
    -L"$torch/lib" -Wl,--no-as-needed -ltorch_cuda -Wl,--as-needed -ltorch -ltorch_cpu -lc10 \
    -lc10_cuda "$runtime" -Wl,-rpath,"$torch/lib" -Wl,-rpath,"$(dirname "$runtime")" \
    -Wl,--allow-shlib-undefined
done
