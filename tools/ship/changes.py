#!/usr/bin/env python3
"""Prints the section of a version of CHANGELOG.md, which it reads from its standard input.

    changes.py 0.3.0 [--any] <CHANGELOG.md

A version is released when the changelog has a section of it with a date, and nothing is left under
"Unreleased"; --any is for a try before that.
"""

import re
import sys


def sections(text):
    """{title: text below it}: "Unreleased", "0.3.0 - 2026-11-18"."""
    pieces = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {title.replace("[", "").replace("]", "").strip(): body.strip()
            for title, body in zip(pieces[1::2], pieces[2::2])}


def section(text, version, is_any):
    """The text, or a ValueError that says what is to be done."""
    found = sections(text)
    title = next((t for t in found if t == version or t.startswith(f"{version} - ")), None)
    if title is None:
        raise ValueError(f"CHANGELOG.md has no section [{version}]: give it one, with a date")
    if not is_any and not re.fullmatch(r"\S+ - \d{4}-\d{2}-\d{2}", title):
        raise ValueError(f"CHANGELOG.md: the section [{version}] has no date")
    if not is_any and found.get("Unreleased"):
        raise ValueError("CHANGELOG.md has lines under [Unreleased]: put them into the section of "
                         "the version, and raise the version in CMakeLists.txt (or try: "
                         "--snapshot)")
    return f"## {title}\n\n{found[title]}"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--any"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    try:
        print(section(sys.stdin.read(), arguments[0], "--any" in sys.argv))
    except ValueError as e:
        sys.exit(f"release: {e}")


if __name__ == "__main__":
    main()
