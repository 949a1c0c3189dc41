"""A pytest plugin for cudnn-frontend's tests: `PYTHONPATH=misc/scripts pytest -p pytest_frontend`.

cudnn-frontend's Python looks up cuDNN's functions in the library that it has opened itself, where `ucudnn run` can't
interpose. With this plugin it looks in the program's global scope: that is cuDNN alone, or μ-cuDNN before it. Prints
whose functions it finds.
"""

import ctypes

import cudnn
import pytest
import torch  # noqa: F401: loads cuDNN


class Symbol(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("file", "base", "name", "address")]


def file_of(function):
    """The library that has it."""
    symbol = Symbol()
    if not ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(symbol)):
        return "none"
    return ctypes.string_at(symbol.file).decode()


@pytest.hookimpl(tryfirst=True)  # before anything has looked for a function
def pytest_configure(config):
    library = next(line.split()[-1] for line in open("/proc/self/maps") if "/libcudnn.so" in line)
    ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    everything = ctypes.CDLL(None)
    cudnn._pybind_module._set_dlhandle_cudnn(ctypes.cast(everything._handle, ctypes.c_void_p).value)
    print("cudnnBackendExecute is of", file_of(everything.cudnnBackendExecute))
