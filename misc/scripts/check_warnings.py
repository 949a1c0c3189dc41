#!/usr/bin/env python3
"""Checks that only these files of src/ log warnings and errors: nobody who runs an unmodified program has asked for a
line but of settings that are not followed (src/support/log.hpp). Prints the others' calls.

    misc/scripts/check_warnings.py [ROOT]
"""
import pathlib
import re
import sys

ALLOWED = {
    "api/guard.hpp": "a setter's or a variable's bad value",
    "api/host_memory.cpp": "UCUDNN_DEVICE_MEMORY",
    "benchmark/helper_devices.cpp": "UCUDNN_BENCHMARK_DEVICES",
    "cache/database.cpp": "UCUDNN_DATABASE",
    "cache/database_without_sqlite.cpp": "UCUDNN_DATABASE",
    "cache/shared_databases.cpp": "UCUDNN_DATABASE",
    "context/host_call.cpp": "UCUDNN_DEVICE_MEMORY",
    "context/host_pass.cpp": "UCUDNN_DEVICE_MEMORY",
    "context/registry.cpp": "a variable's bad value",
    "executor/equivalence.cpp": "UCUDNN_EQUIVALENCE_TEST",
    "planner/frozen_plans.cpp": "UCUDNN_PLANS",
    "planner/kernel_checks.cpp": "UCUDNN_CHECK_KERNELS",
    "planner/planner.cpp": "UCUDNN_MAX_ERROR",
    "support/log.cpp": "UCUDNN_LOG_FILE",
    "support/log.hpp": "the log itself",
    "support/settings.cpp": "variables that nobody knows",
    "support/settings.hpp": "the default of UCUDNN_LOG_LEVEL",
    "workspace/captured_memory.cpp": "UCUDNN_TOTAL_WORKSPACE_SIZE",
    "workspace/network_division.cpp": "UCUDNN_TOTAL_WORKSPACE_POLICY=divide",
    "workspace/workspace_layout.cpp": "UCUDNN_TOTAL_WORKSPACE_SIZE",
    "workspace/workspace_owner.cpp": "UCUDNN_TOTAL_WORKSPACE_SIZE",
}
LOUD = re.compile(r"\blog(Warn|Error)\(|\bLogLevel::k(Warn|Error)\b")


def main(root):
    found = 0
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root / "src").as_posix()
        if path.suffix not in {".cpp", ".hpp", ".h", ".cu", ".cuh"} or name in ALLOWED:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if LOUD.search(line):
                print(f"src/{name}:{number}: not said unless it is asked for: {line.strip()}", file=sys.stderr)
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent.parent)))
