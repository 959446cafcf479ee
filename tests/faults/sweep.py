#!/usr/bin/env python3
"""Makes one operation after the other fail: in the client, in the server's listener, in its worker.

    HED_BUILD=build/dev HED_SESSION=... HED_FAULTS_LIBRARY=... sweep.py TRANSPORT [--all]
        [--seconds N] [--role ROLE] [--kind KIND] [--at N] [--go-on]

For each role and each kind of failure, a session (session.c) runs once in which nothing fails and
operations are counted. Then it runs again and again with another operation failing: at first one of
each place in the code, then at random for as long as there is time. With --all every operation
fails once, until a session has none left that could; `make faults` does that. HED_SWEEP has options
for all sweeps.

No process crashes or hangs. Errors have the names that the kind of failure allows; short transfers
and interruptions are not noticed at all. The listener lives, keeps no memory and no descriptors,
and the next session works.
"""

import argparse
import os
import random
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "e2e" / "remote"))
from control import HARMLESS, KINDS, ROLES, Control  # noqa: E402
from serve_case import HEDDLED, PATIENCE, Case, Server, clean_environment, until  # noqa: E402

SESSION = os.environ.get("HED_SESSION", "")
LIBRARY = os.environ.get("HED_FAULTS_LIBRARY", "")
LEFT = 2  # blocks that the listener may have more than before, for a list that has grown
AFTER = 50  # sessions between two looks at what is left in the listener

# What a program may be told. A lost server is CUDA_ERROR_DEVICE_UNAVAILABLE, and before there is a
# device CUDA_ERROR_SYSTEM_NOT_READY.
LOST = {"CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_SYSTEM_NOT_READY"}
NAMES = {
    "memory": LOST | {"CUDA_ERROR_OUT_OF_MEMORY"},
    "things": LOST | {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OPERATING_SYSTEM"},
    "space": LOST | {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OPERATING_SYSTEM"},
    "broken": LOST | {"CUDA_ERROR_OPERATING_SYSTEM"},
}
# A worker asks the listener for memory, and has none if it gets no answer.
MORE = {("listener", "broken"): {"CUDA_ERROR_OUT_OF_MEMORY"},
        ("worker", "broken"): {"CUDA_ERROR_OUT_OF_MEMORY"}}

options = None


class Sweep(Case):
    def setUp(self):
        super().setUp()
        self.control = Control(os.path.join(self.dir, "faults"))
        self.cache = os.path.join(self.dir, "cache")
        tcp = options.transport == "tcp"
        self.server = Server(self, "--rate", "10000", *(["--insecure"] if tcp else []),
                             listen=["tcp://127.0.0.1:0"] if tcp else None, gpu="cpu",
                             env=self.environment(HEDDLE_CPU_CODEGEN="baseline"))
        self.address = f"tcp://127.0.0.1:{self.server.port()}" if tcp else \
            f"{options.transport}:{self.server.path}"

    def environment(self, **more):
        return clean_environment(HED_FAULTS=self.control.path, LD_PRELOAD=LIBRARY,
                                 HEDDLE_CACHE=self.cache, **more)

    def fails_with(self, problem, said=""):
        log = "\n".join(self.server.log().split("\n")[-6:])
        self.fail(f"{self.what}: {problem}\nat {self.place()}\n{said}\n{log}")

    def place(self):
        """The line of code whose call failed."""
        where = self.control.where()
        path, _, offset = where.rpartition("+")
        try:
            # The address is that of the instruction after the call.
            line = subprocess.run(["addr2line", "-pfe", path or HEDDLED, hex(int(offset, 16) - 4)],
                                  capture_output=True, text=True, timeout=60).stdout.strip()
        except (OSError, ValueError, subprocess.TimeoutExpired):
            line = ""
        return line or where

    def session(self, what):
        """Runs the program; returns its two lines."""
        self.what = what
        more = {"HEDDLE_INSECURE": "yes"} if options.transport == "tcp" else {}
        client = subprocess.Popen([SESSION], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True,
                                  env=self.environment(HEDDLE_GPU=self.address, HEDDLE_LOG="warn",
                                                       **more))
        try:
            said, error = client.communicate(timeout=options.patience)
        except subprocess.TimeoutExpired:
            stacks = self.stacks([client.pid, *self.workers_of_server()])
            client.kill()
            said, error = client.communicate()
            self.fails_with("it hangs", said + error + stacks)
        finally:
            self.control.disarm()
        if client.returncode != 0:
            self.fails_with(f"its status is {client.returncode}", said + error)
        if self.server.process.poll() is not None:
            self.fails_with(f"the listener ended: {self.server.process.returncode}")
        self.said = said + error
        return said.strip().split("\n")

    def stacks(self, pids):
        text = ""
        for pid in pids:
            try:
                text += subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex",
                                        "thread apply all bt 12"], capture_output=True,
                                       text=True, timeout=60).stdout
            except (OSError, subprocess.TimeoutExpired):
                pass
        return text

    def workers_of_server(self):
        pid = self.server.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return f.read().split()

    def left(self):
        """What the listener has: blocks of memory, descriptors."""
        return (self.control.page.blocks, len(os.listdir(f"/proc/{self.server.process.pid}/fd")))

    def settled(self):
        """The same when no client is left."""
        until(lambda: not self.workers_of_server(), "the worker's end")
        previous = None
        while True:  # the listener reaps the worker a moment after that has ended
            now = self.left()
            if now == previous:
                return now
            previous = now
            time.sleep(0.02)

    def judge(self, role, kind, lines):
        """Are these the right words for the failure?"""
        if not self.control.page.fired:
            self.assertEqual(lines, ["done"] * 2, f"{self.what}: nothing failed: {self.said}")
            return
        if kind in HARMLESS:
            if lines != ["done"] * 2:
                self.fails_with("this failure should not be noticed", self.said)
            return
        for line in lines:
            name = line.rsplit(": ", 1)[-1]
            if line != "done" and name not in NAMES[kind] | MORE.get((role, kind), set()):
                self.fails_with(f"the error should not be {name}", self.said)
        # One operation has failed. What fails the second time, too, has failed for good: a
        # connection, or the session, which was never started.
        first, second = (line.rsplit(": ", 1)[-1] for line in lines)
        started = not lines[0].startswith("failed at cuInit: ")
        if "done" not in (first, second) and second not in LOST and \
                (started and kind != "broken" or first != second):
            self.fails_with("the second time should work", self.said)

    def try_one(self, role, kind, at):
        try:
            return self.fail_at(role, kind, at)
        except AssertionError as problem:
            if not options.go_on:
                raise
            self.problems += 1
            print(f"PROBLEM: {problem}\n", flush=True)
            for worker in self.workers_of_server():
                os.kill(int(worker), 9)
            return 0

    def fail_at(self, role, kind, at):
        self.control.arm(role, kind, at)
        lines = self.session(f"{options.transport}: {kind} {at} of the {role}")
        fired = self.control.page.fired
        self.judge(role, kind, lines)
        self.tried += 1
        if options.verbose:
            print(f"{self.what} {self.place()}: {lines}", flush=True)
        return fired

    def goes_on(self):
        """The next session works, and nothing is left of the others."""
        self.assertEqual(self.session("the next session"), ["done"] * 2, self.said)
        # The listener may notice the end of a worker, and of its log, a little later.
        until(lambda: not self.workers_of_server() and self.left()[0] <= self.before[0] + LEFT and
              self.left()[1] <= self.before[1],
              lambda: f"the listener had {self.before} blocks and descriptors, has {self.left()}")

    def order(self, role, kind):
        """Which operations to try, in which order: one of each place first."""
        self.control.arm(role, kind, 0)
        lines = self.session("nothing fails")
        self.assertEqual(lines, ["done"] * 2, self.said)
        places = self.control.places()
        if options.all:
            return range(1, len(places) + 1)
        last_of = {p: i for i, p in enumerate(places, 1)}
        first_of = {p: i for i, p in reversed(list(enumerate(places, 1)))}
        chance = random.Random(f"{options.seed} {role} {kind}")
        once = sorted(set(first_of.values()))
        rest = sorted(set(range(1, len(places) + 1)) - set(once))
        chance.shuffle(once)
        chance.shuffle(rest)
        return [*once, *(i for i in last_of.values() if i not in once), *rest]

    def sweep(self, role, kind, order, end):
        """Until the operations are through, or the time."""
        for n, at in enumerate(order):
            if end and time.monotonic() > end:
                break
            self.try_one(role, kind, at)
            if role == "listener" or n % AFTER == AFTER - 1:
                self.goes_on()
        if options.all:  # operations that only came after a failure
            at = len(order) + 1
            while self.try_one(role, kind, at):
                at += 1
        self.goes_on()

    def test_sweep(self):
        self.tried = self.problems = 0
        for _ in range(2):  # fills caches and lists
            self.assertEqual(self.session("the first session"), ["done"] * 2, self.said)
        self.before = self.settled()
        if options.at:
            self.try_one(options.role, options.kind, options.at)
            print(self.said)
            return
        combinations = [(r, k) for r in ROLES for k in KINDS
                        if options.role in (None, r) and options.kind in (None, k)]
        start = time.monotonic()
        for i, (role, kind) in enumerate(combinations):
            end = start + options.seconds * (i + 1) / len(combinations)
            order = self.order(role, kind)
            before = self.tried
            self.sweep(role, kind, order, 0 if options.all else end)
            print(f"{options.transport}: {role}, {kind}: {self.tried - before} of {len(order)} "
                  "operations failed", flush=True)
        self.assertEqual(self.server.stop(), 0, self.server.log())
        self.assertEqual(self.problems, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=("shm", "unix", "tcp"))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--patience", type=float, default=PATIENCE)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--role", choices=ROLES)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--at", type=int)
    parser.add_argument("--go-on", action="store_true", help="after a problem")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(sys.argv[1:] + os.environ.get("HED_SWEEP", "").split())
    unittest.main(argv=[sys.argv[0]])
