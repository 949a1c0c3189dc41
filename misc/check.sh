#!/usr/bin/env bash
# Checks the sources themselves:
#   misc/check.sh          format, lengths, include arrows, who warns, pages, sizes of classes, clang-tidy (src/ without the
#                          simulator, and include/), and each source of src/ by itself past clang++'s warnings; installs
#                          what is missing
#   misc/check.sh --full   builds all of it, the tests too, with clang++ (build-clang/) and g++ (build-werror/) besides,
#                          warnings being errors, and runs the unit tests of both
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
full=0
[[ ${1:-} != --full ]] || { full=1; shift; }
(($# == 0)) || { echo "usage: misc/check.sh [--full]" >&2; exit 2; }
misc/install-dependencies.sh clang clang-tidy-14 clang-format-14 python3 python3-clang-14

step() {  # title, command...: says how long it took
  local start=$SECONDS
  "${@:2}" || { echo "misc/check.sh: $1: failed" >&2; exit 1; }
  echo "misc/check.sh: $1: $((SECONDS - start)) s"
}
sources() { git ls-files -z '*.cpp' '*.hpp' '*.h' '*.c' '*.cu' '*.cuh'; }
format() { sources | xargs -0 clang-format-14 --dry-run --Werror; }
# A class has one subject, and a file is as long as its subject needs; clang-tidy counts a function's lines.
lengths() {
  sources | xargs -0 awk 'FNR == 501 { print FILENAME ": more than 500 lines"; long = 1 } END { exit long }' >&2
}
# README.md and misc/docs: widths, links, sentences; tables and pictures as misc/results says.
pages() {
  misc/scripts/check_pages.py && misc/scripts/results_tables.py --check &&
    misc/scripts/draw_split.py --check && misc/scripts/draw_programs.py --check
}
configure() {  # directory, CMake options...
  local generator=()
  [[ -f $1/CMakeCache.txt ]] || generator=(-G Ninja)
  cmake -S . -B "$1" "${generator[@]}" "${@:2}" >/dev/null
}
clang_options=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DUCUDNN_WERROR=ON)
build_and_test() {  # directory, CMake options...
  misc/build.sh --dir "$@"
  ctest --test-dir "$1" --output-on-failure --parallel "$(nproc)" --no-tests=error --label-regex '^unit$'
}

step "format" format
step "lengths" lengths
step "include arrows" misc/scripts/check_includes.py
step "warnings" misc/scripts/check_warnings.py
step "pages" pages
# The next ones read clang++'s command lines, which nothing needs to be built for.
step "configuration for clang++" configure build-clang "${clang_options[@]}"
step "classes" misc/scripts/check_classes.py build-clang
# clang-tidy reads the headers once for all sources of a folder: a quarter of the time.
step "configuration for clang-tidy" configure build-tidy "${clang_options[@]}" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20
step "clang-tidy" misc/scripts/for_each_command.py build-tidy '(build-tidy/)?src/(?!simulator/).*\.(cpp|cxx)' \
  clang-tidy-14 --quiet -p build-tidy --checks=-bugprone-suspicious-include
if ((full)); then
  step "clang++" build_and_test build-clang "${clang_options[@]}"
  step "g++" build_and_test build-werror -DUCUDNN_WERROR=ON
else
  step "clang++ -fsyntax-only" misc/scripts/for_each_command.py build-clang 'src/.*'
fi
