"""Makes the calls of bad_input.c from the specs: SPEC... OUT_FILE.

Every exported function is called with nothing (NULL, 0) and with too much (pointers to a large
piece of zeros, the largest numbers).
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from gen.model import Record  # noqa: E402
from gen.vocabulary import load  # noqa: E402


def is_pointer(a):
    return a.c.rstrip().endswith("*") or a.type.code.startswith(("h.", "p"))


def value(a, much):
    if a.dir == "in" and isinstance(a.type, Record):
        return f"({a.type.c}){{0}}"
    if is_pointer(a) or a.is_pointer:
        return f"({a.c})room" if much else f"({a.c})0"
    return f"({a.c})-1" if much else f"({a.c})0"


def main():
    lines = ["/* Made by bad_table.py. */"]
    for path in sys.argv[1:-1]:
        spec = load(path)
        for c in spec.calls:
            needed = int(any(not a.opt for a in c.outs))
            for name, _, _ in c.variants:
                for much in (False, True):
                    args = ", ".join(value(a, much) for a in c.args)
                    lines.append(f'TRY("{name}", {int(much)}, {needed}, {name}({args}))')
    Path(sys.argv[-1]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
