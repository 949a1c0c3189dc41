#!/usr/bin/env python3
"""Draws misc/figures/programs.svg: memory against time of PyTorch programs, as parts of the plain program's.

usage: misc/scripts/draw_programs.py [--check]

The programs are those of the README's table (HELPS in results_lists.py). --check writes nothing, and fails where the
file is another.
"""
import pathlib

import results_lists
import results_tables
import svg

LEFT, TOP, WIDTH, HEIGHT = 70, 60, 640, 400
MEMORY, TIME = (0.5, 1.2), (0.6, 1.3)  # what the axes show


def place(memory, time):
    return (LEFT + WIDTH * (memory - MEMORY[0]) / (MEMORY[1] - MEMORY[0]),
            TOP + HEIGHT * (TIME[1] - time) / (TIME[1] - TIME[0]))


def points():
    """Name, memory, time."""
    for what, cap, name, key, plain, ours in results_lists.HELPS:
        time = results_tables.median(name, ours, key) / results_tables.median(name, plain, key)
        memory = results_tables.median(name, ours, "reserved_mib") / results_tables.median(name, plain, "reserved_mib")
        yield f"{what.split(',')[0]}, {'no cap' if cap == 'none' else cap}", memory, time


def axes():
    for tenth in range(5, 13):
        x, _ = place(tenth / 10, 1)
        yield svg.text(x, TOP + HEIGHT + 20, f"{tenth / 10:.1f}", 12, "middle", "#555")
    for tenth in range(6, 14):
        _, y = place(1, tenth / 10)
        yield svg.text(LEFT - 10, y + 4, f"{tenth / 10:.1f}", 12, "end", "#555")
    x, y = place(1, 1)
    yield svg.line(LEFT, y, LEFT + WIDTH, y, svg.GRAY, "none")
    yield svg.line(x, TOP, x, TOP + HEIGHT, svg.GRAY, "none")
    yield svg.text(LEFT + WIDTH, y - 6, "as long as without μ-cuDNN", 12, "end", "#555")
    yield svg.text(LEFT, TOP - 12, "time of a step, as a part of plain PyTorch's", 12, color="#555")
    yield svg.text(LEFT + WIDTH, TOP + HEIGHT + 42, "memory that PyTorch reserves, as a part of plain PyTorch's", 12, "end",
                   "#555")


def drawing():
    parts = [svg.text(20, 28, "PyTorch programs within a cap on workspace: memory and time", 16, weight="bold"), *axes()]
    shown = [(name, *place(memory, time), time) for name, memory, time in sorted(points(), key=lambda each: each[2])]
    taken = []  # where labels stand
    for name, x, y, time in shown:
        parts.append(svg.circle(x, y, svg.RED if time >= 1.01 else svg.BLUE))
        length = 6.5 * len(name)
        crossed = any(x < other < x + 9 + length and abs(y - at) < 8 for _, other, at, _ in shown)
        left = crossed or x + 9 + length > LEFT + WIDTH + 40
        begin, level = (x - 9 - length if left else x + 9), y + 4
        while any(abs(level - at) < 15 and begin < end and start < begin + length for start, end, at in taken):
            level -= 1  # points are taken from below
        taken.append((begin, begin + length, level))
        parts.append(svg.text(x - 9 if left else x + 9, level, name, 12, "end" if left else "start"))
    caption = "NVIDIA H100 and H200, PyTorch 2.11, cuDNN 9.19, 2026-11-25 to 28; misc/results"
    parts.append(svg.text(20, TOP + HEIGHT + 68, caption, 11, color="#555"))
    return svg.page(LEFT + WIDTH + 50, TOP + HEIGHT + 84, parts)


if __name__ == "__main__":
    svg.write_or_check(pathlib.Path(results_tables.ROOT) / "misc" / "figures" / "programs.svg", drawing(), __doc__)
