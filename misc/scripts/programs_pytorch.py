#!/usr/bin/env python3
"""Times a program of misc/scripts/program_models.py, to compare it with the same under `ucudnn run`.

usage: [ucudnn run ...] misc/scripts/programs_pytorch.py PROGRAM STEPS [OPTION...]

Runs STEPS steps, and waits for the device around each. Options:

  --seconds S      goes on until so many seconds are over, so that μ-cuDNN has measured
  --steps-after N  N steps more; the median is theirs, else that of the second half of all
  --json FILE      appends a line of results there, of that --name
  --tiny           small images, for a machine without a GPU
  --check FILE     compares the convolutions of a step with those in the FILE (CSV, a line's number of calls and the
                   convolution as UCUDNN_TRACE writes it) and runs nothing else; without a GPU, with tensors that have
                   no data

Prints the median, the lower decile (a busy host disturbs it less), the median of the host's part (until all is enqueued;
where it is close to the step's time, the host sets the pace) and the first step's time, PyTorch's own counters of memory
(peak allocated, peak reserved), what the device lacks at the end, and values to compare runs by, in double precision:
training's first and last losses and the parameters, or sums of the first and last output. The line of results has all
steps, and the values of the first 50 or, where the output is large, of steps 1, 2, 4, 8, ...; and of the last. Needs PyTorch and
diffusers, MONAI or torchvision, as the program does.
"""

import argparse
import gc
import json
import os
import sys
import time

import torch

import program_models
import program_convolutions

LARGE = 2**20  # elements: copied to the host within a millisecond
FREQUENT = 50  # steps: after so many, values are taken as seldom as of large outputs


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=program_models.PROGRAMS)
    parser.add_argument("steps", type=int)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--steps-after", type=int, default=0)
    parser.add_argument("--json")
    parser.add_argument("--name", default="")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--check")
    return parser.parse_args()


def checksum(output):
    """The sum and that of absolute values, by the host: the device's memory is being counted."""
    output = output.cpu().double()
    return [output.item()] if output.dim() == 0 else [output.sum().item(), output.abs().sum().item()]


class Measurement:
    """Runs a program's steps, and keeps their times and values."""

    def __init__(self, program, device):
        self.program_, self.synchronize_ = program, torch.cuda.synchronize if device == "cuda" else lambda: None
        self.step_ms, self.host_ms, self.host_cpu_ms, self.values = [], [], [], []
        self.arrival_ = None  # of the request before

    def begin(self):
        """Waits for the step's request, if they arrive by the clock: it may have come while the one before was served."""
        period = self.program_.period_s
        if not period:
            return time.perf_counter()
        self.arrival_ = time.perf_counter() if self.arrival_ is None else self.arrival_ + period
        time.sleep(max(0, self.arrival_ - time.perf_counter()))
        return self.arrival_

    def step(self, is_last=False):
        self.synchronize_()
        begin, cpu = self.begin(), time.process_time()
        output = self.program_.compute()
        self.program_.update()
        self.host_ms.append((time.perf_counter() - begin) * 1e3)
        self.host_cpu_ms.append((time.process_time() - cpu) * 1e3)
        self.synchronize_()
        self.step_ms.append((time.perf_counter() - begin) * 1e3)
        count = len(self.step_ms)
        is_small = output.numel() <= LARGE and count <= FREQUENT
        if is_last or is_small or count & (count - 1) == 0:
            done = time.perf_counter()
            self.values.append([count, *checksum(output)])
            if self.arrival_ is not None:  # no request comes meanwhile
                self.arrival_ += time.perf_counter() - done

    def run(self, options):
        begin = time.perf_counter()
        while True:
            is_over = len(self.step_ms) + 1 >= options.steps and time.perf_counter() - begin >= options.seconds
            self.step(is_last=is_over and options.steps_after == 0)
            if is_over:
                break
        for i in range(options.steps_after):
            self.step(is_last=i + 1 == options.steps_after)

    def timed(self, options):
        """The steps that the median is taken of, the shortest first."""
        return sorted(self.step_ms[-self.count_timed(options) :])

    def count_timed(self, options):
        return options.steps_after or (len(self.step_ms) + 1) // 2


def memory_mib(device):
    if device != "cuda":
        return {"peak_mib": 0, "reserved_mib": 0, "device_used_mib": 0}
    free, total = torch.cuda.mem_get_info()
    return {
        "peak_mib": torch.cuda.max_memory_allocated() / 2**20,
        "reserved_mib": torch.cuda.max_memory_reserved() / 2**20,
        "device_used_mib": (total - free) / 2**20,
    }


def machine(device):
    if device == "cpu":
        return {"pytorch": torch.__version__}
    return {
        "pytorch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "gpu": torch.cuda.get_device_name(),
        "driver": os.popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader").read().split("\n")[0],
    }


def measure(options, device):
    program = program_models.PROGRAMS[options.program](device, options.tiny)
    if device == "cuda":  # making weights took some for a moment
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    measurement = Measurement(program, device)
    gc.collect()
    gc.disable()  # or it falls into some steps
    measurement.run(options)
    memory = memory_mib(device)
    timed = measurement.timed(options)
    host = sorted(measurement.host_ms[-len(timed) :])
    host_cpu = sorted(measurement.host_cpu_ms[-len(timed) :])
    return {
        "name": options.name,
        "program": options.program,
        "machine": machine(device),
        "step_of_median_ms": timed[len(timed) // 2],
        "decile_step_ms": timed[len(timed) // 10],
        "host_ms": host[len(host) // 2],
        "host_cpu_ms": host_cpu[len(host) // 2],
        "host_cpu_decile_ms": host_cpu[len(host) // 10],
        "timed_steps": len(timed),
        "first_step_ms": measurement.step_ms[0],
        **memory,
        "values": measurement.values,
        "parameters": sum(each.detach().double().abs().sum().item() for each in program.parameters),
        "step_ms": [round(each, 3) for each in measurement.step_ms],
    }


def main():
    options = parse()
    torch.manual_seed(1)
    if options.check:
        sys.exit(program_convolutions.check(options.program, options.check))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not options.tiny:
        sys.exit("programs_pytorch.py: no GPU: only --tiny runs")
    result = measure(options, device)
    steps = result["step_ms"]
    print(
        f"{options.program}: {result['step_of_median_ms']:.2f} ms, a tenth below {result['decile_step_ms']:.2f} ms, "
        f"the host {result['host_ms']:.2f} ms, first step {steps[0]:.0f} ms, all {len(steps)} {sum(steps) / 1e3:.1f} s, "
        f"peak {result['peak_mib']:.0f} MiB, reserved {result['reserved_mib']:.0f} MiB, "
        f"device {result['device_used_mib']:.0f} MiB, "
        f"values {result['values'][0][1:]} {result['values'][-1][1:]} {result['parameters']}"
    )
    if options.json:
        with open(options.json, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
