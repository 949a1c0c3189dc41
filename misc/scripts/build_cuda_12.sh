#!/usr/bin/env bash
# Builds for CUDA 12, simulator and tests too, with NVIDIA's packages and no toolkit:
#   build_cuda_12.sh BUILD [-D...] [-- TARGET...]     BUILD: a folder; the packages go into BUILD-packages (700 MB)
# CUDNN and CUDA name other versions than cuDNN 9.10 and CUDA 12.6, as CUDNN='9.5.*' CUDA='12.8.*'.
set -euo pipefail
(($# > 0)) || { echo "usage: build_cuda_12.sh BUILD [-D...] [-- TARGET...]" >&2; exit 2; }
build=$(realpath -m "$1")
shift
options=()
while (($#)) && [[ $1 != -- ]]; do
  options+=("$1")
  shift
done
(($# == 0)) || shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
packages=$build-packages
[[ -d $packages ]] || python3 -m venv "$packages"
"$packages/bin/pip" install -q --disable-pip-version-check --no-deps "nvidia-cudnn-cu12==${CUDNN:-9.10.*}" \
  "nvidia-cuda-runtime-cu12==${CUDA:-12.6.*}" "nvidia-cuda-crt==13.*"  # the compiler's headers of CUDA 13 do
nvidia=$(echo "$packages"/lib/python3*/site-packages/nvidia)
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_MODULE_PATH="$root/misc/python/cmake" \
  -DUCUDNN_CUDA_WHEEL="$nvidia/cuda_runtime" -DUCUDNN_CRT_WHEEL="$nvidia/cu13" \
  -DCUDNN_INCLUDE_DIR="$nvidia/cudnn/include" -DCUDNN_LIBRARY="$nvidia/cudnn/lib/libcudnn.so.9" "${options[@]}" >/dev/null
cmake --build "$build" --parallel "$(nproc)" ${1:+--target "$@"}
