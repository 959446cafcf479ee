"""Shared by the GPU checks: running commands, building, counting verdicts."""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"

# The program of tests/cu that launches kernels from kernels, which only linked code can do.
LINKED_CU = ("children",)


def cu_programs():
    """Those of tests/cu that a GPU agrees with. It promises less than `pending` asks for."""
    return sorted({g.stem for g in (TOP / "tests" / "cu" / "golden").glob("*.txt")} - {"pending"})


def build_cu(name, program):
    """The command that compiles a program of tests/cu."""
    return [NVCC, "-std=c++17", "-O2", "-arch=compute_90", "-code=compute_90",
            *(["-rdc=true"] if name in LINKED_CU else []),
            TOP / "tests" / "cu" / f"{name}.cu", "-o", program]


class Check:
    """A run of checks: a folder for its files, and its verdicts."""

    def __init__(self, build):
        self.build = Path(build).resolve()
        self.work = Path(tempfile.mkdtemp(prefix="heddle-gpu-"))
        self.results = []

    def report(self, name, verdict, detail=""):
        self.results.append((name, verdict, detail))
        print(f"{verdict:4} {name}{': ' + detail if detail else ''}", flush=True)

    def expect(self, name, holds, detail=""):
        self.report(name, "ok" if holds else "FAIL", "" if holds else detail)
        return holds

    def run(self, command, env=None, timeout=240):
        """Output, errors and status of a command. A timeout has a status of its own."""
        try:
            p = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                               cwd=self.work, timeout=timeout, env={**os.environ, **(env or {})})
            return p.stdout, p.stderr, p.returncode
        except subprocess.TimeoutExpired as e:
            out = (e.stdout or b"").decode(errors="replace")
            return out, f"no end after {timeout} s", "time-out"

    def make(self, targets, programs):
        """Builds our targets, and {name: (source, nvcc's flags)} into the work folder."""
        configure = ["cmake", "-S", TOP, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release"]
        if shutil.which("ninja"):
            configure += ["-G", "Ninja"]
        for command in (configure, ["cmake", "--build", self.build, "-j", str(os.cpu_count()),
                                    "--target", *targets]):
            out, err, status = self.run(command, timeout=540)
            if status:
                sys.exit(f"the build failed:\n{out[-4000:]}{err[-2000:]}")

        def compile_one(item):
            name, (source, flags) = item
            return name, self.run([NVCC, "-O1", PROGRAMS / source, "-o", self.work / name, *flags])

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, (out, err, status) in pool.map(compile_one, programs.items()):
                if status:
                    sys.exit(f"nvcc {name}:\n{out}{err}")

    def finish(self):
        """Prints the numbers of verdicts, and returns the exit status."""
        verdicts = [r[1] for r in self.results]
        count = {v: verdicts.count(v) for v in ("ok", "FAIL", "skip")}
        print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
        shutil.rmtree(self.work, ignore_errors=True)
        return 1 if count["FAIL"] else 0
