#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that are missing, and the CUDA headers
# where no CUDA toolkit is. Does nothing, and asks no server, when all is there.
#
# Headers are enough: the recorder links neither CUDA nor CUPTI. They come from NVIDIA's
# wheels (build/cuda-headers; about 15 MB) and are found through CMAKE_PREFIX_PATH, which
# this script prints as its last line when it is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
while read -r package; do
  [[ -z $package || $package == \#* ]] && continue
  state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $state == ii* ]] || missing+=("$package")
done < tools/packages.txt

if ((${#missing[@]} > 0)); then
  echo "installing: ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  as_root=()
  [[ $(id -u) == 0 ]] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

for folder in /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include /usr/include \
              /usr/local/include; do
  [[ -e $folder/cupti.h ]] && exit 0
done
headers=build/cuda-headers
if [[ ! -e $headers/nvidia/cu13/include/cupti.h ]]; then
  echo "no CUDA toolkit here: fetching CUDA 13.0 headers" >&2
  wheels=$(mktemp -d)
  trap 'rm -rf "$wheels"' EXIT
  /usr/bin/python3 -m pip download -q --no-deps -d "$wheels" nvidia-cuda-cupti==13.0.85 \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-nvtx==13.0.85 >&2
  mkdir -p "$headers"
  for wheel in "$wheels"/*.whl; do
    /usr/bin/python3 -m zipfile -e "$wheel" "$headers"
  done
fi
echo "CMAKE_PREFIX_PATH=$PWD/$headers/nvidia/cu13"
