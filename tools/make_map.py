"""Makes a linker version script that exports just the names in a list: LIST OUT [NAME...]."""

import sys
from pathlib import Path


def main():
    listing, out, extra = sys.argv[1], sys.argv[2], sys.argv[3:]
    names = Path(listing).read_text().split() + extra
    Path(out).write_text("{\n    global:\n" + "".join(f"        {n};\n" for n in names)
                         + "    local:\n        *;\n};\n")


if __name__ == "__main__":
    main()
