#!/bin/bash
# measure_builds.sh OLD NEW OUT [ROW...]: two builds on one GPU, in turns, for what must not change: host time of a call
# (rows calls, graph and replay), plans of batch splits (alexnet, resnet18), and how long a total of AlexNet takes to
# plan (totals; the new build only). OLD and NEW: folders with bin, lib and env.sh, which sets LD_LIBRARY_PATH. Writes
# OUT/ROW_N.json and prints medians, old beside new. A measurement ends within LIMIT seconds (60), all begin within
# BUDGET (400).
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck disable=SC2034  # by name, below
old=$1 new=$2 out=$3
shift 3
wanted=" $* "
mkdir -p "$out"
budget=${BUDGET:-400}

# row NAME BUILD FILE COMMAND...: one measurement, unless it is not wanted or there is no time.
row() {
  local name=$1 build=$2 file=$3
  shift 3
  case $wanted in "  " | *" $name "*) ;; *) return ;; esac
  [ "$SECONDS" -lt "$budget" ] || { echo "== $file: no time left"; return; }
  (
    # shellcheck disable=SC1091
    . "$build/env.sh"
    timeout "${LIMIT:-60}" env "$@"
  ) > "$out/$file.txt" 2>&1 || echo "== $file failed: $(tail -1 "$out/$file.txt")"
}
host_times() {
  local build=$1 n=$2 preload timing="--benchmark_out_format=json"
  preload=$(find "$PWD/$build/lib" -name 'libucudnn_preload.so' | head -1)
  # shellcheck disable=SC2086
  {
    row calls "$build" "calls_$n" UCUDNN_KERNELS=legacy "$build/bin/ucudnn_hot_path_benchmark" $timing \
      --benchmark_filter='plannedCall|splitCall|ownedCall' --benchmark_out="$out/calls_$n.json"
    row graph "$build" "graph_$n" UCUDNN_BENCHMARK_SHARE=always UCUDNN_KERNELS=engines UCUDNN_GRAPH_MEMORY=0 \
      LD_PRELOAD="$preload" "$build/bin/ucudnn_preload_benchmark" $timing --benchmark_out="$out/graph_$n.json"
    row replay "$build" "replay_$n" "$build/bin/ucudnn_replay_benchmark" $timing --benchmark_filter=hostTime \
      --benchmark_out="$out/replay_$n.json"
  }
}
for n in old1 new1 new2 old2 old3 new3; do
  build=${n%[0-9]}
  host_times "${!build}" $n
done
for network in alexnet resnet18; do
  for n in old new; do
    build=${!n}
    limit=--limit
    # shellcheck disable=SC1091
    (. "$build/env.sh" && "$build/bin/ucudnn" bench --help) | grep -q -- --workspace-limit && limit=--workspace-limit
    row $network "$build" ${network}_$n "$build/bin/ucudnn" bench misc/layers/$network.csv --no-check --repeats 3 \
      $limit 64MiB --json "$out/${network}_$n.json"
  done
done
for streams in one layer; do
  row totals "$new" totals_$streams "$new/bin/ucudnn" bench misc/layers/alexnet.csv --no-check --repeats 3 \
    --total-workspace 120MiB --total-workspace-policy share --streams $streams --json "$out/totals_$streams.json"
done

python3 - "$out" <<'P'
import glob
import json
import os
import statistics
import sys

out = sys.argv[1]
rows = {}
for path in sorted(glob.glob(f"{out}/*_*[0-9].json")):
    kind, n = os.path.basename(path)[:-5].rsplit("_", 1)
    try:
        benchmarks = json.load(open(path))["benchmarks"]
    except ValueError:
        continue  # it ran out of time, as a line above says
    for each in benchmarks:
        rows.setdefault((kind, each["name"].split("/iterations")[0]), {}).setdefault(n[:3], []).append(each)
for (kind, name), runs in rows.items():
    if set(runs) == {"old", "new"}:
        for what in ("real_time", "overhead_ns"):
            if what in runs["old"][0]:
                old, new = ([round(run[what]) for run in runs[n]] for n in ("old", "new"))
                medians = f"{statistics.median(old):9.0f}{statistics.median(new):9.0f}"
                print(f"{kind:7}{name:28}{what:12}{medians}  {old} {new}")
P
tail -n 4 "$out"/{alexnet,resnet18,totals}_*.txt 2> /dev/null
exit 0
