"""Shared by the tests of the server: a heddled of their own, and bare sockets as clients."""

import functools
import json
import os
from pathlib import Path
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE, until  # noqa: E402

BUILD = os.environ.get("HED_BUILD", "")
HEDDLE = os.path.join(BUILD, "bin", "heddle")
HEDDLED = os.path.join(os.path.realpath(BUILD), "lib", "heddle", "heddled")
SOURCE = str(Path(__file__).resolve().parents[3])

MAGIC = b"HEDDLE1\n"
NEW, CHANNEL, STATUS = 1, 2, 3
ROOT = os.geteuid() == 0
NOBODY = 65534


def preface(kind, session=bytes(16)):
    return MAGIC + struct.pack("<II", kind, 0) + session


def clean_environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    env["HOME"] = os.environ["HED_SCRATCH"]
    env["HEDDLE_CONNECT_TIMEOUT"] = str(PATIENCE * 1000)
    env.update(more)
    return env


HELLO = 584  # bytes of struct hed_hello
HELLO_TRANSPORT = 68  # where it names its transport
UNIX, TCP = 2, 3


@functools.cache
def real_hello():
    """What a client of this build says first."""
    with tempfile.TemporaryDirectory(prefix="hed") as folder, socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{folder}/s")
        door.listen(1)
        door.settimeout(PATIENCE)
        client = subprocess.Popen([HEDDLE, "devices", "--gpu", f"unix:{folder}/s"],
                                  env=clean_environment(), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        data = b""
        with door.accept()[0] as s:
            s.settimeout(PATIENCE)
            while len(data) < 32 + HELLO:
                piece = s.recv(4096)
                assert piece, "the client hung up"
                data += piece
        client.wait(PATIENCE)
    assert len(data) == 32 + HELLO and struct.unpack_from("<I", data, 32)[0] == HELLO
    return data[32:]


def hello(transport=UNIX):
    """A hello that the server accepts."""
    words = bytearray(real_hello())
    struct.pack_into("<I", words, HELLO_TRANSPORT, transport)
    return bytes(words)


class Server:
    """A heddled of our own. Unless the options say otherwise, clients have unlimited time to begin
    and to finish, so that no test depends on the speed of the machine."""

    def __init__(self, case, *options, listen=None, gpu="null", wait=True, env=None,
                 stderr=None, before=()):
        self.path = os.path.join(case.dir, "s")
        self.log_path = os.path.join(case.dir, f"log{len(case.servers)}")
        listen = listen or [f"shm:{self.path}"]
        words = [*before, HEDDLED, *(w for a in listen for w in ("--listen", a)), "--gpu", gpu,
                 "--images", os.path.join(case.dir, "images"), "--patience", "100000",
                 "--grace", "100000", *options]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=stderr or log,
                                            env=env or clean_environment())
        case.servers.append(self)
        if wait:
            until(lambda: "serves --gpu" in self.log() or self.process.poll() is not None)
            case.assertIsNone(self.process.poll(), self.log())

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def until_logged(self, words):
        """Waits until the log contains the words."""
        until(lambda: words in self.log(), lambda: f"'{words}' in {self.log()}")

    def connect(self, data=b"", path=None):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path or self.path)
        except OSError:
            s.close()
            raise
        s.settimeout(PATIENCE)
        if data:
            s.sendall(data)
        return s

    def port(self):
        return int(re.search(r"listening on tcp://[^ ]*:(\d+)", self.log()).group(1))

    def status(self):
        with self.connect(preface(STATUS)) as s:
            text = b""
            while piece := s.recv(65536):
                text += piece
        return json.loads(text)

    def workers(self):
        return [c["worker"] for c in self.status()["clients"]]

    def stop(self, sig=signal.SIGTERM):
        """Waits until it has ended, and returns its status."""
        self.process.send_signal(sig)
        return self.process.wait(PATIENCE)


class Case(unittest.TestCase):
    def setUp(self):
        # The path of a socket has at most 107 characters.
        self.dir = tempfile.mkdtemp(prefix="hed")
        self.servers = []
        self.sockets = []

    def tearDown(self):
        for s in self.sockets:
            s.close()
        for server in self.servers:
            # A test ended it, or it refused to start; it never crashed.
            self.assertIn(server.process.poll(), (None, 0, 1, -signal.SIGKILL), server.log())
            self.assertNotIn(" error base: bug: ", server.log())
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
        shutil.rmtree(self.dir)

    def client(self, server, kind=NEW, **options):
        """A client that has said its first words and is served, or refused."""
        s = server.connect(preface(kind, **options) + (hello() if kind == NEW else b""))
        self.sockets.append(s)
        return s

    def ended(self, s):
        """Has the server ended this connection?"""
        poll = select.poll()
        poll.register(s, select.POLLRDHUP)
        return bool(poll.poll(0))

    def refusal(self, s):
        """The reason in the welcome, or None if the socket just ends."""
        data = b""
        try:
            while piece := s.recv(4096):
                data += piece
        except ConnectionResetError:
            return None
        if not data:
            return None
        size, = struct.unpack_from("<I", data)
        self.assertEqual(size, len(data))
        return data[-256:].split(b"\0")[0].decode()

    def heddle(self, *words, **options):
        return subprocess.run([HEDDLE, *words], env=clean_environment(), capture_output=True,
                              text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, **options)
