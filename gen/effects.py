"""What a call does to the GPU and to waiting threads: the words of `call()` that layers read.

    does    what it does, one of DOES; a call that only asks (after="none") need not say so
    about   the argument it is about: a function, an event, a device; without it, the one with free=
    size    how much: blocks of a launch, bytes of a copy; an expression over the arguments
    defer   it may be made later, by another thread, and returns success at once
    grid    where a launch of a kernel has its grid
    memory  what a limit on device memory must know: it takes, frees, maps or reports some
    travel  whether the remote backend has a worker make it, and relay: gen/travel.py
    null    what the null backend answers if zeros are not enough: values of outputs by name,
            or the roles of arguments
    offline how to answer it if there is no driver at all

defer, grid, memory, travel, relay, null and offline give arguments their roles: gen/roles.py.

The word `extent` of an argument that is an address says how much memory behind it is touched.

Every call says what it does. A new launch that nobody has classified must not bypass the gate, so
the generator refuses it.
"""

import re

from gen import roles
from gen.model import Pointer, fail, names_in

WORK = {
    "launch": "runs kernels",
    "copy": "copies memory",
    "fill": "fills memory",
    "move": "moves or unpacks memory",
}

DOES = {
    **WORK,
    "order": "puts on a stream what takes none of the GPU's time: events, waits, host functions",
    "wait": "returns when work is done",
    "poll": "asks whether work is done",
    "begin_capture": "begins a capture",
    "end_capture": "ends a capture",
    "begin_context": "begins a context, or the use of one",
    "end_context": "ends a context, or the use of one",
    "make": "makes an object",
    "end": "ends an object",
    "set": "changes something that already is",
    "ask": "only asks",
}

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")


class Effects:
    """The words of one call."""

    def __init__(self, does=None, about=None, size=None, defer=None, grid=None, memory=None,
                 travel=None, relay=None, null=None, offline=None):
        self.does, self.about, self.size, self.defer = does, about, size, defer
        self.grid, self.memory, self.travel, self.relay = grid, memory, travel, relay
        self.null, self.offline = null, offline


class Span:
    """Memory from an address on: `count` elements of `of` bytes; or `rows` times that, each row
    `pitch` bytes after the one before. `"ByteCount"` is short for Span("ByteCount"); "0", also for
    a struct with addresses in it, says that the call touches nothing behind them."""

    def __init__(self, count, rows=None, pitch=None, of=1):
        self.count, self.rows, self.pitch, self.of = count, rows, pitch, of


def check(spec, c, effects):
    """Attaches the words to the call, or says which one is missing or wrong."""
    e = effects
    c.effects = e
    if e.does is None and c.after == "none":
        e.does = "ask"
    if e.does is None:
        fail(c.where, c.name, "does not say what it does: add does=" + ", ".join(
            f'"{d}"' for d in DOES) + " (docs/internals/gen.md)")
    if e.does not in DOES:
        fail(c.where, c.name, f"does='{e.does}' is none of {', '.join(DOES)}")
    for does, word in (("make", "new"), ("end", "free")):
        if e.does == does and not any(getattr(a, word) for a in c.args):
            fail(c.where, c.name, f"does='{does}', but no argument says {word}=")
    if e.does in ("begin_capture", "end_capture") and not c.stream:
        fail(c.where, c.name, f"does='{e.does}', but it has no stream")
    _check_about(c, e)
    if e.size and e.does not in WORK:
        fail(c.where, c.name, f"size= is for calls that do {', '.join(WORK)}")
    for path in paths_in(e.size):
        _check_path(c, path)
    if e.defer and (not c.stream or e.does not in (*WORK, "order")):
        fail(c.where, c.name, "defer= is for work on a stream")
    for a in c.args:
        _check_extent(c, a)
    for word in ("defer", "grid", "memory", "offline"):
        roles.check(spec, c, word, getattr(e, word))
    _check_null(spec, c, e)


def finish(spec):
    """Checks that need the whole spec."""
    for c in spec.calls:
        kinds = {k for a in c.args for k in (a.new, a.free)} & set(spec.memory_kinds)
        if not c.effects.memory and not c.uncounted and (
                kinds or any(w in c.name for w in spec.memory_words)):
            fail(c.where, c.name, "may take or free device memory: say by memory= what it is to a "
                 "limit on memory, else why not, in an uncounted() line")
    if any(c.area for c in spec.calls):
        for c in spec.calls:
            if not c.area:
                fail(c.where, c.name, "is in no area: add it to an area() line of the spec")


def _check_null(spec, c, e):
    if not isinstance(e.null, dict):
        roles.check(spec, c, "null", e.null)
        return
    for name in e.null:
        if c.arg(name) not in c.outs:
            fail(c.where, c.name, f"null= uses '{name}', which is no output")


def _check_about(c, e):
    if e.about is None:
        e.about = next((a.name for a in c.args if a.free), None)
    elif c.arg(e.about) is None:
        fail(c.where, c.name, f"about='{e.about}' is no argument")
    elif c.arg(e.about).is_pointer:
        fail(c.where, c.name, e.about, "about= is for values, and this is a pointer")
    if e.does == "begin_context" and e.about is None:
        fail(c.where, c.name, "begins a context: say on which device by about=")


def _check_extent(c, a):
    if a.extent is None:
        return
    if not isinstance(a.extent, Span):
        a.extent = Span(a.extent)
    s = a.extent
    if s.count == "0":
        return
    if a.dir != "in" or a.shape or not (isinstance(a.type, Pointer) or a.type.code[0] == "x"):
        fail(a.where, c.name, a.name, "extent= is for addresses")
    if (s.rows is None) != (s.pitch is None):
        fail(a.where, c.name, a.name, "extent= with rows needs a pitch, and a pitch needs rows")
    for name in [n for e in (s.count, s.rows, s.pitch) if e for n in names_in(e)]:
        if c.arg(name) is None or c.arg(name).is_pointer:
            fail(a.where, c.name, a.name, f"extent= uses '{name}', which is no number")


def _check_path(c, path):
    """`gridDimX`, or `config.gridDimX` behind a pointer to one struct."""
    name, _, field = path.partition(".")
    a = c.arg(name)
    if a is None:
        fail(c.where, c.name, f"size= uses '{name}', which is no argument")
    if not field and a.is_pointer:
        fail(a.where, c.name, a.name, "size= uses it, and it is a pointer")
    if field and not (a.shape and field in {f.name for f in getattr(a.shape.type, "fields", [])}):
        fail(a.where, c.name, a.name, f"size= uses '{path}': no such field")


def paths_in(expr):
    return _PATH.findall(str(expr)) if expr else []


def about_kind(c):
    """The kind of the object that a call is about; None for a plain number."""
    a = c.arg(c.effects.about) if c.effects.about else None
    if a is None:
        return None
    return a.free or (a.type.code[2:] if a.type.code.startswith("h.") else None)


def made_kind(c):
    return next((a.new for a in c.args if a.new), None)
