#!/usr/bin/env bash
# Builds μ-cuDNN: misc/build.sh [--dir DIR] [CMAKE_OPTION...] [-- TARGET...]. DIR is build/ by default. Installs what is
# missing first.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
directory=$root/build
options=()
while (($#)) && [[ $1 != -- ]]; do
  case $1 in
    --dir) directory=${2:?misc/build.sh: --dir needs a folder}; shift 2 ;;
    *) options+=("$1"); shift ;;
  esac
done
[[ ${1:-} == -- ]] && shift

"$root/misc/install-dependencies.sh"
# CMake searches the toolkit's own folders, too; a toolkit that is nowhere is named here, before a long CMake error.
if ! command -v nvcc >/dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
  echo "misc/build.sh: no CUDA toolkit: nvcc is neither on PATH nor in /usr/local/cuda/bin" >&2
  exit 1
fi
[[ -f $directory/CMakeCache.txt ]] || options+=(-G Ninja)
cmake -S "$root" -B "$directory" "${options[@]}" >"$directory.configure.log" 2>&1 || {
  cat "$directory.configure.log" >&2
  exit 1
}
rm -f "$directory.configure.log"
cmake --build "$directory" --parallel "$(nproc)" ${1:+--target "$@"}
