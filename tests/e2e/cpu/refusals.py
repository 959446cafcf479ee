#!/usr/bin/env python3
"""`heddle run --fail-on-refusal`: the exit code tells of what a program ignores.

    HED_BUILD=build/dev HED_IGNORES=.../e2e_cpu_ignores refusals.py [Refusals.test...]
"""

import os
from pathlib import Path
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

HEDDLE = os.path.join(os.environ.get("HED_BUILD", "build/dev"), "bin", "heddle")
IGNORES = os.environ["HED_IGNORES"]
SERVE = str(Path(__file__).resolve().parents[2] / "harness" / "serve")
REFUSED = 123


class Refusals(unittest.TestCase):
    mark_of_the_log = " error driver: "

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def run_it(self, *words, options=("--fail-on-refusal",), more=None, command=IGNORES):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        env.update({"HEDDLE_CONFIG": "", "HEDDLE_CACHE_SIZE": "0", "TMPDIR": self.scratch.name,
                    "HED_LIBCUDA": "libcuda.so.1", **(more or {})})
        return subprocess.run([HEDDLE, "run", "--gpu", "cpu", *options, "--", command, *words],
                              env=env, timeout=PATIENCE, capture_output=True, text=True)

    def check(self, code, done):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(os.listdir(self.scratch.name), [])

    def test_ignored_launch_fails(self):
        done = self.run_it("kernel")
        self.check(REFUSED, done)
        self.assertIn("heddle refused what it asked for", done.stderr)
        self.assertIn("kernel impossible cannot run here", done.stderr)

    def test_function_behind_a_pointer_counts_when_it_runs(self):
        done = self.run_it("pointer")
        self.check(REFUSED, done)
        self.assertIn("heddle refused what it asked for", done.stderr)
        for mark in (self.mark_of_the_log, "heddle: run:   "):
            lines = [x for x in done.stderr.splitlines() if mark in x]
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertIn("'multimem.ld_reduce.acquire.sys.global.min.u64 %d2, [%d1];' "
                          "(function bad, line 18): kernel calls_bad", lines[0])

    def test_function_behind_a_pointer_may_stay_unused(self):
        done = self.run_it("unused")
        self.check(0, done)
        self.assertEqual(done.stderr, "")

    def test_ignored_call_fails(self):
        done = self.run_it("call")
        self.check(REFUSED, done)
        self.assertIn("cuImportExternalMemory is not supported", done.stderr)

    def test_processes_of_the_program_count(self):
        self.check(REFUSED, self.run_it("kernel-child"))

    def test_shells_and_their_children_count(self):
        self.check(REFUSED, self.run_it("-c", f"{IGNORES} kernel; true", command="/bin/sh"))

    def test_setting_does_the_same(self):
        done = self.run_it("kernel", options=(), more={"HEDDLE_FAIL_ON_REFUSAL": "yes"})
        self.check(REFUSED, done)

    def test_without_it_the_code_is_the_programs(self):
        self.check(0, self.run_it("kernel", options=()))

    def test_good_program_ends_with_0(self):
        done = self.run_it("nothing")
        self.check(0, done)
        self.assertEqual(done.stderr, "")

    def test_errors_of_cuda_do_not_count(self):
        self.check(0, self.run_it("cuda"))

    def test_code_of_the_program_goes_first(self):
        done = self.run_it("kernel", "3")
        self.check(3, done)
        self.assertNotIn("refused what it asked for", done.stderr)

    def test_signal_of_the_program_goes_first(self):
        done = self.run_it("-c", f"{IGNORES} kernel; kill -USR1 $$", command="/bin/sh")
        self.check(-signal.SIGUSR1, done)

    def test_missing_program_is_127(self):
        self.check(127, self.run_it(command="/nonexistent"))

    def test_options_that_exclude_it_are_named(self):
        for option in ("--print-env", "--inject"):
            done = self.run_it("nothing", options=("--fail-on-refusal", option))
            self.check(2, done)
            self.assertIn("--fail-on-refusal cannot be used", done.stderr)


@unittest.skipUnless(os.environ.get("HED_LIBRARIES"), "needs heddled")
class OnAServer(Refusals):
    """A worker refuses the kernel; the client notes it."""

    transport = "shm"

    def run_it(self, *words, options=("--fail-on-refusal",), more=None, command=IGNORES):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        env.update({"HEDDLE_CONFIG": "", "HEDDLE_CACHE_SIZE": "0",
                    "HED_LIBCUDA": "libcuda.so.1", **(more or {})})
        # The server has its files in TMPDIR, too.
        run = ["env", f"TMPDIR={self.scratch.name}", HEDDLE, "run", *options, "--", command, *words]
        return subprocess.run([SERVE, self.transport, os.environ["HED_LIBRARIES"], HEDDLE, "cpu",
                               *run], env=env, timeout=PATIENCE, capture_output=True, text=True)

    # The worker's log is not the client's.
    mark_of_the_log = " error remote: on the server: "

    test_good_program_ends_with_0 = test_signal_of_the_program_goes_first = None
    test_options_that_exclude_it_are_named = test_missing_program_is_127 = None
    test_setting_does_the_same = test_errors_of_cuda_do_not_count = None
    test_function_behind_a_pointer_may_stay_unused = None
    test_code_of_the_program_goes_first = test_shells_and_their_children_count = None


class OverASocket(OnAServer):
    transport = "unix"
    test_ignored_call_fails = test_processes_of_the_program_count = None
    test_without_it_the_code_is_the_programs = None


if __name__ == "__main__":
    unittest.main()
