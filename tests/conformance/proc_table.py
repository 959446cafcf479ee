"""Makes the table of proc_address.c from the toolkit's cudaTypedefs.h: INCLUDE EXPORTS OUT_FILE.

The header names every (base, version, stream flavour) as PFN_<base>_v<version>[_ptds|_ptsz]. Sorted
by version, the entries of one base and flavour stand for the exported names base, base_v2, base_v3,
aligned at the highest. Only names of libcuda are used; EXPORTS has them, one per line.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

PFN = re.compile(r"\*PFN_(\w+?)_v(\d+)(_ptds|_ptsz)?\)")
NAME = re.compile(r"(\w+?)(?:_v(\d+))?(_ptds|_ptsz)?")


def main():
    include, exports, out = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    asked = defaultdict(set)
    for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        if (include / header).exists():
            for base, version, flavour in PFN.findall((include / header).read_text()):
                asked[base, flavour].add(int(version))
    exported = defaultdict(list)
    for name in Path(exports).read_text().split():
        base, version, flavour = NAME.fullmatch(name).groups()
        exported[base, flavour or ""].append((int(version or 1), name))
    rows = []
    for (base, flavour), versions in sorted(asked.items()):
        names = [name for _, name in sorted(exported[base, flavour])][-len(versions):]
        if len(names) != len(versions):
            sys.exit(f"{base}{flavour}: {len(versions)} versions, but exported are {names}")
        for version, name in zip(sorted(versions), names):
            rows.append(f'{{"{base}", {version}, {2 if flavour else 0}, "{name}"}},')
    Path(out).write_text("/* Made by proc_table.py. */\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
