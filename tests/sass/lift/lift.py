#!/usr/bin/env python3
"""Compiles a file of kernels to PTX and to sm_80 machine code, and compares what both do; then has
ptxas compile what was lifted.

    lift.py NVCC HEDDLE LIFT_RUN FILE.cu
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    nvcc, heddle, lift_run, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = Path(folder, "x.ptx"), Path(folder, "x.cubin")
        for kind, out in (("-ptx", ptx), ("-cubin", cubin)):
            subprocess.run([nvcc, "-std=c++17", "-arch=sm_80", kind, "-o", out, source], check=True)
        bad = subprocess.run([lift_run, ptx, cubin]).returncode
        lifted = subprocess.run([heddle, "fatbin", "lift", cubin], capture_output=True, text=True)
        for number, text in enumerate(re.split(r"^(?=\.version)", lifted.stdout, flags=re.M)[1:]):
            one = Path(folder, f"{number}.ptx")
            one.write_text(text)
            for arch in ("sm_80", "sm_90"):
                ptxas = Path(nvcc).parent / "ptxas"
                bad |= subprocess.run([ptxas, f"-arch={arch}", "-o", Path(folder, "o"),
                                       one]).returncode
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
