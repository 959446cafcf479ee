"""Roles: what the arguments of a call are to code that treats many calls alike.

    memory=Roles("alloc", out="*dptr", bytes="bytesize")

says that for a limit on memory the call is an `alloc`: `bytesize` is how much, and what `dptr`
points at takes the result. emit_sets makes of it one line of an X-macro,

    X(cuMemAlloc_v2, alloc, .out = HED_PLACE(a->dptr), .bytes = a->bytesize)

so that a layer writes one function for `alloc` and none for cuMemAlloc_v2. Roles without names are
arguments of a function: Roles("alloc_host", "pp", "bytesize"). What a role may be:

    "x"      the value of an argument; handles and addresses are numbers
    "p.f"    a field behind a pointer, 0 if that is NULL; a field of a struct
    "*p"     the place behind a pointer (struct hed_place); "*p.f" that of a field there
    "&x"     the address of the argument itself
    "CU_X"   a constant of the spec; or a number
"""

import re

from gen.model import Const, Enum, Handle, Pointer, fail

_FORM = re.compile(r"([*&]?)([A-Za-z_]\w*)((?:\.\w+)*)")


class Roles:
    """A class of calls, and which arguments play its roles."""

    def __init__(self, name, *values, **roles):
        self.name, self.values, self.roles = name, values, roles


def check(spec, c, word, roles):
    """Refuses roles that nothing in the call can play."""
    if roles is None:
        return
    if not isinstance(roles, Roles):
        fail(c.where, c.name, f'{word}= is Roles("what it is to those who read it", ...)')
    for value in (*roles.values, *roles.roles.values()):
        _check_value(spec, c, word, value)


def c_roles(c, roles):
    """The roles in C, over a pointer `a` to the arguments."""
    return [*(_value(c, v) for v in roles.values),
            *(f".{name} = {_value(c, v)}" for name, v in roles.roles.items())]


def _check_value(spec, c, word, value):
    if isinstance(value, int) or _is_constant(spec, value):
        return
    form = _FORM.fullmatch(value)
    arg = form and (c.arg(form.group(2)) or (form.group(2) == "ptds" and c.ptds is not None))
    if not arg:
        fail(c.where, c.name, f"{word}= uses '{value}', which is no argument and no constant")
    if form.group(1) == "*" and not (arg is not True and arg.is_pointer):
        fail(c.where, c.name, f"{word}= uses '{value}', but '{form.group(2)}' is no pointer")
    t = None if arg is True else arg.shape.type if arg.shape else arg.type
    for field in form.group(3).split(".")[1:]:
        t = _field(t, field)
        if t is None:
            fail(c.where, c.name, f"{word}= uses '{value}': there is no field '{field}'")


def _field(t, name):
    """The type of a field, also of one in an anonymous member."""
    for f in getattr(t, "fields", []):
        found = f.type if f.name == name else _field(f.type, name) if f.name is None else None
        if found:
            return found
    return None


def _is_constant(spec, name):
    return any((isinstance(t, Const) and t.name == name)
               or (isinstance(t, Enum) and name in t.values) for t in spec.types)


def _value(c, value):
    form = _FORM.fullmatch(str(value))
    arg = form and c.arg(form.group(2))
    if not arg:
        return f"a->{value}" if value == "ptds" else str(value)
    mark, x, path = form.group(1), f"a->{arg.name}", form.group(3)[1:]
    if mark == "&":
        return f"&{x}"
    if mark == "*" and not path:
        return f"HED_PLACE({x})"
    if mark == "*":
        return f"HED_PLACE({x} ? &{x}->{path} : NULL)"
    if path:
        return f"({x} ? {x}->{path} : 0)" if arg.is_pointer else f"{x}.{path}"
    if isinstance(arg.type, (Handle, Pointer)) and arg.dir == "in":
        return f"(uint64_t)(uintptr_t){x}"
    return x
