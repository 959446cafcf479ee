#!/usr/bin/env python3
"""Checks that what the documents point to exists.

    check_links.py [FILE...]     every .md file of the tree without FILEs

A link must lead to a file or folder of the tree and, after a #, to one of its headings. A path in
`backquotes` that begins at the top of the tree (`src/remote/wire/wire.h`) or at a storey of src/
(`remote/wire/wire.h`) must exist, except in decisions (docs/adr), which speak of the past. Examples
in fenced blocks and addresses on the web are not checked.
"""

import os
import re
import sys

TREES = ("src", "include", "gen", "spec", "tests", "bench", "tools", "cmake", "docs", "share",
         "examples", "debian")
SKIPPED = {"build", "corpus", "golden", "__pycache__"}

# Files that the build makes, and names with a part that stands for others (devices/NAME.json).
NOT_COMMITTED = re.compile(r"gen/(cuda|nvml)_\w+\.\w+$|.*\b[A-Z]{3,}\b")
# Files that the reader of the page is about to add.
NOT_YET = {
    "docs/adding-a-layer.md": {"src/layers/copies/copies.c"},
    "docs/adding-a-transport.md": {"src/remote/wire/channel/window.c"},
}

FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*$", re.MULTILINE)
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def read_page(page):
    with open(page, encoding="utf-8") as file:
        return file.read()


def headings(text):
    """The anchors of a page, as GitHub makes them from its headings."""
    seen = {}
    for match in HEADING.finditer(FENCE.sub(blank, text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        yield f"{anchor}-{count}" if count else anchor


def check_link(page, text, target):
    """What is wrong with a link of page, or None."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    path, _, anchor = target.partition("#")
    where = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if path and not os.path.exists(where):
        return f"the link to {target} leads nowhere"
    if anchor and where.endswith(".md"):
        other = text if where == page else read_page(where)
        if anchor not in headings(other):
            return f"{where} has no heading #{anchor}"
    return None


def check_path(page, name, rooms):
    """What is wrong with a path that page names, or None if it exists or is no path."""
    if not PATH.fullmatch(name) or "/" not in name.rstrip("/"):
        return None
    if os.path.exists(name) or name in NOT_YET.get(page, ()) or NOT_COMMITTED.match(name):
        return None
    first = name.split("/")[0]
    if first in TREES or (first in rooms and re.search(r"(\.[a-z]+|/)$", name)):
        if not os.path.exists(os.path.join("src", name)):
            return f"{name} does not exist"
    return None


def check_text(page, text, rooms):
    """Problems of a page: (line, text) pairs."""
    for place, problem in find_problems(page, text, rooms):
        if problem:
            yield text.count("\n", 0, place) + 1, problem


def find_problems(page, text, rooms):
    prose = FENCE.sub(blank, text)
    for match in LINK.finditer(CODE.sub(blank, prose)):
        yield match.start(), check_link(page, text, match.group(1))
    for match in () if page.startswith("docs/adr/") else CODE.finditer(prose):
        yield match.start(), check_path(page, match.group(1), rooms)


def find_pages():
    yield from (name for name in sorted(os.listdir(".")) if name.endswith(".md"))
    for tree in TREES:
        for folder, folders, names in os.walk(tree):
            folders[:] = sorted(set(folders) - SKIPPED)
            yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith(".md"))


def main(pages):
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    rooms = {name for name in os.listdir("src") if os.path.isdir(os.path.join("src", name))}
    wrong = 0
    for page in pages or find_pages():
        for line, problem in check_text(page, read_page(page), rooms):
            wrong += 1
            print(f"{page}:{line}: {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
