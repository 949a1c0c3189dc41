"""Shared by misc/scripts/draw_*.py: an SVG's parts as text, and a file that is written or checked."""
import sys

GRAY, BLUE, RED = "#b8bcc2", "#2f6fb0", "#c0392b"


def text(x, y, words, size=13, anchor="start", color="#222", weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" '
        f'font-weight="{weight}">{words}</text>'
    )


def rectangle(x, y, width, height, color):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height}" fill="{color}"/>'


def line(x1, y1, x2, y2, color, dashes="4 3"):
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-dasharray="{dashes}"/>'
    )


def circle(x, y, color):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>'


def page(width, height, parts):
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def write_or_check(path, drawn, usage):
    """Writes the file; with --check says whether it is another."""
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(usage)
    if not sys.argv[1:]:
        path.write_text(drawn, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != drawn:
        sys.exit(f"{path.name} is not what misc/results/ says: {sys.argv[0]} draws it anew")
