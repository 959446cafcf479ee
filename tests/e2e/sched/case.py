"""Shared by the tests of sharing: a scope for their programs, and `heddle sched`."""

import os
from pathlib import Path
import subprocess
import sys
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.meeting import folders, forget, meetings  # noqa: E402,F401
from harness.patience import PATIENCE, listens, until  # noqa: E402,F401

BUILD = os.environ.get("HED_BUILD", "")
HEDDLE = os.path.join(BUILD, "bin", "heddle")
WORK = os.environ.get("HED_WORK", "")
GPU = os.environ.get("HED_SCHED_GPU", "null")
LAUNCHES = {"null": "64", "cpu": "8"}[GPU.split(":")[0]]


FOR_EVER = "100000"  # seconds; the test ends it earlier, by SIGTERM


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    env.update(HEDDLE_CONFIG="", HEDDLE_CACHE_SIZE="0", HEDDLE_CPU_THREADS="1")
    return env


def states(pid):
    """The states of a process's threads according to the kernel: {"S"} if all are asleep."""
    found = set()
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as f:
                found.add(f.read().rsplit(")", 1)[1].split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that has ended
    return found


class SchedCase(unittest.TestCase):
    scope_begins = "e2e"

    def setUp(self):
        self.scope = (f"{self.scope_begins}{os.getpid()}."
                     f"{self._testMethodName[-12:].replace('_', '-')}")
        self.programs = []

    def tearDown(self):
        for p in self.programs:
            if p.poll() is None:
                p.kill()
            p.wait(PATIENCE)
            for stream in (p.stdin, p.stdout, p.stderr):
                if stream:
                    stream.close()
        forget(f"sched-{self.scope}-*")

    def launch(self, settings, command, ready=True, stdin=None):
        """Starts a program in this test's scope. With `ready`, waits until the program is ready."""
        spec = ",".join([f"scope={self.scope}", *([settings] if settings else [])])
        p = subprocess.Popen([HEDDLE, "run", "--gpu", GPU, "--sched", spec, "--log", "warn", "--",
                              *command], env=environment(), stdin=stdin, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.programs.append(p)
        if ready:
            self.assertEqual(p.stdout.readline(), "ready\n", "" if p.poll() is None
                             else p.stderr.read())
        return p

    def heddle(self, *words, **more):
        return subprocess.run([HEDDLE, "sched", *words], env={**environment(), **more},
                              capture_output=True, text=True, timeout=PATIENCE)
