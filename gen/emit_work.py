"""emit_work: how much work a call is, and which memory it touches (`<api>_work.h`, `.c`)."""

import re

from gen.effects import paths_in
from gen.travel import address_kind
from gen.walk import by_call
from gen.writer import Writer


def emit(spec):
    return {f"{spec.name}_work.h": _header(spec), f"{spec.name}_work.c": _source(spec)}


def _header(spec):
    api = spec.name
    most = max([len(_extents(c)) for c in spec.calls] + [1])
    w = Writer(f"How much work a {api} call is, and which memory it touches.")
    w("#pragma once")
    w()
    w("#include <stdint.h>")
    w()
    w('#include "core/call.h"')
    w(f'#include "gen/{api}_calls.h"')
    w()
    w("/* Blocks of a launch, bytes of a copy (size= in the spec); 0: nobody says. */")
    w(f"uint64_t hed_{spec.name}_size(enum hed_{spec.name}_call id, const void *args);")
    w()
    w("/* What the call touches behind its addresses (extent= in the spec). Returns how many such")
    w(" * places there are. */")
    w(f"#define HED_{api.upper()}_EXTENTS {most}")
    w(f"unsigned hed_{api}_extents(enum hed_{api}_call id, const void *args,")
    w(f"    struct hed_extent extents[HED_{api.upper()}_EXTENTS]);")
    return w.text()


def _source(spec):
    w = Writer(f"How much work a {spec.name} call is, and which memory it touches.")
    w(f'#include "gen/{spec.name}_work.h"')
    w()
    w("#include <stddef.h>")
    w()

    def size(c):
        paths = [p for p in paths_in(c.effects.size) if "." in p]
        for name in dict.fromkeys(p.split(".")[0] for p in paths):
            with w.block(f"if (!a->{name})"):
                w("return 0;")
        w(f"return {_expression(c.effects.size)};")

    def extents(c):
        for i, a in enumerate(_extents(c)):
            s = a.extent
            rows, pitch = (_expression(x) for x in (s.rows or 1, s.pitch or 0))
            host = "true" if address_kind(a.type) == "host" else "false"
            w(f"extents[{i}] = (struct hed_extent){{(uint64_t)a->{a.name}, "
              f"{_expression(s.count)}, {s.of},")
            w(f"    {rows}, {pitch}, offsetof(struct hed_{c.name}, {a.name}), {host}}};")
        w(f"return {len(_extents(c))};")

    by_call(w, spec, "size", [c for c in spec.calls if c.effects.size], size, result="uint64_t")
    by_call(w, spec, "extents", [c for c in spec.calls if _extents(c)], extents, result="unsigned",
            more=[f"struct hed_extent extents[HED_{spec.name.upper()}_EXTENTS]"])
    return w.text().rstrip("\n") + "\n"


def _extents(c):
    return [a for a in c.args if a.extent and a.extent.count != "0"]


def _expression(size):
    """Every name is a 64-bit number, so that products do not overflow."""
    return re.sub(r"[A-Za-z_]\w*(?:\.\w+)*",
                  lambda m: "(uint64_t)a->" + m.group(0).replace(".", "->"), str(size))
