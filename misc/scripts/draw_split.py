#!/usr/bin/env python3
"""Draws misc/figures/split.svg: one convolution within 64 MiB, undivided and split.

usage: misc/scripts/draw_split.py [--check]

The numbers are a row's of misc/results/. --check writes nothing, and fails where the file is another.
"""
import json
import pathlib

import svg

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULT = ROOT / "misc" / "results" / "alexnet_tf32_64mib_engines_fast_h200.json"
MEBIBYTE = 1 << 20
LEFT, TOP, STEP, HEIGHT = 20, 96, 62, 22  # of the first bar; from bar to bar
TIME_WIDTH, MEMORY_LEFT, MEMORY_WIDTH = 470, 560, 240  # px


def cases(row):
    """Name; time; workspace; samples of each part; color."""
    parts = [each["batch"] for each in row["configuration"] for _ in range(each["count"])]
    whole = [sum(parts)]
    return (
        ("cuDNN's choice within 64 MiB", row["cudnn_ms"], row["cudnn_workspace_bytes"], whole, svg.GRAY),
        ("the fastest undivided kernel within 64 MiB", row["undivided_ms"], row["undivided_workspace_bytes"], whole,
         svg.GRAY),
        (f"μ-cuDNN within 64 MiB: {len(parts)} micro-batches", row["ucudnn_ms"], row["workspace_bytes"], parts,
         svg.BLUE),
        ("cuDNN's choice without a limit", row["unlimited_ms"], row["unlimited_workspace_bytes"], whole, svg.GRAY),
    )


def time_bar(y, time, longest, parts, color):
    x = LEFT
    for part in parts:
        width = TIME_WIDTH * time / longest * part / sum(parts)
        yield svg.rectangle(x, y, width - (1.5 if len(parts) > 1 else 0), HEIGHT, color)
        x += width
    words = f"{time:.2f} ms: {' + '.join(str(part) for part in parts)} samples"
    inside = x + 8 > LEFT + TIME_WIDTH
    yield svg.text(x - 8 if inside else x + 8, y + 16, words, anchor="end" if inside else "start")


def memory_bar(y, workspace, largest, limit, color):
    width = MEMORY_WIDTH * workspace / largest
    yield svg.rectangle(MEMORY_LEFT, y, width, HEIGHT, color)
    end = MEMORY_LEFT + width
    beside = max(end, limit) if end <= limit else end
    yield svg.text(beside + 6, y + 16, f"{workspace / MEBIBYTE:.0f}")


def drawing(content):
    row = next(each for each in content["rows"] if (each["layer"], each["operation"]) == ("conv2", "forward"))
    shown = cases(row)
    longest, largest = max(each[1] for each in shown), max(each[2] for each in shown)
    limit = MEMORY_LEFT + MEMORY_WIDTH * row["limit_bytes"] / largest
    parts = [
        svg.text(LEFT, 30, "One convolution, 256 samples: AlexNet's second, forward, float (TF32)", 16, weight="bold"),
        svg.text(LEFT, 62, "time, ms", color="#555"),
        svg.text(MEMORY_LEFT, 62, "workspace, MiB", color="#555"),
    ]
    for index, (name, time, workspace, samples, color) in enumerate(shown):
        y = TOP + index * STEP
        parts += [svg.text(LEFT, y - 6, name), *time_bar(y, time, longest, samples, color)]
        parts += memory_bar(y, workspace, largest, limit, color)
    bottom = TOP + (len(shown) - 1) * STEP + HEIGHT
    parts += [svg.line(limit, 72, limit, bottom + 8, svg.RED), svg.text(limit + 5, 82, "limit", 12, color=svg.RED)]
    machine = content["machine"]
    caption = (f'{machine["device"]}, cuDNN {machine["cudnn"]}, CUDA {machine["cuda"]}, {machine["date"][:10]}, '
               f'revision {machine["git_revision"]}')
    parts.append(svg.text(LEFT, bottom + 34, caption, 11, color="#555"))
    return svg.page(MEMORY_LEFT + MEMORY_WIDTH + 60, bottom + 50, parts)


if __name__ == "__main__":
    svg.write_or_check(ROOT / "misc" / "figures" / "split.svg", drawing(json.loads(RESULT.read_text(encoding="utf-8"))),
                       __doc__)
