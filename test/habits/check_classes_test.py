"""check_classes_test.py SCRIPT: misc/scripts/check_classes.py must count what is a method in small trees, and nothing else."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)
METHODS = " ".join(f"void f{i}();" for i in range(25))


class CheckClassesTest(unittest.TestCase):
    def check(self, *sources):
        """Exit status and output for src/room/room.hpp and room.cpp, beside a class in a header that is included."""
        with tempfile.TemporaryDirectory() as root:
            room = pathlib.Path(root) / "src" / "room"
            room.mkdir(parents=True)
            (room / "known.hpp").write_text(
                f"#pragma once\nnamespace ucudnn {{\nclass Known {{ {METHODS} }};\n}}\n")
            for suffix, text in zip(("hpp", "cpp"), sources):
                (room / f"room.{suffix}").write_text(text + "\n")
            (room / "other.cpp").write_text('#include "room/known.hpp"\n')
            commands = [{"directory": root, "file": str(path),
                         "command": f"clang++ -I{root}/src -std=c++17 -o {path.stem}.o -c {path}"}
                        for path in sorted(room.glob("*.cpp"))]
            (pathlib.Path(root) / "compile_commands.json").write_text(json.dumps(commands))
            done = subprocess.run([sys.executable, SCRIPT, root, root], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def test_what_is_no_method(self):
        members = "A(); template <typename T> A(T); ~A(); A& operator=(const A&); operator int() const; friend void g(A);"
        status, output = self.check(f"class A {{ {METHODS} {members} class B {{ {METHODS} }}; int (*h)(int); }};")
        self.assertEqual((0, "3 classes\n"), (status, output))

    def test_methods_of_each_kind(self):
        for method in ("int g();", "int g() const { return 0; }", "static int g();", "template <typename T> int g();",
                       "virtual int g() = 0;", "int f0(int);"):
            for kind in "class A", "struct A", "template <typename U> class A":
                status, output = self.check(f"\n{kind} {{ {METHODS} {method} }};")
                self.assertEqual((1, "src/room/room.hpp:2: A has 26 methods, more than 25\n"), (status, output), method)

    def test_nested_and_in_sources(self):
        large = f"{METHODS} int g();"
        status, output = self.check("", f"namespace n {{ namespace {{ class A {{ struct B {{ {large} }}; }}; }} }}")
        self.assertEqual((1, "src/room/room.cpp:1: n::A::B has 26 methods, more than 25\n"), (status, output))

    def test_what_cannot_be_read(self):
        status, output = self.check('#include "nowhere.hpp"')
        self.assertEqual(1, status)
        self.assertIn("can't be read", output)


if __name__ == "__main__":
    try:
        sys.path.append("/usr/lib/python3/dist-packages")
        import clang.cindex  # noqa: F401
    except ImportError:
        print("skipped: no python3-clang-14, which misc/check.sh installs")
        sys.exit(0)
    unittest.main()
