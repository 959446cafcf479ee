#!/usr/bin/env python3
"""Compiles kernels with instructions of every family for several architectures and compares their
machine code, as `heddle fatbin disasm` prints it, with nvdisasm.

    kernels.py NVCC HEDDLE NVDISASM
"""

import sys
import tempfile
from pathlib import Path

from corpus import Count, run

HERE = Path(__file__).resolve().parent
LINKED = ("far", "grid_groups")   # with code that nvcc does not compile alone


def main():
    nvcc, heddle, nvdisasm = sys.argv[1:]
    count = Count()
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "x.cubin")
        for source in sorted(HERE.rglob("*.cu")):
            if source.stem in LINKED:
                continue
            for arch in ("sm_80", "sm_86", "sm_89", "sm_90"):
                run(nvcc, "-std=c++17", f"-arch={arch}", "-cubin", "-o", cubin, source)
                count.compare(heddle, nvdisasm, cubin)
    print(f"{count.kernels} functions, {count.instructions} instructions, "
          f"{count.different} differ")
    for example in count.examples.values():
        print("  " + example)
    return 1 if count.different or not count.instructions else 0


if __name__ == "__main__":
    sys.exit(main())
