"""emit_real: NVIDIA's own functions as a table, and the operations that call them (`gpu`)."""

from gen.writer import Writer, prototype


def emit(spec):
    api, result = spec.name, spec.result.name
    h = Writer(f"NVIDIA's {api} functions, as found in its library.")
    h("#pragma once")
    h()
    h("#include <stddef.h>")
    h()
    h(f'#include "gen/{api}_calls.h"')
    h()
    with h.block(f"struct hed_{api}_real"):
        for c in spec.calls:
            for name, _, _ in c.variants:
                h(f"{result} (*{name}){prototype(c)};")
    h.lines[-1] += ";"
    h()
    h("/* One name for every pointer of the table, in its order. */")
    h(f"extern const char *const hed_{api}_real_names[];")
    h(f"extern const size_t hed_{api}_real_count;")
    h(f"extern struct hed_{api}_real hed_{api}_real;")
    h(f"extern const struct hed_{api}_ops hed_{api}_real_ops;")

    w = Writer(f"Calls NVIDIA's {api} library.")
    w(f'#include "gen/{api}_real.h"')
    w()
    w('#include "core/layer.h"')
    w()
    w(f"struct hed_{api}_real hed_{api}_real;")
    w()
    w(f"const char *const hed_{api}_real_names[] = {{")
    count = 0
    for c in spec.calls:
        for name, _, _ in c.variants:
            w(f'    "{name}",')
            count += 1
    w("};")
    w()
    w(f"const size_t hed_{api}_real_count = {count};")
    w()
    for c in spec.calls:
        args = ", ".join(f"a->{a.name}" for a in c.args)
        w(f"static {result}")
        w(f"real_{c.name}(struct hed_layer *self, struct hed_{c.name} *a)")
        with w.block(""):
            real = f"hed_{api}_real.{c.name}"
            if c.ptds is not None:
                w(f"__typeof__({real}) f = a->ptds ? {real}{c.suffix} : {real};")
            else:
                w(f"__typeof__({real}) f = {real};")
            w()
            w("if (__builtin_expect(f == NULL, 0))")
            w(f"    return hed_{api}_not_in_driver(self, HED_{c.name});")
            w(f"return f({args});")
        w()
    w(f"const struct hed_{api}_ops hed_{api}_real_ops = {{")
    for c in spec.calls:
        w(f"    .{c.name} = real_{c.name},")
    w("};")
    return {f"{api}_real.h": h.text(), f"{api}_real.c": w.text()}
