#!/usr/bin/env python3
"""Checks README.md and misc/docs: misc/scripts/check_pages.py [ROOT]

- No line is wider than 120 columns.
- A link leads to a file that is there, and to a heading that it has.
- No sentence opens with Of, What or That, which put its object before its verb.
"""

import pathlib
import re
import sys

COLUMNS = 120
LINK = re.compile(r"\]\(([^)\s]+)\)")
OPENING = re.compile(r"(?:^|[.:!?]\s+|^[-*] |^\d+\. )((?:Of|What|That)\b[^.]{0,40})")


def without_code(text):
    """Blocks and spans of code become blank; lines stay."""
    text = re.sub(r"^```.*?^```$", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "`", text)


def anchors(path):
    """GitHub's anchors for a page's headings."""
    text = without_code(path.read_text(encoding="utf-8").replace("`", ""))
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for link in LINK.findall(line):
            if link.startswith("http"):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists():
                yield number, f"there is no {link}"
            elif anchor and anchor not in anchors(target):
                yield number, f"{file or 'this page'} has no heading #{anchor}"


def openings(text):
    """A paragraph is read as one line: a sentence may begin anywhere in it."""
    number = 1
    for paragraph in re.split(r"(\n\s*\n)", text):
        items = re.split(r"\n(?=\s*(?:[-*|]|\d+\.)\s?)", paragraph)
        line = number
        for item in items:
            stripped = re.sub(r"\s+", " ", item).strip()
            for cell in stripped.split("|") if stripped.startswith("|") else [stripped]:
                for found in OPENING.finditer(cell.strip()):
                    yield line, f"opens with its object: {found[1].strip()}"
            line += item.count("\n") + 1
        number += paragraph.count("\n")


def main(root):
    findings = []
    for path in [root / "README.md", *sorted((root / "misc" / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        found = [
            (number, f"{len(line)} columns") for number, line in enumerate(text.splitlines(), 1) if len(line) > COLUMNS
        ]
        found += [*links(path, without_code(text)), *openings(without_code(text))]
        findings += [f"{path.relative_to(root)}:{number}: {what}" for number, what in sorted(found)]
    print("\n".join(findings) or "README.md and misc/docs are as they should be")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(
        main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent.parent).resolve())
    )
