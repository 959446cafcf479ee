"""emit_print: names of calls, results and enum values, and the schema that a trace carries.

The schema is text, one line for each type or call, in the grammar of docs/trace-format.md. A reader
needs nothing else to decode the arguments in a trace, whichever version wrote it.
"""

from gen.emit_wire import used_records
from gen.model import Record, Shape
from gen.writer import Writer


def emit(spec):
    api = spec.name
    w = Writer(f"Names and schema of the {api} API.")
    w(f'#include "gen/{api}_names.h"')
    w()
    enums = spec.enums
    for e in enums:
        w(f"static const struct hed_enum_value values_{e.name}[] = {{")
        for value, name in sorted({v: n for n, v in reversed(e.values.items())}.items()):
            w(f'    {{{value}, "{name}", {_text(e, name)}}},')
        w("};")
        w()
    w(f"const struct hed_enum hed_{api}_enums[] = {{")
    for e in sorted(enums, key=lambda e: e.name):
        w(f'    {{"{e.name}", values_{e.name},')
        w(f"     sizeof values_{e.name} / sizeof *values_{e.name}}},")
    w("};")
    w()
    w(f"const size_t hed_{api}_enum_count = {len(enums)};")
    w()
    w(f"const char hed_{api}_schema[] =")
    for line in schema(spec):
        w(f'    "{line}\\n"')
    w.lines[-1] += ";"
    w()
    w(f"const size_t hed_{api}_schema_size = sizeof hed_{api}_schema - 1;")
    return {f"{api}_names.c": w.text(), f"{api}_names.h": _header(spec)}


def _header(spec):
    api = spec.name
    w = Writer(f"Names and schema of the {api} API.")
    w("#pragma once")
    w()
    w('#include "base/names.h"')
    w()
    w(f"extern const struct hed_enum hed_{api}_enums[];")
    w(f"extern const size_t hed_{api}_enum_count;")
    w()
    w("/* What a trace carries so that it can be read (docs/trace-format.md). */")
    w(f"extern const char hed_{api}_schema[];")
    w(f"extern const size_t hed_{api}_schema_size;")
    return w.text()


def _text(e, name):
    text = e.texts.get(name)
    return "0" if text is None else '"' + text.replace('"', '\\"') + '"'


def schema(spec):
    lines = [f"api {spec.name} {spec.result.name}"]
    for r in used_records(spec):
        lines += _record(r, r.name)
    for c in sorted(spec.calls, key=lambda c: c.id):
        words = [f"call {c.id} {c.name}"]
        for a in c.args:
            code = "p" if a.by_hand else a.type.code
            words.append(f"{ {'in': 'i', 'out': 'o', 'inout': 'b'}[a.dir]}:{a.name}:{code}")
        if c.ptds is not None:
            words.append(f"i:{c.suffix}:u8")
        lines.append(" ".join(words))
        for result, args in c.fails.items():
            number = "*" if result is None else spec.result.values[result]
            lines.append(" ".join([f"fails {c.id} {number}", *[a.name for a in args]]))
    return lines


def _record(r, name):
    """Inline records become types of their own, named after their position."""
    before, words = [], [f"{r.keyword} {name}"]
    if r.keyword == "union":
        words.append(f"{r.size}")
    cases = set(r.cases.values())
    for i, f in enumerate(r.fields):
        code = f.type.code
        if isinstance(f.type, Record) and f.type.name is None:
            inner = f"{name}.{f.name or i}"
            before += _record(f.type, inner)
            code = ("s." if f.type.keyword == "struct" else "n.") + inner
        elif isinstance(f.type, Shape) and isinstance(f.type.type, Record):
            code = f.type.code
        if f.n is not None:
            code = f"[{f.n}]{code}"
        if r.keyword == "union" and f.name not in cases:
            code = "-"  # never encoded as itself
        words.append(f"{f.name or ''}:{code}")
    return before + [" ".join(words)]
