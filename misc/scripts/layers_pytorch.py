#!/usr/bin/env python3
"""Times convolutions of networks, forward and both gradients, in PyTorch.

usage: [ucudnn run ...] misc/scripts/layers_pytorch.py {first|others} NAME OUT.json [LAYER...]

Adds the run NAME to OUT.json: for each convolution of the list, type and layout the ms of a call, the median of three
times six, and sums of the outputs' absolute values in double precision. `first`: the first layers of networks for images.
`others`: of volumes, signals, groups, dilated filters and more. With UCUDNN_BENCHMARK_SHARE=0 nothing is measured, so a
run under a cap shows what runs until then:

  misc/scripts/layers_pytorch.py first plain OUT.json
  UCUDNN_BENCHMARK_SHARE=0 ucudnn run --no-database --workspace-limit 64MiB misc/scripts/layers_pytorch.py first 64MiB OUT.json
"""

import json
import os
import sys

import torch

# name, N, channels, image, filters, filter, step, padding, dilation, groups; a number is meant for each dimension
FIRST = (
    ("ResNet", 128, 3, (224, 224), 64, 7, 2, 3, 1, 1),
    ("ResNet", 32, 3, (224, 224), 64, 7, 2, 3, 1, 1),
    ("ResNet, 512x512", 8, 3, (512, 512), 64, 7, 2, 3, 1, 1),
    ("ResNet", 256, 3, (224, 224), 64, 7, 2, 3, 1, 1),
    ("AlexNet", 256, 3, (224, 224), 64, 11, 4, 2, 1, 1),
    ("MobileNet", 256, 3, (224, 224), 16, 3, 2, 1, 1, 1),
    ("ConvNeXt", 128, 3, (224, 224), 96, 4, 4, 0, 1, 1),
    ("gray images", 128, 1, (256, 256), 32, 5, 2, 2, 1, 1),
    ("discriminator", 16, 4, (256, 256), 64, 4, 2, 1, 1, 1),
    ("ViT", 128, 3, (224, 224), 768, 16, 16, 0, 1, 1),
)
CUBE = (128, 128, 128)
OTHERS = (
    # volumes and video
    ("3-D U-Net", 2, 32, CUBE, 32, 3, 1, 1, 1, 1),
    ("3-D U-Net, a step", 2, 32, CUBE, 64, 3, 2, 1, 1, 1),
    ("3-D U-Net, deep", 2, 256, (16, 16, 16), 320, 3, 1, 1, 1, 1),
    ("3-D U-Net, first", 2, 1, CUBE, 32, 3, 1, 1, 1, 1),
    ("3-D U-Net, last", 2, 32, CUBE, 14, 1, 1, 0, 1, 1),
    ("7x7x7 of one volume", 1, 1, (160, 192, 160), 16, 7, 1, 3, 1, 1),
    ("R3D, first", 8, 3, (16, 112, 112), 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), 1, 1),
    ("R(2+1)D, space", 8, 64, (16, 56, 56), 144, (1, 3, 3), 1, (0, 1, 1), 1, 1),
    ("video diffusion, time", 1, 320, (16, 64, 64), 320, (3, 1, 1), 1, (1, 0, 0), 1, 1),
    ("ViViT, first", 2, 3, (32, 224, 224), 768, (2, 16, 16), (2, 16, 16), 0, 1, 1),
    ("Video Swin, first", 4, 3, (32, 224, 224), 96, (2, 4, 4), (2, 4, 4), 0, 1, 1),
    ("depthwise, video", 4, 64, (32, 56, 56), 64, 3, 1, 1, 1, 64),
    ("depthwise 7x7x7", 2, 48, (64, 64, 64), 48, 7, 1, 3, 1, 48),
    # signals
    ("wav2vec, first", 8, 1, (160000,), 512, 10, 5, 0, 1, 1),
    ("wav2vec, second", 8, 512, (32000,), 512, 3, 2, 0, 1, 1),
    ("wav2vec, positions", 8, 768, (1500,), 768, 128, 1, 64, 1, 16),
    ("HiFi-GAN, dilated", 16, 128, (8192,), 128, 11, 1, 25, 5, 1),
    ("vocoder", 16, 256, (1024,), 512, 16, 8, 4, 1, 1),
    ("TCN, dilated", 32, 256, (4096,), 256, 3, 1, 64, 64, 1),
    ("Whisper, first", 16, 80, (3000,), 768, 3, 1, 1, 1, 1),
    ("Conformer, depthwise", 16, 512, (1500,), 512, 31, 1, 15, 1, 512),
    ("STFT", 16, 1, (64000,), 514, 1024, 256, 0, 1, 1),
    ("FIR filter", 16, 1, (64000,), 1, 1025, 1, 512, 1, 1),
    ("EEGNet, time", 64, 1, (64, 1000), 40, (1, 25), 1, 0, 1, 1),
    ("EEGNet, space", 64, 40, (64, 976), 40, (64, 1), 1, 0, 1, 1),
    # groups
    ("ResNeXt", 64, 256, (56, 56), 256, 3, 1, 1, 1, 32),
    ("StyleGAN, groups of samples", 1, 2048, (64, 64), 2048, 3, 1, 1, 1, 4),
    ("ConvNeXt, depthwise", 64, 96, (56, 56), 96, 7, 1, 3, 1, 96),
    ("MobileNet, depthwise", 128, 96, (112, 112), 96, 3, 2, 1, 1, 96),
    ("EfficientNet, depthwise", 64, 240, (57, 57), 240, 5, 2, 2, 1, 240),
    ("RepLKNet, depthwise", 16, 128, (56, 56), 128, 31, 1, 15, 1, 128),
    ("blur", 8, 64, (256, 256), 64, 4, 1, 2, 1, 64),
    # dilated
    ("DeepLab, a step of 12", 8, 2048, (65, 65), 256, 3, 1, 12, 12, 1),
    ("dilated ResNet", 4, 512, (97, 97), 512, 3, 1, 2, 2, 1),
    # images
    ("VGG, first", 32, 3, (224, 224), 64, 3, 1, 1, 1, 1),
    ("VGG, second", 32, 64, (224, 224), 64, 3, 1, 1, 1, 1),
    ("VAE", 1, 128, (1024, 1024), 128, 3, 1, 1, 1, 1),
    ("VAE, first", 1, 3, (1024, 1024), 128, 3, 1, 1, 1, 1),
    ("VAE, last", 1, 128, (1024, 1024), 3, 3, 1, 1, 1, 1),
    ("diffusion U-Net", 8, 320, (64, 64), 320, 3, 1, 1, 1, 1),
    ("diffusion U-Net, a step", 8, 320, (64, 64), 320, 3, 2, 1, 1, 1),
    ("diffusion U-Net, first", 8, 4, (128, 128), 320, 3, 1, 1, 1, 1),
    ("diffusion U-Net, last", 8, 320, (128, 128), 4, 3, 1, 1, 1, 1),
    ("super-resolution, first", 8, 3, (256, 256), 64, 9, 1, 4, 1, 1),
    ("super-resolution, last", 8, 64, (512, 512), 3, 9, 1, 4, 1, 1),
    ("EDSR", 16, 256, (96, 96), 256, 3, 1, 1, 1, 1),
    ("optical flow, first", 4, 2, (440, 1024), 64, 7, 1, 3, 1, 1),
    ("optical flow, correlation", 4, 324, (55, 128), 256, 1, 1, 0, 1, 1),
    ("SegFormer, first", 2, 3, (1024, 1024), 64, 7, 4, 3, 1, 1),
    ("YOLO, a step", 16, 64, (320, 320), 128, 3, 2, 1, 1, 1),
    ("GAN, 4x4", 64, 256, (32, 32), 512, 4, 2, 1, 1, 1),
    ("Inception, 1x7", 64, 192, (17, 17), 192, (1, 7), 1, (0, 3), 1, 1),
    ("odd channels", 16, 131, (64, 64), 67, 3, 1, 1, 1, 1),
    ("without padding", 16, 128, (28, 28), 128, 3, 1, 0, 1, 1),
    ("1x1", 64, 256, (56, 56), 64, 1, 1, 0, 1, 1),
    ("1x1, a step", 64, 512, (28, 28), 1024, 1, 2, 0, 1, 1),
    ("1x1, large images", 8, 64, (512, 512), 256, 1, 1, 0, 1, 1),
)
LISTS = {"first": FIRST, "others": OTHERS}
TYPES = (torch.float, torch.bfloat16, torch.half)
LAYOUTS = {"nchw": {}, "nhwc": {4: torch.channels_last, 5: torch.channels_last_3d}}
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
    name, batch, channels, image, filters, *rest, groups = layer
    rank = len(image)
    size, step, padding, dilation = ([value] * rank if isinstance(value, int) else list(value) for value in rest)
    torch.manual_seed(1)

    def tensor(*sizes):
        memory_format = LAYOUTS[layout].get(len(sizes), torch.contiguous_format)
        return torch.randn(*sizes, device="cuda", dtype=data_type).contiguous(memory_format=memory_format)

    x, w = tensor(batch, channels, *image), tensor(filters, channels // groups, *size)
    convolve = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)[rank - 1]

    def forward():
        return convolve(x, w, None, step, padding, dilation, groups)

    gradient = torch.randn_like(forward())

    def backward(data, filter_):
        return torch.ops.aten.convolution_backward(
            gradient, x, w, None, step, padding, dilation, False, [0] * rank, groups, [data, filter_, False]
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
    if len(sys.argv) < 4 or sys.argv[1] not in LISTS:
        sys.exit(__doc__)
    layers, (name, path, *wanted) = LISTS[sys.argv[1]], sys.argv[2:]
    names = {layer[0] for layer in layers}
    for each in wanted:
        if each not in names:
            sys.exit(f"layers_pytorch.py: no layer {each!r}; there are {', '.join(sorted(names))}")
    if not torch.cuda.is_available():
        sys.exit("layers_pytorch.py: no GPU")
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
            for layer in layers:
                if (wanted and layer[0] not in wanted) or (layout == "nhwc" and len(layer[3]) == 1):
                    continue
                rows.append(measure(layer, data_type, layout))
                torch.cuda.empty_cache()
                with open(path, "w", encoding="utf-8") as file:  # a run that is cut off is not lost
                    json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
