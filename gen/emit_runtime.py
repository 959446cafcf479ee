"""Emits what src/cudart is made of:
`python3 gen/emit_runtime.py --cuda spec/cuda --spec spec/cudart --out DIR`.

    cudart_abi.h             types and constants
    cudart_driver.h, .c      tables of the driver's functions, bound at their first call
    cudart_calls.h           prototypes of the functions written by hand
    cudart_errors.c          names and texts of errors
    cudart_api_<N>.h         prototypes, for programs that are linked with libcudart.so.<N>
    cudart_front_<N>.c       the exported functions of libcudart.so.<N>
    cudart_<N>.map           their version script, as NVIDIA's
    cudart_<N>.exports       their names
    cudart_check_<N>.c       compiles only if NVIDIA's headers of this edition say the same
    cudart_calls.md          how each call is answered
"""

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gen import emit_abi, runtime  # noqa: E402
from gen.model import Enum, Record, Shape, SpecError  # noqa: E402
from gen.vocabulary import load  # noqa: E402
from gen.writer import Writer, prototype, write_files  # noqa: E402


def emit(spec, cuda):
    files = emit_abi.emit(spec)
    files |= _driver(cuda)
    files["cudart_calls.h"] = _prototypes(spec)
    files["cudart_errors.c"] = _errors(spec)
    files["cudart_calls.md"] = _table(spec)
    for edition in runtime.EDITIONS:
        names = _exported(spec, edition)
        files[f"cudart_api_{edition}.h"] = _api(spec, edition)
        files[f"cudart_front_{edition}.c"] = _front(spec, edition)
        files[f"cudart_{edition}.exports"] = "".join(f"{n}\n" for n in names)
        files[f"cudart_{edition}.map"] = (f"libcudart.so.{edition} {{\n    global:\n"
                                          + "".join(f"        {n};\n" for n in names)
                                          + "    local:\n        *;\n};\n")
    for edition in ("11.0", "12", "13"):
        files[f"cudart_check_{edition}.c"] = _check(spec, edition)
    return files


def _calls(spec, edition):
    return [c for c in spec.calls if edition in c.editions]


def _exported(spec, edition):
    names = [n for c in _calls(spec, edition) for n, _ in c.variants]
    return sorted(names + [n for n, editions in spec.exports if edition in editions])


# ---- the driver's functions -------------------------------------------------------------------


def _driver(cuda):
    h = Writer("The driver's functions, as a runtime library calls them.")
    h("#pragma once")
    h()
    h("#include <stdatomic.h>")
    h()
    h('#include "gen/cuda_abi.h"')
    h()
    for c in cuda.calls:
        h(f"typedef CUresult (*hed_fn_{c.name}){prototype(c)};")
    h()
    h("/* Every function is bound when it is first called; until then its entry does that. */")
    with h.block("struct hed_rt_driver"):
        for c in cuda.calls:
            h(f"hed_fn_{c.name} _Atomic {c.name};")
    h.lines[-1] += ";"
    h()
    h("extern struct hed_rt_driver hed_rt_legacy;     /* stream 0 is the legacy one */")
    h("extern struct hed_rt_driver hed_rt_per_thread; /* stream 0 is the thread's own */")
    w = Writer("The first call of each of the driver's functions: finds it, and makes the call.")
    w('#include "gen/cudart_driver.h"')
    w()
    w('#include "cudart/driver.h"')
    w()
    for c in cuda.calls:
        passed = ", ".join(a.name for a in c.args)
        both = c.ptds is None
        for name, ptds, _ in c.variants:
            w("static CUresult")
            w(f"first_{name}{prototype(c)}")
            with w.block(""):
                w("CUresult why;")
                w(f'const hed_fn_{c.name} real = (hed_fn_{c.name})hed_rt_bind("{name}", &why);')
                w()
                w("if (!real)")
                w("    return why;")
                for table in ("legacy", "per_thread"):
                    if both or ptds == (table == "per_thread"):
                        w(f"hed_rt_{table}.{c.name} = real;")
                w(f"return real({passed});")
            w()
    for table, flavour in (("legacy", False), ("per_thread", True)):
        w(f"struct hed_rt_driver hed_rt_{table} = {{")
        for c in cuda.calls:
            name = next(n for n, ptds, _ in reversed(list(c.variants))
                        if ptds == flavour or c.ptds is None)
            w(f"    .{c.name} = first_{name},")
        w("};")
        w()
    return {"cudart_driver.h": h.text(), "cudart_driver.c": w.text()}


# ---- the exported functions -------------------------------------------------------------------


def _hand_prototype(c):
    params = [a.decl() for a in c.args]
    return "(" + ", ".join(["const struct hed_rt_driver *cu"] + params) + ")"


def _prototypes(spec):
    w = Writer("Functions of the runtime API that are written by hand.")
    w("#pragma once")
    w()
    w('#include "gen/cudart_abi.h"')
    w('#include "gen/cudart_driver.h"')
    w()
    seen = {}
    for c in spec.calls:
        if c.by_hand and seen.setdefault(c.as_, _hand_prototype(c)) == _hand_prototype(c):
            w(f"cudaError_t hed_rt_{c.as_}{_hand_prototype(c)};")
    return w.text()


def _api(spec, edition):
    w = Writer(f"The functions of libcudart.so.{edition}, for programs that are linked with it.")
    w("#pragma once")
    w()
    w('#include "gen/cudart_abi.h"')
    w()
    for c in _calls(spec, edition):
        for name, _ in c.variants:
            w(f"cudaError_t {name}{prototype(c)};")
    return w.text()


def _front(spec, edition):
    old = " (with the error numbers of that time)" if edition == "8.0" else ""
    w = Writer(f"The exported functions of libcudart.so.{edition}{old}.")
    if old:
        w("#define HED_RT_OLD_ERRORS")
    w('#include "cudart/front.h"')
    w('#include "gen/cudart_calls.h"')
    w()
    w(f"const int hed_rt_version = {runtime.EDITIONS[edition]};")
    w()
    for c in _calls(spec, edition):
        for name, ptds in c.variants:
            table = "hed_rt_per_thread" if ptds else "hed_rt_legacy"
            w(f"HED_EXPORT cudaError_t {name}{prototype(c)};")
            w()
            w("HED_EXPORT cudaError_t")
            w(f"{name}{prototype(c)}")
            with w.block(""):
                if c.missing:
                    w(f'HED_RT_MISSING("{c.name}", "{c.missing}");')
                    continue
                if c.by_hand:
                    passed = ", ".join([f"&{table}"] + [a.name for a in c.args])
                    expr = f"hed_rt_{c.as_}({passed})"
                else:
                    d, values = c.driver
                    expr = f"{table}.{d.name}({', '.join(values)})"
                if not c.plain and edition in c.arrives:
                    w("HED_RT_ARRIVE();")
                w(f"{'HED_RT_PLAIN' if c.plain else 'HED_RT_CALL'}({expr});")
            w()
    return w.text()


def _errors(spec):
    w = Writer("Names and texts of the runtime API's errors.")
    w('#include "cudart/error.h"')
    w()
    w("const struct hed_rt_error hed_rt_errors[] = {")
    for name, value in sorted(spec.result.values.items(), key=lambda x: x[1]):
        w(f'    {{{value}, "{name}", "{spec.result.texts[name]}"}},')
    w("};")
    w()
    w(f"const size_t hed_rt_error_count = {len(spec.result.values)};")
    return w.text()


def _table(spec):
    """How each call is answered, for docs/."""
    rows = ["| call | editions | answered by |", "| --- | --- | --- |"]
    for c in sorted(spec.calls, key=lambda c: (c.name, c.editions)):
        where = c.editions[0] if len(c.editions) == 1 else f"{c.editions[0]} to {c.editions[-1]}"
        how = f"`{c.driver[0].name}`" if c.driver else \
            "a function of its own" if c.by_hand else f"not supported: {c.missing}"
        rows.append(f"| `{c.name}` | {where} | {how} |")
    return "\n".join(rows) + "\n"


# ---- the proof --------------------------------------------------------------------------------


def _check(spec, edition):
    """NVIDIA's headers have few typedefs for C, and one name for the layouts of all editions."""
    major = edition.split(".")[0]
    w = Writer(f"Compiles only if NVIDIA's headers of CUDA {major} say what our spec says.")
    w("#define __CUDA_API_VERSION_INTERNAL")
    w("#include <cuda_runtime_api.h>")
    w("#include <cuda_profiler_api.h>")
    w("#include <stddef.h>")
    w()
    calls = [c for c in _calls(spec, edition) if not c.header and not c.since]
    types = _used(spec, calls)
    for t in types:
        theirs = re.sub(r"_\d\d$", "", t.name)
        keyword = t.keyword if isinstance(t, Record) else "enum"
        if theirs not in spec.typedefs:
            w(f"typedef {keyword} {theirs} {t.name};")
        elif theirs != t.name:
            w(f"typedef {theirs} {t.name};")
    w()
    for c in calls:
        for name, _ in c.variants:
            w(f"_Static_assert(__builtin_types_compatible_p(__typeof__({name}),")
            w(f'    cudaError_t{prototype(c)}), "{name}");')
    for t in types:
        if major != "13" and not re.search(r"_\d\d$", t.name):
            continue  # structs with room to grow have other members there
        if isinstance(t, Record):
            w(f'_Static_assert(sizeof({t.name}) == {t.size}, "size of {t.name}");')
            for f in t.fields:
                if f.name:
                    w(f'_Static_assert(offsetof({t.name}, {f.name}) == {f.offset}, "{t.name}");')
        else:
            for name, value in t.values.items():
                w(f'_Static_assert((int){name} == {value}, "{name}");')
    return w.text()


def _used(spec, calls):
    """Records and enums of the arguments of these calls, in the order of the spec."""
    found = set()

    def add(t):
        t = t.type if isinstance(t, Shape) else t
        if isinstance(t, (Enum, Record)) and t is not spec.result:
            if t.name:
                found.add(t.name)
            for f in getattr(t, "fields", []):
                add(f.type)

    for c in calls:
        for a in c.args:
            add(a.type)
    return [t for t in spec.types if getattr(t, "name", None) in found]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--cuda", required=True)
    p.add_argument("--spec", required=True)
    p.add_argument("--out", required=True)
    args = p.parse_args()
    try:
        cuda = load(args.cuda)
        files = emit(runtime.load(Path(args.spec), cuda), cuda)
    except SpecError as e:
        print(e, file=sys.stderr)
        return 1
    write_files(args.out, files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
