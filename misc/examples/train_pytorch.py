#!/usr/bin/env python3
"""Trains a small network on random images with PyTorch.

usage: [ucudnn run --report] misc/examples/train_pytorch.py [--batch N] [--steps N] [--cpu]

Nothing in it is about μ-cuDNN but the last lines, which ask what it did. Prints the median time of a step, and on a GPU
the memory that PyTorch has reserved.
"""

import argparse
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("train_pytorch.py needs PyTorch: pip install torch")


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 11, stride=4, padding=2),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(3, 2),
        torch.nn.Conv2d(64, 192, 5, padding=2),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(3, 2),
        torch.nn.Conv2d(192, 256, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(256, 10),
    )


def train(device, batch, steps):
    """The times of all steps, in ms."""
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(batch, 3, 224, 224, device=device)
    labels = torch.randint(10, (batch,), device=device)
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() and not options.cpu else "cpu"
    times = train(device, options.batch, options.steps)
    print(f"{statistics.median(times[len(times) // 2:]):.1f} ms a step on {device}")
    if device == "cuda":
        print(f"{torch.cuda.max_memory_reserved() / 2**20:.0f} MiB reserved")
    try:
        import ucudnn  # there after `pip install ./misc/python`

        print(ucudnn.statistics())
    except (ImportError, RuntimeError):
        pass  # without μ-cuDNN, or not under `ucudnn run`


if __name__ == "__main__":
    main()
