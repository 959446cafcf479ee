"""The script itself: what it says about a check, without any framework."""

import os
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

import run


class Reasons(unittest.TestCase):
    def test_what_heddle_refused_comes_first(self):
        log = ("heddle[7] error driver: the module has machine code for real GPUs only, and no PTX "
               "(sm_80): kernel add<float> cannot run here. Build the program with PTX.\n"
               "RuntimeError: CUDA error\n")
        self.assertEqual(run.find_reason(1, log), "machine code only: add<float>")
        log = "heddle[7] info driver: machine code for sm_80: not linked\n" + log
        self.assertEqual(run.find_reason(1, log), "machine code only (not linked): add<float>")
        self.assertEqual(run.find_reason(1, "heddle[7] error driver: a fault\nValueError: x\n"),
                         "a fault")

    def test_else_the_last_error_or_how_the_program_ended(self):
        self.assertEqual(run.find_reason(1, "ValueError: a\n  more\nx.y.OtherError: b\n"),
                         "x.y.OtherError: b")
        self.assertEqual(run.find_reason(-signal.SIGSEGV, ""), "killed by SIGSEGV")
        self.assertEqual(run.find_reason(128 + signal.SIGABRT, ""), "killed by SIGABRT")
        self.assertEqual(run.find_reason("time", "ValueError: x\n"), "no end within the time limit")
        self.assertEqual(run.find_reason(3, ""), "exit code 3")

    def test_reasons_are_one_line(self):
        self.assertEqual(run.find_reason(1, "AssertionError: " + "x" * 900)[-3:], "...")


class Checks(unittest.TestCase):
    def test_every_framework_has_checks_of_different_names(self):
        for framework, (environment, _) in run.FRAMEWORKS.items():
            checks = list(run.list_checks(framework))
            self.assertTrue(checks, framework)
            self.assertEqual(len(checks), len({name for name, _ in checks}), framework)
            self.assertTrue(all(devices >= 1 for _, devices in checks), framework)
            self.assertIn(environment, run.ENVIRONMENTS)

    def test_a_check_that_hangs_ends_with_what_it_started(self):
        child = "import os, time\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\n" \
                "time.sleep(600)"
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            status, output = run.run_limited([sys.executable, "-c", child], os.environ, 2, log)
            self.assertEqual(status, "time")
            for pid in output.split():
                while state_of(int(pid)) not in ("gone", "Z"):
                    time.sleep(0.01)


def state_of(pid):
    """A process that was killed may still be there, dead, or go while its file is read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


if __name__ == "__main__":
    unittest.main()
