"""emit_forward: what a layer does with calls it does not override (`<api>_forward.c`)."""

from gen.writer import Writer


def emit(spec):
    api, result = spec.name, spec.result.name
    calls = sorted(spec.calls, key=lambda c: c.id)
    w = Writer(f"Forwarding of {api} calls: to the next layer, or to a layer's `any`.")
    w('#include "core/layer.h"')
    w()
    for c in calls:
        w(f"static {result}")
        w(f"forward_{c.name}(struct hed_layer *self, struct hed_{c.name} *a)")
        with w.block(""):
            w(f"return self->next->{api}->{c.name}(self->next, a);")
        w()
        w(f"static {result}")
        w(f"any_{c.name}(struct hed_layer *self, struct hed_{c.name} *a)")
        with w.block(""):
            w(f"return self->type->{api}_any(self, HED_{c.name}, a);")
        w()
    for table in ("forward", "any"):
        w(f"const struct hed_{api}_ops hed_{api}_{table} = {{")
        for c in calls:
            w(f"    .{c.name} = {table}_{c.name},")
        w("};")
        w()
    w(f"{result}")
    w(f"hed_{api}_invoke(struct hed_layer *layer, enum hed_{api}_call id, void *args)")
    with w.block(""):
        w("switch (id) {")
        for c in calls:
            w(f"case HED_{c.name}:")
            w(f"    return layer->{api}->{c.name}(layer, args);")
        w(f"case HED_{api.upper()}_CALLS:")
        w("    break;")
        w("}")
        w(f"return hed_{api}_no_such_call(id);")
    return {f"{api}_forward.c": w.text()}

