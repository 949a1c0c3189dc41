#!/usr/bin/env python3
"""Tests misc/python/ucudnn/parallel.py, with PyTorch on the CPU (gloo) where there is one: parallel_test.py MODULES"""
import itertools
import os
import random
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1) if len(sys.argv) > 1 else "misc/python")
import ucudnn  # noqa: E402
from ucudnn import parallel  # noqa: E402

try:
    import torch
    import torch.distributed.nn
    import torch.multiprocessing as multiprocessing
    from torch.nn.parallel import DistributedDataParallel
except ImportError:
    torch = None

FEATURES, CLASSES = 6, 3


class Shares(unittest.TestCase):
    def test_go_by_speed(self):
        self.assertEqual(ucudnn.shares(256, [{64: 64, 256: 256}, {64: 192, 256: 768}]), [192, 64])

    def test_count_what_does_not_depend_on_the_batch(self):
        # 10 + b = 2 b'
        self.assertEqual(ucudnn.shares(100, [{10: 20, 20: 30}, {10: 20, 20: 40}]), [63, 37])

    def test_are_equal_where_timings_do_not_tell(self):
        self.assertEqual(ucudnn.shares(256, [{256: 100}, {256: 100.5}]), [128, 128])

    def test_keep_within_memory(self):
        self.assertEqual(ucudnn.shares(256, [{8: 8}, {8: 8}], memory=[None, 80]), [176, 80])
        with self.assertRaisesRegex(ValueError, "memory"):
            ucudnn.shares(256, [{8: 8}, {8: 8}], memory=[100, 80])

    def test_leave_out_who_costs_more_than_he_brings(self):
        self.assertEqual(ucudnn.shares(64, [{1: 1}, {1: 1}], exchange=40), [64, 0])

    def test_a_second_call_corrects_them(self):
        steps = [{64: 64, 256: 256}, {64: 64, 256: 256}]
        steps[0][128] = 256  # a cliff that nobody had timed
        parts = ucudnn.shares(256, steps)
        self.assertLess(parts[0], 100)

    def test_count_convolutions_as_planned_and_the_rest_of_timed_steps(self):
        planned = {64: 64, 128: 128, 129: 400, 256: 800}  # a cliff behind 128 samples
        steps = [{64: 64 + 10 + 6.4, 128: 128 + 10 + 12.8}, {64: 64 + 10 + 6.4, 128: 128 + 10 + 12.8}]
        self.assertEqual(ucudnn.shares(256, steps, convolutions=[planned, planned]), [128, 128])
        # The second has twice the rest: b + 10 + b / 10 = b' + 10 + b' 1.1
        steps[1] = {64: 64 + 10 + 70.4, 128: 128 + 10 + 140.8}
        straight = {128: 128, 256: 256}
        self.assertEqual(ucudnn.shares(256, steps, convolutions=[straight, straight]), [168, 88])
        with self.assertRaisesRegex(ValueError, "convolutions"):
            ucudnn.shares(256, steps, convolutions=[straight])

    def test_are_the_best_of_all(self):
        rng = random.Random(46)
        for _ in range(300):
            batch = rng.randint(1, 8)
            tables = [[0.0] + [float(rng.randint(1, 9) * 10) for _ in range(batch)] for _ in range(rng.randint(1, 3))]
            exchange = rng.choice([0, 10])

            def step(parts):
                slowest = max(table[part] for table, part in zip(tables, parts))
                return slowest + (exchange if sum(1 for part in parts if part) > 1 else 0)

            every = (p for p in itertools.product(range(batch + 1), repeat=len(tables)) if sum(p) == batch)
            found = parallel._solve(tables, batch, exchange)
            self.assertEqual(sum(found), batch)
            self.assertEqual(step(found), min(map(step, every)))

    def test_bad_times_are_refused(self):
        for steps in ({}, {0: 1}, {4: 0}, {4: float("nan")}):
            with self.assertRaises(ValueError):
                ucudnn.shares(8, [steps])


class Sampler(unittest.TestCase):
    def batches(self, length, shares, **options):
        return [list(ucudnn.ShareSampler(range(length), shares, rank=rank, **options)) for rank in range(len(shares))]

    def test_each_sample_comes_once_and_each_rank_steps_as_often(self):
        for length, shares in ((1000, [171, 85]), (20, [3, 1, 6]), (7, [5, 2]), (65, [16, 8, 8])):
            ranks = self.batches(length, shares)
            self.assertEqual(len({len(batches) for batches in ranks}), 1)
            seen = [index for batches in ranks for batch in batches for index in batch]
            self.assertEqual(sorted(seen), list(range(length)) if len(seen) == length else sorted(set(seen)))
            self.assertGreater(len(seen), length - len(shares))
            for rank, batches in enumerate(ranks):
                self.assertEqual(len(ucudnn.ShareSampler(range(length), shares, rank=rank)), len(batches))
                self.assertEqual({len(batch) for batch in batches[:-1]} - {shares[rank]}, set())
                self.assertTrue(all(batches))

    def test_the_last_has_the_same_ratio(self):
        last = [batches[-1] for batches in self.batches(256 + 128, [192, 64])]
        self.assertEqual([len(batch) for batch in last], [96, 32])
        last = [batches[-1] for batches in self.batches(256 + 2, [252, 4])]
        self.assertEqual([len(batch) for batch in last], [1, 1])

    def test_together_they_are_one_process_batches(self):
        ranks = self.batches(100, [20, 10], seed=3)
        alone = self.batches(100, [30], seed=3)[0]
        self.assertEqual([first + second for first, second in zip(*ranks)], alone)

    def test_epochs_differ_and_ranks_agree(self):
        sampler = ucudnn.ShareSampler(range(64), [4, 4], rank=0)
        first = list(sampler)
        self.assertEqual(first, list(sampler))
        sampler.set_epoch(1)
        self.assertNotEqual(first, list(sampler))

    def test_drop_last_and_no_shuffle(self):
        self.assertEqual(self.batches(10, [3, 1], shuffle=False, drop_last=True)[0], [[0, 1, 2], [4, 5, 6]])

    def test_a_rank_without_samples_is_refused(self):
        with self.assertRaisesRegex(ValueError, "rank 1"):
            ucudnn.ShareSampler(range(8), [4, 0], rank=1)


if torch is not None:
    class SampleNorm(torch.nn.Module):
        """Over the samples of all ranks, as SyncBatchNorm, which has no CPU form: gradients cross ranks, too."""

        def forward(self, x):
            sums = torch.stack([x.sum(0), (x * x).sum(0), torch.full_like(x[0], float(len(x)))])
            if torch.distributed.is_initialized():
                sums = torch.distributed.nn.all_reduce(sums)
            mean, square = sums[0] / sums[2], sums[1] / sums[2]
            return (x - mean) / (square - mean * mean + 1e-3).sqrt()

    class Two(torch.nn.Module):
        """Returns what another output is made from, too, in a nest."""

        def __init__(self, body, head):
            super().__init__()
            self.body, self.head = body, head

        def forward(self, x):
            features = self.body(x)
            return {"logits": self.head(features), "rest": (features, None)}


def model(kind="plain"):
    torch.manual_seed(1)
    body = torch.nn.Sequential(torch.nn.Linear(FEATURES, 16), torch.nn.Tanh(), *[SampleNorm()] * (kind == "norm"))
    head = torch.nn.Linear(16, CLASSES)
    return (Two(body, head) if kind == "two" else torch.nn.Sequential(body, head)).double()


def data(length):
    generator = torch.Generator().manual_seed(2)
    return (torch.randn(length, FEATURES, generator=generator, dtype=torch.float64),
            torch.randint(CLASSES, (length,), generator=generator))


def loss_of(outputs, labels):
    if torch.is_tensor(outputs):
        return torch.nn.functional.cross_entropy(outputs, labels)
    return loss_of(outputs["logits"], labels) + (outputs["rest"][0] ** 2).mean()


def train(module, batches, inputs, labels):
    """The gradients of each step; the loss is a mean, as usual."""
    gradients = []
    for batch in batches:
        module.zero_grad()
        loss_of(module(inputs[batch]), labels[batch]).backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in module.parameters()]).clone())
    return gradients


def rank_main(rank, shares, length, file, is_weighed, kind, results):
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=len(shares))
    inputs, labels = data(length)
    # As a program finds them: from steps that each rank has timed by itself.
    found = ucudnn.shares(sum(shares), {1: 1 / shares[rank], 2: 2 / shares[rank]})
    assert found == shares, found
    ddp = DistributedDataParallel(model(kind))
    if is_weighed:
        ucudnn.weigh(ddp, shares)
    loader = torch.utils.data.DataLoader(range(length), batch_sampler=ucudnn.ShareSampler(range(length), shares))
    results.put((rank, [g.tolist() for g in train(ddp, loader, inputs, labels)]))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@unittest.skipIf(torch is None, "there is no PyTorch")
class Gradients(unittest.TestCase):
    """Gradients are compared, not losses: a mean of means has the right loss to look at, too."""

    def run_ranks(self, shares, length, is_weighed=True, kind="plain"):
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "store")
            ranks = [context.Process(target=rank_main, args=(rank, shares, length, file, is_weighed, kind, results))
                     for rank in range(len(shares))]
            for process in ranks:
                process.start()
            found = dict(results.get(timeout=120) for _ in ranks)
            for process in ranks:
                process.join(60)
                self.assertEqual(process.exitcode, 0)
        for rank in found:
            self.assertEqual(found[rank], found[0])
        return [torch.tensor(gradients, dtype=torch.float64) for gradients in found[0]]

    def one_process(self, shares, length, kind):
        return train(model(kind), list(ucudnn.ShareSampler(range(length), [sum(shares)], rank=0)), *data(length))

    def distances(self, shares, length, kind="plain", **options):
        ranks, alone = self.run_ranks(shares, length, kind=kind, **options), self.one_process(shares, length, kind)
        self.assertEqual(len(ranks), len(alone))
        return [((a - b).norm() / b.norm()).item() for a, b in zip(ranks, alone)]

    def test_are_those_of_one_process_to_the_last_batch(self):
        # 96 + 31, which no whole numbers share in the ratio 3 : 1.
        distances = self.distances([24, 8], 96 + 31)
        self.assertEqual(len(distances), 4)
        self.assertLess(max(distances), 1e-12)

    def test_where_layers_exchange_gradients_are_those_of_one_process(self):
        self.assertLess(max(self.distances([24, 8], 96 + 31, kind="norm")), 1e-12)

    def test_of_several_outputs_are_those_of_one_process(self):
        self.assertLess(max(self.distances([24, 8], 64, kind="two")), 1e-12)

    def test_an_output_that_hides_its_tensors_is_refused(self):
        with self.assertRaisesRegex(ValueError, "object"):
            parallel._map_tensors(lambda tensor: tensor, [object()])

    def test_without_weights_are_another_mean(self):
        # The test above can fail.
        self.assertGreater(max(self.distances([24, 8], 64, is_weighed=False)), 1e-2)

    def test_of_equal_ranks_are_as_before(self):
        self.assertLess(max(self.distances([8, 8], 48)), 1e-12)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"] + sys.argv[1:])
