#!/usr/bin/env python3
"""What measuring that nobody asks for costs programs, step by step.

usage: misc/scripts/unasked.py OUT.json...

The files are those of misc/scripts/sweep_programs.py with misc/scripts/unasked_runs.txt. For each program: the time to its 100th and to
its last step and the longest step but the first, plain and with us, in ms; steps of both are compared at the same place.
"""

import json
import sys


def row(name, plain, ours):
    count = min(len(plain), len(ours))
    early = min(100, count)
    over = max(range(1, count), key=lambda i: ours[i] - plain[i])
    return (
        f"| {name} | {count} | {sum(plain[:early]):.0f} | {sum(ours[:early]) / sum(plain[:early]):.3f} "
        f"| {sum(plain[:count]):.0f} | {sum(ours[:count]) / sum(plain[:count]):.3f} "
        f"| {max(plain[1:count]):.1f} | {max(ours[1:count]):.1f} | {ours[over] - plain[over]:.1f} (step {over + 1}) |"
    )


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    steps = {}
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as text:
            for run in json.load(text)["runs"]:
                if "failed" in run:
                    print(run["name"], "failed:", run["failed"])
                else:
                    steps[run["name"]] = run["step_ms"]
    print("| program | steps | plain to the 100th, ms | with us | plain to the last | with us | longest plain | with us | most beyond plain |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in steps:
        program, _, way = name.rpartition("_")
        if way != "plain" and program + "_plain" in steps:
            print(row(name, steps[program + "_plain"], steps[name]))


if __name__ == "__main__":
    main()
