#!/usr/bin/env python3
"""Writes the corpus of the fuzz target cache_archive: an archive without kernels, one with two, a
damaged one, and an entry. The formats are in src/kernel/cache/{archive.h,entry.c}.

    tests/fuzz/cache_corpus.py [FOLDER]
"""

import hashlib
from pathlib import Path
import struct
import sys
import zlib

HERE = Path(__file__).resolve().parent


def entry(name, features, content):
    tail = name + b"\0" + features + b"\0" + content
    key = hashlib.blake2b(name, digest_size=32).digest()
    return struct.pack("<8s32sQQIIIIII24s", b"HEDKRN4", key, len(content), 7, zlib.crc32(tail),
                       1000, 3, 1, len(name) + 1, len(features) + 1, b"1.2.3") + tail


def archive(*entries):
    body = b"HEDKARC\0" + struct.pack("<I", 1)
    body += b"".join(struct.pack("<Q", len(e)) + e for e in entries) + struct.pack("<Q", 0)
    return body + hashlib.blake2b(body, digest_size=32).digest()


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus" / "cache_archive"
    folder.mkdir(parents=True, exist_ok=True)
    one = entry(b"_Z4fillPj", b"+avx2,+fma", b"an object")
    two = entry(b"k", b"", b"")
    whole = archive(one, two)
    files = {"empty": archive(), "two": whole, "entry": one, "cut": whole[:150],
             "changed": whole[:130] + b"x" + whole[131:]}
    for name, data in files.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
