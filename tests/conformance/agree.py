#!/usr/bin/env python3
"""Runs a program and compares what it prints with what it printed on an H200.

    agree.py [--same | --either] GOLDEN PROGRAM [ARGUMENT...]

GOLDEN is the output of the program on NVIDIA's driver (tests/gpu/record.py). If the CPU GPU answers
otherwise, on purpose or because it is not right yet, DIFFERENT below says so and why. A difference
that is listed but does not occur is also a failure. `--same`: no difference is allowed (on a real
GPU). `--either`: a listed difference may occur (a real GPU behind the soft driver). Exits with 0,
or prints every difference and exits with 1.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ONE_LOST = "only the context whose kernel failed is lost, so that the process lives on"
AT_LAUNCH = "a module loads; what cannot be compiled refuses its kernel at launch"
NO_CYCLE = "a circle is refused where it would be closed, not when the graph is instantiated"
NOT_THERE = "there is no network card or decompression engine to share it with"

NOT_YET_AT = "what integer coordinates make of linear filtering is not understood yet"

# (program, case, question, which time it is asked in the case): (our answer, why). Programs of
# tests/cu are called cu/<name>; they have no cases.
DIFFERENT = {
    ("contexts", "devices", "cuDeviceGetName(text, -1, 0)", 1):
        ("INVALID_VALUE", "a negative length is refused, not taken for a very large one"),
    ("contexts", "settings", "limit 4 to 1048576", 1):
        ("ok 524288", "how many launches fit follows from how NVIDIA's driver keeps them"),
    ("graphs", "wrong", "cuGraphAddDependencies_v2(g, &b, &a, NULL, 1)", 1):
        ("INVALID_VALUE", NO_CYCLE),
    ("graphs", "wrong", "cuGraphInstantiateWithFlags(&e, g, 0)", 1): ("ok", NO_CYCLE),
    ("graphs", "wrong", "cuGraphRemoveDependencies_v2(g, &b, &a, NULL, 1)", 1):
        ("INVALID_VALUE", NO_CYCLE),
    ("memory", "pointers", "device, attribute 6", 1):
        ("ok 1", "memory operations are synchronous from the start, not from the first one on"),
    ("memory", "pointers", "device, attribute 15", 1): ("ok 0", NOT_THERE),
    ("memory", "pointers", "device, attribute 21", 1): ("ok 0", NOT_THERE),
    ("modules", "loading", "cuModuleLoadData(&m, bad_version)", 1):
        ("ok", "PTX of a later version may well be understood"),
    ("modules", "loading", "cuModuleLoadData(&m, bad_instruction)", 1): ("ok", AT_LAUNCH),
    ("modules", "loading", "cuModuleLoadData(&m, unresolved)", 1): ("ok", AT_LAUNCH),
    ("modules", "logs", "cuModuleLoadDataEx(&m, bad_instruction, 2, options, values)", 1):
        ("ok", AT_LAUNCH),
    ("modules", "logs", "names the line", 1): ("0", AT_LAUNCH),
    ("modules", "logs", "names the word", 1): ("0", AT_LAUNCH),
    ("modules", "libraries",
     'cuLibraryLoadData(&l, "garbage", NULL, NULL, 0, NULL, NULL, 0)', 1):
        ("INVALID_IMAGE", "an image is looked at when it is given, not when it is first used"),
    ("modules", "linking", "cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, (void *)bad_instruction, "
     'sizeof bad_instruction, "a", 0, NULL, NULL)', 1): ("ok", AT_LAUNCH),
    ("modules", "linking", "cuLinkComplete(l, &image, &size)", 1): ("ok", AT_LAUNCH),
    ("cu/memory", "", "generic_constant[0]", 1):
        ("00000604 00000504 00000404 00000304 00000204 00000104 00000104 00000104",
         "constants lie in global memory, and isspacep says so"),
    ("textures", "gathers", "at integers", 1):
        ("ok, hash e58f4e2c", NOT_YET_AT),
    # A fault in one context.
    ("faults", "other_context", "cuCtxSynchronize()", 1): ("ok", ONE_LOST),
    ("faults", "other_context", "cuMemAlloc_v2(&q, 64)", 1): ("ok", ONE_LOST),
    ("faults", "other_context", "cuCtxCreate_v2(&third, 0, 0)", 1): ("ok", ONE_LOST),
    **{("faults", case, question, 1): ("ok", ONE_LOST)
       for case in ("traps", "null_store", "odd_load", "odd_atomic", "far_shared", "asserts",
                    "overflows")
       for question in ("cuCtxCreate_v2(&second, 0, 0)", "cuDevicePrimaryCtxRetain(&c, 0)")},
    **{("faults", "far_shared", question, 1):
       ("ILLEGAL_ADDRESS", "an address beyond shared memory is a bad address wherever it points")
       for question in ("far_shared", "cuCtxSynchronize()", "cuMemAlloc_v2(&q, 64)",
                        "cuMemcpyDtoH_v2(&v, p, 4)", "cuStreamQuery(NULL)", "cuMemFree_v2(p)")},
}

# The same if the GPU is on another machine (HEDDLE_GPU is an address).
ELSEWHERE = "kernels of another machine cannot reach memory of the program's own"
DIFFERENT_ELSEWHERE = {
    ("contexts", "attributes", "attribute 91", 1): ("ok 0", ELSEWHERE),
    ("memory", "registered", "cuMemHostGetDevicePointer_v2(&d, page + 4, 0)", 1):
        ("NOT_SUPPORTED", ELSEWHERE),
    ("memory", "registered", "the same address", 1): ("0", ELSEWHERE),
}


def answers(text):
    """{(case, question, occurrence): answer}, in order."""
    found = {}
    case = ""
    for line in text.splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            case = match[1]
            continue
        question, _, answer = line.rpartition(": ")
        time = 1
        while (case, question, time) in found:
            time += 1
        found[case, question, time] = answer
    return found


def early_ends(got, want):
    """Lines about cases that ended early. They come first, because all answers that are missing
    after that have no other cause."""
    for case, question, time in got:
        if question == "ended" and (case, question, time) not in want:
            count = sum(k[0] == case for k in got) - 1
            asked = sum(k[0] == case for k in want)
            how = got[case, question, time]
            reason = " (no answer in time)" if how == "signal 14" else ""
            yield f"[{case}] ended with {how}{reason} after {count} of {asked} answers"


def compare(name, got, want, on_purpose, either):
    """Lines that describe how the answers differ."""
    yield from early_ends(got, want)
    allowed = {k[1:]: v for k, v in on_purpose.items() if k[0] == name}
    for key in [*want, *(k for k in got if k not in want)]:
        g, w = got.get(key), want.get(key)
        where = f"[{key[0]}] {key[1]}" + (f" (time {key[2]})" if key[2] > 1 else "")
        expected, reason = allowed.pop(key, (w, ""))
        if either and g in (w, expected):
            continue
        if g != expected:
            yield f"{where}: {g}, not {expected}" + (f" (an H200: {w}; {reason})" if reason else "")
        elif reason and g == w:
            yield f"{where}: listed as different, but both say {g}"
    for key in allowed if not either else ():
        yield f"{key}: listed as different, but not asked"


def differences(golden, text, on_purpose, either=False):
    """How the output of a program differs from its golden file, if that is not on purpose."""
    golden = Path(golden).resolve()
    name = golden.stem if golden.parts[-3] == "conformance" else f"cu/{golden.stem}"
    return list(compare(name, answers(text), answers(golden.read_text()), on_purpose, either))


def main():
    same, either = sys.argv[1] == "--same", sys.argv[1] == "--either"
    golden, *command = sys.argv[2 if same or either else 1:]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        print(f"{command[0]} ended with {run.returncode}")
        return 1
    on_purpose = {} if same else dict(DIFFERENT)
    if os.environ.get("HEDDLE_GPU", "").startswith(("shm:", "unix:", "tcp:", "vm:")):
        on_purpose.update(DIFFERENT_ELSEWHERE)
    bad = differences(golden, run.stdout, on_purpose, either)
    print(*bad, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
