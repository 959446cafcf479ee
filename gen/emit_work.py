"""emit_work: how much work a call is (`<api>_work.h`, `.c`)."""

import re

from gen.effects import paths_in
from gen.walk import dispatch
from gen.writer import Writer


def emit(spec):
    return {f"{spec.name}_work.h": _header(spec), f"{spec.name}_work.c": _source(spec)}


def _header(spec):
    w = Writer(f"How much work a {spec.name} call is.")
    w("#pragma once")
    w()
    w("#include <stdint.h>")
    w()
    w(f'#include "gen/{spec.name}_calls.h"')
    w()
    w("/* Blocks of a launch, bytes of a copy (size= in the spec); 0: nobody says. */")
    w(f"uint64_t hed_{spec.name}_size(enum hed_{spec.name}_call id, const void *args);")
    return w.text()


def _source(spec):
    w = Writer(f"How much work a {spec.name} call is.")
    w(f'#include "gen/{spec.name}_work.h"')
    w()
    calls = [c for c in spec.calls if c.effects.size]
    for c in calls:
        w("static uint64_t")
        w(f"size_{c.name}(const struct hed_{c.name} *a)")
        with w.block(""):
            paths = [p for p in paths_in(c.effects.size) if "." in p]
            for name in dict.fromkeys(p.split(".")[0] for p in paths):
                with w.block(f"if (!a->{name})"):
                    w("return 0;")
            w(f"return {_expression(c.effects.size)};")
        w()
    dispatch(w, spec, ["uint64_t", f"hed_{spec.name}_size(enum hed_{spec.name}_call id, "
                       "const void *args)"],
             calls, lambda c: f"return size_{c.name}(args);", "return 0;")
    return w.text().rstrip("\n") + "\n"


def _expression(size):
    """Every name is a 64-bit number, so that products do not overflow."""
    return re.sub(r"[A-Za-z_]\w*(?:\.\w+)*",
                  lambda m: "(uint64_t)a->" + m.group(0).replace(".", "->"), str(size))
