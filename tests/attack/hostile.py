"""Hostile sessions against one server, beside an honest client that must not notice.

    hostile.py [--sessions N] [--jobs J] [--seconds T] [--seed S] [--gpu null|cpu]

Each session is one of the kinds below, chosen at random: noise, prefaces and hellos with changed
bytes, silence, channels of sessions that are not theirs, TLS handshakes that break, real sessions
whose bytes are changed on the way. Afterwards the listener is the same process, has as many
descriptors as before and no more memory, and no worker or gate is left.

CI runs a few (attack.hostile); `make hostile` runs 100,000.
"""

import argparse
import multiprocessing
import os
from pathlib import Path
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e" / "remote"))
from serve_case import (  # noqa: E402
    CHANNEL, HEDDLE, HELLO, NEW, UNIX, Case, Server, clean_environment, hello, preface,
    until)

PATIENCE_S = 20  # for one answer of the server, which is busy
FORK = multiprocessing.get_context("fork")
GLANCE_S = 0.02  # for an answer that may not come
MORE_MEMORY = 2 << 20  # bytes that the listener may have more at the end; its allocator's slack
SETTLED = 0.2  # of the sessions: by then the listener's memory is what it stays


def certificates(folder):
    """Options for TLS, and the client's settings. None in a build without it."""
    for words in (("ca", "a"), ("server", "a", "--host", "127.0.0.1"),
                  ("client", "a", "--name", "alice")):
        r = subprocess.run([HEDDLE, "cert", *words], cwd=folder, env=clean_environment(),
                           capture_output=True, text=True)
        if r.returncode:
            return None
    return (["--tls-ca", f"{folder}/a/ca.pem", "--tls-cert", f"{folder}/a/server-127.0.0.1.pem",
             "--tls-key", f"{folder}/a/server-127.0.0.1.key"],
            {"HEDDLE_TLS_CA": f"{folder}/a/ca.pem",
             "HEDDLE_TLS_CERT": f"{folder}/a/client-alice.pem",
             "HEDDLE_TLS_KEY": f"{folder}/a/client-alice.key"})


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(x.split()[1]) << 10 for x in f if x.startswith("RssAnon"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def changed(rng, data, most=8):
    """The same bytes with a few of them changed, cut or doubled."""
    data = bytearray(data)
    for _ in range(rng.randint(1, most)):
        at = rng.randrange(len(data)) if data else 0
        what = rng.randrange(5)
        if what == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1 and data:
            data[at:at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\x80"))
        elif what == 2:
            data[at:at] = rng.randbytes(rng.randint(1, 64))
        elif what == 3 and len(data) > 1:
            del data[at:at + rng.randint(1, 32)]
        elif data:
            data[at] = rng.randrange(256)
    return bytes(data)


class Recorder:
    """What a real client says over a unix socket, message by message."""

    def __init__(self, server, folder):
        self.said = []
        path = f"{folder}/recorded"
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(path)
            door.listen(4)
            door.settimeout(PATIENCE_S)
            client = subprocess.Popen([HEDDLE, "devices", "--gpu", f"unix:{path}"],
                                      env=clean_environment(), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            near = door.accept()[0]
        far = server.connect()
        back = threading.Thread(target=self.carry, args=(far, near), daemon=True)
        back.start()
        while data := near.recv(1 << 16):
            self.said.append(data)
            far.sendall(data)
        far.close()
        near.close()
        client.wait()
        back.join()

    def carry(self, source, to):
        try:
            while data := source.recv(1 << 16):
                to.sendall(data)
        except OSError:
            pass


class Hostile:
    def __init__(self, server, port, recorded, seed):
        self.server, self.port, self.recorded = server, port, recorded
        self.rng = random.Random(seed)
        self.kinds = [self.noise, self.changed_preface, self.changed_hello, self.silence,
                      self.strangers_channel, self.noise_after_hello, self.changed_session]
        if port:
            self.kinds += [self.tls_noise, self.tls_silence, self.tls_changed_client_hello]
        self.count = dict.fromkeys((k.__name__ for k in self.kinds), 0)

    def many(self, number, sessions, counts):
        """In a process of its own: so many sessions, or as many as there is time for."""
        self.rng.seed(f"{asked.seed} {number} {sessions}")
        self.count = dict.fromkeys(self.count, 0)
        end = time.monotonic() + asked.seconds
        while sessions > 0 and (not asked.seconds or time.monotonic() < end):
            self.one()
            sessions -= 1
        counts.put(self.count)

    def one(self):
        kind = self.rng.choice(self.kinds)
        self.count[kind.__name__] += 1
        try:
            kind()
        except OSError:  # the server has hung up, as it should
            pass

    def tcp(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def end(self, s):
        """Hangs up in one of several ways."""
        how = self.rng.randrange(3)
        if how == 0:
            s.shutdown(socket.SHUT_WR)
            s.settimeout(GLANCE_S)
            while s.recv(1 << 16):
                pass
        elif how == 1:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def noise(self):
        with self.server.connect() as s:
            s.sendall(self.rng.randbytes(self.rng.randint(1, 2000)))
            self.end(s)

    def changed_preface(self):
        with self.server.connect() as s:
            s.sendall(changed(self.rng, preface(self.rng.randint(0, 7)), 2) + hello())
            self.end(s)

    def changed_hello(self):
        with self.server.connect() as s:
            s.sendall(preface(NEW) + changed(self.rng, hello()))
            self.end(s)

    def silence(self):
        with self.server.connect() as s:
            s.sendall((preface(NEW) + hello())[:self.rng.randint(0, 32 + HELLO)])

    def strangers_channel(self):
        with self.server.connect() as s:
            s.sendall(preface(CHANNEL, self.rng.randbytes(16)) + self.rng.randbytes(200))
            self.end(s)

    def noise_after_hello(self):
        with self.server.connect() as s:
            words = bytearray(hello())
            struct.pack_into("<I", words, 68, self.rng.choice((1, UNIX)))
            s.sendall(preface(NEW) + bytes(words))
            s.settimeout(PATIENCE_S)
            s.recv(1 << 16)
            s.sendall(self.rng.randbytes(self.rng.randint(1, 4000)))
            self.end(s)

    def changed_session(self):
        which = self.rng.randrange(len(self.recorded.said))
        with self.server.connect() as s:
            for i, data in enumerate(self.recorded.said[:which + 1]):
                s.settimeout(PATIENCE_S)
                s.sendall(changed(self.rng, data) if i == which else data)
                s.settimeout(GLANCE_S if i or i == which else PATIENCE_S)
                try:
                    s.recv(1 << 16)
                except TimeoutError:
                    pass
            self.end(s)

    def tls_noise(self):
        with self.tcp() as s:
            s.sendall(preface(NEW) + self.rng.randbytes(self.rng.randint(1, 2000)))
            self.end(s)

    def tls_silence(self):
        with self.tcp() as s:
            s.sendall(preface(self.rng.choice((NEW, CHANNEL))))

    def tls_changed_client_hello(self):
        body = b"\x03\x03" + self.rng.randbytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0"
        extensions = b"\0\x2b\0\x03\x02\x03\x04" + b"\0\x0a\0\x04\0\x02\0\x1d"
        body += struct.pack(">H", len(extensions)) + extensions
        message = b"\x01" + struct.pack(">I", len(body))[1:] + body
        record = b"\x16\x03\x01" + struct.pack(">H", len(message)) + message
        with self.tcp() as s:
            s.sendall(preface(NEW) + changed(self.rng, record))
            self.end(s)


class Attack(Case):
    def honest(self, address, env, stop, heard):
        """In a process of its own: a client that comes again and again."""
        n, failures = 0, []
        while not stop.is_set():
            r = subprocess.run([HEDDLE, "devices", "--gpu", address],
                               env=clean_environment(**env), capture_output=True, text=True)
            if r.returncode:
                failures.append(r.stderr)
            n += 1
            stop.wait(0.2)
        heard.put((n, failures))

    def attack(self, hostile, sessions):
        """So many sessions in each of --jobs processes."""
        counts = FORK.SimpleQueue()
        jobs = [FORK.Process(target=hostile.many, args=(i, sessions, counts))
                for i in range(asked.jobs)]
        for job in jobs:
            job.start()
        for job in jobs:
            for kind, n in counts.get().items():
                hostile.count[kind] += n
        for job in jobs:
            job.join()

    def test_hostile_sessions(self):
        tls = certificates(self.dir)
        options, env = tls if tls else ([], {})
        listen = [f"unix:{self.dir}/s"] + (["tcp://127.0.0.1:0"] if tls else [])
        server = Server(self, *options, "--rate", "0", "--patience", "3", "--clients", "64",
                        listen=listen, gpu=asked.gpu)
        port = server.port() if tls else None
        hostile = Hostile(server, port, Recorder(server, self.dir), asked.seed)
        stop, heard = FORK.Event(), FORK.SimpleQueue()
        addresses = [f"unix:{server.path}"] + [f"tcp://127.0.0.1:{port}"] * bool(tls)
        honest = [FORK.Process(target=self.honest, args=(address, env, stop, heard))
                  for address in addresses]
        for client in honest:
            client.start()
        begin, settled = time.monotonic(), None
        files = descriptors(server.process.pid)
        for part in (SETTLED, 1 - SETTLED):
            self.attack(hostile, int(asked.sessions * part / asked.jobs))
            settled = settled or resident(server.process.pid)
        stop.set()
        visits, failures = zip(*(heard.get() for _ in honest))
        for client in honest:
            client.join()
        self.assertIsNone(server.process.poll(), server.log()[-2000:])
        until(lambda: not server.workers(), server.status)
        until(lambda: descriptors(server.process.pid) <= files)
        grown = resident(server.process.pid) - settled
        print(f"{sum(hostile.count.values())} hostile sessions in "
              f"{time.monotonic() - begin:.0f} s: {hostile.count}; "
              f"honest clients: {visits}; the listener has "
              f"{resident(server.process.pid) >> 10} KiB, {grown >> 10} KiB more than after "
              f"{int(SETTLED * 100)} %")
        self.assertEqual(sum(failures, []), [], server.log()[-2000:])
        self.assertLess(grown, MORE_MEMORY)
        self.assertNotIn(" error base: bug: ", server.log())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=0, help="for each of two parts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gpu", default="null")
    asked, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="hed") as scratch:
        os.environ.setdefault("HED_SCRATCH", scratch)
        unittest.main(argv=[sys.argv[0], *rest])
