#!/usr/bin/env python3
"""Makes a profile for the simulator (misc/docs/SIMULATOR.md) of what `ucudnn plan` measured on a GPU.

    ucudnn plan LAYERS.csv --batch-size 128 --limit 32GiB --json tf32.json
    misc/scripts/record_profile.py tf32.json [MORE.json...] -o misc/profiles/NAME.csv

A limit above every workspace that is wanted makes the mini-batch complete; at smaller batch sizes kernels are left out
that another beats at a still smaller size, which are in no plan.
"""
import argparse
import csv
import json
import re
import sys

COLUMNS = ("layer,operation,math,batch,c,h,w,k,kh,kw,pad_h,pad_w,stride_h,stride_w,algorithm,algorithm_name,"
           "math_type,deterministic,time_ms,workspace_bytes").split(",")
# By cuDNN's enumerators: cudnnConvolutionFwdAlgo_t, ...BwdDataAlgo_t, ...BwdFilterAlgo_t, cudnnMathType_t.
ALGORITHMS = {
    "forward": ["IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING", "WINOGRAD",
                "WINOGRAD_NONFUSED"],
    "backward_data": ["ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"],
    "backward_filter": ["ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING"],
}
MATH_TYPES = ["default", "tensor", "tensor_conversion", "fma"]
SHAPE = re.compile(r"\d+x(\d+)x(\d+)x(\d+) k(\d+) (\d+)x(\d+) pad (\d+)x(\d+) stride (\d+)x(\d+)$")


def rows_of(plan, name):
    """The rows of one JSON file, each convolution once, as lists in the order of COLUMNS."""
    if plan["settings"]["data_type"] != "float" or plan["settings"]["layout"] != "nchw":
        sys.exit(f"{name}: a profile holds float convolutions in NCHW")
    seen = set()
    for row in plan["rows"]:
        if row["error"]:
            sys.exit(f"{name}: {row['layer']} {row['operation']}: {row['error']}")
        key = row["shape"], row["operation"]
        if key in seen:
            continue
        seen.add(key)
        shape = SHAPE.match(row["shape"])
        if not shape:
            sys.exit(f"{name}: {row['layer']}: a profile has no column for all of '{row['shape']}'")
        for kernel in sorted(row["candidates"], key=lambda kernel: (-kernel["batch"], kernel["time_ms"])):
            algorithm, math = kernel["kernel"].split("/")
            yield [row["layer"], row["operation"], plan["settings"]["math"], kernel["batch"], *shape.groups(),
                   ALGORITHMS[row["operation"]].index(algorithm), algorithm, MATH_TYPES.index(math),
                   int(kernel["deterministic"]), f"{kernel['time_ms']:.5f}", kernel["workspace_bytes"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="+", metavar="PLAN.json")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.csv")
    arguments = parser.parse_args()
    lines = []
    for name in arguments.plans:
        with open(name, encoding="utf-8") as file:
            lines += rows_of(json.load(file), name)
    with open(arguments.output, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(lines)


if __name__ == "__main__":
    main()
