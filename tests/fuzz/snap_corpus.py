#!/usr/bin/env python3
"""Makes the corpus of the fuzz target snap_read: small snapshots, intact and broken, each with the
one that it needs.

    snap_corpus.py FOLDER
"""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.snap_file import *  # noqa: E402,F403


def tiny(epoch=1, parent=None, value=1):
    f = SnapFile(epoch=epoch, parent=parent)
    return f.extent(DEVICE, key=16, data=b"abc").extent(DEVICE, key=32, data=bytes([value] * 5000))


def inputs():
    base = tiny().finish()
    child = tiny(2, base, 2).extent(FILE, name="core.img", data=b"core").finish()
    pair = bytes(child.data), bytes(base.data)
    yield "pair", pair
    yield "wrong_home", (pair[0], pair[0])
    yield "alone", (pair[1], b"")
    yield "empty", (bytes(SnapFile().finish().data), b"")
    yield "zeros", (bytes(SnapFile().extent(ARRAY, key=1, data=bytes(9000)).finish().data), b"")
    yield "partial", (bytes(tiny().finish(flags=PARTIAL).data), b"")
    two = tiny().finish(flags=PARTIAL)
    yield "continued", (bytes(two.extent(OBJECTS, name="o", data=b"x").finish().data), b"")
    yield "torn", (pair[1] + bytes(5000), b"")
    yield "cut", (pair[1][:-4096], b"")
    yield "short", (pair[1][:100], b"")
    yield "too_new", (bytes(SnapFile(major=2).finish().data), b"")
    yield "needs_zstd", (bytes(tiny().finish(needs=1).data), b"")
    yield "twice", (bytes(tiny().extent(DEVICE, key=16).finish().data), b"")
    yield "bad_name", (bytes(SnapFile().extent(FILE, name="../x", data=b"x").finish().data), b"")
    own = SnapFile()
    own.homes = [own]
    yield "own_home", (bytes(own.finish().data), b"")
    for name, row in (("far_blob", (0, 9)), ("far_home", (3, 0)), ("zeros_blob", (ZEROS, 1))):
        f = tiny()
        f.chunks[0] = (f.chunks[0][0], *row)
        yield name, (bytes(f.finish().data), b"")
    overlap = tiny()
    overlap.blobs[1] = overlap.blobs[0][0], overlap.blobs[1][1]
    yield "overlap", (bytes(overlap.finish().data), b"")


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (first, second) in inputs():
        (folder / name).write_bytes(struct.pack("<I", len(first)) + first + second)


if __name__ == "__main__":
    main(sys.argv[1])
