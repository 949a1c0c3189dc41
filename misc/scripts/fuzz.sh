#!/usr/bin/env bash
# Feeds hostile and mutated inputs to all that reads what comes from outside, under AddressSanitizer and UBSan:
#   misc/scripts/fuzz.sh [SECONDS [SEED [KIND]]]    600 seconds and seed 1 by default; KIND: csv, variables, json or databases
# Findings are printed, and a finding's input lies in build-fuzz/ucudnn-fuzz-finding. SIMULATOR names the folder of a
# built simulator; without it one is built with the sanitizers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ -n ${SIMULATOR:-} ]]; then with_simulator=OFF; else with_simulator=ON; fi
# Little optimization, little debug information and few large sources: most of the time goes into building.
misc/build.sh --dir build-fuzz '-DUCUDNN_SANITIZE=address;undefined' -DCMAKE_BUILD_TYPE=None '-DCMAKE_CXX_FLAGS=-O1 -g1' \
  -DCMAKE_UNITY_BUILD=ON -DUCUDNN_BUILD_DEVICE_CODE=OFF -DUCUDNN_BUILD_SIMULATOR=$with_simulator \
  -- ucudnn_fuzz
cd build-fuzz
unset "${!UCUDNN_@}"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export UCUDNN_SIMULATOR_STRICT=abort LD_LIBRARY_PATH=${SIMULATOR:-$PWD/simulator}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec bin/ucudnn_fuzz "${@:-600}"
