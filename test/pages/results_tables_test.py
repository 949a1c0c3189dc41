"""results_tables_test.py SCRIPTS: it must fill tables, and find one that is not the files'."""

import contextlib
import pathlib
import sys
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, sys.argv.pop(1))
import results_tables


def page(body):
    return f"Before.\n\n<!-- table: replay -->\n{body}<!-- end of table -->\n\nAfter.\n"


@contextlib.contextmanager
def recorded(**lists):
    """The results beside this test, recorded on the simulator or made up, in the place of misc/results."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(unittest.mock.patch.object(results_tables, "RESULTS", HERE))
        for name, value in lists.items():
            stack.enter_context(unittest.mock.patch.object(results_tables.lists, name, value))
        stack.callback(results_tables.load.cache_clear)
        yield


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

    def test_where_it_loses_says_what_the_tables_say(self):
        rows = [line.split(" | ") for line in results_tables.where_it_loses().splitlines()[2:] if line.startswith("|")]
        said = {row[0].lstrip("| "): row[1] for row in rows}
        within_8_mib = [line for line in results_tables.training().splitlines() if " | 8 MiB | " in line]
        worst = max(float(line.split(" | ")[4].strip("*")) for line in within_8_mib)
        self.assertIn(f"to {100 * (worst - 1):.0f} % longer", said["training within 8 MiB"])
        page = (HERE.parent.parent / "misc" / "docs" / "RESULTS.md").read_text(encoding="utf-8")
        for row in rows:
            for anchor in results_tables.re.findall(r"\(#([a-z-]+)\)", row[2]):
                headings = [line.lstrip("# ").lower().replace(" ", "-") for line in page.splitlines() if line.startswith("#")]
                self.assertIn(anchor, headings)

    def test_an_older_run_of_the_same_kind_is_not_shown(self):
        old, new = ({"case": "volume", "math": "fma", "device_memory_bytes": 1, "device": "NVIDIA A", "run": run}
                    for run in (1, 2))
        with unittest.mock.patch.object(results_tables, "load", lambda name: [old, new]):
            self.assertEqual([new], list(results_tables.newest_host_tensors()))

    def test_shares(self):
        with recorded(SHARES=(("shares_simulated", "AlexNet, N=256, TF32"),), REVISIONS={"shares_simulated": "3ac34d2"}):
            header, _, row, _, footer, _ = results_tables.shares().splitlines()
        self.assertEqual(header.count("|"), row.count("|"))
        self.assertEqual(
            row,
            "| AlexNet, N=256, TF32 | A100-SXM4-80GB, H200 | 64, 8 MiB | 89, 167 | 7.95 | +0.0 % | 1.26 | 0.83 | 1.38 |",
        )
        self.assertIn("host memory, 2026-11-26; 3ac34d2", footer)

    def test_shares_pytorch(self):
        with recorded(SHARES_PYTORCH=("shares_pytorch",), REVISIONS={"shares_pytorch": "ff1a6a1"}):
            header, _, row, _, footer, *_ = results_tables.shares_pytorch().splitlines()
        self.assertEqual(header.count("|"), row.count("|"))
        self.assertEqual(
            row,
            "| TF32 | 132 + 64 | 170 + 86 | 50.0 | 44.0 | 1.44 | 0.95 | 1.40 | 1.57 | 3.0e-06 | 2.0e-04 | 1.0e-04 | 1.0e-05 |",
        )
        self.assertIn(", ff1a6a1.", footer)

    def test_devices(self):
        texts = ["0: NVIDIA H100 80GB HBM3", "1: NVIDIA H100 80GB HBM3", "2: NVIDIA H100 80GB HBM3 (64 SMs, emulated)"]
        self.assertEqual("2 x H100, H100/64", results_tables.devices_text([{"device": text} for text in texts]))
        bounds = [{"limit_bytes": 64 << 20, "most_samples": samples} for samples in (256, 80)]
        self.assertEqual("64 MiB, N <= 256, 80", results_tables.bounds_text(bounds))

    def test_numbers(self):
        self.assertEqual(
            ["0.44", "7.86", "10.0", "46.9", "100", "1411"],
            [results_tables.number(value) for value in (0.44, 7.86, 9.996, 46.94, 99.96, 1410.7)],
        )


if __name__ == "__main__":
    unittest.main()
