"""The vocabulary of spec/cudart: the runtime API, each of whose calls says how it is answered.

Types are described as in the other specs. A call says one of

    driver="cuStreamCreate(pStream, 0)"  one driver call with these arguments; without parentheses
                                         it gets all arguments of the call in their order
    by_hand=True                         a function of src/cudart, hed_rt_<name>()
    missing="why"                        answered with cudaErrorNotSupported, and said once

and in which editions of the library it exists: `editions="12.."`, `"..11"`, `"12"`; without it, in
all. Two calls of one name are two forms of one function in different editions; `as_` then tells
apart the functions of src/cudart. `plain=True`: the result is not an error of the program's, so it
is not remembered for cudaGetLastError(). A call makes sure that the thread has a context, unless it
is plain or named in without_context(). `since`: the first minor version of NVIDIA's headers that
has the call. `header`: it is not in the main ones, so that it is not compared.
"""

import fnmatch

from gen.model import Arg, Record, Shape, Spec, Type, fail, here, names_in
from gen.vocabulary import Vocabulary, execute

# Name in the library's file -> what it says of itself.
EDITIONS = {"8.0": 8000, "10.2": 10020, "11.0": 11080, "12": 12090, "13": 13000}


class RuntimeCall:
    """One exported function, as some editions have it."""

    def __init__(self, name, args, editions, where):
        self.name, self.args, self.editions, self.where = name, args, editions, where
        self.suffix = self.as_ = self.driver = self.by_hand = self.missing = None
        self.plain, self.since, self.header = False, 0, None
        self.arrives = set(editions)  # those in which it sees to a context

    @property
    def variants(self):
        """Exported names, and whether each is the one of the per-thread default stream."""
        yield self.name, False
        if self.suffix:
            yield self.name + self.suffix, True

    def arg(self, name):
        return next((a for a in self.args if a.name == name), None)


class RuntimeVocabulary(Vocabulary):
    """Bound to one Spec; `cuda` is the spec of the driver API."""

    def __init__(self, spec, cuda):
        super().__init__(spec)
        self._cuda = cuda

    def call(self, name, *args, ptds=None, editions=None, as_=None, driver=None, by_hand=False,
             missing=None, plain=False, since=0, header=None):
        where = here()
        for a in args:
            if not isinstance(a, Arg) or not isinstance(a.type, (Type, Shape)):
                fail(where, name, "an argument must be In, Out or InOut of a type")
        c = RuntimeCall(name, list(args), self._editions(name, editions), where)
        if sum(map(bool, (driver, by_hand, missing))) != 1:
            fail(where, name, "say one of driver=, by_hand= and missing=")
        c.by_hand, c.missing, c.plain = by_hand, missing, plain
        c.since, c.header = since, header
        c.as_ = as_ or name
        streams = any(getattr(a.type, "kind", None) == "stream" for a in args)
        c.suffix = ("_ptsz" if streams else "_ptds") if ptds is True else ptds
        if driver:
            c.driver = self._driver(c, driver)
        for other in self._spec.calls:
            if other.name == name and set(other.editions) & set(c.editions):
                fail(where, name, "described twice for one edition")
        self._spec.calls.append(c)

    def without_context(self, *patterns, editions=None):
        """Calls (`cudaMemPool*`) that leave a thread without a context as it is."""
        chosen = set(self._editions("without_context", editions))
        for p in patterns:
            calls = [c for c in self._spec.calls
                     if fnmatch.fnmatchcase(c.name, p) and chosen & set(c.editions)]
            if not calls:
                fail(here(), p, "matches no call")
            for c in calls:
                c.arrives -= chosen

    def export(self, *names, editions=None):
        """Functions that do not return an error; their fronts are written by hand."""
        for n in names:
            self._spec.exports.append((n, self._editions(n, editions)))

    def typedefs(self, *names):
        """Types that have names without struct, union or enum in NVIDIA's headers."""
        self._spec.typedefs = set(names)

    def _editions(self, name, text):
        keys = list(EDITIONS)
        numbers = {k.split(".")[0]: i for i, k in enumerate(keys)} | {"": None}
        low, dots, high = (text or "..").partition("..")
        if low not in numbers or high not in numbers or not (low or dots):
            fail(here(), name, f"editions='{text}' is no range of editions")
        first = numbers[low] or 0
        last = len(keys) - 1 if dots and not high else numbers[high] if dots else first
        return keys[first:last + 1]

    def _driver(self, c, text):
        """(driver call, C expressions of its arguments)"""
        name, _, rest = text.partition("(")
        d = self._cuda.call(name)
        if d is None:
            fail(c.where, c.name, f"driver='{text}': no such driver call")
        given = [x.strip() for x in rest.rstrip(")").split(",")] if rest else \
            [a.name for a in c.args]
        if len(given) != len(d.args):
            fail(c.where, c.name, f"{name} takes {len(d.args)} arguments, not {len(given)}")
        for x in given:
            for n in names_in(x):
                if not c.arg(n) and n not in self._spec.scope and n not in self._cuda.scope:
                    fail(c.where, c.name, f"driver='{text}': '{n}' is no argument")
        return d, [cast(c.arg(x), x, a) for x, a in zip(given, d.args)]


def is_struct(arg):
    return arg is not None and not arg.is_pointer and isinstance(arg.type, Record)


def cast(ours, expr, theirs):
    """A value of the runtime's type as the driver's type, which has the same layout."""
    want = theirs.c
    if is_struct(ours):
        return f"((union {{{ours.c} ours; {want} theirs;}}){{{expr}}}).theirs"
    if ours is None or ours.c == want:
        return expr
    if ours.c.endswith("*") and not want.endswith("*"):
        return f"({want})(uintptr_t){expr}"
    return f"({want}){expr}"


def load(path, cuda):
    """The runtime's spec at `path`, over the driver's."""
    spec = Spec(path.stem)
    execute(spec, path, RuntimeVocabulary(spec, cuda).words())
    return spec
