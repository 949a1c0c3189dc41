#!/usr/bin/env python3
"""Finds where a program of misc/scripts/program_models.py loses time with us: its kernels, convolution by convolution.

usage: [ucudnn run ...] misc/scripts/profile_pytorch.py PROGRAM OUT.json [WARM_STEPS]
       misc/scripts/profile_pytorch.py --compare PLAIN.json OURS.json [--kernels TEXT]

The first form runs WARM_STEPS steps (10), then three under PyTorch's profiler, and writes their kernels to OUT.json.
The second prints for each convolution its calls in a step and the device's us in a step, plain and with us: kernels,
gaps before them, and their number; the largest loss first. A kernel that starts before the one in front of it has ended
counts from that end on, so the us add up. Gaps of more than 15 us are the host's, which the profiler slows, and count
as 15. --kernels prints the kernels of one call of each convolution that has TEXT in its name.
"""

import argparse
import collections
import json
import os
import sys
import tempfile

STEPS = 3
MOST_GAP_US = 15


def profile(name, path, warm_steps):
    import torch

    import program_models

    if not torch.cuda.is_available():
        sys.exit("profile_pytorch.py: no GPU")
    if name not in program_models.PROGRAMS:
        sys.exit(f"profile_pytorch.py: no program {name}; there are {', '.join(program_models.PROGRAMS)}")
    torch.manual_seed(1)
    program = program_models.PROGRAMS[name]("cuda", False)

    def step():
        program.compute()
        program.update()
        torch.cuda.synchronize()

    for _ in range(warm_steps):
        step()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profiled:
        for _ in range(STEPS):
            step()
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        profiled.export_chrome_trace(trace)
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    with open(path, "w", encoding="utf-8") as file:
        result = {"program": name, "gpu": torch.cuda.get_device_name(), "steps": STEPS, "kernels": kernels_of(events)}
        json.dump(result, file, indent=1)


def is_convolution(event):
    names = ("cudnn_convolution", "convolution_backward")
    return event.get("cat") == "cpu_op" and any(name in event["name"] for name in names)


def kernels_of(events):
    """What the device did, in order, each with the convolution that launched it."""
    calls = sorted(filter(is_convolution, events), key=lambda event: event["ts"])
    launches = {event["args"]["correlation"]: event for event in events
                if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})}

    def call_of(kernel):
        launch = launches.get(kernel["args"].get("correlation"))
        # The innermost: an operator may call another.
        inside = [number for number, call in enumerate(calls) if launch and call["tid"] == launch["tid"]
                  and call["ts"] <= launch["ts"] < call["ts"] + call["dur"]]
        return inside[-1] if inside else None

    rows = []
    for event in sorted((event for event in events if event.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")),
                        key=lambda event: event["ts"]):
        number = call_of(event)
        call = calls[number] if number is not None else None
        rows.append({
            "name": event["name"][:100],
            "begin_us": event["ts"],
            "us": event["dur"],
            "call": number,
            "convolution": f"{call['name']} {call['args'].get('Input Dims', [])[:3]}" if call else None,
        })
    return rows


def convolutions_of(path):
    """The number of steps, and the kernels of each call, with the us that each adds, by convolution."""
    with open(path, encoding="utf-8") as file:
        profiled = json.load(file)
    kernels = profiled["kernels"]
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    end = kernels[0]["begin_us"]
    for kernel in kernels:
        kernel_end = kernel["begin_us"] + kernel["us"]
        kernel["adds_us"] = max(0, kernel_end - max(end, kernel["begin_us"]))
        kernel["gap_us"] = min(MOST_GAP_US, max(0, kernel["begin_us"] - end))
        end = max(end, kernel_end)
        found[kernel["convolution"] or "others"][kernel["call"]].append(kernel)
    return profiled["steps"], found


def compare(plain_path, path, shown):
    (plain_steps, plain), (steps, ours) = convolutions_of(plain_path), convolutions_of(path)

    def sums(calls, steps):
        kernels = [kernel for call in calls.values() for kernel in call]
        times = [sum(kernel[key] for kernel in kernels) for key in ("adds_us", "gap_us")]
        return [each / steps for each in (*times, len(kernels))]

    rows = [(name, sums(plain[name], plain_steps), sums(ours.get(name, {}), steps)) for name in plain]
    rows.sort(key=lambda row: sum(row[1][:2]) - sum(row[2][:2]))
    print("| convolution | calls | plain: kernels, us | gaps | number | with us: kernels, us | gaps | number | more, us |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, one, other in rows:
        calls = len(plain[name]) / plain_steps
        cells = [f"{value:.0f}" for value in (*one, *other)]
        print(f"| {name} | {calls:.0f} | {' | '.join(cells)} | {sum(other[:2]) - sum(one[:2]):.0f} |")
    for name in plain if shown else ():
        if shown not in name:
            continue
        for which, calls in (("plain", plain[name]), ("with us", ours.get(name, {}))):
            print(f"\n{name}, {which}")
            for kernel in next(iter(calls.values()), ()):
                print(f"{kernel['adds_us']:9.1f} us, {kernel['gap_us']:4.1f} before  {kernel['name']}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--compare", nargs=2)
    parser.add_argument("--kernels", default="")
    options = parser.parse_args()
    if options.compare and not options.names:
        compare(*options.compare, options.kernels)
    elif not options.compare and len(options.names) in (2, 3):
        profile(*options.names[:2], int(options.names[2]) if len(options.names) == 3 else 10)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
