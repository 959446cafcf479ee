"""emit_doc: the table of calls for people (`<api>_calls.md`)."""


def emit(spec):
    rows = [f"# {spec.name}: calls", "",
            f"{len(spec.calls)} calls, {sum(len(list(c.variants)) for c in spec.calls)} exported "
            "names. Generated from the spec.", "",
            "| no. | call | since | per-thread variant | stream | waits | answer predictable | may "
            "overtake |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for c in sorted(spec.calls, key=lambda c: c.id):
        overtake = {"none": "everything", "stream": "other streams", "all": "nothing"}[c.after]
        suffix = f"`{c.suffix}`" if c.suffix else ""
        rows.append(f"| {c.id} | `{c.name}` | {c.since or ''} | {suffix} | "
                    f"{c.stream or ''} | {'yes' if c.blocks else ''} | "
                    f"{'yes' if c.predict else ''} | {overtake} |")
    return {f"{spec.name}_calls.md": "\n".join(rows) + "\n"}
