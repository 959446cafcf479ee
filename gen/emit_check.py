"""emit_check: the proof that our types, values and prototypes equal NVIDIA's.

Two files state the same numbers: one is compiled against NVIDIA's header, one against ours.
"""

from gen.model import Enum, Record
from gen.writer import Writer, prototype


def emit(spec):
    theirs = Writer(f"Compiles only if NVIDIA's {spec.name} headers say what our spec says.")
    theirs("#define __CUDA_API_VERSION_INTERNAL")
    theirs("#define NVML_NO_UNVERSIONED_FUNC_DEFS")
    for h in spec.headers:
        theirs(f"#include <{h}>")
    theirs("#include <stddef.h>")
    theirs()
    for c in spec.calls:
        if c.header:
            theirs(f"/* {c.name}: {c.header} */")
            continue
        for name, _, _ in c.variants:
            theirs(f"_Static_assert(__builtin_types_compatible_p(__typeof__({name}),")
            theirs(f'    {spec.result.name}{prototype(c)}), "{name}");')
    ours = Writer(f"Compiles only if our {spec.name} header is what our spec says.")
    ours(f'#include "gen/{spec.name}_abi.h"')
    ours()
    _values(theirs, spec, nvidia=True)
    _values(ours, spec, nvidia=False)
    return {f"{spec.name}_check_nvidia.c": theirs.text(), f"{spec.name}_check_ours.c": ours.text()}


def _only_interop(spec):
    """Types that only calls of other headers use: NVIDIA's main header does not have them."""
    main, other = set(), set()
    for c in spec.calls:
        for a in c.args:
            (other if c.header else main).add(a.shape.type if a.shape else a.type)
    return [t for t in other - main if isinstance(t, (Record, Enum))]


def _values(w, spec, nvidia):
    w()
    interop = {t.name for t in _only_interop(spec)} if nvidia else set()
    for e in spec.enums:
        if e.name in interop:
            continue
        for name, value in e.values.items():
            w(f'_Static_assert((int){name} == {value}, "{name}");')
    for c in spec.consts:
        if isinstance(c.value, int):  # clang takes no pointers here
            w(f'_Static_assert({c.name} == {c.value}, "{c.name}");')
    for r in spec.records:
        if r.name in interop:
            continue
        w(f'_Static_assert(sizeof({r.name}) == {r.size}, "size of {r.name}");')
        w(f'_Static_assert(_Alignof({r.name}) == {r.align}, "alignment of {r.name}");')
        for path, offset in _offsets(r, "", 0):
            w(f'_Static_assert(offsetof({r.name}, {path}) == {offset}, "{r.name}.{path}");')


def _offsets(r, prefix, base):
    for f in r.fields:
        if f.name:
            yield prefix + f.name, base + f.offset
        if isinstance(f.type, Record) and f.type.name is None and f.n is None:
            inner = prefix + f.name + "." if f.name else prefix
            yield from _offsets(f.type, inner, base + f.offset)
