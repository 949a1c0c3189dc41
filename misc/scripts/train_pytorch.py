#!/usr/bin/env python3
"""Trains a network on random images with PyTorch, to compare it with the same under `ucudnn run`.

usage: [ucudnn run ...] [torchrun ...] misc/scripts/train_pytorch.py MODEL BATCH STEPS [OPTION...]

MODEL is one of torchvision's, `volume` (four 3-D convolutions on 96x96x96 voxels), `small` (32 convolutions, each shorter
than its call: what a call costs the host), or one without convolutions: `perceptron`, and `sequence` (an LSTM, then
cuDNN's attention). Options:

  --benchmark      torch.backends.cudnn.benchmark
  --bf16           bfloat16 autocast, channels last
  --deterministic  deterministic algorithms and no TF32
  --graph          steps are captured once and replayed as a CUDA graph
  --compile        torch.compile(mode="reduce-overhead")
  --smooth         softplus and average pooling in place of ReLU and maximum pooling, whose gradients jump
  --gib SIZE       so much device memory, as with torch.cuda.set_per_process_memory_fraction
  --json FILE      appends a line of results there, of that --name
  --gradients FILE saves the last step's gradients; compares with them if they are there already
  --profile FILE   three steps more, and there the device's time for each convolution

Under torchrun each process trains its part on a device of its own (DistributedDataParallel), and the first one prints.
Prints the first, second and last loss, the first step's time, the median of the second half's, that of all steps, which
shows what planning takes, and PyTorch's own memory counters: the peak of what was allocated and of what was reserved, and
the largest block that was asked for after the first step (convolution workspaces and outputs). Needs a GPU, PyTorch and
torchvision.
"""

import argparse
import json
import os
import time

import torch


def volume():
    def convolve(channels, filters):
        return [torch.nn.Conv3d(channels, filters, 3, padding=1), torch.nn.ReLU()]

    return torch.nn.Sequential(
        *convolve(1, 32),
        *convolve(32, 64),
        torch.nn.MaxPool3d(2),
        *convolve(64, 128),
        *convolve(128, 128),
        torch.nn.AdaptiveAvgPool3d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 10),
    )


def small():
    convolutions = [torch.nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(32)]
    return torch.nn.Sequential(*convolutions, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 10))


class Sequence(torch.nn.Module):
    """An LSTM, and attention over what it gives."""

    WIDTH, HEADS = 512, 8

    def __init__(self):
        super().__init__()
        self.recurrent = torch.nn.LSTM(self.WIDTH, self.WIDTH, batch_first=True)
        self.project = torch.nn.Linear(self.WIDTH, 3 * self.WIDTH)
        self.classify = torch.nn.Linear(self.WIDTH, 10)

    def forward(self, x):
        x, _ = self.recurrent(x)
        heads = [each.unflatten(2, (self.HEADS, -1)).transpose(1, 2) for each in self.project(x).chunk(3, 2)]
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
            x = torch.nn.functional.scaled_dot_product_attention(*[each.bfloat16() for each in heads])
        return self.classify(x.float().transpose(1, 2).flatten(2).mean(1))


def perceptron():
    layers = [torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(4096, 10))


# For each name: the function that makes the model, the shape of a sample, the number of classes.
OWN_MODELS = {
    "volume": (volume, (1, 96, 96, 96), 10),
    "small": (small, (16, 8, 8), 10),
    "perceptron": (perceptron, (4096,), 10),
    "sequence": (Sequence, (128, Sequence.WIDTH), 10),
}


def smooth(model):
    """Replaces what makes gradients jump where a sum is rounded otherwise."""
    for name, child in model.named_children():
        if isinstance(child, torch.nn.ReLU):
            setattr(model, name, torch.nn.Softplus())
        elif isinstance(child, torch.nn.MaxPool2d):
            setattr(model, name, torch.nn.AvgPool2d(child.kernel_size, child.stride, child.padding))
        else:
            smooth(child)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("steps", type=int)
    for flag in ("benchmark", "bf16", "deterministic", "graph", "compile", "smooth"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--gib", type=float)
    parser.add_argument("--json")
    parser.add_argument("--gradients")
    parser.add_argument("--profile")
    parser.add_argument("--name", default="")
    return parser.parse_args()


RANK = int(os.environ.get("LOCAL_RANK", "0"))
IS_DISTRIBUTED = "LOCAL_RANK" in os.environ


def configure(options):
    if IS_DISTRIBUTED:
        torch.cuda.set_device(RANK)
        torch.distributed.init_process_group("nccl")
    torch.manual_seed(1 + RANK)
    exact = options.deterministic
    torch.backends.cuda.matmul.allow_tf32 = not exact
    torch.backends.cudnn.allow_tf32 = not exact
    torch.backends.cudnn.deterministic = exact
    torch.backends.cudnn.benchmark = options.benchmark
    if options.gib:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(options.gib * 2**30 / total)


def build(options):
    """The model, its images and labels."""
    if options.model in OWN_MODELS:
        make, shape, classes = OWN_MODELS[options.model]
        model = make()
    else:
        import torchvision

        model, shape, classes = getattr(torchvision.models, options.model)(num_classes=1000), (3, 224, 224), 1000
    images = torch.randn(options.batch, *shape, device="cuda")
    labels = torch.randint(0, classes, (options.batch,), device="cuda")
    if options.smooth:
        smooth(model)
    model = model.cuda()
    if options.bf16:
        layout = torch.channels_last_3d if options.model == "volume" else torch.channels_last
        model, images = model.to(memory_format=layout), images.to(memory_format=layout)
    if IS_DISTRIBUTED:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[RANK])
    if options.compile:
        model = torch.compile(model, mode="reduce-overhead")
    return model, images, labels


def step_of(options):
    """A function that trains one step and returns the loss as a tensor; the model."""
    model, images, labels = build(options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=options.bf16):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def captured(step):
    """The same as a CUDA graph, after two more steps that warm up."""
    for _ in range(2):
        step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def profile(step, file):
    """The device time of each convolution of a step, the longest first."""
    steps = 3
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    spent = [
        {"ms": each.device_time_total / 1e3 / steps, "operation": each.key, "shapes": str(each.input_shapes[:3])}
        for each in profiler.key_averages(group_by_input_shape=True)
        if "cudnn_convolution" in each.key or "convolution_backward" in each.key
    ]
    with open(file, "w", encoding="utf-8") as out:
        json.dump(sorted(spent, key=lambda each: -each["ms"]), out, indent=1)


def distance_of_gradients(model, file):
    """The largest normalized L2 distance to those in the file, and whose; None: they are saved there now."""
    gradients = {name: parameter.grad.double().cpu() for name, parameter in model.named_parameters()}
    if not os.path.exists(file):
        torch.save(gradients, file)
        return None
    saved = torch.load(file)
    distances = {name: ((each - saved[name]).norm() / saved[name].norm()).item() for name, each in gradients.items()}
    return max((distance, name) for name, distance in distances.items())


def main():
    options = parse()
    configure(options)
    if options.graph:  # gradients belong to the stream of the first step, and the default one can't be captured
        torch.cuda.set_stream(torch.cuda.Stream())
    step, model = step_of(options)
    losses, times = [], []
    for i in range(options.steps):
        if i == 1:
            torch.cuda.synchronize()
            if options.graph:
                step = captured(step)
            if not options.graph:  # without the stacks of each allocation, which take the host longer than a call
                torch.cuda.memory._record_memory_history(context=None, max_entries=100000)
        torch.cuda.synchronize()
        begin = time.time()
        loss = step()
        torch.cuda.synchronize()
        times.append((time.time() - begin) * 1e3)
        losses.append(loss.item())
    events = [] if options.graph else torch.cuda.memory._snapshot()["device_traces"][0]
    later = sorted(times[len(times) // 2 :])
    result = {
        "name": options.name,
        "model": options.model,
        "batch": options.batch,
        "options": [flag for flag, value in vars(options).items() if value is True],
        "losses": losses,
        "first_step_ms": times[0],
        "later_step_ms": later[len(later) // 2],
        "fastest_step_ms": later[0],
        "step_ms": [round(each, 2) for each in times],
        "peak_mib": torch.cuda.max_memory_allocated() / 2**20,
        "reserved_mib": torch.cuda.max_memory_reserved() / 2**20,
        "largest_block_mib": max((e["size"] for e in events if e["action"] == "alloc"), default=0) / 2**20,
    }
    if options.gradients:
        result["distance_of_gradients"] = distance_of_gradients(model, options.gradients)
    if options.profile:
        profile(step, options.profile)
    if IS_DISTRIBUTED:
        torch.distributed.destroy_process_group()
    if RANK != 0:
        return
    print(
        f"{options.model}: losses {losses[0]:.4f} {losses[1]:.4f} {losses[-1]:.4f}, "
        f"first step {times[0]:.0f} ms, later ones {result['later_step_ms']:.2f} ms, the fastest {later[0]:.2f} ms, "
        f"all {len(times)} {sum(times) / 1e3:.1f} s, "
        f"peak {result['peak_mib']:.0f} MiB, reserved {result['reserved_mib']:.0f} MiB, "
        f"largest block {result['largest_block_mib']:.0f} MiB"
    )
    if options.gradients:
        print("distance of gradients:", result["distance_of_gradients"])
    if options.json:
        with open(options.json, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
