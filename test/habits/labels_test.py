#!/usr/bin/env python3
"""labels_test.py CTEST BUILD: every test has one of the labels of misc/docs/CONTRIBUTING.md, and no other.

Without one a test is left out by `misc/test.sh --sanitize` and `misc/check.sh --full`, which choose by labels.
"""
import json
import subprocess
import sys

LABELS = {"unit", "simulator", "gpu", "install", "configure", "fuzz"}

ctest, build = sys.argv[1:]
listed = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"], check=True, stdout=subprocess.PIPE).stdout
tests = json.loads(listed)["tests"]
wrong = 0
for test in tests:
    if test["name"].endswith("_NOT_BUILT"):  # ctest's name for all tests of a program that is not there
        continue
    labels = [label for item in test.get("properties", []) if item["name"] == "LABELS" for label in item["value"]]
    if len(labels) != 1 or labels[0] not in LABELS:
        print(f"{test['name']}: its labels are {labels}, not one of {sorted(LABELS)}")
        wrong += 1
if not tests:
    print(f"{build} has no tests")
sys.exit(1 if wrong or not tests else 0)
