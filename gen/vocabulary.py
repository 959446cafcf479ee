"""The vocabulary of a heddle spec, and how a spec is loaded.

A spec file is plain Python that calls the functions below: `enum`, `struct`, `union`, `handle`,
`alias`, `const`, `func` and `call`. All files of one spec are executed, in the order of its
`__init__.py`, in one shared name space that already contains this vocabulary. A type is visible by
its own name from the line after its description.
"""

import fnmatch
import re
import traceback
from pathlib import Path

from gen import effects, roles, travel
from gen.model import (CDPTR, CPTR, DPTR, PTR, SCALARS, STR, Alias, Arg, Array, Bytes, Call, Const,
                       Enum, Field, Func, Handle, Pointer, Record, Ref, Scalar, Shape, Spec,
                       SpecError, TextBuf, Type, fail, here, names_in)

NUMBER_MAX = 65535  # a call's number is 16 bits in a trace


class Vocabulary:
    """Bound to one Spec; its public methods are the words of the language."""

    def __init__(self, spec):
        self._spec = spec

    def words(self):
        words = {n: getattr(self, n) for n in dir(self) if not n.startswith("_") and n != "words"}
        words.update(SCALARS)
        words.update(PTR=PTR, CPTR=CPTR, DPTR=DPTR, CDPTR=CDPTR, STR=STR, Ref=Ref, Array=Array,
                     Bytes=Bytes, TextBuf=TextBuf, F=Field, Ptr=Pointer, Span=effects.Span,
                     Roles=roles.Roles)
        words["In"] = lambda t, n, **kw: Arg("in", t, n, **kw)
        words["Out"] = lambda t, n, **kw: Arg("out", t, n, **kw)
        words["InOut"] = lambda t, n, **kw: Arg("inout", t, n, **kw)
        return words

    def api(self, prefix, result, headers, after=None, short=None):
        """First line of a spec: symbol prefix, result enum's name, NVIDIA's headers, what calls may
        not overtake by default, and the result that sets the counts of arrays too short."""
        self._spec.prefix, self._spec.result_name, self._spec.headers = prefix, result, headers
        self._spec.after, self._spec.short = after, short

    def export(self, *names):
        """Functions that the front exports besides the calls; written by hand."""
        self._spec.exports += names

    def local(self, why, *patterns):
        """Calls (`cuGL*`) that are made in the program's own process only."""
        for p in patterns:
            calls = [c for c in self._spec.calls if fnmatch.fnmatchcase(c.name, p)]
            if not calls:
                fail(here(), p, "matches no call")
            for c in calls:
                c.local = why

    def area(self, name, *patterns):
        """The topic of calls (`cuMemcpy*`), for people. The first area that matches a call counts.
        A spec that has areas has one for every call."""
        calls = [c for c in self._spec.calls if c.area is None
                 and any(fnmatch.fnmatchcase(c.name, p) for p in patterns)]
        if not calls:
            fail(here(), name, "is the area of no call")
        for c in calls:
            c.area = name

    def const(self, name, value):
        """A macro of NVIDIA's header: a number, or a piece of C."""
        self._spec.add(Const(name, value), name)

    def alias(self, name, base, code=None):
        return self._spec.add(Alias(name, base, code), name)

    def handle(self, name, kind, target=None):
        return self._spec.add(Handle(name, kind, target or f"struct {name}_st"), name)

    def func(self, name, ret, params):
        return self._spec.add(Func(name, ret, params), name)

    def enum(self, name, **values):
        numbers = {k: v[0] if isinstance(v, tuple) else v for k, v in values.items()}
        texts = {k: v[1] for k, v in values.items() if isinstance(v, tuple)}
        for k in numbers:
            if not isinstance(numbers[k], int):
                fail(here(), name, k, "an enum value must be a number")
        t = self._spec.add(Enum(name, numbers, texts), name)
        if name == getattr(self._spec, "result_name", None):
            self._spec.result = t
        return t

    def struct(self, name, *fields, align=None):
        return self._spec.add(self._record(name, "struct", fields, align=align), name)

    def union(self, name, *fields, tag=None, cases=None):
        return self._spec.add(self._record(name, "union", fields, tag, cases), name)

    def inner(self, keyword, *fields, cases=None):
        """An inline struct or union: the type of one field of the record around it."""
        return self._record(None, keyword, fields, None, cases)

    def call(self, name, *args, since=0, base=None, ptds=None, blocks=False, after=None,
             by_hand=None, stream=None, header=None, **words):
        where = here()
        spec = self._spec
        for a in args:
            if not isinstance(a, Arg):
                fail(where, name, "an argument must be In, Out or InOut")
            if not isinstance(a.type, (Type, Shape)):
                fail(a.where, name, a.name, f"not a type: {a.type!r}")
        c = Call(name, list(args), since, base or re.sub(r"_v\d+$", "", name),
                 since if ptds is True else ptds, blocks, after, by_hand, where)
        if stream:
            self._check_stream(c, stream)
            c.stream = stream
        c.after = after or spec.after or ("stream" if c.stream else "all")
        if c.after not in ("stream", "all", "none"):
            fail(where, name, f"after='{c.after}' is neither stream, all nor none")
        c.header = header
        if spec.call(name):
            fail(where, name, "described twice")
        seen = set()
        for a in c.args:
            if a.name in seen:
                fail(a.where, name, a.name, "two arguments of one name")
            seen.add(a.name)
        for a in c.args:
            self._check_arg(c, a)
            if spec.short and a.dir == "inout" and a.on is None and any(
                    re.search(rf"\*{a.name}\b", str(getattr(b.shape, "count", ""))) for b in args):
                a.on = [spec.short]
        for a in c.args:
            self._check_on(c, a)
        effects.check(spec, c, effects.Effects(**words))
        spec.calls.append(c)

    def _check_stream(self, c, path):
        """`config.hStream`: a field behind a pointer; `*pStream`: what a pointer points at."""
        name, _, field = path.lstrip("*").partition(".")
        a = c.arg(name)
        target = a and (a.shape.type if a.shape else a.type)
        if not a or not a.is_pointer:
            fail(c.where, c.name, f"stream='{path}': '{name}' is no pointer argument")
        if field and not (isinstance(target, Record) and field in {f.name for f in target.fields}):
            fail(c.where, c.name, f"stream='{path}': no field '{field}'")

    def _check_on(self, c, a):
        if a.on is None:
            return
        if a.dir == "in" or isinstance(a.shape, (Array, Bytes, TextBuf)):
            fail(a.where, c.name, a.name, "on= is for single values that come out")
        results = self._spec.result.values if self._spec.result else {}
        for result in [] if a.on == "failure" else a.on:
            if not results.get(result):
                fail(a.where, c.name, a.name, f"on='{result}' is no failure")

    def _check_arg(self, c, a):
        s = a.shape
        if a.tag and not c.arg(a.tag):
            fail(a.where, c.name, a.name, f"tag '{a.tag}' is no argument")
        for what in (a.new, a.free):
            if what and what not in self._spec.all_kinds:
                fail(a.where, c.name, a.name, f"no handle of kind '{what}'")
        if s is None:
            if a.dir == "in" and a.opt:
                fail(a.where, c.name, a.name, "opt= is for pointers")
            return
        for n in names_in(getattr(s, "count", "")):
            other = c.arg(n)
            if n == "sizeof":
                continue
            if other is None:
                fail(a.where, c.name, a.name, f"length uses '{n}', which is no argument")
            if other is a or not isinstance(other.type, (Scalar, Alias, Enum)):
                fail(a.where, c.name, a.name, f"length uses '{n}', which is no number")
        if isinstance(s, TextBuf) and a.dir != "out":
            fail(a.where, c.name, a.name, "TextBuf is for Out")

    def kind(self, *names):
        """Objects that are known by an address or a number rather than by a handle type."""
        self._spec.kinds.update(names)

    def device_memory(self, kinds, words):
        """Calls that make or end an object of these kinds, or have one of these words in their
        names, must say memory=, or be in an uncounted() line."""
        for k in kinds:
            if k not in self._spec.all_kinds:
                fail(here(), k, "no handle is of this kind")
        self._spec.memory_kinds, self._spec.memory_words = kinds, words

    def uncounted(self, why, *names):
        """Calls that a limit on device memory need not know of."""
        for n in names:
            c = self._spec.call(n)
            if c is None:
                fail(here(), n, "no such call")
            if c.effects.memory or c.uncounted:
                fail(here(), n, "says memory=" if c.effects.memory else "is named twice")
            c.uncounted = why

    def _record(self, name, keyword, fields, tag=None, cases=None, align=None):
        where = here()
        names = {f.name for f in fields}
        for f in fields:
            if not isinstance(f, Field):
                fail(where, name, "a field must be F(type, name)")
            if not isinstance(f.type, (Type, Shape)):
                fail(f.where, name, f.name, f"not a type: {f.type!r}")
            for n in names_in(getattr(f.type, "count", "")):
                if n not in names:
                    fail(f.where, name, f.name, f"length uses '{n}', which is no field")
        r = Record(name, keyword, list(fields), tag, cases, align, where)
        if tag and tag not in names:
            fail(where, name, f"tag '{tag}' is no field")
        for f in fields:
            if f.tag and f.tag not in names:
                fail(f.where, name, f.name, f"tag '{f.tag}' is no field")
            if f.when and f.when[0] not in names:
                fail(f.where, name, f.name, f"when= uses '{f.when[0]}', which is no field")
        for member in r.cases.values():
            if member not in names:
                fail(where, name, f"case '{member}' is no field")
        return r


# ---- loading ----------------------------------------------------------------------------------


def execute(spec, path, words):
    """Run the files of the spec at `path` (a folder with FILES in its __init__.py, or one file)."""
    scope = spec.scope
    scope.update(words)
    files = [path]
    if path.is_dir():
        listing = {}
        head = path / "__init__.py"
        exec(compile(head.read_text(), str(head), "exec"), listing)
        files = [path / f"{name}.py" for name in listing["FILES"]]
    for f in files:
        try:
            exec(compile(f.read_text(), str(f), "exec"), scope)
        except SpecError:
            raise
        except SyntaxError as e:
            raise SpecError(f"{f}:{e.lineno}: {e.msg}") from e
        except (ArithmeticError, AttributeError, LookupError, NameError, TypeError,
                ValueError) as e:
            line = next((t.lineno for t in reversed(traceback.extract_tb(e.__traceback__))
                         if t.filename == str(f)), "?")
            raise SpecError(f"{f}:{line}: {e}") from e
    if spec.result is None:
        raise SpecError(f"{files[0]}:1: no api() line, or its result enum is not described")


def load(path, ids=None):
    """The spec at `path`, with numbers, and checked as a whole."""
    path = Path(path)
    spec = Spec(path.stem)
    execute(spec, path, Vocabulary(spec).words())
    number(spec, Path(ids) if ids else path.with_suffix(".ids"))
    travel.check(spec)
    effects.finish(spec)
    return spec


def number(spec, path):
    """Give every call its wire number. Numbers are append-only: see tests/golden."""
    ids = {}
    for n, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not words[0].isdigit():
            raise SpecError(f"{path}:{n}: expected 'NUMBER NAME'")
        if words[1] in ids or int(words[0]) in ids.values():
            raise SpecError(f"{path}:{n}: {words[1]}: number or name used twice")
        if not 0 < int(words[0]) <= NUMBER_MAX:
            raise SpecError(f"{path}:{n}: {words[1]}: numbers are 1 to {NUMBER_MAX}")
        ids[words[1]] = int(words[0])
    for k in range(1, len(ids) + 1):
        if k not in ids.values():  # tables are indexed by number
            raise SpecError(f"{path}: nothing has number {k}, but something has a larger one")
    for c in spec.calls:
        if c.name not in ids:
            raise SpecError(f"{c.where}: {c.name}: has no number in {path.name}; append one")
        c.id = ids[c.name]
    gone = set(ids) - {c.name for c in spec.calls}
    if gone:
        raise SpecError(f"{path}: {sorted(gone)[0]}: numbered, but no call of that name")
