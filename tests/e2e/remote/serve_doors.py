#!/usr/bin/env python3
"""Which clients a server accepts, from the outside: users, first messages, limits.

    HED_BUILD=build/dev serve_doors.py [Case.test...]

Clients here are bare sockets that send a preface and no more; other tests cover what follows. While
its worker waits for a hello, such a socket counts as a client.
"""

import os
import socket
import struct
import subprocess
import time
import unittest

from serve_case import (
    CHANNEL, HEDDLE, MAGIC, NEW, NOBODY, PATIENCE, ROOT, STATUS, TCP, Case, Server, hello, preface,
    until)


class Doors(Case):
    """Which users may connect."""

    def as_nobody(self, do):
        """Runs do() in a process of another user: what it returns, or the exception's name."""
        os.chmod(self.dir, 0o755)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                said = do()
            except BaseException as e:
                said = type(e).__name__
            os.write(writer, said.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as f:
            said = f.read()
        os.waitpid(pid, 0)
        return said

    def ask(self, server):
        def do():
            with server.connect(preface(STATUS)) as s:
                data = b""
                while piece := s.recv(65536):
                    data += piece
            return data.decode(errors="replace")
        return self.as_nobody(do)

    @unittest.skipUnless(ROOT, "needs root")
    def test_the_mode_keeps_others_out(self):
        server = Server(self)
        self.assertEqual(self.ask(server), "PermissionError")

    @unittest.skipUnless(ROOT, "needs root")
    def test_credentials_keep_others_out(self):
        server = Server(self, "--mode", "0666")
        said = self.ask(server)
        self.assertIn("this user may not", said)
        self.assertNotIn("version", said)
        server.until_logged(f"of user {NOBODY}: this user may not")

    @unittest.skipUnless(ROOT, "needs root")
    def test_named_users_and_groups_are_accepted(self):
        for options in (("--allow-uid", f"7,{NOBODY}"), ("--allow-uid", "all"),
                        ("--allow-gid", str(NOBODY))):
            server = Server(self, "--mode", "0666", *options)
            self.assertIn("version", self.ask(server), options)
            server.stop()
        server = Server(self, "--mode", "0666", "--allow-uid", "7", "--allow-gid", "7")
        self.assertIn("this user may not", self.ask(server))

    @unittest.skipUnless(ROOT, "needs root")
    def test_heddle_says_that_it_was_refused(self):
        server = Server(self, "--mode", "0666", "--allow-uid", "7")

        def do():
            r = subprocess.run([HEDDLE, "serve", "--status", "--listen", f"shm:{server.path}"],
                               capture_output=True, text=True, env={}, cwd="/")
            return f"{r.returncode} {r.stderr}"
        said = self.as_nobody(do)
        if said == "PermissionError":
            self.skipTest("others cannot run what was built here")
        self.assertIn("1 heddle: serve: the server refuses to answer: this user may not", said)

    def test_a_mode_that_contradicts_is_warned_about(self):
        server = Server(self, "--allow-uid", "7")
        server.until_logged("keeps out")


class Prefaces(Case):
    """Bytes from clients are not trusted."""

    def ends(self, s):
        """Does the server close the connection without an answer?"""
        try:
            return s.recv(10) == b""
        except ConnectionResetError:
            return True

    def test_garbage_is_refused_at_once(self):
        server = Server(self)
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 32, b"\xff", os.urandom(4096),
                     MAGIC[:7] + b"\r", preface(0), preface(7), preface(2**32 - 1),
                     MAGIC + struct.pack("<II", NEW, 1) + bytes(16)):
            with server.connect(data) as s:
                self.assertTrue(self.ends(s), data[:32])
        self.assertEqual(server.status()["clients"], [])
        server.until_logged("does not speak heddle's protocol")

    def test_random_first_messages_do_no_harm(self):
        server = Server(self)
        for _ in range(300):
            with server.connect() as s:
                try:
                    s.sendall(os.urandom(40))
                except OSError:
                    pass
        until(lambda: server.status()["refused"] == 300, server.status)

    def test_half_a_preface_times_out(self):
        server = Server(self, "--patience", "1")
        halves = [server.connect(preface(NEW)[:n]) for n in (0, 1, 8, 31)]
        for s in halves:
            self.assertTrue(self.ends(s))
            s.close()
        server.until_logged("did not say in time")
        self.assertEqual(server.stop(), 0)
        self.assertIn("stopped after 0 clients", server.log())

    def test_a_preface_in_pieces_is_fine(self):
        server = Server(self)
        with server.connect() as s:
            for byte in preface(STATUS):
                s.sendall(bytes([byte]))
                time.sleep(0.002)
            self.assertTrue(s.recv(10).startswith(b"{"))

    def test_silent_connections_do_not_keep_others_out(self):
        server = Server(self, "--startups", "256")
        silent = [server.connect() for _ in range(400)]
        self.sockets += silent
        self.assertEqual(server.status()["pid"], server.process.pid)
        self.client(server)
        until(lambda: len(server.workers()) == 1)
        server.until_logged("have not said what they want")

    def test_a_channel_of_an_unknown_session_is_refused(self):
        server = Server(self)
        with server.connect(preface(CHANNEL, os.urandom(16))) as s:
            self.assertTrue(self.ends(s))
        with server.connect(preface(CHANNEL)) as s:
            self.assertTrue(self.ends(s))
        server.until_logged("session that does not exist")

    def test_log_lines_cannot_be_forged_and_are_limited(self):
        server = Server(self)
        begin = time.monotonic()
        for _ in range(200):
            server.connect(b"x\nheddle[1] info server: forged\n").close()
        until(lambda: server.status()["refused"] == 200)
        # At most 20 per second, and 20 at once. A slow machine only takes more seconds.
        self.assertLessEqual(server.log().count("refused process"),
                             21 + 20 * (time.monotonic() - begin))
        self.assertNotIn("forged", server.log())


class Limits(Case):
    def test_200_clients_over_the_limit(self):
        server = Server(self, "--clients", "20", "--rate", "0")
        clients = [self.client(server) for _ in range(200)]
        said = [self.refusal(s) for s in clients[20:]]
        self.assertTrue(all(t and "--clients" in t for t in said), said[:3])
        status = server.status()
        self.assertEqual(len(status["clients"]), 20)
        self.assertEqual((status["refused"], status["clients_ever"]), (180, 20))

    def test_64_clients_at_once(self):
        server = Server(self)
        folder = f"/proc/{server.process.pid}/fd"
        descriptors = len(os.listdir(folder))
        for _ in range(64):
            self.client(server)
        until(lambda: len(server.workers()) == 64)
        for s in self.sockets:
            s.close()
        until(lambda: not server.workers())
        until(lambda: len(os.listdir(folder)) == descriptors)

    def test_tcp_clients_are_limited_too(self):
        server = Server(self, "--clients", "1", "--insecure",
                        listen=[f"unix:{self.dir}/s", "tcp://127.0.0.1:0"])
        for _ in range(2):
            s = socket.create_connection(("127.0.0.1", server.port()), timeout=PATIENCE)
            self.sockets.append(s)
            s.sendall(preface(NEW) + hello(TCP))
            until(lambda: server.workers())
        # The server discards what else comes, and the reason can still be read.
        s.sendall(bytes(700))
        self.assertIn("--clients", self.refusal(s))
        client = server.status()["clients"][0]
        self.assertRegex(client["peer"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual((client["pid"], client["uid"]), (None, None))
        server.until_logged("refused 127.0.0.1:")

    def test_the_rate_of_new_clients(self):
        server = Server(self, "--rate", "1")

        def one_more():
            """Connects one more client, and waits until it is accepted or refused."""
            self.client(server)
            until(lambda: (s := server.status())["clients_ever"] + s["refused"] ==
                  len(self.sockets))
            return server.status()

        # Until two connect in the same second.
        before = until(lambda: (s := one_more())["refused"] and s)
        self.assertGreaterEqual(before["clients_ever"], 1)
        self.assertIn("--rate", self.refusal(self.sockets[-1]))
        # Until the next second.
        until(lambda: one_more()["clients_ever"] > before["clients_ever"])

    def test_out_of_descriptors_is_survived(self):
        server = Server(self)
        try:
            subprocess.run(["prlimit", f"--pid={server.process.pid}", "--nofile=24:24"],
                           check=True)
        except (OSError, subprocess.CalledProcessError) as e:
            self.skipTest(f"no prlimit: {e}")
        many = [server.connect() for _ in range(60)]
        server.until_logged("cannot accept a connection")
        for s in many:
            s.close()
        self.assertEqual(server.status()["pid"], server.process.pid)


if __name__ == "__main__":
    unittest.main()
