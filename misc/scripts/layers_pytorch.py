#!/usr/bin/env python3
"""Times the first convolutions of networks for images, forward and both gradients, in PyTorch.

usage: [ucudnn run ...] misc/scripts/first_layers_pytorch.py NAME OUT.json

Adds the run NAME to OUT.json: for each convolution, type and layout the ms of a call, the median of three times six, and
sums of the outputs' absolute values in double precision. With UCUDNN_BENCHMARK_SHARE=0 nothing is measured, so a run
under a cap shows what runs until then:

  misc/scripts/first_layers_pytorch.py plain OUT.json
  UCUDNN_BENCHMARK_SHARE=0 ucudnn run --no-database --workspace-limit 64MiB misc/scripts/first_layers_pytorch.py 64MiB OUT.json
"""

import json
import os
import sys

import torch

LAYERS = (  # network, N, channels, image's side, filters, filter's side, step, padding
    ("ResNet", 128, 3, 224, 64, 7, 2, 3),
    ("ResNet", 32, 3, 224, 64, 7, 2, 3),
    ("ResNet, 512x512", 8, 3, 512, 64, 7, 2, 3),
    ("ResNet", 256, 3, 224, 64, 7, 2, 3),
    ("AlexNet", 256, 3, 224, 64, 11, 4, 2),
    ("MobileNet", 256, 3, 224, 16, 3, 2, 1),
    ("ConvNeXt", 128, 3, 224, 96, 4, 4, 0),
    ("gray images", 128, 1, 256, 32, 5, 2, 2),
    ("discriminator", 16, 4, 256, 64, 4, 2, 1),
    ("ViT", 128, 3, 224, 768, 16, 16, 0),
)
TYPES = (torch.float, torch.bfloat16, torch.half)
LAYOUTS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}
CALLS, REPEATS, BEFORE = 6, 3, 2


def ms_of(call):
    for _ in range(BEFORE):
        call()
    times = []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / CALLS)
    return sorted(times)[REPEATS // 2]


def measure(layer, data_type, layout):
    name, batch, channels, side, filters, size, step, padding = layer
    torch.manual_seed(1)

    def tensor(*sizes):
        return torch.randn(*sizes, device="cuda", dtype=data_type).contiguous(memory_format=LAYOUTS[layout])

    x, w = tensor(batch, channels, side, side), tensor(filters, channels, size, size)

    def forward():
        return torch.nn.functional.conv2d(x, w, None, step, padding)

    gradient = torch.randn_like(forward())

    def backward(data, filter_):
        return torch.ops.aten.convolution_backward(
            gradient, x, w, None, [step] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, [data, filter_, False]
        )

    calls = {
        "forward": forward,
        "backward_data": lambda: backward(True, False)[0],
        "backward_filter": lambda: backward(False, True)[1],
    }
    return {
        "layer": name,
        "n": batch,
        "type": str(data_type).removeprefix("torch."),
        "layout": layout,
        **{f"{operation}_ms": ms_of(call) for operation, call in calls.items()},
        **{f"{operation}_sum": call().double().abs().sum().item() for operation, call in calls.items()},
    }


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    name, path = sys.argv[1:]
    if not torch.cuda.is_available():
        sys.exit("first_layers_pytorch.py: no GPU")
    torch.backends.cudnn.allow_tf32 = True
    result = {"runs": {}}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    result["machine"] = {
        "gpu": torch.cuda.get_device_name(),
        "pytorch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
    }
    rows = result["runs"][name] = []
    for data_type in TYPES:
        for layout in LAYOUTS:
            for layer in LAYERS:
                rows.append(measure(layer, data_type, layout))
                torch.cuda.empty_cache()
                with open(path, "w", encoding="utf-8") as file:  # a run that is cut off is not lost
                    json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
