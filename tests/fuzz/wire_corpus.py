#!/usr/bin/env python3
"""Seeds for fuzz_wire_call and fuzz_wire_worker: `wire_corpus.py CALLS WORKER [NAME...]`.

Writes a good request of every call that travels, or of the named calls, into the folder CALLS, and
the same as a session of one message into WORKER, together with a message of every kind. Numbers are
1, handles are names that the targets have bound, and arrays have as many items as their counts say.
"""

import re
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from gen.emit_handles import kind_of  # noqa: E402
from gen.travel import can_travel  # noqa: E402
from gen.model import Array, Bytes, Func, Pointer, Record, Ref, Shape, Text  # noqa: E402
from gen.vocabulary import load  # noqa: E402

KINDS = ["", "context", "stream", "event", "module", "library", "function", "kernel", "graph",
         "graphNode", "graphExec", "pool", "physical", "array", "mipmap", "texture", "surface",
         "linkState", "userObject"]
CALL, NVML, KINDS_END = 1, 2, 28  # kinds of messages


def u32(n):
    return struct.pack("<I", n & 0xffffffff)


def u64(n):
    return struct.pack("<Q", n)


def count(expr):
    """The value of a length if all numbers are 1."""
    try:
        return eval(re.sub(r"\*?\b[A-Za-z_]\w*", "1", re.sub(r"sizeof\(.*?\)", "1", str(expr))))
    except (SyntaxError, TypeError):
        return None


def value(t, tag=1):
    if isinstance(t, Shape):
        return shape(t)
    if isinstance(t, Record):
        return record(t, tag)
    if isinstance(t, (Func, Pointer)):
        return u64(0)
    if kind_of(t):
        kind = KINDS.index(kind_of(t)) if kind_of(t) in KINDS else 0
        return u64(kind << 56 | 1 << 32 | 1 if kind else 1)
    if t.code == "f32":
        return struct.pack("<f", 1)
    if t.code == "f64":
        return struct.pack("<d", 1)
    return (1).to_bytes(t.size, "little")


def shape(s):
    if isinstance(s, Text):
        return u32(1) + u32(1) + b"x"
    if isinstance(s, Ref):
        return b"\1" + value(s.type)
    n = count(s.count)
    if isinstance(s, Bytes):
        return u64(2 ** 64 - 1) + u32(0) if n is None else u64(n) + u32(n) + b"b" * n
    return u32(2 ** 32 - 1) + u32(0) if n is None else u32(n) + u32(n) + value(s.type) * n


def record(r, tag):
    if r.keyword == "struct":
        return b"".join(value(f.type) * (1 if f.n is None else f.n) for f in r.fields)
    order = [f.name for f in r.fields]
    member = r.cases.get(tag)
    if member is None:
        return b"\0\0" + bytes(r.size)
    f = r.fields[order.index(member)]
    return struct.pack("<H", order.index(member) + 1) + value(f.type) * (1 if f.n is None else f.n)


def request(c):
    out = b""
    for a in c.args:
        if a.dir == "out":
            out += b"\1"
        elif a.dir == "inout":
            out += b"\1" + value(a.type)
        else:
            out += value(a.type)
    return out + (b"\0" if c.ptds is not None else b"")


def main():
    calls, worker, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    for api in ("cuda", "nvml"):
        for c in load(ROOT / "spec" / api).calls:
            if not can_travel(c) or (names and c.name not in names):
                continue
            made = next((a.type for a in c.args if a.new and kind_of(a.type)), None)
            kind = KINDS.index(kind_of(made)) if made and kind_of(made) in KINDS else 0
            r = request(c)
            bits = (api == "nvml") | 2
            (calls / c.name).write_bytes(
                bytes([bits]) + struct.pack("<H", c.id) + bytes([kind << 3 | 4]) + r)
            body = u32(len(r)) + u32(0) + r
            (worker / c.name).write_bytes(struct.pack(
                "<BBHBBHH", NVML if api == "nvml" else CALL, 1, c.id, 4, 4, 0, len(body)) + body)
    for kind in range(1, KINDS_END):
        for body, bulk in ((bytes(192), b""), (u64(1) * 24, bytes(64))):
            head = struct.pack("<BBHBBHH", kind, 1, 1, 4, 4, len(bulk), len(body))
            (worker / f"kind{kind}{'_bulk' if bulk else ''}").write_bytes(head + body + bulk)


if __name__ == "__main__":
    main()
