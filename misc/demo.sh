#!/usr/bin/env bash
# Shows what μ-cuDNN does: AlexNet's convolutions within 64 MiB of workspace beside cuDNN's, then the report of a program
# that knows nothing of it. On the GPU if there is one, else on the simulator.
#   misc/demo.sh [--build DIR] [BENCH_OPTION...]
# Builds into build/ first; --build: DIR is built already. Other arguments are handed to `ucudnn bench`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build
if [[ ${1:-} == --build ]]; then
  build=${2:?misc/demo.sh: --build needs a folder}
  shift 2
else
  targets=(ucudnn_tool ucudnn_preload unmodified ucudnn_simulated_cudart ucudnn_simulated_cudnn)
  misc/build.sh -- "${targets[@]}"
  echo
fi

run=()
if nvidia-smi -L >/dev/null 2>&1; then
  echo "== On the GPU: $(nvidia-smi -L | head -n 1)"
else
  echo '== No GPU here: on the simulator. Its times are virtual, recorded on an H200 (misc/profiles).'
  export UCUDNN_SIMULATOR_PROFILE=misc/profiles/h200_legacy_algorithms.csv,misc/profiles/h200_engines.csv
  run=(misc/with-simulator --build "$build")
fi
"${run[@]}" "$build/bin/ucudnn" bench misc/layers/alexnet.csv --limit 64MiB "$@"

echo
echo '== A program that knows nothing of μ-cuDNN: ucudnn run --report'
export UCUDNN_SIMULATOR_ARITHMETIC=off  # nobody looks at its results
"${run[@]}" "$build/bin/ucudnn" run --workspace-limit 64MiB --tune --no-database --report "$build/bin/unmodified"
