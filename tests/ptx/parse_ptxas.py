#!/usr/bin/env python3
"""Prints every sample again and gives it to ptxas, which must accept what it accepted before.

    parse_ptxas.py --nvcc NVCC --count PTX_COUNT FILE.ptx...
"""

import argparse
import os
import re
import subprocess
import sys


def assemble(ptxas, path):
    with open(path, encoding="utf-8") as f:
        target = re.search(r"^\.target (sm_\w+)", f.read(), re.MULTILINE).group(1)
    return subprocess.run([ptxas, "-c", f"-arch={target}", path, "-o", path + ".cubin"],
                          capture_output=True, text=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--nvcc", required=True)
    options.add_argument("--count", required=True)
    options.add_argument("files", nargs="+")
    args = options.parse_args()
    ptxas = os.path.join(os.path.dirname(args.nvcc), "ptxas")
    if not os.path.exists(ptxas):
        print("skipped: no ptxas beside nvcc")
        return 77
    scratch = os.environ.get("HED_SCRATCH", ".")
    bad = 0
    for number, path in enumerate(args.files):
        before = os.path.join(scratch, f"{number}.before.ptx")
        after = os.path.join(scratch, f"{number}.after.ptx")
        with open(path, "rb") as f, open(before, "wb") as copy:
            copy.write(f.read())
        with open(after, "wb") as f:
            bad |= subprocess.run([args.count, "-p", path], stdout=f).returncode
        first = assemble(ptxas, before)
        second = assemble(ptxas, after)
        if first.returncode:
            print(f"{path}: not for this ptxas: {first.stderr.splitlines()[0]}")
        elif second.returncode:
            print(f"{path}: printed text is refused\n{second.stderr}")
            bad = 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
