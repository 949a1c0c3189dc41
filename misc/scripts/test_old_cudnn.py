#!/usr/bin/env python3
"""Builds with the headers of older cuDNNs, runs the library's unit and simulator tests, and prints how many passed, how
many were skipped, and why:

    test_old_cudnn.py FOLDER [CUDNN:CUDA...]     by default 9.1:12.4 9.5:12.6 9.10:12.8

Each version is built in FOLDER/CUDNN; its packages (2 GB) lie beside it. Nothing needs a GPU. Status 1: a test failed.
The reasons of tests that skip themselves are in test/support/skips.hpp.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

VERSIONS = ["9.1:12.4", "9.5:12.6", "9.10:12.8"]
FOLDERS = ("benchmark cache context cuda division executor graph host kernels library optimizer planner preload problem "
           "workspace").split()
TEST_SECONDS = 1200


def build(folder, cudnn, cuda):
    """All test programs of FOLDERS, and what they need. cuDNN itself loads cuBLAS when a unit test asks it."""
    script = pathlib.Path(__file__).with_name("build_cuda_12.sh")
    environment = dict(os.environ, CUDNN=f"{cudnn}.*", CUDA=f"{cuda}.*")
    options = ["-DUCUDNN_WERROR=ON", "-DCMAKE_UNITY_BUILD=ON"]
    subprocess.run([script, folder, *options, "--", *(f"test/{name}/all" for name in FOLDERS)], check=True, env=environment)
    subprocess.run([f"{folder}-packages/bin/pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                    f"nvidia-cublas-cu12=={cuda}.*"], check=True)


def add_up(report, outcomes, reasons):
    """Counts the tests of a report; a skipped one by its reason."""
    for test in ElementTree.parse(report).iter("testcase"):
        status = test.get("status")
        if status == "run":
            outcomes["passed"] += 1
        elif test.find("skipped") is not None:
            outcomes["skipped"] += 1
            reasons[skip_reason(test.findtext("system-out") or "")].append(test.get("name"))
        else:
            outcomes["failed"] += 1
            print(f"{test.get('name')} failed:\n{test.findtext('system-out')}", flush=True)


def skip_reason(output):
    """The lines of Google Test between "Skipped" and the test's end."""
    found = re.search(r": Skipped\n(.*?)\n+\[  SKIPPED \]", output, re.DOTALL)
    return found.group(1).strip() if found else output.strip().splitlines()[-1] if output.strip() else "(no reason)"


def test(folder, outcomes, reasons):
    for name in FOLDERS:
        report = folder / f"{name}.xml"
        subprocess.run(["ctest", "--test-dir", folder / "test" / name, "--label-regex", "^(unit|simulator)$", "--parallel",
                        str(os.cpu_count()), "--timeout", str(TEST_SECONDS), "--quiet", "--output-junit", report],
                       stdout=subprocess.DEVNULL)
        add_up(report, outcomes, reasons)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows, failed = [], 0
    for version in sys.argv[2:] or VERSIONS:
        cudnn, cuda = version.split(":")
        folder = (pathlib.Path(sys.argv[1]) / cudnn).resolve()
        build(folder, cudnn, cuda)
        outcomes, reasons = collections.Counter(), collections.defaultdict(list)
        test(folder, outcomes, reasons)
        for reason, tests in sorted(reasons.items()):
            print(f"cuDNN {cudnn}: {len(tests)} skipped: {reason}\n  {' '.join(tests)}", flush=True)
        failed += outcomes["failed"]
        rows.append(f"| {cudnn} | {cuda} | {outcomes['passed']} | {outcomes['skipped']} | {outcomes['failed']} |")
    print("| cuDNN | CUDA | passed | skipped | failed |\n|---|---|---|---|---|", *rows, sep="\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
