#!/usr/bin/env python3
"""Checks what clang-format cannot: banned functions, sizes, white space, how files begin.

    check_style.py [FILE...]     the whole tree without FILEs

Generated and recorded files (folders called golden, corpora, .ptx) are not checked.
"""

import os
import re
import sys

MAX_LINES = 600
MAX_FUNCTION = 60
MAX_COLUMNS = 100

# Folders that are walked, besides the files at the top.
TREES = ("src", "include", "gen", "spec", "tests", "bench", "tools", "cmake", "docs", ".githooks",
         ".ci")
SKIPPED = re.compile(r"(^|/)(__pycache__|corpus|build|golden)/")

# Where the limits on size hold.
MEASURED = ("src/", "gen/", "spec/")
# Programs of their own; everything else is loaded into another program's process.
PROGRAMS = ("src/cli/", "src/move/command/",
            "src/remote/server/listener/main.c", "tests/", "bench/", "tools/")

BANNED = "strcpy strcat sprintf strtok atoi alloca system"
BANNED_IN_LIBRARIES = "exit abort printf signal setenv"

C = (".c", ".h")
TEXT = C + (".S", ".py", ".js", ".css", ".html", ".cmake", ".map", ".sh", ".cu", ".txt", ".md")
CODE = (".c", ".h", ".S", ".py", ".js", ".css")

# Comments, strings and character constants: where a word is not code.
NOT_CODE = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def call_pattern(names):
    # Not a member: x->exit(...) and x.signal(...) are function pointers.
    return re.compile(r"(?<![\w.])(?<!->)(" + "|".join(names.split()) + r")\s*\(")


EVERYWHERE = call_pattern(BANNED)
LIBRARIES = call_pattern(BANNED + " " + BANNED_IN_LIBRARIES)


# In a program with more rights than its user, variables of that user have no say. What selects
# devices is harmless, and the program's administrator may rely on it.
INSECURE = re.compile(r'(?<![\w.])getenv\s*\((?!"CUDA_)')


def strip_c(text):
    """text with everything that is not code replaced by blanks."""
    return NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_banned(path, code):
    pattern = EVERYWHERE if path.startswith(PROGRAMS) else LIBRARIES
    for match in pattern.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, f"{match.group(1)} is banned"


def check_environment(path, text):
    if path.startswith("src/") and not path.startswith(PROGRAMS):
        for match in INSECURE.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, "getenv is banned; use secure_getenv"


def check_functions(code):
    """Our format puts a function's braces, and nothing else, at the start of a line."""
    start = None
    for number, line in enumerate(code.split("\n"), 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start:
            if number - start - 1 > MAX_FUNCTION:
                yield start, f"a function of {number - start - 1} lines (at most {MAX_FUNCTION})"
            start = None


def check_c(path, text):
    code = strip_c(text)
    yield from check_banned(path, code)
    yield from check_environment(path, text)
    if not text.startswith("/*"):
        yield 1, "does not open with a comment that says what it is"
    if path.endswith(".h") and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield 1, "a header without #pragma once"
    if path.startswith(MEASURED):
        yield from check_functions(code)
    for match in NOT_CODE.finditer(text):
        if match.group().startswith("//"):
            yield text.count("\n", 0, match.start()) + 1, "comments are written /* */"


def check_white_space(path, lines):
    name = os.path.basename(path)
    for number, line in enumerate(lines, 1):
        if "\t" in line and name != "Makefile":
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "white space at the end of the line"
        # Tables and links in prose cannot be folded.
        if len(line) > MAX_COLUMNS and not name.endswith((".md", ".html", ".cu")):
            yield number, f"{len(line)} columns (at most {MAX_COLUMNS})"


def check_text(path, text):
    """The complaints about one file, as (line, message)."""
    lines = text.split("\n")
    found = list(check_white_space(path, lines))
    if text and not text.endswith("\n"):
        found.append((len(lines), "no newline at the end"))
    if path.startswith(MEASURED) and path.endswith(CODE) and len(lines) - 1 > MAX_LINES:
        found.append((MAX_LINES + 1, f"{len(lines) - 1} lines (at most {MAX_LINES})"))
    if path.endswith(C):
        found += check_c(path, text)
    return sorted(found)


def is_script(full):
    with open(full, "rb") as f:
        return f.read(2) == b"#!"


def is_checked(root, path):
    full = os.path.join(root, path)
    if SKIPPED.search(path) or not os.path.isfile(full) or os.path.islink(full):
        return False
    if path.startswith(TREES) or "/" not in path:
        return path.endswith(TEXT) or path == "Makefile" or is_script(full)
    return False


def all_files(root):
    for name in sorted(os.listdir(root)):
        if os.path.isfile(os.path.join(root, name)):
            yield name
    for tree in TREES:
        for folder, _, names in os.walk(os.path.join(root, tree)):
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), root)


def main(args):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad = 0
    for path in args or all_files(root):
        if not is_checked(root, path):
            continue
        try:
            with open(os.path.join(root, path), encoding="utf-8") as f:
                text = f.read()
        except UnicodeDecodeError:
            print(f"{path}:1: not UTF-8")
            bad += 1
            continue
        for line, message in check_text(path, text):
            print(f"{path}:{line}: {message}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
