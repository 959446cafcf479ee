"""`python -m heddle` is the command `heddle`, also where it is not on PATH."""

from __future__ import annotations

import os
import sys

from ._errors import Error
from ._install import find


def main() -> int:
    """Becomes the command. Returns only if that is not possible."""
    try:
        command = find().command
        sys.stdout.flush()
        os.execv(command, ["heddle", *sys.argv[1:]])
    except (Error, OSError) as reason:
        print(f"heddle: {reason}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main())
