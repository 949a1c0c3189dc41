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
[[ -f $directory/CMakeCache.txt ]] || options+=(-G Ninja)
cmake -S "$root" -B "$directory" "${options[@]}" >"$directory.configure.log" 2>&1 || {
  cat "$directory.configure.log" >&2
  exit 1
}
rm -f "$directory.configure.log"
cmake --build "$directory" --parallel "$(nproc)" ${1:+--target "$@"}
