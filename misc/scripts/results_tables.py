#!/usr/bin/env python3
"""Fills the tables of README.md and misc/docs/RESULTS.md from misc/results/.

usage: misc/scripts/results_tables.py [--check]

A table stands between "<!-- table: NAME -->" and "<!-- end of table -->", its footer included; NAME is a function
below. --check changes nothing, and says which table is not what the files say (exit status 1).
"""
import functools
import itertools
import json
import pathlib
import re
import statistics
import sys
import textwrap

import results_lists as lists
import unasked

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "misc" / "results"
PAGES = ("README.md", "misc/docs/RESULTS.md")


@functools.lru_cache(maxsize=None)
def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def revision(name):
    return lists.REVISIONS.get(name) or load(name)["machine"].get("git_revision")


def day(name):
    content = load(name)
    return (content["machine"]["date"] if "machine" in content else content["context"]["date"])[:10]


def days(names):
    found = sorted({day(name) for name in names})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def gpu_of(name):
    """Of a sweep of programs: H100, and so on."""
    machine = load(name).get("machine") or runs(name)[next(iter(runs(name)))]["machine"]
    return machine["gpu"].split()[1]


def number(value):
    """Three digits, as a person would write them."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def ratio(value):
    """A time or memory as a part of plain's; a loss of 1 % or more in bold."""
    text = f"{value:.2f}"
    return f"**{text}**" if value >= 1.01 else text


def mib(value):
    return f"{value:,.0f}"


def table(header, rows, footer):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", footer])


# Convolutions, each with its own limit


BENCH = "`ucudnn bench misc/layers/LIST.csv --limit LIMIT --kernels all --tuning fast`"


def sums(name):
    totals = load(name)["totals"]
    return [totals[key] for key in ("cudnn_ms", "undivided_ms", "ucudnn_ms", "unlimited_ms")]


def by_gain(chosen):
    """The least gain over the fastest undivided kernel comes first."""
    return sorted(chosen, key=lambda each: sums(each[0])[1] / sums(each[0])[2])


def convolution_cells(name):
    cudnn, undivided, ours, unlimited = sums(name)
    times = [number(value) for value in (cudnn, undivided, ours)]
    gains = [f"**{gain:.2f}**" if gain < 0.995 else number(gain) for gain in (cudnn / ours, undivided / ours)]
    return [*times, *gains, number(unlimited)]


def largest_error(name, key):
    errors = [row[key] for row in load(name)["rows"] if row.get(key) is not None]
    return f"{max(errors):.0e}" if errors else "not run"


def convolutions():
    rows, slower, all_rows = [], 0, 0
    for name, what, limit in by_gain(lists.CONVOLUTIONS):
        speedups = [row["speedup"] for row in load(name)["rows"]]
        slower += sum(speedup < 0.99 for speedup in speedups)
        all_rows += len(speedups)
        errors = [largest_error(name, key) for key in ("relative_error", "cudnn_relative_error")]
        rows.append([what, limit, *convolution_cells(name), *errors, revision(name)])
    header = ["ms", "limit", "cuDNN", "undivided", "μ-cuDNN", "over cuDNN", "over undivided", "no limit",
              "error", "cuDNN's", "revision"]
    names = [each[0] for each in lists.CONVOLUTIONS]
    footer = (f"{slower} of {all_rows:,} convolutions take more than 1 % longer than by cuDNN. "
              f"One NVIDIA H200, cuDNN 9.19.0,\nCUDA 13.0, {days(names)}.\n{BENCH}")
    return table(header, rows, footer)


def convolutions_short():
    chosen = [each for each in lists.CONVOLUTIONS if each[0] in lists.IN_README]
    rows = [[what, limit, *convolution_cells(name)] for name, what, limit in by_gain(chosen)]
    header = ["convolutions, ms", "limit", "cuDNN", "undivided", "μ-cuDNN", "over cuDNN", "over undivided", "no limit"]
    names = [each[0] for each in chosen]
    revisions = ", ".join(sorted({revision(name) for name in names}))
    return table(header, rows, f"One NVIDIA H200, cuDNN 9.19.0, CUDA 13.0, {days(names)}, revisions {revisions}.\n{BENCH}")


# Programs


def runs(name):
    return {run["name"]: run for run in load(name)["runs"] if "failed" not in run}


def median(name, names, key):
    return statistics.median(runs(name)[each][key] for each in names.split())


def compared(sources, key):
    return [median(name, ours, key) / median(name, plain, key) for name, plain, ours in sources]


def time_and_memory(sources):
    if not sources:
        return "not run"
    times = sorted(compared(sources, "step_of_median_ms"))
    least, most = ratio(times[0]), ratio(times[-1])
    shown = most if least == most else f"{least} to {most}"
    return f"{shown}, {ratio(compared(sources, 'reserved_mib')[-1])}"  # what is told has changed since the earlier runs


def programs():
    rows = []
    for what, (name, plain), *limits in lists.PROGRAMS:
        worst = max(time for sources in limits for time in compared(sources, "step_of_median_ms"))
        step, memory = median(name, plain, "step_of_median_ms"), median(name, plain, "reserved_mib")
        rows.append((worst, [what, f"{number(step)} ({mib(memory)})", *[time_and_memory(each) for each in limits]]))
    rows.sort(key=lambda each: -each[0])
    names = sorted({source[0] for _, _, *limits in lists.PROGRAMS for sources in limits for source in sources})
    revisions = {}
    for name in names:
        revisions.setdefault(gpu_of(name), set()).add(revision(name))
    footer = (f"One NVIDIA H200 where no other is named, PyTorch 2.11, cuDNN 9.19, {days(names)};\n"
              f"revisions {', '.join(sorted(revisions['H200']))}; on the H100\n{', '.join(sorted(revisions['H100']))}.\n"
              "`misc/scripts/sweep_programs.py misc/scripts/one_sample_runs.txt OUT.json`; in turns:\n"
              "`misc/scripts/host_paced_runs.txt`, `misc/scripts/uncapped_turns_runs.txt`. "
              "Memory is that of the newest run.")
    return table(["program", "plain ms (MiB)", "no cap", "256 MiB", "64 MiB"], [row for _, row in rows], footer)


def training():
    rows = []
    for what, cap, plain, ours in lists.TRAINING:
        before, after = runs("pytorch_h100")[plain], runs("pytorch_h100")[ours]
        time = after["later_step_ms"] / before["later_step_ms"]
        memory = after["reserved_mib"] / before["reserved_mib"]
        rows.append((time, [what, cap, number(before["later_step_ms"]), number(after["later_step_ms"]), ratio(time),
                            mib(before["reserved_mib"]), mib(after["reserved_mib"]), ratio(memory), after["git_revision"]]))
    rows.sort(key=lambda each: -each[0])
    header = ["training", "cap", "plain ms", "capped ms", "time", "plain MiB", "capped MiB", "memory", "revision"]
    footer = ("One NVIDIA H100 where nothing else is said, PyTorch 2.11, cuDNN 9.19, TF32, 2026-11-25.\n"
              "`misc/scripts/sweep_pytorch.py misc/scripts/pytorch_runs.txt OUT.json` under the variables of `ucudnn run`,\n"
              "and `UCUDNN_GRAPH_MEMORY=64MiB`")
    return table(header, [row for _, row in rows], footer)


def alexnet():
    plain, first, later = (runs("pytorch_h100")[f"alexnet_{which}_89fc817"] for which in ("plain", "64MiB_fill", "64MiB"))
    rows = [["a step", f"{number(plain['later_step_ms'])} ms", f"{number(later['later_step_ms'])} ms"],
            ["memory that PyTorch reserves", f"{mib(plain['reserved_mib'])} MiB", f"{mib(later['reserved_mib'])} MiB"],
            ["the first step", f"{plain['first_step_ms'] / 1e3:.1f} s",
             f"{first['first_step_ms'] / 1e3:.1f} s; from the next start on {later['first_step_ms'] / 1e3:.1f} s"]]
    return table(["AlexNet, N=256", "without μ-cuDNN", "within 64 MiB"], rows,
                 "One NVIDIA H100, PyTorch 2.11, cuDNN 9.19, 2026-11-25, 89fc817, `misc/scripts/train_pytorch.py`.")


def seconds_of_first_steps(name, *names):
    return [runs(name)[each]["first_step_ms"] / 1e3 if each else None for each in names]


def first_steps():
    rows = []
    for what, name, *names in lists.FIRST_STEPS:
        steps = seconds_of_first_steps(name, *names)
        worst = max(step for step in steps[1:] if step) / steps[0]
        revisions = [runs(name)[each].get("git_revision") for each in names if each]
        revisions = sorted(set(revisions)) if all(revisions) else [revision(name)]
        rows.append((worst, [what, *[number(step) or "not run" for step in steps], ", ".join(revisions)]))
    rows.sort(key=lambda each: -each[0])
    header = ["first step, s", "plain", "measured as it runs", "`--tune`", "from a database", "shipped measurements", "revision"]
    return table(header, [row for _, row in rows],
                 "One NVIDIA H100, PyTorch 2.11, cuDNN 9.19, 2026-11-25 to 28. Shipped: `ucudnn run` without options.\n"
                 "`misc/scripts/sweep_pytorch.py misc/scripts/pytorch_runs.txt OUT.json` and `misc/scripts/sweep_programs.py`\n"
                 "with `start_runs.txt`, `one_sample_runs.txt` or `uncapped_turns_runs.txt`")


def after_tuning():
    name = "second_start_tuned_h100"
    rows = []
    for what, plain, ours in lists.AFTER_TUNING:
        firsts = [median(name, each, "first_step_ms") / 1e3 for each in (plain, ours)]
        longest = [max(max(runs(name)[run]["step_ms"][1:]) for run in each.split()) for each in (plain, ours)]
        rows.append((firsts[1] / firsts[0], [what, *[number(first) for first in firsts], *[number(step) for step in longest]]))
    rows.sort(key=lambda each: -each[0])
    header = ["a start after `--tune`", "first step, plain, s", "with us, s", "longest of the next four, plain, ms", "with us, ms"]
    return table(header, [row for _, row in rows],
                 f"One NVIDIA H100, PyTorch 2.11, cuDNN 9.19, {day(name)}, {revision(name)}: in turns, the medians of first steps.\n"
                 "`misc/scripts/sweep_programs.py misc/scripts/tuned_start_runs.txt OUT.json`")


def losses():
    def apart(one, other):
        return max(abs(a - b) for a, b in zip(*(runs("pytorch_h100")[name]["losses"] for name in (one, other))))

    def gradients(model, way):
        run = runs("pytorch_h100").get(f"{model}_gradients{way}")
        return f"{run['distance_of_gradients'][0]:.1e}" if run else "not run"

    rows = []
    for what, model, plain, ours, other in lists.LOSSES:
        distance = apart(plain, ours)
        rows.append((distance, [what, f"{distance:.1e}", f"{apart(plain, other):.1e}", gradients(model, ""),
                                gradients(model, "_plain_benchmark")]))
    rows.sort(key=lambda each: -each[0])
    header = ["training", "losses: with us", "by `cudnn.benchmark`", "gradients: with us", "by `cudnn.benchmark`"]
    return table(header, [row for _, row in rows],
                 "One NVIDIA H100, PyTorch 2.11, cuDNN 9.19, 2026-11-25, c02ce7c.\n"
                 "Losses: `misc/scripts/sweep_pytorch.py misc/scripts/pytorch_runs.txt OUT.json`. Gradients:\n"
                 "`misc/scripts/train_pytorch.py MODEL BATCH 2 --deterministic --smooth --gradients FILE`")


def batches():
    rows = []
    for what, (fits, fails) in lists.BATCHES:
        run = runs("pytorch_h100")[fits]
        batch = run["line"].split("|")[2].split()[1]
        if fails:
            line = next(each["line"] for each in load("pytorch_h100")["runs"] if each["name"] == fails and "failed" in each)
            fails = line.split("|")[2].split()[1]
        rows.append([what, batch, fails or "not tried", number(run["later_step_ms"]), run["git_revision"]])
    return table(["in 16 GiB", "trains N", "out of memory at N", "ms a step", "revision"], rows,
                 "One NVIDIA H100, PyTorch 2.11, cuDNN 9.19, TF32, 2026-11-25.\n"
                 "`misc/scripts/train_pytorch.py MODEL N STEPS --gib 16`")


def steps_measured(name, plain, ours):
    """The steps of two runs, as many of each."""
    both = [runs(name)[each]["step_ms"] for each in (plain, ours)]
    count = min(map(len, both))
    return [each[:count] for each in both]


def pairs_measured(pairs):
    for pair in pairs:
        name, program, plain, ours = pair.split()
        yield steps_measured(name, f"{program}_{plain}", f"{program}_{ours}")


def times_measured(pairs):
    """Of each pair the times over plain's: to the 100th step, and of all."""
    return [[sum(ours[:count]) / sum(plain[:count]) for count in (100, None)] for plain, ours in pairs_measured(pairs)]


def median_and_most(times):
    return ", ".join(map(ratio, (statistics.median(times), max(times)) if len(times) > 1 else times))


def measuring():
    rows, all_files = [], set()
    for what, *pairs in lists.MEASURING:
        files = list(dict.fromkeys(pair.split()[0] for pair in pairs))
        all_files |= set(files)
        steps = list(pairs_measured(pairs))
        early, whole = zip(*times_measured(pairs))
        beyond = max(ours[i] - plain[i] for plain, ours in steps for i in range(1, len(plain)))
        counts = [len(plain) for plain, _ in steps]
        row = [what, str(len(pairs)), " to ".join(map(str, sorted({min(counts), max(counts)}))), median_and_most(early),
               median_and_most(whole), number(beyond), gpu_of(files[0]), revision(files[0])]
        rows.append((statistics.median(whole), row))
    rows.sort(key=lambda each: -each[0])
    header = ["program", "pairs", "steps", "to the 100th", "of all", "a step beyond plain's, at most, ms", "GPU", "newest revision"]
    return table(header, [row for _, row in rows],
                 "Times over plain's: the median of the pairs of runs, and the most.\n"
                 f"One GPU, PyTorch 2.11, cuDNN 9.19, default settings, no database, {days(all_files)}.\n"
                 "`misc/scripts/sweep_programs.py misc/scripts/unasked_runs.txt OUT.json`, then `misc/scripts/unasked.py OUT.json`")


def starts_measured(name):
    ours = {run: run.replace("_plain", "_ucudnn") for run in runs(name) if run.endswith("_plain")}
    return [steps_measured(name, *pair) for pair in ours.items() if pair[1] in runs(name)]


def starts():
    """The time to the 100th step over plain's, of starts in turns, and the medians of their first steps."""
    rows = []
    for name, cpus in lists.STARTS:
        pairs = starts_measured(name)
        times = sorted(sum(ours) / sum(plain) for plain, ours in pairs)
        first = [statistics.median(steps[0] for steps in each) for each in zip(*pairs)]
        rows.append([str(cpus), str(len(pairs)), mib(first[0]), mib(first[1]),
                     *(ratio(each) for each in (times[0], statistics.median(times), times[-1])),
                     str(sum(each > 1.05 for each in times)), revision(name)])
    header = ["CPUs", "starts", "first step, plain, ms", "with us, ms", "to the 100th, least", "median", "most", "beyond 1.05",
              "revision"]
    return table(header, rows,
                 f"One NVIDIA H200, PyTorch 2.11, cuDNN 9.19, no database, {days({name for name, _ in lists.STARTS})}.\n"
                 "`misc/scripts/sweep_programs.py misc/scripts/starts_runs.txt OUT.json --cpus CPUS`")


OPERATIONS = ("forward", "backward_data", "backward_filter")


def first_layers():
    """Times over plain's within 64 MiB, of each layer and operation, by layout and type."""
    found, whole = load("first_layers_64mib_h200")["runs"], load("first_layers_h200")["runs"]
    kinds = [(layout, kind) for layout in ("nchw", "nhwc") for kind in ("float32", "bfloat16", "float16")]

    def ratios_of(runs, name):
        return {(row["layer"], row["n"], operation, row["layout"], row["type"]):
                row[f"{operation}_ms"] / plain[f"{operation}_ms"]
                for row, plain in zip(runs[name], runs["plain"]) for operation in OPERATIONS}

    ratios = {"64MiB": ratios_of(found, "64MiB"), "256MiB": ratios_of(whole, "256MiB")}
    layers = list(dict.fromkeys(key[:3] for key in ratios["64MiB"]))
    rows = [[f"{layer}, N={n}", operation.replace("_", " "),
             *(ratio(ratios["64MiB"][(layer, n, operation, *kind)]) for kind in kinds)]
            for layer, n, operation in layers]
    wide = ratios["256MiB"]
    worst = max(wide, key=wide.get)
    mean = {name: ratio(statistics.geometric_mean(each.values())) for name, each in ratios.items()}
    return table(["first layer of", "operation", *(f"{name}{where}" for where in ("", ", last")
                                                  for name in ("float", "bfloat16", "half"))],
                 rows,
                 "Last: channels last, else first. "
                 f"Geometric mean {mean['64MiB']}, within 256 MiB {mean['256MiB']}; the largest within 256 MiB:\n"
                 f"{ratio(wide[worst])}: {worst[0]}, N={worst[1]}, {worst[2].replace('_', ' ')}, "
                 f"{'half' if worst[4] == 'float16' else worst[4]}, channels {'first' if worst[3] == 'nchw' else 'last'}.\n"
                 f"One NVIDIA H200, PyTorch 2.11, cuDNN 9.19, 2026-11-29, {revision('first_layers_64mib_h200')}; within 256 MiB "
                 f"{revision('first_layers_h200')}.\n"
                 "`UCUDNN_BENCHMARK_SHARE=0 ucudnn run --no-database --workspace-limit 64MiB "
                 "misc/scripts/layers_pytorch.py first`")


LEAST_OTHER_MS = 0.1  # the host sets the pace of shorter calls, and single ones differ by a third


def other_layers_within(name="other_layers_h200", limits=("64MiB", "256MiB")):
    """By limit and layer: times over plain's, each with its operation, type and layout in words."""
    found = load(name)["runs"]
    types, last = {"float32": "float", "float16": "half"}, {"nhwc": ["channels last"]}
    within = {}
    for limit in limits:
        layers = within[limit] = {}
        for plain, ours in zip(found["plain"], found[limit]):
            for operation in OPERATIONS:
                before = plain[f"{operation}_ms"]
                if before >= LEAST_OTHER_MS:
                    kind = [operation.replace("_", " "), types.get(plain["type"], plain["type"]), *last.get(plain["layout"], [])]
                    layers.setdefault((plain["layer"], plain["n"]), []).append((ours[f"{operation}_ms"] / before, ", ".join(kind)))
    return within


def mean_and_largest(each):
    return [ratio(statistics.geometric_mean(time for time, _ in each)), ratio(max(each)[0])]


def other_layers():
    """The mean and the largest of each layer, the largest first."""
    within = other_layers_within()
    rows = []
    for layer, each in within["64MiB"].items():
        worst, kind = max(each)
        if worst > 1.05:
            rows.append((-worst, [f"{layer[0]}, N={layer[1]}", *mean_and_largest(each),
                                  *mean_and_largest(within["256MiB"][layer]), kind]))
    times = {limit: [time for each in layers.values() for time, _ in each] for limit, layers in within.items()}
    means = [ratio(statistics.geometric_mean(times[limit])) for limit in times]
    slow = [sum(time > 1.15 for time in times[limit]) for limit in times]
    return table(["layer", "within 64 MiB", "at most", "within 256 MiB", "at most", "the slowest within 64 MiB"],
                 [row for _, row in sorted(rows)],
                 f"Geometric means of {len(within['64MiB'])} layers' forward calls and gradients in float, bfloat16 and half, "
                 "channels first\nand last: "
                 f"{means[0]} and {means[1]} of plain's time; {slow[0]} and {slow[1]} of {len(times['64MiB'])} calls take more "
                 f"than 1.15 of it.\nLeft out: {len(within['64MiB']) - len(rows)} layers that take at most 1.05, and calls shorter "
                 f"than {LEAST_OTHER_MS} ms, whose pace the host sets.\nChannels come first where nothing else is said.\n"
                 f"One NVIDIA H200, PyTorch 2.11, cuDNN 9.19, 2026-11-29, {revision('other_layers_h200')}.\n"
                 "`UCUDNN_BENCHMARK_SHARE=0 ucudnn run --no-database --workspace-limit 64MiB "
                 "misc/scripts/layers_pytorch.py others`")


def measured_layers():
    """Some of these layers before and after measuring, the largest first."""
    before = other_layers_within()["64MiB"]
    rows = []
    for layer, each in other_layers_within("other_layers_measured_h200", ["64MiB"])["64MiB"].items():
        worst, kind = max(each)
        rows.append((-worst, [f"{layer[0]}, N={layer[1]}", *mean_and_largest(before[layer]), *mean_and_largest(each), kind]))
    return table(["layer within 64 MiB", "until measured", "at most", "measured", "at most", "the slowest, measured"],
                 [row for _, row in sorted(rows)],
                 "Times over plain's, calls of at least 0.1 ms; columns: the geometric mean and the largest.\n"
                 f"One NVIDIA H200, PyTorch 2.11, cuDNN 9.19, 2026-11-29, {revision('other_layers_measured_h200')}.\n"
                 "As above, with `UCUDNN_BENCHMARK_SHARE=always` and `--database FILE`")


def checks():
    found = load("check_h200")
    alike = {}  # kernels that are wrong in the same way: variants of one engine
    for each in found["wrong"]:
        engine = each["kernel"].partition("_k")[0]
        alike.setdefault((f"{each['layer']} {each['operation']}", engine, each["why"].partition(" is ")[2]), []).append(each)
    rows = [[layer, f"{engine}, {len(found)} variants" if found[1:] else found[0]["kernel"], why]
            for (layer, engine, why), found in alike.items()]
    return table(["layer", "kernel", "one of its outputs is"], rows,
                 f"One NVIDIA H200, cuDNN 9.19, {day('check_h200')}, {revision('check_h200')}. "
                 f"In {found['seconds']:.0f} s {found['checked']:,} kernels were checked.\n"
                 f"{found['late']:,} others would have taken longer than their layer's share of the time; cuDNN refused "
                 f"{found['unchecked']:,}.\n"
                 "`ucudnn check misc/layers/*.csv --time-limit 400`")


def check_costs():
    rows = []
    for row in load("checks_planning_h200")["rows"]:
        without = statistics.median(row["without_ms"])
        rows.append([row["list"], str(row["kernels"]), number(row["checks_ms"]),
                     f"{100 * row['checks_ms'] / without:.1f} %", ", ".join(f"{each:,.0f}" for each in row["with_ms"]),
                     ", ".join(f"{each:,.0f}" for each in row["without_ms"])])
    header = ["planned", "kernels", "their checks, ms", "of planning", "planning with checks, ms", "without, ms"]
    return table(header, rows, f"One NVIDIA H200, cuDNN 9.19, TF32, within 64 MiB, {day('checks_planning_h200')}, "
                 f"{revision('checks_planning_h200')}.\n"
                 "`misc/scripts/measure_checks.py OUT.json misc/layers/{alexnet.csv:3,resnet18.csv,resnet50.csv}`")


def latencies(part):
    settled = 500  # requests: the first wait for those that load cuDNN
    both = ([step for turn in ("server", "server2") for step in runs("unasked_h200")[f"{turn}_{way}"]["step_ms"][settled:]]
            for way in ("plain", "ucudnn"))
    return [unasked.quantile(steps, part) for steps in both]


def requests():
    rows = []
    for what, part in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
        plain, ours = latencies(part)
        rows.append([what, number(plain), number(ours), ratio(ours / plain)])
    return table(["latency, two turns, 500th to 1,500th request", "plain ms", "with us", "time"], rows,
                 "One NVIDIA H200, PyTorch 2.11, cuDNN 9.19, 50 requests a second of 16 sizes, "
                 f"{day('unasked_h200')}, {revision('unasked_h200')}.\n"
                 "`misc/scripts/sweep_programs.py misc/scripts/unasked_runs.txt OUT.json --only server`")


def first_and_last_pass(file, program, way):
    return unasked.first_and_last(*(runs(file)[f"{program}_{each}"]["step_ms"] for each in ("plain", way)), 300)


def image_widths():
    def cells_of(both):
        return (number(both[0]), number(both[1]), ratio(both[1] / both[0])) if both else ("-", "-", "-")

    rows = []
    for what, file, program, way in lists.IMAGE_WIDTHS:
        first, last = first_and_last_pass(file, program, way)
        passes = [first, last if len(runs(file)[f"{program}_plain"]["step_ms"]) == 3000 else None]
        rows.append([what, *(cell for each in passes for cell in cells_of(each)), revision(file)])
    header = ["300 shapes", "first pass, plain ms", "with us", "time", "tenth pass, plain ms", "with us", "time", "revision"]
    return table(header, rows, "One NVIDIA H200, PyTorch 2.11, cuDNN 9.19, one layer of 64 channels, half, "
                 f"{days([file for _, file, *_ in lists.IMAGE_WIDTHS])}.\n"
                 "`misc/scripts/sweep_programs.py misc/scripts/unasked_runs.txt OUT.json --only shapes`; without a tenth pass:\n"
                 "`[ucudnn run --no-database --workspace-limit 64MiB] misc/scripts/programs_pytorch.py shapes 600`")


def helps():
    rows = []
    for what, cap, name, key, plain, ours in lists.HELPS:
        times = [median(name, each, key) for each in (plain, ours)]
        memory = median(name, ours, "reserved_mib") / median(name, plain, "reserved_mib")
        rows.append((times[1] / times[0], [what, gpu_of(name), cap, *[number(time) for time in times],
                                           ratio(times[1] / times[0]), ratio(memory)]))
    rows.sort(key=lambda each: -each[0])
    return table(["program", "GPU", "cap", "plain, ms a step", "with μ-cuDNN", "time", "memory"], [row for _, row in rows],
                 "PyTorch 2.11, cuDNN 9.19, 2026-11-25 to 28, everything measured before. *Time* and\n"
                 "*memory* (what PyTorch reserves) are parts of the plain program's, losses in bold. AlexNet, VGG-16,\n"
                 "ResNet-18 and the 3-D network ran with `UCUDNN_GRAPH_MEMORY=64MiB`.")


def layers_within(limit):
    """The newest row of each layer and operation, and its file."""
    return {f"{row['layer']} {row['operation'].replace('_', ' ')}": (row, name) for name in lists.ONE_SAMPLE_LAYERS
            for row in load(name)["rows"] if row["limit_bytes"] == limit << 20}


def mean_of_layers(limit):
    return statistics.geometric_mean(row["best_speedup"] for row, _ in layers_within(limit).values())


def one_sample_layers():
    rows = []
    for limit in (64, 256, 1024):
        newest = layers_within(limit)
        speedups = {what: row["best_speedup"] for what, (row, _) in newest.items()}
        cards = [load(name)["machine"]["device"].split()[1] for _, name in newest.values()]
        mean, least = mean_of_layers(limit), min(speedups, key=speedups.get)
        rows.append((mean, [f"{limit} MiB" if limit < 1024 else "1 GiB",
                            f"{len({row['layer'] for row, _ in newest.values()})} layers, {len(newest)} rows",
                            f"**{mean:.2f}**" if mean < 0.995 else f"{mean:.2f}", f"{speedups[least]:.2f} ({least})",
                            str(sum(each < 0.95 for each in speedups.values())),
                            ", ".join(f"{cards.count(card)} {card}" for card in sorted(set(cards)))]))
    rows.sort(key=lambda each: each[0])
    revisions = ", ".join(dict.fromkeys(revision(name) for name in lists.ONE_SAMPLE_LAYERS))
    header = ["limit", "of the list", "geometric mean", "least", "rows below 0.95", "rows on"]
    return table(header, [row for _, row in rows],
                 "The newest run of each row: one H100 or H200, cuDNN 9.19, 2026-11-25 to 28;\n"
                 + textwrap.fill(f"revisions {revisions}.", 100) +
                 "\n`ucudnn bench misc/layers/one_sample.csv --layers LAYER --limit LIMIT --no-check --repeats 1`")


def weakest_layers():
    """Those that lose most within 256 MiB."""
    rows = sorted(((row["best_speedup"], what, row, name) for what, (row, name) in layers_within(256).items()
                   if row["best_speedup"] < 0.97), key=lambda each: each[0])
    return table(["within 256 MiB", "cuDNN's best, ms", "its workspace, MiB", "with us, ms", "speed", "GPU"],
                 [[what, number(row["best_ms"]), mib(row["best_workspace_bytes"] / 2**20), number(row["ucudnn_ms"]),
                   f"**{speed:.3f}**", load(name)["machine"]["device"].split()[1]] for speed, what, row, name in rows],
                 "From the same runs.")


def times_of_large_tensors():
    """By problem and operation, over twice the time of half of it."""
    pattern = re.compile(r"^(\S+) (forward|backward_data|backward_filter)(?: \w+)?: ([\d.]+) ms .* half of it ([\d.]+) ms")
    times = {}
    for line in (RESULTS / "larger_than_2to31_h100.txt").read_text(encoding="utf-8").splitlines():
        if found := pattern.match(line):
            times.setdefault(found[1], {})[found[2]] = float(found[3]) / (2 * float(found[4]))
    return times


def large_tensors():
    rows = sorted(times_of_large_tensors().items(), key=lambda each: -max(each[1].values()))
    cells = [[name, *[ratio(each[way]) for way in ("forward", "backward_data", "backward_filter")]] for name, each in rows]
    return table(["problem", "forward", "backward data", "backward filter"], cells,
                 "One NVIDIA H100, cuDNN 9.19, 2026-11-26, efc84c8.\n`build/bin/planner_large_list_test`: 8 problems of "
                 "`misc/layers/larger_than_2to31.csv`, within 256 MiB, unmeasured")


# Where it loses


def longer(time):
    return f"{100 * (time - 1):.0f} % longer"


def where_it_loses():
    """Each loss that one of the other tables has, with the numbers of that table."""
    steps = runs("pytorch_h100")

    def trained(ours, plain, key="later_step_ms"):
        return steps[ours][key] / steps[plain][key]

    small = sorted(trained(ours, plain) for _, cap, plain, ours in lists.TRAINING if cap == "8 MiB")
    vgg = [trained("vgg16_64MiB_89fc817", "vgg16_plain_89fc817", key) for key in ("later_step_ms", "reserved_mib")]
    short = max(time for _, _, *limits in lists.PROGRAMS for sources in limits
                for time in compared(sources, "step_of_median_ms"))
    unmeasured = max([time for what, *pairs in lists.MEASURING if lists.CAPPED in what for times in times_measured(pairs)
                      for time in times] +
                     [sum(ours) / sum(plain) for name, _ in lists.STARTS for plain, ours in starts_measured(name)])
    checked = max(row["checks_ms"] / statistics.median(row["without_ms"]) for row in load("checks_planning_h200")["rows"])
    tuned = sorted(steps[2] for steps in (seconds_of_first_steps(*each) for _, *each in lists.FIRST_STEPS) if steps[2])
    jax_later = max(jax_waits_for_tuning())
    reserved = max(compared(sources, "reserved_mib")[-1] for _, _, *limits in lists.PROGRAMS for sources in limits if sources)
    layers = min(row["best_speedup"] for row, _ in layers_within(64).values())
    tuned_before = max(median("second_start_tuned_h100", ours, "first_step_ms") / 1e3 -
                       median("second_start_tuned_h100", plain, "first_step_ms") / 1e3
                       for _, plain, ours in lists.AFTER_TUNING)
    unmeasured_layer = max(time for each in other_layers_within()["64MiB"].values() for time, _ in each)
    moved = max(max(each.values()) for each in times_of_large_tensors().values())
    enough = min(sums(name)[1] / sums(name)[2] for name, *_ in lists.CONVOLUTIONS)
    ranks = min(load(name)["part_of_speeds"] for name in lists.SHARES_PYTORCH)
    volume = max(over_longest(each) for each in newest_host_tensors())
    rows = [
        ["training within 8 MiB", f"{100 * (small[0] - 1):.0f} to {longer(small[-1])}", "[training](#training-within-a-cap)"],
        ["programs whose host sets the pace", f"up to {longer(short)}; plain runs differ as much", "[one sample](#one-sample)"],
        ["VGG-16 within 64 MiB", f"{longer(vgg[0])}, for {100 * (1 - vgg[1]):.0f} % less memory",
         "[training](#training-within-a-cap)"],
        ["within 64 MiB, until measured", f"up to {longer(unmeasured)}", "[measuring](#measuring-as-a-program-runs)"],
        ["a single layer within 64 MiB, until measured", f"up to {unmeasured_layer:.0f} times as long",
         "[measuring](#measuring-as-a-program-runs)"],
        ["memory that PyTorch reserves", f"up to {100 * (reserved - 1):.0f} % more", "[one sample](#one-sample)"],
        ["planning, as kernels are checked", longer(1 + checked), "[kernels checked](#kernels-checked)"],
        ["`--tune`", f"a first step of {tuned[0]:.0f} to {tuned[-1]:.0f} s; JAX: up to {jax_later:.0f} s more",
         "[first steps](#first-steps), [JAX](#jax)"],
        ["a start after `--tune`", f"a first step of up to {1e3 * tuned_before:.0f} ms more", "[first steps](#first-steps)"],
        ["layers of one sample within 64 MiB", f"down to {layers:.2f} times as fast as without a limit",
         "[layers](#layers-of-one-sample)"],
        ["1x1 convolutions of 2^31 elements", f"{moved:.1f} times as long", "[large tensors](#large-tensors)"],
        ["all the workspace that is wanted", f"{enough:.2f} times as fast by splitting: nothing",
         "[convolutions](#convolutions)"],
        ["unequal GPUs in PyTorch", f"{100 * ranks:.0f} % of the sum of their speeds", "[several GPUs](#several-gpus)"],
        ["a volume in host memory", f"{volume:.1f} times as long as its copies", "[host memory](#tensors-in-host-memory)"],
        ["static cuDNN, Triton kernels", "nothing: μ-cuDNN is not called", ""],
    ]
    return table(["where", "how much", "table"], rows, "The numbers are those of the tables below.")


# One total for a network


def networks():
    rows = []
    for name, what, total, streams, kernels in lists.NETWORKS:
        totals = load(name)["network"]["totals"]
        times = [totals[way]["iteration"]["measured_ms"] for way in ("wr", "divide", "share")]
        rows.append((times[0] / times[2], [what, total, streams, *[number(time) for time in times],
                                           f"{times[0] / times[2]:.2f}", kernels, revision(name)]))
    rows.sort(key=lambda each: each[0])
    header = ["network, TF32, ms", "total", "streams", "equal parts", "`divide`", "`share`", "gain", "GPU", "revision"]
    return table(header, [row for _, row in rows],
                 f"One GPU, cuDNN 9.19.0, {days([each[0] for each in lists.NETWORKS])}.\n"
                 "`ucudnn bench misc/layers/LIST.csv --total-workspace TOTAL [--streams WAY]`")


# The library's cost


def benchmark(name, which):
    return next(each for each in load(name)["benchmarks"] if each["name"].startswith(which + "/"))


def calls():
    rows = sorted(((benchmark(name, which)["overhead_ns"], what, benchmark(name, which)["bare_ns"], name)
                   for what, name, which in lists.CALLS), key=lambda each: -each[0])
    cells = [[what, f"{bare:,.0f}", f"{added:.0f}"] for added, what, bare, _ in rows]
    return table(["call", "cuDNN alone, ns", "added, ns"], cells,
                 f"One NVIDIA H100 and its host, cuDNN 9.19, {day('preload_planned_h100')}, b6aa90b; medians.\n"
                 "`ucudnn_hot_path_benchmark` with `UCUDNN_KERNELS=legacy`, `ucudnn_preload_benchmark`")


def replay():
    rows = []
    for limit in (64, 16, 8):
        cells = [f"{limit} MiB"]
        for name in ("replay_h200", "replay_legacy_h200"):
            found = benchmark(name, f"hostTime/{limit}")
            batches = sum(int(count) for count in re.findall(r"(\d+) x ", found["label"]))
            cells += [str(batches), number(found["planned_ns"] / 1e3), number(found["bare_ns"] / 1e3)]
        rows.append(cells)
    header = ["limit", "engines: micro-batches", "replayed µs", "enqueued µs", "legacy: micro-batches", "replayed µs",
              "enqueued µs"]
    return table(header, rows, f"One NVIDIA H200 and its host, cuDNN 9.19.0, {day('replay_h200')}, 71710bf.\n"
                 "`ucudnn_replay_benchmark`: AlexNet's second convolution, forward; host time of a call")


# Several devices


def device_text(entry):
    """"0: NVIDIA H100 80GB HBM3 (64 SMs, emulated)" as "H100/64" """
    model = entry["device"].split(": ")[-1].removeprefix("NVIDIA ")
    part = re.search(r" \((\d+) SMs, emulated\)", model)
    return model.split()[0] + (f"/{part[1]}" if part else "")


def devices_text(entries):
    """Equal ones that follow each other are counted."""
    texts = [device_text(entry) for entry in entries]
    counted = [(text, len(list(group))) for text, group in itertools.groupby(texts)]
    return ", ".join(f"{count} x {text}" if count > 1 else text for text, count in counted)


def bounds_text(entries):
    """What differs between devices, or else all have."""
    limits = [entry["limit_bytes"] >> 20 for entry in entries]
    most = [entry["most_samples"] for entry in entries]
    text = f"{limits[0]} MiB" if len(set(limits)) == 1 else ", ".join(map(str, limits)) + " MiB"
    return text if len(set(most)) == 1 else f"{text}, N <= {', '.join(map(str, most))}"


def shares():
    rows = []
    for name, what in lists.SHARES:
        found, measured = load(name), load(name)["measured"]
        best, equal = measured["shares"], measured["equal_shares"]
        step, gain = best["measured_ms"], measured["speedup"]
        rows.append((gain or 0, [what, devices_text(found["predicted"]["devices"]), bounds_text(found["predicted"]["devices"]),
                                 ", ".join(map(str, best["samples"])), number(step),
                                 f"{100 * (best['predicted_ms'] / step - 1):+.1f} %", times(gain),
                                 f"{measured['part_of_speeds']:.2f}", times(equal and equal["measured_ms"] / step)]))
    rows.sort(key=lambda each: each[0])
    header = ["network", "GPUs", "limit", "shares", "ms", "predicted", "gain", "of all", "over equal"]
    names = [name for name, _ in lists.SHARES]
    exchanges = ", ".join(sorted({load(name)["measured"]["exchange"]["by"] for name in names}))
    versions = load(names[0])["machine"]
    return table(header, [row for _, row in rows],
                 f"GPUs of one host, cuDNN {versions['cudnn']}, {exchanges}, {days(names)}; {', '.join(sorted(set(map(revision, names))))}.\n`ucudnn bench misc/layers/LIST.csv --data-parallel --devices 0,1 --batch-size 256 "
                 "[--multiprocessors 132,64]`")


def times(value):
    return "" if value is None else f"**{value:.2f}**" if value < 0.995 else f"{value:.2f}"


def power(value):
    return f"{value:.1e}"


def slowest_alone(found, shares):
    """The longest step of a rank with its share, timed without the others; a share that was not timed counts as the nearest."""
    return max(steps[min(steps, key=lambda samples: abs(int(samples) - share))]
               for steps, share in zip(found["steps_ms"], shares))


def shares_pytorch():
    rows = []
    for name in lists.SHARES_PYTORCH:
        found = load(name)
        alone, equal_alone = (slowest_alone(found, found[shares]) for shares in ("shares", "equal_shares"))
        equal = found["equal_ms"] and found["equal_ms"] / found["step_ms"]
        rows.append((equal or 0, [found["math"].upper(), " + ".join(map(str, found["multiprocessors"])),
                                  " + ".join(map(str, found["shares"])), number(found["step_ms"]), number(alone),
                                  times(found["speedup"]), f"{found['part_of_speeds']:.2f}", times(equal),
                                  times(equal_alone / alone), power(found["gradient_norm_difference"]),
                                  power(found["gradient_distance"]), power(found["rounding_distance"]),
                                  power(found["statistics_distance"])]))
    rows.sort(key=lambda each: each[0])
    header = ["math", "SMs", "shares", "ms", "alone", "gain", "of all", "over equal", "alone", "norms", "gradients",
              "rounding", "statistics"]
    first = load(lists.SHARES_PYTORCH[0])
    return table(header, [row for _, row in rows],
                 f"{first['machine']['device']}s of one host, PyTorch {first['machine']['torch']}, "
                 f"{days(lists.SHARES_PYTORCH)}, {revision(lists.SHARES_PYTORCH[0])}.\n`torchrun --nproc-per-node 2 misc/examples/ddp_shares.py --multiprocessors "
                 "132,64 --math MATH`")


def newest_host_tensors():
    """The files' last run of each kind."""
    every = load("host_tensors_h100") + load("host_tensors_h200")
    return {(each["case"], each["math"], each["device_memory_bytes"], each["device"]): each for each in every}.values()


def short_name(device):
    """NVIDIA H100 80GB HBM3: H100."""
    return device.split()[1]


def over_longest(each):
    """Over the longest of what it can't do without: the kernels, the copies in, those out."""
    return each["host_tensors_ms"] / max(each["in_core_ms"], each["copy_in_ms"], each["copy_out_ms"])


def host_tensors():
    rows = []
    for each in newest_host_tensors():
        what = {"plane": "2040 x 1024 x 1024", "volume": "64 x 256^3"}[each["case"]]
        time, longer = each["host_tensors_ms"], over_longest(each)
        rows.append((-longer, [what, each["math"].upper(), f"{each['device_memory_bytes'] >> 30} GiB", number(time),
                                     number(each["in_core_ms"]), number(each["copy_in_ms"]), number(each["copy_out_ms"]),
                                     ratio(longer), f"{100 * (each['predicted_ms'] / time - 1):+.0f} %",
                                     number(each["managed_prefetched_ms"]), number(each["managed_ms"]),
                                     short_name(each["device"]), each["revision"]]))
    rows.sort(key=lambda each: each[0])
    header = ["convolution", "math", "budget", "ms", "in core", "in", "out", "of longest", "predicted", "fetched",
              "managed", "GPU", "revision"]
    return table(header, [row for _, row in rows],
                 "cuDNN 9.19, PCIe 5, float, 2026-11-26 and 2026-11-27.\n"
                 "`ucudnn_host_tensors_benchmark volume tf32 1024 5`, and so on")


def vgg16_lines():
    """GPU, device memory in GiB, math and text of each run."""
    for gpu in ("H100", "H200"):
        memory, math = "", ""
        for line in (RESULTS / f"vgg16_host_memory_{gpu.lower()}.txt").read_text(encoding="utf-8").splitlines():
            if said := re.match(r"\$ vgg16_host_memory (\d+) \d (\S+)", line):
                memory, math = str(int(said[1]) // 1024), said[2].upper()
            elif line.startswith("NVIDIA"):
                math = ""
            elif math:
                yield gpu, memory, math, line


def vgg16():
    rows = []
    line_of_run = r"(.+?)  +N=(\d+) +(\S+) ms an image(?:, (\S+) of in core; at least (\S+); (\d+) of (\d+) MiB)?"
    for gpu, memory, math, line in vgg16_lines():
        where, batch, ms, time, least, there, every = re.match(line_of_run, line).groups()
        where = f"`{where}`" if where == "ucudnnMalloc" else where
        host = f"{int(there):,} of {int(every):,}" if there else "none"
        rows.append((-float(time or 1), [math, memory, where, batch, number(float(ms)), ratio(float(time)) if time else "1.00",
                                         least or "", host, gpu]))
    rows.sort(key=lambda each: each[0])
    header = ["math", "GiB", "tensors", "N", "ms an image", "of in core", "at least", "MiB on the host", "GPU"]
    return table(header, [row for _, row in rows],
                 "cuDNN 9.19. *GiB*: device memory. H100: 2026-11-26, e3507a1; H200: 2026-11-27, ffd3453, 48 GiB: a5ad17a3.\n"
                 "`vgg16_host_memory 16384 2 fma`, and so on (`misc/examples`)")


def volumes():
    rows = []
    for channels, ours, monai in lists.VOLUMES:
        own = runs(ours)["unet"]
        windows = runs(monai)["monai"]["fastest"]
        rows.append([str(channels), number(own["host_gib"]), number(own["least_s"]), f"{own['difference_to_double']:.1e}",
                     f"{windows['roi']}^3", number(windows["least_s"]), number(windows["least_s"] / own["least_s"]),
                     ", ".join(dict.fromkeys((revision(ours), revision(monai))))])
    header = ["channels", "GiB of activations", "ours, s", "off by", "MONAI's windows", "s", "of ours", "revisions"]
    files = [file for _, *both in lists.VOLUMES for file in both]
    return table(header, rows, f"NVIDIA H200s, FMA, 16 GiB of device memory, MONAI 1.6.1, cuDNN 9.19, {days_of_runs(files)}.\n"
                 "`misc/scripts/volume_pytorch.py OUT.json --parts unet monai --channels 32`")


def days_of_runs(files):
    return ", ".join(sorted({run["machine"]["date"][:10] for file in files for run in load(file)["runs"] if "machine" in run}))


def save_on_cpu():
    rows = []
    every = {(run["name"], run["math"]): run for run in load("volume_vgg16_h200")["runs"]}
    for math in ("fma", "tf32"):
        theirs, ours = every["save_on_cpu", math], every["vgg16", math]
        plain = theirs["fastest"]["least_ms_an_image"]
        times = {run["name"]: run["least_ms_an_image"] for run in ours["runs"]}
        rows.append([math.upper(), number(plain), mib(theirs["fastest"]["allocated_peak_mib"]), number(times["on the host"]),
                     number(plain / times["on the host"]), number(times["ucudnnMalloc"]), number(plain / times["ucudnnMalloc"])])
    header = ["VGG-16, N=256", "`save_on_cpu`, ms an image", "MiB", "on the host, ms", "faster", "`ucudnnMalloc`, ms", "faster"]
    return table(header, rows, f"One NVIDIA H200, PyTorch 2.11, cuDNN 9.19, {days_of_runs(['volume_vgg16_h200'])}, "
                 f"{revision('volume_vgg16_h200')}.\n"
                 "`misc/scripts/volume_pytorch.py OUT.json --parts vgg16 --math fma tf32`")


def jax_runs():
    found = {}
    for line in (RESULTS / "jax_alexnet_h100.txt").read_text(encoding="utf-8").splitlines():
        mode, said, calls = (part.strip() for part in line.split("|"))
        losses, first, later = re.search(r"losses \S+ (\S+), first step (\d+) ms, later ones (\S+) ms", said).groups()
        seen = re.search(r"(\d+) convolution calls: (\d+) split", calls)
        found[mode] = (losses, first, float(later), *(seen.groups() if seen else ("", "")))
    return found


def jax():
    found = jax_runs()
    plain = (found["plain"][2] + found["again"][2]) / 2
    names = {"plain": "plain", "again": "plain again", "no": "no limit, not measured", "256MiB": "256 MiB, `--tune`",
             "64MiB": "64 MiB, `--tune`"}
    rows = [[text, number(found[mode][2]), ratio(found[mode][2] / plain), found[mode][1], found[mode][0], found[mode][3],
             found[mode][4]] for mode, text in names.items()]
    return table(["JAX, AlexNet training, N=256", "a step, ms", "time", "first step, ms", "loss after 60 steps", "calls seen",
                  "split"], rows,
                 "One NVIDIA H100, JAX 0.11.2, cuDNN 9.19, 2026-11-26, 31c8ed8.\n"
                 "`ucudnn run --report [--workspace-limit 64MiB --tune] misc/scripts/train_jax.py 256 60`")


def jax_runs_by_type():
    """By type and mode: milliseconds of a later step, the last loss, seconds of the first step."""
    kinds = {}
    for line in (RESULTS / "jax_types_h200.txt").read_text(encoding="utf-8").splitlines():
        kind, mode, said, _ = (part.strip() for part in line.split("|"))
        loss, first, later = re.search(r"losses \S+ (\S+), first step (\d+) ms, later ones (\S+) ms", said).groups()
        kinds.setdefault(kind, {}).setdefault(mode, []).append((float(later), float(loss), float(first) / 1e3))
    return kinds


def jax_waits_for_tuning():
    """Seconds by which `--tune` delays the first step, the longest of each type."""
    for modes in jax_runs_by_type().values():
        plain = statistics.mean(first for _, _, first in modes["plain"])
        yield max(first for _, _, first in modes["256MiB"] + modes["64MiB"]) - plain


def jax_types():
    """Half, bfloat16 and inference: each mode beside the mean of that type's plain runs."""
    rows = []
    for kind, modes in jax_runs_by_type().items():
        plain = [time for time, _, _ in modes["plain"]]
        losses = [loss for _, loss, _ in modes["plain"]]
        ours = [loss for mode, runs in modes.items() if mode != "plain" for _, loss, _ in runs]
        times = [f"{number(runs[0][0])}, {ratio(runs[0][0] * len(plain) / sum(plain))}"
                 for runs in (modes[mode] for mode in ("no", "256MiB", "64MiB"))]
        rows.append([kind, f"{number(min(plain))} to {number(max(plain))}", *times,
                     f"{min(losses):.4f} to {max(losses):.4f}", f"{min(ours):.4f} to {max(ours):.4f}"])
    return table(["AlexNet, N=256", "plain, ms", "no limit", "256 MiB, `--tune`", "64 MiB, `--tune`", "losses, plain",
                  "losses with us"], rows,
                 f"One NVIDIA H200, JAX 0.11.2, cuDNN 9.19, 2026-11-27, {revision('jax_types_h200')}.\n"
                 "`ucudnn run --report [--workspace-limit 64MiB --tune] misc/scripts/train_jax.py 256 50 float16 [infer]`")


def filled(text, page):
    def fill(found):
        name = found[1]
        make = globals().get(name)
        if not callable(make):
            sys.exit(f"{page}: there is no table {name}")
        return f"<!-- table: {name} -->\n{make()}\n<!-- end of table -->"

    return re.sub(r"<!-- table: (\w+) -->\n.*?<!-- end of table -->", fill, text, flags=re.DOTALL)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    wrong = []
    for page in PAGES:
        before = (ROOT / page).read_text(encoding="utf-8")
        after = filled(before, page)
        if before == after:
            continue
        if not sys.argv[1:]:
            (ROOT / page).write_text(after, encoding="utf-8")
            continue
        pairs = zip(before.splitlines(), after.splitlines())
        first = next((f"has {old!r}, and not {new!r}" for old, new in pairs if old != new), "ends too early")
        wrong.append(f"{page}: {first}; misc/scripts/results_tables.py writes it anew")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
