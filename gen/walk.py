"""Generated code that has a function for each call, and code that visits values of some kind in a
call's arguments, at any depth.

Arguments that are by_hand, and unions that do not say which member is live, are opaque.
"""

import re

from gen.model import Array, Record, Shape
from gen.writer import c_count


def live(r):
    """The fields that are told apart: all of a struct, those with a case of a union."""
    return [f for f in r.fields if r.keyword == "struct" or f.name in r.cases.values()]


def needs_tag(r):
    """A named union that is told apart by something outside it takes the tag as a parameter."""
    return r.keyword == "union" and r.cases and not r.tag


class Walk:
    """One kind of walk: `leaf(type)` is the kind of a value to visit, or None; `visit` the macro.
    deep: values behind pointers are visited too."""

    def __init__(self, name, leaf, deep, visit, fn):
        self.name, self.leaf, self.deep, self.visit, self.fn = name, leaf, deep, visit, fn

    def holds(self, t):
        """Whether there is something to visit in a value of this type."""
        if isinstance(t, Shape):
            return self.deep and self.holds(t.type)
        if isinstance(t, Record):
            return any(self.holds(f.type) for f in live(t))
        return self.leaf(t) is not None

    def records(self, w, spec, args):
        """A function for each named record that is met on the way from these arguments."""
        seen = set()

        def meet(t):
            if isinstance(t, Shape):
                if self.deep:
                    meet(t.type)
            elif isinstance(t, Record) and self.holds(t) and t.name not in seen:
                if t.name:
                    seen.add(t.name)
                for f in live(t):
                    meet(f.type)

        for a in args:
            meet(a.shape.type if a.shape else a.type)
        for r in spec.records:
            if r.name not in seen:
                continue
            tag = ", uint32_t tag" if needs_tag(r) else ""
            w("static int")
            w(f"{self.name}_{r.name}({r.name} *v{tag}, {self.fn} fn, void *arg)")
            with w.block(""):
                self._body(w, r, "v->", "tag" if tag else None)
                w("return 0;")
            w()

    def arguments(self, w, c, args):
        """The body of a function that visits these arguments of a call."""
        for a in args:
            self._argument(w, c, a)
        w("return 0;")

    def _argument(self, w, c, a):
        x = f"a->{a.name}"
        tag = f"(uint32_t)a->{a.tag}" if a.tag else None
        if a.shape is not None:
            self._behind(w, a.shape, x, "a->", {b.name for b in c.args}, tag)
        elif a.dir == "in":
            self._value(w, a.type, x, tag)
        else:
            with w.block(f"if ({x})"):
                self._value(w, a.type, f"(*{x})", tag)

    def _body(self, w, r, prefix, tag):
        if r.keyword == "union":
            tag = f"{prefix}{r.tag}" if r.tag else tag
            if tag:
                self._union(w, r, prefix, tag)
            return
        names = {f.name for f in r.fields}
        for f in r.fields:
            if self.holds(f.type):
                self._field(w, f, prefix, names)

    def _union(self, w, r, prefix, tag):
        members = {f.name: f for f in r.fields}
        w(f"switch ({tag}) {{")
        for member in dict.fromkeys(r.cases.values()):
            if not self.holds(members[member].type):
                continue
            for value in [v for v, m in r.cases.items() if m == member]:
                w(f"case {value}:")
            w.depth += 1
            self._field(w, members[member], prefix, set(members))
            w("break;")
            w.depth -= 1
        w("default:")
        w("    break;")
        w("}")

    def _field(self, w, f, prefix, names):
        x = prefix + f.name if f.name else None
        tag = f"(uint32_t){prefix}{f.tag}" if f.tag else None
        if isinstance(f.type, Shape):
            self._behind(w, f.type, x, prefix, names, tag)
        elif f.n is not None:
            with w.block(f"for (unsigned i = 0; i < {f.n}; i++)"):
                self._value(w, f.type, f"{x}[i]", tag)
        elif f.name is None:
            self._body(w, f.type, prefix, tag)
        elif f.when:
            with w.block("if (" + " || ".join(f"{prefix}{f.when[0]} == {v}"
                                              for v in f.when[1:]) + ")"):
                self._value(w, f.type, x, tag)
        else:
            self._value(w, f.type, x, tag)

    def _value(self, w, t, x, tag):
        if isinstance(t, Record) and t.name:
            more = f", {tag or 0}" if needs_tag(t) else ""
            w(f"WALK({self.name}_{t.name}(&{x}{more}, fn, arg));")
        elif isinstance(t, Record):
            self._body(w, t, x + ".", tag)
        else:
            w(self.visit(x, t, self.leaf(t)))

    def _behind(self, w, s, x, prefix, names, tag):
        """The values behind a pointer, which may be NULL, and is const only by its type."""
        star = s.type.c if s.type.c.endswith("*") else s.type.c + " "
        with w.block(f"if ({x})"):
            w(f"{star}*p = ({star}*)(uintptr_t){x};")
            if isinstance(s, Array):
                w(f"const uint64_t n = (uint64_t)({c_count(s.count, prefix, names)});")
                w()
                with w.block("for (uint64_t i = 0; i < n; i++)"):
                    self._value(w, s.type, "p[i]", tag)
            else:
                w()
                self._value(w, s.type, "(*p)", tag)


def by_call(w, spec, name, calls, body, result="int", more=(), const=True, otherwise="return 0;"):
    """`<name>_<call>` for each of the calls, and `hed_<api>_<name>`, which goes by the number of
    the call. body(c) writes the lines of the first; both take the parameters `more`; the second
    does `otherwise` about all other calls."""
    const = "const " if const else ""
    params = "".join(f", {p}" for p in more)
    passed = "".join(", " + re.search(r"(\w+)(\[.*\])?$", p).group(1) for p in more)
    for c in calls:
        w(f"static {result}")
        w(f"{name}_{c.name}({const}struct hed_{c.name} *a{params})")
        with w.block(""):
            body(c)
        w()
    w(result)
    w(f"hed_{spec.name}_{name}(enum hed_{spec.name}_call id, {const}void *args{params})")
    with w.block(""):
        w("switch ((uint32_t)id) {")
        for c in calls:
            call = f"{name}_{c.name}(args{passed});"
            w(f"case HED_{c.name}:")
            w(f"    {call}" if result == "void" else f"    return {call}")
            if result == "void":
                w("    break;")
        w("default:")
        w(f"    {otherwise}")
        w("}")
    w()


WALK_MACRO = """\
#define WALK(call) \\
    do { \\
        const int err = (call); \\
        if (err) \\
            return err; \\
    } while (0)
"""
