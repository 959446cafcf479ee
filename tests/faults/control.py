"""The page that faults.c and a test share: what fails, and what happened. See faults.h."""

import ctypes
import mmap

LOGGED = 65536
ROLES = {"client": 1, "listener": 2, "worker": 4}
KINDS = ("memory", "things", "space", "short", "interrupt", "again", "broken")
# Programs that are written well do not notice these.
HARMLESS = ("short", "interrupt", "again")


class Page(ctypes.Structure):
    _fields_ = [("roles", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("count", ctypes.c_uint64),
                ("at", ctypes.c_uint64), ("fired", ctypes.c_uint64), ("blocks", ctypes.c_int64),
                ("where", ctypes.c_char * 176), ("places", ctypes.c_uint64 * LOGGED)]


class Control:
    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.truncate(ctypes.sizeof(Page))
        with open(path, "r+b") as f:
            self.page = Page.from_buffer(mmap.mmap(f.fileno(), 0))

    def arm(self, role, kind, at):
        """From now on, operations of that kind are counted, and number `at` fails."""
        p = self.page
        p.roles = 0
        p.kind = KINDS.index(kind)
        p.count = p.fired = 0
        p.at = at
        p.where = b""
        p.roles = ROLES[role]

    def disarm(self):
        self.page.roles = 0

    def where(self):
        return self.page.where.decode(errors="replace")

    def places(self):
        return list(self.page.places[:min(self.page.count, LOGGED)])
