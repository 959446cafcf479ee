#!/usr/bin/env python3
"""The server's life from the outside: its start, its status, its end.

    HED_BUILD=build/dev serve_life.py [Case.test...]

Clients here are bare sockets that send a preface and no more; other tests cover what follows. While
its worker waits for a hello, such a socket counts as a client.
"""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
import unittest

from serve_case import (
    CHANNEL, HEDDLE, HEDDLED, PATIENCE, ROOT, SOURCE, STATUS, Case, Server, clean_environment,
    preface, until)


def bridges(server):
    """The processes that serve the guests of a server."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                name, _, rest = f.read().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name == "heddled-bridge" and int(rest.split()[1]) == server:
            found.append(int(entry))
    return found


class Words(Case):
    """Options are checked before anything is opened."""

    def expect(self, says, *words, code=2):
        for command in ([HEDDLE, "serve"], [HEDDLED]):
            r = subprocess.run([*command, "--listen", f"shm:{self.dir}/s", *words],
                               env=clean_environment(), capture_output=True, text=True,
                               timeout=PATIENCE)
            self.assertEqual(r.returncode, code, (words, r.stderr))
            self.assertIn(says, r.stderr)
            self.assertFalse(os.path.exists(f"{self.dir}/s"))

    def test_bad_values_are_refused_with_the_reason(self):
        self.expect("not the address of a server", "--listen", "here")
        self.expect("path", "--listen", "unix:")
        self.expect("is another server", "--gpu", "shm:/x")
        for value in ("0800", "rw", "-1", "07777", ""):
            self.expect("--mode", "--mode", value)
        self.expect("--allow-uid", "--allow-uid", "no-such-user-here")
        self.expect("--allow-gid", "--allow-gid", "0,,1")
        self.expect("--allow-uid", "--allow-uid", ",".join(["1"] * 65))
        self.expect("--memory", "--memory", "20X")
        self.expect("--total-memory", "--total-memory", "all")
        self.expect("--worker-cpus", "--worker-cpus", "half")
        for value in ("0", "1025", "x", "-1"):
            self.expect("--clients", "--clients", value)
        self.expect("--channels", "--channels", "0")
        for value in ("65", "-1", "some"):
            self.expect("--spare", "--spare", value)
        self.expect("--idle", "--idle", "5000000000")
        self.expect("--kernel-time", "--kernel-time", "soon")
        self.expect("--compile-time", "--compile-time", "-1")
        self.expect("log: there is no level", "--log", "loud")
        self.expect("--token-file", "--token-file", "/nonexistent")
        self.expect("there is no option '--frob'", "--frob")
        self.expect("takes no value", "--insecure=1")
        self.expect("needs a value", "--listen")

    def test_tcp_must_be_secured(self):
        self.expect("--insecure", "--listen", "tcp://")
        self.expect("leave out one of the two", "--listen", "tcp://", "--insecure", "--tls-cert",
                    "/x")

    def test_tokens_are_secret(self):
        path = os.path.join(self.dir, "token")
        with open(path, "w", encoding="ascii") as f:
            f.write("x" * 32)
        os.chmod(path, 0o644)
        self.expect("other users may read", "--token-file", path)

    def test_a_token_in_the_clear_is_refused(self):
        path = os.path.join(self.dir, "token")
        with open(path, "w", encoding="utf-8") as f:
            f.write("a token of some length\n")
        os.chmod(path, 0o600)
        self.expect("in the clear", "--listen", "tcp://127.0.0.1:0", "--insecure",
                    "--token-file", path)

    def test_unusable_paths_are_refused(self):
        for place in ("/nonexistent/s", "/proc/s"):
            r = subprocess.run([HEDDLED, "--listen", f"unix:{place}"], env=clean_environment(),
                               capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(r.returncode, 1)
            self.assertIn(place, r.stderr)

    def test_a_server_without_a_gpu_does_not_stay(self):
        r = subprocess.run([HEDDLED, "--listen", f"unix:{self.dir}/s", "--gpu", "gpu"], text=True,
                           env=clean_environment(HEDDLE_DRIVER="/there/is/none"),
                           capture_output=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 1)
        self.assertIn("--gpu gpu cannot be used on this machine", r.stderr)
        self.assertNotIn("serves --gpu", r.stderr)

    def test_help_and_server_know_the_same_options(self):
        text = self.heddle("serve", "--help").stdout
        names = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE))
        names -= {"--status", "--json", "--list", "--evict", "--drain", "--to"}
        path = os.path.join(SOURCE, "src/remote/server/listener/options.c")
        with open(path, encoding="utf-8") as f:
            known = set(re.findall(r'^    \{"([a-z-]+)", (?:true|false), take_', f.read(),
                                   re.MULTILINE))
        self.assertEqual(names, {"--" + n for n in known})

    def test_heddled_has_help(self):
        r = subprocess.run([HEDDLED, "--help"], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertIn("heddle serve", r.stdout)


class Beginning(Case):
    def test_it_starts_and_stops(self):
        server = Server(self)
        self.assertEqual(stat.S_IMODE(os.stat(server.path).st_mode), 0o600)
        self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(server.path))
        self.assertIn("stopped after 0 clients", server.log())

    def test_the_folder_for_guests_is_made(self):
        """Root's sockets for QEMU are in a folder that a fresh machine does not have."""
        fresh = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs fresh /run && exec "$0" "$@"']
        if subprocess.run([*fresh, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("not root")
        server = Server(self, listen=[f"shm:{self.dir}/s", f"vm:test-{os.getpid()},size=0"],
                        before=fresh)
        self.assertIn("listening on vm:", server.log())
        self.assertEqual(server.stop(), 0)

    def test_a_guest_is_restarted_at_once(self):
        """The next QEMU need not wait until the bridge has noticed that the last one is gone."""
        name = f"test-{os.getpid()}"
        folder = "/run/heddle" if ROOT else self.dir
        server = Server(self, listen=[f"shm:{self.dir}/s", f"vm:{name},size=0"],
                        env=clean_environment(XDG_RUNTIME_DIR=self.dir))
        path = f"{folder}/heddle-vm-{name}.sock"
        qemu = server.connect(path=path)
        server.until_logged("is here")
        other = server.connect(path=path)
        server.until_logged("connected already")
        other.close()
        bridge, = until(lambda: bridges(server.process.pid))
        os.kill(bridge, signal.SIGSTOP)
        qemu.close()
        with server.connect(path=path):
            until(lambda: server.log().count("is here") == 2, server.log)
            self.assertEqual(server.log().count("connected already"), 1)
            self.assertEqual(server.stop(), 0)

    def test_heddle_serve_becomes_heddled(self):
        path = os.path.join(self.dir, "s")
        said = os.path.join(self.dir, "log")
        with open(said, "wb") as log:
            p = subprocess.Popen([HEDDLE, "serve", "--listen", f"shm:{path}", "--gpu", "null",
                                  "--images", "none"], stderr=log, env=clean_environment())
        try:
            until(lambda: b"serves --gpu" in open(said, "rb").read())
            r = self.heddle("serve", "--status", "--json", "--listen", f"unix:{path}")
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual(json.loads(r.stdout)["pid"], p.pid)
        finally:
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.wait(PATIENCE), 0)

    def test_a_stale_socket_is_replaced(self):
        server = Server(self)
        server.process.kill()
        server.process.wait()
        self.assertTrue(os.path.exists(server.path))
        again = Server(self)
        self.assertEqual(again.status()["pid"], again.process.pid)

    def test_a_second_server_does_not_take_the_path(self):
        first = Server(self)
        second = Server(self, wait=False)
        self.assertEqual(second.process.wait(PATIENCE), 1)
        self.assertIn(first.path, second.log())
        self.assertEqual(first.status()["pid"], first.process.pid)

    def test_of_many_that_start_at_once_one_remains(self):
        servers = [Server(self, wait=False) for _ in range(6)]
        until(lambda: sum(s.process.poll() is None for s in servers) == 1)
        alive = [s for s in servers if s.process.poll() is None]
        alive[0].until_logged("serves --gpu")
        self.assertEqual(alive[0].status()["pid"], alive[0].process.pid)

    def test_other_files_are_not_replaced(self):
        with open(os.path.join(self.dir, "s"), "w") as f:
            f.write("precious")
        server = Server(self, wait=False)
        self.assertEqual(server.process.wait(PATIENCE), 1)
        with open(server.path) as f:
            self.assertEqual(f.read(), "precious")

    def test_a_socket_that_another_server_has_made_stays(self):
        first = Server(self)
        os.unlink(first.path)
        second = Server(self)
        self.assertEqual(first.stop(), 0)
        self.assertEqual(second.status()["pid"], second.process.pid)

    def test_several_addresses(self):
        other = os.path.join(self.dir, "other")
        server = Server(self, "--insecure", listen=[f"shm:{self.dir}/s", f"unix:{other}",
                                                    "tcp://:0"])
        port = server.port()
        self.assertEqual(server.status()["addresses"],
                         [f"shm:{self.dir}/s", f"unix:{other}", f"tcp://127.0.0.1:{port}"])
        server.until_logged("INSECURE")
        with server.connect(preface(STATUS), path=other) as s:
            self.assertTrue(s.recv(10).startswith(b"{"))
        # Not over TCP.
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
            s.sendall(preface(STATUS))
            self.assertEqual(s.recv(10), b"")

    def test_systemd_is_notified(self):
        path = os.path.join(self.dir, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(path)
            s.settimeout(PATIENCE)
            Server(self, env=clean_environment(NOTIFY_SOCKET=path))
            self.assertIn(b"READY=1", s.recv(100))

    def test_the_mode_is_what_was_asked_for(self):
        server = Server(self, "--mode", "0666")
        self.assertEqual(stat.S_IMODE(os.stat(server.path).st_mode), 0o666)


class Status(Case):
    KEYS = {"version", "pid", "uptime_seconds", "addresses", "gpu", "limits", "devices", "guests",
            "spares", "connections", "refused", "clients_ever", "stopping", "clients"}
    CLIENT_KEYS = {"worker", "worker_uid", "sandbox", "pid", "uid", "program", "peer",
                   "certificate", "since", "seconds", "idle_seconds", "parked", "orders",
                   "channels", "messages", "bytes_in", "bytes_out", "launches", "leased_bytes",
                   "leased_total_bytes", "host_bytes", "used_bytes", "failure"}

    def test_keys_are_stable_and_described(self):
        begin = time.time()
        server = Server(self, "--memory", "1G", "--host-memory", "3G", "--total-memory", "4G",
                        "--worker-memory", "5G", "--idle", "100000")
        self.client(server)
        until(lambda: server.status()["clients"])
        status = server.status()
        server_limits = status["limits"]
        self.assertEqual(set(status), self.KEYS)
        self.assertEqual(status["limits"], {"clients": 512, "channels": 1024, "spare": 0,
                                            "rate": 512,
                                            "per_source": server_limits["per_source"],
                                            "startups": server_limits["startups"],
                                            "memory": 1 << 30, "host_memory": 3 << 30,
                                            "total_memory": 4 << 30,
                                            "worker_memory": 5 << 30, "worker_cpus": 0,
                                            "idle_seconds": 100000, "session_seconds": 0,
                                            "kernel_seconds": 0, "compile_seconds": 600,
                                            "guest_seconds": 30, "park_seconds": 600})
        client = status["clients"][0]
        self.assertEqual(set(client), self.CLIENT_KEYS)
        self.assertEqual((client["pid"], client["uid"], client["peer"]),
                         (os.getpid(), os.geteuid(), "local"))
        self.assertTrue(begin - 1 <= client["since"] <= time.time() + 1, client)
        with open(os.path.join(SOURCE, "docs/man/heddle-serve.1"), encoding="utf-8") as f:
            page = f.read().split(".SH STATUS")[1].split(".SH EXIT")[0]
        for key in self.KEYS | self.CLIENT_KEYS | set(status["limits"]):
            self.assertRegex(page, rf"\b{key}\b")

    def test_people_get_a_table(self):
        server = Server(self, "--session", "7200", "--memory", "3G")
        self.client(server)
        server.until_logged(") begins")
        r = self.heddle("serve", "--status", "--listen", f"shm:{server.path}")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for words in (f"process {server.process.pid}, serves --gpu null for ",
                      f"listens at   shm:{server.path}\n", "1 of 512 (--clients)",
                      "devices 3.0 GiB (--memory)", "session 7200 s (--session)",
                      "silence no limit (--idle)", "(--total-memory)",
                      "(--per-source)", "(--compile-time)",
                      f"{server.workers()[0]}  heddle  "):
            self.assertIn(words, r.stdout)
        self.assertLessEqual(max(map(len, r.stdout.splitlines())), 105, r.stdout)
        # Both print the same table.
        table = self.heddle("serve", "--list", "--listen", f"shm:{server.path}").stdout
        self.assertIn(table.splitlines()[0], r.stdout.splitlines())
        r = self.heddle("serve", "--list", "--json", "--listen", f"shm:{server.path}")
        self.assertEqual(r.returncode, 2)
        self.assertIn("--json", r.stderr)

    def test_a_missing_server_is_reported(self):
        r = self.heddle("serve", "--status", "--listen", f"shm:{self.dir}/nobody")
        self.assertEqual(r.returncode, 1)
        self.assertIn("nobody", r.stderr)
        r = self.heddle("serve", "--status", "--listen", "tcp://")
        self.assertEqual(r.returncode, 2)

    def test_a_reader_that_does_not_read_blocks_no_other(self):
        server = Server(self)
        slow = []
        for _ in range(50):
            s = server.connect(preface(STATUS))
            slow.append(s)
        self.assertEqual(server.status()["pid"], server.process.pid)
        for s in slow:
            s.close()


class Reload(Case):
    """Options from a file, which SIGHUP reads again."""

    def write(self, text):
        with open(os.path.join(self.dir, "conf"), "w", encoding="utf-8") as f:
            f.write(text)
        return os.path.join(self.dir, "conf")

    def reload(self, server, words):
        server.process.send_signal(signal.SIGHUP)
        server.until_logged(words)
        return server.status()["limits"]

    def test_limits_change_while_it_runs(self):
        conf = self.write("# limits\nclients = 5\n\n  kernel-time=7  \nrate = 3\n")
        server = Server(self, "--config", conf, "--rate", "9")
        limits = server.status()["limits"]
        # The command line wins.
        self.assertEqual((limits["clients"], limits["kernel_seconds"], limits["rate"]), (5, 7, 9))
        first = self.client(server)
        until(lambda: server.workers())
        self.write("clients = 1\nidle = 50\nmemory = 2G\ntotal-memory = 3G\nmode = 0660\n")
        limits = self.reload(server, "changed --memory, --host-memory, --total-memory, --clients, "
                                     "--idle, --kernel-time")
        self.assertEqual(
            [limits[k] for k in ("clients", "idle_seconds", "kernel_seconds", "memory",
                                 "total_memory", "rate")], [1, 50, 0, 2 << 30, 3 << 30, 9])
        server.until_logged("--mode will change with the next start")
        self.assertEqual(stat.S_IMODE(os.stat(server.path).st_mode), 0o600)
        # It holds for new clients; the one that is there stays.
        self.assertIn("(--clients)", self.refusal(self.client(server)))
        self.assertEqual(len(server.workers()), 1)
        self.assertFalse(self.ended(first))

    def test_a_bad_file_changes_nothing(self):
        conf = self.write("clients = 5\n")
        server = Server(self, "--config", conf)
        before = server.status()["limits"]
        for text, says in (("memory = 1G\nclients = many\n", "conf:2: clients: 'many' is not"),
                           ("memory = 1G\nfrob = 1\n", "conf:2: there is no option 'frob'"),
                           ("memory\n", "conf:1: 'memory' is not `name = value`"),
                           ("config = x\n", "conf:1: there is no option 'config'"),
                           ("memory = 1G\ninsecure = perhaps\n", "conf:2: insecure: 'perhaps'"),
                           ("x" * 9000, "conf:1: the line is too long"),
                           ("listen = here\n", "conf:1: listen: ")):
            self.write(text)
            self.assertEqual(self.reload(server, says), before)
            self.assertIn("SIGHUP: nothing has changed, because", server.log())
        os.remove(conf)
        self.assertEqual(self.reload(server, "conf: No such file"), before)
        self.write("clients = 5\n")
        self.reload(server, "SIGHUP: the options have not changed")

    def test_a_missing_file_is_an_error_unless_it_may_be_missing(self):
        server = Server(self, "--config", f"{self.dir}/none", wait=False)
        self.assertEqual(server.process.wait(PATIENCE), 2)
        self.assertIn("none: No such file", server.log())
        server.process.returncode = 0  # it was meant to fail
        server = Server(self, "--config", f"-{self.dir}/conf")
        self.write("clients = 4\n")
        self.assertEqual(self.reload(server, "changed --clients")["clients"], 4)

    def test_users_come_and_go(self):
        conf = self.write("allow-uid = 7\n")
        server = Server(self, "--config", conf)
        self.write("allow-uid = all\nallow-gid = 0\n")
        self.reload(server, "changed --allow-uid, --allow-gid")


class Ends(Case):
    def alive(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0] != "Z"
        # It ended before the file was opened, or between opening and reading it.
        except (FileNotFoundError, ProcessLookupError):
            return False

    def test_a_worker_ends_with_its_client(self):
        server = Server(self)
        s = self.client(server)
        server.until_logged(") begins")
        worker = server.workers()[0]
        s.close()
        until(lambda: not server.workers())
        self.assertFalse(self.alive(worker))
        self.assertRegex(server.log(), rf"heddle\[{worker}/[0-9a-f]{{8}}\] info server: heddle \(")

    def test_a_killed_worker_affects_one_client(self):
        server = Server(self)
        a, b = self.client(server), self.client(server)
        until(lambda: server.log().count(") begins") == 2, server.log)
        first, second = sorted(server.workers())
        os.kill(first, signal.SIGKILL)
        until(lambda: server.workers() == [second])
        server.until_logged(f"worker {first} (heddle) was killed by signal 9")
        until(lambda: self.ended(a) or self.ended(b))
        self.assertNotEqual(self.ended(a), self.ended(b))

    def test_a_worker_has_nothing_of_others(self):
        server = Server(self)
        for _ in range(3):
            self.client(server)
        until(lambda: len(server.workers()) == 3)
        for worker in server.workers():
            names = []

            def settled():
                try:
                    names[:] = [os.readlink(f"/proc/{worker}/fd/{n}")
                                for n in os.listdir(f"/proc/{worker}/fd")]
                except FileNotFoundError:  # it closed one between the two
                    return False
                return len([n for n in names if n.startswith("socket:")]) == 3
            until(settled, lambda: names)
            self.assertFalse([n for n in names if "eventpoll" in n or "signalfd" in n])

    def test_workers_end_with_a_killed_listener(self):
        server = Server(self)
        sockets = [self.client(server) for _ in range(3)]
        until(lambda: len(server.workers()) == 3)
        workers = server.workers()
        server.process.kill()
        server.process.wait()
        until(lambda: not any(self.alive(w) for w in workers))
        for s in sockets:
            until(lambda s=s: self.ended(s))

    def test_a_restarted_server_refuses_old_sessions(self):
        server = Server(self)
        self.client(server)
        server.process.kill()
        server.process.wait()
        again = Server(self)
        with again.connect(preface(CHANNEL, os.urandom(16))) as s:
            until(lambda: self.ended(s))

    def test_clients_may_finish_when_it_stops(self):
        server = Server(self)
        s = self.client(server)
        until(lambda: len(server.workers()) == 1)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: not os.path.exists(server.path))
        self.assertFalse(self.ended(s))
        s.close()
        self.assertEqual(server.process.wait(PATIENCE), 0)
        self.assertNotIn("time is up", server.log())

    def test_clients_that_do_not_finish_are_ended(self):
        server = Server(self, "--grace", "1")
        s = self.client(server)
        until(lambda: len(server.workers()) == 1)
        self.assertEqual(server.stop(), 0)
        until(lambda: self.ended(s))
        self.assertIn("time is up", server.log())

    def test_a_second_signal_ends_it_at_once(self):
        server = Server(self)
        self.client(server)
        until(lambda: len(server.workers()) == 1)
        server.process.send_signal(signal.SIGTERM)
        server.until_logged("stopping")
        self.assertEqual(server.stop(signal.SIGINT), 0)

    def test_a_worker_that_cannot_be_ended_gently_is_killed(self):
        server = Server(self)
        self.client(server)
        until(lambda: len(server.workers()) == 1)
        worker = server.workers()[0]
        os.kill(worker, signal.SIGSTOP)
        server.process.send_signal(signal.SIGTERM)
        server.until_logged("stopping")
        self.assertEqual(server.stop(), 0)
        self.assertFalse(self.alive(worker))

    def test_sighup_without_files_changes_nothing(self):
        server = Server(self)
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.status()["pid"], server.process.pid)


if __name__ == "__main__":
    unittest.main()
