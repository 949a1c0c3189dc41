"""Shared by misc/scripts/plot_*.py: reading results, the command line, and drawing to files."""

import argparse
import json
import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen before)


def fail(message):
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(2)


def read_result(path, require):
    """A result file; `require` looks up all that will be needed of it."""
    try:
        with open(path, encoding="utf-8") as stream:
            result = json.load(stream)
        require(result)
        return result
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{path}: {error!r}")


def parse_arguments(description, default_name):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    default = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "figures", default_name)
    parser.add_argument("-o", "--output", default=default, help="file, as p.png; without an extension both .svg and .png are written")
    return parser.parse_args()


def save(figure, axes, caption, output):
    """Writes OUTPUT, or OUTPUT.svg and OUTPUT.png where it has no extension, with the caption below."""
    axes.set_axisbelow(True)
    for side in ["top", "right"]:
        axes.spines[side].set_visible(False)
    figure.text(0.01, 0.005, caption, fontsize=7.5, va="bottom", color="#444444")
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    # Without a date, so that the same results give the same file.
    plt.rcParams["svg.hashsalt"] = "ucudnn"
    for file in [output] if os.path.splitext(output)[1] else [output + ".svg", output + ".png"]:
        try:
            figure.savefig(file, **({"metadata": {"Date": None}} if file.endswith(".svg") else {"dpi": 150}))
        except (OSError, ValueError) as error:
            fail(f"{file}: {error}")
        print(file)
