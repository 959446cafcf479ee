"""Which calls can be made for another process, and which ones the remote backend has a worker make.

    travel=True     the remote backend sends the call, and a worker makes it
    travel="guard"  the same, after the worker's own function has looked at its arguments

A worker does not trust its client. Every address of device memory that a call brings with it says
how far the call reaches (`extent=`), or the worker has a function that knows.
"""

from gen.model import Func, Pointer, Record, Shape, fail


def address_kind(t):
    """What an address leads to: a function, memory of this process, or device memory."""
    if isinstance(t, Func):
        return "function"
    if isinstance(t, Pointer):
        return "device" if t.device else "host"
    return "device" if getattr(t, "code", "") in ("x32", "x64") else None


def _own(t):
    """Whether a value of this type may have an address of the program's own in it."""
    if isinstance(t, Shape):
        return _own(t.type)
    if isinstance(t, Record):
        return any(_own(f.type) for f in t.fields)
    return address_kind(t) in ("function", "host")


def can_travel(c):
    """Addresses inside structs may be NULL, so those are looked at call by call; an argument that
    is one has no other meaning."""
    def stays(a):
        t = a.shape.type if a.shape else a.type
        return bool(a.by_hand) or (not isinstance(t, Record) and _own(t))

    return not (c.by_hand or c.local) and not any(stays(a) for a in c.args)


def can_answer(c):
    """Pointers among what comes out are the other process's."""
    return can_travel(c) and not any((a.shape.type if a.shape else a.type).deep() or _own(a.type)
                                     for a in c.outs)


def check(spec):
    """After everything has been described: calls that are sent can be sent, and looked at."""
    for c in spec.calls:
        if c.effects.travel not in (None, True, "guard"):
            fail(c.where, c.name, f"travel={c.effects.travel!r} is neither True nor 'guard'")
        if not c.effects.travel:
            continue
        if not can_travel(c):
            fail(c.where, c.name, f"travel=, but {_obstacle(c)}")
        for a in c.args:
            if a.dir == "out" or a.extent or c.effects.travel == "guard":
                continue
            if _reaches(a.type):
                fail(a.where, c.name, a.name, "is an address of device memory: say by extent= how "
                     "far the call reaches, or travel='guard' and write guard_" + c.name)


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
