#!/usr/bin/env python3
"""Pointers to functions in linked machine code, by address and by descriptor: both are lifted
alike.

    descriptors.py NVCC HEDDLE

The relocations of a linked cubin are changed from addresses to descriptors (R_CUDA_FUNC_DESC_64,
R_CUDA_FUNC_DESC32_LO_32 and _HI_32) where their symbol is a function. The text must stay the same.
"""

import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = ("""
typedef int (*function)(int);
__device__ int seven(int);
__device__ __noinline__ int three(int x) { return x * 3; }
__device__ function table[2] = {seven, three};
__global__ void kernel(int *out, int i, function *to)
{
    function f = i & 1 ? seven : three;
    to[0] = f;
    out[i] = f(i) + table[i](i) + to[i](i);
}
""", "__device__ int seven(int x) { return x + 7; }\n")
DESCRIPTORS = {2: 35, 56: 62, 57: 63}
SHT_SYMTAB, SHT_RELA, SHT_REL, STT_FUNC = 2, 4, 9, 2


def change_relocations(image):
    start, = struct.unpack_from("<Q", image, 0x28)
    count, = struct.unpack_from("<H", image, 0x3c)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, start + 64 * i) for i in range(count)]
    symbols = next(h for h in headers if h[1] == SHT_SYMTAB)[4]
    changed = 0
    for _, kind, _, _, offset, size, _, _, _, each in headers:
        if kind not in (SHT_RELA, SHT_REL):
            continue
        for at in range(offset + 8, offset + size, each):
            info, = struct.unpack_from("<Q", image, at)
            is_function = image[symbols + 24 * (info >> 32) + 4] & 15 == STT_FUNC
            if is_function and info & 0xffffffff in DESCRIPTORS:
                struct.pack_into("<I", image, at, DESCRIPTORS[info & 0xffffffff])
                changed += 1
    return changed


def main():
    nvcc, heddle = sys.argv[1:]
    nvlink = Path(nvcc).with_name("nvlink")
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        parts = []
        for i, source in enumerate(SOURCES):
            (folder / f"{i}.cu").write_text(source)
            parts.append(folder / f"{i}.cubin")
            subprocess.run([nvcc, "-rdc=true", "-arch=sm_80", "-cubin", folder / f"{i}.cu", "-o",
                            parts[-1]], check=True)
        linked = folder / "linked.cubin"
        subprocess.run([nvlink, "-arch=sm_80", *parts, "-o", linked], check=True)

        def lifted():
            return subprocess.run([heddle, "fatbin", "lift", linked], check=True,
                                  capture_output=True).stdout

        want = lifted()
        image = bytearray(linked.read_bytes())
        changed = change_relocations(image)
        linked.write_bytes(image)
        same = lifted() == want
    print(f"{changed} relocations changed, the text is {'the same' if same else 'another'}")
    return 0 if same and changed else 1


if __name__ == "__main__":
    sys.exit(main())
