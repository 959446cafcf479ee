"""emit_wire: a call's arguments as bytes and back (`<api>_put.c`, `<api>_get.c`, `<api>_wire.h`).

docs/wire.md describes the encoding. A request holds what goes in. A reply holds what comes out: all
of it after success, and only what `on=` names after a failure. Arguments that do not travel are
marked `skip` in the generated code. The trace stores the same bytes.
"""

from gen.model import (Array, Bytes, Func, Handle, Pointer, Record, Ref, Shape, Text, TextBuf,
                       fail)
from gen.put_call import dispatch_both, put_both
from gen.writer import Writer, c_count, field_c

NAMES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def emit(spec):
    return {f"{spec.name}_wire.h": _header(spec), f"{spec.name}_put.c": _put_file(spec),
            f"{spec.name}_get.c": _get_file(spec)}


def _header(spec):
    api = spec.name
    w = Writer(f"{api} calls as bytes.")
    w("#pragma once")
    w()
    w(f'#include "gen/{api}_calls.h"')
    w()
    w("struct hed_enc;")
    w("struct hed_dec;")
    w()
    w("/* Append what goes in, or what came out of a call with this result: after success all,")
    w(" * after a failure what the spec says is set then, mostly nothing. Errors stick to e. */")
    w(f"void hed_{api}_put_request(struct hed_enc *e, enum hed_{api}_call id, const void *args);")
    w(f"void hed_{api}_put_reply(struct hed_enc *e, enum hed_{api}_call id, const void *args,")
    w("    int result);")
    w()
    w("/* Both, for a call that succeeded. */")
    w(f"void hed_{api}_put_call(struct hed_enc *e, enum hed_{api}_call id, const void *args);")
    w()
    w("/* Read them back. get_request allocates from d's arena and makes room for outputs;")
    w(" * get_reply fills the outputs that args points at. Errors stick to d. */")
    w(f"void hed_{api}_get_request(struct hed_dec *d, enum hed_{api}_call id, void *args);")
    w(f"void hed_{api}_get_reply(struct hed_dec *d, enum hed_{api}_call id, void *args,")
    w("    int result);")
    w()
    w("/* Bytes an argument struct takes. */")
    w(f"#define HED_{api.upper()}_MAX_ARGS sizeof(union hed_{api}_args)")
    with w.block(f"union hed_{api}_args"):
        for c in spec.calls:
            w(f"struct hed_{c.name} {c.name};")
    w.lines[-1] += ";"
    return w.text()


def used_records(spec):
    """Named records that some call reaches, in order of description."""
    seen = set()

    def visit(t):
        if isinstance(t, Shape):
            visit(t.type)
        elif isinstance(t, Record):
            if t.name:
                if t.name in seen:
                    return
                seen.add(t.name)
            for f in t.fields:
                if t.keyword == "struct" or f.name in t.cases.values():  # others travel raw
                    visit(f.type)

    for c in spec.calls:
        for a in c.args:
            if not a.by_hand:
                visit(a.type)
    return [r for r in spec.records if r.name in seen]


def needs_tag(r):
    """A named union that is told apart by something outside it takes the tag as a parameter."""
    return r.keyword == "union" and r.cases and not r.tag


def _dispatch(w, spec, verb, part, const):
    api = spec.name
    who = "struct hed_enc *e" if verb == "put" else "struct hed_dec *d"
    more = ", int result" if part == "reply" else ""
    w("void")
    w(f"hed_{api}_{verb}_{part}({who}, enum hed_{api}_call id, {const}void *args{more})")
    with w.block(""):
        if part == "reply":
            _dispatch_failed(w, spec, verb, who[-1])
        w("switch (id) {")
        for c in spec.calls:
            w(f"case HED_{c.name}:")
            if part == "request" or c.outs:
                w(f"    {verb}_{part}_{c.name}({who[-1]}, args);")
            w("    return;")
        w(f"case HED_{api.upper()}_CALLS:")
        w("    break;")
        w("}")
        w("e->err = HED_EFORMAT;" if verb == "put" else "hed_get_bad(d);")
    w()


def _dispatch_failed(w, spec, verb, who):
    with w.block("if (result != 0)"):
        w("switch ((uint32_t)id) {")
        for c in spec.calls:
            if c.fails:
                w(f"case HED_{c.name}:")
                w(f"    {verb}_failed_{c.name}({who}, args, result);")
                w("    return;")
        w("default:")
        w("    return;")
        w("}")


def failed(w, c, results, one):
    """The outputs that a failure sets, in the order of the arguments."""
    for a in c.outs:
        if a.on is None:
            continue
        when = f"a->{a.name}"
        if a.on != "failure":
            tests = [f"result == {results[r]}" for r in a.on]
            when += " && " + (tests[0] if len(tests) == 1 else f"({' || '.join(tests)})")
        with w.block(f"if ({when})"):
            one(a)


# ---- put --------------------------------------------------------------------------------------


class PutWriter(Writer):
    """Collects neighbouring words, so that space is checked once for all of them."""

    def __init__(self, what):
        super().__init__(what)
        self.words = []  # (kind, expression)

    def word(self, kind, expr):
        self.words.append((kind, expr))

    def __call__(self, text=""):
        self.flush()
        super().__call__(text)

    def flush(self):
        words, self.words = self.words, []
        if len(words) == 1:
            super().__call__(f"hed_put_{words[0][0]}(e, {words[0][1]});")
        elif words:
            sizes = [int(kind[1:]) // 8 for kind, _ in words]
            super().__call__("{")
            super().__call__(f"    uint8_t *p = hed_put_space(e, {sum(sizes)});")
            super().__call__()
            super().__call__("    if (p) {")
            at = 0
            for (kind, expr), size in zip(words, sizes):
                super().__call__(f"        hed_store_{kind}(p + {at}, {expr});")
                at += size
            super().__call__("    }")
            super().__call__("}")


def _put_file(spec):
    w = PutWriter(f"Puts {spec.name} calls into bytes.")
    w(f'#include "gen/{spec.name}_wire.h"')
    w()
    w('#include "base/pack.h"')
    w()
    for r in used_records(spec):
        tag = ", uint32_t tag" if needs_tag(r) else ""
        w("static void")
        w(f"put_{r.name}(struct hed_enc *e, const {r.name} *v{tag})")
        with w.block(""):
            _put_record_body(w, r, "v->", "tag" if tag else None)
        w()
    for c in spec.calls:
        _put_call(w, c, "request")
        if c.outs:
            _put_call(w, c, "reply")
        if c.fails:
            _put_failed(w, c, spec.result.values)
        put_both(w, c)
    for part in ("request", "reply"):
        _dispatch(w, spec, "put", part, "const ")
    dispatch_both(w, spec)
    return w.text()


def _put_record_body(w, r, prefix, tag=None):
    if r.keyword == "union":
        _put_union(w, r, prefix, f"{prefix}{r.tag}" if r.tag else tag)
        return
    names = {f.name for f in r.fields}
    for f in r.fields:
        _put_field(w, f, prefix, names)


def _put_field(w, f, prefix, names):
    x = prefix + f.name if f.name else None
    tag = f"(uint32_t){prefix}{f.tag}" if f.tag else None
    if isinstance(f.type, Shape):
        _put_shape(w, f.type, x, prefix, names)
    elif f.n is not None and f.type.size == 1:
        w(f"hed_put_raw(e, {x}, {f.n});")
    elif f.n is not None:
        with w.block(f"for (unsigned i = 0; i < {f.n}; i++)"):
            _put_value(w, f.type, f"{x}[i]", tag)
    elif f.name is None:
        _put_record_body(w, f.type, prefix, tag)
    else:
        _put_value(w, f.type, x, tag)


def _put_union(w, r, prefix, tag):
    if not (r.cases and tag):
        w("hed_put_u16(e, 0);")
        w(f"hed_put_raw(e, {_raw(r, prefix)}, {r.size});")
        return
    order = [f.name for f in r.fields]
    w(f"switch ({tag}) {{")
    for member in dict.fromkeys(r.cases.values()):
        for value in [v for v, m in r.cases.items() if m == member]:
            w(f"case {value}:")
        w.depth += 1
        w(f"hed_put_u16(e, {order.index(member) + 1});")
        f = r.fields[order.index(member)]
        if f.n is None:
            _put_value(w, f.type, prefix + member, None)
        else:
            _put_field(w, f, prefix, set(order))
        w("break;")
        w.depth -= 1
    w("default:")
    w("    hed_put_u16(e, 0);")
    w(f"    hed_put_raw(e, {_raw(r, prefix)}, {r.size});")
    w("}")


def _raw(r, prefix):
    """Address of a union that may be anonymous: that of its first member."""
    return f"&{prefix}{r.fields[0].name}"


def _put_value(w, t, x, tag=None):
    if isinstance(t, Record):
        if t.name:
            w(f"put_{t.name}(e, &{x}{f', {tag or 0}' if needs_tag(t) else ''});")
        else:
            _put_record_body(w, t, x + ".", tag)
    elif isinstance(t, (Handle, Pointer, Func)):
        w.word("u64", f"(uint64_t)(uintptr_t){x}")
    elif t.code in ("f32", "f64"):
        w.word(t.code, x)
    else:
        w.word(NAMES[t.size], f"(uint{t.size * 8}_t){x}")


def _put_shape(w, s, x, prefix, names, tag=None):
    if isinstance(s, Text):
        w(f"hed_put_text(e, {x});")
    elif isinstance(s, Ref):
        w(f"hed_put_u8(e, {x} != NULL);")
        with w.block(f"if ({x})"):
            _put_value(w, s.type, f"(*{x})", tag)
    elif isinstance(s, Bytes):
        w(f"hed_put_bulk(e, {x}, {c_count(s.count, prefix, names)});")
    elif isinstance(s, TextBuf):
        w(f"hed_put_textbuf(e, {x}, {c_count(s.count, prefix, names)});")
    elif isinstance(s, Array):
        n = c_count(s.count, prefix, names)
        with w.block(f"for (uint32_t i = 0, n = hed_put_items(e, {x}, {n}); i < n; i++)"):
            _put_value(w, s.type, f"{x}[i]", tag)


def _put_call(w, c, part):
    names = {a.name for a in c.args}
    w("static void")
    w(f"put_{part}_{c.name}(struct hed_enc *e, const struct hed_{c.name} *a)")
    with w.block(""):
        for a in c.args:
            x = f"a->{a.name}"
            tag = f"(uint32_t)a->{a.tag}" if a.tag else None
            if part == "request":
                _put_in(w, c, a, x, names, tag)
            elif a.dir != "in":
                with w.block(f"if ({x})"):
                    _put_out(w, a, x, names, tag)
            else:
                w(f"/* skip {a.name}: in */")
        if part == "request" and c.ptds is not None:
            w.word("u8", "a->ptds")
    w()


def _put_failed(w, c, results):
    w("static void")
    w(f"put_failed_{c.name}(struct hed_enc *e, const struct hed_{c.name} *a, int result)")
    with w.block(""):
        failed(w, c, results, lambda a: _put_out(w, a, f"a->{a.name}", {b.name for b in c.args},
                                                 f"(uint32_t)a->{a.tag}" if a.tag else None))
    w()


def _put_in(w, c, a, x, names, tag):
    if a.dir == "out":
        w.word("u8", f"{x} != NULL /* skip {a.name}: out */")
    elif a.by_hand:
        w.word("u64", f"(uint64_t)(uintptr_t){x} /* by hand: {a.by_hand} */")
    elif a.dir == "inout":
        w(f"hed_put_u8(e, {x} != NULL);")
        with w.block(f"if ({x})"):
            _put_out(w, a, x, names, tag)
    elif a.shape is not None:
        _put_shape(w, a.shape, x, "a->", names, tag)
    else:
        _put_value(w, a.type, x, tag)


def _put_out(w, a, x, names, tag):
    if a.shape is None:
        _put_value(w, a.type, f"(*{x})", tag)
    elif isinstance(a.shape, Text):
        w(f"hed_put_text(e, *{x});")
    else:
        _put_shape(w, a.shape, x, "a->", names, tag)


# ---- get --------------------------------------------------------------------------------------


def _get_file(spec):
    w = Writer(f"Gets {spec.name} calls back out of bytes.")
    w(f'#include "gen/{spec.name}_wire.h"')
    w()
    w('#include "base/pack.h"')
    w()
    for r in used_records(spec):
        tag = ", uint32_t tag" if needs_tag(r) else ""
        w("static void")
        w(f"get_{r.name}(struct hed_dec *d, {r.name} *v{tag})")
        with w.block(""):
            _get_record_body(w, r, "v->", "tag" if tag else None)
        w()
    for c in spec.calls:
        _get_request(w, c)
        if c.outs:
            _get_reply(w, c)
        if c.fails:
            _get_failed(w, c, spec.result.values)
    for part in ("request", "reply"):
        _dispatch(w, spec, "get", part, "")
    return w.text()


def _get_record_body(w, r, prefix, tag=None):
    if r.keyword == "union":
        _get_union(w, r, prefix, tag)
        return
    counted = [f for f in r.fields if isinstance(f.type, (Array, Bytes))]
    for f in counted:
        w(f"uint32_t n_{f.name} = 0;")
    if counted:
        w()
    seen = set()
    for f in r.fields:
        if f.tag and f.tag not in seen:
            _get_early_union(w, r, f, prefix)
        else:
            _get_field(w, f, prefix)
        seen.add(f.name)
    for f in counted:
        _same_count(w, f, prefix, {f.name for f in r.fields})


def _same_count(w, f, prefix, names):
    """Checks an array's count, which nothing has used so far. A wrong one is an error."""
    n = c_count(f.type.count, prefix, names)
    w(f"hed_get_same(d, {prefix}{f.name}, n_{f.name}, {n});")


def _get_field(w, f, prefix):
    x = prefix + f.name if f.name else None
    tag = f"(uint32_t){prefix}{f.tag}" if f.tag else None
    if isinstance(f.type, Shape):
        _get_shape(w, f.type, x, field_c(f.type), f.name)
    elif f.n is not None and f.type.size == 1:
        w(f"hed_get_raw(d, {x}, {f.n});")
    elif f.n is not None:
        with w.block(f"for (unsigned i = 0; i < {f.n}; i++)"):
            _get_value(w, f.type, f"{x}[i]", tag)
    elif f.name is None:
        _get_record_body(w, f.type, prefix, tag)
    else:
        _get_value(w, f.type, x, tag)


def _get_early_union(w, r, f, prefix):
    """The tag comes after the union, so only the number of the case is known."""
    if f.type.deep() or f.n is not None:
        fail(f.where, r.name, f.name, f"'{f.tag}' must come first: the union holds pointers")
    at = f"{prefix}{f.name}." if f.name else prefix
    order = [m.name for m in f.type.fields]
    w("switch (hed_get_u16(d)) {")
    w("case 0:")
    w(f"    hed_get_raw(d, {_raw(f.type, at)}, {f.type.size});")
    w("    break;")
    for member in dict.fromkeys(f.type.cases.values()):
        w(f"case {order.index(member) + 1}:")
        w.depth += 1
        _get_field(w, f.type.fields[order.index(member)], at)
        w("break;")
        w.depth -= 1
    w("default:")
    w("    hed_get_bad(d);")
    w("}")


def _get_union(w, r, prefix, tag):
    """The tag was read before, or comes first in every case, after the number of the case. The
    number must agree with the tag, because later code uses the member that the tag names."""
    order = [f.name for f in r.fields]
    if r.tag:
        tag = "hed_get_peek(d, 2)"
    if not (r.cases and tag):
        w("hed_get_case(d, 0);")
        w(f"hed_get_raw(d, {_raw(r, prefix)}, {r.size});")
        return
    w(f"switch ({tag}) {{")
    for member in dict.fromkeys(r.cases.values()):
        for value in [v for v, m in r.cases.items() if m == member]:
            w(f"case {value}:")
        w.depth += 1
        w(f"hed_get_case(d, {order.index(member) + 1});")
        f = r.fields[order.index(member)]
        if f.n is None:
            _get_value(w, f.type, prefix + member)
        else:
            _get_field(w, f, prefix)
        w("break;")
        w.depth -= 1
    w("default:")
    w("    hed_get_case(d, 0);")
    w(f"    hed_get_raw(d, {_raw(r, prefix)}, {r.size});")
    w("}")


def _get_value(w, t, x, tag=None):
    if isinstance(t, Record):
        if t.name:
            w(f"get_{t.name}(d, &{x}{f', {tag or 0}' if needs_tag(t) else ''});")
        else:
            _get_record_body(w, t, x + ".", tag)
    elif isinstance(t, (Handle, Pointer, Func)):
        w(f"{x} = ({t.c})(uintptr_t)hed_get_u64(d);")
    elif t.code in ("f32", "f64"):
        w(f"{x} = hed_get_{t.code}(d);")
    else:
        w(f"{x} = ({t.c})hed_get_{NAMES[t.size]}(d);")


def _get_shape(w, s, x, c, name, tag=None):
    """Into memory of the decoder's arena; n_<name> is set to the number of items."""
    if isinstance(s, Text):
        w(f"{x} = hed_get_text(d);")
    elif isinstance(s, Ref):
        with w.block(""):
            w(f"{s.type.c} *p = hed_get_u8(d) ? hed_get_room(d, 1, sizeof *p) : NULL;")
            w()
            with w.block("if (p)"):
                _get_value(w, s.type, "(*p)", tag)
            w(f"{x} = p;")
    elif isinstance(s, Bytes):
        w(f"{x} = ({c})hed_get_bulk(d, &n_{name});")
    elif isinstance(s, Array):
        with w.block(""):
            w(f"{_item(s)}*p = hed_get_items(d, sizeof *p, &n_{name});")
            w()
            with w.block(f"for (uint32_t i = 0; i < n_{name}; i++)"):
                _get_value(w, s.type, "p[i]", tag)
            w(f"{x} = p;")


def _item(s):
    return s.type.c if s.type.c.endswith("*") else s.type.c + " "


def _get_request(w, c):
    names = {a.name for a in c.args}
    w("static void")
    w(f"get_request_{c.name}(struct hed_dec *d, struct hed_{c.name} *a)")
    counted = [a for a in c.args if a.dir != "out" and not a.by_hand
               and isinstance(a.shape, (Array, Bytes))]
    for i, a in enumerate(c.args):
        if a.tag and a.dir != "out" and a.tag in {b.name for b in c.args[i:]}:
            fail(a.where, c.name, a.name, f"tag '{a.tag}' must come first")
    with w.block(""):
        for a in counted:
            w(f"uint32_t n_{a.name} = 0;")
        if counted:
            w()
        for a in c.args:
            tag = f"(uint32_t)a->{a.tag}" if a.tag else None
            if a.dir == "out":
                w(f"const bool has_{a.name} = hed_get_u8(d); /* skip {a.name}: out */")
            elif a.by_hand:
                w(f"a->{a.name} = ({a.c})(uintptr_t)hed_get_u64(d); /* by hand */")
            elif a.dir == "inout":
                _get_inout(w, a, tag)
            elif a.shape is not None:
                _get_shape(w, a.shape, f"a->{a.name}", a.c, a.name, tag)
            else:
                _get_value(w, a.type, f"a->{a.name}", tag)
        if c.ptds is not None:
            w("a->ptds = hed_get_u8(d);")
        for a in counted:
            _same_count(w, a, "a->", names)
        for a in [a for a in c.args if a.dir == "out"]:
            n = "1"
            if isinstance(a.shape, (Array, Bytes, TextBuf)):
                n = c_count(a.shape.count, "a->", names)
            size = "1" if isinstance(a.shape, Bytes) else f"sizeof *a->{a.name}"
            w(f"a->{a.name} = has_{a.name} ? hed_get_room(d, {n}, {size}) : NULL;")
    w()


def _get_inout(w, a, tag):
    x = f"a->{a.name}"
    if a.shape is None:
        w(f"{x} = hed_get_u8(d) ? hed_get_room(d, 1, sizeof *{x}) : NULL;")
        with w.block(f"if ({x})"):
            _get_value(w, a.type, f"(*{x})", tag)
        return
    w(f"{x} = NULL;")
    with w.block("if (hed_get_u8(d))"):
        _get_shape(w, a.shape, x, a.c, a.name, tag)


def _get_reply(w, c):
    names = {a.name for a in c.args}
    w("static void")
    w(f"get_reply_{c.name}(struct hed_dec *d, struct hed_{c.name} *a)")
    with w.block(""):
        # Space is checked against the caller's count, before an in-out count is overwritten.
        for a in c.outs:
            if isinstance(a.shape, (Array, Bytes, TextBuf)):
                w(f"const uint64_t room_{a.name} = {c_count(a.shape.count, 'a->', names)};")
            if isinstance(a.shape, (Array, Bytes)):
                w(f"uint32_t n_{a.name} = 0;")
        for a in c.args:
            if a.dir == "in":
                w(f"/* skip {a.name}: in */")
                continue
            x = f"a->{a.name}"
            tag = f"(uint32_t)a->{a.tag}" if a.tag else None
            with w.block(f"if ({x})"):
                if a.shape is None:
                    _get_value(w, a.type, f"(*{x})", tag)
                elif isinstance(a.shape, Text):
                    w(f"*{x} = hed_get_text(d);")
                elif isinstance(a.shape, Bytes):
                    w(f"n_{a.name} = hed_get_bulk_into(d, {x}, room_{a.name});")
                elif isinstance(a.shape, TextBuf):
                    w(f"hed_get_text_into(d, {x}, room_{a.name});")
                else:
                    w(f"n_{a.name} = hed_get_count_into(d, room_{a.name});")
                    with w.block(f"for (uint32_t i = 0; i < n_{a.name}; i++)"):
                        _get_value(w, a.shape.type, f"{x}[i]", tag)
        for a in c.outs:
            if isinstance(a.shape, (Array, Bytes)):
                _same_count(w, a, "a->", names)
    w()


def _get_failed(w, c, results):
    def one(a):
        if isinstance(a.shape, Text):
            w(f"*a->{a.name} = hed_get_text(d);")
        else:
            _get_value(w, a.type, f"(*a->{a.name})", f"(uint32_t)a->{a.tag}" if a.tag else None)

    w("static void")
    w(f"get_failed_{c.name}(struct hed_dec *d, struct hed_{c.name} *a, int result)")
    with w.block(""):
        failed(w, c, results, one)
    w()
