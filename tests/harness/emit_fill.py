"""Makes C from a spec that fills argument structs (harness/fill.h): SPEC OUT_FILE."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from gen.emit_wire import needs_tag, used_records  # noqa: E402
from gen.model import Array, Bytes, Record, Ref, Shape, Text, TextBuf, names_in  # noqa: E402
from gen.vocabulary import load  # noqa: E402
from gen.writer import Writer, c_count  # noqa: E402


def counted(things):
    """The names on which a length depends."""
    return {n for t in things for n in names_in(getattr(t.type, "count", ""))}


def value(w, t, x, tag=None):
    if isinstance(t, Record):
        if t.name:
            w(f"fill_{t.name}(f, &{x}{f', {tag or 0}' if needs_tag(t) else ''});")
        else:
            body(w, t, x + ".", tag)
    else:
        w(f"fill_bytes(f, &{x}, sizeof {x});")


def body(w, r, prefix, tag=None):
    if r.keyword == "union":
        union(w, r, prefix, tag)
        return
    names, counts = {f.name for f in r.fields}, counted(r.fields)
    tags = {f.tag: f.type for f in r.fields if f.tag}
    for f in r.fields:
        if f.name in counts:
            w(f"{prefix}{f.name} = fill_count(f);")
        elif f.name in tags:
            w(f"{prefix}{f.name} = fill_tag(f, {values(tags[f.name])});")
        elif not isinstance(f.type, Shape) and not f.tag:
            field(w, f, prefix)
    for f in r.fields:
        if isinstance(f.type, Shape):
            shape(w, f.type, prefix + f.name, prefix, names)
        elif f.tag:
            field(w, f, prefix, f"{prefix}{f.tag}")


def field(w, f, prefix, tag=None):
    if f.name is None:
        body(w, f.type, prefix, tag)
    elif f.n is not None:
        with w.block(f"for (unsigned i = 0; i < {f.n}; i++)"):
            value(w, f.type, f"{prefix}{f.name}[i]", tag)
    else:
        value(w, f.type, prefix + f.name, tag)


def values(r):
    """The tags of a union as the arguments of fill_tag."""
    cases = ", ".join(str(v) for v in r.cases) or "0"
    return f"(const uint32_t[]){{{cases}}}, {len(r.cases)}"


def union(w, r, prefix, tag):
    raw = f"fill_bytes(f, &{prefix}{r.fields[0].name}, {r.size});"
    if r.tag:
        w(f"const uint32_t tag = fill_tag(f, {values(r)});")
        w()
        tag = "tag"
    if not (r.cases and tag):
        w(raw)
        return
    members = {f.name: f for f in r.fields}
    w(f"switch ({tag}) {{")
    for member in dict.fromkeys(r.cases.values()):
        for v in [v for v, m in r.cases.items() if m == member]:
            w(f"case {v}:")
        w.depth += 1
        field(w, members[member], prefix)
        w("break;")
        w.depth -= 1
    w("default:")
    w("    " + raw)
    w("}")
    if r.tag:
        w(f"{prefix}{r.tag} = tag;")


def shape(w, s, x, prefix, names, tag=None):
    """A pointer that goes in, and the value behind it."""
    if isinstance(s, Text):
        w(f"{x} = fill_null(f) ? NULL : fill_text(f);")
        return
    n = "1" if isinstance(s, Ref) else c_count(s.count, prefix, names)
    w(f"{x} = NULL;")
    with w.block("if (!fill_null(f))"):
        item = "unsigned char" if isinstance(s, Bytes) else s.type.c
        w(f"const uint64_t n = {n};")
        w(f"{item}{'' if item.endswith('*') else ' '}*p = fill_room(f, n, sizeof *p);")
        w()
        with w.block("for (uint64_t i = 0; i < n; i++)"):
            value(w, s.type, "p[i]", tag)
        w(f"{x} = (void *)p;")


def place(w, a, x, names):
    """Memory for an output."""
    n = "1"
    if isinstance(a.shape, (Array, Bytes, TextBuf)):
        n = c_count(a.shape.count, "a->", names)
    size = "1" if isinstance(a.shape, Bytes) else f"sizeof *{x}"
    with w.block("if (!fill_null(f))"):
        w(f"{x} = fill_room(f, {n}, {size});")


def args(w, c):
    names, counts = {a.name for a in c.args}, counted(c.args)
    tags = {a.tag: a.type.type if a.shape else a.type for a in c.args if a.tag}
    late = []
    for a in c.args:
        x = f"a->{a.name}"
        if a.name in counts and a.dir == "in":
            w(f"{x} = fill_count(f);")
        elif a.name in counts:
            w(f"{x} = fill_room(f, 1, sizeof *{x});")
            w(f"*{x} = fill_count(f);")
        elif a.name in tags:
            w(f"{x} = fill_tag(f, {values(tags[a.name])});")
        elif a.by_hand or (a.dir == "in" and not a.shape and not a.tag):
            w(f"fill_bytes(f, &{x}, sizeof {x});")
        else:
            late.append(a)
    for a in late:
        x = f"a->{a.name}"
        tag = f"(uint32_t)a->{a.tag}" if a.tag else None
        if a.dir == "in" and a.shape is None:
            value(w, a.type, x, tag)
        elif a.dir == "in" or (a.dir == "inout" and a.shape):
            shape(w, a.shape, x, "a->", names, tag)
        else:
            place(w, a, x, names)
            if a.dir == "inout":
                with w.block(f"if ({x})"):
                    value(w, a.type, f"(*{x})", tag)
    if c.ptds is not None:
        w("a->ptds = fill_next(f) & 1;")


def outs(w, c):
    names, counts = {a.name for a in c.args}, counted(c.args)
    for a in [a for a in c.outs if a.name not in counts]:
        x = f"a->{a.name}"
        tag = f"(uint32_t)a->{a.tag}" if a.tag else None
        with w.block(f"if ({x})"):
            if a.shape is None:
                value(w, a.type, f"(*{x})", tag)
            elif isinstance(a.shape, Text):
                w(f"*{x} = fill_text(f);")
            elif isinstance(a.shape, TextBuf):
                w(f"fill_text_into(f, {x}, {c_count(a.shape.count, 'a->', names)});")
            elif isinstance(a.shape, Bytes):
                w(f"fill_bytes(f, {x}, {c_count(a.shape.count, 'a->', names)});")
            else:
                n = c_count(a.shape.count, "a->", names)
                with w.block(f"for (uint64_t i = 0; i < (uint64_t)({n}); i++)"):
                    value(w, a.shape.type, f"{x}[i]", tag)
    for a in [a for a in c.outs if a.name in counts]:
        w(f"*a->{a.name} = fill_next(f) % (*a->{a.name} + 1);")


def words(w, spec):
    w(f"const struct fill_word fill_{spec.name}_words[] = {{")
    n = 0
    for c in spec.calls:
        used = counted(c.args) | {a.tag for a in c.args}
        for a in c.args:
            if a.dir == "in" and not a.shape and a.name not in used \
                    and not isinstance(a.type, Record):
                struct = f"struct hed_{c.name}"
                w(f"    {{{c.id}, offsetof({struct}, {a.name}), "
                  f"sizeof((({struct} *)0)->{a.name})}},")
                n += 1
    w("};")
    w()
    w(f"const size_t fill_{spec.name}_word_count = {n};")


def main():
    spec = load(sys.argv[1])
    api = spec.name
    w = Writer(f"Fills the arguments of {api} calls.")
    w('#include "harness/fill.h"')
    w()
    for r in used_records(spec):
        w("static void")
        tag = ", uint32_t tag" if needs_tag(r) else ""
        w(f"fill_{r.name}(struct fill *f, {r.name} *v{tag})")
        with w.block(""):
            body(w, r, "v->", "tag" if tag else None)
        w()
    for part, make in (("args", args), ("outs", outs)):
        calls = [c for c in spec.calls if c.args and (part == "args" or c.outs)]
        for c in calls:
            w("static void")
            w(f"fill_{part}_{c.name}(struct fill *f, struct hed_{c.name} *a)")
            with w.block(""):
                make(w, c)
            w()
        w("void")
        w(f"fill_{api}_{part}(struct fill *f, enum hed_{api}_call id, void *args)")
        with w.block(""):
            w("switch (id) {")
            for c in calls:
                w(f"case HED_{c.name}:")
                w(f"    fill_{part}_{c.name}(f, args);")
                w("    return;")
            w("default:")
            w("    return;")
            w("}")
        w()
    words(w, spec)
    Path(sys.argv[2]).write_text(w.text())


if __name__ == "__main__":
    main()
