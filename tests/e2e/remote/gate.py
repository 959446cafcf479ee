"""The gate of a server: who clients over TLS are is found out before they have a worker, in a
process that has the key, which no worker has."""

import base64
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import unittest

from serve_case import TCP, hello
from words import HEDDLE, PATIENCE, TOKEN, TlsCase, environment, until

PREFACE = b"HEDDLE1\n" + struct.pack("<II", 1, 0) + bytes(16)
BEGUN = PREFACE + b"\x16\x03\x01\x02\x00\x01"  # a record that announces more than comes
ROOT = os.geteuid() == 0
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
print(cuda.cuInit(0), flush=True)
sys.stdin.read()
"""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return f.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def memory_has(pid, secrets):
    """Which of the secrets are in the memory of a process?"""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            if line.split()[1][0] != "r" or high - low > 1 << 30:
                continue  # larger is the room for device memory, which nobody has touched
            try:
                mem.seek(low)
                data = mem.read(high - low)
            except (OSError, OverflowError, ValueError):
                continue
            found |= {name for name, secret in secrets.items() if secret in data}
    return found


class Gate(TlsCase):
    def setUp(self):
        super().setUp()
        self.clients = []
        self.ca = self.file("a/ca.pem")
        r = self.heddle("cert", "client", "a", "--name", "bob")
        self.assertEqual(r.returncode, 0, r.stderr)

    def tearDown(self):
        for c in self.clients:
            c.kill()
            c.communicate()
        super().tearDown()

    def serve_tls(self, *options):
        """A server for certificates and the token. Returns its address and its log."""
        log = self.serve("--tls-ca", self.ca, "--token-file", self.file("token"), *self.files,
                         *options, listen="tcp://127.0.0.1:0")
        return f"tcp://127.0.0.1:{self.port(log)}", log

    def settings(self, who):
        if who == TOKEN:
            return {"HEDDLE_TLS_CA": self.ca, "HEDDLE_TLS_TOKEN": TOKEN}
        return {"HEDDLE_TLS_CA": self.ca, "HEDDLE_TLS_CERT": self.file(f"a/client-{who}.pem"),
                "HEDDLE_TLS_KEY": self.file(f"a/client-{who}.key")}

    def devices(self, at, who):
        return self.heddle("devices", "--gpu", at, **self.settings(who))

    def stay(self, at, who):
        """A client that is connected until the test ends."""
        c = subprocess.Popen([HEDDLE, "run", "--gpu", at, "--", sys.executable, "-c", PROGRAM],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True,
                             env=environment(**self.settings(who)))
        self.clients.append(c)
        self.assertEqual(c.stdout.readline().strip(), "0")
        return c

    def pids(self, kind):
        return [p for p in children(self.servers[-1][0].pid) if name_of(p) == kind]

    def silent(self, at, count, words=PREFACE):
        host, port = at[6:].rsplit(":", 1)
        for _ in range(count):
            s = socket.create_connection((host, int(port)), timeout=PATIENCE)
            self.addCleanup(s.close)
            s.sendall(words)

    # ---- who is let in -----------------------------------------------------------------------

    def test_silent_peers_have_no_worker(self):
        at, log = self.serve_tls("--clients", "1", "--patience", "1000")
        self.silent(at, 30)
        self.silent(at, 30, BEGUN)
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())
        self.assertEqual(self.devices(at, TOKEN).returncode, 0, log())

    def test_silent_peers_without_tls_have_no_worker(self):
        log = self.serve("--insecure", "--clients", "1", "--patience", "1000",
                         listen="tcp://127.0.0.1:0")
        at = f"tcp://127.0.0.1:{self.port(log)}"
        self.silent(at, 30)
        r = self.heddle("devices", "--gpu", at, HEDDLE_INSECURE="yes")
        self.assertEqual((r.returncode, r.stderr), (0, ""), log())

    def test_spares_go_on_with_connections(self):
        at, log = self.serve_tls("--spare", "1", "--log", "warn,server=debug")
        for who in ("alice", TOKEN):
            count = log().count(" begins")

            def got_spare(who=who, count=count):
                r = self.devices(at, who)
                self.assertEqual((r.returncode, r.stderr), (0, ""), log())
                last = re.findall(r"(spare|new) worker \d+ for 127", log())[-1]
                return last == "spare" and log().count(" begins") > count + 1
            until(got_spare, log)

    def test_a_flood_keeps_out_whoever_makes_it(self):
        at, log = self.serve_tls("--startups", "8", "--patience", "1000", "--listen",
                                 f"unix:{self.dir}/s")
        self.silent(at, 40)
        self.wait_for(log, "--startups")
        r = self.heddle("devices", "--gpu", f"unix:{self.dir}/s")
        self.assertEqual((r.returncode, r.stderr), (0, ""), log())
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())

    def test_silent_peers_have_no_gate(self):
        at, log = self.serve_tls("--patience", "1000")
        keeper, listener = self.pids("heddled-gate")[0], self.servers[-1][0].pid
        self.silent(at, 30)
        until(lambda: len(os.listdir(f"/proc/{listener}/fd")) > 30, log)
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())
        until(lambda: not children(keeper), lambda: f"{len(children(keeper))} gates")

    def test_gates_are_few_at_a_time(self):
        """The rest waits, and each has its turn although those before it say nothing more."""
        at, log = self.serve_tls("--patience", "1000")
        keeper = self.pids("heddled-gate")[0]
        count = 8 * os.cpu_count() + 20
        self.silent(at, count, BEGUN)
        until(lambda: len(children(keeper)) == count, lambda: f"{len(children(keeper))} gates")
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())

    def test_a_client_that_was_turned_away_tries_again(self):
        at, _ = self.serve_tls()
        door = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(door.close)
        door.settimeout(PATIENCE)
        host, port = at[6:].rsplit(":", 1)

        def forward(a, b):
            try:
                while data := a.recv(65536):
                    b.sendall(data)
                b.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def meet():
            first = True
            while True:
                try:
                    s = door.accept()[0]
                except OSError:
                    return
                if first:
                    s.recv(32, socket.MSG_WAITALL)
                    s.close()
                    first = False
                    continue
                t = socket.create_connection((host, int(port)), timeout=PATIENCE)
                for a, b in ((s, t), (t, s)):
                    threading.Thread(target=forward, args=(a, b), daemon=True).start()

        threading.Thread(target=meet, daemon=True).start()
        r = self.devices(f"tcp://127.0.0.1:{door.getsockname()[1]}", "alice")
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_gates_end_with_their_connections(self):
        at, log = self.serve_tls("--startups", "8", "--patience", "1000")
        self.silent(at, 60, BEGUN)
        self.wait_for(log, "--startups")
        # The keeper takes one after the other.
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())
        keeper = self.pids("heddled-gate")[0]
        until(lambda: len(children(keeper)) <= 8, lambda: f"{len(children(keeper))} gates")

    def test_clients_wait_for_a_keeper_that_is_behind(self):
        at, log = self.serve_tls("--startups", "4096", "--patience", "1000")
        keeper, listener = self.pids("heddled-gate")[0], self.servers[-1][0].pid
        os.kill(keeper, signal.SIGSTOP)
        try:
            self.silent(at, 40, BEGUN)
            until(lambda: len(os.listdir(f"/proc/{listener}/fd")) > 40 or "refused" in log(), log)
        finally:
            os.kill(keeper, signal.SIGCONT)
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())
        self.assertNotIn("refused", log())

    def test_late_clients_are_told_from_silent_ones(self):
        at, log = self.serve_tls("--patience", "1")
        self.silent(at, 3, BEGUN)
        self.wait_for(log, "did not finish the TLS handshake in time")
        self.silent(at, 3)
        self.wait_for(log, "did not say in time what it wants")
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())

    def test_limits_are_explained_over_tls(self):
        at, log = self.serve_tls("--clients", "2", "--per-source", "1", "--listen",
                                 f"unix:{self.dir}/s")
        self.stay(at, "alice")
        table = self.heddle("serve", "--list", "--listen", f"unix:{self.dir}/s").stdout
        self.assertRegex(table, r"  alice at 127\.0\.0\.1:\d+ ")
        r = self.devices(at, "bob")
        self.assertEqual(r.returncode, 1)
        self.assertIn("the server already has 1 clients from there (--per-source)", r.stderr)
        self.wait_for(log, "--per-source")

    # ---- certificates that change ------------------------------------------------------------

    def reload(self, says):
        server, log = self.servers[-1]
        before = log().count(says)
        server.send_signal(signal.SIGHUP)
        until(lambda: log().count(says) > before, log)

    def test_certificates_are_read_again(self):
        at, log = self.serve_tls()
        self.stay(at, "alice")
        cert, key = self.files[1], self.files[3]
        with open(cert, "r+", encoding="ascii") as f:
            good = f.read()
            f.seek(0)
            f.write("nothing")
        self.reload("nothing has changed")
        self.assertEqual(self.devices(at, "bob").returncode, 0, log())
        # Another certificate of the same authority for another host.
        os.rename(key, key + ".old")
        r = self.heddle("cert", "server", "a", "--host", "elsewhere.example")
        self.assertEqual(r.returncode, 0, r.stderr)
        os.rename(self.file("a/server-elsewhere.example.pem"), cert)
        os.rename(self.file("a/server-elsewhere.example.key"), key)
        self.reload("certificates were read again")
        r = self.devices(at, "bob")
        self.assertIn("is not for 127.0.0.1", r.stderr)
        with open(cert, "w", encoding="ascii") as f:
            f.write(good)
        os.rename(key + ".old", key)
        self.reload("certificates were read again")
        self.assertEqual(self.devices(at, "bob").returncode, 0, log())
        self.assertIsNone(self.clients[0].poll())  # it was connected all the time

    def test_a_certificate_is_revoked(self):
        denied = self.file("denied")
        with open(denied, "w", encoding="ascii") as f:
            f.write("# nobody yet\n")
        at, log = self.serve_tls("--tls-deny", denied)
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())
        shown = self.heddle("cert", "show", self.file("a/client-bob.pem")).stdout
        with open(denied, "a", encoding="ascii") as f:
            f.write("alice  # lost her laptop\n")
            f.write(re.search(r"fingerprint +(\S.*)", shown).group(1) + "\n")
        self.reload("certificates were read again")
        for who in ("alice", "bob"):
            r = self.devices(at, who)
            self.assertEqual(r.returncode, 1)
            self.assertIn(f"the certificate of {who} was revoked", r.stderr)
        self.assertEqual(self.devices(at, TOKEN).returncode, 0, log())

    def test_a_wrong_token_file_is_named(self):
        for text in ("x" * 15, "x" * 128, ""):
            with open(self.file("token"), "w", encoding="ascii") as f:
                f.write(text)
            r = self.heddle("serve", "--gpu", "null", "--listen", "tcp://127.0.0.1:0",
                            "--token-file", self.file("token"), *self.files)
            self.assertEqual(r.returncode, 1)
            self.assertIn("its first line must have 16 to 127 characters", r.stderr)

    # ---- secrets -----------------------------------------------------------------------------

    def test_the_keeper_is_replaced_when_it_dies(self):
        at, log = self.serve_tls()
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())
        os.kill(self.pids("heddled-gate")[0], signal.SIGKILL)
        self.wait_for(log, "the process for TLS handshakes has ended")
        until(lambda: self.devices(at, "alice").returncode == 0, log)

    def test_the_end_of_a_keeper_that_was_replaced_is_no_news(self):
        at, log = self.serve_tls()
        listener = self.servers[-1][0]
        # The listener finds both at once.
        listener.send_signal(signal.SIGSTOP)
        until(lambda: state_of(listener.pid) == "T")
        listener.send_signal(signal.SIGHUP)
        keeper = self.pids("heddled-gate")[0]
        os.kill(keeper, signal.SIGKILL)
        until(lambda: state_of(keeper) == "Z")
        listener.send_signal(signal.SIGCONT)
        self.wait_for(log, "certificates were read again")
        self.assertEqual(self.devices(at, "alice").returncode, 0, log())
        self.assertNotIn("has ended", log())

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_new_keeper_has_no_worker_s_user(self):
        config = self.file("serve.conf")
        with open(config, "w", encoding="ascii") as f:
            f.write("worker-uids = 70000-70010\n")
        _, log = self.serve_tls("--config", config)
        if "sandbox: off" in log():
            self.skipTest("no sandbox here")
        with open(config, "w", encoding="ascii") as f:
            f.write("worker-uids = 70000-70003\n")
        self.reload("will change with the next start")
        until(lambda: len(self.pids("heddled-gate")) == 1)
        with open(f"/proc/{self.pids('heddled-gate')[0]}/status", encoding="ascii") as f:
            self.assertIn("Uid:\t70010\t", f.read())

    @unittest.skipUnless(ROOT, "needs root")
    def test_no_worker_has_the_key_or_the_token(self):
        at, log = self.serve_tls()
        self.stay(at, "alice")
        self.stay(at, TOKEN)
        with open(self.files[3], encoding="ascii") as f:
            pem = f.read()
        der = base64.b64decode("".join(x for x in pem.splitlines() if "-" not in x))
        number = re.search(rb"\x04\x20(.{32})", der, re.S).group(1)
        secrets = {"key as a file": der[:40], "key in PEM": pem[40:80].encode(), "key": number,
                   "key, least first": number[::-1], "token": TOKEN.encode()}
        workers = self.pids("heddled-worker")
        self.assertEqual(len(workers), 2, log())
        for pid in [self.servers[-1][0].pid, *workers]:
            self.assertEqual(memory_has(pid, secrets), set(), name_of(pid))
        # The search finds what is there.
        self.assertTrue({"token"} < memory_has(self.pids("heddled-gate")[0], secrets))

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_worker_has_the_secrets_of_its_own_client(self):
        at, log = self.serve_tls("--patience", "1000")
        host, port = at[6:].rsplit(":", 1)
        keys = self.file("keys")
        sockets = []
        for who in ("alice", "bob", "alice"):
            context = ssl.create_default_context(cafile=self.ca)
            context.load_cert_chain(self.file(f"a/client-{who}.pem"),
                                    self.file(f"a/client-{who}.key"))
            context.keylog_filename = keys
            s = socket.create_connection((host, int(port)), timeout=PATIENCE)
            s.sendall(PREFACE)
            s = context.wrap_socket(s, server_hostname=host)
            self.addCleanup(s.close)
            sockets.append(s)
            self.assertEqual(s.recv(1), b"R")
            s.sendall(hello(TCP))
            self.assertTrue(s.recv(1), log())  # its worker is there
        with open(keys, encoding="ascii") as f:
            lines = [x.split() for x in f if "_TRAFFIC_SECRET_0" in x]
        secrets = {(name, number): bytes.fromhex(key) for name, number, key in lines}
        self.assertEqual(len(secrets), 6)
        workers = self.pids("heddled-worker")
        found = [{number for _, number in memory_has(pid, secrets)} for pid in workers]
        self.assertEqual([len(x) for x in found], [1, 1, 1])
        self.assertEqual(len(set.union(*found)), 3)
        for pid in [self.servers[-1][0].pid, *self.pids("heddled-gate")]:
            self.assertEqual(memory_has(pid, secrets), set(), name_of(pid))
        for s in sockets:
            s.close()  # before the server ends, which waits for clients

    @unittest.skipUnless(ROOT, "needs root")
    def test_the_keeper_is_confined(self):
        at, log = self.serve_tls()
        if "sandbox: off" in log():
            self.skipTest("no sandbox here")
        with open(f"/proc/{self.pids('heddled-gate')[0]}/status", encoding="ascii") as f:
            lines = {k: v.strip() for k, v in (x.split(":", 1) for x in f)}
        self.assertEqual((lines["NoNewPrivs"], lines["Seccomp"]), ("1", "2"))
        self.assertEqual(int(lines["CapEff"], 16) | int(lines["CapPrm"], 16), 0)
        self.assertNotEqual(lines["Uid"].split()[0], "0")

    def test_every_certificate_has_folders_of_its_own(self):
        images = self.file("images")
        at, log = self.serve_tls("--images", images)
        if "sandbox: off" in log():
            self.skipTest("no sandbox here")
        for who in ("alice", "bob", TOKEN):
            self.assertEqual(self.devices(at, who).returncode, 0, log())
        folders = sorted(os.listdir(images))
        self.assertEqual([f[:5] for f in folders], ["cert-", "cert-", "token"])


if __name__ == "__main__":
    unittest.main()
