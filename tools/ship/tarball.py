#!/usr/bin/env python3
"""Packs an installed tree into a tarball that runs from any folder, with what people should read.

    tarball.py --tree PREFIX --build BUILD --version 0.3.0 --epoch SECONDS OUT_FOLDER

The same input gives the same bytes.
"""

import argparse
import io
from pathlib import Path
import sys
import tarfile

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bill  # noqa: E402
import elf   # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "README.zh-CN.md", "CHANGELOG.md", "LICENSE", "SECURITY.md")


def add_member(tar, name, mode, epoch, data=None, link=None):
    entry = tarfile.TarInfo(name)
    entry.mode, entry.mtime = mode, epoch
    entry.uname = entry.gname = "root"
    if link is not None:
        entry.type, entry.linkname = tarfile.SYMTYPE, link
        tar.addfile(entry)
    elif data is None:
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    else:
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))


def collect(args):
    """{name: (mode, data, link)} of everything, and the ELF files among it."""
    parts = bill.components(args.build)
    files, elves = {}, []
    tree = Path(args.tree)
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        if name.startswith(elf.OF_MACHINES):
            continue
        if path.is_symlink():
            files[name] = (0o777, None, path.readlink().as_posix())
        elif path.is_dir():
            files[name] = (0o755, None, None)
        else:
            data = path.read_bytes()
            found = elf.read_bytes(data, name)
            if found:
                elves.append(found)
            files[name] = (0o755 if path.stat().st_mode & 0o100 else 0o644, data, None)
    for name in DOCUMENTS:
        files[name] = (0o644, (SOURCE / name).read_bytes(), None)
    files["licenses"] = (0o755, None, None)
    for part in parts:
        files[f"licenses/{part.package}.txt"] = (0o644, part.copyright_file.read_bytes(), None)
    machine, glibc = elf.requirements(elves)
    text = bill.to_text(bill.document(parts, args.version, args.epoch, machine))
    files["heddle.spdx.json"] = (0o644, text.encode(), None)
    return files, machine, glibc


def pack(args):
    files, machine, glibc = collect(args)
    top = f"heddle-{args.version}-linux-{machine}"
    path = Path(args.out) / f"{top}.tar.xz"
    with tarfile.open(path, "w:xz", format=tarfile.GNU_FORMAT, preset=9) as tar:
        add_member(tar, top, 0o755, args.epoch)
        for name in sorted(files):
            mode, data, link = files[name]
            add_member(tar, f"{top}/{name}", mode, args.epoch, data, link)
    return path, glibc


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="an existing folder")
    parser.add_argument("--tree", required=True, help="heddle, installed with this prefix")
    parser.add_argument("--build", required=True, help="the build folder that the tree is of")
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", type=int, required=True, help="date of all files")
    try:
        path, glibc = pack(parser.parse_args())
    except (elf.Refused, elf.Malformed, bill.Unknown) as e:
        sys.exit(f"tarball: {e}")
    print(path)
    print(f"it needs glibc {glibc[0]}.{glibc[1]}", file=sys.stderr)


if __name__ == "__main__":
    main()
