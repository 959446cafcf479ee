#!/usr/bin/env python3
"""Checks that src/share/sched/policies.def agrees with the files, the guides and the manual.

1. Every line has its file in src/share/sched/policy/, and every file there its line.
2. Every policy that docs/sharing.md and docs/man/heddle-sched.1 describe exists.
3. The policy that docs/adding-a-policy.md shows compiles (with --cc).

A new policy needs no line in the guides: `heddle sched policies` shows it.

    check_policies.py [--cc COMPILER]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOM = "src/share/sched"
PAGE = "docs/adding-a-policy.md"
LINE = re.compile(r'^POLICY\((\w+), "[^"\n]+"\)$', re.MULTILINE)


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def listed():
    """The names in policies.def, and whether each line has the form that the build expects."""
    text = read(f"{ROOM}/policies.def")
    names = LINE.findall(text)
    lines = [line for line in text.splitlines() if line.startswith("POLICY")]
    return names, len(lines) == len(names)


def described(path, section, row):
    """The policies that a page names in one of its sections."""
    found = re.search(section, read(path), re.DOTALL)
    return re.findall(row, found.group(1), re.MULTILINE) if found else []


def shown_code():
    """The new C file of the diff in the page, without the diff's marks."""
    found = re.search(r"^\+\+\+ b/src/share/sched/policy/\w+\.c\n@@[^\n]*\n((?:\+[^\n]*\n)+)",
                      read(PAGE), re.MULTILINE)
    return "".join(line[1:] + "\n" for line in found.group(1).splitlines()) if found else None


def check_shown_code(compiler):
    code = shown_code()
    if not code:
        return f"{PAGE}: there is no diff with a new policy"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shown.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(code)
        r = subprocess.run([compiler, "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                            "-I", os.path.join(TOP, "src"), path],
                           capture_output=True, text=True, check=False)
    return f"{PAGE}: the policy in the diff does not compile:\n{r.stderr}" if r.returncode else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc")
    options = parser.parse_args()
    names, well_formed = listed()
    files = {f[:-2] for f in os.listdir(os.path.join(TOP, ROOM, "policy")) if f.endswith(".c")}
    pages = {
        "docs/sharing.md": (r"\n\| `policy=` \|[^\n]*\n\|[ -|]*\n(.*?)\n\n", r"^\| `(\w+)`"),
        "docs/man/heddle-sched.1": (r"\n\.BI policy= NAME\n(.*?)\n\.TP\n", r"^\.BR? (\w+)"),
    }
    complaints = []
    if not well_formed:
        complaints.append(f'{ROOM}/policies.def: a line is not of the form POLICY(name, "text")')
    for name in sorted(set(names) ^ files):
        complaints.append(f"{ROOM}: {name} has "
                          + ("a line but no file" if name in names else "a file but no line"))
    for path, (section, row) in pages.items():
        found = described(path, section, row)
        if not found:
            complaints.append(f"{path}: the list of policies was not found")
        complaints += [f"{path}: there is no policy {name}" for name in found if name not in names]
    if options.cc:
        complaints += filter(None, [check_shown_code(options.cc)])
    for text in complaints:
        print(text)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
