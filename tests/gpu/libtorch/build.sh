#!/bin/sh
# Builds the LibTorch jobs into a folder: build.sh PYTHON OUT [CUDA_HOME]
# PYTHON is an interpreter with a CUDA build of PyTorch; its LibTorch is used. The headers of
# its CUDA wheels include some of the toolkit (crt/): those come from CUDA_HOME or
# /usr/local/cuda where the wheels lack them.
set -eu
python=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
wheels=$(dirname "$torch")/nvidia
cuda=${3:-$wheels/cu13}
toolkit=
if [ ! -e "$cuda/include/crt/host_defines.h" ]; then
  for folder in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include \
      /usr/local/cuda/targets/*/include "$wheels"/*/include /usr/include; do
    if [ -e "$folder/crt/host_defines.h" ]; then
      toolkit=$folder
      break
    fi
  done
  if [ -z "$toolkit" ]; then
    echo "build.sh: no crt/host_defines.h in $cuda/include; set CUDA_HOME to a CUDA toolkit," \
         "or install the wheel nvidia-cuda-crt" >&2
    exit 1
  fi
fi
mkdir -p "$out"
for job in s06_copy_pageable s09_launch_tiny_batch; do
  runtime=$(find -L "$cuda/lib" "$cuda/lib64" -name 'libcudart.so*' 2>/dev/null | sort | head -1)
  ${CXX:-g++} -std=c++17 -O1 -o "$out/$job" "$here/$job.cpp" \
    -I"$torch/include" -I"$torch/include/torch/csrc/api/include" -I"$cuda/include" \
    ${toolkit:+-idirafter "$toolkit"} \
    -L"$torch/lib" -Wl,--no-as-needed -ltorch_cuda -Wl,--as-needed -ltorch -ltorch_cpu -lc10 \
    -lc10_cuda "$runtime" -Wl,-rpath,"$torch/lib" -Wl,-rpath,"$(dirname "$runtime")" \
    -Wl,--allow-shlib-undefined
done
