"""The vocabulary of a heddle spec, and the model it builds.

A spec file is plain Python that calls the functions below: `enum`, `struct`, `union`, `handle`,
`alias`, `const`, `func` and `call`. All files of one spec are executed, in the order its
`__init__.py` gives, in one shared name space that already holds this vocabulary; a type is visible
by its own name from the line after it was described. Nothing here writes C: the emitters do.

Every mistake is reported as `file:line: call: argument: reason` by raising SpecError.
"""

import fnmatch
import re
import sys
import traceback
from pathlib import Path

from gen import effects
from gen.errors import SpecError, fail

NUMBER_MAX = 65535  # a call's number is 16 bits in a trace
PTR_SIZE = 8  # LP64 is the only data model CUDA supports today


def _where():
    """File and line of the spec line being executed (the nearest frame that is not ours)."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


# ---- types ------------------------------------------------------------------------------------


class Type:
    """A C value type: how C spells it, how large it is, and its schema code
    (docs/trace-format.md)."""

    def __init__(self, name, size, align, code):
        self.name, self.size, self.align, self.code = name, size, align, code

    @property
    def c(self):
        return self.name

    def deep(self):
        """Whether a value holds pointers to more data that travels with it."""
        return False


class Scalar(Type):
    pass


class Alias(Type):
    """A typedef of a scalar, e.g. CUdeviceptr."""

    def __init__(self, name, base, code=None):
        super().__init__(name, base.size, base.align, code or base.code)
        self.base = base


class Handle(Type):
    """An opaque object; `kind` is what `new=` and `free=` speak of."""

    def __init__(self, name, kind, target):
        super().__init__(name, PTR_SIZE, PTR_SIZE, f"h.{kind}")
        self.kind, self.target = kind, target


class Pointer(Type):
    """An address that is passed on as a number: nobody between the ends looks behind it.
    device: it is one of device memory, although C says `void *`."""

    def __init__(self, c="void *", device=False):
        super().__init__(c, PTR_SIZE, PTR_SIZE, "p")
        self.device = device


class Func(Type):
    """A pointer to a function of the application."""

    def __init__(self, name, ret, params):
        super().__init__(name, PTR_SIZE, PTR_SIZE, "p")
        self.ret, self.params = ret, params


class Enum(Type):
    def __init__(self, name, values, texts):
        super().__init__(name, 4, 4, f"e.{name}")
        self.values, self.texts = values, texts  # name -> number; name -> human text


class Field:
    """A member. n: it is an array of n; tag: the sibling that says which union member is live;
    when: (sibling, value, ...): nobody looks at it unless the sibling has one of the values."""

    def __init__(self, type_, name, n=None, tag=None, when=None):
        self.type, self.name, self.n, self.tag, self.when = type_, name, n, tag, when
        self.where = _where()


class Record(Type):
    """A struct or a union. An unnamed field of union type is an anonymous member."""

    def __init__(self, name, keyword, fields, tag=None, cases=None, align=None, where="?"):
        self.keyword, self.fields, self.where = keyword, fields, where
        self.tag = tag  # union: the member every case begins with, which tells them apart
        self.cases = cases or {}  # union: tag value -> name of the live member
        self.forced_align = align
        size, alignment = self._layout()
        code = ("s." if keyword == "struct" else "n.") + (name or "")
        super().__init__(name, size, alignment, code)

    def _layout(self):
        offset, alignment = 0, self.forced_align or 1
        for f in self.fields:
            size = f.type.size * (1 if f.n is None else f.n)
            alignment = max(alignment, f.type.align)
            at = 0 if self.keyword == "union" else -(-offset // f.type.align) * f.type.align
            f.offset = at
            offset = max(offset, at + size)
        return -(-offset // alignment) * alignment, alignment

    def deep(self):
        return any(f.type.deep() for f in self.fields)


class Shape:
    """What a pointer argument or field points at."""

    size = align = PTR_SIZE

    def deep(self):
        return True


class Ref(Shape):
    """One value. `mut`: NVIDIA's prototype has no const although the call only reads."""

    def __init__(self, type_, mut=False):
        self.type, self.mut = type_, mut
        self.code = "*" + type_.code


class Array(Shape):
    """`count` values; `count` is an expression over the other arguments or fields."""

    def __init__(self, type_, count, mut=False):
        self.type, self.count, self.mut = type_, count, mut
        self.code = "@" + type_.code


class Bytes(Shape):
    """`count` bytes of bulk data."""

    def __init__(self, count, c="void", mut=False):
        self.type, self.count, self.c_item, self.mut = U8, count, c, mut
        self.code = "b"


class Text(Shape):
    """A zero-terminated string. As Out: the callee hands out the address of one of its own."""

    def __init__(self):
        self.type = CHAR
        self.code = "z"


class TextBuf(Shape):
    """A caller's buffer of `count` characters that takes a zero-terminated string."""

    def __init__(self, count):
        self.type, self.count = CHAR, count
        self.code = "z"


def _scalars():
    table = {
        "CHAR": ("char", 1, "i8"), "I8": ("signed char", 1, "i8"), "U8": ("unsigned char", 1, "u8"),
        "I16": ("short", 2, "i16"), "U16": ("unsigned short", 2, "u16"),
        "I32": ("int", 4, "i32"), "U32": ("unsigned int", 4, "u32"),
        "I64": ("long long", 8, "i64"), "U64": ("unsigned long long", 8, "u64"),
        "LONG": ("long", 8, "i64"), "ULONG": ("unsigned long", 8, "u64"),
        "SIZE": ("size_t", 8, "u64"), "F32": ("float", 4, "f32"), "F64": ("double", 8, "f64"),
    }
    return {k: Scalar(c, n, n, code) for k, (c, n, code) in table.items()}


SCALARS = _scalars()
globals().update(SCALARS)
PTR = Pointer()
CPTR = Pointer("const void *")
DPTR = Pointer("void *", device=True)
CDPTR = Pointer("const void *", device=True)
STR = Text()


# ---- arguments and calls ----------------------------------------------------------------------


class Arg:
    """One parameter. dir is 'in', 'out' or 'inout'.

    opt     the caller may pass NULL for an out pointer
    new     kind of the object a success creates; free: kind of the object it ends
    c       NVIDIA's spelling where it cannot be derived
    by_hand why the generic code passes this pointer on as a number
    tag     the argument that says which member of this union is live
    fills   the call writes behind this by_hand pointer
    on      set by calls that fail too: "failure" for any failure, or a list of results
    """

    def __init__(self, dir_, type_, name, opt=False, new=None, free=None, c=None, by_hand=None,
                 tag=None, fills=False, on=None):
        self.dir, self.type, self.name = dir_, type_, name
        self.on = on
        self.opt, self.new, self.free, self.by_hand = opt, new, free, by_hand
        self.tag, self.fills = tag, fills
        self._c = c
        self.where = _where()

    @property
    def shape(self):
        return self.type if isinstance(self.type, Shape) else None

    @property
    def is_pointer(self):
        """Whether the parameter is a pointer that the call itself follows."""
        return self.dir != "in" or self.shape is not None

    @property
    def c(self):
        """The C declaration of the parameter, without its name."""
        if self._c:
            return self._c
        s = self.shape
        if s is None:
            return self.type.c if self.dir == "in" else f"{self.type.c} *"
        if isinstance(s, Text):
            return "const char *" if self.dir == "in" else "const char **"
        item = s.c_item if isinstance(s, Bytes) else s.type.c
        return ("" if self.dir != "in" or s.mut_() else "const ") + item + " *"

    def decl(self):
        c = self.c
        return f"{c}{self.name}" if c.endswith("*") else f"{c} {self.name}"


def _mut(self):
    return getattr(self, "mut", False)


Shape.mut_ = _mut

_NAME = re.compile(r"[A-Za-z_]\w*")


def names_in(expr):
    """The identifiers a length expression uses."""
    return _NAME.findall(str(expr))


class Call:
    """One function of the API, its per-thread-default-stream variant included.

    since   first driver version that has this signature (cuGetProcAddress)
    base    the name cuGetProcAddress knows it by
    ptds    since-version of the _ptsz/_ptds variant, or None
    stream  where its stream is: an argument, `pointer.field`, `*pointer`, or None
    blocks  it may wait for the device
    after   what queued work it may not overtake: stream, all, none
    header  NVIDIA's header, where it is not one of the API's main ones
    local   why nobody makes it for another process
    effects what it does: gen/effects.py
    """

    def __init__(self, name, args, since, base, ptds, blocks, after, by_hand, where):
        self.name, self.args, self.since, self.where = name, args, since, where
        self.base, self.ptds, self.blocks = base, ptds, blocks
        self.by_hand = by_hand
        self.stream = next((a.name for a in args if isinstance(a.type, Handle) and a.dir == "in"
                            and a.type.kind == "stream"), None)
        self.after = after
        self.header = None
        self.local = None
        self.id = None  # wire number, from the .ids file

    @property
    def suffix(self):
        """NVIDIA writes _ptsz where a stream is an argument or hides in a struct, else _ptds."""
        return "" if self.ptds is None else "_ptsz" if self.stream else "_ptds"

    @property
    def variants(self):
        """Exported names: (name, whether it is the per-thread one, since)."""
        yield self.name, False, self.since
        if self.ptds is not None:
            yield self.name + self.suffix, True, self.ptds

    def arg(self, name):
        return next((a for a in self.args if a.name == name), None)

    @property
    def outs(self):
        return [a for a in self.args if a.dir != "in"]

    @property
    def fails(self):
        """Outputs that failures set, by result; None stands for any failure."""
        found = {}
        for a in self.outs:
            for result in [None] if a.on == "failure" else a.on or []:
                found.setdefault(result, []).append(a)
        return found


class Spec:
    """Everything one API description said, in order."""

    def __init__(self, name):
        self.name = name  # cuda, nvml
        self.prefix = None  # cu, nvml
        self.result = None  # Enum of results
        self.headers = []  # NVIDIA's, for the build's proof
        self.after = None
        self.short = None  # the result that says a caller's array is too short
        self.types = []  # in order of description; consts too
        self.calls = []
        self.kinds = set()
        self.exports = []  # names of the library that are no calls
        self.scope = {}

    def add(self, thing, name):
        if name in self.scope:
            fail(_where(), name, "described twice")
        self.scope[name] = thing
        self.types.append(thing)
        return thing

    def call(self, name):
        return next((c for c in self.calls if c.name == name), None)

    @property
    def enums(self):
        return [t for t in self.types if isinstance(t, Enum)]

    @property
    def records(self):
        return [t for t in self.types if isinstance(t, Record)]


class Const:
    def __init__(self, name, c):
        self.name, self.c = name, c


# ---- the functions a spec file calls ----------------------------------------------------------


class Vocabulary:
    """Bound to one Spec; its public methods are the words of the language."""

    def __init__(self, spec):
        self._spec = spec

    def words(self):
        words = {n: getattr(self, n) for n in dir(self) if not n.startswith("_") and n != "words"}
        words.update(SCALARS)
        words.update(PTR=PTR, CPTR=CPTR, DPTR=DPTR, CDPTR=CDPTR, STR=STR, Ref=Ref, Array=Array,
                     Bytes=Bytes, TextBuf=TextBuf, F=Field, Ptr=Pointer)
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
                fail(_where(), p, "matches no call")
            for c in calls:
                c.local = why

    def const(self, name, c):
        self._spec.add(Const(name, str(c)), name)

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
                fail(_where(), name, k, "an enum value must be a number")
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
        where = _where()
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
        effects.check(c, effects.Effects(**words))
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
            if what and what not in self._kinds():
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

    def _kinds(self):
        """Kinds of objects: those of handles, and of numbers that name objects."""
        codes = [t.code for t in self._spec.types if isinstance(t, Type)]
        return {c[2:] for c in codes if c.startswith("h.")} | self._spec.kinds

    def kind(self, *names):
        """Objects that are known by an address or a number rather than by a handle type."""
        self._spec.kinds.update(names)

    def _record(self, name, keyword, fields, tag=None, cases=None, align=None):
        where = _where()
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


def load(path, ids=None):
    """Execute the spec at `path` (a folder with FILES in its __init__.py, or one file)."""
    path = Path(path)
    spec = Spec(path.stem)
    scope = spec.scope
    scope.update(Vocabulary(spec).words())
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
    number(spec, Path(ids) if ids else path.with_suffix(".ids"))
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
