"""check_includes_test.py SCRIPT: misc/scripts/check_includes.py must find what is wrong in small trees, and nothing else."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)


class CheckIncludesTest(unittest.TestCase):
    def check(self, arrows, **files):
        """Exit status and output for a tree with these arrows; files: folder__file="include, include"."""
        with tempfile.TemporaryDirectory() as root:
            tree = {name.replace("__", "/") + ".hpp": text for name, text in files.items()}
            for folder in {path.split("/")[0] for path in tree}:
                (pathlib.Path(root) / "src" / folder).mkdir(parents=True)
            for path, includes in tree.items():
                text = "".join(f"#include {include}\n" for include in includes.split(", ") if include)
                (pathlib.Path(root) / "src" / path).write_text(text)
            (pathlib.Path(root) / "misc" / "docs").mkdir(parents=True)
            (pathlib.Path(root) / "misc" / "docs" / "ARCHITECTURE.md").write_text(
                "# Title\n\n`b` -> `a`\n\n## Arrows\n\nWords.\n\n" + "\n".join(arrows) + "\n\n## Next\n\n`c` -> `a`\n")
            done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def test_listed_arrows_pass(self):
        status, output = self.check(["`c` -> `a`, `b`", "`b` -> `a`"], a__a="<vector>",
                                    b__b='"a/a.hpp", "b/own.hpp"', b__own="", c__c='"a/a.hpp", "../b/b.hpp"')
        self.assertEqual((0, "3 arrows, as misc/docs/ARCHITECTURE.md has them\n"), (status, output))

    def test_new_arrow(self):
        for include in '"a/a.hpp"', "<a/a.hpp>", '"../a/a.hpp"':
            status, output = self.check(["`c` -> `a`"], a__a="", b__b=include, c__c='"a/a.hpp"')
            self.assertEqual((1, "src/b/b.hpp: the arrow b -> a is new\n"), (status, output))

    def test_arrow_that_is_no_more(self):
        status, output = self.check(["`c` -> `a`, `b`"], a__a="", b__b="", c__c='"a/a.hpp"')
        self.assertEqual((1, "misc/docs/ARCHITECTURE.md: the arrow c -> b is no more\n"), (status, output))

    def test_cycle_even_where_its_arrows_are_listed(self):
        status, output = self.check(["`a` -> `c`", "`b` -> `a`", "`c` -> `b`"],
                                    a__a='"c/c.hpp"', b__b='"a/a.hpp"', c__c='"b/b.hpp"')
        self.assertEqual((1, "src: a cycle, a -> c -> b -> a\n"), (status, output))

    def test_line_that_cannot_be_read(self):
        status, output = self.check(["`b` -> a"], a__a="", b__b='"a/a.hpp"')
        self.assertEqual(1, status)
        self.assertIn('"`b` -> a" is no line like', output)

    def test_tree_without_arrows_was_not_read(self):
        status, output = self.check([], a__a="", b__b="")
        self.assertEqual((1, "src: no arrow was found: it was not read\n"), (status, output))


if __name__ == "__main__":
    unittest.main()
