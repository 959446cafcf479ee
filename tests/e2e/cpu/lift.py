#!/usr/bin/env python3
"""Programs with machine code for sm_80 alone, on a device of compute capability 9.0: the setting
`lift` makes their machine code reach the backend as PTX.

    lift.py NVCC HEDDLE

A cubin that is loaded by itself is refused without the setting, as on CUDA, and runs with it, in
every way of the driver API. NVIDIA's runtime, static and shared, loads its fat binaries through a
call that the layer sees.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
PROGRAMS = TOP / "tests" / "gpu" / "programs"
LIFTED = "machine code for sm_80 is lifted for a device of sm_90"


def build(nvcc, out, *arguments):
    subprocess.run([nvcc, *arguments, "-o", out], check=True)
    return out


def run(heddle, options, *command):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    p = subprocess.run([heddle, "run", "--gpu", "cpu:h200", "--log", "info", *options, "--",
                        *command], capture_output=True, text=True, timeout=120,
                       env={**env, "HEDDLE_CONFIG": ""})
    return p.stdout.splitlines(), p.stderr


def main():
    nvcc, heddle = sys.argv[1:]
    libraries = Path(nvcc).resolve().parents[1] / "lib64"
    bad = []

    def expect(what, holds, *shown):
        if not holds:
            bad.append(what)
            print(f"{what}:", *shown, sep="\n")

    with tempfile.TemporaryDirectory() as folder:
        f = Path(folder)
        cubin = build(nvcc, f / "x.cubin", "-cubin", "-arch=sm_80", PROGRAMS / "lift_ways.cu")
        ways = build(nvcc, f / "ways", PROGRAMS / "lift_ways.c", "-lcuda", "-L",
                     libraries / "stubs")
        out, log = run(heddle, [], ways, cubin)
        expect("without lift", sum(line.endswith("NO_BINARY_FOR_GPU") for line in out) == 7
               and LIFTED not in log, out, log)
        out, log = run(heddle, ["--lift"], ways, cubin)
        expect("with lift", len(out) == 7 and all(line.endswith(": ok") for line in out)
               and log.count(LIFTED) == 7, out, log)
        for kind in ("static", "shared"):
            program = build(nvcc, f / kind, "-gencode", "arch=compute_80,code=sm_80", "-cudart",
                            kind, PROGRAMS / "array.cu", "-Xlinker", f"-rpath={libraries}")
            out, log = run(heddle, ["--lift"], program)
            expect(f"{kind} runtime", out[:1] == [" ".join(str(i) for i in range(1, 33))]
                   and LIFTED in log, out, log)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
