#!/usr/bin/env python3
"""Compares what the commands of a page print with what the page shows.

usage: misc/scripts/replay_commands.py BUILD PAGE... [--update]

Each block of a page that begins with ```console or ```cpp has one of these comments in the line before:

  <!-- replayed -->                     its commands ("$ ...") are run on the simulator, in the repository's root
  <!-- replayed; varies: REGEX -->      what REGEX matches may differ, as times of the host do
  <!-- recorded: FILE RUN -->           the output is the report of that run in FILE
  <!-- from: FILE -->                   each line is one of FILE
  <!-- not replayed: REASON -->

What a block exports, later commands of the block have. A line "..." of the output stands for any lines. BUILD takes the
place of build/. The simulator has the recorded profiles of an H200, and computes nothing unless a command says so.
--update writes into the page what was printed. Status 77: there is a GPU, where the simulator's numbers are not printed.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROFILES = "misc/profiles/h200_legacy_algorithms.csv,misc/profiles/h200_engines.csv"
BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```(console|cpp)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands(body):
    """Each command with the lines that follow it."""
    pairs = []
    for line in body.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], []))
        elif pairs:
            pairs[-1][1].append(line)
    return pairs


def run(command, build, home):
    """The lines that the command prints."""
    for ours, built in (
        ("./misc/demo.sh", f"./misc/demo.sh --build {build}"),
        ("misc/with-simulator", f"misc/with-simulator --build {build}"),
        ("build/bin/", f"{build}/bin/"),
    ):
        command = re.sub(rf"(?<![\w/.]){re.escape(ours)}", built, command)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("UCUDNN_", "XDG_"))}
    environment["HOME"] = home
    environment["UCUDNN_SIMULATOR_PROFILE"] = PROFILES
    environment["UCUDNN_SIMULATOR_ARITHMETIC"] = "off"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return lines if done.returncode == 0 else [*lines, f"exit status {done.returncode}"]


def matches(shown, printed):
    """Whether the lines are the same, "..." being any."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])


def masked(lines, varies):
    return [re.sub(varies, "#", line) for line in lines] if varies else lines


def replay(body, varies, build):
    """The faults, and the block's body as it should be."""
    problems, written, exports = [], [], ""
    with tempfile.TemporaryDirectory() as home:
        for command, shown in commands(body):
            printed = run(exports + command, build, home)
            if command.startswith("export "):
                exports += command + "; "
            written += [f"$ {command}", *printed]
            if not matches(masked(shown, varies), masked(printed, varies)):
                problems.append(f"`{command}` prints otherwise:\n" + "\n".join(printed))
    return problems, "\n".join([*written, ""])


def recorded(body, file, name):
    report = next(
        run["report"] for run in json.loads((ROOT / file).read_text(encoding="utf-8"))["runs"] if run["name"] == name
    )
    shown = commands(body)[-1][1]
    return [] if matches(shown, report) else [f"{file}, {name}, has another report:\n" + "\n".join(report)]


def excerpt(body, file):
    there = {line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()}
    return [f"{file} has no line {line.strip()!r}" for line in body.splitlines() if line.strip() not in there | {""}]


def checked(comment, body, build):
    """The faults, and the body as it should be."""
    if comment is None:
        return ["no comment says whether it is replayed"], body
    if comment.startswith("not replayed: "):
        return [], body
    if found := re.fullmatch(r"recorded: (\S+) (\S+)", comment):
        return recorded(body, *found.groups()), body
    if found := re.fullmatch(r"from: (\S+)", comment):
        return excerpt(body, found[1]), body
    if found := re.fullmatch(r"replayed(?:; varies: (.*))?", comment):
        return replay(body, found[1], build)
    return [f"nobody knows the comment {comment!r}"], body


def check(page, build, update):
    """The faults of a page; its blocks are counted."""
    text = page.read_text(encoding="utf-8")
    problems, count = [], 0

    def one(found):
        nonlocal count
        count += 1
        wrong, body = checked(found[1], found[3], build)
        place = f"{page}:{text[:found.start()].count(chr(10)) + 1}: "
        replayed = (found[1] or "").startswith("replayed")
        if not (update and replayed):
            problems.extend(place + each for each in wrong)
        comment = f"<!-- {found[1]} -->\n" if found[1] is not None else ""
        keep = not replayed or not wrong
        return f"{comment}```{found[2]}\n{found[3] if keep else body}```"

    after = BLOCK.sub(one, text)
    if update and after != text:
        page.write_text(after, encoding="utf-8")
    return problems, count


def main():
    words = [word for word in sys.argv[1:] if word != "--update"]
    if len(words) < 2 or any(word.startswith("-") for word in words):
        sys.exit(__doc__)
    if (
        subprocess.run(
            ["bash", "-c", "nvidia-smi -L"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        ).returncode
        == 0
    ):
        print("skipped: there is a GPU")
        sys.exit(77)
    build, problems = pathlib.Path(words[0]).resolve(), []
    for name in words[1:]:
        wrong, count = check(pathlib.Path(name), build, "--update" in sys.argv)
        problems += wrong
        print(f"{name}: {count} blocks")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
