#!/usr/bin/env bash
# Builds and runs the tests.
#   misc/test.sh [CTEST_OPTION...]             all of them; what needs a GPU is skipped without one
#   misc/test.sh --sanitize [CTEST_OPTION...]  those that need neither a GPU nor an installation, under AddressSanitizer
#                                              and UBSan (build-asan/), then under ThreadSanitizer (build-tsan/)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

run() {  # build directory, CTest options
  ctest --test-dir "$1" --output-on-failure --parallel "$(nproc)" --no-tests=error "${@:2}"
}

if [[ ${1:-} != --sanitize ]]; then
  misc/build.sh
  run build "$@"
  exit
fi
shift
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
misc/build.sh --dir build-asan '-DUCUDNN_SANITIZE=address;undefined'
run build-asan --label-regex '^(unit|simulator)$' "$@"
misc/build.sh --dir build-tsan -DUCUDNN_SANITIZE=thread
run build-tsan --label-regex '^(unit|simulator)$' "$@"
