"""replay_commands_test.py SCRIPTS: misc/scripts/replay_commands.py must find what a page shows and nobody prints."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
import replay_commands

EXAMPLE = "misc/examples/convolution.cpp"


def checked(text, update=False):
    """The faults of a page of this text, and the page afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.md"
        page.write_text(text, encoding="utf-8")
        wrong, _ = replay_commands.check(page, pathlib.Path(folder), update)
        return wrong, page.read_text(encoding="utf-8")


def block(comment, body, kind="console"):
    return f"Text.\n\n<!-- {comment} -->\n```{kind}\n{body}```\n"


class ReplayCommandsTest(unittest.TestCase):
    def expect_right(self, text):
        self.assertEqual([], checked(text)[0])

    def expect_wrong(self, part, text):
        wrong, _ = checked(text)
        self.assertEqual(1, len(wrong), wrong)
        self.assertIn(part, wrong[0])

    def test_later_commands_of_a_block_have_its_exports(self):
        self.expect_right(block("replayed", "$ export A=1\n$ export B=2\n$ echo $A $B\n1 2\n"))
        self.expect_right(block("replayed", "$ export A=1\n") + block("replayed", "$ echo $A.\n.\n"))

    def test_output(self):
        self.expect_right(block("replayed", "$ echo one; echo two\none\ntwo\n"))
        self.expect_wrong("prints otherwise:\none\ntwo", block("replayed", "$ echo one; echo two\none\n"))
        self.expect_wrong("page.md:3: ", block("replayed", "$ echo one\ntwo\n"))

    def test_any_lines(self):
        self.expect_right(block("replayed", "$ seq 5\n1\n...\n5\n"))
        self.expect_right(block("replayed", "$ seq 5\n...\n5\n...\n"))
        self.expect_wrong("otherwise", block("replayed", "$ seq 5\n1\n...\n6\n"))

    def test_what_varies(self):
        self.expect_right(
            block(r"replayed; varies: in \d+ ms", "$ echo done in 7 ms, 3 times\ndone in 9 ms, 3 times\n")
        )
        self.expect_wrong(
            "otherwise", block(r"replayed; varies: in \d+ ms", "$ echo in 7 ms, 3 times\nin 9 ms, 4 times\n")
        )

    def test_status(self):
        self.expect_wrong("exit status 3", block("replayed", "$ exit 3\n"))

    def test_excerpt(self):
        self.expect_right(block(f"from: {EXAMPLE}", "UcudnnHandle_t handle;  // was: cudnnHandle_t\n", "cpp"))
        self.expect_wrong(
            "has no line 'UcudnnHandle_t wrong;'", block(f"from: {EXAMPLE}", "UcudnnHandle_t wrong;\n", "cpp")
        )

    def test_recording(self):
        name = "recorded: misc/results/pytorch_h100.json alexnet_64MiB_fill_89fc817"
        self.expect_right(
            block(
                name,
                "$ train\nucudnn: 84 convolution calls: 84 split, 0 undivided, 0 left to cuDNN; "
                "56 replayed; planning took 4.6 s\n...\n",
            )
        )
        self.expect_wrong("another report", block(name, "$ train\nucudnn: 85 convolution calls\n...\n"))

    def test_comments(self):
        self.expect_right(block("not replayed: it needs a network", "$ curl\n"))
        self.expect_wrong("no comment says", "```console\n$ echo\n```\n")
        self.expect_wrong("nobody knows", block("replayed sometimes", "$ echo\n"))

    def test_update(self):
        text = block("replayed", "$ echo one\ntwo\n") + block("replayed", "$ seq 9\n1\n...\n")
        wrong, after = checked(text, update=True)
        self.assertEqual([], wrong)
        self.assertEqual(text.replace("two\n", "one\n"), after)


if __name__ == "__main__":
    unittest.main()
