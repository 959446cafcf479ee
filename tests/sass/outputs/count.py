#!/usr/bin/env python3
"""The result of ATOMS.POPC.INC, which no compiler of ours uses: lanes with the same address add
their number to it at once, and each of them gets what was there before.

    count.py --ptxas PTXAS --arch sm_80 [--text HEDDLE]

The instruction takes the place of the ATOMS.ADD of a kernel that ptxas compiled: behind a branch or
under a guard, in a loop that lanes leave one after the other, and at an address that all lanes of a
warp share. As with
outputs.py, whatever libcuda the program finds runs it: our CPU GPU, a GPU of that architecture, or,
with --text, a GPU whose driver compiles what `heddle run --lift` would load.

Exits with 1 if anything differs, with 77 if there is no ptxas or no device.
"""

import argparse
import ctypes
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from outputs import Device, sections

THREADS, COUNTERS = 96, 16
# Words of a thread: its input, the result under a guard, that of the loop, the one of the shared
# address; then the counters of all warps.
TEXT = """
.version 8.0
.target {arch}
.address_size 64
.visible .entry k(.param .b64 place)
{{
.reg .b32 %r<40>;
.reg .b64 %d<8>;
.reg .pred %p<8>;
.shared .align 4 .b8 counters[192];
ld.param.b64 %d1, [place];
mov.u32 %r1, %tid.x;
mul.wide.u32 %d2, %r1, 4;
add.s64 %d3, %d1, %d2;
ld.global.b32 %r2, [%d3];
mov.u32 %r3, counters;
shr.u32 %r4, %r1, 5;
shl.b32 %r5, %r4, 6;
add.u32 %r6, %r3, %r5;
and.b32 %r7, %r1, 15;
shl.b32 %r8, %r7, 2;
add.u32 %r9, %r6, %r8;
mul.lo.u32 %r10, %r7, 1000;
st.shared.b32 [%r9], %r10;
bar.sync 0;
mov.u32 %r11, 0xeeee;
and.b32 %r12, %r2, 12;
add.u32 %r13, %r6, %r12;
and.b32 %r14, %r2, 16;
setp.ne.u32 %p1, %r14, 0;
@%p1 atom.shared.add.u32 %r11, [%r13], 1;
st.global.b32 [%d3+384], %r11;
bar.warp.sync 0xffffffff;
bfe.u32 %r15, %r2, 5, 3;
mov.u32 %r16, 0;
mov.u32 %r17, 0;
setp.eq.u32 %p2, %r15, 0;
@%p2 bra AFTER;
LOOP:
add.u32 %r18, %r2, %r17;
and.b32 %r19, %r18, 7;
shl.b32 %r20, %r19, 2;
add.u32 %r21, %r6, %r20;
atom.shared.add.u32 %r22, [%r21+16], 1;
mad.lo.u32 %r16, %r16, 31, %r22;
add.u32 %r17, %r17, 1;
setp.lt.u32 %p3, %r17, %r15;
@%p3 bra LOOP;
AFTER:
bar.warp.sync 0xffffffff;
st.global.b32 [%d3+768], %r16;
shl.b32 %r23, %r4, 6;
add.u32 %r24, %r3, %r23;
atom.shared.add.u32 %r25, [%r24+60], 1;
st.global.b32 [%d3+1152], %r25;
bar.sync 0;
ld.shared.b32 %r26, [%r9];
st.global.b32 [%d3+1536], %r26;
ret;
}}
"""
ADD, COUNT, BRANCH, WANTED = (0x38c, 0x98c), 0xf8c, 0x947, 3


def code_of(image):
    offset, size = {name: (at, n) for name, at, n in sections(image)}[".text.k"]
    return [(at, *struct.unpack_from("<QQ", image, at)) for at in range(offset, offset + size, 16)]


def put_counts(image, arch):
    """ATOMS.ADD Rd, [address], R becomes ATOMS.POPC.INC.32 Rd, [address]."""
    operation = 0xd8 if arch == "sm_90" else 0xd0
    changed = 0
    for at, low, high in code_of(image):
        if low & 0xfff not in ADD:
            continue
        uniform = high & 63 if low & 0xfff == 0x98c else 63
        low = low & (0xffffff << 40 | 0xffff << 16 | 15 << 12) | COUNT
        high = high >> 41 << 41 | operation << 20 | high & 3 << 14 | uniform
        struct.pack_into("<QQ", image, at, low, high)
        changed += 1
    return changed


def put_guard(image):
    """Code that a branch leaves out, up to the first count, gets the branch's predicate instead."""
    code = code_of(image)
    count = next(i for i, (_, low, _) in enumerate(code) if low & 0xfff == COUNT)
    branch = max(i for i in range(count) if code[i][1] & 0xfff == BRANCH)
    guard = code[branch][1] & 0xf000 ^ 0x8000
    at, _, high = code[branch]
    struct.pack_into("<QQ", image, at, 0x7918, high >> 41 << 41)
    for at, low, high in code[branch + 1:count + 1]:
        struct.pack_into("<QQ", image, at, low & ~0xf000 | guard, high)


def count_lanes(counters, places):
    """What the lanes get, by lane, of one instruction; places: the counter of each that runs."""
    old = {lane: counters[place] for lane, place in places.items()}
    for place in places.values():
        counters[place] += 1
    return old


def meaning(words):
    """All words of a block after the kernel, without the inputs."""
    guarded, looped, shared, left = [], [], [], []
    for warp in range(0, THREADS, 32):
        v = words[warp:warp + 32]
        counters = [1000 * i for i in range(COUNTERS)]
        old = count_lanes(counters, {i: (x & 12) >> 2 for i, x in enumerate(v) if x & 16})
        guarded += [old.get(i, 0xeeee) for i in range(32)]
        sums = [0] * 32
        for k in range(8):
            places = {i: 4 + (x + k & 7) for i, x in enumerate(v) if k < x >> 5 & 7}
            for i, x in count_lanes(counters, places).items():
                sums[i] = sums[i] * 31 + x & 0xffffffff
        looped += sums
        shared += count_lanes(counters, dict.fromkeys(range(32), 15)).values()
        left += counters + counters
    return [*guarded, *looped, *shared, *left]


def run_block(device, words):
    data = struct.pack(f"<{THREADS}I", *words) + bytes(16 * THREADS)
    function, place = ctypes.c_void_p(), ctypes.c_uint64()
    device.call("cuModuleGetFunction", ctypes.byref(function), device.module, b"k")
    device.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(len(data)))
    device.call("cuMemcpyHtoD_v2", place, data, ctypes.c_size_t(len(data)))
    params = (ctypes.c_void_p * 1)(ctypes.addressof(place))
    device.call("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, None, params, None)
    back = ctypes.create_string_buffer(len(data))
    device.call("cuMemcpyDtoH_v2", back, place, ctypes.c_size_t(len(data)))
    device.call("cuMemFree_v2", place)
    return list(struct.unpack(f"<{5 * THREADS}I", back.raw))[THREADS:]


def make_image(ptxas, arch, heddle, folder, guarded):
    (folder / "count.ptx").write_text(TEXT.format(arch=arch))
    cubin = folder / "count.cubin"
    subprocess.run([ptxas, "-arch", arch, folder / "count.ptx", "-o", cubin], check=True)
    image = bytearray(cubin.read_bytes())
    changed = put_counts(image, arch)
    if changed != WANTED:
        sys.exit(f"ptxas made another kernel: {changed} instructions instead of {WANTED}")
    if guarded:
        put_guard(image)
    cubin.write_bytes(image)
    if not heddle:
        return bytes(image)
    return subprocess.run([heddle, "fatbin", "lift", "--module", cubin], check=True,
                          capture_output=True).stdout + b"\0"


def check_image(image, name):
    """How many of the blocks differ; -1 without a device."""
    try:
        device = Device(image)
    except (OSError, RuntimeError) as e:
        print(f"no device: {e}")
        return -1
    r = random.Random(5)
    inputs = [[16 | 7 << 5] * THREADS, [0] * THREADS, list(range(THREADS)),
              [i * 37 for i in range(THREADS)]]
    inputs += [[r.getrandbits(8) for _ in range(THREADS)] for _ in range(12)]
    wrong = 0
    for n, words in enumerate(inputs):
        got, want = run_block(device, words), meaning(words)
        differ = [i for i in range(len(want)) if got[i] != want[i]]
        wrong += bool(differ)
        if differ:
            i = differ[0]
            print(f"input {n}: {len(differ)} words differ, word {i // THREADS} of thread "
                  f"{i % THREADS} is {got[i]} instead of {want[i]}")
    print(f"{name}: {len(inputs) - wrong} of {len(inputs)} blocks are right", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ptxas", required=True)
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--text")
    args = parser.parse_args()
    if not Path(args.ptxas).exists():
        print("no ptxas: skipped")
        return 77
    wrong = 0
    for guarded in (False, True):
        with tempfile.TemporaryDirectory() as work:
            image = make_image(args.ptxas, args.arch, args.text, Path(work), guarded)
        found = check_image(image, args.arch + (", guarded" if guarded else ""))
        if found < 0:
            return 77
        wrong += found
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
