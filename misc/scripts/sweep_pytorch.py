#!/usr/bin/env python3
"""Runs misc/scripts/train_pytorch.py for each line of a list, and writes all results into one file.

usage: LD_PRELOAD=libucudnn_preload.so misc/scripts/sweep_pytorch.py LIST.txt OUT.json [SECONDS]

A line is "NAME | VARIABLE=VALUE... | ARGUMENTS": the variables are those that `ucudnn run` sets for its options
(UCUDNN_WORKSPACE_LIMIT, UCUDNN_DATABASE, ...); UCUDNN_DISABLE=1 is plain PyTorch. Each line runs in a process of its
own, forked before CUDA is touched, so that PyTorch is imported only once. After SECONDS nothing more is begun.
Prints each run's result, and what the report says, if UCUDNN_REPORT=1 asks for one.
"""

import datetime
import json
import os
import signal
import sys
import time

import torch
import torchvision  # noqa: F401: imported here once, for all runs

import train_pytorch

LONGEST = 75  # seconds that a run may take


def run(name, variables, arguments, results, log, seconds):
    """In the child: never returns."""
    for variable in variables.split():
        key, value = variable.split("=", 1)
        os.environ[key] = value
    file = open(log, "w", encoding="utf-8")
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
    sys.argv = ["train_pytorch.py", *arguments.split(), "--json", results, "--name", name]
    signal.alarm(seconds)
    try:
        train_pytorch.main()
    except Exception as error:  # out of memory, for one: a result like others
        with open(results, "a", encoding="utf-8") as out:
            out.write(json.dumps({"name": name, "failed": f"{type(error).__name__}: {str(error)[:200]}"}) + "\n")
        print("failed:", type(error).__name__, flush=True)
        os._exit(1)
    sys.exit(0)


def main():
    lines, out = sys.argv[1], sys.argv[2]
    deadline = time.time() + float(sys.argv[3] if len(sys.argv) > 3 else 3600)
    results = out + ".lines"
    begin = time.time()
    reports = {}
    for line in open(lines, encoding="utf-8"):
        if not line.strip() or line.startswith("#"):
            continue
        name, variables, arguments = (part.strip() for part in line.split("|"))
        left = int(deadline - time.time())
        if left < 5:
            print("no time for", name)
            continue
        log = f"{out}.{name}.txt"
        child = os.fork()
        if child == 0:
            run(name, variables, arguments, results, log, min(left, LONGEST))
        _, status = os.waitpid(child, 0)
        said = open(log, encoding="utf-8", errors="replace").read().splitlines()
        reports[name] = [text for text in said if text.startswith("ucudnn: ")]
        print(f"{time.time() - begin:5.0f} {name} {status}: {said[0] if said else ''}", flush=True)
        for text in reports[name]:
            print("      ", text, flush=True)
    runs = [json.loads(line) for line in open(results, encoding="utf-8")]
    given = {line.split("|")[0].strip(): line.strip() for line in open(lines, encoding="utf-8") if "|" in line}
    for each in runs:
        each["line"], each["report"] = given[each["name"]], reports[each["name"]]
    os.remove(results)
    machine = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "pytorch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "gpu": os.popen("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader").read().strip(),
    }
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"machine": machine, "runs": runs}, file, indent=1)


if __name__ == "__main__":
    main()
