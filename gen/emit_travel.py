"""emit_travel: what a call needs to mean the same in another process (`<api>_travel.h`, `.c`).

A worker makes calls for a client that it does not trust. This says which calls it never makes,
which addresses a call would follow, and whether its output fits into the memory that there was.
"""

from gen.model import Array, Bytes, Record, Ref, TextBuf, names_in
from gen.travel import address_kind, can_answer, can_travel
from gen.walk import WALK_MACRO, Walk, by_call
from gen.writer import Writer, c_count


WALK = Walk("walk", address_kind, True,
            lambda x, t, kind: f'WALK(fn(arg, "{kind}", (uint64_t)(uintptr_t){x}));',
            "hed_address_fn")


def grows(c):
    """Outputs whose counts the call itself may change."""
    return [a for a in c.outs if isinstance(a.shape, (Array, Bytes, TextBuf))
            and any(c.arg(n) and c.arg(n).dir != "in" for n in names_in(a.shape.count))]


def versioned(c):
    """Arguments that contain their own size, which limits what the callee writes."""
    def says(a):
        t = a.shape.type if a.shape else a.type
        return isinstance(t, Record) and t.fields[0].name == "version"

    return [a for a in c.args if a.is_pointer and not a.by_hand and says(a)
            and (a.shape is None or isinstance(a.shape, Ref))]


def emit(spec):
    return {f"{spec.name}_travel.h": _header(spec), f"{spec.name}_travel.c": _source(spec)}


def _header(spec):
    api = spec.name
    most = max([len(grows(c)) for c in spec.calls] + [1])
    w = Writer(f"What {api} calls need to mean the same in another process.")
    w("#pragma once")
    w()
    w("#include <stdbool.h>")
    w("#include <stdint.h>")
    w()
    w(f'#include "gen/{api}_calls.h"')
    w()
    w("/* Whether the call can be made for another process at all: no argument is a function or an")
    w(" * address of that process, and it does nothing to the machine or its files (local= in the")
    w(" * spec). */")
    w(f"bool hed_{api}_can_travel(enum hed_{api}_call id);")
    w()
    w("/* Whether its answer can be given too: no pointer is among what comes out. */")
    w(f"bool hed_{api}_can_answer(enum hed_{api}_call id);")
    w()
    w('/* Every address that goes in, deep. kind: "host" (of this process), "function", "device".')
    w(" * Anything but 0 ends the walk, which returns it. */")
    w("typedef int (*hed_address_fn)(void *arg, const char *kind, uint64_t address);")
    w(f"int hed_{api}_each_address(enum hed_{api}_call id, void *args, hed_address_fn fn,")
    w("    void *arg);")
    w()
    w("/* Structs that say their own size in `version` say no more than there is room for. */")
    w(f"bool hed_{api}_sizes_fit(enum hed_{api}_call id, const void *args);")
    w()
    w("/* Outputs whose counts the call may change: how much room there is for each, before it;")
    w(" * and after it, whether the counts are within that. */")
    w(f"#define HED_{api.upper()}_ROOMS {most}")
    w(f"void hed_{api}_rooms(enum hed_{api}_call id, const void *args,")
    w(f"    uint64_t rooms[HED_{api.upper()}_ROOMS]);")
    w(f"bool hed_{api}_rooms_fit(enum hed_{api}_call id, const void *args,")
    w(f"    const uint64_t rooms[HED_{api.upper()}_ROOMS]);")
    return w.text()


def _in(c):
    return [a for a in c.args if a.dir != "out" and not a.by_hand and WALK.holds(a.type)]


def _source(spec):
    api = spec.name
    w = Writer(f"What {api} calls need to mean the same in another process.")
    w(f'#include "gen/{api}_travel.h"')
    w()
    w("#include <stddef.h>")
    w()
    w(WALK_MACRO)
    calls = [c for c in spec.calls if _in(c)]
    WALK.records(w, spec, [a for c in calls for a in _in(c)])
    by_call(w, spec, "each_address", calls, lambda c: WALK.arguments(w, c, _in(c)),
            more=["hed_address_fn fn", "void *arg"], const=False)
    for name, holds in (("travel", can_travel), ("answer", can_answer)):
        _predicate(w, spec, name, holds)
    _sizes(w, spec)
    _rooms(w, spec)
    return w.text().rstrip("\n") + "\n"


def _predicate(w, spec, name, holds):
    w("bool")
    w(f"hed_{spec.name}_can_{name}(enum hed_{spec.name}_call id)")
    with w.block(""):
        w("switch ((uint32_t)id) {")
        for c in spec.calls:
            if holds(c):
                w(f"case HED_{c.name}:")
        w("    return true;")
        w("default:")
        w("    return false;")
        w("}")
    w()


def _sizes(w, spec):
    """The low three bytes of a version are the size of its struct."""
    def body(c):
        for a in versioned(c):
            x = f"a->{a.name}"
            with w.block(f"if ({x} && ({x}->version & 0xffffff) > sizeof *{x})"):
                w("return false;")
        w("return true;")

    by_call(w, spec, "sizes_fit", [c for c in spec.calls if versioned(c)], body, result="bool",
            otherwise="return true;")


def _rooms(w, spec):
    def counts(c):
        names = {a.name for a in c.args}
        return [(a, c_count(a.shape.count, "a->", names)) for a in grows(c)]

    def rooms(c):
        for i, (_, n) in enumerate(counts(c)):
            w(f"rooms[{i}] = {n};")

    def fits(c):
        for i, (a, n) in enumerate(counts(c)):
            with w.block(f"if (a->{a.name} && {n} > rooms[{i}])"):
                w("return false;")
        w("return true;")

    calls = [c for c in spec.calls if grows(c)]
    room = f"uint64_t rooms[HED_{spec.name.upper()}_ROOMS]"
    by_call(w, spec, "rooms", calls, rooms, result="void", more=[room], otherwise="break;")
    by_call(w, spec, "rooms_fit", calls, fits, result="bool", more=[f"const {room}"],
            otherwise="return true;")
