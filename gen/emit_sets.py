"""emit_sets: which calls do what, as X-macros (`<api>_sets.h`).

A layer that treats some calls alike writes one macro and has it expanded for the set: which calls
these are is said once, in the spec.
"""

from gen.effects import DOES, WORK
from gen.model import Alias, Enum, Handle, Scalar
from gen.roles import Roles, c_roles
from gen.writer import Writer, c_kind

ROLES = {
    "defer": "may be made later, by another thread",
    "grid": "launches a kernel: where its grid is",
    "travel": "is sent, and a function of the worker looks at its arguments",
    "relay": "is sent as the program made it",
    "memory": "takes, frees, maps or tells of device memory",
    "null": "the null backend has a function for it",
    "offline": "can be answered where there is no driver",
}


def emit(spec):
    api = spec.name.upper()
    calls = sorted(spec.calls, key=lambda c: c.id)
    w = Writer(f"Sets of {spec.name} calls: SET(X) is X(call) for each call of the set, or "
               "X(call, class, roles...) over its arguments `a`.")
    w("#pragma once")
    for does, text in DOES.items():
        if does not in ("make", "end", "set", "ask"):
            _set(w, f"HED_{api}_DOES_{does.upper()}", text,
                 [c for c in calls if c.effects.does == does])
    for kind in sorted({a.free for c in calls for a in c.args if a.free}):
        _set(w, f"HED_{api}_END_{c_kind(kind)}", f"ends an object of kind {kind}",
             [c for c in calls if any(a.free == kind for a in c.args)])
    _set(w, f"HED_{api}_WORK", "takes the GPU's time: " + ", ".join(WORK),
         [c for c in calls if c.effects.does in WORK])
    _set(w, f"HED_{api}_TRAVEL", "is sent to a worker by the remote backend",
         [c for c in calls if c.effects.travel])
    for word, text in ROLES.items():
        name = "GUARD" if word == "travel" else word.upper()
        having = [(c, getattr(c.effects, word)) for c in calls
                  if isinstance(getattr(c.effects, word), Roles)]
        _roles(w, f"HED_{api}_{name}", text, having)
        classes = sorted({roles.name for _, roles in having})
        for one in classes if len(classes) > 1 else []:
            _roles(w, f"HED_{api}_{name}_{one.upper()}", f"the same, as {one}",
                   [(c, roles) for c, roles in having if roles.name == one])
    _questions(w, f"HED_{api}_QUESTIONS", calls)
    return {f"{spec.name}_sets.h": w.text()}


def _roles(w, name, text, calls):
    """X(call, class, roles...): the roles that the arguments of a call have in its class."""
    w()
    w(f"/* {text} */")
    w(f"#define {name}(X)" + (" \\" if calls else ""))
    for i, (c, roles) in enumerate(calls):
        items = ", ".join([c.name, roles.name, *c_roles(c, roles)])
        w(f"    X({items})" + (" \\" if i < len(calls) - 1 else ""))


QUESTION_WORDS = 3  # HED_TRACE_QUESTION_WORDS


def _questions(w, name, calls):
    """X(call, given, same, words...): whether all outputs are there; whether the question is that
    of `o`, which has the words of an earlier one; the words: question and answer."""
    calls = [c for c in calls if _is_question(c)]
    w()
    w("/* only asks, and question and answer are a few plain values */")
    w(f"#define {name}(X)" + (" \\" if calls else ""))
    for i, c in enumerate(calls):
        given = " && ".join(f"a->{a.name}" for a in c.args if a.dir == "out")
        same = " && ".join(f"o->words[{n}] == {_word(a)}" for n, a in enumerate(c.args)
                           if a.dir == "in") or "true"
        words = [_word(a) for a in c.args] + ["0"] * (QUESTION_WORDS - len(c.args))
        items = ", ".join([c.name, given, same, *words])
        w(f"    X({items})" + (" \\" if i < len(calls) - 1 else ""))


def _is_question(c):
    return (c.effects.does == "ask" and c.ptds is None and bool(c.outs)
            and len(c.args) <= QUESTION_WORDS
            and not any(a.dir == "inout" or a.by_hand or a.opt for a in c.args)
            and all(isinstance(a.type, (Scalar, Enum, Handle, Alias)) for a in c.args)
            and not any(a.type.code.startswith("f") for a in c.args))


def _word(a):
    value = f"*a->{a.name}" if a.dir == "out" else f"a->{a.name}"
    return f"(uint64_t)(uintptr_t){value}" if a.type.size == 8 else f"(uint64_t){value}"


def _set(w, name, text, calls):
    w()
    w(f"/* {text} */")
    w(f"#define {name}(X)" + (" \\" if calls else ""))
    for c in calls:
        w(f"    X({c.name})" + (" \\" if c is not calls[-1] else ""))
