#!/usr/bin/env python3
"""The messages about remote GPUs that people read: of `heddle devices`, of `heddle doctor`, and in
the server's log. docs/remote.md must explain each of them.

    HED_BUILD=build/dev words.py [Case.test...]
"""

import json
import os
from pathlib import Path
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE, until  # noqa: E402

BUILD = os.environ.get("HED_BUILD", "")
HEDDLE = os.path.join(BUILD, "bin", "heddle")
SOURCE = str(Path(__file__).resolve().parents[3])
TOKEN = "a-token-of-some-length"


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    env["HOME"] = os.environ.get("HED_SCRATCH", "/nonexistent")
    env["HEDDLE_CONNECT_TIMEOUT"] = str(PATIENCE * 1000)
    env.update(more)
    return env


def documented():
    """The messages of the guide's last table, as regular expressions."""
    with open(os.path.join(SOURCE, "docs", "remote.md"), encoding="utf-8") as f:
        table = f.read().split("## When it does not work")[1]
    rows = [cell for line in table.splitlines()
            for cell in re.findall(r"^\| `(.*?)` +\|", line.replace("``", "`"))]
    return [re.compile(re.sub(r"(\\ )?\\\.\\\.\\\.|HOST", ".*", re.escape(r))) for r in rows]


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="hed")  # short: it holds sockets
        self.servers = []

    def tearDown(self):
        for p, _ in self.servers:
            p.terminate()
            p.wait(PATIENCE)
        shutil.rmtree(self.dir)

    def heddle(self, *words, **env):
        return subprocess.run([HEDDLE, *words], env=environment(**env), capture_output=True,
                              text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, cwd=self.dir)

    def serve(self, *options, listen=None):
        """Starts a server. Returns it and a function that reads its log."""
        path = os.path.join(self.dir, f"log{len(self.servers)}")
        with open(path, "wb") as log:
            p = subprocess.Popen([HEDDLE, "serve", "--gpu", "null", "--images", "none",
                                  "--listen", listen or f"shm:{self.dir}/s", *options],
                                 env=environment(), stderr=log, stdin=subprocess.DEVNULL)

        def read():
            with open(path, encoding="utf-8") as f:
                return f.read()
        self.servers.append((p, read))
        self.wait_for(read, "serves --gpu")
        return read

    def wait_for(self, log, words):
        until(lambda: words in log(), lambda: f"'{words}' in {log()}")

    def port(self, log):
        return re.search(r"listening on tcp://[^ ]*:(\d+)", log()).group(1)

    def refused(self, says, address, **settings):
        """Tries to list the devices of an address that does not work. Returns the reason."""
        env = {f"HEDDLE_{k.upper()}": v for k, v in settings.items()}
        r = self.heddle("devices", "--gpu", address, **env)
        self.assertEqual((r.returncode, r.stdout), (1, ""), r.stderr)
        self.assertIn(says, r.stderr)
        self.assertTrue(any(row.search(r.stderr) for row in documented()), r.stderr)
        for misleading in ("fabricmanager", "nvidia", "cuDriverGetVersion"):
            self.assertNotIn(misleading, r.stderr)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        return r.stderr


class Nobody(Case):
    def test_no_server(self):
        for address in (f"shm:{self.dir}/none", f"unix:{self.dir}/none"):
            self.refused("is heddled running there? `heddle serve` starts it", address)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.refused("is heddled running there?", f"tcp://127.0.0.1:{port}", insecure="yes")

    def test_a_server_that_says_nothing(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(f"{self.dir}/silent")
            s.listen()
            self.refused("does not answer; is heddled stopped", f"unix:{self.dir}/silent",
                         connect_timeout="100")

    def test_the_reason_is_in_json(self):
        r = self.heddle("devices", "--json", "--gpu", f"shm:{self.dir}/none")
        error = json.loads(r.stdout)["error"]
        self.assertEqual(error["name"], "CUDA_ERROR_SYSTEM_NOT_READY")
        self.assertIn("is heddled running there?", error["text"])
        self.assertEqual((error["hint"], r.stderr), ("", ""))

    def test_a_program_has_the_reason_in_its_log(self):
        r = self.heddle("run", "--gpu", f"shm:{self.dir}/none", "--", "sh", "-c",
                        "exec \"$0\" devices", HEDDLE)
        self.assertIn("is heddled running there?", r.stderr)

    def test_text_that_is_no_address(self):
        for gpu, says in (("shm:", "has no path"), ("unix:", "has no path"),
                          ("tcp://h:99999", "is not a port"), ("tcp://::1", "brackets"),
                          ("foo:bar", "shm:PATH, unix:PATH, tcp://HOST:PORT and vm:")):
            r = self.heddle("run", "--gpu", gpu, "--", "true")
            self.assertEqual(r.returncode, 2, r.stderr)
            self.assertIn(says, r.stderr)
        r = self.heddle("serve", "--status", "--listen", "tcp://127.0.0.1")
        self.assertIn("--listen shm:PATH", r.stderr)

    def test_tcp_without_settings(self):
        self.refused("TCP needs TLS: set tls_ca", "tcp://127.0.0.1")

    def test_the_doctor_checks_the_server(self):
        r = self.heddle("doctor", HEDDLE_GPU=f"shm:{self.dir}/none")
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stdout, r"FAIL +server +shm:")
        self.serve()
        r = self.heddle("doctor", HEDDLE_GPU=f"shm:{self.dir}/s")
        self.assertRegex(r.stdout, r"ok +server +shm:.*")


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Forwarded(Case):
    """A forwarded socket, as with ssh -L: bytes arrive, but descriptors do not."""

    def setUp(self):
        super().setUp()
        self.serve()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{self.dir}/f")
        self.listener.listen(16)
        threading.Thread(target=self.forward, daemon=True).start()

    def tearDown(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        super().tearDown()

    def forward(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            b = socket.socket(socket.AF_UNIX)
            b.connect(f"{self.dir}/s")
            for pair in ((a, b), (b, a)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    def test_a_forwarded_socket_carries_unix_but_not_shm(self):
        r = self.heddle("devices", "--gpu", f"unix:{self.dir}/f")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.refused("Over a forwarded socket use unix:", f"shm:{self.dir}/f")


class Log(Case):
    def test_a_line_when_a_client_begins_and_one_when_it_ends(self):
        log = self.serve()
        r = self.heddle("devices", "--gpu", f"unix:{self.dir}/s")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.wait_for(log, " ended")
        lines = [line for line in log().splitlines() if "(process" in line or ": worker" in line]
        self.assertEqual(len(lines), 2, log())
        self.assertRegex(lines[0], rf"heddle \(process \d+ of user {os.geteuid()}, unix, heddle .*"
                                   r"\) begins")
        self.assertRegex(lines[1], r"worker \d+ \(heddle\) ended: \d+ messages?, 0 launches$")

    def test_one_line_for_a_client_that_was_not_served(self):
        log = self.serve()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(f"{self.dir}/s")
            s.sendall(b"HEDDLE1\n" + struct.pack("<II", 1, 0) + bytes(16))
        self.wait_for(log, "it hung up before it had said what it wants")
        p, _ = self.servers[-1]
        p.terminate()
        p.wait(PATIENCE)
        self.assertIn("stopped after 0 clients\n", log())
        self.assertNotIn("ended", log())

    def test_another_version_is_reported_on_both_sides(self):
        self.serve()
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(f"{self.dir}/s")
            s.sendall(b"HEDDLE1\n" + struct.pack("<II", 1, 0) + bytes(16))
            hello = struct.pack("<IHHIIQQQQQQ", 584, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0)
            hello += struct.pack("<HHIQQQII", 77, 0, 2, 0, 0, 0, 1, 4096)
            hello += b"9.9".ljust(32, b"\0") + b"x".ljust(64, b"\0") + bytes(256 + 128)
            s.sendall(hello)
            answer = b""
            while piece := s.recv(4096):
                answer += piece
        text = answer[-256:].split(b"\0")[0].decode()
        self.assertRegex(text, r"version 77 of the protocol, but this server \(heddle .*\) speaks "
                               r"version 2; use the same")


class TlsCase(Case):
    """Two authorities, a server's certificate and a client's, and a token."""

    def setUp(self):
        super().setUp()
        made = [self.heddle("cert", *words) for words in (
            ("ca", "a"), ("server", "a", "--host", "127.0.0.1"), ("client", "a", "--name", "alice"),
            ("ca", "b"), ("client", "b", "--name", "mallory"))]
        if "without OpenSSL" in made[0].stderr:
            self.skipTest("no TLS in this build")
        self.assertTrue(all(r.returncode == 0 for r in made), made)
        path = self.file("token")
        with open(path, "w", encoding="utf-8") as f:
            f.write(TOKEN)
        os.chmod(path, 0o600)
        self.files = ("--tls-cert", self.file("a/server-127.0.0.1.pem"),
                      "--tls-key", self.file("a/server-127.0.0.1.key"))

    def file(self, name):
        return os.path.join(self.dir, name)

    def alice(self, of="a/client-alice"):
        return {"tls_cert": self.file(of + ".pem"), "tls_key": self.file(of + ".key")}


class Tls(TlsCase):
    def test_certificates(self):
        ca = self.file("a/ca.pem")
        log = self.serve("--tls-ca", ca, *self.files, listen="tcp://127.0.0.1:0")
        at = f"tcp://127.0.0.1:{self.port(log)}"
        r = self.heddle("devices", "--gpu", at, HEDDLE_TLS_CA=ca,
                        **{f"HEDDLE_{k.upper()}": v for k, v in self.alice().items()})
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        begins = r"at 127\.0\.0\.1:\d+, certificate alice, heddle .*\) begins"
        until(lambda: re.search(begins, log()), log)
        self.refused("it wants a certificate (tls_cert, tls_key)", at, tls_ca=ca)
        self.refused("was not issued by a CA that it knows", at, tls_ca=ca,
                     **self.alice("b/client-mallory"))
        self.refused("is tls_ca the CA that made it?", at, tls_ca=self.file("b/ca.pem"),
                     **self.alice())
        self.refused("is not for localhost (`heddle cert show`",
                     at.replace("127.0.0.1", "localhost"), tls_ca=ca, **self.alice())
        self.refused("does it use TLS? Then set tls_ca", at, insecure="yes")
        self.wait_for(log, "is --tls-ca the CA that made it?")
        self.assertNotIn("ended with status", log())

    def test_tokens(self):
        log = self.serve("--token-file", self.file("token"), *self.files,
                         listen="tcp://127.0.0.1:0")
        at, ca = f"tcp://127.0.0.1:{self.port(log)}", self.file("a/ca.pem")
        r = self.heddle("devices", "--gpu", at, HEDDLE_TLS_CA=ca, HEDDLE_TLS_TOKEN=TOKEN)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        said = self.refused("the token (tls_token) is not the server's", at, tls_ca=ca,
                            tls_token="guess")
        self.assertIn(at, said)
        self.refused("nor a token (tls_token)", at, tls_ca=ca)
        self.assertIsNone(re.search(TOKEN + "|guess", log()))

    def test_tls_with_a_server_that_has_none(self):
        log = self.serve("--insecure", listen="tcp://127.0.0.1:0")
        self.refused("did not finish the TLS handshake in time (does it use TLS?)",
                     f"tcp://127.0.0.1:{self.port(log)}", tls_ca=self.file("a/ca.pem"),
                     connect_timeout="700")


if __name__ == "__main__":
    unittest.main()
