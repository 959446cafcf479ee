"""The model of an API: types, arguments, calls. `gen/vocabulary.py` builds it from a spec.

Nothing here writes C: the emitters do. Every mistake in a spec is reported as
`file:line: call: argument: reason` by raising SpecError.
"""

import re
import sys
from pathlib import Path

PTR_SIZE = 8  # LP64 is the only data model CUDA supports today


class SpecError(Exception):
    """A description makes no sense. The text says where and why."""


def fail(where, *parts):
    raise SpecError(": ".join([where, *[str(p) for p in parts if p]]))


def here():
    """File and line of the spec line being executed (the nearest frame that is not the
    generator's)."""
    frame = sys._getframe(1)
    while frame and Path(frame.f_code.co_filename).parent == Path(__file__).parent:
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
    """An opaque object. `new=` and `free=` refer to its `kind`."""

    def __init__(self, name, kind, target):
        super().__init__(name, PTR_SIZE, PTR_SIZE, f"h.{kind}")
        self.kind, self.target = kind, target


class Pointer(Type):
    """An address that is passed on as a number, and that no code on the way follows.
    device: it is an address of device memory, although C says `void *`."""

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
    when: (sibling, value, ...): it is used only if the sibling has one of the values."""

    def __init__(self, type_, name, n=None, tag=None, when=None):
        self.type, self.name, self.n, self.tag, self.when = type_, name, n, tag, when
        self.where = here()


class Record(Type):
    """A struct or a union. An unnamed field of union type is an anonymous member."""

    def __init__(self, name, keyword, fields, tag=None, cases=None, align=None, where="?"):
        self.keyword, self.fields, self.where = keyword, fields, where
        self.tag = tag  # union: the member with which every case begins, and which tells them apart
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
    """A zero-terminated string. As Out: the callee returns the address of a string of its own."""

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
    c       NVIDIA's spelling, if it cannot be derived
    by_hand why the generic code passes this pointer on as a number
    tag     the argument that says which member of this union is live
    fills   the call writes behind this by_hand pointer
    on      also set by calls that fail: "failure" for any failure, or a list of results
    extent  how much of the memory behind this address the call touches: gen/effects.py
    """

    def __init__(self, dir_, type_, name, opt=False, new=None, free=None, c=None, by_hand=None,
                 tag=None, fills=False, on=None, extent=None):
        self.dir, self.type, self.name = dir_, type_, name
        self.on, self.extent = on, extent
        self.opt, self.new, self.free, self.by_hand = opt, new, free, by_hand
        self.tag, self.fills = tag, fills
        self._c = c
        self.where = here()

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
    base    the name by which cuGetProcAddress knows it
    ptds    since-version of the _ptsz/_ptds variant, or None
    stream  where its stream is: an argument, `pointer.field`, `*pointer`, or None
    blocks  it may wait for the device
    after   what queued work it may not overtake: stream, all, none
    header  NVIDIA's header, if it is not one of the API's main ones
    local   why it is never made for another process
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
        self.area = None  # the topic that people would look under
        self.uncounted = None  # why a limit on memory need not count it
        self.effects = None
        self.id = None  # wire number, from the .ids file

    @property
    def suffix(self):
        """NVIDIA writes _ptsz if a stream is an argument or is in a struct, otherwise _ptds."""
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
        """Outputs that failures set, by result. None means any failure."""
        found = {}
        for a in self.outs:
            for result in [None] if a.on == "failure" else a.on or []:
                found.setdefault(result, []).append(a)
        return found


class Spec:
    """Everything that the description of one API says, in order."""

    def __init__(self, name):
        self.name = name  # cuda, nvml
        self.prefix = None  # cu, nvml
        self.result = None  # Enum of results
        self.headers = []  # NVIDIA's headers, for the build's proof
        self.after = None
        self.short = None  # the result that says a caller's array is too short
        self.types = []  # in order of description; consts too
        self.calls = []
        self.kinds = set()
        self.memory_kinds, self.memory_words = [], []  # device_memory()
        self.exports = []  # names of the library that are no calls
        self.scope = {}

    def add(self, thing, name):
        if name in self.scope:
            fail(here(), name, "described twice")
        self.scope[name] = thing
        self.types.append(thing)
        return thing

    def call(self, name):
        return next((c for c in self.calls if c.name == name), None)

    @property
    def all_kinds(self):
        """Kinds of objects: those of handles, and of numbers that name objects."""
        codes = [t.code for t in self.types if isinstance(t, Type)]
        return {c[2:] for c in codes if c.startswith("h.")} | self.kinds

    @property
    def consts(self):
        return [t for t in self.types if isinstance(t, Const)]

    @property
    def enums(self):
        return [t for t in self.types if isinstance(t, Enum)]

    @property
    def records(self):
        return [t for t in self.types if isinstance(t, Record)]


class Const:
    """A macro: a number, or a piece of C such as `((CUstream)0x1)`."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    @property
    def c(self):
        return f"({self.value})" if isinstance(self.value, int) and self.value < 0 else self.value
