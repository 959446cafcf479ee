"""emit_doc: tables for people: calls (`<api>_calls.md`) and their encoding (`wire_<api>.md`)."""

from gen.travel import can_answer, can_travel


def emit(spec):
    rows = [f"# {spec.name}: calls", "",
            f"{len(spec.calls)} calls, {sum(len(list(c.variants)) for c in spec.calls)} exported "
            "names. Generated from the spec.", "",
            "| no. | call | area | does | since | per-thread variant | stream | waits | may "
            "overtake |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for c in sorted(spec.calls, key=lambda c: c.id):
        overtake = {"none": "everything", "stream": "other streams", "all": "nothing"}[c.after]
        suffix = f"`{c.suffix}`" if c.suffix else ""
        does = c.effects.does.replace("_", " ")
        rows.append(f"| {c.id} | `{c.name}` | {c.area or ''} | {does} | {c.since or ''} | "
                    f"{suffix} | {c.stream or ''} | {'yes' if c.blocks else ''} | {overtake} |")
    return {f"{spec.name}_calls.md": "\n".join(rows) + "\n", f"wire_{spec.name}.md": _wire(spec)}


def _code(a):
    code = "p" if a.by_hand else a.type.code
    count = getattr(a.type, "count", None)
    return f"{code}({count})" if count is not None and not a.by_hand else code


def _wire(spec):
    """Codes are those of docs/trace-format.md; a count is in parentheses."""
    rows = [f"# {spec.name}: calls on the wire", "",
            "Request and reply, argument by argument: docs/wire.md, codes as in "
            "docs/trace-format.md, counts in parentheses. `?` is the byte that says whether an "
            "output is wanted. Generated from the spec.", "",
            "| no. | call | request | reply | after a failure | travels |",
            "| --- | --- | --- | --- | --- | --- |"]
    for c in sorted(spec.calls, key=lambda c: c.id):
        request = [f"{a.name} " + {"in": "", "out": "?", "inout": "?"}[a.dir]
                   + ("" if a.dir == "out" else _code(a)) for a in c.args]
        if c.ptds is not None:
            request.append("ptds u8")
        reply = [f"{a.name} {_code(a)}" for a in c.outs]
        failed = [f"{a.name} ({'any' if a.on == 'failure' else ', '.join(a.on)})"
                  for a in c.outs if a.on]
        travels = "yes" if can_answer(c) else "without an answer" if can_travel(c) else (
            f"no: {c.local}" if c.local else "no")
        rows.append(f"| {c.id} | `{c.name}` | {', '.join(request)} | {', '.join(reply)} | "
                    f"{', '.join(failed)} | {travels} |")
    return "\n".join(rows) + "\n"
