#!/usr/bin/env python3
"""Shows, on a machine with an NVIDIA GPU, that heddle's CUDA runtime behaves as NVIDIA's.

    tests/gpu/cudart.py [--build DIR] [--part table,log,programs,torch,tools,time]

`table`: the answers to about 2200 calls, good and bad (tests/cudart/table.py), of both runtimes, on
NVIDIA's driver and on heddle's. `log`: our runtime makes no call that has to fail for the lack of a
context, which the driver's log would tell the program. `programs`: tests/cu and others print the
same with NVIDIA's static and shared runtime and with ours. `torch`: PyTorch trains with the same
losses, bit for bit. `tools`: NVIDIA's tools still work. `time`: what the runtimes add to the
driver's calls. Runtimes of older toolkits are compared, too, if HED_NVIDIA_CUDART names them
(files, folders, with ':' between them). Builds what it needs with cmake and nvcc. Ends with
`N passed, N failed, N skipped`; exits with 0 if nothing failed.
"""

import argparse
import ctypes
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import NVCC, PROGRAMS, TOP, Check

sys.path.insert(0, str(TOP / "tests/cudart"))
from table import SONAMES, find_nvidia  # noqa: E402


def nvidia_folder():
    """The folder of NVIDIA's libcuda.so.1."""
    ctypes.CDLL("libcuda.so.1")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return str(next(Path(line.split()[-1]).parent for line in maps if "/libcuda.so" in line))


class Runtimes(Check):
    def __init__(self, build):
        super().__init__(build)
        self.ours = self.build / "lib/heddle/cudart"
        older = os.environ.get("LD_LIBRARY_PATH", "")
        # Which driver a program finds; our runtime would find heddle's beside itself.
        self.drivers = {
            "driver": {"LD_LIBRARY_PATH": f"{nvidia_folder()}:{older}"},
            "heddle": {"LD_LIBRARY_PATH": f"{self.build}/lib/heddle:{older}", "HEDDLE_GPU": "gpu",
                       "HEDDLE_CONFIG": ""}}

    def heddle(self, *options):
        return [self.build / "bin/heddle", "run", "--gpu", "gpu", *options, "--"]

    # ---- parts

    def table(self):
        program = self.build / "tests/cudart/cudart_table"
        for edition, soname in reversed(SONAMES.items()):
            theirs = find_nvidia(edition)
            if not theirs:
                self.report(f"table {edition}", "skip", f"there is no {soname} of NVIDIA's")
                continue
            for name, env in self.drivers.items():
                out, err, status = self.run(
                    [sys.executable, "-B", TOP / "tests/cudart/table.py", "both", program, edition,
                     self.ours / soname, theirs], {**env, "HED_TABLE_REAL": "1"}, 600)
                self.expect(f"table {edition}/{name}", status == 0, (out + err)[-12000:])

    def log(self):
        """Calls of the driver that a runtime's first calls in new threads made in vain."""
        program, vain = self.build / "tests/cudart/cudart_table", {}
        for name, library in (("ours", self.ours / SONAMES["13"]), ("theirs", find_nvidia("13"))):
            file = self.work / f"log_{name}"
            out, err, status = self.run(
                [program, library, "newcomers"],
                {**self.drivers["driver"], "HED_TABLE_REAL": "1", "CUDA_LOG_FILE": str(file)})
            text = file.read_text() if file.exists() else ""
            vain[name] = set(re.findall(r"Returning 201 .* from (\w+)", text))
            # NVIDIA's makes some in vain, so an empty log is that of a driver that writes none.
            self.expect(f"log of {name}", status == 0 and (name == "ours" or vain[name]),
                        (out + err)[-600:])
        self.expect("log", not vain["ours"] - vain["theirs"], f"{vain}")

    def programs(self):
        def one(name):
            scratch = self.work / name
            scratch.mkdir()
            source = TOP / f"tests/cu/{name}.cu"
            return name, self.run(
                [TOP / "tests/cu/with_runtimes", NVCC, "sm_90", source, self.ours, sys.executable,
                 "-B", TOP / "tests/conformance/agree.py", "--same",
                 TOP / f"tests/cu/golden/{name}.txt"],
                {**self.drivers["driver"], "HED_SCRATCH": str(scratch)})

        names = sorted(golden.stem for golden in (TOP / "tests/cu/golden").glob("*.txt"))
        with ThreadPoolExecutor(4) as pool:
            for name, (out, err, status) in pool.map(one, names):
                self.expect(f"cu {name}", status == 0, (out + err)[-1500:])

        for name in ("array", "streams", "nested", "conditional", "system_atomics"):
            flags = ["-rdc=true", "-arch=sm_90"] if name == "nested" else ["-arch=sm_90"]
            out, err, status = self.run([NVCC, "-O1", "-std=c++17", *flags, "-cudart", "shared",
                                         PROGRAMS / f"{name}.cu", "-o", self.work / name])
            if status:
                self.report(name, "FAIL", out + err)
            else:
                self.same(name, [self.work / name])

    def same(self, name, command):
        """The program prints the same with our runtime, under heddle and without it."""
        want = self.run(command)
        ways = {"heddle": (self.heddle("--cudart", "own") + command, {}),
                "driver": (command, {"LD_LIBRARY_PATH":
                                     f"{self.ours}:{self.drivers['driver']['LD_LIBRARY_PATH']}"})}
        for way, (words, env) in ways.items():
            got = self.run(words, env)
            self.expect(f"{name}/{way}", (got[0], got[2]) == (want[0], want[2]),
                        f"status {got[2]}, not {want[2]}: {got[0][-300:]!r}, not "
                        f"{want[0][-300:]!r}: {got[1][-600:]!r}")

    def torch(self):
        train = [sys.executable, PROGRAMS / "torch_train.py"]
        snap = [sys.executable, PROGRAMS / "snap_train.py", "30"]
        for name, command in (("train", train), ("deep", snap), ("graph", [*snap, "graph"])):
            want = self.run(command)
            got = self.run(self.heddle("--cudart", "own") + command)
            self.expect(f"torch {name}", want[2] == 0 and (got[0], got[2]) == (want[0], 0),
                        f"status {got[2]}: {got[0][-300:]!r} {got[1][-1500:]!r}")
        which = ("import torch; torch.zeros(1).cuda(); "
                 "print(*{l.split()[-1] for l in open('/proc/self/maps') if 'libcudart' in l})")
        out, err, _ = self.run(self.heddle("--cudart", "own") + [sys.executable, "-c", which])
        self.expect("torch has our runtime alone", out.split() and all(
            str(self.ours) in file for file in out.split()), out + err)

    def tools(self):
        for name in ("array", "oob"):
            out, err, status = self.run([NVCC, "-O1", "-arch=sm_90", "-cudart", "shared",
                                         PROGRAMS / f"{name}.cu", "-o", self.work / f"t_{name}"])
            if status:
                self.report(name, "FAIL", out + err)
                return
        for tool, words, expected in (
                ("compute-sanitizer", [], ("1 2 3 4", "ERROR SUMMARY: 2 errors")),  # on purpose
                ("ncu", ["--clock-control", "none"], ("Duration", "1 2 3 4"))):
            out, err, _ = self.run([*self.heddle("--cudart", "own"), tool, *words,
                                    self.work / "t_array"])
            self.expect(tool, all(word in out for word in expected), out[-800:] + err[-400:])
        out, err, _ = self.run([*self.heddle("--cudart", "own"), "compute-sanitizer",
                                self.work / "t_oob"])
        self.expect("compute-sanitizer finds", "Invalid __global__ write" in out, out + err)
        out, err, status = self.run([*self.heddle("--cudart", "own"), sys.executable,
                                     PROGRAMS / "profiler.py"])
        self.expect("torch.profiler", status == 0 and out.split()[-1:] == ["True"],
                    out[-300:] + err[-600:])

    def time(self):
        """Figures, not verdicts: no test of ours asserts a time."""
        theirs = find_nvidia("13")
        for name, env in self.drivers.items():
            library = Path(env["LD_LIBRARY_PATH"].split(":")[0]) / "libcuda.so.1"
            out, err, status = self.run(
                [self.build / "bench/bench_runtime_cost"],
                {**env, "HED_LIBCUDA": str(library), "HEDDLE_GPU": "gpu",
                 "HED_CUDART": str(self.ours / "libcudart.so.13"),
                 "HED_NVIDIA_CUDART": str(theirs or "")})
            self.expect(f"time/{name}", status == 0, f"status {status}: {err[-600:]}")
            print(out, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=TOP / "build/gpu")
    parser.add_argument("--part", default="table,log,programs,torch,tools,time")
    options = parser.parse_args()
    check = Runtimes(options.build)
    check.make(["all"], {})
    for part in options.part.split(","):
        getattr(check, part)()
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
