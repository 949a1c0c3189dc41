#!/usr/bin/env bash
# Cross-compiles library, simulator and command for aarch64 on x86-64, with Debian 12's compiler and NVIDIA's packages;
# warnings are errors. Runs nothing of it:
#   build_aarch64.sh BUILD [-D...] [-- TARGET...]     BUILD: a folder; the packages go into BUILD-packages (900 MB)
# CUDNN and CUDA name other versions than cuDNN 9.19 and CUDA 13.0. The machine's own packages stay as they are, but for
# the compiler, which is installed.
set -euo pipefail
(($# > 0)) || { echo "usage: build_aarch64.sh BUILD [-D...] [-- TARGET...]" >&2; exit 2; }
build=$(realpath -m "$1") packages=$(realpath -m "$1-packages")
shift
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$scripts/../install-dependencies.sh" g++-aarch64-linux-gnu python3-venv

# CUDA and cuDNN
[[ -x $packages/bin/pip ]] || python3 -m venv --clear "$packages"
if [[ ! -d $(echo "$packages"/lib/python3*/site-packages/nvidia/cudnn) ]]; then
  "$packages/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary=:all: --upgrade \
    --target "$(echo "$packages"/lib/python3*/site-packages)" \
    --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    "nvidia-cudnn-cu13==${CUDNN:-9.19.*}" "nvidia-cuda-runtime==${CUDA:-13.0.*}"
fi

# Debian's libraries, by lists of their own: this machine need not know the architecture.
sysroot=$packages/sysroot
if [[ ! -d $sysroot ]]; then
  mkdir -p "$packages"/{lists/partial,cache/archives/partial,debs}
  apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status=/dev/null
       -o "Dir::State::lists=$packages/lists" -o "Dir::Cache=$packages/cache" -o APT::Sandbox::User=)
  "${apt[@]}" update >/dev/null
  (cd "$packages/debs" && "${apt[@]}" download libsqlite3-0 libsqlite3-dev libglpk40 libglpk-dev libspdlog1.10 libspdlog-dev \
    libfmt9 libfmt-dev libcli11-dev nlohmann-json3-dev >/dev/null)
  for package in "$packages"/debs/*.deb; do
    dpkg-deb -x "$package" "$sysroot.part"
  done
  mv "$sysroot.part" "$sysroot"
fi

exec "$scripts/build_with_packages.sh" "$build" "$packages" \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_FIND_ROOT_PATH="$sysroot" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
  -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined \
  -DUCUDNN_WERROR=ON -DUCUDNN_TEST=OFF -DUCUDNN_BUILD_SIMULATOR=ON "$@"
