#!/usr/bin/env bash
# Builds for CUDA 12, simulator and tests too, with NVIDIA's packages and no toolkit:
#   build_cuda_12.sh BUILD [-D...] [-- TARGET...]     BUILD: a folder; the packages go into BUILD-packages (700 MB)
# CUDNN and CUDA name other versions than cuDNN 9.10 and CUDA 12.6, as CUDNN='9.5.*' CUDA='12.8.*'.
set -euo pipefail
(($# > 0)) || { echo "usage: build_cuda_12.sh BUILD [-D...] [-- TARGET...]" >&2; exit 2; }
build=$(realpath -m "$1")
shift
packages=$build-packages
[[ -d $packages ]] || python3 -m venv "$packages"
"$packages/bin/pip" install -q --disable-pip-version-check --no-deps "nvidia-cudnn-cu12==${CUDNN:-9.10.*}" \
  "nvidia-cuda-runtime-cu12==${CUDA:-12.6.*}"
exec "$(dirname "${BASH_SOURCE[0]}")/build_with_packages.sh" "$build" "$packages" "$@"
