#!/usr/bin/env python3
"""Programs that share a GPU, and `heddle sched`.

    HED_BUILD=build/dev HED_WORK=.../e2e_sched_work [HED_SCHED_GPU=cpu] gate.py [Case.test...]
"""

import fcntl
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from case import (
    FOR_EVER, GPU, HEDDLE, LAUNCHES, PATIENCE, WORK, SchedCase, environment, folders, meetings,
    states, until)


class Case(SchedCase):
    def start(self, settings, *words, ready=True, program=WORK):
        return self.launch(settings, [program, *words], ready)

    def end(self, p):
        """Asks the program to end, and returns how many launches it has made."""
        p.terminate()
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, err)
        return int(out.split()[-1])

    def files(self):
        """The files by which the programs of this test meet."""
        return meetings(f"sched-{self.scope}-*")

    def sched(self, *words):
        r = self.heddle(*words, "--scope", self.scope)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def clients(self):
        gpus = json.loads(self.sched("list", "--json"))["gpus"]
        return {c["pid"]: c for g in gpus for c in g["clients"]}

    def calls(self, p):
        return self.clients()[p.pid]["calls"]

    def until_it_works(self, p, calls=4):
        """Waits until some more of its calls have gone on."""
        before = self.calls(p)
        until(lambda: self.calls(p) >= before + calls, self.clients)

    def until_it_waits(self, p):
        until(lambda: self.clients()[p.pid]["state"] == "waiting", self.clients)

    def policies(self):
        r = self.heddle("policies")
        self.assertEqual(r.returncode, 0, r.stderr)
        return [line.split()[0] for line in r.stdout.splitlines()]


class Together(Case):
    def test_under_every_policy(self):
        for policy in self.policies():
            with self.subTest(policy=policy):
                both = [self.start(f"policy={policy},slice_us=2000,prio={prio}", FOR_EVER, "0",
                                   LAUNCHES) for prio in ("normal", "low")]
                # Under some policies, the second gets nothing before the first has ended.
                for p in both:
                    self.until_it_works(p)
                    self.assertGreater(self.end(p), 0)

    def test_one_program_alone_is_not_held(self):
        p = self.start("", FOR_EVER, "0", LAUNCHES)
        self.until_it_works(p)
        self.assertGreater(self.end(p), 0)

    def test_three_at_once(self):
        three = [self.start("policy=fair", FOR_EVER, "0", LAUNCHES) for _ in range(3)]
        for p in three:
            self.until_it_works(p)
        for p in three:
            self.assertGreater(self.end(p), 0)

    @unittest.skipIf(GPU == "null", "its work takes no time")
    def test_shares(self):
        a = self.start("policy=fair,share=300,slice_us=3000", FOR_EVER, "0", LAUNCHES)
        b = self.start("share=100", FOR_EVER, "0", LAUNCHES)
        self.until_it_works(a)
        self.until_it_works(b)
        before = self.clients()

        def divided():
            """They used the GPU in about the proportion three to one."""
            after = self.clients()
            used = [after[p.pid]["gpu_ns"] - before[p.pid]["gpu_ns"] for p in (a, b)]
            return sum(used) > 1e9 and 1.8 * used[1] < used[0] < 5 * used[1]

        until(divided, self.clients)
        self.end(a)
        self.end(b)

    @unittest.skipIf(GPU == "null", "its work takes no time")
    def test_low_priority_leaves_high_priority_alone(self):
        low = self.start("prio=low", FOR_EVER, "0", LAUNCHES)
        high = self.start("prio=high", FOR_EVER, "0", LAUNCHES)
        self.until_it_waits(low)
        self.end(high)
        self.until_it_works(low)
        self.end(low)


class Deaths(Case):
    def test_kill_9_of_a_program_that_holds_others(self):
        low = self.start("prio=low", FOR_EVER, "0", LAUNCHES)
        high = self.start("prio=high", FOR_EVER, "0", LAUNCHES)
        self.until_it_works(high)
        high.send_signal(signal.SIGKILL)
        high.wait(PATIENCE)
        self.until_it_works(low)
        self.assertNotIn(high.pid, self.clients())

    def test_sigstop_of_a_program_that_holds_others(self):
        low = self.start("prio=low", FOR_EVER, "0", LAUNCHES)
        high = self.start("prio=high", FOR_EVER, "0", LAUNCHES)
        self.until_it_works(high)
        high.send_signal(signal.SIGSTOP)
        until(lambda: states(high.pid) == {"T"})
        self.until_it_works(low)
        high.send_signal(signal.SIGCONT)
        self.until_it_works(high)

    def test_kill_9_of_many(self):
        some = [self.start("policy=slice,slice_us=1000", FOR_EVER, "0", LAUNCHES) for _ in range(4)]
        for p in some[1:]:
            self.until_it_works(p)
            p.kill()
            p.wait(PATIENCE)
        self.until_it_works(some[0])

    @unittest.skipIf(GPU != "null", "too much for a test machine")
    def test_64_processes(self):
        many = [self.start("policy=slice,slice_us=100", "0.01", "0", "4", ready=False)
                for _ in range(64)]
        for p in many:
            out, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 0, err)
            self.assertGreater(int(out.split()[-1]), 0)
        self.assertEqual(self.files(), [])

    def test_the_last_program_removes_the_file(self):
        a = self.start("", FOR_EVER, "1000", "4")
        b = self.start("", FOR_EVER, "1000", "4")
        self.end(a)
        self.assertEqual(len(self.files()), 1)
        b.kill()
        b.wait(PATIENCE)
        self.assertEqual(len(self.files()), 1)
        self.end(self.start("", FOR_EVER, "1000", "4"))
        self.assertEqual(self.files(), [])


class Words(Case):
    def test_list(self):
        a = self.start("prio=high,share=7,group=g", FOR_EVER, "1000", "4")
        b = self.start("prio=low", FOR_EVER, "1000", "4")
        text = self.sched("list")
        self.assertIn("policy priority", text)
        self.assertIn(str(a.pid), text)
        self.assertIn(str(b.pid), text)
        client = self.clients()[a.pid]
        self.assertEqual(client["priority"], "high")
        self.assertEqual(client["share"], 7)
        self.assertEqual(client["group"], "g")

    def test_an_empty_list_is_no_error(self):
        self.assertIn("No program shares a GPU", self.sched("list"))
        self.assertEqual(json.loads(self.sched("list", "--json")), {"gpus": []})
        self.assertEqual(self.heddle("pause", "--scope", self.scope).returncode, 1)

    def test_pause_and_resume(self):
        a = self.start("", FOR_EVER, "0", "4")
        for words in ((), ("--pid", str(a.pid))):
            self.sched("pause", *words)
            until(lambda: self.clients()[a.pid]["waiting"] == 1)
            before = self.calls(a)
            until(lambda: states(a.pid) == {"S"})
            self.assertEqual(self.calls(a), before)
            self.assertEqual(self.clients()[a.pid]["state"], "paused")
            self.sched("release", *words)
            until(lambda: self.calls(a) > before)
            until(lambda: self.clients()[a.pid]["waiting"] == 1)
            self.sched("resume", *words)
            self.until_it_works(a, 11)
            self.assertGreater(self.clients()[a.pid]["waited_ns"], 0)

    def test_set(self):
        a = self.start("", FOR_EVER, "100", "4")
        self.sched("set", "policy=slice,slice_us=777,cap_us=300")
        self.sched("set", "--pid", str(a.pid), "prio=low,share=9,deadline_us=5000")
        gpu = json.loads(self.sched("list", "--json", "--gpu", "0"))["gpus"][0]
        self.assertEqual((gpu["policy"], gpu["slice_us"], gpu["cap_us"]), ("slice", 777, 300))
        client = gpu["clients"][0]
        self.assertEqual((client["priority"], client["share"], client["deadline_us"]),
                         ("low", 9, 5000))
        self.assertEqual(json.loads(self.sched("list", "--json", "--gpu", "5")), {"gpus": []})

    def test_uuids(self):
        self.start("", FOR_EVER, "1000", "4")
        uuid = json.loads(self.sched("list", "--json"))["gpus"][0]["uuid"]
        self.assertRegex(uuid, r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertIn(f"0  {uuid}  policy", self.sched("list"))
        plain = uuid[4:].replace("-", "")
        for name in (uuid, uuid[4:], plain, "GPU-" + plain, uuid[:14], uuid.upper()):
            gpus = json.loads(self.sched("list", "--json", "--gpu", name))["gpus"]
            self.assertEqual(len(gpus), 1, name)
        for name in ("", "GPU-", "-", uuid + "0", "GPU-fffffff"):
            gpus = json.loads(self.sched("list", "--json", "--gpu", name))["gpus"]
            self.assertEqual(gpus, [], name)

    def test_list_of_one_program(self):
        a, b = (self.start("", FOR_EVER, "1000", "4") for _ in range(2))
        text = self.sched("list", "--pid", str(b.pid))
        self.assertIn(f" {b.pid} ", text)
        self.assertNotIn(f" {a.pid} ", text)
        gpus = json.loads(self.sched("list", "--json", "--pid", str(a.pid)))["gpus"]
        self.assertEqual([c["pid"] for g in gpus for c in g["clients"]], [a.pid])
        self.assertIn("Process 1 shares no GPU", self.sched("list", "--pid", "1"))
        self.assertEqual(json.loads(self.sched("list", "--json", "--pid", "1")), {"gpus": []})

    def test_the_list_fits_a_terminal(self):
        with tempfile.TemporaryDirectory() as folder:
            long = os.path.join(folder, "a-program-whose-name-is-very-long-indeed")
            os.symlink(WORK, long)
            self.start("", FOR_EVER, "1000", "4", program=long)
            short = self.start("prio=low,share=10000", FOR_EVER, "1000", "4")
        for columns, width, name in (("80", 80, "a-progra+very-lo"), ("40", 80, "+"),
                                     ("100", 100, "a-program-whose-name-is-very-lo"),
                                     ("200", 100, "a-program-whose-name-is-very-lo"),
                                     ("", 100, "a-program-whose-name-is-very-lo")):
            lines = self.sched_wide("list", columns).split("\n")
            self.assertLessEqual(max(map(len, lines)), width, lines)
            table = [line for line in lines if re.match(r" +(PID|\d+) ", line)]
            self.assertEqual(len(table), 3, lines)
            self.assertTrue(any(name in line for line in table), lines)
            state = table[0].index("STATE")
            for row in table[1:]:
                self.assertRegex(row[state:], r"^(idle|running|waiting) ")
                self.assertEqual(len(row), len(table[0]))
        # The names are short, so 80 columns are enough.
        text = self.sched("list", "--pid", str(short.pid))
        self.assertLessEqual(max(map(len, text.split("\n"))), 80, text)

    def sched_wide(self, verb, columns):
        r = self.heddle(verb, "--scope", self.scope, COLUMNS=columns)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def test_pause_says_what_was_paused(self):
        both = [self.start("", FOR_EVER, "1000", "4") for _ in range(2)]
        for verb, did in (("pause", "paused"), ("resume", "resumed"),
                          ("release", "released the calls of")):
            r = self.heddle(verb, "--scope", self.scope)
            self.assertRegex(r.stderr, rf"^heddle: sched: {did} 2 programs on GPU-[0-9a-f]{{8}} "
                                       rf"\(scope {re.escape(self.scope)}\)\n$")
            r = self.heddle(verb, "--scope", self.scope, "--pid", str(both[0].pid))
            self.assertIn(f"{did} 1 program on", r.stderr)

    def test_some_settings_of_a_program_cannot_be_changed(self):
        for word in ("group=x", "scope=x", "mode=record", "stream=own", "queue=4"):
            r = self.heddle("set", word)
            self.assertEqual(r.returncode, 2, word)
            self.assertIn(f"a program keeps its {word.split('=')[0]} for its life", r.stderr)
        self.assertEqual(self.heddle("set", "on").returncode, 2)

    def test_set_client_refuses(self):
        good = [b"web", b"web:prio=high", b"", None]
        bad = [b"a b", b"x" * 32, b":share=3", b"web:prio=top", b"web:mode=record", b"web:share"]
        many = [b"c%d" % i for i in range(70)]
        code = ("import ctypes; f = ctypes.CDLL('libcuda.so.1').heddle_set_client; "
                f"print([f(x) for x in {good + bad + many}])")
        for mode in ("gate", "record"):
            r = subprocess.run(
                [HEDDLE, "run", "--gpu", GPU, "--sched", f"scope={self.scope},mode={mode}", "--",
                 sys.executable, "-c", code],
                env=environment(), capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(r.returncode, 0, r.stderr)
            answers = json.loads(r.stdout)
            self.assertEqual(answers[:len(good)], [0] * len(good))
            self.assertTrue(all(a < 0 for a in answers[len(good):len(good) + len(bad)]), answers)
            self.assertEqual(answers[len(good) + len(bad):][:63], [0] * 63)  # "web" is one, too
            self.assertTrue(all(a < 0 for a in answers[-7:]), answers)

    def test_policies_change_while_programs_run(self):
        both = [self.start("", FOR_EVER, "0", LAUNCHES) for _ in range(2)]
        for policy in ("fair", "batch", "deadline", "slice", "fifo", "priority") * 2:
            self.sched("set", f"policy={policy},slice_us=1000")
            before = [self.calls(p) for p in both]
            if policy != "fifo":  # there the second program has to wait for a long time
                until(lambda: all(self.calls(p) > b for p, b in zip(both, before)))

    def test_wrong_settings_are_refused(self):
        for words in ((), ("listen",), ("set",), ("set", "policy=none"), ("set", "prio=low"),
                      ("pause", "x"), ("list", "--pid", "x"), ("set", "share=1", "more"),
                      ("set", "--pid", "1", "group=x"), ("list", "--none"), ("set", "queue=4")):
            r = self.heddle(*words)
            self.assertEqual(r.returncode, 2, words)
            self.assertTrue(r.stderr.startswith("heddle: " if words else "usage: "), r.stderr)
        self.assertEqual(self.heddle("--help").returncode, 0)
        self.assertIn("did you mean 'list'?", self.heddle("lst").stderr)

    def test_run_refuses_bad_settings(self):
        r = subprocess.run([HEDDLE, "run", "--gpu", GPU, "--sched", "prio=top", "--", WORK],
                           env=environment(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 2)
        self.assertIn("use high, normal or low", r.stderr)


class Files(Case):
    """Files with a name that we look for."""

    HEAD = 64

    def left_behind(self):
        """The file of a program that was killed."""
        p = self.start("", FOR_EVER, "1000", "4")
        path = self.files()[0]
        p.kill()
        p.wait(PATIENCE)
        return path

    @staticmethod
    def lock(fd, first, count, how=fcntl.F_WRLCK):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK,
                    struct.pack("hhxxxxqqixxxx", how, os.SEEK_SET, first, count, 0))

    def all_verbs(self):
        said = ""
        for words in (("list",), ("list", "--json"), ("pause",), ("resume",), ("release",),
                      ("set", "policy=fair"), ("list", "--json")):
            r = self.heddle(*words, "--scope", self.scope)
            self.assertIn(r.returncode, (0, 1), (words, r.stderr))
            if "--json" in words:
                json.loads(r.stdout)
            said += r.stderr
        self.assertRegex(said, r"\A(heddle: sched: .*\n)*\Z")
        return said

    def doctor(self):
        r = subprocess.run([HEDDLE, "doctor", "--json"], env=environment(), capture_output=True,
                           text=True, timeout=PATIENCE)
        return [f["text"] for f in json.loads(r.stdout)["findings"]
                if f["name"] == "sharing" and f["level"] != "ok"]

    def test_files_that_are_not_ours(self):
        path = self.left_behind()
        with open(path, "rb") as f:
            good = f.read()
        other = good[:8] + b"\x01\x02\x03\x04" + good[12:]
        for name, data, complaint in (
                ("empty", b"", ""), ("truncated", good[:1000], ""), ("only a head", good[:64], ""),
                ("half a head", good[:20], ""), ("of another version", other, ""),
                ("garbage", random.Random(1).randbytes(len(good)), "this is another kind of file"),
                ("text", b"precious", "this is another kind of file")):
            with self.subTest(name):
                with open(path, "wb") as f:
                    f.write(data)
                self.assertIn(complaint, self.all_verbs())
                with open(path, "rb") as f:
                    self.assertEqual(f.read(), data)  # it is unchanged
                if complaint:
                    self.assertIn(f"{path}: {complaint}", self.doctor())
        with open(path, "wb") as f:
            f.write(other)
            f.flush()
            self.lock(f.fileno(), 1, 1)  # a program uses it
            self.assertIn("another version of heddle uses this file", self.all_verbs())

    def test_the_doctor_reports_every_file(self):
        self.end(self.start("", FOR_EVER, "1000", "4"))
        folder = next(f for f in folders() if os.path.isdir(f))
        paths = [f"{folder}/sched-{self.scope}-{i}" for i in range(3)]
        for path in paths:
            with open(path, "wb", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
                f.write(b"precious")
        reported = self.doctor()
        for path in paths:
            self.assertIn(f"{path}: this is another kind of file", reported)

    def test_things_that_are_no_files(self):
        path = self.left_behind()
        for make, remove in ((os.mkdir, os.rmdir), (os.mkfifo, os.unlink),
                             (lambda p: os.symlink("/dev/zero", p), os.unlink),
                             (lambda p: os.symlink("/no/where", p), os.unlink)):
            os.unlink(path)
            make(path)
            try:
                self.all_verbs()
            finally:
                remove(path)
                open(path, "w").close()
        os.chmod(path, 0o644)
        self.assertIn("other users can access this file", self.all_verbs())

    def test_nonsense_in_our_own_file(self):
        path = self.left_behind()
        size = os.path.getsize(path) - self.HEAD
        for data in (b"\xff" * size, b"\x01" * size, random.Random(2).randbytes(size)):
            with open(path, "r+b") as f:
                f.seek(self.HEAD)
                f.write(data)
                f.flush()
                self.lock(f.fileno(), 1, 128)  # there are 128 programs
                self.all_verbs()

    def test_a_program_that_has_ended_leaves_no_empty_gpu(self):
        path = self.left_behind()
        seen = set()
        for i in range(40):
            with open(path, "r+b") as f:
                self.lock(f.fileno(), 1, 1)
                p = subprocess.Popen([HEDDLE, "sched", "list", "--json", "--scope", self.scope],
                                     env=environment(), stdout=subprocess.PIPE)
                time.sleep(i * 0.001)
            gpus = json.loads(p.communicate(timeout=PATIENCE)[0])["gpus"]
            self.assertTrue(all(g["clients"] for g in gpus), gpus)
            seen.add(len(gpus))
        self.assertIn(0, seen)


if __name__ == "__main__":
    unittest.main(verbosity=2)
