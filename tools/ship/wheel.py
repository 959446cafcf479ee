#!/usr/bin/env python3
"""Packs an installed tree into a wheel, a file that `pip install` understands.

    wheel.py --tree PREFIX --command FILE --build BUILD --version 0.3.0 --epoch SECONDS OUT_FOLDER

What goes where:

    heddle/**                 the Python package, python/heddle of the sources
    heddle/_native/bin        the real command
    heddle/_native/lib        libraries, plug-ins, heddled
    heddle/_native/share      profiles of devices
    *.data/scripts/heddle     FILE, which finds and becomes the real command
    *.data/data/share         man pages, completion, documents
    *.dist-info               metadata, licences, bill of materials

The tag is that of the oldest C library that all files run with (elf.py). The same input gives the
same bytes.

With --for-here the file is for this machine alone, and so is its tag (linux_x86_64): the tree may
need libraries of the system's, and what is linked into it is not listed. Tests make such wheels of
an ordinary build.
"""

import argparse
import base64
import hashlib
from pathlib import Path
import sys
import time
import zipfile

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bill  # noqa: E402
import elf   # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
DISTRIBUTION = "heddle_cuda"
PYTHON = ">=3.9"
TAGS = "py3-none-manylinux_{}_{}_{}"
TAG_FOR_HERE = "py3-none-linux_{2}"
# Parts of the tree. What programs are compiled with is in the tarball and in the packages.
NATIVE = ("bin/heddle", "lib/heddle", "share/heddle")
SHARED = ("share/man", "share/bash-completion", "share/zsh", "share/fish", "share/doc")
NOT_PACKED = ("lib/libheddle", "lib/pkgconfig", "lib/cmake", "include", "share/heddle/python",
              *elf.OF_MACHINES)
PYTHON_FILES = (".py", ".pyi", ".typed")
# pytest refuses a module that it has under two names, so the plug-in has that of `-p`.
ENTRY_POINTS = "[pytest11]\nheddle.pytest_plugin = heddle.pytest_plugin\n"


def metadata(version, parts):
    lines = ["Metadata-Version: 2.4", "Name: heddle-cuda", f"Version: {version}",
             "Summary: A drop-in CUDA driver: runs, traces, shares and moves CUDA programs, "
             "also without a GPU",
             f"License-Expression: {bill.licence_expression(parts)}",
             "License-File: LICENSE", *(f"License-File: {p.package}.txt" for p in parts),
             f"Requires-Python: {PYTHON}", "Keywords: cuda,gpu,testing,pytest",
             "Classifier: Operating System :: POSIX :: Linux",
             "Classifier: Programming Language :: Python :: 3",
             "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (SOURCE / "docs/wheel.md").read_text(encoding="utf-8")


class Wheel:
    """The files of a wheel, by name, until it is written."""

    def __init__(self, version):
        self.files = {} # name: (bytes, is it executable?)
        self.elves = []
        self.info = f"{DISTRIBUTION}-{version}.dist-info"
        self.data = f"{DISTRIBUTION}-{version}.data"

    def add(self, name, data, executable=False):
        if name in self.files:
            raise elf.Refused(f"two files are to be {name}")
        self.files[name] = (data if isinstance(data, bytes) else data.encode(), executable)

    def add_file(self, name, path):
        """Links are followed: a wheel has none."""
        found = elf.read(path)
        if found:
            self.elves.append(found._replace(path=name))
        self.add(name, Path(path).read_bytes(), bool(Path(path).stat().st_mode & 0o100))

    def add_tree(self, tree):
        for path in sorted(Path(tree).rglob("*")):
            name = path.relative_to(tree).as_posix()
            if path.is_dir() or name.startswith(NOT_PACKED):
                continue
            if name.startswith(NATIVE):
                self.add_file(f"heddle/_native/{name}", path)
            elif name.startswith(SHARED):
                self.add_file(f"{self.data}/data/{name}", path)
            else:
                raise elf.Refused(f"{name} is installed, but tools/ship/wheel.py does not know "
                                  "where it belongs in a wheel")

    def add_python(self, folder):
        """True if there is a plug-in for pytest."""
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and path.name.endswith(PYTHON_FILES):
                self.add(f"heddle/{path.relative_to(folder).as_posix()}", path.read_bytes())
        if "heddle/__init__.py" not in self.files:
            raise elf.Refused(f"{folder} has no __init__.py")
        return "heddle/pytest_plugin.py" in self.files

    def write(self, folder, epoch, is_for_here):
        machine, glibc = elf.requirements(self.elves, is_for_here)
        tag = (TAG_FOR_HERE if is_for_here else TAGS).format(*glibc, machine)
        self.add(f"{self.info}/WHEEL", "Wheel-Version: 1.0\nGenerator: heddle tools/ship/wheel.py\n"
                                       f"Root-Is-Purelib: false\nTag: {tag}\n")
        # The format asks for what describes the wheel at its end.
        names = sorted(self.files, key=lambda name: (name.startswith(self.info), name))
        record = "".join(f"{name},sha256={digest(self.files[name][0])},{len(self.files[name][0])}\n"
                         for name in names)
        record_name = f"{self.info}/RECORD"
        self.files[record_name] = (f"{record}{record_name},,\n".encode(), False)
        path = Path(folder) / f"{self.info.removesuffix('.dist-info')}-{tag}.whl"
        when = time.gmtime(max(epoch, 315532800))[:6] # a zip file knows no time before 1980
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
            for name in [*names, record_name]:
                data, executable = self.files[name]
                entry = zipfile.ZipInfo(name, when)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.create_system = 3 # Unix, so that pip sees the modes
                entry.external_attr = (0o100755 if executable else 0o100644) << 16
                z.writestr(entry, data)
        return path


def digest(data):
    """As RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def pack(args):
    parts = [] if args.for_here else bill.components(args.build)
    wheel = Wheel(args.version)
    wheel.add_tree(args.tree)
    wheel.add_file(f"{wheel.data}/scripts/heddle", args.command)
    has_plugin = wheel.add_python(args.python)
    if has_plugin:
        wheel.add(f"{wheel.info}/entry_points.txt", ENTRY_POINTS)
    wheel.add(f"{wheel.info}/METADATA", metadata(args.version, parts))
    wheel.add(f"{wheel.info}/licenses/LICENSE", (SOURCE / "LICENSE").read_bytes())
    for part in parts:
        wheel.add(f"{wheel.info}/licenses/{part.package}.txt", part.copyright_file.read_bytes())
    if not args.for_here:
        machine = wheel.elves[0].machine
        wheel.add(f"{wheel.info}/sboms/heddle.spdx.json",
                  bill.to_text(bill.document(parts, args.version, args.epoch, machine)))
    return wheel.write(args.out, args.epoch, args.for_here)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="an existing folder")
    parser.add_argument("--tree", required=True, help="heddle, installed with this prefix")
    parser.add_argument("--command", required=True, help="what is to be `heddle` beside pip")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--build", help="the build folder that the tree is of")
    what.add_argument("--for-here", action="store_true", help="for tests on this machine")
    parser.add_argument("--python", default=SOURCE / "python/heddle", help="the Python package")
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", type=int, required=True, help="date of all files")
    try:
        print(pack(parser.parse_args()))
    except (elf.Refused, elf.Malformed, bill.Unknown) as e:
        sys.exit(f"wheel: {e}")


if __name__ == "__main__":
    main()
