"""Programs that only their server can reach go to another one when it says so, and only then.

    orders.py [TEST...]     HED_BUILD: the build; HED_WORK: the program e2e_snap_work
"""

import json
import os
from pathlib import Path
import re
import socket
import struct
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "remote"))
from serve_case import MAGIC, NOBODY, Case, Server, clean_environment, until  # noqa: E402

WORK = os.environ.get("HED_WORK", "")
ROUNDS = 12
TOKEN = "a token of forty characters or even more"
ORDERS, ORDER = 7, 8  # kinds of prefaces
CAN_ORDERS = 64
WELCOME_CAPABILITIES = 88  # where struct hed_welcome has them
ORDER_BYTES = 336


def order(number=1, action=1, address=b"unix:/nowhere", size=ORDER_BYTES):
    """A struct hed_order."""
    head = struct.pack("<IHH", size, 31, 0) + bytes(32) + struct.pack("<Q", number) + bytes(16)
    return head + struct.pack("<IIII", action, 1000, 0, 0) + address.ljust(256, b"\0")


class Orders(Case):
    number = None  # what the program computes undisturbed

    def setUp(self):
        super().setUp()
        self.programs = []

    def tearDown(self):
        for p in self.programs:
            p.kill()
            p.wait()
        super().tearDown()

    # ---- servers and programs ----------------------------------------------------------------

    def serve(self, name, *options, tcp=False):
        """A server with a socket for operators and, maybe, for clients over TCP."""
        os.makedirs(f"{self.dir}/{name}", exist_ok=True)
        listen = [f"shm:{self.dir}/{name}/s"] + (["tcp://127.0.0.1:0"] if tcp else [])
        server = Server(self, *options, listen=listen, gpu="cpu:h200")
        server.path = f"{self.dir}/{name}/s"
        return server

    def at(self, server, transport):
        return (f"tcp://127.0.0.1:{server.port()}" if transport == "tcp"
                else f"{transport}:{server.path}")

    def certificates(self, folder="authority"):
        """Options of servers and settings of clients, which have a token."""
        files = f"{self.dir}/{folder}"
        self.assertEqual(self.heddle("cert", "ca", files).returncode, 0)
        r = self.heddle("cert", "server", files, "--host", "127.0.0.1")
        self.assertEqual(r.returncode, 0, r.stderr)
        with open(f"{self.dir}/token", "w", encoding="ascii") as f:
            f.write(TOKEN + "\n")
        os.chmod(f"{self.dir}/token", 0o600)
        return (["--tls-cert", f"{files}/server-127.0.0.1.pem",
                 "--tls-key", f"{files}/server-127.0.0.1.key",
                 "--token-file", f"{self.dir}/token"],
                {"HEDDLE_TLS_CA": f"{files}/ca.pem", "HEDDLE_TLS_TOKEN": TOKEN})

    def start(self, address, hidden=True, **settings):
        """The heddle command cannot reach it: it meets others in a folder of its own."""
        folder = f"{self.dir}/meet{len(self.programs)}"
        os.mkdir(folder, 0o700)
        if hidden:
            settings["HEDDLE_MEET_DIR"] = folder
        p = subprocess.Popen([WORK, str(ROUNDS), "8", "stdin"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True,
                             env=clean_environment(HEDDLE_GPU=address, HEDDLE_LOG="warn",
                                                   **settings))
        self.programs.append(p)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def rounds(self, p, count):
        for _ in range(count):
            p.stdin.write("\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), "done\n")

    def finish(self, p, left):
        """Its last rounds, and what it computed. communicate() would lose what readline() has read
        ahead."""
        self.rounds(p, left)
        p.stdin.close()
        number = p.stdout.read()
        self.assertEqual(p.wait(), 0)
        return number

    def is_right(self, p, left):
        """It does its last rounds, and computes what it computes undisturbed."""
        number = self.finish(p, left)
        if Orders.number is None:
            quiet = self.start(self.at(self.serve("quiet"), "shm"))
            Orders.number = self.finish(quiet, ROUNDS)
        self.assertEqual(number, Orders.number)

    def drain(self, old, to):
        return self.heddle("serve", "--drain", "--to", to, "--listen", f"shm:{old.path}")

    def takes_orders(self, server):
        until(lambda: any(c["orders"] for c in server.status()["clients"]))

    # ---- obeyed ------------------------------------------------------------------------------

    def go_and_return(self, transport, options=(), **settings):
        tcp = transport == "tcp"
        old, new = self.serve("a", *options, tcp=tcp), self.serve("b", *options, tcp=tcp)
        p = self.start(self.at(old, transport), **settings)
        self.rounds(p, 4)
        r = self.drain(old, self.at(new, transport))
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr + old.log())
        self.assertRegex(r.stdout, r"work \(worker \d+ \(.*work at .*goes on at " +
                         re.escape(self.at(new, transport)))
        self.assertEqual(old.process.wait(), 0)
        self.rounds(p, 4)
        # It also obeys the new one.
        third = self.serve("c", *options, tcp=tcp)
        self.takes_orders(new)
        r = self.heddle("migrate", str(new.workers()[0]), "--to", self.at(third, transport),
                        "--listen", f"shm:{new.path}")
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr + new.log())
        self.assertIn("rounds", r.stdout)
        until(lambda: not new.status()["clients"])
        self.is_right(p, ROUNDS - 8)

    def test_shm(self):
        self.go_and_return("shm")

    def test_unix(self):
        self.go_and_return("unix")

    def test_tls(self):
        options, settings = self.certificates()
        self.go_and_return("tcp", options, **settings)

    def test_insecure_if_the_user_says_so(self):
        self.go_and_return("tcp", ["--insecure"], HEDDLE_INSECURE="yes", HEDDLE_ORDERS="on")

    def test_several_at_once(self):
        old, new = self.serve("a", "--spare", "1"), self.serve("b", "--spare", "1")
        programs = [self.start(self.at(old, t)) for t in ("shm", "unix", "unix")]
        r = self.drain(old, self.at(new, "unix"))
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr + old.log())
        self.assertEqual(r.stdout.count("goes on at"), 3)
        for p in programs:
            self.is_right(p, ROUNDS)

    def test_a_program_that_was_away_takes_orders_again(self):
        old = self.serve("a")
        p = self.start(self.at(old, "unix"), hidden=False)
        for there, back in (("out", "in"), ("pause", "resume")):
            self.takes_orders(old)
            for word in (there, back):
                r = self.heddle("snap", word, str(p.pid))
                self.assertEqual(r.returncode, 0, r.stderr)
        self.takes_orders(old)
        self.is_right(p, ROUNDS)

    # ---- refused -----------------------------------------------------------------------------

    def stays(self, old, to, p, *reasons):
        """The program is named with the reason, the server goes on, and so does the program."""
        r = self.drain(old, to)
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        self.assertRegex(r.stderr, r"worker \d+ \(.*work at .*\) was not moved")
        for reason in reasons:
            self.assertIn(reason, r.stderr)
        self.assertIn("still has clients", r.stderr)
        self.assertIsNone(old.process.poll())
        self.is_right(p, ROUNDS)

    def test_a_program_may_take_no_orders(self):
        old, new = self.serve("a"), self.serve("b")
        p = self.start(self.at(old, "unix"), HEDDLE_ORDERS="off")
        self.stays(old, self.at(new, "unix"), p, "takes no orders", "older heddle")

    def test_without_tls_nobody_is_obeyed(self):
        old, new = (self.serve(n, "--insecure", tcp=True) for n in "ab")
        p = self.start(self.at(old, "tcp"), HEDDLE_INSECURE="yes")
        self.stays(old, self.at(new, "tcp"), p, "over TLS only")

    def test_servers_elsewhere_know_no_sockets_of_this_machine(self):
        options, settings = self.certificates()
        old, new = self.serve("a", *options, tcp=True), self.serve("b")
        p = self.start(self.at(old, "tcp"), **settings)
        self.stays(old, self.at(new, "unix"), p, "a socket of this one")

    def test_tls_is_not_given_up(self):
        options, settings = self.certificates()
        old, new = self.serve("a", *options, tcp=True), self.serve("b", "--insecure", tcp=True)
        p = self.start(self.at(old, "tcp"), HEDDLE_CONNECT_TIMEOUT="3000", **settings)
        self.stays(old, self.at(new, "tcp"), p)
        self.assertEqual(new.status()["clients_ever"], 0)

    def test_another_authority_is_refused(self):
        options, settings = self.certificates()
        old = self.serve("a", *options, tcp=True)
        options, _ = self.certificates("other")
        new = self.serve("b", *options, tcp=True)
        p = self.start(self.at(old, "tcp"), **settings)
        self.stays(old, self.at(new, "tcp"), p, "certificate")
        self.assertEqual(new.status()["clients_ever"], 0)

    def test_from_local_to_insecure_is_refused(self):
        old, new = self.serve("a"), self.serve("b", "--insecure", tcp=True)
        p = self.start(self.at(old, "unix"), HEDDLE_INSECURE="yes")
        self.stays(old, self.at(new, "tcp"), p, "insecure=yes")

    def test_there_is_no_server(self):
        old = self.serve("a")
        p = self.start(self.at(old, "unix"))
        self.stays(old, f"unix:{self.dir}/nobody", p)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_only_operators_give_orders(self):
        old = self.serve("a", "--allow-uid", "all", "--mode", "0666")
        for folder in (self.dir, f"{self.dir}/a"):
            os.chmod(folder, 0o755)
        p = self.start(self.at(old, "unix"))
        self.takes_orders(old)

        words = MAGIC + struct.pack("<IIQQ", ORDER, 0, old.workers()[0], 0) + order()
        mine, its = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with old.connect(words) as s:
                os.write(its, s.recv(688, socket.MSG_WAITALL))
            os._exit(0)
        os.close(its)
        with open(mine, "rb") as f:
            said = f.read()
        os.waitpid(child, 0)
        self.assertIn(b"only the server's user and root", said)
        self.is_right(p, ROUNDS)

    # ---- other versions ----------------------------------------------------------------------

    def test_an_older_server_cannot_pass_on_orders(self):
        """It closes what it does not know."""
        door = socket.socket(socket.AF_UNIX)
        self.addCleanup(door.close)
        door.bind(f"{self.dir}/old")
        door.listen(8)
        seen = []

        def answer():
            while True:
                s = door.accept()[0]
                with s:
                    kind, = struct.unpack("<I", s.recv(32)[8:12])
                    seen.append(kind)
                    if kind == 3:
                        s.sendall(json.dumps({"version": "0", "pid": os.getpid(), "clients": [
                            {"worker": 4711, "pid": None, "program": "train", "peer": "10.0.0.9"}]},
                            separators=(",", ":")).encode())
                    if kind == ORDER:
                        return

        t = threading.Thread(target=answer)
        t.start()
        r = self.heddle("serve", "--drain", "--to", "tcp://10.0.0.1", "--listen",
                        f"shm:{self.dir}/old")
        t.join()
        self.assertEqual(r.returncode, 1)
        self.assertIn("worker 4711 (train at 10.0.0.9) was not moved", r.stderr)
        self.assertIn("does not know orders", r.stderr)

    def proxy(self, server, orders):
        """Stands between a program and its server. orders: called with each connection for orders,
        or None for a server that has none."""
        door = socket.socket(socket.AF_UNIX)
        self.addCleanup(door.close)
        path = f"{self.dir}/door"
        door.bind(path)
        door.listen(64)
        kinds = []

        def pipe(a, b, edit=None):
            data = b""
            try:
                while piece := a.recv(65536):
                    data += piece
                    if edit:
                        if len(data) < 128:
                            continue
                        piece, edit = edit(data), None
                    b.sendall(piece)
            except OSError:
                pass
            for s in (a, b):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            a.close()

        def without_orders(data):
            words = bytearray(data)
            can, = struct.unpack_from("<Q", words, WELCOME_CAPABILITIES)
            struct.pack_into("<Q", words, WELCOME_CAPABILITIES, can & ~CAN_ORDERS)
            return bytes(words)

        def accept():
            while True:
                try:
                    a = door.accept()[0]
                except OSError:
                    return
                first = a.recv(32, socket.MSG_WAITALL)
                if len(first) < 32:
                    a.close()
                    continue
                kind, = struct.unpack("<I", first[8:12])
                kinds.append(kind)
                if kind == ORDERS:
                    threading.Thread(target=orders, args=(a,), daemon=True).start()
                    continue
                b = server.connect(first)
                edit = without_orders if kind == 1 and not orders else None
                threading.Thread(target=pipe, args=(a, b), daemon=True).start()
                threading.Thread(target=pipe, args=(b, a, edit), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"unix:{path}", kinds

    def test_a_server_without_orders_gets_no_connection_for_them(self):
        old, new = self.serve("a"), self.serve("b")
        address, kinds = self.proxy(old, None)
        p = self.start(address)
        self.rounds(p, 2)
        r = self.drain(old, self.at(new, "unix"))  # the worker itself believes that it has them
        self.assertEqual(r.returncode, 1)
        self.assertIn("no connection on which it takes orders", r.stderr)
        self.is_right(p, ROUNDS - 2)
        self.assertNotIn(ORDERS, kinds)

    # ---- hostile servers ---------------------------------------------------------------------

    def test_nonsense_on_the_connection_for_orders(self):
        """Nothing of it hurts the program, or makes it come again and again."""
        bad = [b"\xff" * ORDER_BYTES, order(size=5), order()[:100], b"",
               order(address=b"unix:/\x1b[2J"), order(address=b"x" * 256), order(address=b""),
               order() + order(number=2), bytes(1 << 20)]
        server = self.serve("a")
        heard = []

        for words in bad:
            with self.subTest(words=words[:80]):
                done = threading.Event()

                def say(s, words=words, done=done):
                    with s:
                        s.settimeout(60)
                        s.recv(4096)
                        try:
                            s.sendall(words)
                            s.shutdown(socket.SHUT_WR)
                            while piece := s.recv(4096):
                                heard.append(piece)
                        except OSError:
                            pass
                    done.set()

                address, _ = self.proxy(server, say)
                p = self.start(address)
                self.rounds(p, 2)
                self.assertTrue(done.wait(60))
                self.is_right(p, ROUNDS - 2)
                os.unlink(f"{self.dir}/door")

    def test_orders_to_where_nobody_goes(self):
        """A server that gives one order after the other is answered, and slowly."""
        reports = []
        server = self.serve("a")
        done = threading.Event()

        def say(s):
            with s:
                s.settimeout(60)
                s.recv(4096)
                for number, (action, address) in enumerate([
                        (1, b"vm:guest"), (99, b"unix:/x"), (1, b"no address"),
                        (1, b"unix:/dev/null")]):
                    s.sendall(order(number + 1, action, address))
                    state = 1
                    while state == 1:
                        report = s.recv(688, socket.MSG_WAITALL)
                        state, = struct.unpack_from("<I", report, 64)
                    reports.append((struct.unpack_from("<Q", report, 40)[0], state,
                                    report[-256:].split(b"\0")[0].decode()))
            done.set()

        address, _ = self.proxy(server, say)
        p = self.start(address)
        self.assertTrue(done.wait(60))
        self.assertEqual([r[:2] for r in reports], [(1, 3), (2, 3), (3, 3), (4, 3)], reports)
        self.assertIn("guest", reports[0][2])
        self.assertIn("does not know", reports[1][2])
        self.assertIn("is not the address", reports[2][2])
        self.is_right(p, ROUNDS)


if __name__ == "__main__":
    sys.exit(unittest.main())
