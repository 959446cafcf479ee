#!/usr/bin/env python3
"""Makes the corpora of the fuzz targets locate_elf and locate_ldcache: small files, intact and
broken.

    locate_corpus.py        writes corpus/locate_elf, corpus/locate_ldcache
"""

import struct
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_NEEDED, DT_STRTAB, DT_SONAME = 0, 1, 5, 14
NAMES = b"\0libcudart.so.13\0libheddle.so\0libc.so.6\0"


def library(machine=62, bits=2, order=1, dynamic=None, segments=(PT_LOAD, PT_DYNAMIC, PT_INTERP),
            names=NAMES):
    """A library whose dynamic section has these entries; the names follow it."""
    at = 64 + 56 * len(segments)
    if dynamic is None:
        dynamic = [(DT_NEEDED, 17), (DT_NEEDED, 30), (DT_STRTAB, None), (DT_SONAME, 1),
                   (DT_NULL, 0)]
    strings = at + 16 * len(dynamic)
    body = b"".join(struct.pack("<qQ", tag, strings if value is None else value)
                    for tag, value in dynamic) + names
    ident = b"\x7fELF" + bytes([bits, order, 1]) + bytes(9)
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, machine, 1, 0, 64, 0, 0, 64, 56,
                       len(segments), 0, 0, 0)
    for kind in segments:
        begin, size = (0, at + len(body)) if kind == PT_LOAD else (at, 16 * len(dynamic))
        head += struct.pack("<IIQQQQQQ", kind, 4, begin, begin, begin, size, size, 8)
    return head + body


def cache(*entries, count=None, before=b""):
    """A cache of (name, path)."""
    strings, table = b"", b""
    start = 48 + 24 * len(entries)
    for name, path in entries:
        key = start + len(strings)
        strings += name + b"\0"
        table += struct.pack("<iIIIQ", 0x303, key, start + len(strings), 0, 0)
        strings += path + b"\0"
    count = len(entries) if count is None else count
    head = b"glibc-ld.so.cache1.1" + struct.pack("<II", count, len(strings)) + bytes(20)
    return before + head + table + strings


def files():
    whole = library()
    yield "locate_elf/whole", whole
    yield "locate_elf/other", library(machine=183)
    yield "locate_elf/narrow", library(bits=1)
    yield "locate_elf/big", library(order=2)
    yield "locate_elf/head", whole[:64]
    yield "locate_elf/cut", whole[:-3]
    yield "locate_elf/no_strings", library(dynamic=[(DT_SONAME, 1), (DT_NULL, 0)])
    yield "locate_elf/far", library(dynamic=[(DT_STRTAB, None), (DT_SONAME, 1 << 63)])
    yield "locate_elf/many", library(segments=(PT_LOAD,) + (PT_DYNAMIC,) * 40)
    yield "locate_elf/long", library(names=b"\0" + b"x" * 300 + b"\0")
    yield "locate_elf/script", b"#!/bin/sh\n"
    driver = (b"libcuda.so.1", b"/usr/lib/x86_64-linux-gnu/libcuda.so.1")
    other = (b"libc.so.6", b"/lib/x86_64-linux-gnu/libc.so.6")
    yield "locate_ldcache/whole", cache(other, driver)
    yield "locate_ldcache/old_in_front", cache(driver, before=b"ld.so-1.7.0\0" + bytes(40))
    yield "locate_ldcache/count_over", cache(driver, count=2 ** 32 - 1)
    yield "locate_ldcache/cut", cache(driver)[:-1]
    yield "locate_ldcache/head", cache()[:30]


def main():
    for name, data in files():
        path = CORPUS / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()
