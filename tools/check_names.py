#!/usr/bin/env python3
"""Checks that one name means one thing in all of src/, and that one thing is written once.

    check_names.py

The rules:

1. A struct, enum or union tag that begins with hed_ is defined once.
2. A function or variable with linkage is defined once. A file called *none.c stands in for its
   neighbours when a library is missing, and may define what they define.
3. A static function's name is used in one file of its storey only, so that grep finds one thing.
   In another storey the same name may mean something else.
4. A static function is not called by a bare verb: its name says what it acts on.
5. No two functions have the same body: a copy, under one name or two, moves down to a place that
   both can use. Names of parameters and local variables do not count, and bodies with fewer than
   BODY_TOKENS tokens are left alone. COPIES lists the copies that stay, with the reason.
6. No text that a user reads, which is a string with a blank, stands in both tiers of PTX.
7. docs/glossary.md has at most GLOSSARY_MOST entries, and each of their words is used in src/.

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

BODY_TOKENS = 20
GLOSSARY_MOST = 50

# Copies that stay: the functions, as PATH:NAME, and why they cannot be one.
COPIES = []

# The two tiers of PTX: what an instruction asks for, and why it is refused, is decided for both in
# src/kernel/ptx/meaning.
TIERS = ("src/kernel/ptx/interp/", "src/kernel/ptx/lower/")

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|[^\w\s]')
NOT_CODE = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STRINGS = re.compile(r'(?:"(?:\\.|[^"\\\n])*"\s*)+')
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
    """The declarations at the top level: (offset, head, its body's (begin, end) or None)."""
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
                yield start, code[start:brace], (brace, at + 1)
                start, brace = at + 1, None
        elif depth == 0:
            yield start, code[start:at], None
            start, brace = at + 1, None


def is_function(head):
    head = ATTRIBUTE.sub("", head)
    return "=" not in head and "typedef" not in head and FUNCTION.search(head) is not None


def line_of(code, at):
    at += len(code[at:]) - len(code[at:].lstrip())
    return code.count("\n", 0, at) + 1


QUALIFIERS = set("const static volatile unsigned signed long short register struct enum union "
                 "_Atomic _Thread_local".split())
NO_TYPES = set("return goto else case break continue do if for while switch sizeof".split())


def local_names(tokens):
    """The names of the variables that a function's body declares, as far as one can tell without
    a compiler: TYPE NAME at the beginning of a statement, and what follows after commas."""
    names = set()
    for start in range(len(tokens)):
        if start and tokens[start - 1] not in ("{", "}", ";", "("):
            continue
        i = start
        while i < len(tokens) and tokens[i] in QUALIFIERS:
            i += 1
        if i >= len(tokens) or not re.match(r"[A-Za-z_]", tokens[i]) or tokens[i] in NO_TYPES:
            continue
        i += 1
        while i + 1 < len(tokens):
            while tokens[i] in ("*", "const", "restrict") and i + 1 < len(tokens):
                i += 1
            if not re.fullmatch(r"[A-Za-z_]\w*", tokens[i]) or tokens[i + 1] not in "=;,[":
                break
            names.add(tokens[i])
            i, depth = i + 1, 0
            while i < len(tokens) and (depth or tokens[i] not in (",", ";")):
                depth += (tokens[i] in "([{") - (tokens[i] in ")]}")
                i += 1
            if i >= len(tokens) or tokens[i] == ";":
                break
            i += 1
    return names


def parameter_names(tokens):
    """The names in a list of parameters: the last word before each comma and before the end."""
    names, depth, last = set(), 0, None
    for i, token in enumerate(tokens):
        if token in (",", ")") and depth == 0 or token == ")" and i + 1 == len(tokens):
            names.add(last)
        if token == "(" and tokens[i + 1:i + 2] == ["*"]:
            names.add(tokens[i + 2])
        depth += (token == "(") - (token == ")")
        if re.fullmatch(r"[A-Za-z_]\w*", token) and depth == 0:
            last = token
    return names - {None, "void"}


def canonical(head, name, body):
    """A function's types and body, with its parameters and variables numbered."""
    head = [w for w in TOKEN.findall(ATTRIBUTE.sub("", head)) if w not in ("static", "inline")]
    parameters = head[head.index(name) + 1:]
    own = parameter_names(parameters[1:]) | local_names(body)
    numbers, words = {}, []
    for before, word in zip([""] + parameters + body, parameters + body):
        if word in own and before not in (".", ">"):
            word = numbers.setdefault(word, f"${len(numbers)}")
        if word != "const":
            words.append(word)
    return " ".join(head[:head.index(name)] + words)


class Names:
    """The names that files define: name -> [(path, line)]."""

    def __init__(self):
        self.tags = defaultdict(list)
        self.externals = defaultdict(list)
        self.statics = defaultdict(list)
        self.bodies = defaultdict(list)  # canonical text -> [(path, line, name)]

    def add(self, path, text):
        code = strip_text(text)
        for match in TAG.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            self.tags[match.group(2)].append((path, line))
        plain = NOT_CODE.sub(lambda m: m.group() if m.group()[0] in "\"'" else blank(m), text)
        for at, head, body in declarations(code):
            line = line_of(code, at)
            self.add_declaration(path, line, head, body is not None)
            if body:
                self.add_body(path, line, head, plain[body[0]:body[1]])

    def add_body(self, path, line, head, body):
        name = FUNCTION.search(ATTRIBUTE.sub("", head)).group(1)
        tokens = TOKEN.findall(body)
        if len(tokens) >= BODY_TOKENS and not name.isupper():
            self.bodies[canonical(head, name, tokens)].append((path, line, name))

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


def storey_of(path):
    return "/".join(path.split("/")[:2])


def shared_statics(names):
    """The static functions whose name another file of the storey uses: one entry per file."""
    for name, places in sorted(names.statics.items()):
        for storey in sorted({storey_of(path) for path, _ in places}):
            here = [place for place in places if storey_of(place[0]) == storey]
            paths = files_of(here)
            if len(paths) == 1 or is_stand_in(paths):
                continue
            for place in here:
                others = ", ".join(p for p in paths if p != place[0])
                yield place, f"static function {name} has its name in {others} too"


def equal_bodies(names, copies):
    """The functions that are copies of each other."""
    for places in names.bodies.values():
        keys = sorted({f"{path}:{name}" for path, _, name in places})
        if len(keys) == 1 or is_stand_in({path for path, _, _ in places}):
            continue
        if not any(set(keys) <= set(functions) for functions, _ in copies):
            where = ", ".join(f"{path}:{line} ({name})" for path, line, name in places[1:])
            yield places[0][:2], f"function {places[0][2]} has the same body as {where}"


def texts_of(files, tier):
    """The strings with a blank in the files of a tier: text -> (path, line)."""
    found = {}
    for path, text in sorted(files.items()):
        if path.startswith(tier):
            plain = COMMENT.sub(blank, text)
            for match in STRINGS.finditer(plain):
                words = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', match.group()))
                if " " in words.strip():
                    found[words] = path, plain.count("\n", 0, match.start()) + 1
    return found


def texts_of_both_tiers(files):
    one, other = (texts_of(files, tier) for tier in TIERS)
    for words in sorted(set(one) & set(other)):
        where = "%s:%d" % other[words]
        yield one[words], f'"{words}" stands in {where} too: move it to src/kernel/ptx/meaning'


def bare_statics(names):
    for name, places in sorted(names.statics.items()):
        if name in BARE_VERBS:
            for place in places:
                yield place, f"static function {name} is a bare verb: say what it acts on"


def check_files(files, copies=()):
    """The complaints about {path: text}, as ((path, line), message)."""
    names = Names()
    for path, text in sorted(files.items()):
        names.add(path, text)
    found = list(twice(names.tags, "tag", False))
    found += twice(names.externals, "name", True)
    found += shared_statics(names)
    found += bare_statics(names)
    found += equal_bodies(names, copies)
    found += texts_of_both_tiers(files)
    return found


def check_glossary(text, code):
    """The complaints about the glossary, given all code as one text."""
    rows = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.startswith("| **")]
    place = "docs/glossary.md"
    if len(rows) > GLOSSARY_MOST:
        yield (place, rows[GLOSSARY_MOST][0]), f"{len(rows)} entries (at most {GLOSSARY_MOST})"
    code = code.lower()
    for line, row in rows:
        for word in re.findall(r"\*\*(.+?)\*\*", row):
            word = word.lower()
            if not any(w in code for w in (word, word.replace(" ", "_"), word.rstrip("s"))):
                yield (place, line), f"src/ does not use the word {word}"


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
    files = read_tree(root)
    found = check_files(files, COPIES)
    with open(os.path.join(root, "docs", "glossary.md"), encoding="utf-8") as f:
        found += check_glossary(f.read(), "\n".join(files.values()))
    for (path, line), message in found:
        print(f"{path}:{line}: {message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
