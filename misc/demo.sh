#!/usr/bin/env bash
# Builds μ-cuDNN into build/ and runs AlexNet's convolutions under a 64 MiB workspace limit: on the GPU if there is
# one, else on the simulator. Arguments are handed to `ucudnn bench`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
misc/build.sh -- ucudnn_tool ucudnn_simulated_cudart ucudnn_simulated_cudnn

bench=(build/bin/ucudnn bench misc/layers/alexnet.csv --workspace-limit 64MiB "$@")
echo
if nvidia-smi -L >/dev/null 2>&1; then
  echo "== On the GPU: $(nvidia-smi -L | head -n 1)"
  "${bench[@]}"
else
  echo '== No GPU here: on the simulator. Its times are virtual, recorded on an H200 (misc/profiles);'
  echo '== its results are computed, at sampled outputs.'
  profiles=misc/profiles/h200_legacy_algorithms.csv,misc/profiles/h200_engines.csv
  UCUDNN_SIMULATOR_PROFILE=$profiles misc/with-simulator "${bench[@]}"
fi
