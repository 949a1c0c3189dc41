"""μ-cuDNN as a program sees it that runs under `ucudnn run`: what it has done, and its limit on workspace."""
import ctypes
import json
import operator
import os
import sys
import tempfile

from .parallel import ShareSampler, shares, weigh  # noqa: F401

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_SONAME = "libucudnn.so.0.1"  # as CMake has it, which a test checks
_NO_LIMIT = ctypes.c_size_t(-1).value


# Members of ucudnnStatistics_t in <ucudnn/diagnosis.h>, in Python's spelling.
_STATISTICS = ("kernels_measured", "kernels_loaded", "plans", "split_calls", "undivided_calls", "bypassed_calls",
               "planning_ms", "replayed_calls", "graphs", "graph_bytes")


def __getattr__(name):
    """__version__ and the convolutions, read when they are asked for: most programs never do."""
    if name in ("conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"):
        from ucudnn import convolution
        return getattr(convolution, name)
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version
    return version("ucudnn")


def _loaded(library):
    """A library that the program has loaded already; None: it has not. Never a second copy."""
    try:
        return ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def _library():
    """None: the program has not called cuDNN yet, or is left to it."""
    library = _loaded(_SONAME)
    if library is None and _loaded("libucudnn_preload.so") is None:
        raise RuntimeError("this program does not run under `ucudnn run`")
    return library


def _check(status):
    if status != 0:
        raise RuntimeError(f"libucudnn.so returned status {status}, and its log says why")


def statistics():
    """μ-cuDNN's work in this process so far: a dict of the numbers in <ucudnn/diagnosis.h>."""
    library, numbers = _library(), dict.fromkeys(_STATISTICS, 0)
    for name in numbers if library is not None else ():
        first, *others = name.split("_")
        value = ctypes.c_double()
        _check(library.ucudnnGetStatistic((first + "".join(map(str.capitalize, others))).encode(), ctypes.byref(value)))
        numbers[name] = value.value if name.endswith("_ms") else int(value.value)
    return numbers


def limit(bytes):
    """The most workspace of each convolution, from its next call on, in bytes; None: no limit.

    A program allocates what it was told when it asked: PyTorch asks once for each convolution."""
    value = _NO_LIMIT if bytes is None else operator.index(bytes)
    if not 0 <= value <= _NO_LIMIT:
        raise ValueError(f"{value} is no size")
    library = _library()
    if library is None:  # it reads this when it is loaded
        os.environ["UCUDNN_WORKSPACE_LIMIT"] = f"{value}B"
    else:
        _check(library.ucudnnSetProcessWorkspaceLimit(ctypes.c_size_t(value)))


def plans():
    """The plans that were made and used so far, as `ucudnn plan --save` writes them: a list of dicts."""
    library = _library()
    if library is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "plans.json")
        _check(library.ucudnnSavePlans(os.fsencode(file)))
        with open(file, encoding="utf-8") as stream:
            return json.load(stream)["plans"]


def _command():
    """The command `ucudnn`."""
    program = os.path.join(_FOLDER, "bin", "ucudnn")
    os.execv(program, ["ucudnn", *sys.argv[1:]])
