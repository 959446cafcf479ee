"""emit_front: the exported functions, their table for cuGetProcAddress, and the version script."""

from gen.writer import Writer, declare, prototype


def emit(spec):
    names = sorted([n for c in spec.calls for n, _, _ in c.variants] + spec.exports)
    return {
        f"{spec.name}_front.c": _functions(spec),
        f"{spec.name}_procs.c": _procs(spec),
        f"{spec.name}_front.h": _header(spec),
        f"{spec.name}.exports": "".join(f"{n}\n" for n in names),
        # A version script without a version: NVIDIA's libraries have none either.
        f"{spec.name}.map": "{\n    global:\n" + "".join(f"        {n};\n" for n in names)
        + "    local:\n        *;\n};\n",
    }


def _header(spec):
    w = Writer(f"Prototypes of every exported {spec.name} function.")
    w("#pragma once")
    w()
    w(f'#include "gen/{spec.name}_abi.h"')
    w()
    for c in spec.calls:
        for name, _, _ in c.variants:
            w(f"{spec.result.name} {name}{prototype(c)};")
    return w.text()


def _functions(spec):
    api = spec.name
    w = Writer(f"The exported functions of the {api} API.")
    w('#include "core/layer.h"')
    w('#include "core/session.h"')
    w(f'#include "gen/{api}_front.h"')
    w()
    for c in spec.calls:
        if c.by_hand:
            w(f"/* {c.name}: by hand: {c.by_hand} */")
            w()
            continue
        for name, ptds, _ in c.variants:
            w(f"HED_EXPORT {spec.result.name}")
            w(f"{name}{prototype(c)}")
            with w.block(""):
                values = [f".{a.name} = {a.name}" for a in c.args]
                values += [".ptds = true"] if ptds else []
                w(f"struct hed_{c.name} a = {{{', '.join(values) or '0'}}};")
                w("struct hed_layer *top = hed_top();")
                w()
                w(f"return top->{api}->{c.name}(top, &a);")
            w()
    return w.text()


def _procs(spec):
    """Sorted by base name, then by since: a search finds the newest that is not too new."""
    rows = []
    for c in spec.calls:
        for name, ptds, since in c.variants:
            rows.append((c.base, ptds, since, name))
    rows.sort()
    w = Writer(f"Every exported {spec.name} function by name, version and stream flavour.")
    w('#include "front/procs.h"')
    w()
    w(f'#include "gen/{spec.name}_front.h"')
    w()
    w(f"const struct hed_proc hed_{spec.name}_procs[] = {{")
    for base, ptds, since, name in rows:
        w(f'    {{"{base}", "{name}", {since}, {str(ptds).lower()}, (void *){name}}},')
    w("};")
    w()
    w(f"const size_t hed_{spec.name}_proc_count = {len(rows)};")
    return w.text()
