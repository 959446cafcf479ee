#!/usr/bin/env python3
"""All results of single instructions of machine code, carries and predicates too, beside what they
mean.

    outputs.py --ptxas PTXAS --arch sm_80 [--text HEDDLE] [--only NAME]

Each row of rows.py becomes a kernel: one that ptxas compiled, in which the instruction and the
moves of predicates around it take the place of arithmetic. The kernels are run by whatever libcuda
the program finds:

    on our CPU GPU        machine code is lifted, and must mean what the row says
    on a GPU of the arch  the row itself is checked: this is the machine
    with --text HEDDLE    the text that `heddle run --lift` would load, compiled by the driver

Exits with 1 if anything differs, with 77 if there is no ptxas or no device.
"""

import argparse
import ctypes
import multiprocessing
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from rows import M, MARKS, State, rows

EDGES = [0, M, 0x80000000, 0x7fffffff, 1, 31, 32, 33]
STRIDE = 96
CHAIN = 40
NOP = (0x7918, 0)
TWO_SOURCES = (0x007, 0x087, 0x017, 0x048, 0x036, 0x01a, 0x09a, 0x01b, 0x09b, 0x100, 0x109)
LEA, SHF = (0x011, 0x091), (0x019, 0x099)
CARRIER = """
.visible .entry {name}(.param .b64 place)
{{
.reg .b32 %r<90>;
.reg .b64 %d<4>;
ld.param.b64 %d1, [place];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
mad.wide.u32 %d2, %r4, 96, %d1;
ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%d2];
ld.global.b32 %r9, [%d2+16];
mad.lo.u32 %r20, %r5, %r6, %r9;
mad.lo.u32 %r21, %r20, %r7, %r8;
{chain}
st.global.v4.b32 [%d2+32], {{%r{a}, %r{b}, %r{c}, %r{d}}};
st.global.v4.b32 [%d2+48], {{%r5, %r6, %r7, %r8}};
st.global.b32 [%d2+64], %r9;
ret;
}}
"""


# ---- kernels -----------------------------------------------------------------------------------

def carrier(name):
    chain = "\n".join(f"mad.lo.u32 %r{22 + i}, %r{21 + i}, %r{20 + i}, {0x1234567 + 77 * i};"
                      for i in range(CHAIN))
    last = 21 + CHAIN
    return CARRIER.format(name=name, chain=chain, a=last, b=last - 1, c=last - 2, d=last - 3)


def control(stall=13, write=7, wait=0):
    return (wait << 11 | 7 << 8 | write << 5 | stall) << 41


class Kernel:
    """The instructions of one kernel in a cubin, and the registers that the carrier chose."""

    def __init__(self, image, offset, size):
        self.image, self.offset, self.size = image, offset, size
        self.quad = self.preds = self.out = None
        words = [struct.unpack_from("<QQ", image, offset + i) for i in range(0, size, 16)]
        for i, (low, high) in enumerate(words):
            wide = high >> 9 & 7 == 6
            if low & 0xfff == 0x981:
                self.first = i + 1
                if wide:
                    self.quad = low >> 16 & 255
                else:
                    self.preds = low >> 16 & 255
            elif low & 0xfff == 0x986 and wide and low >> 40 == 32:
                self.end, self.out = i, low >> 32 & 255
        if None in (self.quad, self.preds, self.out) or abs(self.out - self.quad) < 4:
            sys.exit("ptxas made another kernel of the carrier")

    def put(self, code):
        if len(code) > self.end - self.first:
            sys.exit("the carrier is too short")
        code = code + [NOP] * (self.end - self.first - len(code))
        for i, (low, high) in enumerate(code):
            if not high >> 41:
                high |= control(wait=0x3f)
            struct.pack_into("<QQ", self.image, self.offset + 16 * (self.first + i), low, high)


def has_third(op, high):
    """Does the instruction read a third register? A GPU takes nothing but RZ if it does not."""
    if op in LEA:
        return high >> 16 & 1 and not high >> 9 & 1  # .HI, not .SX32
    if op in SHF:
        return high >> 12 & 1 or high >> 16 & 1  # not the low word of a shift to the left
    return True


def registers(low, high, d, a, b, c, zero):
    """Puts the registers of the sources and the result in."""
    op, form = low & 0x1ff, low >> 9 & 7
    if op in (0x01c, 0x09c):  # of predicates alone
        return low, high
    if op not in (0x100, 0x109):
        low |= a << 24
    if form == 1:
        low |= b << 32
    if op in (0x00c, 0x08c):
        return low, high
    c = c if has_third(op, high) else zero
    return low | d << 16, high | (0 if op in TWO_SOURCES else c)


# UR4 and UR5 say how memory is reached. The sources are in UR8 to UR11, the result is in UR12 and
# UR13, the predicates are in UR14.
UR_IN, UR_OUT, UR_PREDS, UNIFORM = 8, 12, 14, 1 << 27


def uniform_code(row, k, arch):
    move = 0x72ca if arch == "sm_90" else 0x73c2
    code = [(move | r << 24 | ur << 16, 0xe0000 | control(write=0, wait=0x3f))
            for r, ur in ((k.quad, 8), (k.quad + 1, 9), (k.quad + 2, 10), (k.quad + 3, 11),
                          (k.preds, UR_PREDS))]
    code += [NOP, (MARKS[0] << 32 | 0x7882 | UR_OUT << 16, 0),
             (MARKS[1] << 32 | 0x7882 | UR_OUT + 1 << 16, 0)]
    # ULOP3.LUT UPi, URZ, UR14, 1 << i, URZ, 0xc0, !UPT
    code += [(0x7892 | 63 << 16 | UR_PREDS << 24 | 1 << i << 32,
              63 | 0xc0 << 8 | i << 17 | 15 << 23 | UNIFORM) for i in range(7)]
    low, high = registers(row["low"], row["high"], UR_OUT, UR_IN, UR_IN + 1, UR_IN + 2, 63)
    if low & 0xfff != 0x89c:
        high |= UNIFORM
    code += [NOP, (low, high), NOP, NOP]
    code += [(0x7f00007883 | UR_PREDS << 16 | 63 << 24, UNIFORM), NOP]
    return code + [(0x7c02 | k.out + i << 16 | ur << 32, 0xf00 | UNIFORM)
                   for i, ur in enumerate((UR_OUT, UR_OUT + 1, UR_PREDS))]


def code_of(row, k, arch):
    """The place of the results is set first, so that an instruction that does nothing shows."""
    if row["uniform"]:
        return uniform_code(row, k, arch)
    low, high = registers(row["low"], row["high"], k.out, k.quad, k.quad + 1, k.quad + 2, 255)
    if row["slow"]:
        high |= control(write=0, wait=0x3f)
    return [(MARKS[0] << 32 | 0x7802 | k.out << 16, 0xf00),
            (MARKS[1] << 32 | 0x7802 | k.out + 1 << 16, 0xf00),
            (0x7f00007804 | k.preds << 24, 0), NOP, (low, high), NOP,
            (0x7f00007803 | k.out + 2 << 16 | 255 << 24, 0)]


def sections(image):
    start, = struct.unpack_from("<Q", image, 0x28)
    count, names = struct.unpack_from("<HH", image, 0x3c)
    headers = [struct.unpack_from("<IIQQQQ", image, start + 64 * i) for i in range(count)]
    at = headers[names][4]
    for name, _, _, _, offset, size in headers:
        end = image.index(b"\0", at + name)
        yield bytes(image[at + name:end]).decode(), offset, size


def assemble(ptxas, arch, chosen, folder):
    text = f".version 8.0\n.target {arch}\n.address_size 64\n" + "".join(
        carrier(f"k{i}") for i in range(len(chosen)))
    (folder / "rows.ptx").write_text(text)
    subprocess.run([ptxas, "-arch", arch, folder / "rows.ptx", "-o", folder / "rows.cubin"],
                   check=True)
    image = bytearray((folder / "rows.cubin").read_bytes())
    found = {name: (offset, size) for name, offset, size in sections(image)}
    for i, row in enumerate(chosen):
        k = Kernel(image, *found[f".text.k{i}"])
        k.put(code_of(row, k, arch))
    (folder / "rows.cubin").write_bytes(image)
    return bytes(image)


# ---- running -----------------------------------------------------------------------------------

class Device:
    def __init__(self, image):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), image)
        self.place, self.room = ctypes.c_uint64(), 0

    def call(self, name, *args):
        result = getattr(self.cuda, name)(*args)
        if result:
            raise RuntimeError(f"{name}: error {result}")

    def run(self, name, data, threads):
        count = len(data) // STRIDE
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        if self.room < len(data):  # not all rows have as many inputs
            self.call("cuMemAlloc_v2", ctypes.byref(self.place), ctypes.c_size_t(len(data)))
            self.room = len(data)
        self.call("cuMemcpyHtoD_v2", self.place, bytes(data), ctypes.c_size_t(len(data)))
        params = (ctypes.c_void_p * 1)(ctypes.addressof(self.place))
        self.call("cuLaunchKernel", function, count // threads, 1, 1, threads, 1, 1, 0, None,
                  params, None)
        back = ctypes.create_string_buffer(len(data))
        self.call("cuMemcpyDtoH_v2", back, self.place, ctypes.c_size_t(len(data)))
        return back.raw


def all_inputs():
    r = random.Random(27)
    found = [(a, b, c) for a in EDGES for b in EDGES for c in EDGES]
    found += [tuple(r.choice((r.getrandbits(32), r.getrandbits(6))) for _ in range(3))
              for _ in range(512)]
    return [(*words, r.choice(EDGES + [r.getrandbits(32)]), r.getrandbits(7)) for words in found]


def check_row(device, name, row, inputs):
    """The first difference, and how many there are."""
    data = bytearray(STRIDE * len(inputs))
    for i, words in enumerate(inputs):
        struct.pack_into("<5I", data, STRIDE * i, *words)
    back = device.run(name, data, 1 if row["uniform"] else 64)
    wrong, first = 0, ""
    for i, (*words, preds) in enumerate(inputs):
        s = State(words, preds)
        row["meaning"](s)
        got = struct.unpack_from("<3I", back, STRIDE * i + 32)
        want = (*s.words, s.preds)
        if got != want:
            wrong += 1
            first = first or (f"of {' '.join(f'{w:08x}' for w in words)}, {preds:07b}: "
                              f"{got[0]:08x} {got[1]:08x} {got[2]:07b} instead of "
                              f"{want[0]:08x} {want[1]:08x} {want[2]:07b}")
    return wrong, first


SKIPPED = "no device"


def check_rows(image, chosen, inputs, first, say):
    """Tells how many rows were right, which was the last, and what ended the checks there."""
    right, i = 0, first
    try:
        device = Device(image)
    except (OSError, RuntimeError):
        say.send((0, first, SKIPPED))
        return
    for i in range(first, len(chosen)):
        row = chosen[i]
        try:
            wrong, how = check_row(device, f"k{i}", row, inputs[:256] if row["uniform"] else inputs)
        except RuntimeError as e:
            say.send((right, i, str(e)))
            return
        right += not wrong
        if wrong:
            print(f"{row['name']}: {wrong} of {len(inputs)} wrong, {how}", flush=True)
    say.send((right, i, ""))


def check_apart(image, chosen, inputs, first):
    """In a process of its own: an instruction that a GPU does not have ends its context."""
    here, there = multiprocessing.Pipe(False)
    child = multiprocessing.Process(target=check_rows, args=(image, chosen, inputs, first, there))
    child.start()
    there.close()
    try:
        answer = here.recv()
    except EOFError:
        answer = (0, first, "the process died")
    child.join()
    return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ptxas", required=True)
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--text")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if not Path(args.ptxas).exists():
        print("no ptxas: skipped")
        return 77
    chosen = [r for r in rows if args.arch in r["arch"] and args.only in r["name"]]
    inputs = all_inputs()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        image = assemble(args.ptxas, args.arch, chosen, folder)
        if args.text:
            image = subprocess.run([args.text, "fatbin", "lift", "--module", folder / "rows.cubin"],
                                   check=True, capture_output=True).stdout + b"\0"
    right = ended = 0
    while ended < len(chosen):
        count, at, why = check_apart(image, chosen, inputs, ended)
        right += count
        ended = at + 1
        if why == SKIPPED:
            print("no device: skipped")
            return 77
        if why:
            print(f"{chosen[at]['name']}: {why}")
    print(f"{args.arch}: {right} of {len(chosen)} instructions are right")
    return 0 if right == len(chosen) and chosen else 1


if __name__ == "__main__":
    sys.exit(main())
