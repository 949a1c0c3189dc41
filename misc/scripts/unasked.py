#!/usr/bin/env python3
"""The cost of unrequested measuring for programs, step by step.

usage: misc/scripts/unasked.py OUT.json...

The files are those of misc/scripts/sweep_programs.py with misc/scripts/unasked_runs.txt. For each program: the time to its 100th and to
its last step and the longest step but the first, plain and with us, in ms; steps of both are compared at the same place.
Then the latencies of a server's requests, and the first and last pass over 300 shapes.
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


def quantile(steps, part):
    return sorted(steps)[min(len(steps) - 1, int(part * len(steps)))]


def latencies(name, plain, ours):
    """But for the first request, which loads cuDNN."""
    cells = [name, f"{len(ours)}"]
    for part in (0.5, 0.99, 0.999):
        a, b = quantile(plain[1:], part), quantile(ours[1:], part)
        cells.append(f"{a:.2f}, {b:.2f}: {b / a:.2f}")
    return "| " + " | ".join(cells) + " |"


def first_and_last(plain, ours, length):
    """The times of the first pass over all shapes and of the last, of plain and of ours."""
    return [(sum(plain[part]), sum(ours[part])) for part in (slice(0, length), slice(-length, None))]


def passes(name, plain, ours, length):
    cells = [name]
    for a, b in first_and_last(plain, ours, length):
        cells.append(f"{a:.1f}, {b:.1f}: {b / a:.3f}")
    return "| " + " | ".join(cells) + " |"


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
    beside_plain = [(name, name.rpartition("_")[0] + "_plain") for name in steps]
    beside_plain = [(name, plain) for name, plain in beside_plain if plain != name and plain in steps]
    print("| program | steps | plain to the 100th, ms | with us | plain to the last | with us | longest plain | with us | most beyond plain |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, plain in beside_plain:
        print(row(name, steps[plain], steps[name]))
    print("\n| requests, plain and with us, ms | count | p50 | p99 | p99.9 |\n|---|---|---|---|---|")
    for name, plain in beside_plain:
        if name.startswith("server"):
            print(latencies(name, steps[plain], steps[name]))
    print("\n| shapes, plain and with us, ms | first pass | last pass |\n|---|---|---|")
    for name, plain in beside_plain:
        if name.startswith("shapes"):
            print(passes(name, steps[plain], steps[name], 300))


if __name__ == "__main__":
    main()
