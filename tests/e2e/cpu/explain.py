#!/usr/bin/env python3
"""`heddle cpu explain` from the outside: on files, on a running process, and on what is neither.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch tests/e2e/cpu/explain.py [CASE...]
"""

import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.fatbin_file import CUBIN, PTX, entry, fatbin  # noqa: E402
from harness.patience import PATIENCE  # noqa: E402

BUILD = os.path.abspath(os.environ.get("HED_BUILD", "build/dev"))
HEDDLE = os.path.join(BUILD, "bin", "heddle")
LIBDIR = os.path.join(BUILD, "lib", "heddle")
SANITIZED = bool(os.environ.get("HED_SANITIZE"))

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
GATHER = """.visible .entry gather(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %d<6>; .reg .f32 %f<3>; .shared .f32 s[32];
ld.param.u64 %d1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %d2, %r1, 4;
add.u64 %d3, %d1, %d2;
ld.global.u32 %r2, [%d3];
mul.wide.u32 %d4, %r2, 4;
add.u64 %d5, %d1, %d4;
ld.global.f32 %f1, [%d5];
bar.sync 0;
st.global.f32 [%d3], %f1;
ret;
}
"""
FILL = """.visible .entry _Z4fillPj(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %q;
ld.param.u64 %d1, [p];
mov.u32 %r1, %tid.x;
setp.gt.u32 %q, %r1, 7;
@%q bra END;
st.global.u32 [%d1], %r1;
END: ret;
}
"""
TABLE_OF_JUMPS = """.visible .entry jumps(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %d<4>;
ld.param.u64 %d1, [p];
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 1;
TO: .branchtargets A, B;
brx.idx %r2, TO;
A: st.global.u32 [%d1], %r1;
ret;
B: ret;
}
"""
LINE_OF_GATHER = 4 + GATHER.split("\n").index("ld.global.f32 %f1, [%d5];")
LINE_OF_INDEX = 4 + GATHER.split("\n").index("ld.global.u32 %r2, [%d3];")

# Launches `fill` some times, says so, and waits for its end.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def must(r):
    if r: sys.exit(f"failed with {r}")
ctx, module, f, at = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0))
must(cuda.cuCtxSetCurrent(ctx))
must(cuda.cuModuleLoadData(ctypes.byref(module), open(sys.argv[1], "rb").read() + b"\\0"))
must(cuda.cuModuleGetFunction(ctypes.byref(f), module, b"_Z4fillPj"))
must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4096)))
params = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(at), ctypes.c_void_p))
for i in range(5):
    must(cuda.cuLaunchKernel(f, 1, 1, 1, 16, 2, 1, 0, None, params, None))
must(cuda.cuCtxSynchronize())
print("launched", flush=True)
sys.stdin.read()
"""

# Has a memfd with the board's name and with these bytes, in which PID stands for its own.
FORGER = """
import os, sys
data = bytes.fromhex(sys.argv[1].replace("PID", os.getpid().to_bytes(4, "little").hex()))
fd = os.memfd_create("heddle-cpu")
os.write(fd, data)
print("ready", flush=True)
sys.stdin.read()
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))

    def write(self, data, name="file.ptx"):
        path = os.path.join(self.dir, name)
        Path(path).write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def explain(self, *words, code=0):
        """(stdout, stderr); the exit code is checked."""
        p = subprocess.run([HEDDLE, "cpu", "explain", *map(str, words)], capture_output=True,
                           text=True, timeout=PATIENCE)
        self.assertEqual(p.returncode, code, f"{words}\n{p.stdout}\n{p.stderr}")
        return p.stdout, p.stderr

    def objects(self, *words, **more):
        return [json.loads(line) for line in
                self.explain(*words, "--json", **more)[0].splitlines()]

    def start(self, program, *words, **env):
        """A Python program that has printed a line; it ends with the test."""
        p = subprocess.Popen([sys.executable, "-c", program, *words], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, HOME=self.dir, HEDDLE_GPU="cpu",
                                      HEDDLE_CONFIG="", LD_LIBRARY_PATH=LIBDIR, **env))
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.stdin.close)
        self.assertTrue(p.stdout.readline())
        return p.pid


class Files(Case):
    def test_a_gather_has_a_cause(self):
        one, = self.objects(self.write(HEAD + GATHER), "--no-compile")
        gather, = one["gathers"]
        self.assertEqual(gather["text"], "ld.global.f32 %f1, [%d5];")
        self.assertEqual(gather["line"], LINE_OF_GATHER)
        self.assertEqual(gather["cause"], "loaded from memory")
        self.assertEqual(gather["cause_line"], LINE_OF_INDEX)
        self.assertEqual(one["accesses"], {"one": 0, "row": 2, "steps": 0, "offsets": 0,
                                           "anywhere": 1})
        self.assertEqual([b["split"] for b in one["barriers"]], [False])
        self.assertNotIn("shape", one)

    def test_a_single_kernel_is_compiled(self):
        one, = self.objects(self.write(HEAD + GATHER))
        self.assertEqual((one["shape"], one["cut"], one["cached"]), ("masks", True, False))
        self.assertGreater(one["compile_us"], 0)
        self.assertGreater(one["code_bytes"], 0)

    def test_the_passes_are_listed_in_their_order(self):
        path = self.write(HEAD + GATHER)
        one, = self.objects(path, "--passes")
        self.assertEqual([(p["name"], p["depth"]) for p in one["passes"]],
                         [("flow", 1), ("ssa", 1), ("tidy", 1), ("uniform", 1), ("masks", 1),
                          ("nan", 1), ("solo", 1), ("guess", 1), ("tiles", 1), ("frame", 1),
                          ("blocks", 1), ("code", 0), ("verify", 0), ("optimise", 0),
                          ("object", 0)])
        self.assertFalse(any(p["refused"] for p in one["passes"]))
        self.assertEqual(one["passes"][0]["did"], "1 blocks, 0 loops")
        self.assertEqual({p["shape"] for p in one["passes"]}, {"masks"})
        page = self.explain(path, "--passes")[0]
        self.assertIn("passes: masks\n", page)
        self.assertLessEqual(max(map(len, page.splitlines())), 100, page)
        self.assertNotIn("passes", self.objects(path)[0])

    def test_a_shape_ends_at_the_pass_that_refuses(self):
        one, = self.objects(self.write(HEAD + TABLE_OF_JUMPS), "--passes")
        shapes = [p["shape"] for p in one["passes"]]
        self.assertEqual(sorted(set(shapes)), ["machine", "masks"])
        last = [p for p in one["passes"] if p["shape"] == "masks"]
        self.assertTrue(last[0]["refused"])
        self.assertFalse(any(p["refused"] for p in one["passes"] if p["shape"] == "machine"))

    def test_several_kernels_are_a_table(self):
        path = self.write(HEAD + GATHER + FILL)
        lines = self.explain(path)[0].splitlines()
        self.assertEqual([line.split()[-1] for line in lines], ["kernel", "gather", "fill"])
        self.assertEqual([o["name"] for o in self.objects(path, "fill", "--no-compile")], ["fill"])

    def test_a_page_fits_a_terminal(self):
        page = self.explain(self.write(HEAD + GATHER), "--lines", "--no-compile")[0]
        self.assertLessEqual(max(map(len, page.splitlines())), 100, page)
        self.assertIn(f"loaded from memory (line {LINE_OF_INDEX})", page)

    def test_the_layout_of_threads_counts(self):
        path = self.write(HEAD + FILL)
        rows = [self.objects(path, "--block", b, "--no-compile")[0]["rows"]
                for b in ("256", "64,4", "16,16", "8,8", "5")]
        self.assertEqual(rows, ["32", "32", "16", "8", "flat"])

    def test_fat_binaries_are_read(self):
        text = (HEAD + GATHER).encode()
        path = self.write(fatbin(entry(CUBIN, 80, b"not read"), entry(PTX, 70, text)), "app.fatbin")
        self.assertEqual([o["kernel"] for o in self.objects(path, "--no-compile")], ["gather"])
        only = self.write(fatbin(entry(CUBIN, 80, b"not read")), "cubin.fatbin")
        self.assertIn("machine code only", self.explain(only, code=1)[1])

    def test_what_is_wrong_is_said_once(self):
        path = self.write(HEAD + GATHER)
        for words, code, text in (
                ((path, "nothing"), 1, "none of the 1 kernels"),
                (("/nowhere",), 1, "No such file"),
                ((self.write(HEAD + "rubbish;", "rubbish.ptx"),), 1, "line 4"),
                ((self.write(b"plain text", "text"),), 1, "has no GPU code"),
                (("4194303",), 1, "there is no file and no process"),
                ((os.getpid(),), 1, "runs no kernels on the CPU GPU"),
                ((), 2, "no file and no process given"),
                ((path, "a", "b"), 2, "unexpected 'b'"),
                (("--block", "0", path), 2, "--block '0'")):
            out, err = self.explain(*words, code=code)
            self.assertEqual(out, "")
            self.assertEqual(err.count(text), 1, f"{words}: {err}")


class Processes(Case):
    @unittest.skipIf(SANITIZED, "a program without a sanitizer cannot use a library with one")
    def test_a_running_process_shows_its_kernels(self):
        path = self.write(HEAD + GATHER + FILL)
        pid = self.start(PROGRAM, path, HEDDLE_CPU_CODEGEN="baseline")
        one, = self.objects(pid)
        self.assertEqual((one["name"], one["tier"], one["launches"], one["rows"]),
                         ("fill", "baseline", 5, "any"))
        self.assertGreater(one["baseline_ns"], 0)
        pid = self.start(PROGRAM, path, HEDDLE_CPU_CODEGEN="warp")
        one, = self.objects(pid)
        self.assertEqual((one["tier"], one["launches"], one["rows"]), ("compiled", 5, "16"))
        self.assertEqual((one["shape"], one["cached"]), ("masks", False))
        pid = self.start(PROGRAM, path)
        one, = self.objects(pid)
        self.assertEqual((one["tier"], one["cached"]), ("compiled", True))
        self.assertIn("now from the cache", self.explain(pid)[0])

    def test_forged_boards_do_no_harm(self):
        magic = b"HEDBRD2\0".hex()
        zero = "00" * 4
        def board(used, records):
            return magic + "PID" + zero + used.to_bytes(8, "little").hex() + zero * 2 + records
        def record(kind, size, rest):
            return (kind.to_bytes(4, "little") + size.to_bytes(4, "little")).hex() + rest
        for data in (board(1 << 40, ""), board(8, ""), magic + zero * 6,
                     board(8, record(1, 8, "")), board(24, record(1, 0, "ff" * 16)),
                     board(24, record(1, 24, "01000000" "01000000" + "ff" * 8)),
                     board(72, record(2, 72, "ff" * 64)),
                     board(64, record(7, 1 << 31, "00" * 56))):
            pid = self.start(FORGER, data)
            err = self.explain(pid, code=1)[1]
            self.assertEqual(err.count("\n"), 1, err)


if __name__ == "__main__":
    unittest.main()
