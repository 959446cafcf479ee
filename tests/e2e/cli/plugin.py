#!/usr/bin/env python3
"""Layers of others (heddle/layer.h): they are found, see calls, and are refused by name.

    HED_BUILD=build/dev HED_CC=cc HED_SCRATCH=/tmp/scratch plugin.py [Case.test...]
"""

import os
import subprocess
import sys
import unittest

from case import BUILD, PATIENCE, PYTHON, SOURCE, Case, clean_environment

CC = os.environ.get("HED_CC", "cc")

# Allocates 64 KiB, and copies twice to the device. Prints the result of each call.
PROGRAM = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
def use():
    at, context = ctypes.c_uint64(), ctypes.c_void_p()
    results = [cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0),
               cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(65536))]
    for _ in range(2):
        results.append(cuda.cuMemcpyHtoD_v2(at, bytes(65536), ctypes.c_size_t(65536)))
    print(*results, flush=True)
version = ctypes.c_int()
cuda.cuDriverGetVersion(ctypes.byref(version))  # the parent has its layers now
if "fork" in sys.argv:
    if os.fork() == 0:
        use()
        sys.exit()
    os.wait()
use()
"""

HEAD = ".abi = HEDDLE_LAYER_ABI, .size = sizeof heddle_layer_plugin"

LAYER = """
#include <heddle/layer.h>
#include <stdlib.h>

static CUresult
see(struct heddle_layer *self, enum hed_cuda_call call, void *args)
{
    self->host->log(self, HEDDLE_LOG_INFO, self->host->call_name(call));
    return self->host->next(self, call, args);
}

static CUresult
refuse(struct heddle_layer *self, void *args)
{
    CUdevice device;
    int count = 0;

    /* A call of its own, and one of the future. */
    if (heddle_call(self, cuDeviceGetCount, &count) != CUDA_SUCCESS || count < 1)
        abort();
    if (self->host->next(self, (enum hed_cuda_call)60000, &device) != CUDA_ERROR_NOT_SUPPORTED)
        abort();
    if (self->host->call_name((enum hed_cuda_call)60000) || self->host->call_name(0))
        abort();
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static const struct heddle_layer_override overrides[] = {
    {HED_cuMemAlloc_v2, refuse},
    {(enum hed_cuda_call)60000, refuse},
    OVERRIDE
};

const struct heddle_layer_plugin heddle_layer_plugin = {
    HEAD, .name = NAME, .any = see, .overrides = overrides};
"""


class Plugins(Case):
    def compile(self, name, source, *flags):
        path = self.path(name + ".so")
        subprocess.run([CC, "-shared", "-fPIC", "-Wall", "-Werror", "-x", "c", "-", "-o", path,
                        f"-I{SOURCE}/include", f"-I{BUILD}/gen", *flags],
                       input=source, text=True, check=True, timeout=PATIENCE)
        return path

    def layer(self, name="test", head=HEAD, override="{0},", quoted='"see-all"'):
        return self.compile(name, LAYER, f"-DHEAD={head}", f"-DOVERRIDE={override}",
                            f"-DNAME={quoted}")

    def copies(self):
        with open(os.path.join(SOURCE, "examples", "layer", "copies.c"), encoding="utf-8") as f:
            return self.compile("copies", f.read())

    def run_with(self, plugins, *args, options=(), log="info"):
        self.write("program.py", PROGRAM)
        return self.heddle("run", "--gpu", "null", "--log", log, "--set", f"plugins={plugins}",
                           *options, "--", PYTHON, "program.py", *args)

    def test_a_layer_counts_and_refuses(self):
        path = self.copies()
        r = self.run_with(path)
        self.assertEqual(r.stdout, "0 0 0 0 0\n", r.stderr)
        self.assertIn("copies: 131072 bytes went to the device", r.stderr)
        r = self.run_with(f"{path}:100000")
        self.assertEqual(r.stdout, "0 0 0 0 800\n", r.stderr)
        self.assertIn("copies: a copy would go over the limit", r.stderr)
        self.assertIn("copies: 65536 bytes went to the device", r.stderr)

    def test_it_sees_all_calls_and_makes_its_own(self):
        r = self.run_with(self.layer())
        self.assertEqual(r.stdout.split()[:3], ["0", "0", "2"], r.stderr)
        for name in ("cuInit", "cuCtxCreate_v2", "cuMemcpyHtoD_v2"):
            self.assertIn(f"see-all: {name}\n", r.stderr)
        self.assertNotIn("see-all: cuMemAlloc_v2\n", r.stderr)

    def test_several_and_a_trace_below_them(self):
        r = self.run_with(f"{self.copies()}:70000,{self.layer()}",
                          options=["--trace", self.path("t.hed")])
        self.assertEqual(r.stdout.split()[2:], ["2", "0", "800"], r.stderr)
        self.assertEqual(r.stderr.count("see-all: cuMemcpyHtoD_v2\n"), 1)
        seen = self.expect(0, "trace", "show", self.path("t.hed")).stdout
        self.assertEqual(seen.count("cuMemcpyHtoD_v2"), 1)
        self.assertNotIn("cuMemAlloc_v2", seen)

    def test_a_child_has_an_instance_of_its_own(self):
        r = self.run_with(f"{self.copies()}:131072", "fork")
        self.assertEqual(r.stdout, "0 0 0 0 0\n" * 2, r.stderr)

    def test_refused_by_name(self):
        cases = (
            (self.layer("new", head=".abi = 7"),
             "new.so has version 7 of the interface for layers, but heddle "),
            (self.layer("none", head=".abi = 0"), "none.so has version 0 of the interface"),
            (self.layer("small", head=".abi = 1, .size = 16"),
             "small.so describes itself wrongly (size)"),
            (self.layer("loud", quoted='"Loud layer"'), "loud.so describes itself wrongly (name)"),
            (self.layer("unnamed", quoted="0"), "unnamed.so describes itself wrongly (name)"),
            (self.layer("hole", override="{HED_cuInit, 0}"),
             "hole.so has an entry without a function"),
            (self.compile("empty", "int nothing;"), "empty.so is not a layer for heddle"),
            (self.write("text.so", "not a library"), "cannot load"),
            (f"{self.copies()}:many", "the layer 'copies' of a plug-in cannot start: the limit "
                                      "'many' is not a number of bytes"),
        )
        for path, message in cases:
            r = self.run_with(path, log="error")
            self.assertIn(message, r.stderr)
            self.assertEqual(r.stdout.split()[0], "802", r.stderr)  # not ready

    def test_refused_before_the_program_starts(self):
        for value, message in (("layer.so", "'layer.so' does not begin with '/'"),
                               ("/a.so,", "'' does not begin with '/'"),
                               (self.path("gone.so"), "gone.so")):
            r = self.run_with(value)
            self.assertEqual((r.returncode, r.stdout), (2, ""), r.stderr)
            self.assertIn(message, r.stderr)

    def test_cplusplus(self):
        if subprocess.run(["c++", "--version"], capture_output=True, check=False).returncode:
            self.skipTest("no C++ compiler")
        source = '#include <heddle/layer.h>\nint size = sizeof(struct heddle_layer_plugin);\n'
        subprocess.run(["c++", "-fsyntax-only", "-Wall", "-Werror", "-x", "c++", "-",
                        f"-I{SOURCE}/include", f"-I{BUILD}/gen"], input=source, text=True,
                       check=True, timeout=PATIENCE)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
