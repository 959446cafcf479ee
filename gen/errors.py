"""How a mistake in a spec is reported: `file:line: call: argument: reason`."""


class SpecError(Exception):
    """A description that makes no sense; the text says where and why."""


def fail(where, *parts):
    raise SpecError(": ".join([where, *[str(p) for p in parts if p]]))
