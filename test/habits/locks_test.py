#!/usr/bin/env python3
"""locks_test.py SRC: the library's locks are those of support/fork.hpp, which a forked child can take.

The simulator is no part of the library, and the tool's processes don't fork amid its threads.
"""
import pathlib
import re
import sys

OTHER_LOCKS = re.compile(r"std::(recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex\b|std::condition_variable"
                         r"|std::once_flag|std::call_once|pthread_(mutex|rwlock|cond|once|atfork)\w*\b")
EXEMPT_FOLDERS = {"simulator", "tool"}
MECHANISM = {"support/fork.hpp", "support/fork.cpp"}

source = pathlib.Path(sys.argv[1])
wrong = read = 0
for path in sorted(source.glob("*/**/*.[ch]pp")):
    name = path.relative_to(source).as_posix()
    if path.relative_to(source).parts[0] in EXEMPT_FOLDERS or name in MECHANISM:
        continue
    read += 1
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if found := OTHER_LOCKS.search(line.split("//")[0]):
            print(f"src/{name}:{number}: {found[0]} may stay locked in a forked child")
            wrong += 1
if not read:
    print(f"{source} has no sources")
sys.exit(1 if wrong or not read else 0)
