#!/usr/bin/env python3
"""Checks that every header compiles alone.

    check_headers.py [--cc COMPILER] [-I FOLDER]...

A header that needs a <something/else.h> that is not installed is named and skipped: its room is not
built on this machine either.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys

TREES = ("src", "include", "tests/harness")
MISSING = re.compile(r"fatal error: '?([^\s':]+)'?(?: file not found|: No such file)")


def headers(root):
    for tree in TREES:
        for folder, _, names in os.walk(os.path.join(root, tree)):
            for name in sorted(names):
                if name.endswith(".h"):
                    yield os.path.relpath(os.path.join(folder, name), root)


def missing_library(text, message):
    """The name of the absent system header that made the compiler stop, or None."""
    match = MISSING.search(message)
    return match.group(1) if match and f"<{match.group(1)}>" in text + message else None


def compile_alone(root, options, path):
    """None, or (is it an error, what to print)."""
    # By way of an #include, since a compiler warns about #pragma once in a main file.
    command = [options.cc, "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
               "-Wno-unused-parameter", "-fsyntax-only", "-x", "c", "-"]
    command += [f"-I{folder}" for folder in options.include]
    full = os.path.join(root, path)
    done = subprocess.run(command, input=f'#include "{full}"\n', capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"})
    if done.returncode == 0:
        return None
    with open(full, encoding="utf-8") as f:
        library = missing_library(f.read(), done.stderr)
    if library:
        return False, f"{path}: passed over, no <{library}> here"
    return True, f"{path} does not compile alone:\n{done.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc")
    parser.add_argument("-I", dest="include", action="append", default=[])
    options = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(lambda p: compile_alone(root, options, p), headers(root)):
            if result:
                bad += result[0]
                print(result[1])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
