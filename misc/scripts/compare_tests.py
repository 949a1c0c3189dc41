#!/usr/bin/env python3
"""Compares two JUnit files of the same tests: plain ones, and the same under `ucudnn run`.

usage: misc/scripts/compare_tests.py PLAIN.xml WITH.xml

Names each test whose outcome (passed, skipped, failed, error, or missing) differs, and says why. Exit status: 0 if none
does and some test passed; else 1.
"""

import os
import sys
from xml.etree import ElementTree


def outcomes(file):
    """Each test's name, its outcome, and how the reason begins."""
    found = {}
    if not os.path.exists(file):  # a run that was killed writes none
        print("missing:", file)
        return found
    for case in ElementTree.parse(file).iter("testcase"):
        outcome, reason = "passed", ""
        for child in case:
            if child.tag in ("skipped", "failure", "error"):
                outcome = {"failure": "failed"}.get(child.tag, child.tag)
                text = (child.get("message") or child.text or "").strip()
                reason = " ".join(text.split())[:200]
        found[f"{case.get('classname')}.{case.get('name')}"] = (outcome, reason)
    return found


def summary(found):
    counts = {}
    for outcome, _ in found.values():
        counts[outcome] = counts.get(outcome, 0) + 1
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "no tests"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    plain, other = outcomes(sys.argv[1]), outcomes(sys.argv[2])
    missing = ("missing", "")
    differing = 0
    for name in sorted(plain.keys() | other.keys()):
        before, after = plain.get(name, missing), other.get(name, missing)
        if before[0] != after[0]:
            differing += 1
            print(f"{name}: plain {before[0]}, then {after[0]}: {after[1] or before[1]}")
    print(f"plain: {summary(plain)}\nwith:  {summary(other)}\n{differing} differ")
    has_passed = any(outcome == "passed" for outcome, _ in plain.values())
    sys.exit(1 if differing or not has_passed else 0)


if __name__ == "__main__":
    main()
