#!/usr/bin/env python3
"""Programs that were linked on the device side (nvcc -rdc=true), on a worker; conditional nodes.

A worker without a device gets what a GPU of compute capability 9.0 would get: the linked machine
code, if there is some for it, and otherwise all parts, for NVIDIA's driver to link. A CPU GPU, in a
worker or in the program itself, joins the parts' PTX, and the program prints what it prints on a
GPU."""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["HED_BUILD"])
SCRATCH = pathlib.Path(os.environ["HED_SCRATCH"])
NVCC = pathlib.Path(os.environ["HED_NVCC"])
TESTS = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = TESTS / "gpu/programs"
LIBRARIES = BUILD / "lib/heddle"

FATBIN, LINKED = 0xBA55ED50, 0x4B4E4CF1
PTX, CUBIN = 1, 2

SOURCES = {"linked": sorted((PROGRAMS / "linked").glob("*.cu")),
           "nested": [PROGRAMS / "nested.cu"]}
KERNELS = {"linked": [b"_Z3runPi", b"_Z4lastPi"], "nested": [b"_Z5childi", b"_Z6parentv"]}
# What each prints on a worker without a device after its first launch has succeeded. Variables have
# no address there, so the programs end soon after that.
LAUNCHED = {"linked": "program: 0\n", "nested": "launch: no error"}
FLAGS = {"machine": ["-gencode", "arch=compute_90,code=[sm_90,compute_90]"],
         "ptx": ["-arch=compute_80", "-code=compute_80"]}
PRINTED = """first: begins
first: local
second: begins
second: local
third: begins
third: local
third: ends with 19
second: ends with 19
first: ends with 40
program: 40
third: local
program: 245, total 7
"""


def check(what, good):
    if not good:
        sys.exit(f"linked: {what}")


def build(name, flags):
    program = SCRATCH / f"{name}_{flags}"
    subprocess.run([NVCC, "-O1", "-rdc=true", *FLAGS[flags], "-o", program, *SOURCES[name]],
                   check=True)
    return program


def run_on_worker(gpu, program):
    """The output of the program, and the images that the worker got."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as images:
        done = subprocess.run([TESTS / "harness/serve", "shm", LIBRARIES, BUILD / "bin/heddle", gpu,
                               program],
                              env={**os.environ, "HED_SERVE": f"--images {images}",
                                   "LD_LIBRARY_PATH": str(LIBRARIES)},
                              stdout=subprocess.PIPE, text=True, check=False)
        return done, [p.read_bytes() for p in pathlib.Path(images).rglob("*") if p.is_file()]


def entries(fatbin):
    """(kind, architecture) of each entry."""
    magic, _, head, body = struct.unpack_from("<IHHQ", fatbin)
    check(f"a fat binary begins with {magic:#x}", magic == FATBIN and len(fatbin) == head + body)
    found, at = [], head
    while at < len(fatbin):
        kind, _, header, stored = struct.unpack_from("<HHIQ", fatbin, at)
        arch, = struct.unpack_from("<I", fatbin, at + 28)
        found.append((kind, arch))
        at += header + stored
    return found


def parts(image):
    """The fat binaries of a linked image."""
    magic, count = struct.unpack_from("<II", image)
    check(f"a linked image begins with {magic:#x}", magic == LINKED)
    at, found = 8 + 8 * count, []
    for size in struct.unpack_from(f"<{count}Q", image, 8):
        at += -at % 16
        found.append(image[at:at + size])
        at += size
    check(f"{len(image) - at} bytes behind the parts", at == len(image))
    return found


def check_machine_code(name):
    """The linked machine code is sent, and nothing else."""
    done, images = run_on_worker("null", build(name, "machine"))
    check(f"{name} with machine code: {done.stdout!r}", LAUNCHED[name] in done.stdout)
    check(f"{len(images)} images for one program", len(images) == 1)
    check(f"{name}: {entries(images[0])} is sent", entries(images[0]) == [(CUBIN, 90)])
    check(f"{name}: kernels are missing", all(k in images[0] for k in KERNELS[name]))


def check_parts(name):
    """Without machine code for the device, all parts are sent. libcudadevrt, which nvcc links to
    every such program, has machine code for that device, but PTX only for newer ones."""
    done, images = run_on_worker("null", build(name, "ptx"))
    check(f"{name} with PTX: {done.stdout!r}", LAUNCHED[name] in done.stdout)
    check(f"{len(images)} images for one program", len(images) == 1)
    linked, *rest = (entries(part) for part in parts(images[0]))
    check(f"{name}: a linked fat binary with {linked}", linked == [])
    check(f"{name}: {rest}", len(rest) == len(SOURCES[name]) + 1)
    check(f"{name}: parts are {rest}", rest.count([(PTX, 80)]) == len(SOURCES[name]))
    check(f"{name}: machine code is {rest}",
          [arch for part in rest for kind, arch in part if kind == CUBIN] == [90])


def check_joined(flags):
    program = SCRATCH / f"linked_{flags}"
    done, _ = run_on_worker("cpu:h200", program)
    check(f"{program.name} on a worker's CPU GPU: {done.returncode}, {done.stdout!r}",
          (done.returncode, done.stdout) == (0, PRINTED))
    done = subprocess.run([BUILD / "bin/heddle", "run", "--gpu", "cpu:h200", program],
                          stdout=subprocess.PIPE, text=True, check=False)
    check(f"{program.name} on the CPU GPU: {done.returncode}, {done.stdout!r}",
          (done.returncode, done.stdout) == (0, PRINTED))


def check_conditional():
    """Conditional nodes need the device runtime. A worker without a device accepts everything."""
    program = SCRATCH / "conditional"
    subprocess.run([NVCC, "-O1", "-rdc=true", "-arch=sm_90", "-o", program,
                    PROGRAMS / "conditional.cu"], check=True)
    done, _ = run_on_worker("null", program)
    check(f"conditional nodes: {done.returncode}, {done.stdout!r}",
          done.returncode == 0 and done.stdout.count("while: 0 0 0 0\n") == 2)
    for gpu in ("here", "worker"):
        done = (run_on_worker("cpu:h200", program)[0] if gpu == "worker" else
                subprocess.run([BUILD / "bin/heddle", "run", "--gpu", "cpu:h200", program],
                               stdout=subprocess.PIPE, text=True, check=False))
        check(f"conditional nodes on a CPU GPU ({gpu}): {done.returncode}, {done.stdout!r}",
              (done.returncode, done.stdout) == (0, (PROGRAMS / "conditional.txt").read_text()))


def main():
    check_conditional()
    for name in SOURCES:
        check_machine_code(name)
        check_parts(name)
    for flags in FLAGS:
        check_joined(flags)
    return 0


if __name__ == "__main__":
    sys.exit(main())
