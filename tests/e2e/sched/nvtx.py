#!/usr/bin/env python3
"""NVTX ranges of programs that wait for each other, as a profiler's library sees them.

    HED_BUILD=build/dev HED_WORK=.../e2e_sched_work HED_NVTX_TOOL=... nvtx.py [Case.test...]
"""

import os
import re
import subprocess
import sys
import unittest

from case import FOR_EVER, PATIENCE, forget, until

BUILD = os.environ.get("HED_BUILD", "")
HEDDLE = os.path.join(BUILD, "bin", "heddle")
WORK = os.environ.get("HED_WORK", "")
TOOL = os.environ.get("HED_NVTX_TOOL", "")
CPU = os.environ.get("HED_NVTX_CPU", "")
FACTS = os.environ.get("HED_NVTX_FACTS", "")
SCRATCH = os.environ.get("HED_SCRATCH", "/tmp")
LINE = re.compile(r"^(\d+) (\d+) ([+\-!]) ([a-z]+)(?:: (.*))?$")

PAUSED = "heddle: wait at the gate: paused"

RANGES = """
import ctypes
heddle = ctypes.CDLL({library!r})
heddle.heddle_range_push(b"outer")
heddle.heddle_range_push(b"inner")
heddle.heddle_range_pop()
heddle.heddle_range_pop()
heddle.heddle_range_pop()
"""


class Ranges(unittest.TestCase):
    def setUp(self):
        self.scope = f"nvtx{os.getpid()}.{self._testMethodName[-12:].replace('_', '-')}"
        self.log = os.path.join(SCRATCH, self._testMethodName + ".nvtx")
        self.programs = []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        self.env.update(HEDDLE_CONFIG="", HEDDLE_CACHE_SIZE="0", HEDDLE_CPU_THREADS="1",
                        NVTX_INJECTION64_PATH=TOOL, HED_NVTX_LOG=self.log)

    def tearDown(self):
        for p in self.programs:
            if p.poll() is None:
                p.kill()
            p.communicate(timeout=PATIENCE)
        forget(f"sched-{self.scope}-*")

    def start(self, settings, *words, gpu="null"):
        p = subprocess.Popen([HEDDLE, "run", "--gpu", gpu, "--sched",
                              f"scope={self.scope}{settings}", "--log", "warn", "--", WORK, *words],
                             env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
        self.programs.append(p)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def end(self, p):
        p.terminate()
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, err)
        self.assertNotIn("NVTX", err)

    def sched(self, *words):
        r = subprocess.run([HEDDLE, "sched", *words, "--scope", self.scope], env=self.env,
                           capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def paused(self, p):
        """Does the log say that the program is in a range because of a pause?"""
        return any(int(line[0]) == p.pid and line[4] == PAUSED for line in self.read())

    def read(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as f:
            return [LINE.match(line.rstrip("\n")).groups() for line in f]

    def check_balance(self, domain="heddle"):
        """Checks that each thread's ranges nest and end. Returns the texts of each process."""
        depth = {}
        texts = {}
        for pid, tid, what, where, text in self.read():
            if where != domain:
                continue
            depth.setdefault(tid, 0)
            depth[tid] += 1 if what == "+" else -1
            self.assertGreaterEqual(depth[tid], 0)
            if what == "+":
                texts.setdefault(int(pid), []).append(text)
        self.assertEqual(set(depth.values()) - {0}, set())
        return texts

    def test_a_pause_is_a_range(self):
        a = self.start("", FOR_EVER, "0", "4")
        b = self.start("", FOR_EVER, "0", "4")
        self.sched("pause")
        until(lambda: self.paused(a) and self.paused(b))
        self.sched("resume")
        self.end(a)
        self.end(b)
        self.check_balance()

    def test_ranges_say_which_program_is_waited_for(self):
        low = self.start(",prio=low", FOR_EVER, "0", "4")
        high = self.start(",prio=high", FOR_EVER, "0", "4")
        wait = re.compile(rf"heddle: wait at the gate: .* \({high.pid}\) runs")
        until(lambda: any(int(line[0]) == low.pid and wait.fullmatch(line[4] or "")
                          for line in self.read()), self.read)
        self.end(high)
        self.end(low)
        self.check_balance()

    def check_recorded_work(self):
        a = self.start(",mode=record", FOR_EVER, "0", "4", gpu="cpu")
        self.sched("pause")
        until(lambda: self.paused(a))
        self.sched("resume")
        self.end(a)
        texts = self.check_balance()[a.pid]
        for text in ("heddle: submit", "heddle: wait for queued work", PAUSED):
            self.assertTrue(text in texts, text)

    @unittest.skipIf(not CPU, "without the CPU GPU: where kernels are made up, none is recorded")
    def test_recorded_work_is_submitted(self):
        self.check_recorded_work()

    @unittest.skipIf(not CPU, "without the CPU GPU: where kernels are made up, none is recorded")
    def test_the_end_of_the_process_cuts_no_range(self):
        self.env["HED_NVTX_MODE"] = "lag"
        self.check_recorded_work()

    def test_a_program_alone_does_not_wait(self):
        p = self.start("", "0.2", "0", "4")
        self.assertEqual(p.wait(PATIENCE), 0)
        self.assertEqual(self.read(), [])

    def run_python(self, mode):
        env = dict(self.env, HED_NVTX_MODE=mode)
        library = os.path.join(BUILD, "lib", "heddle", "libheddle.so.0")
        r = subprocess.run([HEDDLE, "run", "--gpu", "null", "--log", "warn", "--", sys.executable,
                            "-c", RANGES.format(library=library)],
                           env=env, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertNotIn("NVTX", r.stderr)

    def test_the_programs_own_ranges(self):
        self.run_python("")
        self.assertEqual(list(self.check_balance().values()), [["outer", "inner"]])

    def test_a_tool_that_calls_back_while_it_starts(self):
        self.env["LD_PRELOAD"] = os.path.join(BUILD, "lib", "heddle", "libheddle.so.0")
        self.run_python("ask")
        self.assertIn("asked", [line[3] for line in self.read()])
        self.assertEqual(list(self.check_balance().values()), [["outer", "inner"]])

    @unittest.skipIf(not FACTS, "without NVIDIA's headers")
    def test_nvidias_own_code_gives_the_same_ranges(self):
        subprocess.run([FACTS], env=self.env, check=True, timeout=PATIENCE)
        self.assertEqual([line[2:] for line in self.read()],
                         [("+", "default", "outer"), ("+", "theirs", "inner"),
                          ("-", "theirs", None), ("-", "default", None)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
