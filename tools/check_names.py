#!/usr/bin/env python3
"""Checks that one name means one thing in all of src/.

    check_names.py

The rules:

1. A struct, enum or union tag that begins with hed_ is defined once.
2. A function or variable with linkage is defined once. A file called *none.c stands in for its
   neighbours when a library is missing, and may define what they define.
3. A static function's name is used in one file only, so that grep finds one thing.
4. A static function is not called by a bare verb: its name says what it acts on.

Several definitions in one file are alternatives (#if) and are fine.
"""

import os
import re
import sys
from collections import defaultdict

# Every program or plug-in has its own.
OWN = ("main", "hed_plugin_type", "hed_plugin_version")

BARE_VERBS = set("""
    accept acquire add alloc append apply ask attach await begin bind build call change charge check
    clear close collect compare compile connect copy count create cut deal decide decode detach do
    drop emit encode end enter expect extend fail fill find finish fini flush format free get give
    go grow handle init insert join keep launch leave let link list listen load lock look lookup
    lower make map mark match measure merge move name note notify open pack parse pass peek place
    play pop prepare print push put query read receive record ref refuse register release remove
    reply report reserve reset resolve ring run save say scan search see send set settle setup show
    skip sort spawn spin split start stop store sum take tell test trace trim try unlock unmap unref
    update use visit wait walk wake want work write
""".split())

NOT_CODE = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|_Alignas\s*\([^)]*\)|_Static_assert\s*\(.*?\)",
                       re.DOTALL)
TAG = re.compile(r"\b(struct|enum|union)\s+(hed_\w+)\s*\{")
FUNCTION = re.compile(r"(\w+)\s*\([^{}=;]*\)\s*$", re.DOTALL)
VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def strip_text(text):
    """text with comments, strings and directives replaced by blanks."""
    return DIRECTIVE.sub(blank, NOT_CODE.sub(blank, text))


def declarations(code):
    """The declarations at the top level: (offset, head, body begins with a brace)."""
    depth, start, brace = 0, 0, None
    for match in re.finditer(r"[{};]", code):
        at, c = match.start(), match.group()
        if c == "{":
            if depth == 0 and brace is None:
                brace = at
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0 and is_function(code[start:brace]):
                yield start, code[start:brace], True
                start, brace = at + 1, None
        elif depth == 0:
            yield start, code[start:at], False
            start, brace = at + 1, None


def is_function(head):
    head = ATTRIBUTE.sub("", head)
    return "=" not in head and "typedef" not in head and FUNCTION.search(head) is not None


def line_of(code, at):
    at += len(code[at:]) - len(code[at:].lstrip())
    return code.count("\n", 0, at) + 1


class Names:
    """The names that files define: name -> [(path, line)]."""

    def __init__(self):
        self.tags = defaultdict(list)
        self.externals = defaultdict(list)
        self.statics = defaultdict(list)

    def add(self, path, text):
        code = strip_text(text)
        for match in TAG.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            self.tags[match.group(2)].append((path, line))
        for at, head, has_body in declarations(code):
            self.add_declaration(path, line_of(code, at), head, has_body)

    def add_declaration(self, path, line, head, has_body):
        plain = ATTRIBUTE.sub("", head).strip()
        words = plain.split()
        if not words or "typedef" in words or "extern" in words:
            return
        if has_body:
            table = self.statics if "static" in words else self.externals
            name = FUNCTION.search(plain).group(1)
            if not name.isupper():  # a macro that defines functions
                table[name].append((path, line))
        elif "static" not in words:
            self.add_variable(path, line, plain)

    def add_variable(self, path, line, plain):
        # `HED_EXPORT int x`, `const struct s x[] = {...}`; not a prototype or a type alone.
        head = plain.split("=")[0]
        if "(" in head or re.fullmatch(r"(struct|enum|union)\s+\w+\s*(\{.*\})?", plain, re.DOTALL):
            return
        match = VARIABLE.search(head.strip())
        if match and len(head.split()) > 1:
            self.externals[match.group(1)].append((path, line))


def files_of(places):
    return sorted({path for path, _ in places})


def is_stand_in(paths):
    """All but one file stand in for a missing library."""
    return sum(not path.endswith("none.c") for path in paths) <= 1


def twice(table, what, stand_ins):
    for name, places in sorted(table.items()):
        paths = files_of(places)
        if len(paths) > 1 and name not in OWN and not (stand_ins and is_stand_in(paths)):
            where = ", ".join(f"{path}:{line}" for path, line in places[1:])
            yield places[0], f"{what} {name} is also defined in {where}"


def shared_statics(names):
    """The static functions whose name another file uses: one entry per file."""
    for name, places in sorted(names.statics.items()):
        paths = files_of(places)
        if len(paths) > 1 and not is_stand_in(paths):
            for place in places:
                others = ", ".join(p for p in paths if p != place[0])
                yield place, f"static function {name} has its name in {others} too"


def bare_statics(names):
    for name, places in sorted(names.statics.items()):
        if name in BARE_VERBS:
            for place in places:
                yield place, f"static function {name} is a bare verb: say what it acts on"


def check_files(files):
    """The complaints about {path: text}, as ((path, line), message)."""
    names = Names()
    for path, text in sorted(files.items()):
        names.add(path, text)
    found = list(twice(names.tags, "tag", False))
    found += twice(names.externals, "name", True)
    found += shared_statics(names)
    found += bare_statics(names)
    return found


def read_tree(root):
    files = {}
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in names:
            if name.endswith((".c", ".h")):
                full = os.path.join(folder, name)
                with open(full, encoding="utf-8", errors="replace") as f:
                    files[os.path.relpath(full, root)] = f.read()
    return files


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = check_files(read_tree(root))
    for (path, line), message in found:
        print(f"{path}:{line}: {message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
