#!/usr/bin/env bash
# Usage: check_with_simulator.sh WITH_SIMULATOR. Its paths, exit statuses and messages.
set -euo pipefail
tool="$1"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

expect() {  # expect STATUS TEXT COMMAND...
  local status=0 output
  output="$("${@:3}" 2>&1)" || status=$?
  if [[ "$status" != "$1" || "$output" != *"$2"* ]]; then
    echo "status $status, expected $1; output '$output', expected '$2': ${*:3}"
    exit 1
  fi
}

expect 2 "usage" "$tool"
expect 2 "usage" "$tool" --build
expect 2 "usage" "$tool" --no-such-option true
expect 2 "build it first" "$tool" --build "$folder" true
mkdir "$folder/simulator"
touch "$folder/simulator/libcudart.so"
expect 2 "libcudnn.so.9" "$tool" --build "$folder" true
touch "$folder/simulator/libcudnn.so.9"
# Empty libraries: only commands that load none can run, as the shell's own.
expect 0 "$folder/simulator" "$tool" --build "$folder" bash -c 'echo "$LD_LIBRARY_PATH"'
expect 0 "$folder/simulator:/elsewhere" env LD_LIBRARY_PATH=/elsewhere "$tool" "--build=$folder" -- \
  bash -c 'echo "$LD_LIBRARY_PATH"'
expect 7 "" "$tool" --build "$folder" bash -c 'exit 7'
