"""Programs that call convolutions as users' own do, with random weights; nothing is downloaded.

`PROGRAMS[name](device, is_tiny)` makes one. The convolutions of the first eight are those of ../shared/data/programs,
which `programs_pytorch.py --check` compares. A tiny one has the same layers and small images, for a CPU. diffusers, MONAI and
torchvision are imported inside the functions, so that each program needs only its own.
"""

import dataclasses
import math
import random
from typing import Callable

import torch
from torch.nn import functional


@dataclasses.dataclass
class Program:
    """Each step is `compute`, which returns what is checked, then `update`, which only training has."""

    compute: Callable[[], torch.Tensor]
    update: Callable[[], None] = lambda: None
    skip: Callable[[], None] = lambda: None  # leaves out a step's input
    period_s: float = 0  # a step begins so often, as requests arrive; 0: when the one before has ended
    parameters: list = dataclasses.field(default_factory=list)  # those that are trained


def in_type(half_type, device):
    """The type in which PyTorch's modules are made; a CPU's half precision is too slow to try anything."""
    return torch.float32 if device == "cpu" else half_type


def made_on(device, dtype, make):
    """The module that `make` returns, its weights drawn there and in that type."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            return make()
    finally:
        torch.set_default_dtype(default)


def inference(call):
    def compute():
        with torch.no_grad():
            return call()

    return Program(compute)


def sdxl_decoder(device, is_tiny):
    """Stable Diffusion XL's decoder: 4 images of 1024x1024, half."""
    from diffusers import AutoencoderKL

    dtype = in_type(torch.half, device)
    model = made_on(
        device,
        dtype,
        lambda: AutoencoderKL(
            down_block_types=["DownEncoderBlock2D"] * 4,
            up_block_types=["UpDecoderBlock2D"] * 4,
            block_out_channels=[128, 256, 512, 512],
            layers_per_block=2,
            latent_channels=4,
            sample_size=1024,
            scaling_factor=0.13025,
        ),
    ).eval()
    batch, side = (1, 4) if is_tiny else (4, 128)
    latents = torch.randn(batch, 4, side, side, device=device, dtype=dtype)
    return inference(lambda: model.decode(latents).sample)


def wan_decoder(device, is_tiny):
    """Wan 2.1's decoder: 17 frames of 832x480, bfloat16."""
    from diffusers import AutoencoderKLWan

    dtype = in_type(torch.bfloat16, device)
    model = made_on(
        device,
        dtype,
        lambda: AutoencoderKLWan(
            base_dim=96,
            z_dim=16,
            dim_mult=[1, 2, 4, 4],
            num_res_blocks=2,
            attn_scales=[],
            temperal_downsample=[False, True, True],
        ),
    ).eval()
    frames, rows, columns = (2, 4, 4) if is_tiny else (5, 60, 104)
    latents = torch.randn(1, 16, frames, rows, columns, device=device, dtype=dtype)
    return inference(lambda: model.decode(latents).sample)


def sd15_unet(device, is_tiny):
    """Stable Diffusion 1.5's UNet: 8 images of 512x512, half."""
    from diffusers import UNet2DConditionModel

    dtype = in_type(torch.half, device)
    model = made_on(
        device,
        dtype,
        lambda: UNet2DConditionModel(
            sample_size=64,
            in_channels=4,
            out_channels=4,
            layers_per_block=2,
            block_out_channels=(320, 640, 1280, 1280),
            down_block_types=("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",),
            up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3,
            cross_attention_dim=768,
            attention_head_dim=8,
        ),
    ).eval()
    batch, side = (1, 8) if is_tiny else (8, 64)
    latents = torch.randn(batch, 4, side, side, device=device, dtype=dtype)
    text = torch.randn(batch, 77, 768, device=device, dtype=dtype)
    time = torch.full((batch,), 500, device=device)
    return inference(lambda: model(latents, time, text).sample)


def conv3d(device, is_tiny):
    """The one 3-D convolution of https://github.com/pytorch/pytorch/issues/166643, bfloat16."""
    dtype = in_type(torch.bfloat16, device)
    model = made_on(device, dtype, lambda: torch.nn.Conv3d(96, 96, 3, padding=1))
    side = 10 if is_tiny else 626
    images = torch.randn(1, 96, 6, side, side, device=device, dtype=dtype)
    return inference(lambda: model(images))


def dynunet(device, is_tiny):
    """nnU-Net's training: MONAI's DynUNet, 2 volumes of 128^3, half-precision autocast."""
    from monai.networks.nets import DynUNet

    strides = [1, 2, 2, 2, 2, 2]
    model = made_on(
        device,
        torch.float32,
        lambda: DynUNet(
            spatial_dims=3,
            in_channels=1,
            out_channels=3,
            kernel_size=[3] * len(strides),
            strides=strides,
            upsample_kernel_size=strides[1:],
            filters=[32, 64, 128, 256, 320, 320],
        ),
    )
    batch, side = (1, 64) if is_tiny else (2, 128)
    images = torch.randn(batch, 1, side, side, side, device=device)
    labels = torch.randint(0, 3, (batch, side, side, side), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True)
    scaler = torch.amp.GradScaler(device)

    def compute():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16 if is_tiny else torch.half):
            loss = functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        return loss.detach()

    def update():
        scaler.step(optimizer)
        scaler.update()

    return Program(compute, update, list(model.parameters()))


def classifier(device, is_tiny, make):
    """A network's training on 128 images of 224x224: bfloat16 autocast, channels last."""
    model = made_on(device, torch.float32, make)
    for parameter in model.parameters():  # as model.to(memory_format=...) does, which tensors without data refuse
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    batch, side = (2, 64) if is_tiny else (128, 224)
    images = torch.randn(batch, 3, side, side, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def compute():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        return loss.detach()

    return Program(compute, optimizer.step, list(model.parameters()))


def resnet50(device, is_tiny):
    from torchvision.models import resnet50 as make

    return classifier(device, is_tiny, make)


def efficientnet(device, is_tiny):
    """EfficientNet-B0."""
    from torchvision.models import efficientnet_b0 as make

    return classifier(device, is_tiny, make)


class ModulatedConvolution(torch.nn.Module):
    """StyleGAN2's: each sample has weights of its own, so that the batch becomes groups of one sample."""

    WIDTH = 512  # of a style

    def __init__(self, channels, filters, size, scale=1, is_demodulated=True):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(filters, channels, size, size))
        self.bias = torch.nn.Parameter(torch.zeros(filters, 1, 1))
        self.style = torch.nn.Linear(self.WIDTH, channels)
        self.gain = 1 / math.sqrt(channels * size * size)
        self.scale, self.is_demodulated = scale, is_demodulated

    def forward(self, x, style):
        batch, channels, rows, columns = x.shape
        weight = self.weight * self.gain * (1 + self.style(style))[:, None, :, None, None]
        if self.is_demodulated:
            weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        x = x.reshape(1, batch * channels, rows, columns)
        padding = weight.shape[-1] // 2
        if self.scale == 1:
            x = functional.conv2d(x, weight.flatten(0, 1), padding=padding, groups=batch)
        else:
            weight = weight.transpose(1, 2).flatten(0, 1)
            x = functional.conv_transpose2d(
                x, weight, stride=self.scale, padding=padding, output_padding=self.scale - 1, groups=batch
            )
        return x.reshape(batch, -1, *x.shape[2:]) + self.bias


class Synthesis(torch.nn.Module):
    """From 4x4 to 256x256 in six blocks of three convolutions: one that doubles the image, one, and one to RGB."""

    CHANNELS = [512, 512, 512, 512, 512, 256, 128]

    def __init__(self):
        super().__init__()
        self.start = torch.nn.Parameter(torch.randn(1, self.CHANNELS[0], 4, 4))
        self.blocks = torch.nn.ModuleList()
        for before, channels in zip(self.CHANNELS, self.CHANNELS[1:]):
            doubling = ModulatedConvolution(before, channels, 3, scale=2)
            second = ModulatedConvolution(channels, channels, 3)
            colours = ModulatedConvolution(channels, 3, 1, is_demodulated=False)
            self.blocks.append(torch.nn.ModuleList([doubling, second, colours]))

    def forward(self, style):
        x, image = self.start.expand(len(style), -1, -1, -1), None
        for doubling, second, colours in self.blocks:
            x = functional.leaky_relu(doubling(x, style), 0.2)
            x = functional.leaky_relu(second(x, style), 0.2)
            colour = colours(x, style)
            if image is not None:
                colour = colour + functional.interpolate(image, scale_factor=2, mode="bilinear")
            image = colour
        return image


def stylegan(device, is_tiny):
    """A synthesis like StyleGAN2's: 8 images of 256x256, each a group of its own, half."""
    dtype = in_type(torch.half, device)
    model = made_on(device, dtype, Synthesis).eval()
    styles = torch.randn(1 if is_tiny else 8, ModulatedConvolution.WIDTH, device=device, dtype=dtype)
    return inference(lambda: model(styles))


def changing_sizes(device, is_tiny):
    """Six layers, as text recognition has, on images whose width changes at each call: 16 widths in turn, float."""
    channels = [3, 64, 128, 256, 256, 512, 512]
    layers = [torch.nn.Conv2d(a, b, 3, padding=1) for a, b in zip(channels, channels[1:])]
    shrinking = [torch.nn.MaxPool2d(2, 2) if i < 2 else torch.nn.MaxPool2d((2, 1), (2, 1)) for i in range(4)]
    stack = []
    for i, layer in enumerate(layers):
        stack += [layer, torch.nn.ReLU()] + ([shrinking[i]] if i < 4 else [])
    model = torch.nn.Sequential(*stack).to(device).eval()
    batch, step = (1, 8) if is_tiny else (16, 32)
    images = [torch.randn(batch, 3, 32, 32 + step * i, device=device) for i in range(16)]

    def call():
        images.append(images.pop(0))
        return model(images[0])

    program = inference(call)
    program.skip = lambda: images.append(images.pop(0))
    return program


def server(device, is_tiny):
    """The same six layers as a server has them: a request each 20 ms, each of one of 16 widths, drawn at random."""
    program = changing_sizes(device, is_tiny)
    draw = random.Random(43)

    def call():
        for _ in range(draw.randrange(15)):
            program.skip()
        return program.compute()

    return Program(call, period_s=0.02)


def shapes(device, is_tiny):
    """One layer of 64 channels on images of 300 widths in turn, half."""
    dtype = in_type(torch.half, device)
    layer = made_on(device, dtype, lambda: torch.nn.Conv2d(64, 64, 3, padding=1)).eval()
    batch, count = (1, 4) if is_tiny else (16, 300)
    images = [torch.randn(batch, 64, 64, 64 + 4 * i, device=device, dtype=dtype) for i in range(count)]

    def call():
        images.append(images.pop(0))
        return layer(images[0])

    return inference(call)


def resnet50_inference(device, is_tiny):
    """64 images of 224x224, half, channels last."""
    from torchvision.models import resnet50 as make

    dtype = in_type(torch.half, device)
    model = made_on(device, dtype, make).eval().to(memory_format=torch.channels_last)
    batch, side = (2, 64) if is_tiny else (64, 224)
    images = torch.randn(batch, 3, side, side, device=device, dtype=dtype).to(memory_format=torch.channels_last)
    return inference(lambda: model(images))


def hifigan(device, is_tiny):
    """HiFi-GAN's vocoder (transformers' SpeechT5HifiGan): 8 spectrograms of 80 bands, 256 frames, float."""
    from transformers import SpeechT5HifiGan, SpeechT5HifiGanConfig

    model = made_on(device, torch.float32, lambda: SpeechT5HifiGan(SpeechT5HifiGanConfig())).eval()
    batch, frames = (1, 8) if is_tiny else (8, 256)
    spectrograms = torch.randn(batch, frames, 80, device=device)
    return inference(lambda: model(spectrograms))


def training(model, compute_loss):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def compute():
        optimizer.zero_grad(set_to_none=True)
        loss = compute_loss(model)
        loss.backward()
        return loss.detach()

    return Program(compute, optimizer.step, list(model.parameters()))


def labelled(device, batch, shape):
    images = torch.randn(batch, *shape, device=device)
    labels = torch.randint(0, 100, (batch,), device=device)
    return lambda model: functional.cross_entropy(model(images), labels)


def r3d18(device, is_tiny):
    """R3D-18's training: 8 clips of 16 frames of 112x112, float."""
    from torchvision.models.video import r3d_18

    model = r3d_18(num_classes=100).to(device)
    return training(model, labelled(device, 1 if is_tiny else 8, (3, 4 if is_tiny else 16, 112, 112)))


def deeplab(device, is_tiny):
    """DeepLabV3's training: 8 images of 320x320, 21 classes, float."""
    from torchvision.models.segmentation import deeplabv3_resnet50

    model = deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21).to(device)
    batch, side = (2, 64) if is_tiny else (8, 320)
    images = torch.randn(batch, 3, side, side, device=device)
    labels = torch.randint(0, 21, (batch, side, side), device=device)
    return training(model, lambda net: functional.cross_entropy(net(images)["out"], labels))


def alexnet(device, is_tiny):
    """AlexNet's training: 256 images of 224x224, float."""
    from torchvision.models import alexnet as make

    return training(make(num_classes=100).to(device), labelled(device, 2 if is_tiny else 256, (3, 224, 224)))


def resnet18(device, is_tiny):
    """ResNet-18's training: 128 images of 224x224, float."""
    from torchvision.models import resnet18 as make

    return training(make(num_classes=100).to(device), labelled(device, 2 if is_tiny else 128, (3, 224, 224)))


PROGRAMS = {
    "sdxl_decoder": sdxl_decoder,
    "wan_decoder": wan_decoder,
    "sd15_unet": sd15_unet,
    "conv3d": conv3d,
    "dynunet": dynunet,
    "resnet50": resnet50,
    "efficientnet": efficientnet,
    "stylegan": stylegan,
    "changing_sizes": changing_sizes,
    "server": server,
    "shapes": shapes,
    "resnet50_inference": resnet50_inference,
    "hifigan": hifigan,
    "r3d18": r3d18,
    "deeplab": deeplab,
    "alexnet": alexnet,
    "resnet18": resnet18,
}
TRAINING = ["dynunet", "resnet50", "efficientnet"]
