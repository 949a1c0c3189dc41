"""Convolutions of CPU tensors on the GPU, however large: ucudnn.conv2d, conv3d and the transposed ones.

Parts of the tensors are copied to the device and back, beside the kernels, within UCUDNN_DEVICE_MEMORY (else: what is
free). Tensors should be pinned. PyTorch is imported by the functions that take its tensors; the others take pointers.
"""
import ctypes
import functools
import os
import sys
import threading

from ucudnn import _SONAME

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_ALL = ctypes.c_size_t(-1).value
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}  # cudnnDataType_t
_DEFAULT_MATH, _FMA_MATH = 0, 3
_FORWARD, _BACKWARD_DATA, _BACKWARD_FILTER, _BIAS_ACTIVATION_FORWARD = range(4)

_threads = threading.local()


class _Library:
    """libucudnn.so, the program's or this package's, and a handle for one thread."""

    def __init__(self):
        for name in (_SONAME, os.path.join(_FOLDER, "lib", _SONAME)):
            try:
                self.functions = ctypes.CDLL(name)
                break
            except OSError as error:
                reason = error
        else:
            raise RuntimeError(f"libucudnn.so can't be loaded: {reason}")
        self.handle = ctypes.c_void_p()
        self("ucudnnCreate", ctypes.byref(self.handle))
        if not os.environ.get("UCUDNN_DEVICE_MEMORY"):
            self("ucudnnSetDeviceMemory", self.handle, ctypes.c_size_t(_ALL))

    def __del__(self):
        # With its thread. At the process's end CUDA may be gone before.
        if not sys.is_finalizing() and getattr(self, "handle", None):
            self.functions.ucudnnDestroy(self.handle)

    def __call__(self, name, *arguments):
        status = getattr(self.functions, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} returned status {status}; its log says why (UCUDNN_LOG_LEVEL=info)")

    def convolution(self, **members):
        """A ucudnnConvolution_t of <ucudnn/host_memory.h>, with these members."""
        init = self.functions.ucudnnInitConvolution
        init.restype, init.argtypes = ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_size_t)
        made = ctypes.create_string_buffer(init(None, 0))
        init(made, len(made))
        for name, value in members.items():
            numbers = value if isinstance(value, tuple) else (value,)
            self("ucudnnSetConvolution", made, name.encode(), len(numbers), (ctypes.c_int * len(numbers))(*numbers))
        return made


def _library():
    if not hasattr(_threads, "library"):
        _threads.library = _Library()
    return _threads.library


class Geometry:
    """What a convolution has beside its tensors. `fma`: floats are not rounded to TF32."""

    def __init__(self, stride, padding, dilation, groups=1, fma=False):
        self.stride, self.padding, self.dilation = tuple(stride), tuple(padding), tuple(dilation)
        self.groups, self.fma = groups, fma

    def _of(self, operation, x, w, dtype="float32", relu=False):
        return _library().convolution(
            operation=operation, type=_TYPES[dtype], math=_FMA_MATH if self.fma else _DEFAULT_MATH, dimensions=len(x),
            x=tuple(x), w=tuple(w), padding=self.padding, stride=self.stride, dilation=self.dilation,
            groups=self.groups, relu=int(relu))

    def output_sizes(self, x, w):
        sizes = (ctypes.c_int * 5)()
        convolution = self._of(_FORWARD, x, w)
        if _library().functions.ucudnnGetConvolutionOutput(convolution, sizes) != 0:
            raise ValueError(f"a filter of {tuple(w)} does not fit an input of {tuple(x)} with {self.groups} groups")
        return tuple(sizes[:len(x)])


class Array:
    """A packed tensor in host memory: its address, sizes and a type's name."""

    def __init__(self, address, sizes, dtype):
        self.address, self.sizes, self.dtype = ctypes.c_void_p(address), tuple(sizes), dtype


def _run(convolution, x, w, bias, y):
    library = _library()
    library("ucudnnConvolve", library.handle, convolution, ctypes.c_double(1), x.address, w.address,
            None if bias is None else bias.address, ctypes.c_double(0), y.address)
    library("cudaStreamSynchronize", None)  # found through the library that needs it


def forward(x, w, bias, y, geometry, relu=False):
    """y of Arrays. `relu` needs a bias."""
    operation = _FORWARD if bias is None else _BIAS_ACTIVATION_FORWARD
    _run(geometry._of(operation, x.sizes, w.sizes, x.dtype, relu), x, w, bias, y)


def backward_data(w, dy, dx, geometry):
    _run(geometry._of(_BACKWARD_DATA, dx.sizes, w.sizes, dx.dtype), dx, w, None, dy)


def backward_filter(x, dy, dw, geometry):
    _run(geometry._of(_BACKWARD_FILTER, x.sizes, dw.sizes, x.dtype), x, dw, None, dy)


def _array(tensor):
    return Array(tensor.data_ptr(), tensor.shape, str(tensor.dtype).removeprefix("torch."))


def _packed(tensor):
    """The tensor as its memory has it: a view may be negated when it is read."""
    return tensor.contiguous().resolve_neg()


def _end(tensor):
    return tensor.data_ptr() + tensor.numel() * tensor.element_size()


def _result(sizes, inputs, out=None):
    """`out`, or a new tensor in pinned memory."""
    import torch
    dtype = inputs[0].dtype
    if out is None:
        return torch.empty(sizes, dtype=dtype, pin_memory=torch.cuda.is_available())
    fits = out.device.type == "cpu" and out.dtype == dtype and tuple(out.shape) == tuple(sizes)
    if not fits or not out.is_contiguous() or out.is_neg():
        raise ValueError(f"out must be a contiguous CPU tensor of {tuple(sizes)} and {dtype}")
    if any(out.data_ptr() < _end(tensor) and tensor.data_ptr() < _end(out) for tensor in inputs):
        raise ValueError("out must not overlap what is read: parts of it are written before others are read")
    with torch.no_grad():
        out[:0].zero_()  # which tells autograd that the values change
    return out


def _forward(x, w, bias, geometry, activation, out=None):
    if bias is None and activation is not None:
        bias = w.new_zeros(w.shape[0])
    bias = None if bias is None else _packed(bias)
    y = _result(geometry.output_sizes(x.shape, w.shape), [x, w] if bias is None else [x, w, bias], out)
    forward(_array(x), _array(w), None if bias is None else _array(bias), _array(y), geometry, activation == "relu")
    return y


def _backward_data(w, dy, sizes, geometry, out=None):
    dx = _result(sizes, [w, dy], out)
    backward_data(_array(w), _array(dy), _array(dx), geometry)
    return dx


def _backward_filter(x, dy, w, geometry):
    dw = _result(w.shape, [w])
    backward_filter(_array(x), _array(dy), _array(dw), geometry)
    return dw


@functools.lru_cache(maxsize=None)
def _functions():
    """The autograd functions, made when they are first needed."""
    import torch

    class Convolution(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, bias, geometry, activation):
            y = _forward(x, w, bias, geometry, activation)
            ctx.geometry, ctx.activation = geometry, activation
            ctx.save_for_backward(x, w, y if activation is not None else None)
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, dy):
            x, w, y = ctx.saved_tensors
            dy = _packed(dy if y is None else dy * (y > 0))
            needs_x, needs_w, needs_bias = ctx.needs_input_grad[:3]
            dx = _backward_data(w, dy, x.shape, ctx.geometry) if needs_x else None
            dw = _backward_filter(x, dy, w, ctx.geometry) if needs_w else None
            db = dy.sum(dim=[0, *range(2, dy.dim())]) if needs_bias else None
            return dx, dw, db, None, None

    class Transposed(torch.autograd.Function):
        """A convolution that leads from y to x: its gradient by x."""

        @staticmethod
        def forward(ctx, x, w, sizes, geometry):
            ctx.geometry = geometry
            ctx.save_for_backward(x, w)
            return _backward_data(w, x, sizes, geometry)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, dy):
            (x, w), dy = ctx.saved_tensors, _packed(dy)
            dx = _forward(dy, w, None, ctx.geometry, None) if ctx.needs_input_grad[0] else None
            dw = _backward_filter(dy, x, w, ctx.geometry) if ctx.needs_input_grad[1] else None
            return dx, dw, None, None

    return Convolution, Transposed


def _check(dimensions, tensors, *values):
    """The values for each dimension."""
    each = [value if isinstance(value, (tuple, list)) else dimensions * (value,) for value in values]
    x, w = tensors[:2]
    if x.dim() != dimensions + 2 or w.dim() != x.dim() or any(len(value) != dimensions for value in each):
        raise ValueError(f"conv{dimensions}d takes tensors of {dimensions + 2} dimensions")
    if any(tensor.device.type != "cpu" or tensor.dtype != x.dtype for tensor in tensors):
        raise ValueError("the tensors must be on the CPU and of one type")
    if str(x.dtype).removeprefix("torch.") not in _TYPES:
        raise ValueError(f"{x.dtype} is not supported")
    if any(tensor.numel() == 0 for tensor in tensors):
        raise ValueError("a tensor is empty")
    return each


def _has_gradients(tensors, out):
    import torch
    given = tensors if out is None else [*tensors, out]
    wants = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
    if wants and out is not None:
        raise RuntimeError("a result written to `out` has no gradients")
    return wants


def _convolve(dimensions, x, w, bias, stride, padding, dilation, groups, activation, out):
    import torch
    tensors = [x, w] if bias is None else [x, w, bias]
    each = _check(dimensions, tensors, stride, padding, dilation)
    if bias is not None and bias.shape != w.shape[:1]:
        raise ValueError(f"a bias of {tuple(bias.shape)} is not of {w.shape[0]} filters")
    if activation not in (None, "relu"):
        raise ValueError(f"there is no activation {activation!r}: None or 'relu'")
    geometry = Geometry(*each, groups, fma=not torch.backends.cudnn.allow_tf32)
    x, w = _packed(x), _packed(w)
    if _has_gradients(tensors, out):
        return _functions()[0].apply(x, w, bias, geometry, activation)
    return _forward(x, w, bias, geometry, activation, out)


def _transpose(dimensions, x, w, stride, padding, output_padding, groups, dilation, out):
    import torch
    each = stride, padding, dilation, added = _check(dimensions, [x, w], stride, padding, dilation, output_padding)
    geometry = Geometry(*each[:3], groups, fma=not torch.backends.cudnn.allow_tf32)
    spatial = [(size - 1) * s - 2 * p + d * (taps - 1) + more + 1
               for size, taps, s, p, d, more in zip(x.shape[2:], w.shape[2:], stride, padding, dilation, added)]
    sizes = (x.shape[0], w.shape[1] * groups, *spatial)
    if geometry.output_sizes(sizes, w.shape) != tuple(x.shape):
        raise ValueError(f"a transposed filter of {tuple(w.shape)} does not fit an input of {tuple(x.shape)}")
    x, w = _packed(x), _packed(w)
    if _has_gradients([x, w], out):
        return _functions()[1].apply(x, w, sizes, geometry)
    return _backward_data(w, x, sizes, geometry, out)


def conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, activation=None, out=None):
    """torch.nn.functional.conv2d of CPU tensors, computed on the GPU; `activation`: "relu".

    The result is `out`, a contiguous tensor (for one sample also some channels of another), or pinned and new."""
    return _convolve(2, x, w, bias, stride, padding, dilation, groups, activation, out)


def conv3d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, activation=None, out=None):
    """torch.nn.functional.conv3d, likewise."""
    return _convolve(3, x, w, bias, stride, padding, dilation, groups, activation, out)


def conv_transpose2d(x, w, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=None):
    """torch.nn.functional.conv_transpose2d without a bias, likewise."""
    return _transpose(2, x, w, stride, padding, output_padding, groups, dilation, out)


def conv_transpose3d(x, w, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=None):
    """torch.nn.functional.conv_transpose3d, likewise."""
    return _transpose(3, x, w, stride, padding, output_padding, groups, dilation, out)
