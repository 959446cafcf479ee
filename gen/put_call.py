"""A part of emit_wire: request and reply of a call that succeeded, in one function."""


def put_both(w, c):
    w("static void")
    w(f"put_call_{c.name}(struct hed_enc *e, const void *args)")
    with w.block(""):
        w(f"put_request_{c.name}(e, args);")
        if c.outs:
            w(f"put_reply_{c.name}(e, args);")
    w()


def dispatch_both(w, spec):
    """Uses a table, because the trace does this for every call, and a table touches fewer cache
    lines than two switches."""
    api = spec.name
    w("void")
    w(f"hed_{api}_put_call(struct hed_enc *e, enum hed_{api}_call id, const void *args)")
    with w.block(""):
        w(f"static void (*const calls[HED_{api.upper()}_CALLS])(struct hed_enc *e, "
          "const void *args) = {")
        for c in spec.calls:
            w(f"    [HED_{c.name}] = put_call_{c.name},")
        w("};")
        w()
        with w.block(f"if ((uint32_t)id >= HED_{api.upper()}_CALLS || !calls[id])"):
            w("e->err = HED_EFORMAT;")
            w("return;")
        w("calls[id](e, args);")
    w()
