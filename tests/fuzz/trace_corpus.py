#!/usr/bin/env python3
"""Makes the corpus of the fuzz target trace_read: small traces, intact and broken.

    trace_corpus.py FOLDER
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.trace_file import *  # noqa: E402,F403


def tiny():
    f = TraceFile()
    f.block(INFO, info(pid=7, clock_mono=5))
    f.block(SCHEMA, b"api cuda CUresult\nstruct loop next:s.loop\nunion u 4 a:u32 b:-\n"
                    b"call 1 a i:x:u32 o:y:@h.stream b:z:e.CUresult i:_ptsz:u8\n"
                    b"call 2 b i:x:*s.loop i:y:n.u i:z:b i:t:z\n")
    return f


def files():
    whole = sample().data
    yield "sample", whole
    yield "sample_version_1", sample(major=1).data
    yield "cut", whole[:-30]
    yield "cut_header", whole[:-45]
    yield "header_only", whole[:16]
    yield "short", whole[:11]
    yield "too_new", TraceFile(major=9).data
    middle = bytearray(whole)
    middle[len(whole) // 2] ^= 0x40
    yield "damaged", bytes(middle)
    yield "zeros", whole[:-48] + bytes(64)

    f = tiny()
    f.records(9, [call(1, 10, 1, u32(1) + u8(1) + u8(1) + u32(3) + u8(1) + u32(2) + u32(2) +
                       u64(1) + u64(2) + u32(0)),
                  call(2, 11, 1, u8(1)),
                  call(2, 12, 1, u8(0) + u16(0) + u32(5) + bulk(100, b"abc") + text("hi\n")),
                  call(2, 13, 1, u8(0) + u16(2)),
                  call(1, 9, 1, flags=CUT), call(99, 14, 1), call(1, 15, 1, api=3)])
    yield "tiny", f.data
    f.records(9, [call(1, 20, 1), b"\x10\x00\x00\x00"])
    f.block(77, b"something newer")
    f.end()
    yield "bad_record", f.data

    f = begin()
    f.records(1, [call(50, 1, 1, u32(100) + u32(9) + b"".join(u32(i) for i in range(9)) +
                       f32(1) + f32(-2.5) + f32(float("nan")) + b"\1\2\3\4" + b"name\0\0\0\0"),
                  call(51, 2, 1, u8(1) + u32(1) + u16(2) + u64(0xE) + u32(0) + u32(0)),
                  call(51, 3, 1, u8(1) + u32(1) + u16(0) + u32(7) + u32(0) + u32(9)),
                  call(52, 4, 1), call(53, 5, 1, u32(1) + u32(2) + u32(3)),
                  call(54, 6, 1, b"\xff" + u16(0xFFFE) + u64(-3) + f64(0.1) + u32(16)),
                  call(7, 7, 1, text("cuInit") + u8(1) + u32(12080) + u64(0) + u8(0) + u64(0xABC)),
                  call(42, 8, 1, u8(1) + u32(0) + u32(1))])
    yield "values", f.data

    yield "gpu", gpu_sample().data
    yield "gpu_version_1", gpu_sample(major=1).data
    f = tiny()
    f.records(9, [call(1, 10, 1, flags=LINKED), b"\x0f\x00"])  # too short for an id; for a record
    f.records(9, [b"\x0f" + bytes(31)])
    f.records(9, [b"\x0f\x80" + bytes(20)])
    f.records(9, [b"\0\0\0\0\x10" + bytes(40)])
    yield "short_records", f.data
    f = tiny()
    f.records(9, [linked(call(1, 10, 1, u32(1) + u8(0) + u8(0) + u8(1)), 5),
                  linked(call(1, 11, 1, b"", flags=CUT), 6), record(CALL, 12, 1, b"1234567", 0, 4),
                  kernel("k", 20, 1, 5), copy(21, 1, 64, HOST, 99), fill(22, 1, 1 << 63, 6),
                  record(ACTIVITY, 23, 1, b"short", number=KERNEL),
                  activity(KERNEL, 24, 1, 5, "no grid"), activity(77, 1 << 63, 1 << 63, 5, None),
                  record(ACTIVITY, 25, 1, bytes(20) + u32(4) + u32(0xFFFFFFFF), number=OTHER),
                  record(ACTIVITY, 26, 1, bytes(20) + u32(0xFFFFFFFF) + u32(1) + b"x",
                         number=OTHER)])
    yield "activity", f.data

    f = TraceFile()
    f.block(SCHEMA, b"api cuda CUresult\nstruct a b:s.b c:s.b\nstruct b b:s.c c:s.c\n"
                    b"struct c b:s.d c:s.d\nstruct d b:s.e c:s.e\nstruct e reserved:s.a pad:s.a\n"
                    b"call 1 bomb i:x:[4294967295]s.a\ncall 65535 @ i:x:u8\ncall 70000 x\n"
                    b"call 2 nest i:x:@@@@@@@@@@u8\ncall 3 empty i:x:[4294967295]s.nothing\n"
                    b"struct nothing\nunion bad x:u8\ncall 4 noname q:x:u8 i::u8\n")
    f.records(1, [call(n, n, 1, bytes(40)) for n in (1, 2, 3, 4, 65535)])
    yield "bombs", f.data


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
