#!/usr/bin/env python3
"""ResNet-18 over unequal GPUs: what a data-parallel program changes is marked with #+, and what it gains is printed.

    torchrun --nproc-per-node 2 misc/examples/ddp_shares.py [--batch 256] [--multiprocessors 132,64] [--math tf32]
                                                            [--json FILE]

With --multiprocessors each rank works on so many of its GPU's multiprocessors (a CUDA green context): emulated, as
memory bandwidth stays whole. Needs PyTorch with torchvision, and `ucudnn` to be installed or misc/python in PYTHONPATH.
"""
import argparse
import copy
import ctypes
import datetime
import itertools
import json
import os
import statistics

import torch
import torch.distributed as dist
import ucudnn  #+
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import resnet18

CLASSES = 1000


class Images(torch.utils.data.Dataset):
    """Random ones, in the GPU's memory: the loader is not what is compared."""

    def __init__(self, count, size, device):
        generator = torch.Generator(device).manual_seed(1)
        self.images = torch.randn(count, 3, size, size, generator=generator, device=device)
        self.labels = torch.randint(CLASSES, (count,), generator=generator, device=device)

    def __len__(self):
        return len(self.labels)

    def __getitems__(self, indices):
        return self.images[indices], self.labels[indices]


def partial_stream(device, multiprocessors):
    """A stream whose kernels run on so many multiprocessors."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def check(result):
        if result != 0:
            raise RuntimeError(f"the driver can't divide device {device}: error {result}")

    class Resource(ctypes.Structure):  # CUdevResource, and room for a later one's
        _fields_ = [("type", ctypes.c_int), ("padding", ctypes.c_ubyte * 92), ("rest", ctypes.c_ubyte * 416)]

    number, whole, part, remaining = ctypes.c_int(), Resource(), Resource(), Resource()
    description, context, stream, groups = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint(1)
    multiprocessor_type, default_stream, non_blocking = 1, 1, 1
    check(cuda.cuDeviceGet(ctypes.byref(number), device))
    check(cuda.cuDeviceGetDevResource(number, ctypes.byref(whole), multiprocessor_type))
    check(cuda.cuDevSmResourceSplitByCount(ctypes.byref(part), ctypes.byref(groups), ctypes.byref(whole),
                                           ctypes.byref(remaining), 0, ctypes.c_uint(multiprocessors)))
    check(cuda.cuDevResourceGenerateDesc(ctypes.byref(description), ctypes.byref(part), 1))
    check(cuda.cuGreenCtxCreate(ctypes.byref(context), description, number, default_stream))
    check(cuda.cuGreenCtxStreamCreate(ctypes.byref(stream), context, non_blocking, 0))
    return torch.cuda.ExternalStream(stream.value, device=device)


def step(model, images, labels, optimizer=None):
    model.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    if optimizer is not None:
        optimizer.step()


def timed_ms(count, run):
    """A step's ms, the median of `count` behind two that are not counted."""
    times = []
    for i in range(count + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[2:])


def alone_ms(model, data, batch, count):
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images, labels = data.__getitems__(list(range(batch)))
    return timed_ms(count, lambda: step(model, images, labels, optimizer))


def parallel_ms(model, data, parts, weighs, count):
    """Of a program's loop: what the loader deals out, SyncBatchNorm, the exchange, the optimizer."""
    module = torch.nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model))
    ddp = DistributedDataParallel(module, device_ids=[data.images.device.index])
    if weighs:
        ucudnn.weigh(ddp, parts)  #+
    optimizer = torch.optim.SGD(ddp.parameters(), lr=1e-3)
    sampler = ucudnn.ShareSampler(data, parts)  #+
    loader = torch.utils.data.DataLoader(data, batch_sampler=sampler, collate_fn=lambda pair: pair)  #+
    batches = itertools.cycle(list(loader))
    dist.barrier()
    slowest = [None] * len(parts)
    dist.all_gather_object(slowest, timed_ms(count, lambda: step(ddp, *next(batches), optimizer)))
    return max(slowest)


def state_of(module):
    gradients = torch.cat([p.grad.flatten() for p in module.parameters()])
    running = torch.cat([b.flatten().float() for name, b in module.named_buffers() if "running" in name])
    return gradients, running


def first_step(model, data, parts, rank):
    """The first step against one GPU's with the whole batch: relative distances of the gradients and of the running
    statistics, the relative difference of the gradients' norms, and the distance that one GPU has to itself where the
    samples come the other way round (rounding alone)."""
    ddp = DistributedDataParallel(torch.nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model)),
                                  device_ids=[data.images.device.index])
    ucudnn.weigh(ddp, parts)
    own = next(iter(ucudnn.ShareSampler(data, parts, shuffle=False)))
    step(ddp, *data.__getitems__(own))
    alone, again = copy.deepcopy(model), copy.deepcopy(model)
    whole = list(range(sum(parts)))
    step(alone, *data.__getitems__(whole))
    step(again, *data.__getitems__(whole[::-1]))
    torch.cuda.synchronize()
    distance = lambda a, b: ((a - b).norm() / b.norm()).item()  # noqa: E731
    (gradients, running), (expected, statistics_), (reversed_, _) = map(state_of, (ddp.module, alone, again))
    return {"gradient_distance": distance(gradients, expected),
            "gradient_norm_difference": abs(gradients.norm().item() / expected.norm().item() - 1),
            "rounding_distance": distance(reversed_, expected),
            "rounding_norm_difference": abs(reversed_.norm().item() / expected.norm().item() - 1),
            "statistics_distance": distance(running, statistics_)}


def multiprocessors_of(options, ranks):
    if options.multiprocessors is not None:
        return [int(count) for count in options.multiprocessors.split(",")]
    return [torch.cuda.get_device_properties(rank).multi_processor_count for rank in range(ranks)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--size", type=int, default=224, help="of the images")
    parser.add_argument("--multiprocessors", help="of each rank, as 132,64")
    parser.add_argument("--memory", help="the most samples of each rank, as 256,80")
    parser.add_argument("--math", choices=("tf32", "fma"), default="tf32")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", help="write the results there")
    options = parser.parse_args()
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    of_rank = lambda text: None if text is None else int(text.split(",")[rank])  # noqa: E731
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.math == "tf32"
    torch.manual_seed(1)
    model = resnet18(num_classes=CLASSES).to(rank)
    data = Images(2 * options.batch, options.size, torch.device("cuda", rank))
    stream = torch.cuda.current_stream()
    multiprocessors, memory = of_rank(options.multiprocessors), of_rank(options.memory)
    if multiprocessors is not None and \
            multiprocessors < torch.cuda.get_device_properties(rank).multi_processor_count:
        stream = partial_stream(rank, multiprocessors)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        most = options.batch if memory is None else min(memory, options.batch)
        sizes = [most * part // 4 for part in (1, 2, 3, 4)]
        steps = {samples: alone_ms(model, data, samples, 5) for samples in sizes}  #+
        parts = ucudnn.shares(options.batch, steps, memory=memory)  #+
        steps[parts[rank]] = alone_ms(model, data, parts[rank], 5)  #+ corrected once
        parts = ucudnn.shares(options.batch, steps, memory=memory)  #+
        all_steps = [None] * dist.get_world_size()
        dist.all_gather_object(all_steps, steps)
        ranks = len(parts)
        equal = [options.batch // ranks + (r < options.batch % ranks) for r in range(ranks)]
        found_ms = parallel_ms(model, data, parts, True, options.steps)
        equal_ms = None if memory is not None else parallel_ms(model, data, equal, False, options.steps)
        first = first_step(model, data, parts, rank)
    if rank == 0:
        alone, alone_ms_ = max(all_steps[0]), all_steps[0][max(all_steps[0])]
        speeds = sum(max(one) / one[max(one)] for one in all_steps)
        result = {
            "machine": {"device": torch.cuda.get_device_name(rank), "torch": torch.__version__,
                        "cudnn": torch.backends.cudnn.version(),
                        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")},
            "math": options.math, "batch": options.batch, "size": options.size, "ranks": ranks,
            "multiprocessors": multiprocessors_of(options, ranks), "memory": options.memory,
            "steps_ms": all_steps, "shares": parts, "step_ms": found_ms, "equal_shares": equal, "equal_ms": equal_ms,
            "alone_samples": alone, "alone_ms": alone_ms_,
            "speedup": alone_ms_ / found_ms * options.batch / alone,
            "part_of_speeds": options.batch / found_ms / speeds,
            **first}
        print(f"parts {parts}, of steps {[{s: round(ms, 2) for s, ms in one.items()} for one in all_steps]}")
        print(f"a step of {options.batch}: {found_ms:.2f} ms; rank 0 alone with {alone}: {alone_ms_:.2f} ms"
              f" ({result['speedup']:.2f} times); {result['part_of_speeds']:.3f} of the sum of the speeds alone")
        if equal_ms is not None:
            print(f"equal parts {equal}: {equal_ms:.2f} ms, {equal_ms / found_ms:.2f} times")
        print(f"first step against one GPU: gradients {first['gradient_distance']:.1e}, their norms"
              f" {first['gradient_norm_difference']:.1e}, running statistics {first['statistics_distance']:.1e};"
              f" one GPU against itself, samples reversed: {first['rounding_distance']:.1e},"
              f" {first['rounding_norm_difference']:.1e}")
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(result, file, indent=2)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
