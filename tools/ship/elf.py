"""What an ELF file needs of the machine that it runs on: reads the dynamic section, as the loader
does. It is no check of the file's code.

    read(path)            an Elf, or None if the file is none
    requirements(elves)   the processor, and the version of the GNU C library that all of them run
                          with: ("x86_64", (2, 34))

requirements() refuses files for several processors, files that look for libraries in a folder of
their builder, and files that need a library that is neither a part of the C library nor among them,
because a clean machine lacks it (unless `is_for_here`).
"""

import re
import struct
from collections import namedtuple

# `versions` has, for each needed library, the names of the versions that are asked of it.
Elf = namedtuple("Elf", "path machine soname needed runpath versions")

MACHINES = {62: "x86_64", 183: "aarch64"}
# What the GNU C library consists of, and the unwinder, which it depends on.
SYSTEM = re.compile(r"^(lib(c\.so\.6|m\.so\.6|dl\.so\.2|pthread\.so\.0|rt\.so\.1|util\.so\.1"
                    r"|gcc_s\.so\.1)|ld-linux-(x86-64\.so\.2|aarch64\.so\.1))$")
# Versions of libgcc_s that came with the compilers of the oldest supported systems.
LIBGCC = re.compile(r"^GCC_([0-9]+)\.")
LIBGCC_NEWEST = 7

# Of an installed tree: units and rules are for a machine's own folders, and packages have them.
OF_MACHINES = ("lib/systemd", "lib/udev", "lib/sysusers.d")

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RUNPATH = 1, 5, 14, 29
DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF


class Malformed(Exception):
    """The file begins like an ELF file, and is none."""


class Refused(Exception):
    """What would be shipped would not run on other machines."""


class Reader:
    """A file's bytes, addressed as in memory."""

    def __init__(self, data):
        self.data = data
        self.segments = []

    def unpack(self, layout, offset):
        return struct.unpack_from("<" + layout, self.data, offset)

    def offset(self, address):
        for start, size, at in self.segments:
            if start <= address < start + size:
                return at + address - start
        raise Malformed(f"address {address:#x} is in no segment")

    def text(self, offset):
        end = self.data.index(b"\0", offset)
        return self.data[offset:end].decode()


def read_needs(r, tags):
    """{library: [version]} from the chain of Elfxx_Verneed and their Elfxx_Vernaux."""
    strings = r.offset(tags[DT_STRTAB][0])
    versions = {}
    if DT_VERNEED not in tags:
        return versions
    at = r.offset(tags[DT_VERNEED][0])
    for _ in range(tags[DT_VERNEEDNUM][0]):
        _, count, library, first, following = r.unpack("HHIII", at)
        names = versions.setdefault(r.text(strings + library), [])
        aux = at + first
        for _ in range(count):
            _, _, _, name, after = r.unpack("IHHII", aux)
            names.append(r.text(strings + name))
            aux += after
        at += following
    return versions


def parse(data, path):
    r = Reader(data)
    if data[4] != 2 or data[5] != 1:
        raise Malformed(f"{path}: not a 64-bit little-endian ELF file")
    machine, = r.unpack("H", 18)
    table, = r.unpack("Q", 32)
    size, count = r.unpack("HH", 54)
    dynamic = None
    for i in range(count):
        kind, _, offset, address, _, length, _, _ = r.unpack("IIQQQQQQ", table + i * size)
        if kind == PT_LOAD:
            r.segments.append((address, length, offset))
        elif kind == PT_DYNAMIC:
            dynamic = (offset, length)
    tags = {}
    if dynamic:
        for at in range(dynamic[0], dynamic[0] + dynamic[1], 16):
            tag, value = r.unpack("qQ", at)
            if tag == 0:
                break
            tags.setdefault(tag, []).append(value)
    strings = r.offset(tags[DT_STRTAB][0]) if DT_STRTAB in tags else 0

    def texts(tag):
        return [r.text(strings + value) for value in tags.get(tag, [])]

    return Elf(path, MACHINES.get(machine, f"machine {machine}"), "".join(texts(DT_SONAME)),
               texts(DT_NEEDED), "".join(texts(DT_RUNPATH)), read_needs(r, tags))


def read(path):
    with open(path, "rb") as f:
        return read_bytes(f.read(), path)


def read_bytes(data, path):
    if data[:4] != b"\x7fELF":
        return None
    try:
        return parse(data, str(path))
    except (struct.error, ValueError, IndexError, KeyError) as e:
        raise Malformed(f"{path}: not a whole ELF file: {e}") from e


def least_glibc(elves):
    """The newest version that anything asks of the C library's parts. What cannot be put into an
    order is refused: GLIBC_PRIVATE, GLIBC_ABI_DT_RELR."""
    newest = (2, 17)
    for elf in elves:
        for library, names in elf.versions.items():
            for name in names:
                number = re.fullmatch(r"GLIBC_([0-9]+)\.([0-9]+)(\.[0-9]+)?", name)
                libgcc = LIBGCC.match(name)
                if number:
                    newest = max(newest, (int(number[1]), int(number[2])))
                elif name.startswith("GLIBC_"):
                    raise Refused(f"{elf.path} needs {name} of {library}, which is no version")
                elif libgcc and int(libgcc[1]) > LIBGCC_NEWEST:
                    raise Refused(f"{elf.path} needs {name} of {library}, which is too new")
    return newest


def requirements(elves, is_for_here=False):
    machines = sorted({elf.machine for elf in elves})
    if len(machines) != 1:
        raise Refused(f"the files are for {' and '.join(machines) or 'no processor'}")
    own = {elf.soname for elf in elves} | {elf.path.rsplit("/", 1)[-1] for elf in elves}
    for elf in elves:
        for name in elf.needed:
            if not is_for_here and not SYSTEM.match(name) and name not in own:
                raise Refused(f"{elf.path} needs {name}, which a clean machine lacks: build with "
                              "-DHEDDLE_STATIC=ON, with the archives of all libraries")
        if elf.runpath and not elf.runpath.startswith("$ORIGIN"):
            raise Refused(f"{elf.path} looks for libraries in {elf.runpath}, which is a folder of "
                          "the machine that built it")
    return machines[0], least_glibc(elves)
