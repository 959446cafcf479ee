"""Which calls can be made for another process, and which ones the remote backend has a worker make.

    travel=True        the remote backend sends the call, and a worker makes it
    travel=Roles(...)  the same, after a function of the worker has looked at these arguments
    relay=Roles(...)   the remote backend sends it as the program made it, since only the worker can
                       answer it

A worker does not trust its client. Every address of device memory that a call brings with it says
how far the call reaches (`extent=`), or the worker has a function that knows.
"""

from gen import roles
from gen.model import Func, Pointer, Record, Shape, fail
from gen.roles import Roles


def address_kind(t):
    """What an address points to: a function, memory of this process, or device memory."""
    if isinstance(t, Func):
        return "function"
    if isinstance(t, Pointer):
        return "device" if t.device else "host"
    return "device" if getattr(t, "code", "") in ("x32", "x64") else None


def _own(t):
    """Whether a value of this type may contain an address of the program's own memory."""
    if isinstance(t, Shape):
        return _own(t.type)
    if isinstance(t, Record):
        return any(_own(f.type) for f in t.fields)
    return address_kind(t) in ("function", "host")


def can_travel(c):
    """Addresses inside structs may be NULL, so they are checked call by call. An argument that is
    an address has no other meaning."""
    def stays(a):
        t = a.shape.type if a.shape else a.type
        return bool(a.by_hand) or (not isinstance(t, Record) and _own(t))

    return not (c.by_hand or c.local) and not any(stays(a) for a in c.args)


def can_answer(c):
    """Pointers among the outputs belong to the other process."""
    return can_travel(c) and not any((a.shape.type if a.shape else a.type).deep() or _own(a.type)
                                     for a in c.outs)


def check(spec):
    """Checks, after everything is described, that calls with travel= can be sent and checked."""
    for c in spec.calls:
        guarded = isinstance(c.effects.travel, Roles)
        if c.effects.travel is not True:
            roles.check(spec, c, "travel", c.effects.travel)
        roles.check(spec, c, "relay", c.effects.relay)
        if c.effects.relay and not c.effects.travel:
            fail(c.where, c.name, "relay= is for calls that travel")
        if not c.effects.travel:
            continue
        if not can_travel(c):
            fail(c.where, c.name, f"travel=, but {_obstacle(c)}")
        for a in c.args:
            if a.dir == "out" or a.extent or guarded:
                continue
            if _reaches(a.type):
                fail(a.where, c.name, a.name, "is an address of device memory: say by extent= how "
                     "far the call reaches, or by travel=Roles(...) which function looks at it")


def _obstacle(c):
    if c.by_hand or c.local:
        return f"it stays in its process: {c.by_hand or c.local}"
    return "an argument is an address of the program's own"


def _reaches(t):
    """Whether a value of this type leads to device memory."""
    if isinstance(t, Shape):
        return _reaches(t.type)
    if isinstance(t, Record):
        return any(_reaches(f.type) for f in t.fields)
    return address_kind(t) == "device"
