#!/usr/bin/env python3
"""A program's NVTX ranges in its trace. The program is this file: it speaks with the library as
NVTX does, so that NVIDIA's headers are not needed.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch trace_nvtx.py [Case.test...]
"""

import ctypes
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.patience import PATIENCE  # noqa: E402
from trace_case import HEDDLE, Case  # noqa: E402

CORE, CORE2, COUNT = 1, 5, 16
ASCII, UNICODE, REGISTERED = 1, 2, 3
VARIABLE = "NVTX_INJECTION64_PATH"


class Event(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint16), ("size", ctypes.c_uint16),
                ("category", ctypes.c_uint32), ("color_type", ctypes.c_int32),
                ("color", ctypes.c_uint32), ("payload_type", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("payload", ctypes.c_uint64),
                ("message_type", ctypes.c_int32), ("message", ctypes.c_void_p)]


class Nvtx:
    """The functions that a library has filled in, by module and number."""

    def __init__(self, library):
        self.slots = {m: (ctypes.c_void_p * COUNT)() for m in (CORE, CORE2)}
        self.lists = {m: (ctypes.c_void_p * (COUNT + 1))(
            None, *(ctypes.addressof(s) + 8 * i for i in range(1, COUNT)))
            for m, s in self.slots.items()}
        get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p),
                               ctypes.POINTER(ctypes.c_uint))

        class Callbacks(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("get", get)]

        self.get = get(self.functions)
        self.callbacks = Callbacks(ctypes.sizeof(Callbacks), self.get)
        self.table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(
            lambda number: ctypes.addressof(self.callbacks) if number == 1 else None)
        assert ctypes.CDLL(library).InitializeInjectionNvtx2(self.table) == 1

    def functions(self, module, functions, count):
        if module not in self.lists:
            return 0
        functions[0] = ctypes.addressof(self.lists[module])
        count[0] = COUNT
        return 1

    def call(self, module, number, *arguments, result=ctypes.c_int):
        types = [ctypes.c_void_p if a is None else type(a) for a in arguments]
        return ctypes.CFUNCTYPE(result, *types)(self.slots[module][number])(*arguments)


def event(kind, message):
    e = Event(3, ctypes.sizeof(Event), message_type=kind, message=message)
    return ctypes.pointer(e)


def program():
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuInit(0)
    nvtx = Nvtx(os.environ[VARIABLE])
    levels = [nvtx.call(CORE, 9, ctypes.c_char_p(b"outer"))]
    wide = ctypes.create_unicode_buffer("wide \u00e9")
    text = ctypes.create_string_buffer(b"event")
    levels.append(nvtx.call(CORE, 8, event(ASCII, ctypes.addressof(text))))
    nvtx.call(CORE, 2, ctypes.c_char_p(b"mark"), result=None)
    cuda.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))
    registered = nvtx.call(CORE2, 10, None, ctypes.c_char_p(b"registered"), result=ctypes.c_void_p)
    levels.append(nvtx.call(CORE2, 4, None, event(REGISTERED, registered)))
    levels.append(nvtx.call(CORE, 8, event(UNICODE, ctypes.addressof(wide))))
    levels.append(nvtx.call(CORE2, 5, None))
    levels += [nvtx.call(CORE, 11) for _ in range(4)]
    print(levels)


class Ranges(Case):
    def run_traced(self, **env):
        path = self.path("t.hed")
        p = subprocess.run([HEDDLE, "run", "--gpu", "null", "--trace", path, "--", sys.executable,
                            "-B", __file__, "program"], capture_output=True, text=True,
                           timeout=PATIENCE, env={**os.environ, **env})
        return path, p

    def test_ranges_and_marks_are_in_the_trace(self):
        path, p = self.run_traced()
        self.assertEqual(p.stdout, "[0, 1, 2, 3, 3, 2, 1, 0, -1]\n", p.stderr)
        out, _ = self.run_it("show", "--json", path)
        notes = [(r["kind"], r.get("text")) for r in map(json.loads, out.splitlines())
                 if r["kind"] in ("begin", "end", "mark")]
        self.assertEqual(notes, [("begin", "outer"), ("begin", "event"), ("mark", "mark"),
                                 ("begin", "registered"), ("begin", "wide ?")] +
                         [("end", None)] * 4)

    def test_a_profiler_keeps_its_variable(self):
        _, p = self.run_traced(**{VARIABLE: "/none/profiler.so"})
        self.assertIn("/none/profiler.so", p.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["program"]:
        program()
    else:
        unittest.main()
