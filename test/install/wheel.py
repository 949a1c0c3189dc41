"""A program under `ucudnn run` that loads cuDNN as PyTorch does, from a package: wheel.py PLUGIN TRACE LIBRARY..."""
import ctypes
import os
import sys
import tempfile

import ucudnn

plugin, trace, libraries = sys.argv[1], sys.argv[2], sys.argv[3:]


def expect(what, told):
    if not what:
        sys.exit(f"wheel.py: {told}")


def traced():
    with open(trace, encoding="utf-8") as stream:
        return [line for line in stream if line.startswith("forward ")]


# cuDNN is not loaded yet, and so libucudnn.so is not either.
expect(set(ucudnn.statistics().values()) == {0}, ucudnn.statistics())
expect(ucudnn.plans() == [], ucudnn.plans())
ucudnn.limit(2 << 20)
for bad in (-1, 2**64):
    try:
        ucudnn.limit(bad)
        expect(False, f"{bad} is a limit")
    except ValueError:
        pass

kept = [ctypes.CDLL(library) for library in libraries]
program = ctypes.CDLL(plugin).plainMain


def run(mode):
    with tempfile.NamedTemporaryFile() as results:
        words = [b"plain", mode, os.fsencode(results.name)]
        expect(program(len(words), (ctypes.c_char_p * len(words))(*words)) == 0, f"{mode} failed")


run(b"find")
now = ucudnn.statistics()
expect(now["split_calls"] >= 9 and now["plans"] >= 3 and now["kernels_measured"] > 0, now)
expect(0 < now["planning_ms"] < 1e6 and 0 <= now["graph_bytes"] < 2**40, now)
expect("\tsplit" in traced()[-1], traced())
plans = ucudnn.plans()
expect({plan["problem"].split()[0] for plan in plans} >= {"forward", "backward_data", "backward_filter"}, plans)
expect(all(plan["workspace_bytes"] <= 2 << 20 for plan in plans), plans)

ucudnn.limit(0)
run(b"find")
expect("\tsplit" not in traced()[-1], traced())
expect(ucudnn.statistics()["split_calls"] == now["split_calls"], ucudnn.statistics())
ucudnn.limit(None)
run(b"query")
expect(ucudnn.statistics() != now, "nothing has run")
print("statistics, limit and plans are as they should be")
