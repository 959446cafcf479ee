"""emit_calls: ids, argument structs, operation tables and call descriptions (`<api>_calls.h`)."""

from gen.effects import about_kind, made_kind
from gen.model import Func, Pointer, Record, Shape
from gen.writer import Writer, c_kind, declare


def emit(spec):
    api, result = spec.name, spec.result.name
    calls = sorted(spec.calls, key=lambda c: c.id)
    w = Writer(f"The calls of the {api} API: numbers, arguments, operations.")
    w("#pragma once")
    w()
    w("#include <stdbool.h>")
    w("#include <stdint.h>")
    w()
    w(f'#include "{api}_abi.h"')  # beside it, also where plug-ins find them installed
    w()
    w("struct hed_layer;")
    w()
    with w.block(f"enum hed_{api}_call"):
        for c in calls:
            w(f"HED_{c.name} = {c.id},")
        w(f"HED_{api.upper()}_CALLS = {calls[-1].id + 1}, /* one more than the largest */")
    w.lines[-1] += ";"
    w()
    with w.block(f"enum hed_{api}_kind"):
        w(f"{kind_name(spec, None)},")
        for k in kinds(spec):
            w(f"{kind_name(spec, k)},")
    w.lines[-1] += ";"
    w()
    for c in spec.calls:
        with w.block(f"struct hed_{c.name}"):
            for a in c.args:
                w(declare(a.c, a.name) + ";")
            if c.ptds is not None:
                w("bool ptds; /* called by its per-thread-default-stream name */")
            elif not c.args:
                w("char none; /* it takes no arguments */")
        w.lines[-1] += ";"
        w()
    w("/* What a layer may override. Entry i of the table, counted from 0, is call i + 1. */")
    with w.block(f"struct hed_{api}_ops"):
        for c in calls:
            w(f"{result} (*{c.name})(struct hed_layer *self, struct hed_{c.name} *a);")
    w.lines[-1] += ";"
    return {f"{api}_calls.h": w.text(), f"{api}_info.c": _info(spec, calls)}


def kinds(spec):
    """Kinds of the objects that calls make or are about."""
    found = {k for c in spec.calls for k in (about_kind(c), made_kind(c)) if k}
    return sorted(found)


def kind_name(spec, kind):
    """The kind as C spells it: `HED_CUDA_KIND_GRAPH_EXEC`."""
    return f"HED_{spec.name.upper()}_KIND_{c_kind(kind)}"


def _info(spec, calls):
    api = spec.name
    w = Writer(f"What is known of every {api} call without its arguments.")
    w('#include "core/call.h"')
    w()
    w("#include <stddef.h>")
    w()
    w(f'#include "gen/{api}_calls.h"')
    w()
    w(f"const struct hed_call_info hed_{api}_info[HED_{api.upper()}_CALLS] = {{")
    for c in calls:
        flags = [f for f, on in (("HED_CALL_BLOCKS", c.blocks),
                                 ("HED_CALL_DEFER", c.effects.defer),
                                 ("HED_CALL_TRAVEL", c.effects.travel),
                                 ("HED_CALL_BY_HAND", any(_opaque(a) for a in c.args)),
                                 ("HED_CALL_INOUT", any(a.dir == "inout" for a in c.args))) if on]
        stream, inside = _stream(c)
        ptds = f"offsetof(struct hed_{c.name}, ptds)" if c.ptds is not None else "-1"
        w(f'    [HED_{c.name}] = {{"{c.name}", "{c.suffix}", {" | ".join(flags) or 0},')
        w(f"        HED_AFTER_{c.after.upper()}, {stream}, {inside},")
        about = f"offsetof(struct hed_{c.name}, {c.effects.about})" if c.effects.about else "-1"
        w(f"        {ptds}, sizeof(struct hed_{c.name}),")
        w(f"        HED_DOES_{c.effects.does.upper()}, {about},")
        w(f"        {kind_name(spec, about_kind(c))}, {kind_name(spec, made_kind(c))},")
        w(f'        "{c.area or ""}"}},')
    w("};")
    return w.text()


def _opaque(a):
    """Whether it holds an address of the program that only hand-written code follows."""

    def inside(t):
        t = t.type if isinstance(t, Shape) else t
        if isinstance(t, Record):
            return any(inside(f.type) for f in t.fields)
        return isinstance(t, (Func, Pointer))

    return a.by_hand or (a.dir != "out" and inside(a.type))


def _stream(c):
    """Offset of the stream among the arguments and, if it is behind a pointer, its offset there."""
    if not c.stream:
        return "-1", "-1"
    name, _, field = c.stream.lstrip("*").partition(".")
    at = f"offsetof(struct hed_{c.name}, {name})"
    if c.stream.startswith("*"):
        return at, "0"
    if not field:
        return at, "-1"
    a = c.arg(name)
    return at, f"offsetof({(a.shape.type if a.shape else a.type).c}, {field})"
