"""emit_hash: one number for all numbers and shapes of an API (`<api>_hash.h`).

Two programs with equal numbers can read each other's calls. The number depends on everything that
the bytes depend on: numbers and names of calls, directions, types, counts and union members. It
does not depend on the names of arguments and fields.
"""

import hashlib
import re

from gen.emit_wire import used_records
from gen.model import Record, Shape
from gen.writer import Writer

ENCODING = 1  # of docs/wire.md; increased when the same shape is encoded differently


def emit(spec):
    api = spec.name
    digest = hashlib.sha256("\n".join(canonical(spec)).encode()).hexdigest()[:16]
    w = Writer(f"One number for the shapes of all {api} calls.")
    w("#pragma once")
    w()
    w("#include <stdint.h>")
    w()
    w(f"#define HED_{api.upper()}_HASH UINT64_C(0x{digest})")
    return {f"{api}_hash.h": w.text()}


def canonical(spec):
    """The shapes as text, one line for each record or call."""
    lines = [f"encoding {ENCODING} api {spec.name}"]
    lines += [f"{r.name} {_record(r)}" for r in used_records(spec)]
    for c in sorted(spec.calls, key=lambda c: c.id):
        order = [a.name for a in c.args]
        words = [f"{c.id} {c.name}"]
        for a in c.args:
            code = "p" if a.by_hand else _type(a.type, order)
            tag = f"?{order.index(a.tag)}" if a.tag else ""
            on = "!" if a.on == "failure" else "".join(
                f"!{spec.result.values[r]}" for r in a.on or [])
            words.append(f"{a.dir}:{code}{tag}{on}{'+' if a.new else ''}{'-' if a.free else ''}")
        lines.append(" ".join(words) + (" ptds" if c.ptds is not None else ""))
    return lines


def _type(t, order):
    if isinstance(t, Shape):
        return t.code + _count(getattr(t, "count", None), order)
    if isinstance(t, Record) and t.name is None:
        return _record(t)
    return "e" if t.code.startswith("e.") else t.code


def _count(expr, order):
    """A length expression in which numbers replace the names."""
    if expr is None:
        return ""
    return "{" + re.sub(r"\b[A-Za-z_]\w*\b", lambda m: f"${order.index(m.group(0))}"
                        if m.group(0) in order else m.group(0), str(expr)) + "}"


def _record(r):
    order = [f.name for f in r.fields]
    words = []
    for f in r.fields:
        n = "" if f.n is None else f"[{f.n}]"
        tag = f"?{order.index(f.tag)}" if f.tag else ""
        words.append(n + _type(f.type, order) + tag)
    cases = "".join(f"|{v}={order.index(m)}" for v, m in sorted(r.cases.items()))
    tag = f"|{order.index(r.tag)}" if r.tag else ""
    return f"{r.keyword}{r.size}({' '.join(words)}{tag}{cases})"
