"""Data parallelism over unequal GPUs: each rank's part of a mini-batch, by the times that it takes.

    parts = ucudnn.shares(256, steps)                       # steps: {samples: ms} as timed on this rank
    loader = DataLoader(dataset, batch_sampler=ucudnn.ShareSampler(dataset, parts))
    ddp = ucudnn.weigh(DistributedDataParallel(model), parts)  # losses stay means over the rank's own samples

SyncBatchNorm counts samples since PyTorch 1.5; the gradients that it exchanges are weighed.
"""
import copy
import dataclasses
import functools
import math
import random

_NOTHING_LOST = 1.01  # equal ranks are timed to about a percent


def _distributed():
    """torch.distributed, where a process group is in use; else None."""
    try:
        import torch.distributed as distributed
    except ImportError:
        return None
    return distributed if distributed.is_available() and distributed.is_initialized() else None


def _known(name, times):
    known = sorted((int(samples), float(ms)) for samples, ms in times.items())
    if not known or known[0][0] < 1 or not all(math.isfinite(ms) and ms > 0 for _, ms in known):
        raise ValueError(f"{name}: {times} are no times in ms of some numbers of samples")
    return known


def _rest(known, convolutions):
    """What a step takes beside its convolutions, ms and ms for each sample: the line with the least squares."""
    points = [(samples, ms - convolutions[samples]) for samples, ms in known if samples < len(convolutions)]
    if not points:
        raise ValueError("steps: none is of at most the mini-batch's samples")
    mean_samples, mean_ms = (sum(each) / len(points) for each in zip(*points))
    variance = sum((samples - mean_samples) ** 2 for samples, _ in points)
    slope = sum((samples - mean_samples) * (ms - mean_ms) for samples, ms in points) / variance if variance else 0.0
    return mean_ms - slope * mean_samples, slope


def _table(steps, batch, memory, convolutions=None):
    """A step's ms by number of samples up to `batch`: between two timed sizes in proportion, and beyond them."""
    known = _known("steps", steps)
    if convolutions is not None:
        planned = _table(convolutions, batch, memory)
        fixed, each = _rest(known, planned)
        return [0.0] + [max(planned[samples] + fixed + each * samples, 0.0) for samples in range(1, batch + 1)]
    if len(known) == 1:
        known.insert(0, (0, 0.0))
    table = [0.0]
    for samples in range(1, batch + 1):
        after = next((i for i, (size, _) in enumerate(known) if size >= samples), len(known) - 1)
        (low, low_ms), (high, high_ms) = known[max(after - 1, 0)], known[max(after, 1)]
        ms = low_ms + (high_ms - low_ms) * (samples - low) / (high - low)
        table.append(max(ms, 0.0) if memory is None or samples <= memory else math.inf)
    return table


def _least(tables, batch, cost):
    """For each rank a number of samples, `batch` together, with the least of what `cost` folds."""
    best, ways = [0.0] + [math.inf] * batch, []
    for table in tables:
        row, way = [math.inf] * (batch + 1), [0] * (batch + 1)
        for part, ms in enumerate(table):
            if ms == math.inf:
                continue
            for total in range(part, batch + 1):
                folded = cost(best[total - part], part, ms)
                if folded < row[total]:
                    row[total], way[total] = folded, part
        best = row
        ways.append(way)
    parts, left = [], batch
    for way in reversed(ways):
        parts.insert(0, way[left])
        left -= way[left]
    return best[batch], parts


def _solve(tables, batch, exchange):
    """As src/optimizer/shares.hpp; of what is as fast as timings can tell the most equal parts."""
    slowest, parts = _least(tables, batch, lambda before, part, ms: max(before, ms))
    if slowest == math.inf:
        raise ValueError("the ranks' memory does not hold the mini-batch")
    alone = min(range(len(tables)), key=lambda rank: tables[rank][batch])
    if tables[alone][batch] < slowest + exchange:
        return [batch if rank == alone else 0 for rank in range(len(tables))]
    most = slowest * _NOTHING_LOST
    within = [[ms if ms <= most else math.inf for ms in table] for table in tables]
    return _least(within, batch, lambda before, part, ms: before + part * part)[1]


def shares(batch, steps, memory=None, exchange=0.0, group=None, convolutions=None):
    """The parts of a mini-batch of `batch` samples, a list by rank, for which the slowest rank's step is the shortest.

    steps: what timed steps of this rank took, a dict from numbers of samples to ms. Two sizes or three are enough; with
    the times of the parts that were found added, a second call corrects them. convolutions: what a step's convolutions
    take as planned, likewise by samples (planned_ms of `ucudnn shares --json`); then only what else a step takes is
    interpolated, and kernels' cliffs are seen. memory: the most samples that fit this
    rank. exchange: ms that a step exchanges gradients. All ranks of the process group call it, each with its own; where
    there is none, both are lists by device."""
    if batch < 1:
        raise ValueError(f"{batch} is no mini-batch")
    distributed = _distributed()
    if isinstance(steps, dict):
        steps, memory, convolutions = [steps], [memory], [convolutions]
        if distributed is not None:
            gathered = [None] * distributed.get_world_size(group)
            distributed.all_gather_object(gathered, (steps[0], memory[0], convolutions[0]), group)
            steps, memory, convolutions = zip(*gathered)
    memory = [None] * len(steps) if memory is None else memory
    convolutions = [None] * len(steps) if convolutions is None else convolutions
    for name, values in (("memory", memory), ("convolutions", convolutions)):
        if len(values) != len(steps):
            raise ValueError(f"{name}: {len(values)} values for {len(steps)} devices")
    return _solve([_table(one, batch, most, planned) for one, most, planned in zip(steps, memory, convolutions)],
                  batch, exchange)


def _parts(samples, shares_):
    """`samples` in the ratio of the shares, a sample at least for each that is not 0; fewer samples than such: None."""
    total, taking = sum(shares_), sum(1 for share in shares_ if share > 0)
    if samples < taking:
        return None
    parts = [max(samples * share // total, 1) if share > 0 else 0 for share in shares_]
    lack = [samples * share / total - part for share, part in zip(shares_, parts)]
    while sum(parts) != samples:
        step = 1 if sum(parts) < samples else -1
        rank = max((rank for rank in range(len(parts)) if parts[rank] > (1 if step < 0 else 0)),
                   key=lambda rank: step * lack[rank])
        parts[rank] += step
        lack[rank] -= step
    return parts


class ShareSampler:
    """A rank's batches of indices of `dataset`, for DataLoader(batch_sampler=...): as many on each rank, so that none
    waits for another for ever. Together the ranks' batches are those of one process with the whole mini-batch.

    The last mini-batch, if it is smaller, is shared in the same ratio; one of fewer samples than ranks is left out, and
    any smaller one with drop_last."""

    def __init__(self, dataset, shares, rank=None, shuffle=True, seed=0, drop_last=False):
        if rank is None:
            distributed = _distributed()
            rank = 0 if distributed is None else distributed.get_rank()
        self.shares, self.rank = [int(share) for share in shares], rank
        if min(self.shares) < 0 or not 0 <= rank < len(self.shares):
            raise ValueError(f"{shares} has no share for rank {rank}")
        if self.shares[rank] == 0:
            raise ValueError(f"rank {rank} has no samples: leave its device out of the process group")
        self.length, self.shuffle, self.seed, self.drop_last, self.epoch = len(dataset), shuffle, seed, drop_last, 0

    def set_epoch(self, epoch):
        """Another order of the samples in each; the same on all ranks."""
        self.epoch = epoch

    def _sizes(self):
        """Of each mini-batch, what the ranks have of it."""
        whole, rest = divmod(self.length, sum(self.shares))
        last = None if self.drop_last or rest == 0 else _parts(rest, self.shares)
        return [self.shares] * whole + ([] if last is None else [last])

    def __len__(self):
        return len(self._sizes())

    def __iter__(self):
        order = list(range(self.length))
        if self.shuffle:
            random.Random(f"{self.seed} {self.epoch}").shuffle(order)
        begin = 0
        for sizes in self._sizes():
            own = begin + sum(sizes[:self.rank])
            yield order[own:own + sizes[self.rank]]
            begin += sum(sizes)


class _Weights:
    """What a sample of this rank weighs: its part of the mean over all ranks' samples, times the ranks."""

    def __init__(self, distributed, group):
        self.distributed, self.group, self.pending = distributed, group, None

    def count(self, module, inputs, named=None):
        """Before a forward pass: adds up the ranks' samples, while it runs."""
        import torch
        self.pending = None
        if not module.training or not torch.is_grad_enabled():
            return
        tensor = next((value for value in (*inputs, *(named or {}).values()) if torch.is_tensor(value)), None)
        if tensor is None:
            raise ValueError("weigh: the first tensor among the inputs tells how many samples there are; there is none")
        own = tensor.shape[0]
        total = torch.full((), float(own), dtype=torch.float64, device=next(module.parameters()).device)
        work = self.distributed.all_reduce(total, group=self.group, async_op=True)
        self.pending = _Weight(own * self.distributed.get_world_size(self.group), total, work)

    def scale(self, _, __, outputs):
        """After it: the gradients of what it returns are weighed, before anything adds them up."""
        if self.pending is None:
            return outputs
        weight, weighed = self.pending, _weighed().apply
        return _map_tensors(lambda t: weighed(t, weight) if t.requires_grad else t, outputs)


@dataclasses.dataclass
class _Weight:
    factor: int
    total: object  # a tensor, once work is done
    work: object

    def of(self, gradient):
        self.work.wait()  # of NCCL: the stream waits, and not the host
        return gradient * (self.factor / self.total).to(gradient.device)


@functools.lru_cache(maxsize=None)
def _weighed():
    """The function that returns its tensor, and weighs the gradient: defined once PyTorch is there."""
    import torch

    class Weighed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor, weight):
            ctx.weight = weight
            return tensor.view_as(tensor)

        @staticmethod
        def backward(ctx, gradient):
            return ctx.weight.of(gradient), None

    return Weighed


def _map_tensors(function, value):
    """value, a module's output, with function(tensor) for each tensor in it."""
    import torch
    if torch.is_tensor(value):
        return function(value)
    if isinstance(value, tuple):
        parts = [_map_tensors(function, each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_map_tensors(function, each) for each in value]
    if isinstance(value, dict):  # some are dataclasses, too
        mapped = copy.copy(value)
        for key, each in value.items():
            mapped[key] = _map_tensors(function, each)
        return mapped
    if dataclasses.is_dataclass(value):
        mapped = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(mapped, field.name, _map_tensors(function, getattr(value, field.name)))
        return mapped
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"weigh: the module returns a {type(value).__name__}, in which tensors can't be found")


def weigh(ddp, shares=None):
    """Makes a DistributedDataParallel average gradients over samples and not over ranks, whose parts may differ: then
    they are those of one process with the whole mini-batch. The loss is a mean over the rank's own samples, as usual.

    The gradient of what the module returns is multiplied by b_g G / N: the rank's samples, the ranks, all ranks'
    samples, whatever the last mini-batch is. Layers that exchange gradients on the way back, as SyncBatchNorm does,
    see weighed ones, and DDP's mean over the ranks is the one over the samples. How many samples there are the first
    tensor among the inputs tells. shares, if given, are one for each rank, which is checked. Returns the module."""
    distributed = _distributed()
    if distributed is None:
        raise RuntimeError("weigh: there is no process group")
    ranks = distributed.get_world_size(ddp.process_group)
    if shares is not None and len(shares) != ranks:
        raise ValueError(f"weigh: {len(shares)} shares for {ranks} ranks")
    weights = _Weights(distributed, ddp.process_group)
    try:
        ddp.register_forward_pre_hook(weights.count, with_kwargs=True)
    except TypeError:  # before PyTorch 2.0
        ddp.register_forward_pre_hook(weights.count)
    ddp.register_forward_hook(weights.scale)
    return ddp
