"""The convolutions that a program of misc/scripts/program_models.py hands to PyTorch, beside a recorded list of them."""

import collections
import contextlib
import csv
import re

import torch
from torch._prims_common import suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import program_models

TYPES = {torch.half: "half", torch.bfloat16: "bfloat16", torch.float32: "float"}


def sizes(values):
    return ",".join(str(each) for each in values)


class Recorder(TorchDispatchMode):
    """Counts a step's convolutions: forward ones, and each gradient that is asked for."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        if function is torch.ops.aten.convolution.default:
            x, w, _, *rest = arguments
            self.calls[self.text(x, w, result, rest)] += 1
        elif function is torch.ops.aten.convolution_backward.default:
            y, x, w, _, *rest, mask = arguments
            self.calls[self.text(x, w, y, rest)] += sum(mask[:2])
        return result

    @staticmethod
    def text(x, w, y, rest):
        stride, padding, dilation, is_transposed, _, groups = rest
        # As PyTorch chooses for cuDNN: both tensors and the output get the layout that one of them has.
        is_last = any(suggest_memory_format(each) != torch.contiguous_format for each in (x, w))
        if is_transposed:  # for cuDNN the gradient of a convolution from y to x
            x, y = y, x
        return (
            f"{TYPES[x.dtype]} {'nhwc' if is_last else 'nchw'} "
            f"x={sizes(x.shape[1:])} w={sizes(w.shape)} y={sizes(y.shape[1:])} "
            f"pad={sizes(padding)} stride={sizes(stride)} dilation={sizes(dilation)} groups={groups} N={x.shape[0]}"
        )


def recorded(file):
    """The calls of a file in the form of ../shared/data/programs, in the words of the Recorder."""
    calls = collections.Counter()
    with open(file, encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            fields = dict(word.split("=", 1) for word in row["convolution"].split() if "=" in word)
            kind, x = re.fullmatch(r"(\w+):\*,([\d,]+)/.*", fields["x"]).groups()
            w, layout = re.fullmatch(r"\w+:([\d,]+)/(\w+)", fields["w"]).groups()
            y = re.fullmatch(r"\w+:\*,([\d,]+)/.*", fields["y"]).group(1)
            rest = " ".join(f"{name}={fields[name]}" for name in ("pad", "stride", "dilation", "groups", "N"))
            calls[f"{kind} {layout} x={x} w={w} y={y} {rest}"] += round(float(row["calls_per_step"]))
    return calls


@contextlib.contextmanager
def without_gpu():
    """Tensors have no data, and autocast for CUDA works."""
    available = torch.cuda.amp.common.amp_definitely_not_available
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    try:
        with FakeTensorMode():
            yield
    finally:
        torch.cuda.amp.common.amp_definitely_not_available = available


def calls_of(name):
    """Those of a program's first step."""
    recorder = Recorder()
    has_gpu = torch.cuda.is_available()
    # Without a GPU, the gradients of CUDA's tensors can't be had, data or no data.
    device = "cuda" if has_gpu or name not in program_models.TRAINING else "cpu"
    with contextlib.nullcontext() if has_gpu else without_gpu():
        program = program_models.PROGRAMS[name](device, False)
        with recorder:
            program.compute()
    return recorder.calls


def check(program, file):
    """Prints what differs; 0 if nothing does."""
    here, there = calls_of(program), recorded(file)
    for text in sorted(here.keys() | there.keys()):
        if here[text] != there[text]:
            print(f"{program}: {here[text]} calls, in the file {there[text]}: {text}")
    differing = sum(here[text] != there[text] for text in here.keys() | there.keys())
    calls = sum(here.values())
    print(f"{program}: {len(here)} convolutions, {calls} calls; {differing} differ from {file}")
    return 1 if differing else 0
