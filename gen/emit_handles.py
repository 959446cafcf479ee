"""emit_handles: the handles among a call's arguments (`<api>_handles.h`, `<api>_handles.c`).

A process that sends calls has other names for objects than the process that receives them; these
walks find every name. A handle is a value whose schema code is `h.<kind>`. Device addresses and
host pointers are not handles, even if `new=` says that a call makes them.
"""

from gen.walk import WALK_MACRO, Walk, by_call
from gen.writer import Writer

WALKS = {
    "in": "that go in, however deep; what they become goes in",
    "new": "of the objects that a success makes",
    "out": "that come out otherwise",
    "freed": "of the objects that a success ends",
    "failed": "that come out of a call that fails (on= in the spec)",
}


def kind_of(t):
    """The kind of object that a value of this type names, or None."""
    code = getattr(t, "code", "")
    return code[2:] if code.startswith("h.") else None


def _visit(x, t, kind):
    return f'VISIT({x}, {t.c}, "{kind}");'


# Pointers in outputs lead to memory of the process that made the call, which is left alone.
DEEP = Walk("deep", kind_of, True, _visit, "hed_handle_fn")
FLAT = Walk("flat", kind_of, False, _visit, "hed_handle_fn")


def emit(spec):
    return {f"{spec.name}_handles.h": _header(spec), f"{spec.name}_handles.c": _source(spec)}


def _header(spec):
    api = spec.name
    w = Writer(f"The handles in {api} calls.")
    w("#pragma once")
    w()
    w("#include <stdint.h>")
    w()
    w(f'#include "gen/{api}_calls.h"')
    w()
    w("/* May change the handle. Anything but 0 ends the walk, which returns it. kind: as in the")
    w(' * spec, "stream". */')
    w("typedef int (*hed_handle_fn)(void *arg, const char *kind, uint64_t *handle);")
    w()
    w("/* The handles of a call's arguments, in the order of the arguments, in place. Arrays are")
    w(" * walked to their counts: whoever decoded the arguments has checked those. */")
    for walk, what in WALKS.items():
        w(f"/* Those {what}. */")
        w(f"int hed_{api}_each_{walk}(enum hed_{api}_call id, void *args, hed_handle_fn fn,")
        w("    void *arg);")
    return w.text()


def _args(c, walk):
    """The arguments of a call with handles for this walk."""
    def wanted(a):
        if a.by_hand:
            return False
        t = a.shape.type if a.shape else a.type
        if walk == "in":
            return a.dir != "out" and DEEP.holds(t)
        if walk == "new":
            return bool(a.new) and kind_of(t) is not None
        if walk == "freed":
            return bool(a.free) and kind_of(t) is not None
        if walk == "failed":
            return a.on is not None and FLAT.holds(t)
        return a.dir != "in" and not a.new and not a.free and FLAT.holds(t)

    return [a for a in c.args if wanted(a)]


def _source(spec):
    api = spec.name
    w = Writer(f"Finds the handles in {api} calls.")
    w(f'#include "gen/{api}_handles.h"')
    w()
    w("#include <stddef.h>")
    w()
    w("/* Handles are pointers of many types, so each is visited in a copy. */")
    w("#define VISIT(x, type, kind) \\")
    w("    do { \\")
    w("        uint64_t handle = (uint64_t)(uintptr_t)(x); \\")
    w("        const int err = fn(arg, kind, &handle); \\")
    w("        if (err) \\")
    w("            return err; \\")
    w("        (x) = (type)(uintptr_t)handle; \\")
    w("    } while (0)")
    w()
    w(WALK_MACRO)
    for how, walks in ((DEEP, ("in", "freed")), (FLAT, ("new", "out", "failed"))):
        how.records(w, spec, [a for c in spec.calls for walk in walks for a in _args(c, walk)])
    for walk in WALKS:
        how = DEEP if walk in ("in", "freed") else FLAT
        by_call(w, spec, f"each_{walk}", [c for c in spec.calls if _args(c, walk)],
                lambda c: how.arguments(w, c, _args(c, walk)),
                more=["hed_handle_fn fn", "void *arg"], const=False)
    return w.text().rstrip("\n") + "\n"
