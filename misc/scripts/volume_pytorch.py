#!/usr/bin/env python3
"""Compares what runs with tensors in host memory with what PyTorch programs do instead, on one GPU.

usage: misc/scripts/volume_pytorch.py OUT.json [--parts unet monai vgg16] [OPTION...]

  unet   misc/examples/unet_volume.py: a U-Net over one volume by ucudnn.conv3d; and how far it is from double precision
  monai  the same network on the device, by MONAI's sliding_window_inference with half overlap, PyTorch being held to as
         much device memory; each of --rois that fits is timed. Needs `unet` before, for the difference
  vgg16  VGG-16 forward and backward: PyTorch with save_on_cpu(pin_memory=True), then
         misc/examples/vgg16_host_memory.cpp within the peak of PyTorch's allocations

  --math fma tf32      each part runs once with each of them (default: fma)
  --rois SIDE...       windows' sides (default: 352 to 128 by 32)
  --seconds S          after so many no other window is begun (default: 240)
  --folder FOLDER      `unet` leaves its result there, for a call with `monai` alone
  --batch N            of VGG-16 (default: 256)
  --vgg16 COMMAND      the built vgg16_host_memory
  --quick              small sizes, also for a machine without a GPU
  --size, --channels, --levels, --device-memory, --passes, --blocks: as unet_volume.py has them

Each run is a process. OUT.json is written after each and has what a run includes in words. PyTorch and MONAI's wheel
must be in PYTHONPATH, and misc/python or an installed `ucudnn`.
"""

import argparse
import contextlib
import datetime
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "examples"))

import unet_volume  # noqa: E402: says what is missing without PyTorch
import torch  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INCLUDES = {
    "unet": "One pass: the volume, all activations and the result are in pinned host memory, allocated before.",
    "monai": "One call: the volume comes from pinned host memory, and the result goes there. PyTorch's allocator is "
             "held to the device memory. Windows are added up on the device. cudnn.benchmark is on.",
    "save_on_cpu": "Forward and backward of a mini-batch, no optimizer. Parameters, gradients, images and what a layer "
                   "works on are on the device; what backward needs goes to pinned host memory and comes back.",
    "vgg16": "The same layers and mini-batch. All tensors, parameters and gradients too, are in pinned host memory, or "
             "where ucudnnMalloc puts them. Its tensors on the device, tiles and workspace take at most mib_allowed.",
    "device_most_mib": "Memory of the device in use, sampled: all processes, and CUDA's and cuDNN's own.",
}


class DeviceMemory(threading.Thread):
    """The most memory of the device that is in use meanwhile, by whomever."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over_ = threading.Event()
        self.most = self.before = unet_volume.device_memory_in_use()

    def run(self):
        while not self.over_.wait(0.05):
            self.most = max(self.most, unet_volume.device_memory_in_use())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over_.set()
        self.join()
        self.most = max(self.most, unet_volume.device_memory_in_use())

    def numbers(self):
        return {"device_most_mib": self.most / 2**20, "device_before_mib": self.before / 2**20}


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def bytes_of(text):
    """Of 16GiB and the like."""
    number, unit = re.fullmatch(r"(\d+)([KMG]iB)?", text).groups()
    return int(number) << {None: 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]


def run_unet(options):
    model, volume = unet_volume.prepare(options)
    begin = time.perf_counter()
    network = unet_volume.HostUNet(model, options.size)
    allocated = time.perf_counter()
    with DeviceMemory() as memory:
        result, times = unet_volume.timed(network, volume, 1 + options.passes)
    torch.save(result.clone(), options.file)
    return {"allocating_s": allocated - begin, "first_s": times[0], "pass_s": times[1:], "least_s": min(times[1:]),
            "host_gib": network.nbytes / 2**30, **memory.numbers(),
            "difference_to_double": unet_volume.difference(model, volume, result, options.blocks)}


class Counted:
    def __init__(self, function):
        self.function_, self.windows = function, 0

    def __call__(self, *arguments):
        self.windows += arguments[0].shape[0]
        return self.function_(*arguments)


def slide(model, volume, host, roi, passes):
    """Seconds of each pass, and the number of windows."""
    from monai.inferers import sliding_window_inference

    times, network = [], Counted(model)
    for _ in range(passes):
        synchronize()
        begin = time.perf_counter()
        on_device = volume.to(DEVICE, non_blocking=True)
        result = sliding_window_inference(on_device, (roi,) * 3, 4 if roi <= 128 else 1, network, overlap=0.5)
        host.copy_(result)
        synchronize()
        times.append(time.perf_counter() - begin)
        del result, on_device
    return times, network.windows // passes


def distances(result, exact):
    """The largest and the mean difference, over the largest and the mean of the values."""
    off = (result - exact).abs_()
    size = exact.abs()
    return {"largest_difference": (off.max() / size.max()).item(),
            "mean_difference": (off.double().mean() / size.double().mean()).item()}


def run_monai(options):
    model, volume = unet_volume.prepare(options)
    model = model.to(DEVICE).eval()
    torch.backends.cudnn.benchmark = True
    if DEVICE == "cuda":
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, bytes_of(options.device_memory) / total))
    exact = torch.load(options.file) if os.path.exists(options.file) else None
    host = unet_volume.pinned(1, unet_volume.CLASSES, *volume.shape[2:])
    windows, begin = [], time.monotonic()
    for roi in sorted(options.rois, reverse=True):
        if time.monotonic() - begin > options.seconds:
            break
        if DEVICE == "cuda":
            torch.cuda.reset_peak_memory_stats()
        with DeviceMemory() as memory:
            try:
                times, count = slide(model, volume, host, roi, 1 + min(options.passes, 2))
            except RuntimeError as error:  # out of memory, or cuDNN finds nothing within it
                windows.append({"roi": roi, "fits": False, "said": str(error)[:200]})
        if windows and windows[-1]["roi"] == roi:  # beyond the except, whose traceback keeps tensors
            gc.collect()
            torch.cuda.empty_cache()
            continue
        windows.append({"roi": roi, "fits": True, "windows": count, "first_s": times[0], "pass_s": times[1:],
                        "least_s": min(times[1:]), **memory.numbers(), **peak(),
                        **({} if exact is None else distances(host, exact))})
        print(f"  roi {roi}: {windows[-1]['least_s']:.2f} s", flush=True)
    fitting = [each for each in windows if each["fits"]]
    return {"windows": windows, "largest": fitting[0] if fitting else None,
            "fastest": min(fitting, key=lambda each: each["least_s"], default=None)}


def peak():
    if DEVICE == "cpu":
        return {}
    return {"allocated_peak_mib": torch.cuda.max_memory_allocated() / 2**20,
            "reserved_peak_mib": torch.cuda.max_memory_reserved() / 2**20}


def vgg16(image, narrow):
    layers, channels = [], 3
    for filters, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [torch.nn.Conv2d(channels, filters // narrow, 3, padding=1), torch.nn.ReLU(inplace=True)]
            channels = filters // narrow
        layers.append(torch.nn.MaxPool2d(2))
    layers += [torch.nn.Flatten(), torch.nn.Linear(channels * (image // 32) ** 2, 4096 // narrow),
               torch.nn.ReLU(inplace=True), torch.nn.Linear(4096 // narrow, 4096 // narrow),
               torch.nn.ReLU(inplace=True), torch.nn.Linear(4096 // narrow, 1000 // narrow)]
    return torch.nn.Sequential(*layers)


def run_save_on_cpu(options):
    """With PyTorch's own choice of algorithms, then with cudnn.benchmark."""
    is_tf32 = options.math == "tf32"
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = is_tf32
    torch.manual_seed(1)
    model = vgg16(options.image, options.narrow).to(DEVICE)
    images = torch.randn(options.batch, 3, options.image, options.image, device=DEVICE)
    labels = torch.randint(1000 // options.narrow, (options.batch,), device=DEVICE)

    def step():
        model.zero_grad(set_to_none=True)
        synchronize()
        begin = time.perf_counter()
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        synchronize()
        return time.perf_counter() - begin

    runs = []
    for is_benchmark in (False, True):
        torch.backends.cudnn.benchmark = is_benchmark
        first = [step() for _ in range(3)]  # pinned memory is allocated, and algorithms are tried
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        with DeviceMemory() as memory:
            times = [step() for _ in range(options.steps)]
        runs.append({"cudnn_benchmark": is_benchmark, "first_s": first, "step_s": times,
                     "least_ms_an_image": min(times) * 1e3 / options.batch, **memory.numbers(), **peak()})
    return {"batch": options.batch, "runs": runs, "fastest": min(runs, key=lambda each: each["least_ms_an_image"])}


LINE = re.compile(r"(in core|on the host|ucudnnMalloc) +N=(\d+) +([\d.]+) ms an image(.*)")


def run_vgg16(options):
    words = [options.vgg16, str(options.mib), "2", options.math, str(options.image), str(options.narrow),
             str(options.batch)]
    with DeviceMemory() as memory:
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: exit status {done.returncode}")
    lines = [found.groups() for found in map(LINE.match, done.stdout.splitlines()) if found]
    return {"command": words[1:], "mib_allowed": options.mib, **memory.numbers(),
            "runs": [{"name": name, "batch": int(batch), "least_ms_an_image": float(ms), "said": said.strip(" ,")}
                     for name, batch, ms, said in lines]}


RUNS = {"unet": run_unet, "monai": run_monai, "save_on_cpu": run_save_on_cpu, "vgg16": run_vgg16}


def machine():
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    found = {"date": now, "pytorch": torch.__version__}
    with contextlib.suppress(ImportError):
        import monai
        found["monai"] = monai.__version__
    if DEVICE == "cuda":
        found.update(gpu=torch.cuda.get_device_name(), cudnn=torch.backends.cudnn.version())
    return found


class Comparison:
    """Runs each part in a process of its own, and writes down what came of it."""

    def __init__(self, options, folder):
        self.options_, self.folder_ = options, folder
        kept = {key: value for key, value in vars(options).items() if key not in ("out", "run", "folder")}
        self.written_ = {"options": kept, "includes": INCLUDES, "runs": []}

    def run(self, name, math, **more):
        out = os.path.join(self.folder_, "run.json")
        given = {**vars(self.options_), "math": math, "file": os.path.join(self.folder_, f"{math}.pt"), **more}
        words = [sys.executable, os.path.abspath(__file__), out, "--run", name, json.dumps(given)]
        print(f"{name} {math} ...", flush=True)
        begin = time.monotonic()
        status = subprocess.run(words, check=False).returncode
        print(f"{name} {math}: {time.monotonic() - begin:.0f} s in all", flush=True)
        run = {"name": name, "math": math, "failed": f"exit status {status}"}
        if status == 0:
            with open(out, encoding="utf-8") as file:
                run = {"name": name, "math": math, **json.load(file)}
        self.written_["runs"].append(run)
        with open(self.options_.out, "w", encoding="utf-8") as file:
            json.dump(self.written_, file, indent=1)
        return run

    def volume(self, math):
        ours = self.run("unet", math) if "unet" in self.options_.parts else {}
        theirs = self.run("monai", math) if "monai" in self.options_.parts else {}
        if "least_s" in ours:
            print(f"{math}: U-Net {ours['least_s']:.2f} s, off by {ours['difference_to_double']:.1e}, "
                  f"{ours['device_most_mib']:.0f} MiB of the device", flush=True)
        for each in theirs.get("windows", []):
            ratio = f", {each['least_s'] / ours['least_s']:.2f} of ours" if "least_s" in ours and each["fits"] else ""
            said = f"{each['least_s']:.2f} s{ratio}, {each['device_most_mib']:.0f} MiB, off by " \
                   f"{each.get('largest_difference', float('nan')):.1e}" if each["fits"] else "out of memory"
            print(f"{math}: MONAI, {each['roi']}^3: {said}", flush=True)

    def vgg16(self, math):
        theirs = self.run("save_on_cpu", math)
        if "failed" in theirs:
            return
        peaks = [each["allocated_peak_mib"] for each in theirs["runs"] if "allocated_peak_mib" in each]
        ours = self.run("vgg16", math, mib=int(min(peaks, default=8)))
        least = theirs["fastest"]["least_ms_an_image"]
        print(f"{math}: save_on_cpu {least:.2f} ms an image within {min(peaks, default=0):.0f} MiB", flush=True)
        for each in ours.get("runs", []):
            ms = each["least_ms_an_image"]
            ratio = f", {least / ms:.2f} times faster" if each["batch"] == self.options_.batch else ""
            print(f"{math}: ours, {each['name']}, N={each['batch']}: {ms:.2f} ms an image{ratio}", flush=True)

    def failures(self):
        return [run for run in self.written_["runs"] if "failed" in run]


def parse():
    parser = argparse.ArgumentParser(parents=[unet_volume.arguments(add_help=False)], conflict_handler="resolve")
    parser.add_argument("out")
    parser.add_argument("--parts", nargs="+", choices=("unet", "monai", "vgg16"), default=["unet", "monai", "vgg16"])
    parser.add_argument("--math", nargs="+", choices=("fma", "tf32"), default=["fma"])
    parser.add_argument("--vgg16", default=os.path.join(HERE, "..", "..", "build", "bin", "vgg16_host_memory"))
    parser.add_argument("--rois", nargs="+", type=int, default=list(range(352, 127, -32)))
    parser.add_argument("--folder")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)  # name and options, in a process of its own
    parser.set_defaults(image=224, narrow=1, steps=5)
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(size=16, channels=2, levels=2, device_memory="1MiB", passes=1, blocks=2, rois=[32, 16, 8],
                            batch=6, image=32, narrow=16, steps=1)
        options = parser.parse_args()
    return options


def main():
    options = parse()
    if options.run:
        name, given = options.run[0], argparse.Namespace(**json.loads(options.run[1]))
        torch.set_grad_enabled(name == "save_on_cpu")
        found = {"machine": machine(), **RUNS[name](given)}
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(found, file)
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.folder:
            os.makedirs(options.folder, exist_ok=True)
        comparison = Comparison(options, options.folder or folder)
        for math in options.math:
            comparison.volume(math)
            if "vgg16" in options.parts:
                comparison.vgg16(math)
    for run in comparison.failures():
        print(f"volume_pytorch.py: {run['name']} {run['math']}: {run['failed']}", file=sys.stderr)
    sys.exit(len(comparison.failures()) > 0)


if __name__ == "__main__":
    main()
