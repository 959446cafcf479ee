#!/usr/bin/env python3
"""Records what NVIDIA's driver answers on a machine with a GPU: the golden data of tests.

    tests/gpu/record.py OUT

Builds the programs of tests/conformance/answers with the C compiler and those of tests/cu with
nvcc, runs them without heddle, and writes their output to OUT/conformance/<program>.txt and
OUT/cu/<program>.txt. Programs of tests/cu also run from their committed PTX, which must give the
same. Copy the files to tests/conformance/golden and tests/cu/golden after reading the difference.
Exits with 1 if a program does not build, does not end, or prints something else the second time.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
CC = ["gcc", "-std=gnu17", "-O1", "-w", "-DHED_CUDA_H",
      "-I", str(Path(NVCC).resolve().parents[1] / "include")]
bad = []


def run(command, timeout, cwd=None):
    try:
        p = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                           timeout=timeout, cwd=cwd, check=False)
    except subprocess.TimeoutExpired as e:
        bad.append(f"{command[0]} does not end")
        return (e.stdout or b"").decode()
    if p.returncode:
        bad.append(f"{command} ends with {p.returncode}: {p.stderr[-500:]}")
    return p.stdout


def conformance(source):
    program = work / f"answers_{source.stem}"
    run([*CC, source, "-o", program, "-ldl", "-lpthread"], 60)
    first = run([program], 100)
    (out / "conformance" / f"{source.stem}.txt").write_text(first)


# Programs that launch kernels from kernels. The driver runs their PTX only when it is linked.
LINKED = {"children"}
# Programs at limits where a GPU promises less than the CPU GPU does.
NOT_RECORDED = {"pending"}


def cu(source):
    program = work / f"cu_{source.stem}"
    # PTX only, so that the driver compiles the same text as the CPU GPU.
    linked = ["-rdc=true"] if source.stem in LINKED else []
    run([NVCC, "-std=c++17", "-O2", "-arch=compute_90", "-code=compute_90", *linked, source.name,
         "-o", program], 120, cwd=source.parent)
    first = run([program], 20)
    (out / "cu" / f"{source.stem}.txt").write_text(first)
    if linked:
        return
    second = run([work / "cu_run", TESTS / "cu" / "ptx" / f"{source.stem}.ptx", source], 20)
    if second != first:
        bad.append(f"{source.stem}: the committed PTX gives something else")
        (out / "cu" / f"{source.stem}.ptx.txt").write_text(second)


def main():
    global out, work
    out = Path(sys.argv[1])
    (out / "conformance").mkdir(parents=True, exist_ok=True)
    (out / "cu").mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="heddle-record-"))
    run([*CC, TESTS / "cu" / "cu_run.c", "-o", work / "cu_run", "-ldl"], 60)
    answers = TESTS / "conformance" / "answers"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(cu, [s for s in sorted((TESTS / "cu").glob("*.cu"))
                           if s.stem not in NOT_RECORDED]))
        list(pool.map(conformance, [s for s in answers.glob("*.c") if s.stem != "memory"]))
    conformance(answers / "memory.c")  # It runs alone, because it prints how much memory is free.
    shutil.rmtree(work, ignore_errors=True)
    print(*bad, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
