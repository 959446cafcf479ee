#!/usr/bin/env python3
"""The cache outlives the program: what is hot at its end is compiled after it, and what another
program compiles is not compiled twice.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch tests/e2e/cpu/after.py [CASE...]

With HED_NVCC, kernels in machine code are tried, too.
"""

import fcntl
import glob
import hashlib
import os
from pathlib import Path
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE, until  # noqa: E402

BUILD = os.path.abspath(os.environ.get("HED_BUILD", "build/dev"))
HEDDLE = os.path.join(BUILD, "bin", "heddle")
LIBDIR = os.path.join(BUILD, "lib", "heddle")
ABI = Path(__file__).resolve().parents[3] / "src" / "kernel" / "ptx" / "run" / "abi.h"

# Launches all kernels of a file, one after the other, until its standard input ends.
PROGRAM = """
import ctypes, select, sys
cuda = ctypes.CDLL("libcuda.so.1")
def must(r):
    if r: sys.exit(f"failed with {r}")
ctx, module, f, at = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0))
must(cuda.cuCtxSetCurrent(ctx))
must(cuda.cuModuleLoadData(ctypes.byref(module), open(sys.argv[1], "rb").read() + b"\\0"))
must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4096)))
x = ctypes.c_double(1.5)
params = (ctypes.c_void_p * 2)(ctypes.cast(ctypes.byref(at), ctypes.c_void_p),
                               ctypes.cast(ctypes.byref(x), ctypes.c_void_p))
while not select.select([sys.stdin], [], [], 0)[0]:
    for name in sys.argv[2:]:
        must(cuda.cuModuleGetFunction(ctypes.byref(f), module, name.encode()))
        must(cuda.cuLaunchKernel(f, 8, 1, 1, 64, 1, 1, 0, None, params, None))
    must(cuda.cuCtxSynchronize())
"""


def kernel(name, lines):
    """A kernel that LLVM takes some time for."""
    text = [f".visible .entry {name}(.param .u64 p, .param .f64 x)\n{{",
            ".reg .f64 %f<8>; .reg .b64 %d;", "ld.param.u64 %d, [p];"]
    text += [f"ld.param.f64 %f{i}, [x];" for i in range(8)]
    text += [f"fma.rn.f64 %f{i * 5 % 8}, %f{i * 3 % 8}, %f{(i + 1) % 8}, %f{i * 7 % 8};"
             for i in range(lines)]
    return "\n".join(text + ["st.global.f64 [%d], %f1;", "ret;", "}", ""])


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))
        self.cache = os.path.join(self.dir, "cache")

    def write(self, lines, *names):
        path = os.path.join(self.dir, "kernels.ptx")
        Path(path).write_text(".version 7.0\n.target sm_70\n.address_size 64\n"
                              + "".join(kernel(n, lines) for n in names))
        return path

    def environment(self, **env):
        return dict(os.environ, HOME=self.dir, HEDDLE_GPU="cpu", HEDDLE_CONFIG="",
                    HEDDLE_CACHE=self.cache, HEDDLE_LOG="cpu=debug", HEDDLE_CPU_AFTER="on",
                    LD_LIBRARY_PATH=LIBDIR) | env

    def start(self, path, *names, **env):
        """A program, whose log is in p.log."""
        log = tempfile.NamedTemporaryFile(dir=self.dir, suffix=".log", delete=False)
        p = subprocess.Popen([sys.executable, "-c", PROGRAM, path, *names], stdin=subprocess.PIPE,
                             stderr=log, env=self.environment(**env))
        p.log = log.name
        log.close()
        self.addCleanup(p.wait)
        self.addCleanup(p.stdin.close)
        self.addCleanup(p.kill)
        return p

    def log(self, p):
        return Path(p.log).read_text()

    def wait_for(self, p, *words):
        for word in words:
            until(lambda: word in self.log(p), lambda: f"'{word}' in:\n{self.log(p)}")

    def end(self, p):
        p.stdin.close()
        self.assertEqual(p.wait(PATIENCE), 0, self.log(p))

    def entries(self):
        return glob.glob(os.path.join(self.cache, "*.kernel"))

    def helpers(self, p):
        """The processes that compile for this program."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                words = Path(path).read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == b"heddle-compiler" and words[3] == str(p.pid).encode():
                found.append(int(path.split("/")[2]))
        return found

    def compiled(self, *programs):
        """The kernels that programs asked their compilers for."""
        return [name for p in programs
                for name in re.findall(r"kernel (\w+): asks the compiler", self.log(p))]


class After(Case):
    NAMES = ("a", "b", "c")

    def expect_next_run_has_all(self, path):
        q = self.start(path, *self.NAMES)
        self.wait_for(q, *(f"kernel {n} found in the cache" for n in self.NAMES))
        self.end(q)
        self.assertEqual(self.compiled(q), [])

    def start_hot(self, path, **env):
        p = self.start(path, *self.NAMES, **env)
        self.wait_for(p, *(f"kernel {n} is hot" for n in self.NAMES))
        return p

    def test_what_was_hot_is_compiled_after_the_end(self):
        path = self.write(900, *self.NAMES)
        p = self.start_hot(path)
        self.end(p)
        until(lambda: not self.helpers(p), "its end")
        self.assertEqual(len(self.entries()), 3)
        self.assertEqual(glob.glob(os.path.join(self.cache, "*.making")), [])
        self.expect_next_run_has_all(path)

    def test_the_same_if_the_program_is_killed(self):
        path = self.write(900, *self.NAMES)
        p = self.start_hot(path)
        p.kill()
        until(lambda: not self.helpers(p), "its end")
        self.assertEqual(len(self.entries()), 3)
        self.expect_next_run_has_all(path)

    def test_the_same_if_the_cache_has_a_relative_name(self):
        path = self.write(900, *self.NAMES)
        p = self.start_hot(path, HEDDLE_CACHE=os.path.relpath(self.cache))
        self.end(p)
        until(lambda: len(self.entries()) == 3, "three objects")

    def test_nothing_happens_if_it_is_off(self):
        path = self.write(4000, *self.NAMES)
        p = self.start_hot(path, HEDDLE_CPU_AFTER="off")
        p.kill()
        until(lambda: not self.helpers(p), "its end")
        self.assertLess(len(self.entries()), 3)

    def test_it_ends_when_it_is_told_to(self):
        path = self.write(4000, *self.NAMES)
        p = self.start_hot(path)
        self.end(p)
        turn = os.path.join(self.cache, "after.lock")
        # The one that says so, not the compilers that the program has left.
        until(lambda: os.path.exists(turn) and Path(turn).read_text(), "its turn")
        pid = int(Path(turn).read_text().split()[0])
        self.assertIn(pid, self.helpers(p))
        os.kill(pid, signal.SIGTERM)
        until(lambda: not self.helpers(p), "its end")
        self.assertLess(len(self.entries()), 3)

    def test_it_has_nothing_of_the_program(self):
        path = self.write(4000, *self.NAMES)
        p = self.start_hot(path)
        self.end(p)
        helper = self.helpers(p)[0]
        for fd in (0, 1, 2):
            self.assertEqual(os.readlink(f"/proc/{helper}/fd/{fd}"), "/dev/null")
        self.assertNotEqual(os.getsid(helper), os.getsid(0))
        until(lambda: os.getpriority(os.PRIO_PROCESS, helper) == 19, "a low priority")
        os.kill(helper, signal.SIGTERM)
        until(lambda: not self.helpers(p), "its end")

    def test_the_number_of_kernels_is_bounded(self):
        path = self.write(900, *self.NAMES)
        p = self.start_hot(path, HEDDLE_CPU_AFTER_MOST="0")
        self.end(p)
        until(lambda: not self.helpers(p), "its end")
        # What was being compiled is finished.
        self.assertLess(len(self.entries()), 3)


    @unittest.skipUnless(os.environ.get("HED_NVCC"), "no nvcc")
    def test_kernels_in_machine_code_too(self):
        path = self.write(900, *self.NAMES)
        cubin = os.path.join(self.dir, "kernels.cubin")
        subprocess.run([os.environ["HED_NVCC"], "-cubin", "-arch=sm_80", path, "-o", cubin],
                       check=True, timeout=PATIENCE)
        self.end(self.start_hot(cubin))
        until(lambda: len(self.entries()) == 3, "three objects")
        self.expect_next_run_has_all(cubin)
        # It has stored them under the names that machine code has.
        self.assertEqual(len(self.entries()), 6)
        q = self.start(cubin, *self.NAMES, HEDDLE_CPU_CODEGEN="warp", HEDDLE_CPU_AFTER="off")
        self.wait_for(q, *(f"kernel {n} found in the cache" for n in self.NAMES))
        self.end(q)


class Server(Case):
    NAMES = ("a",)

    def test_workers_leave_nothing_behind(self):
        path, address = self.write(900, *self.NAMES), f"shm:{self.dir}/s"
        with open(os.path.join(self.dir, "server.log"), "w+", encoding="utf-8") as log:
            server = subprocess.Popen(
                [HEDDLE, "serve", "--gpu", "cpu", "--listen", address, "--sandbox", "off",
                 "--confine", "no"], stderr=log, env=self.environment())
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            until(lambda: os.path.exists(f"{self.dir}/s"), "the server's socket")
            p = self.start(path, *self.NAMES, HEDDLE_GPU=address)
            until(lambda: "kernel a is hot" in Path(log.name).read_text(), "a hot kernel")
            found = [c for c in glob.glob("/proc/[0-9]*/cmdline") if self.is_helper(c)]
            self.assertEqual(found, [])
            self.end(p)

    def is_helper(self, path):
        try:
            words = Path(path).read_bytes().split(b"\0")
        except OSError:
            return False
        return words[0] == b"heddle-compiler" and self.cache.encode() in words


class TakenOver(Case):
    """A program that was taken over tells the fork server what is not true."""

    SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

    def text(self, number, lines=10):
        return (".version 7.0\n.target sm_70\n.address_size 64\n"
                f"// {number}\n" + kernel("k", lines)).encode()

    def request(self, text, claim, number=0, flags=1):
        name = b"k"
        abi = int(re.search(r"#define HED_PTX_ABI (\d+)", ABI.read_text()).group(1))
        return struct.pack("<10I2Q32s32s", 0x48464d33, number, abi, 0, 2, flags, 60, len(name), 0,
                           0, 0, len(text), hashlib.blake2b(text, digest_size=32).digest(),
                           claim) + name

    def give(self, to, request, text, seals=SEALS):
        fd = os.memfd_create("text", os.MFD_ALLOW_SEALING)
        os.write(fd, text)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        socket.send_fds(to, [request], [fd])
        os.close(fd)

    def start_compiler(self, program=None):
        """The fork server, and our ends of the socket of a compiler and of that of the list."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
        os.makedirs(self.cache, mode=0o700)
        p = subprocess.Popen(
            ["heddle-compiler", "1", "0", str(program or os.getpid()), "600", "100", str(1 << 30),
             self.cache],
            executable=os.path.join(LIBDIR, "heddle-compiler"), close_fds=False,
            preexec_fn=lambda: [os.dup2(theirs.fileno(), 100 + i) for i, (_, theirs)
                                in enumerate(pairs)] and [os.dup2(100 + i, 3 + i) for i in (0, 1)])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        for ours, theirs in pairs:
            self.addCleanup(ours.close)
            theirs.close()
        return p, pairs[0][0], pairs[1][0]

    def end_program(self, p, *sockets):
        for s in sockets:
            s.close()
        self.assertEqual(p.wait(PATIENCE), 0)

    def test_the_key_follows_from_the_text(self):
        theirs = b"t" * 32
        p, compiler, wanted = self.start_compiler()
        self.give(wanted, self.request(self.text(1), theirs), self.text(1))
        self.end_program(p, compiler, wanted)
        self.assertEqual(len(self.entries()), 1)
        self.assertNotIn(theirs.hex(), self.entries()[0])

    def test_a_text_that_is_another_is_not_compiled(self):
        p, compiler, wanted = self.start_compiler()
        self.give(wanted, self.request(self.text(1), b"t" * 32), self.text(2))
        self.end_program(p, compiler, wanted)
        self.assertEqual(self.entries(), [])

    def test_nor_if_it_was_begun_before_the_end(self):
        p, compiler, wanted = self.start_compiler()
        self.give(compiler, self.request(self.text(1), b"t" * 32, 1, 5), self.text(2))
        answer = compiler.recv(4096)
        self.assertEqual(struct.unpack_from("<3Ii", answer)[1:3], (1, 1))
        self.assertLess(struct.unpack_from("<3Ii", answer)[3], 0)
        self.assertIn(b"is not what the request", answer)
        self.end_program(p, compiler, wanted)
        self.assertEqual(self.entries(), [])


    def test_only_memory_that_cannot_change_is_read(self):
        p, compiler, wanted = self.start_compiler()
        self.give(wanted, self.request(self.text(1), b"t" * 32), self.text(1), fcntl.F_SEAL_WRITE)
        self.give(compiler, self.request(self.text(1), b"t" * 32, 1, 5), self.text(1), 0)
        self.assertIn(b"cannot read", compiler.recv(4096))
        self.end_program(p, compiler, wanted)
        self.assertEqual(self.entries(), [])

    def test_its_end_is_seen_although_others_have_its_sockets(self):
        program = subprocess.Popen(["sleep", "infinity"])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        p, compiler, wanted = self.start_compiler(program.pid)
        self.give(wanted, self.request(self.text(1), b"t" * 32), self.text(1))
        program.kill()
        self.assertEqual(p.wait(PATIENCE), 0)
        self.assertEqual(len(self.entries()), 1)
        self.assertGreaterEqual(min(compiler.fileno(), wanted.fileno()), 0)

    def test_it_cannot_give_itself_away(self):
        p, compiler, wanted = self.start_compiler()
        for s in (compiler, wanted):
            socket.send_fds(wanted, [self.request(self.text(1), os.urandom(32))], [s.fileno()])
        self.end_program(p, compiler, wanted)

    def test_nothing_is_stored_while_it_lives(self):
        p, compiler, wanted = self.start_compiler()
        compiler.shutdown(socket.SHUT_RD)
        text = self.text(1, 1000)
        self.give(compiler, self.request(text, b"t" * 32, 1, 5), text)
        # The compiler works for a while, and ends because it cannot answer.
        until(lambda: b"heddle-compile" in self.children(p), "a compiler")
        until(lambda: b"heddle-compile" not in self.children(p), "its end")
        self.assertEqual(self.entries(), [])
        p.kill()

    def children(self, p):
        found = b""
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                text = Path(path).read_bytes()
            except OSError:
                continue
            name, rest = text.split(b"(", 1)[1].rsplit(b")", 1)
            if rest.split()[1] == str(p.pid).encode() and rest.split()[0] != b"Z":
                found += name + b" "
        return found

    def test_a_lock_that_nobody_can_have_is_not_waited_for(self):
        p, compiler, wanted = self.start_compiler()
        os.symlink("nowhere", os.path.join(self.cache, "after.lock"))
        self.give(wanted, self.request(self.text(1), b"t" * 32), self.text(1))
        self.end_program(p, compiler, wanted)
        self.assertEqual(self.entries(), [])


class Together(Case):
    NAMES = ("a", "b", "c", "d")

    def run_two(self, **env):
        path = self.write(600, *self.NAMES)
        both = [self.start(path, *self.NAMES, **env) for _ in range(2)]
        for p in both:
            for n in self.NAMES:
                until(lambda: any(f"kernel {n}{what}" in self.log(p) for what in (
                    ": launches use compiled code", " found in the cache", " compiled in")),
                    lambda: self.log(p))
        for p in both:
            self.end(p)
        self.assertEqual(sorted(self.compiled(*both)), sorted(self.NAMES),
                         "\n\n".join(map(self.log, both)))

    def test_two_programs_do_not_compile_the_same(self):
        self.run_two()

    def test_nor_do_they_before_the_first_launch(self):
        self.run_two(HEDDLE_CPU_CODEGEN="warp")


if __name__ == "__main__":
    unittest.main()
