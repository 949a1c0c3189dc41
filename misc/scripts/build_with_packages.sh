#!/usr/bin/env bash
# Builds with the CUDA and the cuDNN of a Python environment, PyTorch's for example, simulator and tests too, and no toolkit:
#   build_with_packages.sh BUILD ENVIRONMENT [-D...] [-- TARGET...]     ENVIRONMENT: as python3 -m venv makes it
# BUILD-crt gets the packages of headers that PyTorch does not bring.
set -euo pipefail
(($# > 1)) || { echo "usage: build_with_packages.sh BUILD ENVIRONMENT [-D...] [-- TARGET...]" >&2; exit 2; }
build=$(realpath -m "$1") environment=$(realpath "$2")
shift 2
options=()
while (($#)) && [[ $1 != -- ]]; do
  options+=("$1")
  shift
done
(($# == 0)) || shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nvidia=$(echo "$environment"/lib/python3*/site-packages/nvidia)
cuda=$nvidia/cu13
[[ -f $cuda/include/cuda_runtime_api.h ]] || cuda=$nvidia/cuda_runtime
for header in "$cuda/include/cuda_runtime_api.h" "$nvidia/cudnn/include/cudnn.h"; do
  [[ -f $header ]] || { echo "build_with_packages.sh: there is no $header" >&2; exit 1; }
done
# The compiler's headers of CUDA 13 do for CUDA 12, too. Those of 12.4 and before want nv/target besides.
[[ -d $build-crt/nvidia/cuda_cccl ]] || "$environment/bin/pip" install -q --disable-pip-version-check --no-deps --upgrade \
  --target "$build-crt" "nvidia-cuda-crt==13.*" "nvidia-cuda-cccl-cu12==12.*"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_MODULE_PATH="$root/misc/python/cmake" -DUCUDNN_CUDA_WHEEL="$cuda" \
  -DUCUDNN_CRT_WHEEL="$build-crt/nvidia/cu13" -DUCUDNN_CCCL_WHEEL="$build-crt/nvidia/cuda_cccl" -DCUDNN_INCLUDE_DIR="$nvidia/cudnn/include" \
  -DCUDNN_LIBRARY="$nvidia/cudnn/lib/libcudnn.so.9" "${options[@]}" >/dev/null
cmake --build "$build" --parallel "$(nproc)" ${1:+--target "$@"}
