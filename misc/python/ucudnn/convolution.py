"""Convolutions of CPU tensors on the GPU, however large: ucudnn.conv2d and ucudnn.conv3d.

Parts of the tensors are copied to the device and back, beside the kernels, within UCUDNN_DEVICE_MEMORY (else: what is
free). Tensors should be pinned. PyTorch is imported by the functions that take its tensors; the others take pointers.
"""
import ctypes
import os
import threading

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_ALL = ctypes.c_size_t(-1).value
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}  # cudnnDataType_t
_DEFAULT_MATH, _FMA_MATH = 0, 3
_RELU, _IDENTITY = 1, 5
_ALGORITHM = 1  # of each operation; forward: the only one that takes no activation. Each has others for what it lacks.

_threads = threading.local()


def _library():
    """libucudnn.so: the program's, or the one of this package."""
    for name in ("libucudnn.so.0", os.path.join(_FOLDER, "lib", "libucudnn.so.0")):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reason = error
    raise RuntimeError(f"libucudnn.so can't be loaded: {reason}")


class _Cudnn:
    """A handle of one thread. cuDNN's and CUDA's functions are found through the library that needs them."""

    def __init__(self):
        self._functions = _library()
        self.handle = ctypes.c_void_p()
        self("ucudnnCreate", ctypes.byref(self.handle))
        if not os.environ.get("UCUDNN_DEVICE_MEMORY"):
            self("ucudnnSetDeviceMemory", self.handle, ctypes.c_size_t(_ALL))

    def __call__(self, name, *arguments):
        status = getattr(self._functions, name)(*arguments)
        if status == 0:
            return
        self._functions.cudnnGetErrorString.restype = ctypes.c_char_p
        text = self._functions.cudnnGetErrorString(status).decode() if "cudnn" in name else status
        raise RuntimeError(f"{name}: {text}; UCUDNN_LOG_LEVEL=info says more")

    def synchronize(self):
        self("cudaStreamSynchronize", ctypes.c_void_p())


def _cudnn():
    if not hasattr(_threads, "cudnn"):
        _threads.cudnn = _Cudnn()
    return _threads.cudnn


class _Descriptor:
    """A descriptor of cuDNN's, made by its Create function and set by others."""

    def __init__(self, cudnn, kind, **settings):
        self._cudnn, self._kind, self.value = cudnn, kind, ctypes.c_void_p()
        cudnn(f"cudnnCreate{kind}Descriptor", ctypes.byref(self.value))
        for setter, arguments in settings.items():
            cudnn(f"cudnnSet{setter}", self.value, *arguments)

    def __del__(self):
        self._cudnn(f"cudnnDestroy{self._kind}Descriptor", self.value)


def _ints(values):
    return (ctypes.c_int * len(values))(*values)


class Array:
    """A tensor by its address: a number that stays valid, sizes, strides in elements, and a type's name."""

    def __init__(self, address, sizes, strides, dtype):
        self.address, self.sizes, self.strides = ctypes.c_void_p(address), tuple(sizes), tuple(strides)
        self.dtype = dtype


class Geometry:
    """What a convolution has beside its tensors. `fma`: floats are not rounded to TF32."""

    def __init__(self, stride, padding, dilation, groups=1, fma=False):
        self.stride, self.padding, self.dilation = tuple(stride), tuple(padding), tuple(dilation)
        self.groups, self.fma = groups, fma

    def output_sizes(self, x, w):
        spatial = [(size + 2 * pad - step * (taps - 1) - 1) // stride + 1 for size, pad, step, taps, stride in
                   zip(x[2:], self.padding, self.dilation, w[2:], self.stride)]
        if min(spatial) <= 0:
            raise ValueError(f"a filter of {tuple(w[2:])} does not fit an input of {tuple(x[2:])}")
        return (x[0], w[0], *spatial)


class _Call:
    """The descriptors of one call."""

    def __init__(self, x, w, y, geometry):
        self.cudnn = cudnn = _cudnn()
        self.type = _TYPES[x.dtype]
        self.x, self.y = self._tensor(x.sizes, x.strides), self._tensor(y.sizes, y.strides)
        self.w = _Descriptor(cudnn, "Filter", FilterNdDescriptor=(self.type, 0, len(w.sizes), _ints(w.sizes)))
        compute = 1 if x.dtype == "float64" else 0
        settings = {
            "ConvolutionNdDescriptor": (len(geometry.stride), _ints(geometry.padding), _ints(geometry.stride),
                                        _ints(geometry.dilation), 1, compute),
            "ConvolutionMathType": (_FMA_MATH if geometry.fma else _DEFAULT_MATH,),
            "ConvolutionGroupCount": (geometry.groups,)}
        self.convolution = _Descriptor(cudnn, "Convolution", **settings)
        number = ctypes.c_double if x.dtype == "float64" else ctypes.c_float
        self._factors = number(1), number(0)
        self.one, self.zero = (ctypes.byref(factor) for factor in self._factors)

    def _tensor(self, sizes, strides):
        return _Descriptor(self.cudnn, "Tensor",
                           TensorNdDescriptor=(self.type, len(sizes), _ints(sizes), _ints(strides)))

    def run(self, name, *arguments):
        self.cudnn(f"ucudnnConvolution{name}", self.cudnn.handle, *arguments)
        self.cudnn.synchronize()

    def forward(self, x, w, bias, y, activation):
        workspace = ctypes.c_void_p(), ctypes.c_size_t(0)
        if bias is None:
            return self.run("Forward", self.one, self.x.value, x.address, self.w.value, w.address,
                            self.convolution.value, _ALGORITHM, *workspace, self.zero, self.y.value, y.address)
        filters = len(x.sizes) * [1]
        filters[1] = w.sizes[0]
        bias_descriptor = self._tensor(filters, [filters[1]] + (len(filters) - 1) * [1])
        mode = _RELU if activation == "relu" else _IDENTITY
        settings = {"ActivationDescriptor": (mode, 0, ctypes.c_double(0))}
        activation_descriptor = _Descriptor(self.cudnn, "Activation", **settings)
        self.run("BiasActivationForward", self.one, self.x.value, x.address, self.w.value, w.address,
                 self.convolution.value, _ALGORITHM, *workspace, self.zero, self.y.value, y.address,
                 bias_descriptor.value, bias.address, activation_descriptor.value, self.y.value, y.address)

    def backward_data(self, w, dy, dx):
        self.run("BackwardData", self.one, self.w.value, w.address, self.y.value, dy.address, self.convolution.value,
                 _ALGORITHM, ctypes.c_void_p(), ctypes.c_size_t(0), self.zero, self.x.value, dx.address)

    def backward_filter(self, x, dy, dw):
        self.run("BackwardFilter", self.one, self.x.value, x.address, self.y.value, dy.address,
                 self.convolution.value, _ALGORITHM, ctypes.c_void_p(), ctypes.c_size_t(0), self.zero, self.w.value,
                 dw.address)


def forward(x, w, bias, y, geometry, activation=None):
    """y of Arrays in host memory. An activation needs a bias."""
    _Call(x, w, y, geometry).forward(x, w, bias, y, activation)


def backward_data(w, dy, dx, geometry):
    _Call(dx, w, dy, geometry).backward_data(w, dy, dx)


def backward_filter(x, dy, dw, geometry):
    _Call(x, dw, dy, geometry).backward_filter(x, dy, dw)


def _function():
    """The autograd function, made when it is first needed."""
    if hasattr(_function, "made"):
        return _function.made
    import torch

    def array(tensor):
        return Array(tensor.data_ptr(), tensor.shape, tensor.stride(), str(tensor.dtype).removeprefix("torch."))

    def empty(sizes, like):
        return torch.empty(sizes, dtype=like.dtype, pin_memory=torch.cuda.is_available())

    class Convolution(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, bias, geometry, activation):
            x, w = x.contiguous(), w.contiguous()
            y = empty(geometry.output_sizes(x.shape, w.shape), x)
            if bias is None and activation is not None:
                bias = torch.zeros(w.shape[0], dtype=x.dtype)
            bias = None if bias is None else bias.contiguous()
            forward(array(x), array(w), None if bias is None else array(bias), array(y), geometry, activation)
            ctx.geometry, ctx.activation = geometry, activation
            ctx.save_for_backward(x, w, y if activation is not None else None)
            return y

        @staticmethod
        def backward(ctx, dy):
            x, w, y = ctx.saved_tensors
            dy = dy.contiguous() if y is None else dy * (y > 0)
            dx = dw = db = None
            if ctx.needs_input_grad[0]:
                dx = empty(x.shape, x)
                backward_data(array(w), array(dy), array(dx), ctx.geometry)
            if ctx.needs_input_grad[1]:
                dw = empty(w.shape, w)
                backward_filter(array(x), array(dy), array(dw), ctx.geometry)
            if ctx.needs_input_grad[2]:
                db = dy.sum(dim=[0, *range(2, dy.dim())])
            return dx, dw, db, None, None

    _function.made = Convolution
    return Convolution


def _convolve(dimensions, x, w, bias, stride, padding, dilation, groups, activation):
    import torch
    each = [value if isinstance(value, (tuple, list)) else dimensions * (value,)
            for value in (stride, padding, dilation)]
    if x.dim() != dimensions + 2 or w.dim() != x.dim() or any(len(values) != dimensions for values in each):
        raise ValueError(f"conv{dimensions}d takes tensors of {dimensions + 2} dimensions")
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups != 0:
        raise ValueError(f"{x.shape[1]} channels, a filter of {tuple(w.shape)} and {groups} groups do not fit")
    if activation not in (None, "relu"):
        raise ValueError(f"there is no activation {activation!r}: None or 'relu'")
    tensors = [x, w] if bias is None else [x, w, bias]
    if any(tensor.is_cuda or tensor.dtype != x.dtype for tensor in tensors):
        raise ValueError("the tensors must be on the CPU and of one type")
    if str(x.dtype).removeprefix("torch.") not in _TYPES:
        raise ValueError(f"{x.dtype} is not supported")
    geometry = Geometry(*each, groups, fma=not torch.backends.cudnn.allow_tf32)
    return _function().apply(x, w, bias, geometry, activation)


def conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, activation=None):
    """torch.nn.functional.conv2d of CPU tensors, computed on the GPU; `activation`: "relu". The result is pinned."""
    return _convolve(2, x, w, bias, stride, padding, dilation, groups, activation)


def conv3d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, activation=None):
    """torch.nn.functional.conv3d, likewise."""
    return _convolve(3, x, w, bias, stride, padding, dilation, groups, activation)
