"""Snapshot files of format version 1, written without heddle (docs/snapshot-format.md).

    f = SnapFile(epoch=1, chunk=4096)
    f.extent(DEVICE, key=0x200000000000, data=b"...")
    f.finish()
    f.data
"""

import functools
import hashlib
import struct

BLOCK = 4096
DEVICE, PHYSICAL, ARRAY, VARIABLE, FILE, OBJECTS, HOST = range(1, 8)
PARTIAL = 1
ZEROS = 0xffffffff
LANES = 256
MASK = (1 << 64) - 1


def crc32c_table():
    table = []
    for b in range(256):
        for _ in range(8):
            b = b >> 1 ^ (0x82f63b78 if b & 1 else 0)
        table.append(b)
    return table


CRC = crc32c_table()


def crc32c(data):
    crc = 0xffffffff
    for b in data:
        crc = crc >> 8 ^ CRC[(crc ^ b) & 0xff]
    return crc ^ 0xffffffff


def scatter(n):
    n = n * 0x9e3779b97f4a7c15 & MASK
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9 & MASK
    n = (n ^ n >> 27) * 0x94d049bb133111eb & MASK
    return n ^ n >> 31


def swap(x):
    return x >> 32 | x << 32 & MASK


def product(x):
    return (x & 0xffffffff) * (x >> 32)


def mix(a, b):
    a = a + product(b) & MASK
    b = swap(b) + product(a) & MASK
    a = swap(a) + product(b) & MASK
    return a, swap(b)


@functools.lru_cache
def chunk_hash(data):
    """The hash of a chunk, as two words (src/move/file/hash.h)."""
    lanes = [(scatter(2 * i + 1), scatter(2 * i + 2)) for i in range(LANES)]
    for at in range(0, len(data), 16 * LANES):
        words = struct.unpack(f"<{2 * LANES}Q", data[at:at + 16 * LANES].ljust(16 * LANES, b"\0"))
        lanes = [mix(a ^ words[i], b ^ words[LANES + i]) for i, (a, b) in enumerate(lanes)]
    n = LANES // 2
    while n:
        for i in range(n):
            a, b = mix(*lanes[i])
            lanes[i] = mix(a ^ lanes[i + n][0], b ^ lanes[i + n][1])
        n //= 2
    a, b = lanes[0]
    a ^= len(data)
    for _ in range(4):
        a, b = mix(a, b)
    return a, b


def uuid_of(number):
    return struct.pack("<Q", number) + bytes([0xa0] * 8)


def text(s, size):
    return s.encode().ljust(size, b"\0")


class SnapFile:
    def __init__(self, epoch=1, parent=None, chunk=4096, major=1, session=bytes([0x55] * 16),
                 created_ns=1_000_000_000_000_000_000, **about):
        self.uuid, self.epoch, self.chunk = uuid_of(epoch), epoch, chunk
        head = b"HDLSNAP1" + struct.pack("<HHI", major, 0, BLOCK)
        head += self.uuid + (parent.uuid if parent else bytes(16)) + session
        head += struct.pack("<QQQQII", epoch, created_ns, about.get("heap_base", 0x200000000000),
                            about.get("heap_size", 1 << 30), chunk, about.get("pid", 42))
        head += text(about.get("backend", "cpu"), 32) + text(about.get("arch", "x86_64"), 32)
        head += text(about.get("device", "a device"), 96) + text(about.get("address", "shm:"), 256)
        head += text(about.get("program", "./train"), 256) + text(about.get("label", ""), 128)
        head = head.ljust(BLOCK - 4, b"\0")
        self.super = head + struct.pack("<I", crc32c(head))
        self.data = bytearray(self.super)
        self.known = {}  # chunk: (home, blob); of the parent: (file, blob)
        self.parent = parent
        self.homes, self.blobs, self.extents, self.chunks, self.names = [], [], [], [], b""
        self.content = 0

    def home(self, file):
        if file not in self.homes:
            self.homes.append(file)
        return self.homes.index(file) + 1

    def place(self, piece):
        """Where a chunk is: its row's home and blob."""
        if not any(piece):
            return ZEROS, 0
        if piece in self.known:
            return self.known[piece]
        if self.parent and piece in self.parent.known:
            home, blob = self.parent.known[piece]
            home = self.home(self.parent if home == 0 else self.parent.homes[home - 1])
            self.known[piece] = home, blob
            return home, blob
        self.known[piece] = 0, len(self.blobs)
        self.blobs.append((len(self.data), piece))
        self.data += piece.ljust(-(-len(piece) // BLOCK) * BLOCK, b"\0")
        return self.known[piece]

    def extent(self, kind, key=0, data=b"", name="", device=0, context=0, mode=0):
        first = len(self.chunks)
        for at in range(0, len(data), self.chunk):
            piece = bytes(data[at:at + self.chunk])
            self.chunks.append((piece, *self.place(piece)))
        self.extents.append(struct.pack("<IIQQQQIIIIQ", kind, device, key, context, len(data),
                                        first, len(self.names), len(name.encode()), mode, 0, 0))
        self.names += name.encode() + b"\0"
        self.content += len(data)
        return self

    def tables(self):
        out = b"".join(h.uuid + struct.pack("<QQ", h.epoch, 0) for h in self.homes)
        for offset, piece in self.blobs:
            out += struct.pack("<QIIQQIHH", offset, len(piece), len(piece), *chunk_hash(piece),
                               crc32c(piece), 0, 0)
        out += b"".join(self.extents)
        out += b"".join(struct.pack("<QQII", *chunk_hash(piece), home, blob)
                        for piece, home, blob in self.chunks)
        return out + self.names

    def finish(self, flags=0, needs=0):
        tables = self.tables()
        tables = tables.ljust(-(-len(tables) // BLOCK) * BLOCK, b"\0")
        begin = len(self.data)
        self.data += tables
        foot = b"HDLSNAPF" + self.uuid + struct.pack("<IIQQ", flags, needs, len(self.data), begin)
        foot += struct.pack("<IIIIQQQ", len(self.homes), len(self.blobs), len(self.extents),
                            len(self.chunks), len(self.names), self.content,
                            sum(len(piece) for _, piece in self.blobs))
        foot = foot.ljust(BLOCK - 48, b"\0")
        foot += hashlib.blake2b(self.super + tables + foot, digest_size=32).digest() + bytes(4)
        self.data += foot + struct.pack("<I", crc32c(foot)) + b"1PANSLDH"
        return self


def sample(epoch=1, parent=None, change=0, **about):
    """A small snapshot with something of everything. change: what is new in it."""
    f = SnapFile(epoch=epoch, parent=parent, **about)
    page = bytes(range(256)) * 16
    f.extent(DEVICE, key=0x200000000000, data=page + bytes(4096) + page + bytes([change] * 1000))
    f.extent(DEVICE, key=0x200000200000, data=bytes(10000), device=1)
    f.extent(PHYSICAL, key=7, data=b"physical" * 600)
    f.extent(ARRAY, key=9, context=3, data=b"rows" * 100)
    f.extent(VARIABLE, key=5, name="counter", data=struct.pack("<I", 77))
    f.extent(HOST, key=0x7f0000000000, data=b"pinned")
    f.extent(FILE, name="pages-1.img", data=b"image" * 2000, mode=0o600)
    f.extent(FILE, name="empty.img")
    f.extent(OBJECTS, name="objects", data=b"contexts 1\nstreams 2\n")
    return f.finish()
