#!/bin/sh
# update_device_code.sh [BUILD]: keeps the device code that nvcc has made in the build folder (build/), for builds without
# nvcc: misc/package/block_copy.fatbin, and the compiler's version in block_copy.nvcc. A test compares both.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
cmake --build "$build" --target src/cuda/block_copy.fatbin
nvcc=$(sed -n 's/^CUDAToolkit_NVCC_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
cp "$build/src/cuda/block_copy.fatbin" misc/package/
"$nvcc" --version | sed -n 's/.*, \(V[0-9.]*\)$/\1/p' > misc/package/block_copy.nvcc
