#!/usr/bin/env python3
"""Makes the corpora of the fat binary fuzz targets, which the unit tests use, too: images that nvcc
makes from e2e/cli/fatbin_kernels.cu and sass_*.cu, and images that no compiler would make.

    fatbin_corpus.py NVCC       writes corpus/fatbin, corpus/cubin, corpus/fatbin_find
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness.fatbin_file import (  # noqa: E402
    CUBIN, LTO, LZ4, PTX, SEALED, ZSTD, archive, elf, entry, fatbin, wrapper)

PTX_TEXT = b"// nothing\n.version 7.0\n.target sm_52\n.address_size 64\n.entry k()\n{\nret;\n}\n"


def compile_with(nvcc):
    """Compiles kernels in an empty folder, so that the output contains no path."""
    def run(*words, source="e2e/cli/fatbin_kernels.cu"):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "k.cu").write_bytes((HERE.parent / source).read_bytes())
            subprocess.run([nvcc, *words, "-o", "out", "k.cu"], cwd=folder, check=True)
            return Path(folder, "out").read_bytes()
    return run


def gencode(virtual, *real):
    return ["-gencode", f"arch=compute_{virtual},code=[{','.join(real)}]"]


def fatbins(nvcc):
    many = [*gencode("75", "sm_75", "compute_75"), *gencode("90", "sm_90"),
            *gencode("90a", "sm_90a"), *gencode("100f", "sm_100f", "compute_100f")]
    one = gencode("90", "sm_90", "compute_90")
    return {
        "many": nvcc("-fatbin", *many, "-Xfatbin", "--compress-all"),
        "lz4": nvcc("-fatbin", *one, "-Xfatbin", "--compress-all,--compress-mode=speed"),
        "plain": nvcc("-fatbin", *gencode("90", "compute_90"), "-Xfatbin", "--compress-mode=none"),
        "lto": nvcc("-fatbin", "-dc", *gencode("90", "lto_90")),
        "parts": nvcc("-fatbin", "-rdc=true", "-lineinfo", *one),
        "empty": fatbin(),
        "version": fatbin(version=2),
        "cut": fatbin(entry(PTX, 75, PTX_TEXT))[:100],
        "longer": fatbin(entry(PTX, 75, PTX_TEXT), size=1 << 40),
        "unknown": fatbin(entry(64, 90, b"tile"), entry(PTX, 75, PTX_TEXT)),
        "packed_over": fatbin(entry(CUBIN, 90, b"x" * 8, flags=0x2011, packed=9, size=99)),
        "header_over": fatbin(entry(PTX, 75, PTX_TEXT, header=1 << 31)),
        "header_under": fatbin(entry(PTX, 75, PTX_TEXT, header=8)),
        "stored_over": fatbin(entry(PTX, 75, PTX_TEXT, stored=(1 << 64) - 64)),
        "bomb": fatbin(entry(PTX, 75, b"x" * 8, flags=ZSTD, packed=8, size=1 << 60)),
        "noise": fatbin(entry(PTX, 75, b"x" * 64, flags=LZ4, packed=60, size=99),
                        entry(PTX, 75, b"x" * 64, flags=ZSTD, packed=60, size=99),
                        entry(PTX, 75, b"x" * 64, flags=0, packed=60, size=99),
                        entry(LTO, 75, b"x" * 64, flags=SEALED, packed=60, size=99)),
        # One literal, then 20 more bytes of the same, which is more than the entry says.
        "modest": fatbin(entry(PTX, 75, b"\x1fa\x01\x00\x01\x50bcdef", flags=LZ4, packed=11,
                               size=13)),
    }


def cubins(nvcc):
    sm90 = nvcc("-cubin", "-arch=sm_90")
    return {
        "sm_75": nvcc("-cubin", "-arch=sm_75"),
        "sm_80": nvcc("-cubin", "-arch=sm_80", source="unit/cpu/machine_code.cu"),
        "sm_80_parts": nvcc("-cubin", "-arch=sm_80", "-rdc=true",
                            source="unit/cpu/machine_code.cu"),
        "sm_80_integers": nvcc("-cubin", "-arch=sm_80", source="fuzz/sass_integers.cu"),
        "sm_80_floats": nvcc("-cubin", "-arch=sm_80", source="fuzz/sass_floats.cu"),
        "sm_90": sm90,
        "sm_90a": nvcc("-cubin", "-arch=sm_90a", "-DLARGE"),
        "parts": nvcc("-cubin", "-arch=sm_90", "-rdc=true"),
        "cut": sm90[:200],
        "host": elf([(".text", b"x")]),
    }


def finds(some):
    a, b = some["plain"], some["modest"]
    two = elf([(".text", b"x" * 20), (".nv_fatbin", a + bytes(40) + b), ("__nv_relfatbin", b),
               (".nvFatBinSegment", wrapper(1) + wrapper(2) + wrapper(7))])
    return {
        "elf": two,
        "elsewhere": elf([(".rodata", b"x" * 24 + b)]),
        "stripped": two[:40] + bytes(8) + two[48:60] + bytes(4) + two[64:],
        "bits": elf([], bits=32),
        "cut": two[:-70],
        "cut_section": elf([(".nv_fatbin", a[:-200])]),
        "archive": archive([("a.o", elf([(".nv_fatbin", b)])), ("text", b"no code"),
                            ("a_name_that_is_too_long.o", elf([("__nv_relfatbin", b)])),
                            ("k.ptx", PTX_TEXT)]),
        "cut_archive": archive([("a.o", elf([(".nv_fatbin", b)]))])[:-10],
        "ptx": PTX_TEXT,
        "raw": b"some other file" + b + b"and more" + b,
        "nothing": b"",
    }


def main(nvcc):
    run = compile_with(nvcc)
    some = fatbins(run)
    for name, files in ("fatbin", some), ("cubin", cubins(run)), ("fatbin_find", finds(some)):
        folder = HERE / "corpus" / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            os.remove(old)
        for file, data in files.items():
            (folder / file).write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
