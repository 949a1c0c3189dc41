#!/usr/bin/env python3
"""Measures what checks of kernels cost planning: `ucudnn plan` within 64 MiB with checks and without, in turns.

    measure_checks.py OUT.json [--ucudnn PROGRAM] LAYERS.csv[:TURNS]...

Writes for each list the time until all plans are made, of each turn, and the time of their checks, by the log.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

LINE = re.compile(r"\[debug\] (\w+) (.*) N=(\d+): (\d+) kernels checked in ([\d.]+) ms")


def first_checks(log):
    """The checks of the plans, which come first: those of the Pareto front are of the same problems."""
    found = {}
    for operation, problem, batch, kernels, ms in LINE.findall(log):
        found.setdefault((operation, problem, batch), (int(kernels), float(ms)))
    return sum(kernels for kernels, _ in found.values()), sum(ms for _, ms in found.values())


def plan(ucudnn, layers, checks):
    with tempfile.TemporaryDirectory() as folder:
        out, log = pathlib.Path(folder, "plan.json"), pathlib.Path(folder, "log")
        environment = dict(os.environ, UCUDNN_CHECK_KERNELS=str(checks), UCUDNN_LOG_LEVEL="debug",
                           UCUDNN_LOG_FILE=str(log), UCUDNN_DATABASE="")
        subprocess.run([ucudnn, "plan", layers, "--limit", "64MiB", "--json", out], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        return json.loads(out.read_text()), log.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("lists", nargs="+", metavar="LAYERS.csv[:TURNS]")
    parser.add_argument("--ucudnn", default="ucudnn")
    options = parser.parse_args()
    result = {"rows": []}
    for each in options.lists:
        layers, _, turns = each.partition(":")
        row = {"list": pathlib.Path(layers).stem, "with_ms": [], "without_ms": []}
        for _ in range(int(turns or 1)):
            for checks, name in ((1, "with_ms"), (0, "without_ms")):
                planned, log = plan(options.ucudnn, layers, checks)
                row[name].append(round(sum(entry["planning_ms"] for entry in planned["rows"]), 1))
                if checks:
                    row["kernels"], row["checks_ms"] = first_checks(log)
        result["machine"] = planned["machine"]
        result["rows"].append(row)
        print(row, flush=True)
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
