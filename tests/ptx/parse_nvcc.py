#!/usr/bin/env python3
"""Compiles one .cu file for several architectures and parses the PTX, which must all be known.

    parse_nvcc.py --nvcc NVCC --count PTX_COUNT FILE.cu
"""

import argparse
import os
import subprocess
import sys

ARCHITECTURES = (75, 80, 90, 100, 120)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--nvcc", required=True)
    options.add_argument("--count", required=True)
    options.add_argument("file")
    args = options.parse_args()
    scratch = os.environ.get("HED_SCRATCH", ".")
    bad = 0
    for arch in ARCHITECTURES:
        name = os.path.splitext(os.path.basename(args.file))[0]
        ptx = os.path.join(scratch, f"{name}.{arch}.ptx")
        made = subprocess.run([args.nvcc, "-ptx", "-lineinfo", "-std=c++17",
                               f"-arch=compute_{arch}", args.file, "-o", ptx],
                              capture_output=True, text=True)
        if made.returncode:
            print(f"skipped: nvcc cannot compile {name} for {arch}\n{made.stderr}")
            return 77
        bad |= subprocess.run([args.count, ptx]).returncode
        os.unlink(ptx)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
