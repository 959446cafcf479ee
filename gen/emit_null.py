"""emit_null: answers that need no device (`null`): outputs zeroed, new objects given a number."""

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
    w('#include "core/layer.h"')
    w('#include "core/stats.h"')
    w()
    for c in spec.calls:
        names = {a.name for a in c.args}
        w(f"static {result}")
        w(f"null_{c.name}(struct hed_layer *self, struct hed_{c.name} *a)")
        with w.block(""):
            if any(a.fills for a in c.args):
                # What it must write is known to hand-written code only: no silent success.
                w(f'hed_stats_unsupported(HED_API_{api.upper()}, HED_{c.name}, "null");')
                w(f"return HED_{api.upper()}_UNSUPPORTED;")
            else:
                _answer(w, c, names, ok, bad)
        w()
    w(f"const struct hed_{api}_ops hed_{api}_null = {{")
    for c in spec.calls:
        w(f"    .{c.name} = null_{c.name},")
    w("};")
    return {f"{api}_null.c": w.text()}


def _answer(w, c, names, ok, bad):
    needed = [a for a in c.outs if not a.opt]
    if needed:
        w(f"if ({' || '.join(f'!a->{a.name}' for a in needed)})")
        w(f"    return {bad};")
    for a in c.outs:
        _out(w, c, a, names)
    w(f"return {ok};")


def _out(w, c, a, names):
    s = a.shape
    guard = f"if (a->{a.name})\n        " if a.opt else ""
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
