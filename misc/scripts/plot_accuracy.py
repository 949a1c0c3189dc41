#!/usr/bin/env python3
"""Draws time against error from results of `ucudnn plan --accuracy --json`.

usage: misc/scripts/plot_accuracy.py [-o misc/figures/NAME] RESULT.json...

One line for each result (usually the same layers under several workspace limits, or math types): the
summed time of the fastest plans whose error is within that on the horizontal axis. It begins where
every convolution has such a plan. Writes NAME.svg and NAME.png. Needs python3-matplotlib. Exit
status 2: a file that is no such result.
"""

import os

from plotting import parse_arguments, plt, read_result, save

# Okabe and Ito's palette: told apart by the color-blind, too.
COLORS = ["#56B4E9", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00"]


def size_text(size):
    for unit in ["B", "KiB", "MiB"]:
        if size < 1024:
            return f"{size:g} {unit}"
        size /= 1024
    return f"{size:g} GiB"


def require(result):
    for key in ["machine", "settings"]:
        result[key]
    if not any(row["accuracy"] for row in result["rows"]):
        raise ValueError("no row has an accuracy: plan --accuracy writes it")


def summed(result):
    """(error, summed time) by rising error, of the rows that were planned."""
    fronts = [row["accuracy"] for row in result["rows"] if row["accuracy"]]
    errors = sorted({point["error"] for front in fronts for point in front})
    points = []
    for error in errors:
        times = [
            min((point["time_ms"] for point in front if point["error"] <= error), default=None) for front in fronts
        ]
        if None not in times:
            points.append((error, sum(times)))
    return points


def caption_of(results):
    machine = results[0]["machine"]
    versions = f"cuDNN {machine['cudnn']}, CUDA {machine['cuda']}"
    if machine.get("driver"):
        versions += f", driver {machine['driver']}"
    lists = ", ".join(os.path.basename(name) for name in results[0]["settings"]["layer_files"])
    return (
        f"{machine['device']}, {versions}, {machine['date'][:10]}\n"
        f"{lists}, {results[0]['settings']['data_type']}; "
        "summed predicted times of the fastest plans; error: largest normalized L2 distance to double of a plan's kernels"
    )


def draw(results, output):
    figure, axes = plt.subplots(figsize=(8.0, 4.8))
    for i, result in enumerate(results):
        errors, times = zip(*summed(result))
        settings = result["settings"]
        label = f"limit {size_text(settings['workspace_limit_bytes'])}, {settings['math']} math, {settings['kernels']}"
        color = COLORS[i % len(COLORS)]
        axes.step(errors, times, where="post", label=label, color=color)
        axes.plot(errors, times, "o", markersize=3, color=color)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("largest error")
    axes.set_ylabel("ms")
    axes.grid(linewidth=0.4)
    axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1.0), ncol=1)
    save(figure, axes, caption_of(results), output)


def main():
    arguments = parse_arguments(__doc__, "accuracy")
    draw([read_result(path, require) for path in arguments.results], arguments.output)


if __name__ == "__main__":
    main()
