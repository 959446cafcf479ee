#!/usr/bin/env python3
"""Runs kernels.cu, with the static and the shared runtime, on a server's CPU GPU, over shared
memory and a socket. Its output comes in order, and the server keeps each image once. The two parts
of parts.cu (-rdc=true) find each other."""

import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ["HED_BUILD"])
SCRATCH = pathlib.Path(os.environ["HED_SCRATCH"])
NVCC = pathlib.Path(os.environ["HED_NVCC"])
HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = BUILD / "lib/heddle"

PRINTED = "program 1\nkernel 2\nprogram 3\nkernel 4\nprogram 5\n"


def build(runtime):
    program = SCRATCH / runtime
    toolkit = NVCC.parent.parent
    subprocess.run([NVCC, "-O1", "-cudart", runtime, "-gencode", "arch=compute_80,code=sm_80",
                    "-gencode", "arch=compute_80,code=compute_80", "-o", program,
                    HERE / "kernels.cu", f"-L{toolkit}/lib64/stubs", "-lcuda"], check=True)
    return program


def build_parts():
    program = SCRATCH / "parts"
    common = [NVCC, "-O1", "-rdc=true", "-gencode", "arch=compute_80,code=[sm_80,compute_80]"]
    objects = []
    for part in "12":
        objects.append(SCRATCH / f"part{part}.o")
        subprocess.run([*common, f"-DPART={part}", "-c", "-o", objects[-1],
                        HERE / "parts.cu"], check=True)
    subprocess.run([*common, "-o", program, *objects], check=True)
    return program


def run(transport, program, images):
    env = {**os.environ, "HED_SERVE": f"--images {images}",
           "LD_LIBRARY_PATH": f"{LIBRARIES}:{NVCC.parent.parent}/lib64"}
    return subprocess.run([HERE.parents[1] / "harness/serve", transport, LIBRARIES,
                           BUILD / "bin/heddle", "cpu:h200", program],
                          env=env, stdout=subprocess.PIPE, text=True, check=False)


def check(what, good):
    if not good:
        sys.exit(f"remote_code: {what}")


def main():
    images = SCRATCH / "images"
    images.mkdir(mode=0o700)
    programs = [build("static"), build("shared")]
    for transport in ("shm", "unix"):
        for program in programs:
            done = run(transport, program, images)
            check(f"{program.name} over {transport} ends with {done.returncode}",
                  done.returncode == 0)
            check(f"{program.name} over {transport} prints {done.stdout!r}",
                  done.stdout == PRINTED)
    parts = build_parts()
    for transport in ("shm", "tcp"):
        done = run(transport, parts, images)
        check(f"{parts.name} over {transport} ends with {done.returncode}: {done.stdout}",
              done.returncode == 0)
    kept = {p.name: p.stat() for p in images.rglob("*") if p.is_file()}
    check(f"there are images {list(kept)}", len(kept) >= 2 and
          all(len(name) == 64 for name in kept))
    # Once more: images that the server has are not sent.
    done = run("shm", programs[0], images)
    after = {p.name: p.stat() for p in images.rglob("*") if p.is_file()}
    check("it runs again", done.returncode == 0)
    check("images were sent again", {n: s.st_ino for n, s in kept.items()} ==
          {n: s.st_ino for n, s in after.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
