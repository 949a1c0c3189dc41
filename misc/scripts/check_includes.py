#!/usr/bin/env python3
"""Checks that the folders of src/ include each other as misc/docs/ARCHITECTURE.md says.

usage: misc/scripts/check_includes.py [ROOT]

The section "## Arrows" has a line for each folder that includes others: "`planner` -> `cache`, `plan`". A new
arrow, one that is listed and no longer there, and a cycle are each reported, and the exit status is 1.
"""
import pathlib
import re
import sys

SOURCES = (".c", ".cpp", ".h", ".hpp")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
NAME = r"`([a-z_]+)`"
LINE = re.compile(rf"{NAME} -> ({NAME}(?:, {NAME})*)")


def arrows_of_sources(src):
    """{(from, to): the first file that includes so}"""
    folders = {folder.name for folder in src.iterdir() if folder.is_dir()}
    arrows = {}
    for path in sorted(src.glob("*/**/*")):
        if path.suffix not in SOURCES:
            continue
        origin = path.relative_to(src).parts[0]
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            # As the compiler looks it up: beside the file, then in src/.
            beside = (path.parent / include).resolve()
            found = beside if beside.is_file() else (src / include).resolve()
            if not found.is_relative_to(src):
                continue
            target = found.relative_to(src).parts[0]
            if target in folders and target != origin:
                arrows.setdefault((origin, target), path.relative_to(src.parent))
    return arrows


def arrows_of_document(document):
    text = document.read_text(encoding="utf-8")
    section = re.search(r"^## Arrows\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if not section:
        raise SystemExit(f'{document} has no section "## Arrows"')
    arrows = set()
    for line in section[1].splitlines():
        if not line.startswith("`"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            raise SystemExit(f'{document}: "{line}" is no line like "`planner` -> `cache`, `plan`"')
        arrows |= {(match[1], target) for target in re.findall(NAME, match[2])}
    return arrows


def find_cycle(arrows):
    """The folders of one cycle, the first repeated at the end; none: an empty list."""
    targets = {}
    for origin, target in sorted(arrows):
        targets.setdefault(origin, []).append(target)
    finished = set()

    def search(path):
        if path[-1] in path[:-1]:
            return path[path.index(path[-1]):]
        for target in targets.get(path[-1], []):
            if target not in finished and (cycle := search(path + [target])):
                return cycle
        finished.add(path[-1])
        return []

    return next((cycle for origin in targets if (cycle := search([origin]))), [])


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent.parent).resolve()
    there = arrows_of_sources(root / "src")
    listed = arrows_of_document(root / "misc" / "docs" / "ARCHITECTURE.md")
    findings = [f"{there[origin, target]}: the arrow {origin} -> {target} is new"
                for origin, target in sorted(there.keys() - listed)]
    findings += [f"misc/docs/ARCHITECTURE.md: the arrow {origin} -> {target} is no more"
                 for origin, target in sorted(listed - there.keys())]
    if cycle := find_cycle(there):
        findings.append(f"src: a cycle, {' -> '.join(cycle)}")
    if not there:
        findings.append("src: no arrow was found: it was not read")
    print("\n".join(findings) or f"{len(there)} arrows, as misc/docs/ARCHITECTURE.md has them")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
