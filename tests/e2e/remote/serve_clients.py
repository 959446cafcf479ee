#!/usr/bin/env python3
"""Real clients of a server: what the status says about them, limits, and deaths on both sides.

    HED_BUILD=build/dev serve_clients.py [Case.test...]

The server's devices are those of the CPU GPU; no kernel runs. A client is a Python program that
calls libcuda.so.1 as any program would.
"""

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from serve_case import (HEDDLE, NOBODY, PATIENCE, ROOT, Case, Server,  # noqa: E402
                        clean_environment, until)

PROGRAM = """
import ctypes, sys, threading
cuda = ctypes.CDLL("libcuda.so.1")
def say(*words):
    print(*words, flush=True)
def start():
    r = cuda.cuInit(0)
    if r == 0:
        r = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0) or cuda.cuCtxSetCurrent(ctx)
    return r
def alloc(n):
    p = ctypes.c_uint64()
    return cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(n)), p
def copy(p, n):
    return cuda.cuMemcpyHtoD_v2(p, bytes(n), ctypes.c_size_t(n))
ctx = ctypes.c_void_p()
for line in sys.stdin:
    exec(line)
"""

UNAVAILABLE = "46"
MANY = 400  # channels: more than fit into the queue of a worker that is behind


class Client:
    """A program under heddle run that executes one line of commands at a time."""

    def __init__(self, case, address, **env):
        self.log_path = os.path.join(case.dir, f"client{len(case.clients)}")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [HEDDLE, "run", "--gpu", address, "--", sys.executable, "-c", PROGRAM],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                env=clean_environment(**env))
        case.clients.append(self)

    def log(self):
        with open(self.log_path, encoding="utf-8") as f:
            return f.read()

    def do(self, line):
        """Executes a line, and returns what it prints."""
        self.tell(line)
        return self.hear()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        """Reads the next line. A client that hangs fails the test."""
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            return "nothing"
        return self.process.stdout.readline().strip()


@unittest.skipIf(os.environ.get("HED_SANITIZE"), "what is preloaded has no sanitizer")
class ClientCase(Case):
    def setUp(self):
        super().setUp()
        self.clients = []

    def tearDown(self):
        for c in self.clients:
            c.process.kill()
            c.process.wait()
            c.process.stdin.close()
            c.process.stdout.close()
        super().tearDown()

    def serve(self, *options):
        return Server(self, *options, gpu="cpu")

    def client(self, server, transport="shm", **env):
        c = Client(self, f"{transport}:{server.path}", **env)
        self.assertEqual(c.do("say(start())"), "0", server.log())
        return c

    def lost(self, c):
        """Does every call fail with the error of a lost device?"""
        # A small copy does not wait for its end, so the first call may not notice the loss yet.
        c.do("say(copy(p, 4096))")
        self.assertEqual(c.do("say(cuda.cuCtxSynchronize())"), UNAVAILABLE)
        self.assertEqual(c.do("say(copy(p, 4096))"), UNAVAILABLE)
        c.process.stdin.close()
        self.assertEqual(c.process.wait(PATIENCE), 0)


class Clients(ClientCase):
    def test_the_status_describes_a_client(self):
        server = self.serve()
        for transport in ("shm", "unix"):
            c = self.client(server, transport)
            self.assertEqual(c.do("r, p = alloc(64 << 20); say(r, copy(p, 1 << 20), "
                                  "cuda.cuCtxSynchronize())"), "0 0 0")
            status = server.status()
            told = status["clients"][0]
            self.assertEqual(len(status["clients"]), 1)
            self.assertEqual((told["pid"], told["uid"], told["failure"]),
                             (c.process.pid, os.geteuid(), 0))
            self.assertTrue(told["program"].startswith("python"), told)
            self.assertGreaterEqual(told["leased_total_bytes"], 64 << 20)
            self.assertGreaterEqual(status["devices"][0]["leased_bytes"], 64 << 20)
            until(lambda: server.status()["clients"][0]["bytes_in"] >= 1 << 20, server.status)
            self.assertGreaterEqual(told["channels"], 1)
            until(lambda: server.status()["clients"][0]["messages"] > 2, server.status)
            c.process.stdin.close()
            self.assertEqual(c.process.wait(PATIENCE), 0)
            until(lambda: not server.status()["clients"])
            self.assertEqual(server.status()["devices"][0]["leased_bytes"], 0)

    def test_nvml_shows_the_memory_of_all_clients(self):
        ask = ("m = (ctypes.c_uint64 * 3)(); nvml = ctypes.CDLL('libnvidia-ml.so.1'); "
               "d = ctypes.c_void_p(); say(nvml.nvmlInit_v2(), "
               "nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d)), "
               "nvml.nvmlDeviceGetMemoryInfo(d, m), *m)")
        for sandbox in ("auto", "off"):
            server = self.serve("--sandbox", sandbox, "--grace", "0")
            a, b = self.client(server), self.client(server)
            # The answer to an allocation does not wait for the worker; that to a wait does.
            self.assertEqual(a.do("say(alloc(256 << 20)[0] or cuda.cuCtxSynchronize())"), "0")
            *results, total, free, used = map(int, b.do(ask).split())
            self.assertEqual(results, [0, 0, 0])
            self.assertEqual(total, free + used)
            self.assertGreaterEqual(used, 256 << 20)
            for c in (a, b):
                c.process.stdin.close()
                self.assertEqual(c.process.wait(PATIENCE), 0)
            self.assertEqual(server.stop(), 0)

    def test_threads_have_channels(self):
        server = self.serve()
        c = self.client(server)
        said = c.do("t = [threading.Thread(target=lambda: cuda.cuCtxSetCurrent(ctx) or copy("
                    "alloc(4096)[1], 4096)) for _ in range(8)]; [x.start() for x in t]; "
                    "[x.join() for x in t]; say(cuda.cuCtxSynchronize())")
        self.assertEqual(said, "0")
        self.assertGreater(server.status()["clients"][0]["channels"], 1)

    def test_threads_take_turns_when_there_are_not_enough_channels(self):
        for transport in ("shm", "unix"):
            for channels, threads in ((1, 5), (6, 40)):
                server = self.serve("--channels", str(channels))
                c = self.client(server, transport)
                # All threads are alive at the same time, and come back.
                c.tell(f"b, done = threading.Barrier({threads}), []")
                c.tell("once = lambda p: copy(p, 4096) or cuda.cuCtxSynchronize()")
                c.tell("work = lambda: (cuda.cuCtxSetCurrent(ctx), r := alloc(4096), done.append("
                       "once(r[1])), b.wait(), done.append(once(r[1])), b.wait())")
                self.assertEqual(
                    c.do(f"t = [threading.Thread(target=work) for _ in range({threads})]; "
                         "[x.start() for x in t]; [x.join() for x in t]; "
                         f"say(done == [0] * {2 * threads}, cuda.cuCtxSynchronize())"),
                    "True 0", server.log() + c.log())
                self.assertLessEqual(server.status()["clients"][0]["channels"], channels)
                self.assertNotIn("channels already", server.log())
                c.process.stdin.close()
                self.assertEqual(c.process.wait(PATIENCE), 0)
                server.stop()

    def begin_waiting(self, server, then):
        """A client with a kernel f that waits until the word w is not 0, and then does this."""
        c = self.client(server)
        ptx = (".version 7.0\\n.target sm_70\\n.address_size 64\\n"
               ".visible .entry k(.param .u64 p) {\\n"
               ".reg .b64 d; .reg .b32 r; .reg .pred q; ld.param.u64 d, [p];\\n"
               "L: ld.volatile.global.u32 r, [d]; setp.eq.u32 q, r, 0; @q bra L;\\n"
               f"{then};\\n}}\\n")
        for line in (
                "m, f, s = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()",
                "h, d = ctypes.c_void_p(), ctypes.c_uint64()",
                "e, key = ctypes.c_void_p(), (ctypes.c_ubyte * 64)()",
                "event = lambda: (cuda.cuEventCreate(ctypes.byref(e), 6) or "
                "cuda.cuIpcGetEventHandle(key, e) or cuda.cuEventRecord(e, s))",
                "launch = lambda: cuda.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, a, None)"):
            c.tell(line)
        self.assertEqual(
            c.do(f"say(cuda.cuModuleLoadData(ctypes.byref(m), b'{ptx}\\0'), "
                 "cuda.cuModuleGetFunction(ctypes.byref(f), m, b'k'), "
                 "cuda.cuStreamCreate(ctypes.byref(s), 1), "
                 "cuda.cuMemHostAlloc(ctypes.byref(h), ctypes.c_size_t(4096), 2), "
                 "cuda.cuMemHostGetDevicePointer_v2(ctypes.byref(d), h, 0))"), "0 0 0 0 0")
        c.tell("w = ctypes.c_uint32.from_address(h.value); w.value = 0")
        c.tell("a = (ctypes.c_void_p * 1)(ctypes.addressof(d))")
        return c

    def test_freeing_a_shared_event_waits_for_nothing(self):
        """The page of an event goes while a kernel of its context runs. The kernel waits for the
        program, which waits for the answer of the worker."""
        server = self.serve()
        c = self.begin_waiting(server, "ret")
        self.assertEqual(c.do("say(event(), cuda.cuStreamSynchronize(s), launch(), "
                              "cuda.cuEventDestroy_v2(e))"), "0 0 0 0")
        for _ in range(3):
            self.assertEqual(c.do("say(event(), cuda.cuEventQuery(e), cuda.cuEventDestroy_v2(e))"),
                             "0 600 0", server.log())
        self.assertEqual(c.do("w.value = 1; say(cuda.cuCtxSynchronize(), event(), "
                              "cuda.cuCtxSynchronize(), cuda.cuEventQuery(e))"), "0 0 0 0")

    def test_nobody_waits_for_events_of_a_failed_context(self):
        """The kernel before the record fails, and the program goes on without a GPU."""
        server = self.serve()
        failing, other = self.begin_waiting(server, "trap"), self.client(server)
        *said, key = failing.do("say(launch(), event(), bytes(key).hex())").split()
        self.assertEqual(said, ["0", "0"], server.log())
        other.tell("class Key(ctypes.Structure): _fields_ = [('b', ctypes.c_ubyte * 64)]")
        other.tell(f"k, e = Key.from_buffer_copy(bytes.fromhex('{key}')), ctypes.c_void_p()")
        self.assertEqual(other.do("say(cuda.cuIpcOpenEventHandle(ctypes.byref(e), k), "
                                  "cuda.cuEventQuery(e), cuda.cuStreamWaitEvent(None, e, 0))"),
                         "0 600 0")
        self.assertNotEqual(failing.do("w.value = 1; say(cuda.cuCtxSynchronize())"), "0")
        self.assertEqual(other.do("say(cuda.cuCtxSynchronize(), cuda.cuEventSynchronize(e))"),
                         "0 0", server.log())

    def test_a_stopped_worker_is_given_up(self):
        """Its client ends with the error of a lost device; others are served."""
        server = self.serve()
        for transport in ("shm", "unix"):
            c = self.client(server, transport, HEDDLE_SERVER_TIMEOUT="1000")
            self.assertEqual(c.do("r, p = alloc(4096); say(r or copy(p, 4096))"), "0")
            worker = server.workers()[0]
            os.kill(worker, signal.SIGSTOP)
            self.lost(c)
            self.assertIn("gives no sign of life", c.log())
            # The client is gone, but its worker cannot know that.
            os.kill(worker, signal.SIGCONT)
            until(lambda: not server.workers(), server.status)
        c = self.client(server)
        self.assertEqual(c.do("r, p = alloc(4096); say(r or copy(p, 4096))"), "0")

    def test_a_stopped_client_does_not_keep_the_server(self):
        for transport in ("shm", "unix"):
            server = self.serve("--grace", "0")
            c = self.client(server, transport)
            self.assertEqual(c.do("r, p = alloc(4096); say(r or copy(p, 4096))"), "0")
            os.kill(c.process.pid, signal.SIGSTOP)
            self.assertEqual(server.stop(), 0)
            os.kill(c.process.pid, signal.SIGCONT)
            self.lost(c)

    def test_channels_wait_for_a_worker_that_is_behind(self):
        server = self.serve()
        c = self.client(server, HEDDLE_SERVER_TIMEOUT="600000")
        self.assertEqual(c.do("done = []; r, p = alloc(4096); say(r or copy(p, 4096))"), "0")
        worker = server.workers()[0]
        others = itertools.count(server.status()["connections"] + 1)  # each question is one
        os.kill(worker, signal.SIGSTOP)
        c.tell(f"t = [threading.Thread(target=lambda: cuda.cuCtxSetCurrent(ctx) or done.append("
               f"copy(p, 4096) or cuda.cuCtxSynchronize())) for _ in range({MANY})]; "
               f"[x.start() for x in t]; [x.join() for x in t]; say(done == [0] * {MANY})")
        until(lambda: server.status()["connections"] - next(others) >= MANY, server.status)
        os.kill(worker, signal.SIGCONT)
        self.assertEqual(c.hear(), "True")

    def test_memory_is_limited(self):
        server = self.serve("--memory", "256M")
        a, b = self.client(server), self.client(server)
        self.assertEqual(a.do("say(alloc(200 << 20)[0], alloc(200 << 20)[0])"), "0 2")
        self.assertEqual(b.do("say(alloc(200 << 20)[0])"), "0")
        self.assertLessEqual(server.status()["clients"][0]["leased_total_bytes"], 256 << 20)

    def test_variables_of_modules_are_limited(self):
        server = self.serve("--memory", "64M")
        c = self.client(server)
        load = ("say(cuda.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), b'.version 7.0\\n"
                ".target sm_70\\n.address_size 64\\n.visible .global .b8 x[%d];'))")
        self.assertEqual(c.do(load % (1 << 20)), "0")
        self.assertEqual(c.do(load % 1500000000), "2", server.log())
        # The limit does not turn the sandbox off.
        self.assertNotIn("sandbox: off (a layer", server.log())
        self.assertEqual(c.do("n = ctypes.c_size_t(); cuda.cuDeviceTotalMem_v2(ctypes.byref(n), 0);"
                              " say(n.value >> 20)"), "64")

    def test_programs_steer_their_own_layers(self):
        # A server that a program under heddle.use() starts has this in its environment.
        mode = ("--sandbox", "require") if ROOT else ()
        server = Server(self, *mode, gpu="cpu", env=clean_environment(HEDDLE_CONTROL="yes"))
        self.assertNotIn("sandbox: off (a layer", server.log())
        if ROOT:
            self.assertIn("sandbox: ", server.log())
        c = self.client(server)
        self.assertEqual(c.do("say(alloc(4096)[0])"), "0")

    def test_questions_leave_no_socket(self):
        server = self.serve()
        meet = f"{self.dir}/meet"
        os.mkdir(meet, 0o700)
        env = clean_environment(HEDDLE_GPU=f"shm:{server.path}", HEDDLE_MEET_DIR=meet)
        for words in (["devices"], ["devices", "--gpu", f"unix:{server.path}"], ["doctor"]):
            r = subprocess.run([HEDDLE, *words], env=env, capture_output=True, text=True,
                               timeout=PATIENCE, stdin=subprocess.DEVNULL)
            self.assertIn(r.returncode, (0, 1), r.stderr)
            self.assertEqual([n for n in os.listdir(meet) if n.startswith("snap-")], [], words)

    def test_a_killed_client_frees_everything(self):
        server = self.serve()
        c = self.client(server)
        self.assertEqual(c.do("say(alloc(1 << 30)[0])"), "0")
        worker = server.workers()[0]
        c.process.kill()
        until(lambda: not server.workers())
        self.assertFalse(os.path.exists(f"/proc/{worker}"))
        self.assertEqual(server.status()["devices"][0]["leased_bytes"], 0)

    def test_a_killed_worker_is_one_clients_loss(self):
        server = self.serve()
        for transport in ("shm", "unix"):
            a, b = self.client(server, transport), self.client(server, transport)
            for c in (a, b):
                self.assertEqual(c.do("r, p = alloc(1 << 20); say(r)"), "0")
            worker = {c["pid"]: c["worker"] for c in server.status()["clients"]}[a.process.pid]
            os.kill(worker, signal.SIGKILL)
            until(lambda: worker not in server.workers())
            self.lost(a)
            self.assertEqual(b.do("say(copy(p, 4096), cuda.cuCtxSynchronize())"), "0 0")
            b.process.stdin.close()
            b.process.wait(PATIENCE)

    def test_a_killed_listener_is_every_clients_loss(self):
        server = self.serve()
        clients = [self.client(server, t) for t in ("shm", "unix")]
        for c in clients:
            self.assertEqual(c.do("r, p = alloc(1 << 20); say(r)"), "0")
        workers = server.workers()
        server.process.kill()
        server.process.wait()
        until(lambda: not any(os.path.exists(f"/proc/{w}") for w in workers))
        for c in clients:
            self.lost(c)

    def test_a_restarted_server_does_not_know_old_clients(self):
        server = self.serve()
        old = self.client(server)
        self.assertEqual(old.do("r, p = alloc(1 << 20); say(r)"), "0")
        server.process.kill()
        server.process.wait()
        again = self.serve()
        new = self.client(again)
        # A new thread of the old client asks for a channel of a session that no longer exists.
        self.assertEqual(old.do("t = threading.Thread(target=lambda: cuda.cuCtxSetCurrent(ctx) or "
                                "say(cuda.cuCtxSynchronize())); t.start(); t.join()"), UNAVAILABLE)
        self.lost(old)
        self.assertEqual(new.do("say(alloc(4096)[0])"), "0")

    def test_a_full_server_says_so(self):
        server = self.serve("--clients", "1")
        self.client(server)
        c = Client(self, f"shm:{server.path}")
        self.assertNotEqual(c.do("say(start())"), "0")

    def test_idle_clients_are_ended(self):
        # Longer than a slow machine needs between two calls of one line.
        server = self.serve("--idle", "5")
        c = Client(self, f"shm:{server.path}")
        self.assertEqual(c.do("r = start(); r = r, *alloc(1 << 20); p = r[2]; say(r[0], r[1])"),
                         "0 0")
        until(lambda: not server.workers())
        server.until_logged("the session ends")
        self.lost(c)

    def test_a_client_that_waits_is_not_idle(self):
        server = self.serve("--idle", "2")
        c = self.client(server)
        # A function of the program: the stream waits for it, and the client for the stream.
        self.assertEqual(c.do(
            "import time; f = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: time.sleep(5)); "
            "cuda.cuLaunchHostFunc(None, f, None); say(cuda.cuCtxSynchronize())"), "0",
            server.log())

    def test_sessions_are_limited(self):
        server = self.serve("--session", "10")
        c = self.client(server)
        self.assertEqual(c.do("r, p = alloc(1 << 20); say(r)"), "0")
        until(lambda: not server.workers())
        server.until_logged("(--session)")
        self.lost(c)

    def operator(self, server, *words):
        r = subprocess.run([HEDDLE, "serve", "--listen", f"shm:{server.path}", *words], text=True,
                           capture_output=True, env=clean_environment(), timeout=PATIENCE)
        return r.returncode, r.stdout + r.stderr

    def test_operators_list_and_evict(self):
        server = self.serve()
        a, b = self.client(server), self.client(server)
        self.assertEqual(a.do("r, p = alloc(1 << 20); say(r)"), "0")
        code, text = self.operator(server, "--list")
        rows = [line.split() for line in text.splitlines()]
        self.assertEqual((code, rows[0][:3], len(rows)), (0, ["WORKER", "PROGRAM", "CLIENT"], 3))
        told = {c["pid"]: c["worker"] for c in server.status()["clients"]}
        self.assertEqual({int(row[0]) for row in rows[1:]}, set(told.values()))
        worker = told[a.process.pid]
        self.assertEqual(self.operator(server, "--evict", str(worker)), (0, ""))
        until(lambda: worker not in server.workers())
        server.until_logged(f"worker {worker} (python")
        server.until_logged("was evicted")
        self.lost(a)
        self.assertEqual(b.do("say(alloc(4096)[0])"), "0")
        self.assertEqual(self.operator(server, "--evict", "1")[0], 1)
        self.assertIn("there is no worker 1", self.operator(server, "--evict", "1")[1])
        self.assertEqual(self.operator(server, "--evict", "x")[0], 2)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_other_users_see_their_own_clients(self):
        def look(server, *words):
            try:
                r = subprocess.run([HEDDLE, "serve", "--listen", f"shm:{server.path}", *words],
                                   user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", text=True,
                                   capture_output=True, env=clean_environment(), timeout=PATIENCE)
            except PermissionError:
                self.skipTest("others cannot read the build folder")
            self.assertEqual(r.returncode, 0, r.stderr)
            return r.stdout
        os.chmod(self.dir, 0o755)
        for which, count in (("own", 0), ("all", 1)):
            server = self.serve("--mode", "0666", "--allow-uid", "all", "--show-clients", which)
            c = self.client(server)
            self.assertEqual(look(server, "--list").count("python"), count)
            self.assertEqual(look(server, "--status").count("python"), count)
            self.assertEqual(len(json.loads(look(server, "--status", "--json"))["clients"]), count)
            self.assertEqual(len(server.workers()), 1)  # root sees all
            c.process.stdin.close()
            self.assertEqual(c.process.wait(PATIENCE), 0)
            self.assertEqual(server.stop(), 0)

    def test_it_stops_when_its_clients_have_ended(self):
        server = self.serve()
        c = self.client(server)
        server.process.send_signal(signal.SIGTERM)
        server.until_logged("stopping")
        self.assertEqual(c.do("r, p = alloc(1 << 20); say(r, copy(p, 4096))"), "0 0")
        c.process.stdin.close()
        self.assertEqual(c.process.wait(PATIENCE), 0)
        self.assertEqual(server.process.wait(PATIENCE), 0)

    def test_idle_clients_leave_memory_for_others(self):
        """Each of them asks for more than it needs, so that it need not ask again soon."""
        server = self.serve()
        idle = [self.client(server) for _ in range(20)]
        for c in idle:
            self.assertEqual(c.do("r, p = alloc(1 << 20); say(r)"), "0")
        total = server.status()["devices"][0]["total_bytes"]
        last = self.client(server)
        self.assertEqual(last.do(f"r, p = alloc({total // 2}); say(r)"), "0")
        # A client that has had much memory gives it back, too.
        self.assertEqual(last.do("say(cuda.cuMemFree_v2(p))"), "0")
        until(lambda: idle[0].do(f"r, q = alloc({total // 4 * 3}); say(r)") == "0")

    def test_a_client_that_rests_gives_memory_back(self):
        server = self.serve()
        c = self.client(server)
        self.assertEqual(c.do("r, p = alloc(100 << 20); say(r, cuda.cuMemFree_v2(p))"), "0 0")
        self.assertEqual(c.do("r, p = alloc(1 << 20); say(r)"), "0")
        until(lambda: server.status()["clients"][0]["leased_total_bytes"] < 16 << 20,
              server.status)
        self.assertEqual(c.do("r, q = alloc(100 << 20); say(r, copy(p, 4096), copy(q, 4096))"),
                         "0 0 0")

    def test_64_clients(self):
        server = self.serve("--memory", "64M")
        clients = [Client(self, f"shm:{server.path}") for _ in range(64)]
        for c in clients:
            c.tell("say(start())")
        for c in clients:
            self.assertEqual(c.hear(), "0")
        self.assertEqual(len(server.workers()), 64)
        for c in clients:
            self.assertEqual(c.do("r, p = alloc(1 << 20); say(r, copy(p, 1 << 20))"), "0 0")
        for c in clients:
            c.process.stdin.close()
        until(lambda: not server.workers())


if __name__ == "__main__":
    # Only the tests of this file, not those that were imported.
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or ["Clients"])])
