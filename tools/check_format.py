#!/usr/bin/env python3
"""Checks that every C file is as clang-format 14 would write it. Changes nothing.

Other versions format differently, so without version 14 the check is skipped (exit code 77).
"""

import os
import re
import shutil
import subprocess
import sys

TREES = ("src", "include", "tests", "bench", "tools")
# Recorded output of the emitters, kept as they write it.
SKIPPED = ("tests/golden/",)


def find_formatter():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True)
            if re.search(r"version 14\.", version.stdout):
                return path
    return None


def c_files(root):
    for tree in TREES:
        for folder, _, names in os.walk(os.path.join(root, tree)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if name.endswith((".c", ".h")) and not path.startswith(SKIPPED):
                    yield path


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    formatter = find_formatter()
    if not formatter:
        print("skipped: no clang-format 14 here")
        return 77
    files = list(c_files(root))
    if not files:
        return 0
    return subprocess.run([formatter, "--dry-run", "-Werror", *files], cwd=root).returncode and 1


if __name__ == "__main__":
    sys.exit(main())
