"""check_warnings_test.py SCRIPT: misc/scripts/check_warnings.py must find a line that nobody has asked for, and nothing else."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)


class CheckWarningsTest(unittest.TestCase):
    def check(self, name, line):
        """Exit status and output for a tree with this line alone."""
        with tempfile.TemporaryDirectory() as root:
            path = pathlib.Path(root) / "src" / name
            path.parent.mkdir(parents=True)
            path.write_text(line + "\n")
            done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def test_warnings_and_errors_elsewhere(self):
        for line in 'logWarn("{}", why);', 'logError("{}", why);', "log(LogLevel::kWarn, why);":
            status, output = self.check("api/backend.cpp", line)
            self.assertEqual((1, f"src/api/backend.cpp:1: not said unless it is asked for: {line}\n"), (status, output))

    def test_what_is_asked_for(self):
        self.assertEqual((0, ""), self.check("api/backend.cpp", 'logInfo("{}", why);'))
        self.assertEqual((0, ""), self.check("planner/frozen_plans.cpp", 'logWarn("{}", why);'))


if __name__ == "__main__":
    unittest.main()
