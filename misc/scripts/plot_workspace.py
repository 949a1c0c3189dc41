#!/usr/bin/env python3
"""Draws total workspace against a network's summed time from results of
`ucudnn bench --total-workspace SIZE --json`: WR with equal parts, `divide` and `share`.

usage: misc/scripts/plot_workspace.py [-o misc/figures/NAME] RESULT.json...

One result for each total, all of the same layers and settings. Writes NAME.svg and NAME.png. Needs
python3-matplotlib. Exit status 2: a file that is no such result, or results that do not belong
together.
"""

import os

from plotting import fail, parse_arguments, plt, read_result, save

# Okabe and Ito's palette: told apart by the color-blind, too.
WAYS = {
    "wr": ("WR, equal parts", "#E69F00", "o"),
    "divide": ("divide", "#0072B2", "s"),
    "share": ("share", "#009E73", "^"),
}
SAME_SETTINGS = ["layer_files", "layers", "batch_size", "operations", "policy", "data_type", "math", "layout"]


def require(result):
    for way in result["network"]["totals"].values():
        way["measured_ms"] + 0
    for key in ["date", "device", "cudnn", "cuda"]:
        result["machine"][key]
    for key in SAME_SETTINGS:
        result["settings"][key]


def caption_of(results):
    machine = results[0]["machine"]
    settings = results[0]["settings"]
    lists = ", ".join(os.path.basename(name) for name in settings["layer_files"])
    batch = f", N={settings['batch_size']}" if settings["batch_size"] else ""
    return (
        f"{machine['device']}, cuDNN {machine['cudnn']}, CUDA {machine['cuda']}, {machine['date'][:10]}\n"
        f"{lists}{batch}, {results[0]['network']['convolutions']} convolutions, {settings['data_type']}, "
        f"{settings['math']} math, policy {settings['policy']}; lines: measured, crosses: predicted"
    )


def draw(results, output):
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    for way, (label, color, marker) in WAYS.items():
        points = [
            (result["network"]["total_workspace_bytes"] / 2**20, result["network"]["totals"][way])
            for result in results
            if way in result["network"]["totals"]
        ]
        if not points:
            continue
        sizes = [size for size, _ in points]
        axes.plot(sizes, [sums["measured_ms"] for _, sums in points], color=color, marker=marker, label=label)
        axes.plot(sizes, [sums["predicted_ms"] for _, sums in points], "x", color=color, alpha=0.6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("total workspace (MiB)")
    axes.set_ylabel("summed time of all convolutions (ms)")
    axes.grid(linewidth=0.4)
    axes.legend(frameon=False)
    save(figure, axes, caption_of(results), output)


def main():
    arguments = parse_arguments(__doc__, "workspace")
    results = [read_result(path, require) for path in arguments.results]
    for path, result in zip(arguments.results, results):
        for key in SAME_SETTINGS:
            if result["settings"][key] != results[0]["settings"][key]:
                fail(f"{path}: another {key} than {arguments.results[0]}")
    results.sort(key=lambda result: result["network"]["total_workspace_bytes"])
    draw(results, arguments.output)


if __name__ == "__main__":
    main()
