"""emit_null: answers that need no device (`null`): outputs zeroed, new objects given a number.

A call that says null={"count": 1} answers these values; one that says null=Roles(...) has a
function of the backend's own, which emit_sets names.
"""

from gen.model import Array, Bytes, Handle, Ref, Text, TextBuf
from gen.writer import Writer, c_count, is_word


def emit(spec):
    api, result = spec.name, spec.result.name
    ok, bad = f"HED_{api.upper()}_OK", f"HED_{api.upper()}_BAD_VALUE"
    w = Writer(f"The null backend's answers to {api} calls.")
    w('#include "backends/null/null.h"')
    w()
    w("#include <string.h>")
    w()
    w('#include "base/str.h"')
    w('#include "core/layer.h"')
    w('#include "core/stats.h"')
    w()
    for c in spec.calls:
        names = {a.name for a in c.args}
        w(f"static {result}")
        w(f"null_{c.name}(struct hed_layer *self, struct hed_{c.name} *a)")
        with w.block(""):
            if any(a.fills for a in c.args):
                # Only hand-written code knows what it must write, so it must not succeed silently.
                w(f'hed_stats_unsupported(HED_API_{api.upper()}, HED_{c.name}, "null");')
                w(f"return HED_{api.upper()}_UNSUPPORTED;")
            else:
                _answer(w, c, names, ok, bad, spec.short)
        w()
    w(f"const struct hed_{api}_ops hed_{api}_null = {{")
    for c in spec.calls:
        w(f"    .{c.name} = null_{c.name},")
    w("};")
    return {f"{api}_null.c": w.text()}


def _answer(w, c, names, ok, bad, short):
    needed = [a for a in c.outs if not a.opt]
    if needed:
        w(f"if ({' || '.join(f'!a->{a.name}' for a in needed)})")
        w(f"    return {bad};")
    for a in c.outs:
        _out(w, c, a, names, bad, short)
    w(f"return {ok};")


def _text(w, a, n, text, bad, short):
    """An API without a result for short buffers truncates the text."""
    if short:
        w(f'if (!hed_str_copy(a->{a.name}, (size_t){n}, "{text}"))')
        w(f"    return {short};")
    else:
        w(f"if ({n} <= 0)")
        w(f"    return {bad};")
        w(f'(void)hed_str_copy(a->{a.name}, (size_t){n}, "{text}");')


def _out(w, c, a, names, bad, short):
    s = a.shape
    guard = f"if (a->{a.name})\n        " if a.opt else ""
    value = c.effects.null.get(a.name) if isinstance(c.effects.null, dict) else None
    if value is not None and isinstance(s, TextBuf):
        _text(w, a, c_count(s.count, "a->", names), value, bad, short)
        return
    if value is not None:
        w(f"{guard}*a->{a.name} = {value};")
        return
    if a.dir == "inout":
        if s is None and is_word(a.type):  # a count or a mode: none, the default
            w(f"{guard}*a->{a.name} = 0;")
        return
    if isinstance(s, Text):
        w(f'{guard}*a->{a.name} = "";')
    elif isinstance(s, TextBuf):
        n = c_count(s.count, "a->", names)
        w(f"if (a->{a.name} && {n} > 0)")
        w(f"    a->{a.name}[0] = 0;")
    elif isinstance(s, (Array, Bytes)):
        n = c_count(s.count, "a->", names)
        size = "1" if isinstance(s, Bytes) else f"sizeof *a->{a.name}"
        w(f"{guard}hed_null_clear(a->{a.name}, {n}, {size});")
    elif a.new and not isinstance(s, Ref):
        cast = a.type.c
        w(f"{guard}*a->{a.name} = ({cast})hed_null_mint(self);")
    elif isinstance(a.type, Handle):
        w(f"{guard}*a->{a.name} = ({a.type.c})HED_NULL_OBJECT;")
    else:
        w(f"{guard}memset(a->{a.name}, 0, sizeof *a->{a.name});")
