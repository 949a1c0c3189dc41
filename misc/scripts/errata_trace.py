#!/usr/bin/env python3
"""Bars the engines that a program's calls were planned with, and shows that none of them runs any more.

usage: misc/scripts/errata_trace.py [--ucudnn PATH] [--limit SIZE] [COMMAND...]

COMMAND is misc/examples/train_pytorch.py by default, which needs a GPU and PyTorch. It runs twice under `ucudnn run`:
first as it is, then with a file of CUDNN_ERRATA_JSON_FILE that names the most frequent engine of each operation. PyTorch
reads the file, too. Exit status 0: each of them ran before, none does with the file, and calls are still planned.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

TAGS = {
    "forward": "ConvFwd",
    "bias_activation_forward": "ConvFwd",
    "backward_data": "ConvBwdData",
    "backward_filter": "ConvBwdFilter",
}


def engines(trace):
    """How often each operation ran each engine, and how many calls were planned."""
    counts, planned = collections.Counter(), 0
    with open(trace, encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 3 or fields[1] == "cudnn":
                continue
            planned += 1
            operation = fields[0].split(" ")[0]
            for engine in set(re.findall(r"\beng(\d+)", fields[2])):
                counts[TAGS[operation], int(engine)] += 1
    return counts, planned


def run(options, trace, errata=None):
    environment = dict(os.environ, UCUDNN_BENCHMARK_SHARE="always", UCUDNN_KERNELS="engines")
    if errata is not None:
        environment["CUDNN_ERRATA_JSON_FILE"] = errata
    subprocess.run(
        [options.ucudnn, "run", "--no-database", "--workspace-limit", options.limit, "--trace", trace, *options.command],
        env=environment,
        check=True,
    )
    return engines(trace)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ucudnn", default=os.path.join(here, "../../build/bin/ucudnn"))
    parser.add_argument("--limit", default="64MiB")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        program = os.path.join(here, "../examples/train_pytorch.py")
        options.command = [sys.executable, program, "--batch", "64", "--steps", "20"]
    with tempfile.TemporaryDirectory() as folder:
        before, _ = run(options, os.path.join(folder, "before"))
        if not before:
            sys.exit("errata_trace.py: no call was planned with an engine, so there is none to bar")
        barred = {}
        for (operation, engine), _ in before.most_common():
            barred.setdefault(operation, engine)
        rules = [
            {"rule_id": f"trace_{operation}", "operation": operation, "engine": engine, "cudnn_version_start": 0,
             "cudnn_version_end": -1}
            for operation, engine in barred.items()
        ]
        errata = os.path.join(folder, "errata.json")
        with open(errata, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "rules": rules}, file)
        after, planned = run(options, os.path.join(folder, "after"), errata)
    for operation, engine in barred.items():
        print(f"{operation} engine {engine}: {before[operation, engine]} calls before, {after[operation, engine]} with it barred")
    print(f"{planned} calls were planned with the file")
    wrong = [operation for operation, engine in barred.items() if after[operation, engine] > 0]
    sys.exit(1 if wrong or planned == 0 else 0)


if __name__ == "__main__":
    main()
