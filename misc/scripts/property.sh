#!/usr/bin/env bash
# Random clients on the simulator, in as many processes as there are processors.
#   misc/scripts/property.sh [COUNT [SEED]] [--trace]            COUNT problems (3000), five to a client, from the client SEED (1) on
#   misc/scripts/property.sh --graphs [COUNT [SEED]] [--trace]   COUNT unmodified programs of the graph API (10000), five to a process
#   misc/scripts/property.sh --host [COUNT [SEED]] [--trace]     COUNT problems with tensors in host memory (10000), five to a client
# BUILD names the build directory (build). Prints what was found wrong; exit status 1 where anything was.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

numbers=()
options=()
name=ucudnn_property
count=3000
export preload=
for word in "$@"; do
  if [[ $word == --graphs ]]; then
    name=ucudnn_graph_property
    count=10000
    preload=$PWD/${BUILD:-build}/lib/libucudnn_preload.so
  elif [[ $word == --host ]]; then
    name=ucudnn_host_property
    count=10000
  elif [[ $word == --* ]]; then options+=("$word"); else numbers+=("$word"); fi
done
clients=$(( (${numbers[0]:-$count} + 4) / 5 ))
seed=${numbers[1]:-1}
last=$(( seed + clients - 1 ))
program=${BUILD:-build}/bin/$name
[[ -x $program ]] || { echo "$program is not there: misc/build.sh builds it" >&2; exit 2; }
export LD_LIBRARY_PATH=${BUILD:-build}/simulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# Parts of ten clients: none holds the others up at the end. Each says what it has to say in one piece.
part() {  # first seed, last seed, options
  local first=$1 last=$2 text
  text=$(LD_PRELOAD=$preload "$program" --seed "$first" --count $(( last - first + 1 < 10 ? last - first + 1 : 10 )) "${@:3}") && [[ $# -eq 2 ]] && return
  flock "$lock" echo "$text"
}
export -f part
export program lock
lock=$(mktemp)
trap 'rm -f "$lock"' EXIT
seq "$seed" 10 "$last" | xargs -P "$(nproc)" -I{} bash -c 'part "$@"' part {} "$last" "${options[@]}" |
  awk '{ print; fflush() } / clients found something wrong$/ { wrong += $(NF - 4) }
       END { print wrong + 0, "clients found something wrong"; exit wrong > 0 }'
