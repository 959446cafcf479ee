"""Makes fat binaries, and ELF files and archives around them, byte by byte, for tests."""

import struct

MAGIC = 0xBA55ED50
WRAPPER = 0x466243B1
PTX, CUBIN, LTO = 1, 2, 8
LZ4, ZSTD, SEALED, EXACT, FAMILY = 0x2000, 0x8000, 0x10000, 0x100000, 0x200000


def align(data, n=8):
    return data + bytes(-len(data) % n)


def entry(kind, arch, image, flags=0x11, size=0, packed=0, options=b"", name=b"", version=(9, 0),
          stored=None, header=None):
    """One entry. size and packed are for a packed image."""
    extra = b""
    at_name = at_options = 0
    if name:
        at_name = 64
        extra += align(name + b"\0")
    if options:
        at_options = 64 + len(extra)
        extra += struct.pack("<II", at_options + 8, len(options)) + options
        extra = align(extra + b"\0")
    body = align(image)
    head = struct.pack(
        "<HHIQIIHHIIIQQQ", kind, 0x0101, 64 + len(extra) if header is None else header,
        len(body) if stored is None else stored, packed, at_options, version[1], version[0], arch,
        at_name, len(name), flags, 0, size)
    return head + extra + body


def fatbin(*entries, size=None, version=1):
    body = b"".join(entries)
    return struct.pack("<IHHQ", MAGIC, version, 16, len(body) if size is None else size) + body


def wrapper(version):
    return struct.pack("<IIQQ", WRAPPER, version, 0, 0)


def elf(sections, machine=62, bits=64, kind=3):
    """sections: (name, bytes), each at a multiple of 16."""
    names = b"\0"
    body = b""
    headers = [bytes(64)]
    for name, data in [*sections, (".shstrtab", None)]:
        at_name = len(names)
        names += name.encode() + b"\0"
        data = names if data is None else data
        body += bytes(-(64 + len(body)) % 16)
        headers.append(struct.pack("<IIQQQQIIQQ", at_name, 1, 0, 0, 64 + len(body), len(data), 0, 0,
                                   16, 0))
        body += data
    body = align(body, 16)
    head = struct.pack("<16sHHIQQQIHHHHHH",
                       b"\x7fELF" + bytes([2 if bits == 64 else 1, 1, 1]) + bytes(9), kind, machine,
                       1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(headers), len(headers) - 1)
    return head + body + b"".join(headers)


def archive(members):
    """members: (name, bytes); long names go where GNU ar puts them."""
    table = b""
    out = b""
    for name, data in members:
        own = name.encode() + b"/"
        if len(own) > 16:
            own = f"/{len(table)}".encode()
            table += name.encode() + b"/\n"
        out += own.ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"644".ljust(8)
        out += str(len(data)).encode().ljust(10) + b"`\n" + data + b"\n" * (len(data) & 1)
    if table:
        head = b"//".ljust(48) + str(len(table)).encode().ljust(10) + b"`\n"
        out = head + table + b"\n" * (len(table) & 1) + out
    return b"!<arch>\n" + out
