#!/usr/bin/env python3
"""Draws comments and messages at random, to be read one by one: does any need a second reading?

usage: misc/scripts/draw_prose.py [--seed N] [--comments N] [--messages N]

The same seed (20261126) draws the same ones from the same sources. Comments are blocks of lines of src and include; messages
are texts of four words or more in log lines, errors and help.
"""

import argparse
import pathlib
import random
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A text of C++, with those that follow it directly.
TEXT = r'"(?:[^"\\\n]|\\.)*"'
TEXTS = re.compile(TEXT + r"(?:\s*" + TEXT + ")*")


def comments(lines):
    """(line number, text) of each block, without what only frames it."""
    begin, words = 0, []
    for number, line in enumerate([*lines, ""], 1):
        match = re.match(r"\s*(?://(?!/<)/?|/\*\*?|\*(?=\s|$))\s?(.*?)\s*(?:\*/)?$", line)
        if match and not line.lstrip().startswith("*this"):
            begin = begin or number
            words.append(match.group(1))
        elif words:
            yield begin, " ".join(words).strip()
            begin, words = 0, []


def messages(text):
    code = re.sub(r"^\s*(//|#include).*$", "", text, flags=re.MULTILINE)
    for match in TEXTS.finditer(code):
        words = "".join(part[1:-1] for part in re.findall(TEXT, match.group()))
        if len(re.findall(r"[A-Za-z]{2,}", words)) >= 4 and not re.match("(SELECT|INSERT|UPDATE|DELETE|CREATE) ", words):
            yield code.count("\n", 0, match.start()) + 1, words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--comments", type=int, default=30)
    parser.add_argument("--messages", type=int, default=20)
    options = parser.parse_args()
    found = {"comments": [], "messages": []}
    for folder in ("include", "src"):
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.suffix not in {".h", ".hpp", ".cpp", ".cu", ".cuh"}:
                continue
            text = path.read_text(encoding="utf-8")
            place = path.relative_to(ROOT)
            found["comments"] += [(place, *each) for each in comments(text.splitlines()) if len(each[1].split()) >= 4]
            if "simulator" not in place.parts:
                found["messages"] += [(place, *each) for each in messages(text)]
    draw = random.Random(options.seed)
    for kind, count in (("comments", options.comments), ("messages", options.messages)):
        print(f"== {count} of {len(found[kind])} {kind}")
        for place, line, words in sorted(draw.sample(found[kind], min(count, len(found[kind])))):
            print(f"{place}:{line}: {words}")


if __name__ == "__main__":
    main()
