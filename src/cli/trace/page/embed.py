#!/usr/bin/env python3
"""Puts a page into a C file: style and scripts into the HTML, which is cut at @DATA@ in two.

    embed.py OUT.c page.html page.css SCRIPT.js...

The scripts become one function, so that they share names with each other and with nobody else.
"""

import sys


def c_text(name, text):
    """A text as a C array. A literal per line: a compiler may limit their length."""
    lines = text.splitlines(keepends=True)
    body = []
    for line in lines:
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        # Two question marks would be a trigraph to some compilers.
        body.append(f'    "{escaped.replace("??", "?" + chr(92) + "?")}"')
    return f"extern const char {name}[];\nconst char {name}[] =\n" + "\n".join(body) + ";\n"


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def main(out, page, style, *scripts):
    html = read(page)
    script = "(function () {\n'use strict';\n" + "".join(map(read, scripts)) + "}());\n"
    for mark, text in (("@STYLE@", read(style)), ("@SCRIPT@", script)):
        if html.count(mark) != 1:
            sys.exit(f"{page}: there must be one {mark}")
        html = html.replace(mark, text)
    if "</" in script:
        sys.exit("a script contains '</', which may end it in HTML")
    head, tail = html.split("@DATA@\n")
    with open(out, "w", encoding="ascii") as f:
        f.write("/* Made by page/embed.py. */\n" + c_text("hed_page_head", head) +
                c_text("hed_page_tail", tail))


if __name__ == "__main__":
    main(*sys.argv[1:])
