"""Shared by the tests of the Python package: each test is a program of its own, because a process
has one CUDA driver."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.patience import PATIENCE  # noqa: E402

SKIPPED = 77
PREFIX = os.environ["HEDDLE_PREFIX"]
HEDDLE = os.path.join(PREFIX, "bin", "heddle")
LIBRARIES = os.path.join(PREFIX, "lib", "heddle")

# What the programs have in common.
BEGIN = '''
import ctypes, os, sys
import heddle

def cuda():
    """The driver, with a context on the first device."""
    library = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    assert library.cuInit(0) == 0
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert library.cuCtxSetCurrent(context) == 0
    return library

def allocate(library, size=4096):
    """The result of an allocation, and its address."""
    address = ctypes.c_uint64()
    return library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), address

PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry fine() { ret; }
.visible .entry bad() {
    .reg .u64 %rd<2>;
    .reg .u32 %r<2>;
    mov.u64 %rd1, 16;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""

def launch(library, name):
    """Launches a kernel that has no arguments, and does not wait for it."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.cuModuleLoadData(ctypes.byref(module), PTX) == 0
    assert library.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
    return library.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)

def error(call, *arguments, **named):
    """The class and the text of the exception that a call ends with."""
    try:
        call(*arguments, **named)
    except heddle.Error as reason:
        return type(reason).__name__, str(reason)
    raise AssertionError("it works")
'''


class Programs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        env.update(HEDDLE_PREFIX=PREFIX, HEDDLE_CONFIG="", HEDDLE_CACHE_SIZE="0",
                   TMPDIR=self.folder, PYTHONDONTWRITEBYTECODE="1")
        env.update(more)
        return {k: v for k, v in env.items() if v is not None}

    def program(self, text, *words, before=(), code=0, **more):
        """Runs a program, checks its exit status and returns what it has printed."""
        path = os.path.join(self.folder, "program.py")
        Path(path).write_text(BEGIN + textwrap.dedent(text), encoding="utf-8")
        done = subprocess.run([*before, sys.executable, path, *words], env=self.environment(**more),
                              cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout


def python_with(module):
    """An interpreter that has a module: this one, or the system's. None: there is none."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        if os.path.exists(python) and subprocess.run(
                [python, "-c", f"import {module}"], capture_output=True, check=False,
                timeout=PATIENCE).returncode == 0:
            return python
    return None


def main(needs=None, advice=None):
    """Runs the tests, or says why not: they need a module."""
    if needs and not python_with(needs):
        print(f"skipped: there is no Python module {needs} here ({advice})")
        sys.exit(SKIPPED)
    unittest.main(module="__main__")
