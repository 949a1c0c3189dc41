#!/usr/bin/env python3
"""Trains one of torchvision's models on random images, to compare it with `ucudnn run`.

usage: [ucudnn run ...] misc/train_torchvision.py MODEL BATCH STEPS [--benchmark]

Prints the first, second and last loss, the first step's time, the median of the second half's, and PyTorch's own
memory counters. Needs a GPU, PyTorch and torchvision.
"""

import sys
import time

import torch
import torchvision


def main():
    name, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = "--benchmark" in sys.argv
    model = getattr(torchvision.models, name)(num_classes=1000).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    criterion = torch.nn.CrossEntropyLoss()
    losses, times = [], []
    for _ in range(steps):
        torch.cuda.synchronize()
        begin = time.time()
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append((time.time() - begin) * 1e3)
        losses.append(loss.item())
    later = sorted(times[len(times) // 2 :])
    print(
        f"{name}: losses {losses[0]:.4f} {losses[1]:.4f} {losses[-1]:.4f}, "
        f"first step {times[0]:.0f} ms, later ones {later[len(later) // 2]:.2f} ms, "
        f"peak {torch.cuda.max_memory_allocated() >> 20} MiB, "
        f"reserved {torch.cuda.max_memory_reserved() >> 20} MiB"
    )


if __name__ == "__main__":
    main()
