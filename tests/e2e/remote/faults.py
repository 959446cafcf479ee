#!/usr/bin/env python3
"""Fault injection: every way in which a client, its worker, or the connection may fail.

    HED_BUILD=build/dev HED_CLIENT=build/dev/.../e2e_remote_faults faults.py [Case.test...]

The client checks itself (faults.c): it gets the right bytes until the loss, and the same error
afterwards. Here the loss is caused at one message after the other, and seen from outside: no
process hangs or crashes, the server still works, and everything that the client had is freed.
"""

import os
import random
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from serve_case import PATIENCE, Case, Server, clean_environment, until  # noqa: E402
from proxy import Plan, Proxy  # noqa: E402

CLIENT = os.environ.get("HED_CLIENT", "")
DEBUG = os.environ.get("HED_DEBUG_BUILD") == "1"
UNAVAILABLE = 46
SAMPLES = int(os.environ.get("HED_SAMPLES", "60"))  # how often each failure is tried
NOT_READY = 802  # the result of cuInit if the server is lost before there is a device


def sample(last, seed):
    """The messages at which something fails: the first ones, the last, and some of the others."""
    if last <= SAMPLES:
        return range(1, last + 1)
    return sorted({1, 2, 3, 4, 5, last} | set(random.Random(seed).sample(range(6, last),
                                                                        SAMPLES - 6)))


class Faults(Case):
    def serve(self, *options, transport="unix", env=None):
        listen = ["tcp://127.0.0.1:0"] if transport == "tcp" else None
        more = ("--insecure",) if transport == "tcp" else ()
        server = Server(self, "--rate", "10000", *options, *more, listen=listen, gpu="cpu",
                        env=clean_environment(**(env or {})))
        server.address = f"tcp://127.0.0.1:{server.port()}" if transport == "tcp" else \
            f"{transport}:{server.path}"
        return server

    def start(self, address, *words, **env):
        more = {"HEDDLE_INSECURE": "yes"} if address.startswith("tcp") else {}
        return subprocess.Popen([CLIENT, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env=clean_environment(HEDDLE_GPU=address, **more, **env))

    def end(self, client, what, server=None):
        """What the client printed. It must have ended by itself."""
        try:
            said, error = client.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            stacks = subprocess.run(["eu-stack", "-p", str(client.pid)], capture_output=True,
                                    text=True).stdout if os.path.exists("/usr/bin/eu-stack") else ""
            client.kill()
            said, error = client.communicate()
            self.fail(f"{what}: it hangs: {said} {error} {stacks} {server.log() if server else ''}")
        self.assertEqual(client.returncode, 0, f"{what}: {said} {error} "
                         f"{server.log() if server else ''}")
        return said.strip().split("\n")[-1]

    def is_loss(self, said, what):
        """Is it the right error, at a call that may have one?"""
        self.assertTrue(said.startswith("lost at ") or said == "done", f"{what}: {said}")
        if said == "done":
            return
        error = int(said.rsplit(":", 1)[1])
        if "cuInit" in said:
            self.assertEqual(error, NOT_READY, f"{what}: {said}")
        else:
            self.assertEqual(error, UNAVAILABLE, f"{what}: {said}")

    def goes_on(self, server):
        """An undisturbed client is served, and nothing is left of the others."""
        self.assertEqual(self.end(self.start(server.address), "another client", server), "done")
        until(lambda: not server.workers(), server.status)
        self.assertEqual(server.status()["devices"][0]["leased_bytes"], 0)

    def workers_of(self, server):
        path = f"/proc/{server.process.pid}/task/{server.process.pid}/children"
        with open(path, encoding="ascii") as f:
            return f.read().split()


class Proxied(Faults):
    def through(self, server, plan, *words):
        transport = server.address.split(":")[0]
        proxy = Proxy(f"unix:{self.dir}/p" if transport == "unix" else "tcp://", server.address,
                      plan)
        try:
            said = self.end(self.start(proxy.address, *words), str(vars(plan)), server)
        finally:
            proxy.close()
        return said, proxy

    def gone(self, server):
        until(lambda: not self.workers_of(server), "the worker's end")

    def cut_everywhere(self, transport):
        server = self.serve(transport=transport)
        said, proxy = self.through(server, Plan())
        self.assertEqual(said, "done")
        self.assertGreater(proxy.messages, 60)
        for k in sample(proxy.messages, transport):
            said, _ = self.through(server, Plan(cut_messages=k))
            self.is_loss(said, f"cut after message {k}")
            self.gone(server)
        for n in sample(proxy.bytes, transport + "bytes"):
            said, _ = self.through(server, Plan(cut_bytes=n))
            self.is_loss(said, f"cut after byte {n}")
            self.gone(server)
        if transport == "unix":
            self.goes_on(server)

    def test_cut_unix_connections(self):
        self.cut_everywhere("unix")

    def test_cut_tcp_connections(self):
        self.cut_everywhere("tcp")

    def test_pieces(self):
        """Short reads on both sides: 1 to 7 bytes at a time."""
        for transport in ("unix", "tcp"):
            server = self.serve(transport=transport)
            said, _ = self.through(server, Plan(pieces=True))
            self.assertEqual(said, "done")
            server.stop()

    def test_delayed_pieces(self):
        server = self.serve()
        said, _ = self.through(server, Plan(pieces=True, delay=0.002))
        self.assertEqual(said, "done")

    def test_connections_out_of_order(self):
        """The channel that was opened first arrives last. Messages are still performed in order."""
        server = self.serve()
        for hold in (1, 2):
            said, proxy = self.through(server, Plan(hold=hold, hold_s=0.4))
            self.assertEqual(said, "done")
            self.assertGreater(proxy.connections, hold)

    def test_a_silent_peer(self):
        """Nothing is sent any more, but no connection ends. The peer notices."""
        server = self.serve()
        said, proxy = self.through(server, Plan())
        clients = []
        for k in (1, 5, proxy.messages // 3, proxy.messages // 2, proxy.messages - 5):
            proxy = Proxy(f"unix:{self.dir}/p{k}", server.address, Plan(stall_messages=k))
            clients.append((k, proxy, self.start(proxy.address, HEDDLE_CONNECT_TIMEOUT="500")))
        for k, proxy, client in clients:
            try:
                self.is_loss(self.end(client, f"silence after message {k}", server), k)
            finally:
                proxy.close()


@unittest.skipUnless(DEBUG, "only debug builds die on demand")
class Deaths(Faults):
    """Over shared memory there can be no proxy, so the processes themselves are killed."""

    def test_killed_workers(self):
        order = os.path.join(self.dir, "dies")
        server = self.serve(transport="shm", env={"HED_TEST_WORKER_DIES": order})
        self.assertEqual(self.end(self.start(server.address), "whole"), "done")
        for k in sample(100, "workers"):
            with open(order, "w", encoding="ascii") as f:
                f.write(str(k))
            client = self.start(server.address)
            said = self.end(client, f"death at message {k}", server)
            self.is_loss(said, f"the worker's death at message {k}")
        os.unlink(order)
        self.goes_on(server)

    def test_killed_clients(self):
        server = self.serve(transport="shm")
        for transport in ("shm", "unix"):
            address = f"{transport}:{server.path}"
            for k in sample(100, "clients"):
                client = self.start(address, HED_TEST_CLIENT_DIES=str(k))
                said, error = client.communicate(timeout=PATIENCE)
                if client.returncode == 0 and said.strip() == "done":
                    break
                self.assertEqual(client.returncode, -signal.SIGKILL, f"at message {k}: {error}")
                until(lambda: not self.workers_of(server),
                      f"the end of a worker whose client died at message {k}")
        self.goes_on(server)

    def test_a_killed_listener(self):
        for transport in ("shm", "unix"):
            server = self.serve(transport=transport)
            clients = [self.start(server.address, "wait") for _ in range(3)]
            for c in clients:
                self.assertEqual(c.stdout.readline().strip(), "ready")
            server.process.kill()
            server.process.wait()
            for c in clients:
                said = self.end(c, "the listener's death")
                self.assertEqual(int(said.rsplit(":", 1)[1]), UNAVAILABLE, said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or ["Proxied", "Deaths"])])
