#!/usr/bin/env python3
"""A 3-D U-Net over one volume whose activations no GPU holds: they are in pinned host memory.

usage: misc/examples/unet_volume.py [--size VOXELS] [--channels C] [--levels L] [--device-memory 16GiB]
                                    [--math fma|tf32] [--passes N] [--blocks N]

The volume has SIZE^3 voxels, and a level that is half as wide has twice as many channels. Host memory: three tensors of
CHANNELS x SIZE^3 floats, which is 48 GiB for 32 channels and 512^3 voxels. Prints the time of the first pass, which
measures kernels, and of the others; the device memory in use; and the largest difference to double precision in some
blocks. Needs PyTorch, a GPU, and `ucudnn` to be installed or misc/python in PYTHONPATH.
"""

import argparse
import os
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("unet_volume.py needs PyTorch: pip install torch")
import ucudnn

CLASSES = 2


class UNet(torch.nn.Module):
    """As anybody writes it. A strided convolution leads down a level, a transposed one leads up."""

    def __init__(self, channels, levels):
        super().__init__()
        self.levels = levels
        self.down, self.up = torch.nn.ModuleList(), torch.nn.ModuleList()
        for level in range(levels):
            width = channels << level
            above = width // 2 if level > 0 else 1
            self.down.append(torch.nn.ModuleList([self.convolution(above, width, 1 if level == 0 else 2),
                                                  self.convolution(width, width)]))
            if level + 1 < levels:
                self.up.append(torch.nn.ModuleList([torch.nn.ConvTranspose3d(2 * width, width, 2, stride=2, bias=False),
                                                    self.convolution(2 * width, width),
                                                    self.convolution(width, width)]))
        self.head = torch.nn.Conv3d(channels, CLASSES, 1)

    @staticmethod
    def convolution(channels, filters, stride=1):
        layer = torch.nn.Conv3d(channels, filters, 3, stride, padding=1)
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        return layer

    def forward(self, x):
        skips = []
        for first, second in self.down:
            x = second(first(x).relu_()).relu_()
            skips.append(x)
        x = skips.pop()
        for up, first, second in reversed(self.up):
            x = torch.cat([skips.pop(), up(x)], dim=1)
            x = second(first(x).relu_()).relu_()
        return self.head(x)


def pinned(*sizes):
    return torch.empty(sizes, pin_memory=torch.cuda.is_available())


class HostUNet:
    """The same network, for volumes of one size. Everything is allocated here, once.

    A level has three tensors: what its first convolution makes, and side by side the two that are concatenated, so that
    nothing is copied for that. The levels below work in the first one's memory, which is free meanwhile.
    """

    def __init__(self, model, size):
        self.model = model
        for parameter in model.parameters():
            parameter.requires_grad_(False)
            if torch.cuda.is_available():
                parameter.data = parameter.data.pin_memory()
        channels = model.head.in_channels
        self.memory = pinned(2 * channels * size**3), pinned(channels * size**3)
        self.result = pinned(1, CLASSES, size, size, size)
        self.nbytes = sum(4 * tensor.numel() for tensor in self.memory)

    def __call__(self, volume):
        return self.convolve(self.model.head, self.level(0, volume, *self.memory), self.result, None)

    def level(self, level, x, joined, other):
        """Its result, which is in the memory of `joined`."""
        first, second = self.model.down[level]
        sizes = (1, first.out_channels, *(size // first.stride[0] for size in x.shape[2:]))
        count = torch.Size(sizes).numel()
        skip, raised = joined[:count].view(sizes), joined[count : 2 * count].view(sizes)
        own = other[:count].view(sizes)
        self.convolve(second, self.convolve(first, x, own), skip)
        if level + 1 == self.model.levels:
            return skip
        up, first, second = self.model.up[level]
        below = self.level(level + 1, skip, other[: count // 2], other[count // 2 : count])
        ucudnn.conv_transpose3d(below, up.weight, stride=2, out=raised)
        both = joined[: 2 * count].view(1, -1, *sizes[2:])
        return self.convolve(second, self.convolve(first, both, own), skip)

    @staticmethod
    def convolve(layer, x, out, activation="relu"):
        return ucudnn.conv3d(x, layer.weight, layer.bias, layer.stride, layer.padding, activation=activation, out=out)


def halo(levels):
    """How many voxels away an input may be that an output depends on, rounded up to whole voxels of the last level."""
    reach = sum(4 << level for level in range(levels))  # two convolutions on the way down, two on the way up
    return -(-reach >> (levels - 1)) << (levels - 1)


def difference(model, volume, result, blocks):
    """The largest difference to double precision over the largest value, in blocks of the volume. Each is computed with
    all the voxels around it that it depends on."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size, margin, step = volume.shape[-1], halo(model.levels), 1 << (model.levels - 1)
    side = max(16, step)
    exact = UNet(model.head.in_channels, model.levels).double()
    exact.load_state_dict(model.state_dict())
    exact.to(device)
    last = (size - side) // step * step
    places = [(0, 0, 0), (last, last, last)]  # two corners; the others are anywhere
    places += (torch.randint(last // step + 1, (max(0, blocks - 2), 3)) * step).tolist()
    worst = largest = 0.0
    for place in places[:blocks]:
        outer = [slice(max(0, begin - margin), min(size, begin + side + margin)) for begin in place]
        block = [slice(begin, begin + side) for begin in place]
        inner = [slice(b.start - o.start, b.stop - o.start) for b, o in zip(block, outer)]
        expected = exact(volume[(..., *outer)].to(device).double())[(..., *inner)].cpu()
        worst = max(worst, (result[(..., *block)] - expected).abs().max().item())
        largest = max(largest, expected.abs().max().item())
    return worst / largest


def device_memory_in_use():
    if not torch.cuda.is_available():
        return 0
    free, total = torch.cuda.mem_get_info()
    return total - free


def arguments(**options):
    parser = argparse.ArgumentParser(**options)
    parser.add_argument("--size", type=int, default=512, help="voxels of a side")
    parser.add_argument("--channels", type=int, default=32, help="of the first level")
    parser.add_argument("--levels", type=int, default=4)
    parser.add_argument("--device-memory", default="16GiB", help="as UCUDNN_DEVICE_MEMORY")
    parser.add_argument("--math", choices=("fma", "tf32"), default="fma")
    parser.add_argument("--passes", type=int, default=3, help="behind the first one")
    parser.add_argument("--blocks", type=int, default=8, help="that are compared with double precision")
    return parser


def prepare(options):
    """The network and a volume."""
    if options.size < 16 or options.size % (1 << (options.levels - 1)):
        sys.exit("unet_volume.py: SIZE must be 16 or more, and half of it a whole number for each level but the first")
    os.environ["UCUDNN_DEVICE_MEMORY"] = options.device_memory
    os.environ.setdefault("UCUDNN_BENCHMARK_SHARE", "always")  # the first pass measures kernels
    torch.backends.cudnn.allow_tf32 = options.math == "tf32"
    torch.manual_seed(1)
    model = UNet(options.channels, options.levels)
    return model, pinned(1, 1, *3 * (options.size,)).normal_()


def timed(network, volume, passes):
    """The result, and the seconds of each pass."""
    times = []
    for _ in range(passes):
        begin = time.perf_counter()
        result = network(volume)
        times.append(time.perf_counter() - begin)
    return result, times


@torch.no_grad()
def main():
    options = arguments().parse_args()
    model, volume = prepare(options)
    network = HostUNet(model, options.size)
    result, times = timed(network, volume, 1 + options.passes)
    print(f"{options.size}^3 voxels, {options.channels} channels, {options.levels} levels, {options.math}: "
          f"{network.nbytes / 2**30:.1f} GiB of activations in host memory")
    print(f"first pass {times[0]:.2f} s, then " + ", ".join(f"{each:.2f}" for each in times[1:]) + " s")
    print(f"{device_memory_in_use() / 2**30:.2f} GiB of device memory in use, with CUDA's and cuDNN's own")
    worst = difference(model, volume, result, options.blocks)
    print(f"largest difference to double precision: {worst:.1e} of the largest value")


if __name__ == "__main__":
    main()
