#!/usr/bin/env python3
"""Compares what two builds plan on the simulator with recorded times: for a change that must not change plans.

usage: misc/scripts/compare_builds.py OLD_BUILD NEW_BUILD

Runs `ucudnn bench` of both on misc/layers/{alexnet,resnet18,resnet50}.csv within 8, 64 and 256 MiB, and within totals by
`share` and `divide`, with misc/profiles/h200_*.csv, and names each JSON that differs in more than dates, revisions and
times of the host, and the number of graphs kept, which depends on addresses. Exit status: 0 if none does.
"""

import json
import os
import subprocess
import sys

MISC = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROFILES = ",".join(f"{MISC}/profiles/h200_{name}.csv" for name in ("legacy_algorithms", "engines", "resnet50_n128"))
OF_THE_HOST = ("date", "revision", "planning", "host", "elapsed", "version", "division_ms", "graph_bytes", "graphs")


def cases():
    for layers in ("alexnet", "resnet18", "resnet50"):
        for limit in ("8MiB", "64MiB", "256MiB"):
            yield layers, ["--workspace-limit", limit]
        for policy in ("share", "divide"):
            yield layers, ["--total-workspace", "120MiB", "--total-workspace-policy", policy]


def without_host(value):
    """The output without times, places and speeds."""
    if isinstance(value, dict):
        return {k: without_host(v) for k, v in value.items() if not any(word in k for word in OF_THE_HOST)}
    return [without_host(each) for each in value] if isinstance(value, list) else value


def bench(build, layers, options):
    """Its JSON, or what it says instead."""
    words = [f"{MISC}/with-simulator", "--build", build, f"{build}/bin/ucudnn", "bench", f"{MISC}/layers/{layers}.csv"]
    words += [*options, "--arithmetic", "off", "--json", "-"]
    environment = {**os.environ, "UCUDNN_SIMULATOR_PROFILE": PROFILES}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        return without_host(json.loads(done.stdout))
    except json.JSONDecodeError:
        return f"exit status {done.returncode}: {done.stderr.strip()[-300:]}"


def first_difference(old, new, path=""):
    if type(old) is not type(new):
        return f"{path}: {str(old)[:100]}, now {str(new)[:100]}"
    if isinstance(old, dict):
        for key in sorted({*old, *new}):
            if found := first_difference(old.get(key), new.get(key), f"{path}.{key}"):
                return found
        return None
    if isinstance(old, list) and len(old) == len(new):
        found = (first_difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(old, new)))
        return next((each for each in found if each), None)
    return None if old == new else f"{path}: {str(old)[:100]}, now {str(new)[:100]}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    builds = [os.path.abspath(build) for build in sys.argv[1:]]
    wrong = 0
    for layers, options in cases():
        old, new = (bench(build, layers, options) for build in builds)
        found = new if isinstance(new, str) else first_difference(old, new)
        print(layers, *options, "differs: " + found if found else "equal", flush=True)
        wrong += 1 if found else 0
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
