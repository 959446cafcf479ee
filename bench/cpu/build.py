"""Builds the benchmark's programs and PTX into a folder, with what this machine has."""

import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
FILES = ("memory", "reduce", "dense", "rows", "grid", "math", "integer", "sort", "sparse")
ARCH = "compute_80"
CLANGS = ["clang-%d" % n for n in range(22, 13, -1)] + ["clang"]


def first_program(names):
    return next((found for found in map(shutil.which, names) if found), None)


def find_compiler():
    return first_program(CLANGS) or first_program(["gcc", "cc"])


def find_nvcc():
    return first_program(["nvcc"]) or first_program(["/usr/local/cuda/bin/nvcc"])


def processor_has(feature):
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return any(feature in line.split() for line in f)


def native_flags():
    """clang takes SVE for granted on processors that have it; virtual machines may hide it."""
    if platform.machine() != "aarch64":
        return ["-march=native"]
    return ["-mcpu=native" + ("" if processor_has("sve") else "+nosve")]


def printed_by(*command):
    """What a program prints, or nothing where it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def version_of(program):
    return printed_by(program, "--version").split("\n")[0]


def processor_name():
    found = re.search(r"Model name:\s*(.*)", printed_by("lscpu"))
    return found.group(1) if found else "?"


def package_version(name):
    return printed_by("dpkg-query", "-W", "-f", "${Version}", name) or "version unknown"


class Programs:
    """The contestants' programs. pocl is None where OpenCL cannot be compiled."""

    def __init__(self, build, update_ptx=False, committed_ptx=False, both=False):
        self.build = build
        self.folder = os.path.join(build, "bench", "cpu")
        self.compiler = find_compiler()
        self.nvcc = None if committed_ptx else find_nvcc()
        self.ptx = os.path.join(HERE, "ptx")
        os.makedirs(self.folder, exist_ok=True)
        if both and (update_ptx or not self.nvcc):
            sys.exit("--both needs nvcc, and goes neither with --committed-ptx nor --update-ptx")
        if self.nvcc:
            self.make_ptx(self.ptx if update_ptx else
                          os.path.join(self.folder, "both" if both else "ptx"), both)
        self.probe = self.compile("probe", ["probe.c"])
        self.plain = self.compile("plain", self.with_cases("plain.c"), ["-lm"])
        self.heddle = self.compile(
            "heddle", self.with_cases("heddle.c"),
            [f"-I{build}/gen", f"-I{TOP}/src", "-ldl", "-lm"])
        self.pocl = None
        if os.path.exists("/usr/include/CL/cl.h"):
            self.pocl = self.compile("pocl", self.with_cases("pocl.c"), ["-lOpenCL", "-lm"])

    @staticmethod
    def with_cases(own):
        return [own, "main.c", "job.c", "busiest.c"] + [f"cases/{name}.c" for name in FILES]

    def make_ptx(self, folder, both):
        """Makes PTX, or fat binaries with PTX and machine code."""
        kind = ["-fatbin", f"-gencode=arch={ARCH},code=[{ARCH},{ARCH.replace('compute', 'sm')}]"]
        if not both:
            kind = ["-ptx", f"-arch={ARCH}"]
        os.makedirs(folder, exist_ok=True)
        for name in FILES:
            source = os.path.join(HERE, "kernels", name + ".cl")
            target = os.path.join(folder, name + ".ptx")
            common = os.path.join(HERE, "kernels", "dialect.cl")
            if not newer(target, [source, common]):
                subprocess.run([self.nvcc, *kind, "-x", "cu", source, "-o", target], check=True)
        self.ptx = folder

    def compile(self, name, sources, more=()):
        target = os.path.join(self.folder, name)
        paths = [os.path.join(HERE, s) for s in sources]
        headers = [os.path.join(HERE, h)
                   for h in ("cases.h", "contestant.h", "busiest.h", "build.py")]
        if not newer(target, paths + headers):
            subprocess.run([self.compiler, "-std=gnu17", "-O3", *native_flags(), "-Wall", "-Wextra",
                            "-Wno-unknown-pragmas", "-o", target, *paths, *more], check=True)
        return target


def newer(target, sources):
    return os.path.exists(target) and all(
        os.path.getmtime(target) >= os.path.getmtime(s) for s in sources)
