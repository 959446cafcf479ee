#!/usr/bin/env python3
"""Checks that pages in English and in Chinese say the same, as far as a script can tell.

    check_readmes.py [ENGLISH CHINESE]      all pairs without arguments

1. They have the same commands: each line of a fenced block, without its comment.
2. They have the same paragraphs and table rows in the same order, and each has the same numbers,
   `code` and links on both pages. Comments of commands count as well: a command that runs machine
   code of sm_75 must not run sm_80 for readers of Chinese. Numbers in words are not compared.

A link to a Chinese page counts as the same as one to the English page.
"""

import os
import re
import sys
from collections import Counter

PAIRS = (("README.md", "README.zh-CN.md"), ("docs/tour.md", "docs/tour.zh-CN.md"))
FENCE = re.compile(r"^(?:```|~~~)")
COMMENT = re.compile(r"(?:^|\s)#\s")
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# A number with what belongs to its name: 20, 13.0, sm_75, x86-64, H100, .10.2, 4711.
NUMBER = re.compile(r"[A-Za-z_]*\d[A-Za-z0-9_]*(?:[.-][0-9]+)*")


def split_page(text):
    """The page as (line number, kind, text): commands, and pieces of prose (a paragraph, a heading
    or a row of a table)."""
    pieces, paragraph, fenced = [], [], False

    def end_paragraph():
        if paragraph:
            pieces.append((paragraph[0][0], "prose", " ".join(t for _, t in paragraph)))
            paragraph.clear()

    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            end_paragraph()
            fenced = not fenced
        elif fenced:
            if line.strip():
                pieces.append((number, "command", line.strip()))
        elif not line.strip():
            end_paragraph()
        elif line.startswith(("|", "#")):
            end_paragraph()
            pieces.append((number, "prose", line.strip()))
        else:
            paragraph.append((number, line.strip()))
    end_paragraph()
    return pieces


def cut_command(line):
    """A line of a fenced block as (command, comment)."""
    found = COMMENT.search(line)
    return (line[:found.start()].rstrip(), line[found.end():]) if found else (line, "")


def facts_of(text):
    """What a translation must keep: code, links, numbers, each as often as it is there."""
    links = [link.replace(".zh-CN.md", ".md") for link in LINK.findall(text)]
    code = CODE.findall(text)
    bare = LINK.sub(" ", CODE.sub(" ", text))
    numbers = [re.sub(r"(?<=\d)s$", "", number) for number in NUMBER.findall(bare)]  # H100s
    return Counter(code + links + numbers)


def name_facts(counter):
    return ", ".join(sorted(counter.elements())) or "nothing"


def compare_pieces(left, right):
    """What differs between two pieces that stand in the same place, or None."""
    if left[1] != right[1]:
        return "a command stands where the other page has text"
    first, second = left[2], right[2]
    if left[1] == "command":
        (command, first), (other, second) = cut_command(first), cut_command(second)
        if command != other:
            return f"the commands differ: '{command}' and '{other}'"
    here, there = facts_of(first), facts_of(second)
    if here == there:
        return None
    return (f"only in the first: {name_facts(here - there)}; "
            f"only in the second: {name_facts(there - here)}")


def compare_pages(english, chinese):
    """All differences, as (line of the first page, line of the second, message)."""
    left, right = split_page(english), split_page(chinese)
    found = []
    for one, other in zip(left, right):
        message = compare_pieces(one, other)
        if message:
            found.append((one[0], other[0], message))
            if one[1] != other[1]:
                return found  # everything after it would differ, too
    if len(left) != len(right):
        rest = (left if len(left) > len(right) else right)[min(len(left), len(right))]
        found.append((rest[0], rest[0], f"{len(left)} pieces of text and commands here, "
                      f"{len(right)} there"))
    return found


def check_pair(paths):
    """Prints what differs between two pages; gives how many places do."""
    texts = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    found = compare_pages(*texts)
    for first, second, message in found:
        print(f"{paths[0]}:{first}, {paths[1]}:{second}: {message}")
    return len(found)


def main(argv):
    if len(argv) not in (1, 3):
        print("check_readmes.py: give two pages, or none", file=sys.stderr)
        return 2
    if argv[1:]:
        return 1 if check_pair(argv[1:]) else 0
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return 1 if sum([check_pair(pair) for pair in PAIRS]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
