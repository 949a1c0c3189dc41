#!/usr/bin/env python3
"""Draws misc/figures/split.svg: one convolution within 64 MiB, undivided and split.

usage: misc/scripts/draw_split.py [--check]

The numbers are a row's of misc/results/. --check writes nothing, and fails where the file is another.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULT = ROOT / "misc" / "results" / "alexnet_tf32_64mib_engines_fast_h200.json"
FIGURE = ROOT / "misc" / "figures" / "split.svg"
MEBIBYTE = 1 << 20
LEFT, TOP, STEP, HEIGHT = 20, 96, 62, 22  # of the first bar; from bar to bar
TIME_WIDTH, MEMORY_LEFT, MEMORY_WIDTH = 470, 560, 240  # px
GRAY, BLUE, RED = "#b8bcc2", "#2f6fb0", "#c0392b"


def text(x, y, words, size=13, anchor="start", color="#222", weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" '
        f'font-weight="{weight}">{words}</text>'
    )


def bar(x, y, width, color):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{HEIGHT}" fill="{color}"/>'


def cases(row):
    """What runs; its time; its workspace; the samples of each part; its color."""
    parts = [each["batch"] for each in row["configuration"] for _ in range(each["count"])]
    return (
        ("cuDNN's choice within 64 MiB", row["cudnn_ms"], row["cudnn_workspace_bytes"], [sum(parts)], GRAY),
        (
            "the fastest undivided kernel within 64 MiB",
            row["undivided_ms"],
            row["undivided_workspace_bytes"],
            [sum(parts)],
            GRAY,
        ),
        (f"μ-cuDNN within 64 MiB: {len(parts)} micro-batches", row["ucudnn_ms"], row["workspace_bytes"], parts, BLUE),
        ("cuDNN's choice without a limit", row["unlimited_ms"], row["unlimited_workspace_bytes"], [sum(parts)], GRAY),
    )


def drawing(content):
    row = next(each for each in content["rows"] if (each["layer"], each["operation"]) == ("conv2", "forward"))
    shown = cases(row)
    longest, largest = max(each[1] for each in shown), max(each[2] for each in shown)
    limit = MEMORY_LEFT + MEMORY_WIDTH * row["limit_bytes"] / largest
    machine = content["machine"]
    lines = [
        text(LEFT, 30, "One convolution, 256 samples: AlexNet's second, forward, float (TF32)", 16, weight="bold"),
        text(LEFT, 62, "time, ms", color="#555"),
        text(MEMORY_LEFT, 62, "workspace, MiB", color="#555"),
    ]
    for index, (name, time, workspace, parts, color) in enumerate(shown):
        y = TOP + index * STEP
        lines.append(text(LEFT, y - 6, name))
        x = LEFT
        for part in parts:
            width = TIME_WIDTH * time / longest * part / sum(parts)
            lines.append(bar(x, y, width - (1.5 if len(parts) > 1 else 0), color))
            x += width
        samples = " + ".join(str(part) for part in parts)
        inside = x + 8 > LEFT + TIME_WIDTH
        lines.append(
            text(
                x - 8 if inside else x + 8,
                y + 16,
                f"{time:.2f} ms: {samples} samples",
                anchor="end" if inside else "start",
            )
        )
        width = MEMORY_WIDTH * workspace / largest
        lines.append(bar(MEMORY_LEFT, y, width, color))
        beside = max(width, limit - MEMORY_LEFT) if workspace <= row["limit_bytes"] else width
        lines.append(text(MEMORY_LEFT + beside + 6, y + 16, f"{workspace / MEBIBYTE:.0f}"))
    bottom = TOP + (len(shown) - 1) * STEP + HEIGHT
    lines.append(
        f'<line x1="{limit:.1f}" y1="72" x2="{limit:.1f}" y2="{bottom + 8}" stroke="{RED}" ' 'stroke-dasharray="4 3"/>'
    )
    lines.append(text(limit + 5, 82, "limit", 12, color=RED))
    lines.append(
        text(
            LEFT,
            bottom + 34,
            f'{machine["device"]}, cuDNN {machine["cudnn"]}, CUDA {machine["cuda"]}, '
            f'{machine["date"][:10]}, revision {machine["git_revision"]}',
            11,
            color="#555",
        )
    )
    width, height = MEMORY_LEFT + MEMORY_WIDTH + 60, bottom + 50
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="Helvetica, Arial, sans-serif">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *lines,
            "</svg>",
            "",
        ]
    )


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    drawn = drawing(json.loads(RESULT.read_text(encoding="utf-8")))
    if not sys.argv[1:]:
        FIGURE.write_text(drawn, encoding="utf-8")
    elif not FIGURE.exists() or FIGURE.read_text(encoding="utf-8") != drawn:
        sys.exit("misc/figures/split.svg is not what misc/results/ says: misc/scripts/draw_split.py draws it anew")


if __name__ == "__main__":
    main()
