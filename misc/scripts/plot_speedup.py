#!/usr/bin/env python3
"""Draws the speed-up of each layer's operations from results of `ucudnn bench --json`.

usage: misc/scripts/plot_speedup.py [-o misc/figures/NAME] RESULT.json...

One group of bars for a layer and operation, one bar for each result (usually the same layers under
several workspace limits). Writes NAME.svg and NAME.png. Needs python3-matplotlib. Exit status 2: a
file that is no such result.
"""

import os

from plotting import parse_arguments, plt, read_result, save

# Okabe and Ito's palette: told apart by the color-blind, too.
COLORS = ["#56B4E9", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00"]
OPERATIONS = {"forward": "F", "backward_data": "BD", "backward_filter": "BF"}


def size_text(size):
    for unit in ["B", "KiB", "MiB"]:
        if size < 1024:
            return f"{size:g} {unit}"
        size /= 1024
    return f"{size:g} GiB"


def require(result):
    for key in ["machine", "settings", "totals", "rows"]:
        result[key]


def key_of(row):
    return row["layer"], row["operation"]


def caption_of(results):
    machine = results[0]["machine"]
    settings = results[0]["settings"]
    versions = f"cuDNN {machine['cudnn']}, CUDA {machine['cuda']}"
    if machine.get("driver"):
        versions += f", driver {machine['driver']}"
    dates = sorted({result["machine"]["date"][:10] for result in results})
    lists = ", ".join(os.path.basename(name) for name in settings["layer_files"])
    return (
        f"{machine['device']}, {versions}, {' to '.join(sorted({dates[0], dates[-1]}))}\n"
        f"{lists}, {settings['data_type']}, {settings['math']} math, policy {settings['policy']}; "
        "F forward, BD backward data, BF backward filter; measured back to back"
    )


def draw(results, output):
    # Layers in the first file's order; a row that failed in one result is a gap there.
    keys = list(dict.fromkeys(key_of(row) for result in results for row in result["rows"]))
    width = 0.8 / len(results)
    figure, axes = plt.subplots(figsize=(max(8.0, 2.0 + 0.42 * len(keys)), 4.8))
    for i, result in enumerate(results):
        speedups = {key_of(row): row["speedup"] for row in result["rows"] if row["speedup"]}
        places = [n + (i - (len(results) - 1) / 2) * width for n, key in enumerate(keys) if key in speedups]
        heights = [speedups[key] for key in keys if key in speedups]
        totals = result["totals"]
        label = f"limit {size_text(result['settings']['workspace_limit_bytes'])}"
        if totals["speedup"]:
            label += f": {totals['speedup']:.2f}x in total, geometric mean {totals['geometric_mean_speedup']:.2f}x"
        axes.bar(places, heights, width, label=label, color=COLORS[i % len(COLORS)])
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(keys)))
    many = len(keys) > 30
    axes.set_xticklabels(
        [f"{layer} {OPERATIONS.get(operation, operation)}" for layer, operation in keys],
        rotation=60 if not many else 90,
        ha="right" if not many else "center",
        rotation_mode="anchor" if not many else "default",
        fontsize=9 if not many else 7,
    )
    axes.set_xlim(-0.7, len(keys) - 0.3)
    axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.12)
    axes.set_ylabel("speed-up over cuDNN under the same limit")
    axes.grid(axis="y", linewidth=0.4)
    axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1.0), ncol=1)
    save(figure, axes, caption_of(results), output)


def main():
    arguments = parse_arguments(__doc__, "speedup")
    results = [read_result(path, require) for path in arguments.results]
    results.sort(key=lambda result: result["settings"]["workspace_limit_bytes"])
    draw(results, arguments.output)


if __name__ == "__main__":
    main()
