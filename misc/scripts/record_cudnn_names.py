#!/usr/bin/env python3
"""Prints misc/data/cudnn_names.txt: record_cudnn_names.py VERSION=LIBRARY... > misc/data/cudnn_names.txt

LIBRARY is a wheel's libcudnn.so.9, of nvidia-cudnn-cu12 or -cu13, as in 9.1.1.17=/tmp/9.1/libcudnn.so.9. A test compares
the names that libucudnn_preload.so exports with them (test/preload/check_names.sh).
"""

import datetime
import subprocess
import sys


def names_of(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, check=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines()} - {"libcudnn.so.9"}


def main(words):
    libraries = dict(word.split("=", 1) for word in words)
    versions = sorted(libraries, key=lambda version: [int(part) for part in version.split(".")])
    first, last = {}, {}
    for version in versions:
        for name in names_of(libraries[version]):
            first.setdefault(name, version)
            last[name] = version
    print(f"# Functions of libcudnn.so.9 in NVIDIA's wheels {', '.join(versions)},")
    print(f"# recorded on {datetime.date.today()} by misc/scripts/record_cudnn_names.py. Behind a name: the first of these")
    print("# versions that has it; behind that, if the newest lacks it, the last.")
    for name in sorted(first):
        print(name, first[name], *([last[name]] if last[name] != versions[-1] else []))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
