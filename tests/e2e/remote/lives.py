#!/usr/bin/env python3
"""How clients of a server live and end, and which are accepted. The program is lives.c.

    HED_BUILD=build/dev HED_LIVES=build/dev/.../e2e_remote_lives lives.py [Case.test...]
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402
from serve_case import HELLO, PATIENCE, until  # noqa: E402

LIVES = os.environ.get("HED_LIVES", "")
TRANSPORTS = ("shm", "unix", "tcp")
HELLO_MAJOR, HELLO_IDS = 64, 72  # offsets in it


class Lives(faults.Faults):
    def setUp(self):
        super().setUp()
        faults.CLIENT = LIVES

    def live(self, what, transports=TRANSPORTS, **env):
        """Runs the program over each transport. Nothing is left of it."""
        for transport in transports:
            server = self.serve(transport=transport)
            client = self.start(server.address, what, **env)
            self.assertEqual(self.end(client, f"{what} over {transport}", server), "ok")
            until(lambda: not self.workers_of(server), f"the worker's end, {what}, {transport}")
            self.assertNotIn("nonsense", server.log())
            server.stop()

    def test_fork(self):
        self.live("fork")

    def test_a_child_keeps_no_session(self):
        for transport in TRANSPORTS:
            server = self.serve(transport=transport)
            client = self.start(server.address, "orphan")
            said, error = client.communicate(timeout=PATIENCE)
            self.assertEqual(client.returncode, 0, error)
            # The worker ends although the child, which has the parent's connection, does not.
            until(lambda: not self.workers_of(server), f"the worker's end over {transport}")
            os.kill(int(said.split()[0]), signal.SIGKILL)
            server.stop()

    def test_the_main_thread_ends(self):
        self.live("main_ends")

    def test_exit_while_others_call(self):
        for _ in range(3):
            self.live("exit_busy")

    def test_exit_with_work_pending(self):
        self.live("exit_pending")

    def test_reset(self):
        self.live("reset")

    def test_unload(self):
        self.live("unload")

    def test_channels_are_used_again(self):
        server = self.serve(transport="shm")
        for transport in ("shm", "unix"):
            client = self.start(f"{transport}:{server.path}", "threads")
            self.assertEqual(client.stdout.readline().strip(), "ok")
            # The first thread has one channel, and the others share one or two.
            self.assertLessEqual(server.status()["clients"][0]["channels"], 3)
            client.stdin.write("\n")
            self.end(client, "threads", server)
            until(lambda: not server.workers())

    # ---- which clients are accepted ----------------------------------------------------------

    def changed_hello(self, server, change):
        """A client whose hello is changed on the way."""
        listener = socket.socket(socket.AF_UNIX)
        path = os.path.join(self.dir, "changed")
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(PATIENCE)

        def go():
            client, _ = listener.accept()
            with client, server.connect() as up:
                data = b""
                while len(data) < 32 + HELLO:
                    data += client.recv(65536)
                up.sendall(data[:32] + change(bytearray(data[32:])))
                while answer := up.recv(65536):
                    client.sendall(answer)

        thread = threading.Thread(target=go)
        thread.start()
        client = subprocess.run([LIVES, "plain"], capture_output=True, text=True, timeout=PATIENCE,
                                env=faults.clean_environment(HEDDLE_GPU=f"unix:{path}",
                                                                    HEDDLE_LOG="error"))
        thread.join()
        listener.close()
        os.unlink(path)
        return client

    def test_another_version(self):
        server = self.serve()

        def major(hello):
            struct.pack_into("<H", hello, HELLO_MAJOR, 77)
            return bytes(hello)

        def calls(hello):
            hello[HELLO_IDS] ^= 1
            return bytes(hello)

        for change, text in ((major, "speaks version 77"), (calls, "know different calls")):
            client = self.changed_hello(server, change)
            self.assertEqual(client.returncode, 1, client)
            self.assertIn("cuInit", client.stderr)  # it fails in cuInit, before anything runs
            self.assertIn(text, client.stderr)
            server.until_logged(text)
        self.assertEqual(self.end(self.start(server.address, "plain"), "the right one"), "ok")

    def test_no_server(self):
        for address in (f"unix:{self.dir}/none", f"shm:{self.dir}/none", "tcp://127.0.0.1:1"):
            client = self.start(address, "plain")
            _, error = client.communicate(timeout=PATIENCE)
            self.assertEqual(client.returncode, 1)
            self.assertIn("cuInit", error)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or ["Lives"])])
