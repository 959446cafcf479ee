"""Makes trace files for tests, following docs/trace-format.md. It shares no code with heddle.

    f = TraceFile()
    f.block(INFO, info(pid=4242))
    f.block(SCHEMA, SCHEMA_TEXT)
    f.records(4242, [call(3, 1000, 50, u32(0))])
    f.end(records=1)
    data = f.data
"""

import struct
import zlib

INFO, SCHEMA, RECORDS, THREAD, END = 1, 2, 3, 4, 5
CALL, MARK, BEGIN, FINISH, CLIENT, DROPPED, ACTIVITY = 1, 2, 3, 4, 5, 6, 7
CUT, LINKED, REPEATS, UNTIMED = 1, 4, 8, 16
KERNEL, COPY, FILL, OTHER = 1, 2, 3, 4
ANYWHERE, HOST, PINNED, DEVICE, ARRAY, MANAGED, PEER = range(7)

# A few of CUDA's calls, as heddle describes them, and some of our own for special cases.
SCHEMA_TEXT = b"""\
api cuda CUresult
struct CUlaunchConfig gridDimX:u32 blockDimX:u32 hStream:h.stream attrs:@s.CUlaunchAttribute \
numAttrs:u32
struct CUlaunchAttribute id:e.CUlaunchAttributeID pad:[4]i8 value:n.CUlaunchAttributeValue
union CUlaunchAttributeValue 8 pad:- cooperative:i32 priority:i32
struct CUuuid bytes:[16]i8
struct anonymous kind:u32 :n.anonymous.1 reserved:[2]u32
union anonymous.1 4 number:u32 handle:h.event
struct loop next:s.loop
call 3 cuInit i:Flags:u32
call 7 cuGetProcAddress_v2 i:symbol:z o:pfn:p i:cudaVersion:i32 i:flags:u64 \
o:symbolStatus:e.CUdriverProcAddressQueryResult
call 20 cuDeviceGetUuid o:uuid:s.CUuuid i:dev:i32
call 30 cuMemAlloc_v2 o:dptr:x64 i:bytesize:u64
call 31 cuMemcpyHtoD_v2 i:dstDevice:x64 i:srcHost:b i:ByteCount:u64 i:_ptds:u8
call 32 cuMemcpyHtoDAsync_v2 i:dstDevice:x64 i:srcHost:p i:ByteCount:u64 i:hStream:h.stream \
i:_ptsz:u8
call 40 cuLaunchKernelEx i:config:*s.CUlaunchConfig i:f:h.function i:kernelParams:p i:extra:p \
i:_ptsz:u8
call 41 cuStreamQuery i:hStream:h.stream i:_ptsz:u8
call 42 cuThreadExchangeStreamCaptureMode b:mode:e.CUstreamCaptureMode
call 50 testArrays i:list:@u32 i:fixed:[3]f32 i:small:[4]u8 i:name:[8]i8
call 51 testAnonymous i:p:*s.anonymous
call 52 testLoop i:p:s.loop
call 53 testUnknown i:a:u32 i:b:future.type i:c:u32
call 54 testSigned i:a:i8 i:b:i16 i:c:i64 i:d:f64 i:e:x32
"""


def u8(v):
    return struct.pack("<B", v)


def u16(v):
    return struct.pack("<H", v)


def u32(v):
    return struct.pack("<I", v & 0xFFFFFFFF)


def u64(v):
    return struct.pack("<Q", v & 0xFFFFFFFFFFFFFFFF)


def f32(v):
    return struct.pack("<f", v)


def f64(v):
    return struct.pack("<d", v)


def text(s):
    if s is None:
        return u32(0xFFFFFFFF) + u32(0)
    data = s.encode()
    return u32(len(data)) + u32(len(data)) + data


def bulk(count, stored=b""):
    return u64(count) + u32(len(stored)) + stored


def record(kind, start, duration=0, body=b"", result=0, flags=0, api=0, number=0):
    return struct.pack("<IBBHQQiI", 32 + len(body), kind, api, number, start, duration, result,
                       flags) + body


def call(number, start, duration, body=b"", result=0, flags=0, api=0):
    return record(CALL, start, duration, body, result, flags, api, number)


def linked(record_bytes, correlation):
    """A call's record with a correlation id at its end."""
    head = list(struct.unpack("<IBBHQQiI", record_bytes[:32]))
    head[0] += 8
    head[7] |= LINKED
    return struct.pack("<IBBHQQiI", *head) + record_bytes[32:] + u64(correlation)


def repeated(record_bytes, calls):
    """A call's record that stands for so many calls."""
    head = list(struct.unpack("<IBBHQQiI", record_bytes[:32]))
    head[0] += 4
    head[7] |= REPEATS
    return struct.pack("<IBBHQQiI", *head) + record_bytes[32:] + u32(0x80000000 | calls)


def activity(kind, start, duration, correlation=0, name=None, rest=b"", device=0, context=1,
             stream=7):
    body = u64(correlation) + u32(device) + u32(context) + u32(stream) + text(name) + rest
    return record(ACTIVITY, start, duration, body, number=kind)


def kernel(name, start, duration, correlation=0, grid=(256, 1, 1), block=(128, 1, 1), shared=(0, 0),
           registers=16, **where):
    rest = b"".join(map(u32, (*grid, *block, *shared, registers)))
    return activity(KERNEL, start, duration, correlation, name, rest, **where)


def copy(start, duration, size, source, target, correlation=0, **where):
    return activity(COPY, start, duration, correlation, None, u64(size) + u8(source) + u8(target),
                    **where)


def fill(start, duration, size, correlation=0, **where):
    return activity(FILL, start, duration, correlation, None, u64(size) + u8(0) + u8(DEVICE),
                    **where)


def info(**pairs):
    return "".join(f"{k}={v}\n" for k, v in pairs.items()).encode()


def version_2(record_bytes):
    """A record of version 1 in the form that files of version 2 have."""
    size, kind, api, number, start, duration, result, flags = \
        struct.unpack("<IBBHQQiI", record_bytes[:32])
    body = record_bytes[32:]
    if kind == CALL and result == 0 and flags in (0, LINKED) and duration < 1 << 32 and \
            number < 4096 and api < 16 and len(body) < 32000:
        length = 16 + len(body) + (0x8000 if flags else 0)
        return struct.pack("<HHIQ", length, api << 12 | number, duration, start) + body
    return struct.pack("<HHIQQiBBH", 0, number, size, start, duration, result, kind, api,
                       flags) + body


class TraceFile:
    def __init__(self, major=2, minor=0):
        self.major = major
        self.data = b"HEDTRACE" + u16(major) + u16(minor) + u32(0)
        self.number = 0
        self.count = 0

    def block(self, kind, payload, thread=0):
        before = b"HBLK" + u32(kind) + u32(len(payload))
        after = u64(thread) + u64(self.number) + payload
        self.data += before + u32(zlib.crc32(before + u32(0) + after)) + after
        self.number += 1

    def records(self, thread, records):
        """records: as record() makes them. Bytes too short for a record are kept as they are."""
        self.count += len(records)
        if self.major > 1:
            records = [version_2(r) if len(r) >= 32 else r for r in records]
        self.block(RECORDS, b"".join(records), thread)

    def end(self, dropped=0):
        self.block(END, u64(self.count) + u64(dropped))


def begin(pid=4242, start=1_000_000_000, major=2, chain="trace>null"):
    """A file with the first two blocks, INFO and SCHEMA."""
    f = TraceFile(major)
    f.block(INFO, info(heddle="0.1.0", pid=pid, ppid=1, exe="/opt/app/saxpy",
                       cmdline="./saxpy\x1f1024", host="box", arch="aarch64", clock_mono=start,
                       clock_wall=1_700_000_000_000_000_000, chain=chain))
    f.block(SCHEMA, SCHEMA_TEXT)
    return f


def launch(start, duration, stream, ptsz=0, result=0):
    config = (u8(1) + u32(256) + u32(128) + u64(stream) + u32(1) + u32(1) +
              u32(2) + bytes(4) + u16(2) + u32(1) + u32(1))
    return call(40, start, duration, config + u64(0xF00) + u64(0x7000) + u64(0) + u8(ptsz), result)


def sample(major=2):
    """Two threads, streams, ranges, a mark, an error, a dropped record: a bit of everything."""
    t = 1_000_000_000
    f = begin(major=major)
    f.block(THREAD, b"main", 4242)
    f.block(THREAD, b'wor"ker', 4243)
    f.records(4242, [
        call(3, t + 1_000, 500, u32(0)),
        record(BEGIN, t + 2_000, body=b"setup"),
        call(30, t + 3_000, 120_000, u8(1) + u64(1 << 20) + u64(0x302000000)),
        call(30, t + 130_000, 9_000, u8(1) + u64(1 << 60), result=2),
        record(FINISH, t + 140_000),
        record(MARK, t + 141_000, body=b"go"),
        call(31, t + 150_000, 40_000, u64(0x302000000) + bulk(4096) + u64(4096) + u8(0)),
        launch(t + 200_000, 5_000, 0x5500),
        launch(t + 210_000, 5_000, 0, ptsz=1),
        call(41, t + 220_000, 700, u64(0x5500) + u8(0), result=600),
    ])
    f.records(4243, [
        call(32, t + 201_000, 8_000,
             u64(0x302000000) + u64(0x7F00) + u64(64) + u64(0x5500) + u8(0)),
        record(DROPPED, t + 211_000, body=u64(3)),
        record(CLIENT, t + 212_000, body=b"client 7"),
        record(BEGIN, t + 213_000, body=b"never ended"),
        call(41, t + 214_000, 0, u64(0) + u8(0)),
    ])
    f.end(dropped=3)
    return f


def gpu_sample(major=2):
    """Two GPUs, streams, a graph, calls and what they caused; one call that caused nothing and one
    kernel without a call."""
    t = 1_000_000_000
    f = begin(major=major)
    f.block(THREAD, b"main", 4242)
    f.block(THREAD, b"cupti", 4250)
    f.records(4242, [
        call(3, t + 1_000, 500, u32(0)),
        linked(call(31, t + 10_000, 40_000,
                    u64(0x302000000) + bulk(1 << 20) + u64(1 << 20) + u8(0)), 17),
        record(BEGIN, t + 60_000, body=b"step"),
        linked(launch(t + 61_000, 4_000, 0x5500), 18),
        linked(launch(t + 66_000, 4_000, 0x5500), 19),
        linked(launch(t + 71_000, 4_000, 0x5600), 20),
        record(FINISH, t + 76_000),
        linked(call(41, t + 80_000, 700, u64(0x5500) + u8(0), result=600), 21),
        linked(launch(t + 81_000, 4_000, 0x5500, result=1), 22),
    ])
    f.records(4250, [
        copy(t + 20_000, 25_000, 1 << 20, HOST, DEVICE, 17),
        kernel("_Z5saxpyifPfS_", t + 70_000, 30_000, 18, stream=13),
        kernel("_Z5saxpyifPfS_", t + 100_000, 20_000, 19, stream=13),
        # Three kernels of one graph launch, two of them at once.
        kernel('odd "name"\n', t + 90_000, 20_000, 20, stream=14, grid=(1, 2, 3), block=(4, 5, 6),
               shared=(64, 1024)),
        kernel("reduce", t + 95_000, 25_000, 20, stream=14),
        fill(t + 121_000, 1_000, 4096, 20, stream=14),
        copy(t + 130_000, 1_000, 64, DEVICE, PEER, 0, device=1, context=2, stream=7),
        activity(OTHER, t + 132_000, 1_000, 0, "barrier", device=1, context=3),
        activity(99, t + 134_000, 1_000, 0, "something newer", b"more", device=1, context=3),
    ])
    f.end()
    return f
