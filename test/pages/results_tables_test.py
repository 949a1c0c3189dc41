"""results_tables_test.py SCRIPTS: it must fill tables, and find one that is not the files'."""

import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import results_tables


def page(body):
    return f"Before.\n\n<!-- table: replay -->\n{body}<!-- end of table -->\n\nAfter.\n"


class ResultsTablesTest(unittest.TestCase):
    def test_fills(self):
        filled = results_tables.filled(page(""), "page.md")
        self.assertIn("| 64 MiB | 3 | 2.03 | 62.7 | 4 | 2.12 | 267 |", filled)
        self.assertTrue(filled.startswith("Before.") and filled.endswith("After.\n"))
        self.assertEqual(filled, results_tables.filled(filled, "page.md"))
        self.assertEqual(filled, results_tables.filled(filled.replace("2.03", "2.04"), "page.md"))

    def test_refuses_unknown_table(self):
        with self.assertRaisesRegex(SystemExit, "page.md: there is no table gain"):
            results_tables.filled(page("").replace("replay", "gain"), "page.md")

    def test_losses_stand_first_and_bold(self):
        rows = [line.split(" | ") for line in results_tables.training().splitlines()[2:] if line.startswith("|")]
        times = [float(row[4].strip("*")) for row in rows]
        self.assertEqual(sorted(times, reverse=True), times)
        self.assertTrue(all(row[4].startswith("**") == (time >= 1.01) for row, time in zip(rows, times)))

    def test_numbers(self):
        self.assertEqual(
            ["0.44", "7.86", "10.0", "46.9", "100", "1411"],
            [results_tables.number(value) for value in (0.44, 7.86, 9.996, 46.94, 99.96, 1410.7)],
        )


if __name__ == "__main__":
    unittest.main()
