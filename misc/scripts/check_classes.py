#!/usr/bin/env python3
"""Checks that no class has more than 25 methods: misc/scripts/check_classes.py BUILD [ROOT]

A method is a function that the class declares: each overload, static and template ones too. Constructors, destructors
and operators are not counted: a value needs them, whatever it does. A nested class is counted by itself, and what a
class inherits is another's. Looks at include/ and at src/ without the simulator, with the commands that CMake has
written to BUILD.
"""
import json
import multiprocessing
import os
import pathlib
import re
import shlex
import sys

try:
    import clang.cindex
except ImportError:
    sys.path.append("/usr/lib/python3/dist-packages")  # Debian's python3-clang-14, for another Python
    import clang.cindex

MOST = 25

Kind = clang.cindex.CursorKind
SCOPES = (Kind.NAMESPACE, Kind.LINKAGE_SPEC, Kind.UNEXPOSED_DECL)
CLASSES = (Kind.CLASS_DECL, Kind.STRUCT_DECL, Kind.UNION_DECL, Kind.CLASS_TEMPLATE,
           Kind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION)
METHODS = (Kind.CXX_METHOD, Kind.FUNCTION_TEMPLATE)
DEFINES_A_CLASS = re.compile(r"\b(class|struct|union)\b[^;(){]*\{")


def is_method(member):
    if member.kind not in METHODS or member.spelling.startswith("operator"):
        return False
    # A template's constructor is a function template of the class's name.
    return member.spelling.split("<")[0] != member.semantic_parent.spelling


def classes_in(cursor, is_ours, scope=()):
    """(name, file, line, number of methods) of each class that is defined in a file of ours."""
    for child in cursor.get_children():
        if child.kind not in SCOPES + CLASSES or not child.location.file or not is_ours(child.location.file.name):
            continue
        names = (*scope, child.spelling) if child.spelling else scope
        if child.kind in CLASSES and child.is_definition():
            path = str(pathlib.Path(child.location.file.name).resolve())
            yield "::".join(names), path, child.location.line, sum(map(is_method, child.get_children()))
        yield from classes_in(child, is_ours, names)


def read(task):
    """The classes of a source; with a text in its place, of the folder's headers that it includes."""
    path, text, directory, arguments, folder = task
    os.chdir(directory)
    unit = clang.cindex.Index.create().parse(path,
                                             [*arguments, "-w"],
                                             [(path, text)] if text else None,
                                             clang.cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES)
    errors = [str(found) for found in unit.diagnostics if found.severity >= clang.cindex.Diagnostic.Error]
    if errors:
        raise RuntimeError(f"{path} can't be read: {errors[0]}")
    return list(classes_in(unit.cursor, lambda name: name.startswith(f"{folder}/") if text else name == path))


def tasks_of(build, root):
    tasks, folders = {}, {}  # folders: where headers are looked for, by any source
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(root / "src") or path.is_relative_to(root / "src" / "simulator"):
            continue
        words = shlex.split(entry["command"])
        arguments = words[words.index(next(word for word in words if word.startswith("-"))):words.index("-o")]
        folders.update({word: None for word in re.findall(r"-I\S+|-isystem \S+", " ".join(arguments))})
        if path.suffix == ".cpp" and DEFINES_A_CLASS.search(path.read_text(encoding="utf-8")):
            tasks[path] = (str(path), None, entry["directory"], arguments, path.parent)
    arguments = ["-std=c++17", *" ".join(folders).split(" ")]
    headers = {}
    for path in sorted((*root.glob("src/**/*.h*"), *root.glob("include/**/*.h"))):
        if not path.is_relative_to(root / "src" / "simulator"):
            headers.setdefault(path.parent, []).append(f'#include "{path}"\n')
    for folder, includes in headers.items():
        tasks[folder] = (str(folder / "all_headers.cpp"), "".join(includes), str(build), arguments, folder)
    return list(tasks.values())


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parent.parent.parent).resolve()
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        classes = {found for classes in pool.map(read, tasks_of(build, root), 1) for found in classes}
    findings = [f"{pathlib.Path(path).relative_to(root)}:{line}: {name} has {methods} methods, more than {MOST}"
                for name, path, line, methods in sorted(classes) if methods > MOST]
    if not classes:
        findings.append(f"{build} has no class: nothing was read")
    print("\n".join(findings) or f"{len(classes)} classes")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
