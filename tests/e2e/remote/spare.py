#!/usr/bin/env python3
"""`heddle serve --spare`: workers that are ready before their clients come.

    spare.py [Case.test...]     HED_BUILD: the build; HED_SPARE: the program e2e_remote_spare
                                HED_DEBUG_BUILD: 1 if spares can be made to fail
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from serve_case import NOBODY, ROOT, Case, Server, clean_environment, preface, until

PROGRAM = os.environ.get("HED_SPARE", "")
DEBUG = os.environ.get("HED_DEBUG_BUILD") == "1"
MODES = ("primary", "flags", "created", "reset")


def process_name(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
        return f.read().strip()


def is_there(pid):
    return os.path.exists(f"/proc/{pid}")


def is_zombie(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0] == "Z"


class Spares(Case):
    def server(self, *options, name="a", spare=1, gpu="cpu:h200", **more):
        os.makedirs(f"{self.dir}/{name}", exist_ok=True)
        os.chmod(self.dir, 0o711)
        server = Server(self, "--spare", str(spare), "--log", "warn,server=debug", *options,
                        listen=[f"shm:{self.dir}/{name}/s"], gpu=gpu, **more)
        server.path = f"{self.dir}/{name}/s"
        return server

    def ready(self, server, count=1):
        """The process numbers of the spares, when so many are ready."""
        def found():
            return [s["worker"] for s in server.status()["spares"] if s["ready"]]
        until(lambda: len(found()) == count, server.log)
        return found()

    def begin(self, server, mode, **options):
        more = options.pop("more", {})
        return subprocess.Popen(
            [PROGRAM, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=clean_environment(HEDDLE_GPU=f"shm:{server.path}",
                                  HED_LIBCUDA=os.environ["HED_LIBCUDA"], **more), **options)

    def say(self, server, mode, **options):
        """What a program says."""
        p = self.begin(server, mode, **options)
        text = p.communicate()[0]
        self.assertEqual(p.returncode, 0, text + server.log())
        return text

    def hold(self, server, **options):
        p = self.begin(server, "hold", **options)
        while (line := p.stdout.readline()) != "ready\n":
            self.assertTrue(line, server.log())
        self.addCleanup(self.let_go, p)
        return p

    def let_go(self, p):
        if p.poll() is None:
            p.communicate("\n")
        p.stdin.close()
        p.stdout.close()


class Clients(Spares):
    def test_the_first_client_gets_the_spare(self):
        server = self.server()
        spare, = self.ready(server)
        self.assertEqual(process_name(spare), "heddled-spare")
        self.assertEqual(server.status()["clients"], [])
        self.hold(server)
        status = server.status()
        self.assertEqual([c["worker"] for c in status["clients"]], [spare])
        self.assertEqual(process_name(spare), "heddled-worker")
        self.assertEqual(status["clients_ever"], 1)
        # Another takes its place.
        other, = self.ready(server)
        self.assertNotEqual(other, spare)

    def test_programs_see_no_difference(self):
        for gpu, options, modes in (
                ("cpu:h200", (), MODES), ("cpu:h200", ("--memory", "1G"), MODES),
                ("cpu:h100x2", ("--sandbox", "off"), (*MODES, "second"))):
            with self.subTest(gpu=gpu, options=options):
                plain = self.server(*options, name="plain", spare=0, gpu=gpu)
                spare = self.server(*options, name="spare", gpu=gpu)
                for mode in modes:
                    self.ready(spare)
                    before = spare.log().count("debug server: spare worker")
                    self.assertEqual(self.say(plain, mode), self.say(spare, mode), mode)
                    self.assertIn(" for process ", spare.log().split("debug server: spare worker")
                                  [before + 1], mode)
                for s in (plain, spare):
                    self.assertEqual(s.stop(), 0)

    def test_many_clients_at_once(self):
        server = self.server(spare=3)
        spares = self.ready(server, 3)
        programs = [self.begin(server, "hold") for _ in range(8)]
        for p in programs:
            while (line := p.stdout.readline()) != "ready\n":
                self.assertTrue(line, server.log())
        workers = server.workers()
        self.assertEqual(len(set(workers)), 8)
        self.assertLessEqual(set(spares), set(workers))
        for p in programs:
            p.communicate("\n")
            self.assertEqual(p.returncode, 0)
        self.ready(server, 3)

    def test_spares_are_no_clients(self):
        server = self.server("--clients", "2", spare=4)
        # No more than clients may come.
        self.ready(server, 2)
        self.hold(server)
        self.ready(server, 1)
        self.hold(server)
        until(lambda: server.status()["spares"] == [])
        self.assertEqual(len(server.workers()), 2)
        p = self.begin(server, "primary", stderr=subprocess.PIPE)
        self.assertNotEqual(p.wait(), 0)
        p.communicate()
        server.until_logged("already has 2 clients")

    def test_a_channel_does_not_reach_a_spare(self):
        server = self.server()
        spare, = self.ready(server)
        with server.connect(preface(2)) as s:
            self.assertEqual(s.recv(1), b"")
        r = self.heddle("serve", "--evict", str(spare), "--listen", f"shm:{server.path}")
        self.assertNotEqual(r.returncode, 0)
        self.assertEqual(self.ready(server), [spare])

    def test_nonsense_takes_no_spare(self):
        server = self.server()
        spare, = self.ready(server)
        with server.connect(preface(1) + bytes(584)) as s:
            while s.recv(4096):
                pass
        self.assertEqual(self.ready(server), [spare])

    def test_a_client_of_other_devices_gets_a_worker_of_its_own(self):
        server = self.server(gpu="cpu:h100x2")
        spare, = self.ready(server)
        self.say(server, "primary", more={"CUDA_VISIBLE_DEVICES": "1"})
        self.assertEqual(self.ready(server), [spare])
        self.say(server, "second", more={"CUDA_VISIBLE_DEVICES": "0,1"})
        server.until_logged(f"spare worker {spare} for process")

    def test_status_shows_spares_apart(self):
        server = self.server()
        self.ready(server)
        where = ("--listen", f"shm:{server.path}")
        self.assertIn("1 of 1 are ready (--spare)", self.heddle("serve", "--status", *where).stdout)
        self.assertEqual(self.heddle("serve", "--list", *where).stdout.count("\n"), 1)
        status = json.loads(self.heddle("serve", "--status", "--json", *where).stdout)
        self.assertEqual(status["limits"]["spare"], 1)
        self.assertEqual([d["leased_bytes"] for d in status["devices"]], [0])

    def test_a_program_goes_from_a_new_worker_to_a_spare_and_back(self):
        server = self.server()
        programs = []
        # Whoever comes right after another gets a new worker.
        until(lambda: programs.append(self.hold(server)) or
              f" for process {programs[-1].pid} " in server.log().partition("new worker")[2])
        program = programs.pop()
        self.assertIn(f" for process {program.pid} of", re.findall("new worker.*", server.log())[0])
        for p in programs:
            self.let_go(p)
        for _ in range(2):
            r = self.heddle("snap", "out", str(program.pid))
            self.assertEqual(r.returncode, 0, r.stderr)
            spares = self.ready(server)
            r = self.heddle("snap", "in", str(program.pid))
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn(server.workers()[0], spares)
        self.assertEqual(program.communicate("\n")[0], "good\n")
        self.assertEqual(program.returncode, 0)

    def test_sessions_are_timed_from_their_client(self):
        server = self.server()
        self.ready(server)
        until(lambda: server.status()["spares"][0]["seconds"] > 0.5)
        began = time.monotonic()
        self.hold(server)
        client, = server.status()["clients"]
        self.assertLess(client["seconds"], time.monotonic() - began)


class Sandboxes(Spares):
    @unittest.skipUnless(ROOT, "only root's server has clients of other users with folders")
    def test_a_spare_is_for_one_user(self):
        if subprocess.run(["test", "-x", PROGRAM, "-a", "-r", os.environ["HED_LIBCUDA"]],
                          user=NOBODY, group=NOBODY, extra_groups=[], check=False).returncode:
            self.skipTest("other users cannot run the program")
        server = self.server("--allow-uid", "all", "--mode", "0666")
        first, = self.ready(server)
        self.assertEqual(server.status()["spares"][0]["owner"], "uid-0")
        os.chmod(f"{self.dir}/a", 0o711)
        p = self.begin(server, "primary", user=NOBODY, group=NOBODY, extra_groups=[])
        p.communicate()
        self.assertEqual(p.returncode, 0, server.log())
        # The spare was for another user: it is replaced by one for this user.
        until(lambda: [s["owner"] for s in server.status()["spares"] if s["ready"]]
              == [f"uid-{NOBODY}"], server.log)
        second, = self.ready(server)
        self.assertFalse(is_there(first))
        p = self.begin(server, "primary", user=NOBODY, group=NOBODY, extra_groups=[])
        p.communicate()
        self.assertEqual(p.returncode, 0, server.log())
        server.until_logged(f"spare worker {second} for process")

    def test_it_is_confined_before_its_client_comes(self):
        server = self.server()
        spare, = self.ready(server)
        if "sandbox: off" in server.log():
            self.skipTest("there is no sandbox here")
        with open(f"/proc/{spare}/status", encoding="utf-8") as f:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        self.assertEqual(fields["Seccomp"], "2")
        self.assertEqual(fields["NoNewPrivs"], "1")
        self.assertEqual(int(fields["CapEff"], 16), 0)
        worker = server.status()["spares"][0]["worker"]
        self.hold(server)
        client, = server.status()["clients"]
        self.assertEqual(client["worker"], worker)
        self.assertEqual(int(fields["Uid"].split()[0]), client["worker_uid"])

    def test_layers_that_share_have_no_spares(self):
        server = self.server(gpu="cpu:h200", env=clean_environment(
            HEDDLE_LAYERS="trace", HEDDLE_TRACE=f"{self.dir}/trace"))
        server.until_logged("--spare has no effect")
        self.assertEqual(server.status()["spares"], [])
        self.say(server, "primary")


class Ends(Spares):
    def test_a_killed_spare_is_replaced(self):
        server = self.server()
        spare, = self.ready(server)
        os.kill(spare, signal.SIGKILL)
        server.until_logged(f"spare worker {spare} was killed by signal 9; the next is")
        self.assertNotEqual(self.ready(server), [spare])
        self.say(server, "primary")

    def test_a_client_never_meets_a_dead_spare(self):
        server = self.server()
        for _ in range(5):
            spare, = self.ready(server)
            # The listener cannot know it yet.
            os.kill(server.process.pid, signal.SIGSTOP)
            os.kill(spare, signal.SIGKILL)
            until(lambda: is_zombie(spare))
            p = self.begin(server, "primary")
            os.kill(server.process.pid, signal.SIGCONT)
            p.communicate()
            self.assertEqual(p.returncode, 0, server.log())

    @unittest.skipUnless(DEBUG, "only debug builds can be told to fail")
    def test_spares_that_fail_are_started_less_and_less_often(self):
        server = self.server("--sandbox", "off", env=clean_environment(HED_TEST_SPARE="fail"))
        server.until_logged("before it was ready; the next is started in 8 s")
        for seconds in (2, 4, 8):
            self.assertEqual(server.log().count(f"next is started in {seconds} s"), 1)
        self.assertEqual(server.log().count("ended with status 3 before"), 3)
        self.say(server, "primary")

    def test_a_reload_replaces_spares(self):
        path = f"{self.dir}/options"
        with open(path, "w", encoding="utf-8") as f:
            f.write("memory = 1G\n")
        server = self.server("--config", path)
        spare, = self.ready(server)
        with open(path, "w", encoding="utf-8") as f:
            f.write("memory = 2G\n")
        server.process.send_signal(signal.SIGHUP)
        server.until_logged("SIGHUP: changed")
        until(lambda: not is_there(spare))
        self.ready(server)
        self.assertIn(f"{2 << 30} bytes", self.say(server, "primary"))

    def test_spares_end_with_the_server(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            server = self.server(name=str(int(sig)), spare=2)
            spares = self.ready(server, 2)
            server.stop(sig)
            until(lambda: not any(map(is_there, spares)))

    def test_a_stopping_server_waits_for_no_spare(self):
        server = self.server()
        self.ready(server)
        program = self.hold(server)
        self.ready(server)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: "is gone" in server.log(), server.log)
        self.assertIsNone(server.process.poll())
        program.communicate("\n")
        self.assertEqual(server.process.wait(), 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
