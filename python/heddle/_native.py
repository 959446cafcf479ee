"""The functions of heddle.h, called by ctypes. Nothing here is public."""

from __future__ import annotations

import ctypes
import os

from ._errors import Error, NotInstalledError

PATH_MAX = 4096
REASON_MAX = 1024
ENOTSUP = -12  # no layer of this process does that


class Counters(ctypes.Structure):
    """struct heddle_counters"""

    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in (
        "unsupported_calls", "foreign_pointers", "foreign_calls", "export_tables",
        "trace_records", "trace_dropped", "faults_injected", "problems", "refusals", "launches",
        "context_errors", "allocations", "live_allocations", "memory_bytes", "memory_peak",
        "grids_interpreted", "grids_compiled", "kernels_compiled", "kernels_cached")]


class MemoryItem(ctypes.Structure):
    """struct heddle_memory"""

    _fields_ = [("serial", ctypes.c_uint64), ("address", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("library", ctypes.c_char * 64)]


FUNCTIONS = {
    "heddle_version": (ctypes.c_char_p, ()),
    "heddle_reason": (ctypes.c_char_p, ()),
    "heddle_is_running": (ctypes.c_int, ()),
    "heddle_chain": (ctypes.c_int, (ctypes.c_char_p, ctypes.c_size_t)),
    "heddle_problem": (ctypes.c_int, (ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t)),
    "heddle_read_counters": (ctypes.c_int, (ctypes.POINTER(Counters),)),
    "heddle_fault_add": (ctypes.c_int, (ctypes.c_char_p,)),
    "heddle_fault_remove": (ctypes.c_int, (ctypes.c_int,)),
    "heddle_fault_count": (ctypes.c_int64, (ctypes.c_int,)),
    "heddle_trace_start": (ctypes.c_int, (ctypes.c_char_p,)),
    "heddle_trace_stop": (ctypes.c_int, ()),
    "heddle_trace_file": (ctypes.c_int, (ctypes.c_char_p, ctypes.c_size_t)),
    "heddle_list_memory": (ctypes.c_int,
                           (ctypes.c_uint64, ctypes.POINTER(MemoryItem), ctypes.c_int)),
    "heddle_settle": (ctypes.c_int, ()),
}


def load(path: str) -> ctypes.CDLL:
    """Loads a library so that later ones, and later dlopen() by its SONAME, find it."""
    try:
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL | os.RTLD_NOW)
    except OSError as reason:
        raise NotInstalledError(f"cannot load {path}: {reason}; install heddle again") from None


class Native:
    """libheddle.so.0 in this process. Loading it starts nothing."""

    def __init__(self, path: str) -> None:
        self.library = load(path)
        for name, (result, arguments) in FUNCTIONS.items():
            try:
                function = getattr(self.library, name)
            except AttributeError:
                raise NotInstalledError(
                    f"{path} has no {name}, so it is older than this package; install both from "
                    "one version") from None
            function.restype = result
            function.argtypes = arguments

    def reason(self) -> str:
        text = self.library.heddle_reason()
        return text.decode(errors="replace") if text else ""

    def check(self, result: int) -> int:
        """Turns a negative number into an exception with heddle's reason."""
        if result < 0:
            raise Error(self.reason() or f"heddle could not do that (error {result})")
        return result

    def is_running(self) -> bool:
        return bool(self.library.heddle_is_running())

    def chain(self) -> str:
        text = ctypes.create_string_buffer(256)
        self.check(self.library.heddle_chain(text, len(text)))
        return text.value.decode()

    def counters(self) -> Counters:
        counters = Counters(size=ctypes.sizeof(Counters))
        self.library.heddle_read_counters(ctypes.byref(counters))
        return counters

    def problem(self, number: int) -> str | None:
        text = ctypes.create_string_buffer(REASON_MAX)
        if self.library.heddle_problem(number, text, len(text)) != 0:
            return None
        return text.value.decode(errors="replace")

    def fault_add(self, rules: str) -> int:
        return self.check(self.library.heddle_fault_add(rules.encode()))

    def fault_remove(self, rules: int) -> None:
        self.check(self.library.heddle_fault_remove(rules))

    def fault_count(self, rules: int) -> int:
        return self.check(self.library.heddle_fault_count(rules))

    def trace_start(self, path: str) -> None:
        self.check(self.library.heddle_trace_start(os.fsencode(path)))

    def trace_stop(self) -> None:
        self.check(self.library.heddle_trace_stop())

    def trace_file(self) -> str:
        text = ctypes.create_string_buffer(PATH_MAX)
        self.check(self.library.heddle_trace_file(text, len(text)))
        return os.fsdecode(text.value)

    def memory(self, after: int, most: int) -> list[MemoryItem]:
        items = (MemoryItem * most)()
        count = self.check(self.library.heddle_list_memory(after, items, most))
        return list(items[:count])

    def settle(self) -> int:
        """0, or the number of the error that a device's context has."""
        return self.check(self.library.heddle_settle())
