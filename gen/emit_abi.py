"""emit_abi: the API's types and constants as a C header (`<api>_abi.h`)."""

from gen.model import Alias, Const, Enum, Func, Handle, Record
from gen.writer import Writer, c_field, declare


def emit(spec):
    w = Writer(f"Types and constants of the {spec.name} API.")
    w("#pragma once")
    w()
    w("#include <stddef.h>")
    w()
    for t in spec.types:
        _type(w, t)
    return {f"{spec.name}_abi.h": w.text()}


def _type(w, t):
    if isinstance(t, Const):
        w(f"#define {t.name} {t.c}")
    elif isinstance(t, Alias):
        w(f"typedef {declare(t.base.c, t.name)};")
    elif isinstance(t, Handle):
        w(f"typedef {t.target} *{t.name};")
    elif isinstance(t, Func):
        w(f"typedef {declare(t.ret, f'(*{t.name})')}({t.params});")
    elif isinstance(t, Enum):
        with w.block(f"typedef enum {t.name}_enum"):
            for name, value in t.values.items():
                w(f"{name} = {value},")
        w.lines[-1] += f" {t.name};"
        w()
    elif isinstance(t, Record):
        align = f" __attribute__((aligned({t.forced_align})))" if t.forced_align else ""
        with w.block(f"typedef {t.keyword} {t.name}_rec"):
            for f in t.fields:
                for line in c_field(f):
                    w(line)
        w.lines[-1] += f"{align} {t.name};"
        w()
