"""check_pages_test.py SCRIPT: misc/scripts/check_pages.py must find what is wrong in small pages, and nothing else."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv.pop(1)).resolve()


def check(readme, other="# Other\n\n## A heading, `coded`\n"):
    """The exit status, and what is printed for a README beside one other page."""
    with tempfile.TemporaryDirectory() as root:
        docs = pathlib.Path(root) / "misc" / "docs"
        docs.mkdir(parents=True)
        (pathlib.Path(root) / "README.md").write_text(readme, encoding="utf-8")
        (docs / "OTHER.md").write_text(other, encoding="utf-8")
        done = subprocess.run([sys.executable, SCRIPT, root], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


class CheckPagesTest(unittest.TestCase):
    def expect_right(self, readme):
        self.assertEqual((0, "README.md and misc/docs are as they should be\n"), check(readme))

    def expect_wrong(self, finding, readme):
        self.assertEqual((1, f"README.md:{finding}\n"), check(readme))

    def test_width(self):
        self.expect_right("µ" * 120 + "\n")
        self.expect_wrong("2: 121 columns", "\n" + "a" * 121 + "\n")
        self.expect_wrong("2: 121 columns", "```console\n" + "a" * 121 + "\n```\n")

    def test_links(self):
        self.expect_right("[other](misc/docs/OTHER.md#a-heading-coded) [page](https://example.org/x#y)\n")
        self.expect_right("```\n[no](link)\n```\n`[no](link)`\n")
        self.expect_wrong("1: there is no misc/docs/GONE.md", "[gone](misc/docs/GONE.md)\n")
        self.expect_wrong("1: misc/docs/OTHER.md has no heading #gone", "[gone](misc/docs/OTHER.md#gone)\n")

    def test_openings(self):
        self.expect_right(
            "Most of it is what we want: that is all, and\nOfficers, Whatever and Thatcher open sentences.\n"
        )
        self.expect_wrong(
            "3: opens with its object: Of two kernels the engine is kept",
            "One line.\n\nOf two kernels the engine is kept.\n",
        )
        self.expect_wrong(
            "2: opens with its object: What gains nothing runs undivided",
            "- An item.\n- What gains nothing runs undivided.\n",
        )
        self.expect_wrong(
            "1: opens with its object: That a kernel is missing holds once",
            "A sentence. That a kernel is missing\nholds once.\n",
        )

    def test_other_pages(self):
        self.assertEqual((1, "misc/docs/OTHER.md:1: 121 columns\n"), check("Text.\n", "a" * 121 + "\n"))


if __name__ == "__main__":
    unittest.main()
