#!/usr/bin/env python3
"""Runs something on sources that CMake has written down: misc/scripts/for_each_command.py BUILD PATTERN [COMMAND...]

PATTERN is a regular expression for whole paths below the root. COMMAND gets the path as its last argument; without
one, the source's own compiler checks it (-fsyntax-only). As many at once as there are processors. Says what failed;
the exit status is then 1.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys


def syntax_only(entry):
    words = shlex.split(entry["command"])
    while "ccache" in pathlib.Path(words[0]).name:
        del words[0]
    output = words.index("-o")
    return words[:output] + words[output + 2:] + ["-fsyntax-only"]


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    build, pattern, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    tasks = {}
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(root) and re.fullmatch(pattern, str(path.relative_to(root))):
            tasks.setdefault(path.relative_to(root), entry)
    if not tasks:
        raise SystemExit(f"{build} has no source like {pattern}")

    def run(task):
        path, entry = task
        words, folder = ([*command, str(path)], root) if command else (syntax_only(entry), entry["directory"])
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{path}:\n{done.stdout}{done.stderr}", flush=True)
        return done.returncode

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        failures = sum(status != 0 for status in pool.map(run, sorted(tasks.items())))
    print(f"{len(tasks)} sources, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
