#!/usr/bin/env python3
"""Makes a simulator profile of recorded engines: compact_engines.py RECORDED.csv > PROFILE.csv

RECORDED.csv has one row for each timing, with the columns layer, operation, math, batch, c, h, w, k, kh, kw, pad_h,
pad_w, stride_h, stride_w, engine, time_ms, workspace_bytes; for each problem and batch size the rows of heuristics A,
then B's, then FALLBACK's. The profile names each problem once, and below it each engine once, with the modes that
proposed it and its best time."""
import csv
import itertools
import sys

PROBLEM = "layer operation math batch c h w k kh kw pad_h pad_w stride_h stride_w".split()


def modes_of(engines):
    """A mode's list has no engine twice, but the last one's; FALLBACK begins with eng1, without knobs."""
    seen, mode = set(), "A"
    for engine in engines:
        if mode == "A" and engine in seen:
            mode = "B"
        if mode == "B" and engine == "eng1":
            mode = "F"
        seen.add(engine)
        yield mode


def main():
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    print(",".join(PROBLEM))
    print("modes,engine,time_ms,workspace_bytes")
    for problem, group in itertools.groupby(rows, key=lambda row: [row[name] for name in PROBLEM]):
        group = list(group)
        print(",".join(problem))
        engines = {}
        for row, mode in zip(group, modes_of([row["engine"] for row in group])):
            best = engines.setdefault(row["engine"], ["", row["time_ms"], row["workspace_bytes"]])
            if mode not in best[0]:
                best[0] += mode
            best[1] = min(best[1], row["time_ms"], key=float)
        for engine, (modes, time_ms, workspace_bytes) in engines.items():
            print(f"{modes},{engine},{time_ms},{workspace_bytes}")


main()
