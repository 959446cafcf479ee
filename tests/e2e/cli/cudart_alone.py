#!/usr/bin/env python3
"""Programs with a shared CUDA runtime run on a machine that has no file of NVIDIA's.

    HED_BUILD=build/dev HED_CC=cc HED_NVCC=nvcc HED_SCRATCH=/tmp/scratch cudart_alone.py

The machine is a folder with an installation of heddle, the programs, and the system's libraries
that these need, and nothing else. `unshare` and `chroot` make it the root of the programs' file
system, with an empty /dev. The programs are the array example, linked with each of heddle's
runtimes; a program that opens it as a module; and, if nvcc is found, what nvcc makes of
examples/array.cu.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from case import PATIENCE, SOURCE

BUILD = os.path.realpath(os.environ["HED_BUILD"])
CC = os.environ.get("HED_CC", "cc")
NVCC = os.environ.get("HED_NVCC", "")
ROOT = os.path.join(os.environ["HED_SCRATCH"], "machine")
RUNTIMES = os.path.join(BUILD, "lib", "heddle", "cudart")
ARRAY = os.path.join(SOURCE, "tests", "e2e", "cli", "cudart_array.c")
PREFIX = "/opt/heddle"
EXPECTED = " ".join(str(i) for i in range(1, 33)) + "\n"

# /proc tells heddle where it is installed; devices are the few that every program may need.
ENTER = """
set -e
cd "$1"
mount --rbind /proc proc
mount -t tmpfs none dev
for name in null zero random urandom; do
    : >dev/$name
    mount --bind /dev/$name dev/$name
done
mkdir dev/shm
shift
exec chroot . "$@"
"""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def unshare(*command):
    """Runs a command that can mount file systems for itself."""
    # Root need not become another user's root, which some systems do not allow.
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    return subprocess.run(["unshare", *user, "--mount", *command],
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp"},
                          capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL)


def enter(*command):
    """Runs a command as if the folder were all there is."""
    return unshare("sh", "-c", ENTER, "sh", ROOT, *command)


def check_permission(r):
    if r.returncode != 0:
        skip("no file system of our own: " + (r.stderr.strip() or f"exit code {r.returncode}"))


def libraries_of(path):
    """The files that the loader would load with a program or library, without heddle's."""
    env = {**os.environ, "LD_LIBRARY_PATH": ROOT + PREFIX + "/lib/heddle"}
    text = subprocess.run(["ldd", path], capture_output=True, text=True, env=env).stdout
    found = re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", text, re.MULTILINE)
    return {f for f in found if not re.match(r"lib(cuda|nvidia|heddle)", os.path.basename(f))}


def put(path):
    """A file of this machine, at the same place in the folder."""
    to = ROOT + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        try:
            os.link(os.path.realpath(path), to)
        except OSError:
            shutil.copy(path, to)


def compile_array(out, *flags):
    subprocess.run([CC, "-o", ROOT + out, ARRAY, "-fPIC", *flags], check=True, timeout=PATIENCE)
    return out


def make_programs():
    """{what it is: the command}"""
    programs = {}
    compile_array("/load")
    for name in sorted(os.listdir(RUNTIMES)):
        edition = name.removeprefix("libcudart.so.")
        runtime = os.path.join(RUNTIMES, name)
        programs[f"linked with {name}"] = [compile_array(f"/array-{edition}", "-DARRAY=main",
                                                         runtime)]
        programs[f"opened with {name}"] = ["/load", compile_array(
            f"/libarray-{edition}.so", "-DARRAY=array", "-shared", runtime)]
    if NVCC and os.path.exists(NVCC):
        source = os.path.join(SOURCE, "examples", "array.cu")
        subprocess.run([NVCC, "--cudart", "shared", "-o", ROOT + "/array-nvcc", source], check=True,
                       timeout=PATIENCE)
        programs["made by nvcc"] = ["/array-nvcc"]
    return programs


def make_machine():
    shutil.rmtree(ROOT, ignore_errors=True)
    for folder in ("proc", "dev", "tmp"):
        os.makedirs(os.path.join(ROOT, folder))
    subprocess.run(["cmake", "--install", BUILD, "--component", "heddle", "--prefix",
                    ROOT + PREFIX], check=True, capture_output=True, timeout=PATIENCE)
    programs = make_programs()
    for path in list(Path(ROOT).rglob("*")):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            for library in libraries_of(path):
                put(library)
    return programs


def check_alone():
    """There is nothing of NVIDIA's here."""
    for path in Path(ROOT).rglob("*"):
        inside = "/" + str(path.relative_to(ROOT))
        if re.search(r"nvidia|libcu", inside) and not inside.startswith(PREFIX + "/"):
            sys.exit(f"{inside} is there, perhaps NVIDIA's")


def main():
    if not os.path.isdir(RUNTIMES):
        skip("this build has no CUDA runtimes")
    for command in ("unshare", "chroot", "mount", "ldd", CC):
        if not shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            skip(f"there is no command {command}")
    check_permission(unshare("true"))
    programs = make_machine()
    check_alone()
    check_permission(enter(PREFIX + "/bin/heddle", "--version"))
    failed = 0
    for what, command in programs.items():
        r = enter(PREFIX + "/bin/heddle", "run", "--", *command)
        good = (r.returncode, r.stdout) == (0, EXPECTED)
        failed += not good
        print(f"{what}: {'right' if good else (r.returncode, r.stdout, r.stderr)}")
    # Otherwise the programs would prove nothing.
    r = enter(PREFIX + "/bin/heddle", "run", "--cudart", "nvidia", "--", *command)
    if "libcudart.so" not in r.stderr:
        failed += 1
        print(f"without heddle's runtime: {(r.returncode, r.stdout, r.stderr)}")
    shutil.rmtree(ROOT)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
