#!/usr/bin/env python3
"""Programs that leave device memory to programs of higher priority, and come back (swap=on).

    HED_BUILD=build/dev HED_WORK=.../e2e_swap_work swap.py [Case.test...]

All programs use one server, whose device has 640 MiB.
"""

import json
import shutil
import subprocess
import tempfile
import unittest

from case import BUILD, HEDDLE, PATIENCE, WORK, SchedCase, environment, forget, listens, until

DEVICE = {"base": "h200", "name": "Small", "memory": str(640 << 20)}


class Swap(SchedCase):
    scope_begins = "swap"

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="hed")
        with open(f"{self.folder}/small.json", "w", encoding="utf-8") as f:
            json.dump(DEVICE, f)
        self.address = f"shm:{self.folder}/s"
        self.log = f"{self.folder}/log"  # of the server
        self.start_server()

    def start_server(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.server = subprocess.Popen(
                [f"{BUILD}/lib/heddle/heddled", "--listen", self.address, "--gpu",
                 f"cpu:{self.folder}/small.json"],
                env={**environment(), "HEDDLE_CACHE": f"{self.folder}/cache"},
                stdout=subprocess.DEVNULL, stderr=log)
        until(lambda: listens(self.address), "a server that listens")

    def tearDown(self):
        try:
            super().tearDown()
        finally:
            self.server.terminate()
            self.server.wait(PATIENCE)
            shutil.rmtree(self.folder, ignore_errors=True)

    # ---- programs ----

    def start(self, settings, stderr=None, **env):
        p = subprocess.Popen(
            [HEDDLE, "run", "--gpu", self.address, "--sched", f"scope={self.scope},{settings}",
             "--log", "warn,sched=info,remote=info", "--", WORK],
            env={**environment(), **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=stderr, text=True)
        self.programs.append(p)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def say(self, p, line):
        self.assertIsNone(p.poll())
        p.stdin.write(line + "\n")
        p.stdin.flush()

    def hear(self, p):
        return p.stdout.readline().strip()

    def ask(self, p, line):
        self.say(p, line)
        return self.hear(p)

    def end(self, p):
        p.stdin.close()
        self.assertEqual(p.wait(PATIENCE), 0)

    def clients(self):
        r = self.heddle("list", "--json", "--scope", self.scope)
        self.assertEqual(r.returncode, 0, r.stderr)
        return {c["pid"]: c for g in json.loads(r.stdout)["gpus"] for c in g["clients"]}

    def client(self, p):
        return self.clients()[p.pid]

    def until_back(self, p):
        until(lambda: self.client(p)["state"] != "out", self.clients)

    # ---- tests ----

    def test_the_lower_leaves_and_comes_back(self):
        low, high = self.start("prio=low,swap=on"), self.start("prio=high,swap=on")
        self.assertEqual(self.ask(low, "take 400"), "took 0")
        self.assertEqual(self.ask(low, "mix 3"), "mixed")
        self.assertEqual(self.ask(high, "take 400"), "took 0")
        self.assertEqual(self.client(low)["state"], "out")
        self.say(low, "mix 2")
        self.assertEqual(self.ask(high, "mix 3"), "mixed")
        self.assertEqual(self.ask(high, "check"), "right")
        self.end(high)
        self.assertEqual(self.hear(low), "mixed")
        self.assertEqual(self.ask(low, "check"), "right")
        c = self.client(low)
        self.assertNotEqual(c["state"], "out")
        self.assertTrue(c["swap"])
        self.assertEqual(c["outs"], 1)
        self.assertGreater(c["out_ns"], 0)
        self.assertGreater(c["copy_ns"], 0)
        self.assertIn("out of device memory 1 time for ", self.heddle("list", "--scope",
                                                                       self.scope).stdout)
        self.end(low)

    def test_in_the_middle_of_its_work(self):
        low, high = self.start("prio=low,swap=on"), self.start("prio=normal,swap=on")
        self.assertEqual(self.ask(low, "take 400"), "took 0")
        self.say(low, "mix 300")
        for _ in range(2):
            self.assertEqual(self.ask(high, "take 300"), "took 0")
            self.assertEqual(self.ask(high, "mix 5"), "mixed")
            self.assertEqual(self.ask(high, "check"), "right")
            self.end(high)
            self.until_back(low)
            high = self.start("prio=normal,swap=on")
        self.end(high)
        self.assertEqual(self.hear(low), "mixed")
        self.assertEqual(self.ask(low, "check"), "right")
        self.end(low)

    def refused(self, first, second):
        """The second program gets no memory, and the first one keeps its own."""
        one, two = self.start(first), self.start(second)
        self.assertEqual(self.ask(one, "take 400"), "took 0")
        self.assertEqual(self.ask(two, "take 400"), "took 2")
        self.assertEqual(self.client(one)["outs"], 0)
        self.end(one)
        self.end(two)

    def test_equals_stay(self):
        self.refused("prio=normal,swap=on", "prio=normal,swap=on")

    def test_higher_ones_stay(self):
        self.refused("prio=high,swap=on", "prio=low,swap=on")

    def test_who_does_not_say_so_stays(self):
        self.refused("prio=low", "prio=high,swap=on")

    def test_who_does_not_say_so_sends_nobody_out(self):
        self.refused("prio=low,swap=on", "prio=high")

    def test_set_while_they_run(self):
        low, high = self.start("prio=low"), self.start("prio=high,swap=on")
        self.assertEqual(self.ask(low, "take 400"), "took 0")
        self.assertEqual(self.ask(high, "take 400"), "took 2")
        r = self.heddle("set", "--pid", str(low.pid), "swap=on", "--scope", self.scope)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(self.ask(high, "take 400"), "took 0")
        self.end(high)
        self.assertEqual(self.ask(low, "check"), "right")
        self.end(low)

    def test_what_does_not_fit_sends_nobody_out(self):
        low, high = self.start("prio=low,swap=on"), self.start("prio=high,swap=on")
        self.assertEqual(self.ask(low, "take 400"), "took 0")
        self.assertEqual(self.ask(high, "take 2000"), "took 2")
        self.assertEqual(self.client(low)["outs"], 0)
        self.end(low)
        self.end(high)

    def test_the_higher_is_killed(self):
        low, high = self.start("prio=low,swap=on"), self.start("prio=high,swap=on")
        self.assertEqual(self.ask(low, "take 400"), "took 0")
        self.assertEqual(self.ask(high, "take 400"), "took 0")
        high.kill()
        self.assertEqual(self.ask(low, "mix 2"), "mixed")
        self.assertEqual(self.ask(low, "check"), "right")
        self.assertEqual(self.client(low)["outs"], 1)
        self.end(low)

    def test_the_lower_is_killed_while_it_is_out(self):
        low, high = self.start("prio=low,swap=on"), self.start("prio=high,swap=on")
        self.assertEqual(self.ask(low, "take 400"), "took 0")
        self.assertEqual(self.ask(high, "take 400"), "took 0")
        low.kill()
        low.wait(PATIENCE)
        self.assertEqual(self.ask(high, "mix 2"), "mixed")
        self.assertEqual(self.ask(high, "check"), "right")
        self.end(high)

    def test_three(self):
        low = self.start("prio=low,swap=on")
        normal = self.start("prio=normal,swap=on")
        high = self.start("prio=high,swap=on")
        self.assertEqual(self.ask(low, "take 200"), "took 0")
        self.assertEqual(self.ask(normal, "take 300"), "took 0")
        self.assertEqual(self.ask(high, "take 600"), "took 0")
        self.assertEqual([self.client(p)["state"] for p in (low, normal)], ["out", "out"])
        self.say(low, "mix 3")
        self.say(normal, "mix 4")
        self.assertEqual(self.ask(high, "check"), "right")
        self.end(high)
        for p in (low, normal):
            self.assertEqual(self.hear(p), "mixed")
            self.assertEqual(self.ask(p, "check"), "right")
        self.end(low)
        self.end(normal)

    def test_the_busy_are_skipped(self):
        busy = self.start("prio=low,swap=on")
        normal = self.start("prio=normal,swap=on")
        high = self.start("prio=high,swap=on")
        self.assertEqual(self.ask(busy, "take 200"), "took 0")
        self.assertEqual(self.ask(normal, "take 300"), "took 0")
        self.assertEqual(self.ask(busy, "hold"), "holds")
        self.assertEqual(self.ask(high, "take 350"), "took 0")
        self.assertEqual(self.client(busy)["outs"], 0)
        self.assertEqual(self.client(normal)["outs"], 1)
        self.assertEqual(self.ask(busy, "let"), "let")
        self.end(high)
        for p in (busy, normal):
            self.assertEqual(self.ask(p, "mix 1"), "mixed")
            self.assertEqual(self.ask(p, "check"), "right")
        self.end(busy)
        self.end(normal)

    def until_it_says(self, path, text, times=1):
        """Waits until a log has some words that often."""
        def said():
            with open(path, encoding="utf-8") as f:
                return f.read().count(text)
        until(lambda: said() >= times, f"{times} times '{text}' in {path}")

    def send_out(self, **env):
        """A program that is out, its log, and the one that has its memory."""
        said = f"{self.folder}/low.log"
        with open(said, "w", encoding="utf-8") as f:
            low = self.start("prio=low,swap=on", stderr=f, **env)
        high = self.start("prio=high,swap=on")
        self.assertEqual(self.ask(low, "take 400"), "took 0")
        self.assertEqual(self.ask(low, "mix 3"), "mixed")
        self.assertEqual(self.ask(high, "take 400"), "took 0")
        self.assertEqual(self.client(low)["state"], "out")
        return low, said, high

    def test_the_server_ends_while_it_is_out(self):
        low, said, high = self.send_out(HEDDLE_SERVER_TIMEOUT="1000")
        self.say(low, "mix 2")
        self.server.kill()
        self.server.wait(PATIENCE)
        high.kill()
        # Its call fails, and it ends: CUDA_ERROR_DEVICE_UNAVAILABLE.
        self.assertNotEqual(low.wait(PATIENCE), 0)
        with open(said, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(text.count("the GPU's server is lost: "), 1, text)
        self.assertIn("the program was out of its memory, and could not come back", text)

    def test_another_server_takes_its_place_while_it_is_out(self):
        low, said, high = self.send_out(HEDDLE_SERVER_TIMEOUT="600000")
        self.say(low, "mix 2")
        self.server.kill()
        self.server.wait(PATIENCE)
        high.kill()
        self.until_it_says(said, "stays out of device memory")
        self.start_server()
        self.assertEqual(self.hear(low), "mixed")
        self.assertEqual(self.ask(low, "check"), "right")
        self.end(low)

    def test_attempts_to_return_do_not_fill_the_log(self):
        low, said, high = self.send_out()
        self.until_it_says(said, "stays out of device memory", 3)
        self.end(high)
        self.assertEqual(self.ask(low, "check"), "right")
        self.until_it_says(self.log, "comes back into device memory")
        self.end(low)
        self.until_it_says(self.log, " ended: ", 3)
        with open(self.log, encoding="utf-8") as f:
            text = f.read()
        # Two programs; one has had two workers.
        self.assertEqual(text.count(" begins"), 2, text)
        self.assertEqual(text.count(" ended: "), 3, text)

    def test_a_program_that_cannot_be_reached(self):
        low, high = self.start("prio=low,swap=on"), self.start("prio=high,swap=on")
        self.assertEqual(self.ask(low, "take 400"), "took 0")
        forget(f"snap-{low.pid}")
        self.assertEqual(self.ask(high, "take 400"), "took 2")
        self.assertEqual(self.ask(low, "check"), "right")
        self.end(low)
        self.end(high)


if __name__ == "__main__":
    unittest.main()
