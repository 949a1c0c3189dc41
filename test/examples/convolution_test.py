"""ucudnn.convolution on arrays of ctypes against sums of products; with PyTorch, its functions and gradients, too.

usage: test/examples/convolution_test.py, with misc/python in PYTHONPATH and libucudnn.so where the loader looks
"""
import ctypes
import itertools
import math
import random
import sys
import threading

from ucudnn import convolution
from ucudnn.convolution import Array, Geometry


def array(sizes):
    """A packed array of random floats, and what holds it."""
    count = math.prod(sizes)
    held = (ctypes.c_float * count)(*(random.uniform(-1, 1) for _ in range(count)))
    return Array(ctypes.addressof(held), sizes, "float32"), held


def places(sizes):
    return itertools.product(*(range(size) for size in sizes))


def at(tensor, index):
    place = 0
    for i, size in zip(index, tensor.sizes):
        place = place * size + i
    return place


def pairs(x, w, y, geometry):
    """(x, w, y): places in memory of all products."""
    for place in places(y.sizes):
        n, k = place[:2]
        group = k // (w.sizes[0] // geometry.groups)
        for taps in places(w.sizes[1:]):
            source = [p * s - pad + t * d for p, s, pad, t, d in
                      zip(place[2:], geometry.stride, geometry.padding, taps[1:], geometry.dilation)]
            if all(0 <= i < size for i, size in zip(source, x.sizes[2:])):
                yield (at(x, (n, group * w.sizes[1] + taps[0], *source)), at(w, (k, *taps)), at(y, place))


def expect_near(what, expected, found):
    worst = max(abs(a - b) for a, b in zip(expected, found))
    if worst > 1e-4:
        sys.exit(f"{what}: off by {worst}")


def test_arrays(x_sizes, w_sizes, geometry):
    (x, x_held), (w, w_held) = array(x_sizes), array(w_sizes)
    y, y_held = array(geometry.output_sizes(x_sizes, w_sizes))
    bias, bias_held = array((w_sizes[0],))
    products = list(pairs(x, w, y, geometry))
    per_filter = math.prod(y.sizes[2:])

    sums = [0.0] * len(y_held)
    for i, j, k in products:
        sums[k] += x_held[i] * w_held[j]
    convolution.forward(x, w, None, y, geometry)
    expect_near("forward", sums, y_held)
    convolution.forward(x, w, bias, y, geometry, relu=True)
    biased = [max(0.0, value + bias_held[k // per_filter % w_sizes[0]]) for k, value in enumerate(sums)]
    expect_near("forward with bias and relu", biased, y_held)

    dx, dx_held = array(x_sizes)
    dw, dw_held = array(w_sizes)
    convolution.backward_data(w, y, dx, geometry)
    convolution.backward_filter(x, y, dw, geometry)
    to_x, to_w = [0.0] * len(x_held), [0.0] * len(w_held)
    for i, j, k in products:
        to_x[i] += y_held[k] * w_held[j]
        to_w[j] += y_held[k] * x_held[i]
    expect_near("backward data", to_x, dx_held)
    expect_near("backward filter", to_w, dw_held)


def expect_refusal(error, call):
    try:
        call()
    except error:
        return
    sys.exit(f"no {error.__name__}")


def test_results(torch, ucudnn):
    """`out`: some channels of one sample, which others beside them survive."""
    x, w, bias = torch.randn(1, 3, 6, 5, 4), torch.randn(2, 3, 3, 3, 3), torch.randn(2)
    whole = torch.full((1, 6, 6, 5, 4), 7.0)
    for activation in (None, "relu"):
        y = ucudnn.conv3d(x, w, bias, padding=1, activation=activation, out=whole[:, 2:4])
        expected = torch.nn.functional.conv3d(x, w, bias, padding=1)
        torch.testing.assert_close(y, expected if activation is None else expected.relu(), rtol=1e-3, atol=1e-3)
        assert y.data_ptr() == whole[:, 2:4].data_ptr() and (whole[:, :2] == 7).all() and (whole[:, 4:] == 7).all()
    for out in (whole, whole[:, ::3], whole[:, 2:4].double()):
        expect_refusal(ValueError, lambda: ucudnn.conv3d(x, w, padding=1, out=out))
    for read in (x[:, :2], x[:, 1:]):
        expect_refusal(ValueError, lambda: ucudnn.conv3d(x, w, padding=1, out=read))
    factor = torch.ones_like(y, requires_grad=True)
    product = (factor * y).sum()
    ucudnn.conv3d(x, w, padding=1, out=y)
    expect_refusal(RuntimeError, product.backward)  # it needs the values that were there
    expect_refusal(RuntimeError, lambda: ucudnn.conv3d(x, w, padding=1, out=factor))
    expect_refusal(RuntimeError, lambda: ucudnn.conv3d(x, w.requires_grad_(), padding=1, out=whole[:, 2:4]))


def test_refusals(torch, ucudnn):
    x, w = torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 3)
    for bias in (torch.randn(2), torch.randn(5), torch.randn(4, 1)):
        expect_refusal(ValueError, lambda: ucudnn.conv2d(x, w, bias))
    expect_refusal(ValueError, lambda: ucudnn.conv2d(x[:0], w))
    expect_refusal(ValueError, lambda: ucudnn.conv2d(x.to("meta"), w))
    expect_refusal(ValueError, lambda: ucudnn.conv2d(x, w, out=torch.empty(2, 4, 4, 3, device="meta")))


def test_negated_views(torch, ucudnn):
    """Their memory has the numbers without the sign."""
    x, w, bias = torch.randn(2, 3, 6, 5), torch.randn(4, 3, 3, 3), torch.randn(4)
    expected = torch.nn.functional.conv2d(x, w, bias)
    negated = [torch._neg_view(-tensor) for tensor in (x, w, bias)]
    assert all(tensor.is_neg() and tensor.is_contiguous() for tensor in negated)
    torch.testing.assert_close(ucudnn.conv2d(*negated), expected, rtol=1e-3, atol=1e-3)
    expect_refusal(ValueError, lambda: ucudnn.conv2d(x, w, out=torch._neg_view(torch.empty_like(expected))))


def test_threads():
    """A thread's handle goes with it."""
    made, destroyed = [], []

    class Library(convolution._Library):
        def __init__(self):
            super().__init__()
            made.append(self.handle.value)

        def __del__(self):
            super().__del__()
            destroyed.append(self.handle.value)

    before, convolution._Library = convolution._Library, Library
    geometry = Geometry((1, 1), (0, 0), (1, 1))
    threads = [threading.Thread(target=geometry.output_sizes, args=((1, 1, 5, 5), (1, 1, 3, 3))) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    convolution._Library = before
    assert len(made) == 3 and sorted(made) == sorted(destroyed), (made, destroyed)


def test_transposed(torch, ucudnn):
    for ours, theirs, sizes in ((ucudnn.conv_transpose2d, torch.nn.functional.conv_transpose2d, (2, 4, 7, 6)),
                                (ucudnn.conv_transpose3d, torch.nn.functional.conv_transpose3d, (1, 4, 5, 4, 3))):
        taps = (len(sizes) - 2) * (3,)
        for shape in ({"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
                      {"padding": 1, "dilation": 2}):
            tensors = [torch.randn(size, requires_grad=True) for size in (sizes, (4, 2, *taps))]
            results = []
            for function in (ours, theirs):
                y = function(*tensors, **shape)
                results.append([y, *torch.autograd.grad((y * y).sum(), tensors)])
            for mine, other in zip(*results):
                torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-3)
        x, w = (tensor.detach() for tensor in tensors)
        out = torch.empty_like(theirs(x, w))
        assert ours(x, w, out=out) is out
        torch.testing.assert_close(out, theirs(x, w), rtol=1e-3, atol=1e-3)
        expect_refusal(ValueError, lambda: ours(x, w, output_padding=1))
        expect_refusal(ValueError, lambda: ours(x[:, :3], w))


def test_torch():
    import torch
    import ucudnn
    test_results(torch, ucudnn)
    test_refusals(torch, ucudnn)
    test_negated_views(torch, ucudnn)
    test_transposed(torch, ucudnn)
    x = torch.randn(2, 6, 5, 4, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, 3, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda *tensors: ucudnn.conv3d(*tensors, padding=1, groups=2), (x, w))
    dx, = torch.autograd.grad(ucudnn.conv3d(x, w, groups=2).sum(), x, create_graph=True)  # dy is not packed
    try:
        dx.sum().backward()
        sys.exit("a gradient's gradient is nothing that is computed")
    except RuntimeError:
        pass
    for ours, theirs, sizes in ((ucudnn.conv2d, torch.nn.functional.conv2d, (2, 6, 17, 11)),
                                (ucudnn.conv3d, torch.nn.functional.conv3d, (1, 6, 9, 8, 7))):
        tensors = [torch.randn(size, requires_grad=True) for size in (sizes, (4, 3, *(len(sizes) - 2) * (3,)), (4,))]
        results = []
        for function in (lambda *a, **b: ours(*a, activation="relu", **b), lambda *a, **b: theirs(*a, **b).relu()):
            y = function(*tensors, stride=2, padding=1, groups=2)
            results.append([y, *torch.autograd.grad((y * y).sum(), tensors)])
        for mine, other in zip(*results):
            torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-3)


def main():
    random.seed(1)
    test_threads()
    test_arrays((2, 4, 12, 9), (6, 4, 3, 3), Geometry((1, 1), (1, 1), (1, 1)))
    test_arrays((1, 4, 13, 9), (6, 2, 3, 2), Geometry((2, 1), (1, 0), (1, 2), groups=2, fma=True))
    test_arrays((1, 3, 6, 5, 4), (2, 3, 3, 3, 3), Geometry((1, 1, 1), (1, 1, 1), (1, 1, 1)))
    try:
        import torch  # noqa: F401
    except ImportError:
        print("arrays are right; there is no PyTorch here")
        return
    test_torch()
    print("arrays and tensors are right")


if __name__ == "__main__":
    main()
