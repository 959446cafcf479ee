#!/usr/bin/env python3
"""Programs that share a GPU, and `heddle sched`.

    HED_BUILD=build/dev HED_WORK=.../e2e_sched_work [HED_SCHED_GPU=cpu] sched_cli.py [Case.test...]
"""

import glob
import json
import os
import signal
import subprocess
import time
import unittest

BUILD = os.environ.get("HED_BUILD", "")
HEDDLE = os.path.join(BUILD, "bin", "heddle")
WORK = os.environ.get("HED_WORK", "")
GPU = os.environ.get("HED_SCHED_GPU", "null")
LAUNCHES = {"null": "64", "cpu": "8"}[GPU.split(":")[0]]


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    env["HEDDLE_CONFIG"] = ""
    env["HEDDLE_CACHE_SIZE"] = "0"
    env["HEDDLE_CPU_THREADS"] = "1"
    return env


class Case(unittest.TestCase):
    def setUp(self):
        self.room = f"e2e{os.getpid()}.{self._testMethodName[-12:].replace('_', '-')}"
        self.programs = []

    def tearDown(self):
        for p in self.programs:
            if p.poll() is None:
                p.kill()
            p.wait(20)
            p.stdout.close()
            p.stderr.close()
        for path in glob.glob(f"/dev/shm/heddle-{os.geteuid()}-sched-{self.room}-*"):
            os.unlink(path)

    def start(self, wishes, *words, ready=True):
        spec = f"room={self.room}" + ("," + wishes if wishes else "")
        p = subprocess.Popen([HEDDLE, "run", "--gpu", GPU, "--sched", spec, "--log", "warn", "--",
                              WORK, *words], env=environment(), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.programs.append(p)
        if ready:
            self.assertEqual(p.stdout.readline(), "ready\n", "" if p.poll() is None
                             else p.stderr.read())
        return p

    def end(self, p):
        out, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, 0, err)
        return int(out.split()[-1])

    def heddle(self, *words):
        return subprocess.run([HEDDLE, "sched", *words], env=environment(), capture_output=True,
                              text=True, timeout=60)

    def sched(self, *words):
        r = self.heddle(*words, "--room", self.room)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def clients(self):
        gpus = json.loads(self.sched("list", "--json"))["gpus"]
        return {c["pid"]: c for g in gpus for c in g["clients"]}

    def calls(self, p):
        return self.clients()[p.pid]["calls"]

    def until(self, what, seconds=20):
        end = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), end, "it does not come")
            time.sleep(0.02)


class Together(Case):
    def test_under_every_policy(self):
        for policy in ("priority", "fair", "fifo", "deadline", "slice", "batch"):
            with self.subTest(policy=policy):
                both = [self.start(f"policy={policy},slice_us=2000,prio={prio}", "0.7", "0",
                                   LAUNCHES, ready=False) for prio in ("normal", "low")]
                for p in both:
                    self.assertGreater(self.end(p), 0)

    def test_one_alone(self):
        self.assertGreater(self.end(self.start("", "0.3", "0", LAUNCHES)), 0)

    def test_three_at_once(self):
        three = [self.start("policy=fair", "0.7", "0", LAUNCHES, ready=False) for _ in range(3)]
        for p in three:
            self.assertGreater(self.end(p), 0)

    @unittest.skipIf(GPU == "null", "its work takes no time")
    def test_shares(self):
        a = self.start("policy=fair,share=300,slice_us=3000", "4", "0", LAUNCHES)
        b = self.start("share=100", "4", "0", LAUNCHES)
        time.sleep(0.5)
        before = self.clients()
        time.sleep(3)
        after = self.clients()
        used = [after[p.pid]["gpu_ns"] - before[p.pid]["gpu_ns"] for p in (a, b)]
        self.assertGreater(used[0], 1.8 * used[1], used)  # these machines are noisy
        self.assertLess(used[0], 5 * used[1], used)
        self.end(a)
        self.end(b)

    @unittest.skipIf(GPU == "null", "its work takes no time")
    def test_the_low_leave_the_high_alone(self):
        low = self.start("prio=low", "3", "0", LAUNCHES)
        high = self.start("prio=high", "2", "0", LAUNCHES)
        time.sleep(1)
        self.assertEqual(self.clients()[low.pid]["state"], "waiting")
        self.end(high)
        self.end(low)


class Deaths(Case):
    def test_kill_9_of_who_holds_others(self):
        low = self.start("prio=low", "60", "0", LAUNCHES)
        high = self.start("prio=high", "60", "0", LAUNCHES)
        time.sleep(0.2)
        high.send_signal(signal.SIGKILL)
        high.wait(20)
        before = self.calls(low)
        self.until(lambda: self.calls(low) > before + 3)
        self.assertNotIn(high.pid, self.clients())

    def test_stop_of_who_holds_others(self):
        low = self.start("prio=low", "60", "0", LAUNCHES)
        high = self.start("prio=high", "60", "0", LAUNCHES)
        time.sleep(0.2)
        high.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        before = self.calls(low)
        self.until(lambda: self.calls(low) > before + 3)
        high.send_signal(signal.SIGCONT)
        before = self.calls(high)
        self.until(lambda: self.calls(high) > before + 3)

    def test_kill_9_of_many(self):
        some = [self.start("policy=slice,slice_us=1000", "60", "0", LAUNCHES) for _ in range(4)]
        for p in some[1:]:
            time.sleep(0.1)
            p.kill()
            p.wait(20)
        before = self.calls(some[0])
        self.until(lambda: self.calls(some[0]) > before + 3)

    @unittest.skipIf(GPU != "null", "too much for a test machine")
    def test_64_processes(self):
        start = time.monotonic()
        many = [self.start("policy=slice,slice_us=100", "0.01", "0", "4", ready=False)
                for _ in range(64)]
        for p in many:
            self.assertGreater(self.end(p), 0)
        self.assertLess(time.monotonic() - start, 60)  # of a machine that has other work


class Words(Case):
    def test_list(self):
        a = self.start("prio=high,share=7,group=g", "60", "1000", "4")
        b = self.start("prio=low", "60", "1000", "4")
        text = self.sched("list")
        self.assertIn("policy priority", text)
        self.assertIn(str(a.pid), text)
        self.assertIn(str(b.pid), text)
        client = self.clients()[a.pid]
        self.assertEqual(client["priority"], "high")
        self.assertEqual(client["share"], 7)
        self.assertEqual(client["group"], "g")

    def test_nobody(self):
        self.assertIn("No program shares a GPU", self.sched("list"))
        self.assertEqual(json.loads(self.sched("list", "--json")), {"gpus": []})
        self.assertEqual(self.heddle("pause", "--room", self.room).returncode, 1)

    def test_pause_and_resume(self):
        a = self.start("", "60", "0", "4")
        for words in ((), ("--pid", str(a.pid))):
            self.sched("pause", *words)
            self.until(lambda: self.clients()[a.pid]["waiting"] == 1)
            before = self.calls(a)
            time.sleep(0.2)
            self.assertEqual(self.calls(a), before)
            self.assertEqual(self.clients()[a.pid]["state"], "paused")
            self.sched("release", *words)
            self.until(lambda: self.calls(a) > before)
            self.until(lambda: self.clients()[a.pid]["waiting"] == 1)
            self.sched("resume", *words)
            before = self.calls(a)
            self.until(lambda: self.calls(a) > before + 10)
            self.assertGreater(self.clients()[a.pid]["waited_ns"], 100e6)

    def test_set(self):
        a = self.start("", "60", "100", "4")
        self.sched("set", "policy=slice,slice_us=777,cap_us=300")
        self.sched("set", "--pid", str(a.pid), "prio=low,share=9,deadline_us=5000")
        gpu = json.loads(self.sched("list", "--json", "--gpu", "0"))["gpus"][0]
        self.assertEqual((gpu["policy"], gpu["slice_us"], gpu["cap_us"]), ("slice", 777, 300))
        client = gpu["clients"][0]
        self.assertEqual((client["priority"], client["share"], client["deadline_us"]),
                         ("low", 9, 5000))
        self.assertEqual(json.loads(self.sched("list", "--json", "--gpu", "5")), {"gpus": []})
        uuid = gpu["uuid"]
        dashed = "-".join((uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:]))
        self.assertEqual(len(json.loads(
            self.sched("list", "--json", "--gpu", "GPU-" + dashed))["gpus"]), 1)

    def test_policies_change_while_programs_run(self):
        both = [self.start("", "60", "0", LAUNCHES) for _ in range(2)]
        for policy in ("fair", "batch", "deadline", "slice", "fifo", "priority") * 2:
            self.sched("set", f"policy={policy},slice_us=1000")
            before = [self.calls(p) for p in both]
            if policy != "fifo":  # there the second has its turn after a long time
                self.until(lambda: all(self.calls(p) > b for p, b in zip(both, before)))

    def test_wrong_words(self):
        for words in ((), ("listen",), ("set",), ("set", "policy=none"), ("set", "prio=low"),
                      ("pause", "x"), ("list", "--pid", "x"), ("set", "share=1", "more"),
                      ("set", "--pid", "1", "group=x"), ("list", "--none")):
            r = self.heddle(*words)
            self.assertEqual(r.returncode, 2, words)
            self.assertTrue(r.stderr.startswith("heddle: "), r.stderr)
        self.assertEqual(self.heddle("--help").returncode, 0)

    def test_run_refuses_bad_wishes(self):
        r = subprocess.run([HEDDLE, "run", "--gpu", GPU, "--sched", "prio=top", "--", WORK],
                           env=environment(), capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 2)
        self.assertIn("is none of high, normal, low", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
