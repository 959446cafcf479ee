#!/usr/bin/env python3
"""Seeds for fuzz_vm_vhost and fuzz_vm_queue: `vm_corpus.py VHOST QUEUE`.

Writes sequences of messages of an honest QEMU into the folder VHOST, and what an honest guest and
its host do into QUEUE: a stream with bytes both ways, ends of all kinds, many streams, resets.
"""

import struct
import sys
from pathlib import Path

BASE, USER, RAM = 0x100000, 0x7000000000, 65536
MEMORY, EVENT = 1, 0
REQUEST, RESPONSE, RST, SHUTDOWN, RW, UPDATE, ASK = range(1, 8)


def message(number, payload=b"", kind=EVENT, fds=0, flags=None):
    how = kind | fds << 1 | (64 if flags is not None else 0)
    head = bytes([how, number]) + (bytes([flags]) if flags is not None else b"")
    return head + struct.pack("<H", len(payload)) + payload


def u64(n):
    return struct.pack("<Q", n)


def state(queue, number):
    return struct.pack("<II", queue, number)


def memory(*regions):
    return message(5, struct.pack("<II", len(regions), 0) + b"".join(
        struct.pack("<QQQQ", *r) for r in regions), MEMORY, len(regions), 9)


def queue(number, at):
    return (message(8, state(number, 16)) + message(10, state(number, 0))
            + message(9, struct.pack("<IIQQQQ", number, 0, USER + at, USER + at + 512,
                                     USER + at + 256, 0))
            + message(12, u64(number), EVENT, 1) + message(13, u64(number), EVENT, 1)
            + message(14, u64(number), EVENT, 1) + message(18, state(number, 1)))


def vhost_seeds():
    features = message(1) + message(2, u64(1 << 32 | 7 << 28))
    protocol = message(15) + message(16, u64(1 << 13 | 1 << 9 | 1 << 3 | 1)) + message(17)
    config = message(24, struct.pack("<IIIQ", 0, 8, 0, 0))
    whole = (BASE, RAM, USER, 0)
    halves = ((BASE, RAM // 2, USER, 0), (BASE + RAM // 2, RAM // 2, USER + RAM, RAM // 2))
    start = features + protocol + message(3) + config
    return {
        "start": start + memory(whole) + queue(0, 0) + queue(1, 1024),
        "halves": start + memory(*halves) + queue(0, 0) + queue(1, 1024) + memory(*halves),
        "again": start + memory(whole) + queue(0, 0) + message(11, state(0, 0)) + queue(0, 0),
        "reset": start + memory(whole) + queue(1, 0) + message(34) + queue(1, 0),
        "owner": message(4) + message(3) + features,
        "refused": message(6, bytes(16)),
        "overlap": memory(whole, (BASE + 4096, 4096, USER + RAM, 0)),
        "pieces": bytes([32, 5, 1, 0, 0, 0, 1]) + bytes([32, 7]) + bytes(7),
        "many_fds": message(5, bytes(8), MEMORY, 15),
        "early": queue(0, 0),
    }


def packet(port, op, flags=0, length=0, buffer=18, read=0):
    return bytes([1, port, op, flags]) + struct.pack("<HBH", length, buffer, read)


def buffers(count, size):
    return bytes([3, count]) + struct.pack("<H", size)


def host(stream, what, n=0):
    return bytes([5, what * 8 + stream]) + struct.pack("<H", n)


READ, WRITE, SHUT_WR, SHUT_RD, CLOSE = range(5)
TURN = bytes([7])


def full_seeds(count):
    """A socket that takes no more after so many packets; how many these are depends on the kernel's
    limit (net.core.wmem_max)."""
    full = buffers(12, 1000) + packet(1, REQUEST) + TURN + (
        (packet(1, RW, 0, 60000) + TURN) * 2 + buffers(1, 1000)) * (count // 2)
    read = (host(0, READ, 65535) + TURN) * (count + 4)
    return {
        f"late{count}": full + packet(1, SHUTDOWN, 3) + TURN + read,
        f"held{count}": full + read + packet(1, RW, 0, 9) + TURN,
        f"held_half{count}": full + packet(1, SHUTDOWN, 2) + TURN + read,
        f"held_shut{count}": full + host(0, SHUT_RD) + TURN + packet(1, RW, 0, 9) + TURN,
        f"held_closed{count}": full + host(0, CLOSE) + TURN + packet(1, RST) + TURN,
        f"held_reset{count}": full + packet(1, SHUTDOWN, 2) + packet(1, RST) + TURN + read,
    }


def queue_seeds():
    up = buffers(12, 1000) + packet(1, REQUEST) + TURN
    end = packet(1, SHUTDOWN, 3) + TURN
    many = b"".join(packet(i, REQUEST) for i in range(10))
    return {
        **full_seeds(8), **full_seeds(36),
        "connect": up + end,
        "to_host": up + packet(1, RW, 0, 1500) * 4 + TURN + host(0, READ, 4000) + TURN + end,
        "to_guest": up + host(0, WRITE, 5000) + TURN + buffers(10, 900) + TURN + end,
        "no_credit": buffers(12, 1000) + packet(1, REQUEST, buffer=8) + TURN
        + host(0, WRITE, 5000) + TURN + packet(1, UPDATE, buffer=8, read=256) + TURN,
        "host_closes": up + host(0, WRITE, 100) + host(0, CLOSE) + TURN + packet(1, RST) + TURN,
        "host_half": up + host(0, SHUT_WR) + TURN + packet(1, RW, 0, 100) + TURN
        + host(0, SHUT_RD) + packet(1, RW, 0, 100) + TURN + end,
        "guest_half": up + packet(1, SHUTDOWN, 2) + TURN + host(0, WRITE, 100) + TURN
        + packet(1, SHUTDOWN, 1) + TURN,
        "guest_resets": up + packet(1, RW, 0, 100) + packet(1, RST) + TURN,
        "many": buffers(15, 100) + many + TURN + buffers(15, 100) + TURN,
        "strangers": buffers(2, 100) + b"".join(
            packet(i, op) for i, op in enumerate((RW, UPDATE, ASK, RST, RESPONSE, 0, 8))) + TURN,
        "starved": packet(1, REQUEST) + packet(2, REQUEST) + TURN + buffers(4, 60) + TURN,
        "senseless": up + packet(1, REQUEST) + TURN + buffers(4, 100) + TURN,
        "asked": up + packet(1, ASK) + TURN,
        "stopped": up + bytes([6, 2]) + TURN + bytes([6, 3]) + TURN + bytes([6, 4]) + TURN,
        "renewed": up + bytes([6, 2 | 16, 0]) + TURN,
        "reset": up + bytes([6, 8]) + TURN,
        "loop": bytes([4, 1]) + struct.pack("<I", 8192)[:3] + bytes([1, 0, 0, 1, 0])
        + packet(1, REQUEST) + TURN,
    }


def main():
    for folder, seeds in zip(sys.argv[1:], (vhost_seeds(), queue_seeds())):
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            # The first byte of a queue's input says which features the guest has chosen.
            both = (0, 3) if folder == sys.argv[2] else (None,)
            for bits in both:
                head = b"" if bits is None else bytes([bits])
                (place / (name if not bits else f"{name}_{bits}")).write_bytes(head + data)


if __name__ == "__main__":
    main()
