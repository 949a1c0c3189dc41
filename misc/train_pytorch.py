#!/usr/bin/env python3
"""Trains a network on random images with PyTorch, to compare it with the same under `ucudnn run`.

usage: [ucudnn run ...] [torchrun ...] misc/train_pytorch.py MODEL BATCH STEPS [OPTION...]

MODEL is one of torchvision's, or `volume`: four 3-D convolutions on 96x96x96 voxels. Options:

  --benchmark      torch.backends.cudnn.benchmark
  --bf16           bfloat16 autocast, channels last
  --deterministic  deterministic algorithms and no TF32
  --graph          steps are captured once and replayed as a CUDA graph
  --compile        torch.compile(mode="reduce-overhead")
  --gib SIZE       so much device memory, as with torch.cuda.set_per_process_memory_fraction
  --json FILE      appends a line of results there, of that --name

Under torchrun each process trains its part on a device of its own (DistributedDataParallel), and the first one prints.
Prints the first, second and last loss, the first step's time, the median of the second half's, and PyTorch's own
memory counters: the peak of what was allocated and of what was reserved, and the largest block that was asked for
after the first step (convolution workspaces and outputs). Needs a GPU, PyTorch and torchvision.
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


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("steps", type=int)
    for flag in ("benchmark", "bf16", "deterministic", "graph", "compile"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--gib", type=float)
    parser.add_argument("--json")
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
    if options.model == "volume":
        model, shape, classes = volume(), (1, 96, 96, 96), 10
    else:
        import torchvision

        model, shape, classes = getattr(torchvision.models, options.model)(num_classes=1000), (3, 224, 224), 1000
    images = torch.randn(options.batch, *shape, device="cuda")
    labels = torch.randint(0, classes, (options.batch,), device="cuda")
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
    """A function that trains one step and returns the loss as a tensor."""
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

    return step


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


def main():
    options = parse()
    configure(options)
    if options.graph:  # gradients belong to the stream of the first step, and the default one can't be captured
        torch.cuda.set_stream(torch.cuda.Stream())
    step = step_of(options)
    losses, times = [], []
    for i in range(options.steps):
        if i == 1:
            torch.cuda.synchronize()
            if options.graph:
                step = captured(step)
            torch.cuda.memory._record_memory_history(max_entries=100000) if not options.graph else None
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
        "peak_mib": torch.cuda.max_memory_allocated() / 2**20,
        "reserved_mib": torch.cuda.max_memory_reserved() / 2**20,
        "largest_block_mib": max((e["size"] for e in events if e["action"] == "alloc"), default=0) / 2**20,
    }
    if IS_DISTRIBUTED:
        torch.distributed.destroy_process_group()
    if RANK != 0:
        return
    print(
        f"{options.model}: losses {losses[0]:.4f} {losses[1]:.4f} {losses[-1]:.4f}, "
        f"first step {times[0]:.0f} ms, later ones {result['later_step_ms']:.2f} ms, "
        f"peak {result['peak_mib']:.0f} MiB, reserved {result['reserved_mib']:.0f} MiB, "
        f"largest block {result['largest_block_mib']:.0f} MiB"
    )
    if options.json:
        with open(options.json, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
