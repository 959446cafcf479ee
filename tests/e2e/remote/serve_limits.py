#!/usr/bin/env python3
"""Limits of a server, and clients that go over them: kernels without an end, code that takes for
ever to compile. No test asserts a time: without the limit, it would not end.

    HED_BUILD=build/dev serve_limits.py [Case.test...]
"""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from serve_case import HEDDLE, HEDDLED, PATIENCE, Server, clean_environment, until  # noqa: E402
from serve_clients import UNAVAILABLE, ClientCase  # noqa: E402

HEAD = ".version 7.0\\n.target sm_75\\n.address_size 64\\n"
LAUNCH_TIMEOUT = "702"
COMPILER = os.path.exists(os.path.join(os.path.dirname(HEDDLED), "compiler-llvm.so"))

# Functions for the client, in lines of their own.
TOOLS = [
    "m, f = ctypes.c_void_p(), ctypes.c_void_p()",
    "load = lambda t: (cuda.cuModuleLoadData(ctypes.byref(m), t.encode() + bytes(1)) or "
    "cuda.cuModuleGetFunction(ctypes.byref(f), m, b'k'))",
    "launch = lambda: cuda.cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, None, None, None)",
    f"endless = '{HEAD}.visible .entry k() {{\\nL: bra L;\\n}}\\n'",
    f"brief = '{HEAD}.visible .entry k() {{\\nret;\\n}}\\n'",
    # Loops within loops: what is known of them grows faster than their number.
    f"bomb = '{HEAD}.visible .entry k() {{\\n.reg .pred q; .reg .b32 r; mov.u32 r, %tid.x;\\n' + "
    "''.join(f'L{i}: mad.lo.u32 r, r, 1664525, r; setp.lt.u32 q, r, {i}; @q bra L{i // 2};\\n' "
    "for i in range(60000)) + 'ret;\\n}\\n'",
]

# A kernel of any name adds 1 for each of 256 threads: the sum so far.
COUNTS = [
    f"adds = lambda n: '{HEAD}.visible .entry ' + n + '(.param .u64 p) {{\\n.reg .b64 d; "
    "ld.param.u64 d, [p]; red.global.add.u32 [d], 1;\\nret;\\n}\\n'",
    "r, p = alloc(4); w = ctypes.c_uint32(); "
    "cuda.cuMemsetD8_v2(p, 0, ctypes.c_size_t(4))",
    "args = (ctypes.c_void_p * 1)(ctypes.addressof(p))",
    "count = lambda n: (cuda.cuModuleLoadData(ctypes.byref(m), adds(n).encode() + bytes(1)) or "
    "cuda.cuModuleGetFunction(ctypes.byref(f), m, n.encode()) or "
    "cuda.cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, None, args, None) or "
    "cuda.cuMemcpyDtoH_v2(ctypes.byref(w), p, ctypes.c_size_t(4)) or w.value)",
]


class Limits(ClientCase):
    def begin(self, server, transport="shm"):
        c = self.client(server, transport)
        for line in TOOLS:
            c.tell(line)
        return c

    def test_a_kernel_without_an_end_is_ended(self):
        server = self.serve("--kernel-time", "1")
        self.assertEqual(server.status()["limits"]["kernel_seconds"], 1)
        c, other = self.begin(server), self.begin(server)
        self.assertEqual(c.do("say(load(endless), launch(), cuda.cuCtxSynchronize())"),
                         f"0 0 {LAUNCH_TIMEOUT}", server.log())
        self.assertEqual(c.do("say(cuda.cuCtxSynchronize())"), LAUNCH_TIMEOUT)
        # It has lost its context, not its session; and other clients have lost nothing.
        self.assertEqual(len(server.workers()), 2)
        self.assertEqual(other.do("say(load(brief), launch(), cuda.cuCtxSynchronize())"), "0 0 0")

    @unittest.skipUnless(COMPILER, "built without LLVM")
    def test_so_is_a_compiled_one(self):
        server = Server(self, "--kernel-time", "1", gpu="cpu",
                        env=clean_environment(HEDDLE_CPU_CODEGEN="warp"))
        c = self.begin(server)
        self.assertEqual(c.do("say(load(endless), launch(), cuda.cuCtxSynchronize())"),
                         f"0 0 {LAUNCH_TIMEOUT}", server.log())

    @unittest.skipUnless(os.environ.get("HED_DEBUG_BUILD") == "1", "needs a debug build")
    def test_a_device_without_a_limit_of_its_own_costs_the_session(self):
        # As with NVIDIA's driver: the worker looks whether the device gets on.
        server = Server(self, "--kernel-time", "2", gpu="cpu",
                        env=clean_environment(HED_TEST_PROGRESS="1"))
        c, other = self.begin(server), self.begin(server)
        # Many launches, each in time, on several streams.
        self.assertEqual(other.do(
            "s = [ctypes.c_void_p() for _ in range(3)]; "
            "[cuda.cuStreamCreate(ctypes.byref(x), 1) for x in s]; say(load(brief))"), "0")
        for _ in range(3):
            self.assertEqual(other.do(
                "say({cuda.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s[i % 3], None, None) "
                "for i in range(300)}, cuda.cuCtxSynchronize())"), "{0} 0")
        c.tell("say(load(endless), load(brief) or launch(), load(endless) or launch()); "
               "cuda.cuCtxSynchronize()")
        self.assertEqual(c.hear(), "0 0 0")
        server.until_logged("a kernel ran for longer than 2 s (--kernel-time), so the session ends")
        until(lambda: len(server.workers()) == 1)
        self.assertEqual(c.do("say(cuda.cuCtxSynchronize())"), UNAVAILABLE)
        self.assertIn("the server ended the session: a kernel ran for longer than 2 s", c.log())
        self.assertEqual(other.do("say(launch(), cuda.cuCtxSynchronize())"), "0 0")

    def test_code_that_takes_too_long_to_compile_ends_the_session(self):
        server = self.serve("--compile-time", "1")
        self.assertEqual(server.status()["limits"]["compile_seconds"], 1)
        for transport in ("shm", "unix"):
            c = self.begin(server, transport)
            # The launch may be the call that notices it, or the wait.
            self.assertEqual(c.do("say(load(bomb), launch() and 0, cuda.cuCtxSynchronize())"),
                             f"0 0 {UNAVAILABLE}", server.log())
            self.assertIn("the GPU's server is lost: the server ended the session: compiling k "
                          "took more than 1 s of processor time (compile_time)", c.log())
            until(lambda: not server.workers())
            server.until_logged("(compile_time), so the session ends")

    @unittest.skipUnless(COMPILER and os.environ.get("HED_DEBUG_BUILD") == "1",
                         "needs LLVM and a debug build")
    def test_a_compiler_that_crashes_costs_nothing_but_speed(self):
        server = Server(self, gpu="cpu", env=clean_environment(HEDDLE_CPU_CODEGEN="warp"))
        for count, transport in enumerate(("shm", "unix"), 1):
            name = f"heddle_test_compiler_crashes_{transport}"
            c = self.begin(server, transport)
            for line in COUNTS:
                c.tell(line)
            # The kernel itself, and one that a new compiler compiles.
            self.assertEqual(c.do(f"say(count('before'), count('{name}'), count('after'))"),
                             "256 512 768", server.log())
            # One line names it; the other two were compiled.
            stays = "stays in the baseline tier"
            server.until_logged(f"kernel {name} {stays}: the compiler died of signal 11")
            self.assertEqual(server.log().count(stays), count, server.log())
        self.assertEqual(len(server.workers()), 2)

    def test_pinned_memory_is_shared_by_all_clients(self):
        server = self.serve("--total-memory", "1G")
        self.assertIn("for all workers: 1.0 GiB (--total-memory)", server.log())
        limits = server.status()["limits"]
        self.assertEqual((limits["total_memory"], limits["host_memory"]), (1 << 30, 1 << 30))
        a, b = self.begin(server), self.begin(server)
        pin = "q = ctypes.c_void_p(); say(cuda.cuMemAllocHost_v2(ctypes.byref(q), {} << 20))"
        self.assertEqual(a.do(pin.format(640)), "0")
        self.assertEqual(b.do(pin.format(64)), "0")
        self.assertEqual(b.do(pin.format(512)), "2")
        until(lambda: {c["host_bytes"] >> 26 for c in server.status()["clients"]} == {10, 1},
              server.status)
        # What a client had is there for others when it has ended.
        a.process.stdin.close()
        until(lambda: len(server.workers()) == 1)
        self.assertEqual(b.do(pin.format(512)), "0")

    def test_of_workers_that_use_too_much_the_largest_is_ended(self):
        server = self.serve("--total-memory", "512M")
        small, large = self.begin(server), self.begin(server)
        fill = "r, p = alloc({0}); say(r, cuda.cuMemsetD8_v2(p, 1, ctypes.c_size_t({0})))"
        self.assertEqual(small.do(fill.format(64 << 20)), "0 0")
        # Leases are not what counts, so more can be allocated than used.
        self.assertEqual(large.do("r, p = alloc(1 << 30); say(r)"), "0")
        large.tell("cuda.cuMemsetD8_v2(p, 1, ctypes.c_size_t(1 << 30)); cuda.cuCtxSynchronize()")
        server.until_logged("more than 512 MiB (--total-memory)")
        until(lambda: len(server.workers()) == 1)
        self.lost(large)
        self.assertEqual(small.do("say(cuda.cuCtxSynchronize())"), "0")

    def test_memory_that_workers_share_counts_once(self):
        server = self.serve("--total-memory", "512M")
        owner, *others = (self.begin(server) for _ in range(3))
        size = 200 << 20
        fill = f"cuda.cuMemsetD8_v2(p, 1, ctypes.c_size_t({size})) or cuda.cuCtxSynchronize()"
        self.assertEqual(owner.do(f"r, p = alloc({size}); say(r, {fill})"), "0 0")
        handle = owner.do("h = (ctypes.c_ubyte * 64)(); "
                          "say(cuda.cuIpcGetMemHandle(h, p), bytes(h).hex())").split()
        self.assertEqual(handle[0], "0", server.log())
        for c in others:
            c.do("class Handle(ctypes.Structure): _fields_ = [('b', ctypes.c_ubyte * 64)]\n"
                 "say(0)")
            self.assertEqual(
                c.do(f"p = ctypes.c_uint64(); h = Handle.from_buffer_copy(bytes.fromhex("
                     f"'{handle[1]}')); say(cuda.cuIpcOpenMemHandle_v2(ctypes.byref(p), h, 1), "
                     f"{fill})"), "0 0", server.log())
        used = sorted(c["used_bytes"] >> 20 for c in server.status()["clients"])
        # The whole of it for one; the others have what any worker has.
        self.assertTrue(used[1] < 150 < 200 <= used[2], used)
        self.assertEqual(len(server.workers()), 3)
        for c in (owner, *others):
            self.assertEqual(c.do("say(cuda.cuCtxSynchronize())"), "0")

    def test_the_client_is_told_why_its_session_ends(self):
        for option, reason in (("--session", "was served for 2 s (--session)"),
                               ("--idle", "no message came for 2 s (--idle)")):
            server = self.serve(option, "2")
            c = self.begin(server)
            until(lambda: not server.workers())
            self.assertEqual(c.do("say(cuda.cuCtxSynchronize() or alloc(1 << 30)[0])"),
                             UNAVAILABLE)
            self.assertIn(f"the server ended the session: {'the client ' * (option != '--idle')}"
                          f"{reason}", c.log())
            server.until_logged(f"{reason}, so the session ends")
            server.stop()

    def test_an_evicted_client_is_told(self):
        server = self.serve()
        c = self.begin(server)
        worker, = server.workers()
        r = subprocess.run([HEDDLE, "serve", "--listen", f"shm:{server.path}", "--evict",
                            str(worker)], text=True, capture_output=True,
                           env=clean_environment(), timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r.stderr)
        until(lambda: not server.workers())
        self.assertEqual(c.do("say(cuda.cuCtxSynchronize() or alloc(1 << 30)[0])"), UNAVAILABLE)
        self.assertIn("the server ended the session: an operator of the server has evicted",
                      c.log())
        server.until_logged("was evicted")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or ["Limits"])])
