#!/usr/bin/env python3
"""Makes the corpus of the loader of compiled kernels: object files of both machines.

    load_corpus.py BUILD        writes corpus/ptx_load; needs clang

Of load_object.c there is one file for each machine and way to compile. This machine's kernels come
out of the cache of the CPU GPU, where a run of tests/faults/session.c leaves them.
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = HERE / "corpus" / "ptx_load"
WAYS = {"small": ["-Os"], "plain": ["-O0"], "large": ["-O2", "-mcmodel=large", "-fno-pic"],
        "sections": ["-O2", "-ffunction-sections", "-fdata-sections", "-fPIC"]}


def compile_objects():
    for machine in ("aarch64", "x86_64"):
        for way, words in WAYS.items():
            subprocess.run(["clang", f"--target={machine}-linux-gnu", "-c", "-g0", "-ffreestanding",
                            "-fno-stack-protector", "-fno-ident", *words, "-I", ROOT / "src",
                            "-o", OUT / f"{machine}_{way}", HERE.parent / "unit/ptx/load_object.c"],
                           check=True)


def take_from_cache(build):
    with tempfile.TemporaryDirectory() as cache:
        subprocess.run([build / "tests/faults/faults_session"], check=True,
                       env=dict(os.environ, HEDDLE_CACHE=cache, HEDDLE_CPU_CODEGEN="warp",
                                HEDDLE_GPU="cpu", HED_LIBCUDA=build / "lib/heddle/libcuda.so.1"))
        for i, file in enumerate(sorted(p for p in Path(cache).rglob("*") if p.is_file())):
            entry = file.read_bytes()
            start = entry.find(b"\x7fELF")
            if start >= 0:
                (OUT / f"{platform.machine()}_kernel{i}").write_bytes(entry[start:])


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    compile_objects()
    take_from_cache(Path(sys.argv[1]).resolve())
