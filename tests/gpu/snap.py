#!/usr/bin/env python3
"""Shows that programs go on as if nothing had happened after they were saved, killed and restored,
swapped out and in, and moved, by the commands that a user would give.

    tests/gpu/snap.py [--build DIR] [--gpu gpu] [--part torch,graph,ptx] [--rounds N]
                      [--train WORDS]

`torch`, `graph`: a PyTorch training, eager and as a CUDA graph. `ptx`: a program that has no
machine code (tests/e2e/snap/work.c) also goes to a CPU GPU and back. With `--gpu cpu:h200` all of
it runs on a machine without a GPU. Needs a built tree, root and criu. Ends with `N passed, N
failed, N skipped`; exits with 0 if nothing failed.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from common import PROGRAMS, TOP, Check

sys.path.insert(0, str(TOP / "tests"))
from harness.patience import listens, until  # noqa: E402


class Server:
    """A server that gives the same addresses to device variables as the others do."""

    def __init__(self, check, name, gpu):
        self.address = f"shm:{check.work}/{name}"
        self.process = subprocess.Popen(
            ["setarch", "-R", check.build / "lib/heddle/heddled", "--listen", self.address,
             "--gpu", gpu, "--log", "warn"],
            env={**os.environ, "HEDDLE_CONFIG": ""}, stdout=subprocess.DEVNULL)
        until(lambda: listens(self.address), "a server that listens")

    def close(self):
        self.process.terminate()
        self.process.wait()


class Life:
    """A program over several processes, which all write to one file."""

    def __init__(self, check, server, command):
        self.check = check
        self.out = check.work / "out"
        # Files that only grow: others would become those of the command that restores it.
        self.out.unlink(missing_ok=True)
        with open(self.out, "ab") as out, open(check.work / "err", "ab") as err:
            self.process = subprocess.Popen(
                [check.build / "bin/heddle", "run", "--gpu", server.address, "--", *command],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                cwd=check.work, env={
                    **os.environ, "HEDDLE_CONFIG": "",
                    "HED_LIBCUDA": str(check.build / "lib/heddle/libcuda.so.1")})
        self.pid = self.process.pid
        until(lambda: "ready" in self.text() or self.gone())

    def text(self):
        return self.out.read_text()

    def gone(self):
        if self.process:
            return self.process.poll() is not None
        return not os.path.exists(f"/proc/{self.pid}")

    def later(self):
        """Waits until the program has got somewhat further."""
        begin = len(self.text())
        until(lambda: self.gone() or len(self.text()) > begin + 50 or "ready\n" == self.text())
        time.sleep(0.2)

    def command(self, *words):
        begin = time.monotonic()
        out, err, status = self.check.run([self.check.build / "bin/heddle", *words],
                                          {"HEDDLE_CONFIG": ""})
        took = time.monotonic() - begin
        line = re.sub(r"\s+", " ", out + err).strip()
        print(f"     {' '.join(map(str, words[:2]))} {took:.2f} s: {line[:300]}", flush=True)
        return status == 0

    def saved(self, server):
        """Saved, which ends it, and restored."""
        file = self.check.work / "a.snap"
        file.unlink(missing_ok=True)
        if not self.command("snap", "save", self.pid, "-o", file):
            return False
        until(self.gone)
        self.process = None
        return self.command("snap", "restore", "--detach", file, "--gpu", server.address)

    def killed(self, server):
        """Saved while it runs, killed later, and restored."""
        folder = self.check.work / "all"
        if not self.command("snap", "save", self.pid, "--leave-running", "--dir", folder):
            return False
        self.later()
        os.kill(self.pid, signal.SIGKILL)
        until(self.gone)
        self.process = None
        return self.command("snap", "restore", "--detach", folder, "--gpu", server.address)

    def swapped(self, _):
        return self.command("snap", "out", self.pid) and self.command("snap", "in", self.pid)

    def moved(self, server):
        return self.command("migrate", self.pid, "--to", server.address)


def last_words(text):
    """What the program computed: a step that was repeated after a kill is there twice."""
    return sorted(set(text.splitlines()))


def survives(check, name, command, servers, rounds):
    """Runs a program undisturbed and disturbed. `servers`: where it goes, in turn."""
    life = Life(check, servers[0], command)
    until(life.gone, name)
    want = life.text()
    if not check.expect(f"{name}: undisturbed", life.process.returncode == 0,
                        want[-300:] + (check.work / "err").read_text()[-1000:]):
        return
    life = Life(check, servers[0], command)
    deeds = [life.saved, life.killed, life.swapped, life.moved] if len(servers) == 2 else [
        life.moved, life.saved, life.moved, life.swapped]
    for i in range(rounds * len(deeds)):
        deed = deeds[i % len(deeds)]
        life.later()
        if life.gone():
            check.report(f"{name}: {deed.__name__}", "skip", "the program has ended")
            break
        if not check.expect(f"{name}: {deed.__name__}", deed(servers[(i + 1) % len(servers)])):
            break
    until(life.gone, name)
    check.expect(f"{name}: the result", last_words(life.text()) == last_words(want),
                 f"{life.text()[-200:]!r} is not {want[-200:]!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=TOP / "build/dev")
    parser.add_argument("--gpu", default="gpu")
    parser.add_argument("--part", default="torch,graph,ptx")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--train", default="150 512 1024", help="words for snap_train.py")
    options = parser.parse_args()
    check = Check(options.build)
    os.environ["HEDDLE_CACHE"] = str(check.work / "cache")
    first, second = (Server(check, name, options.gpu) for name in ("first", "second"))
    work = check.build / "tests/e2e/snap/e2e_snap_work"
    train = [sys.executable, PROGRAMS / "snap_train.py", *options.train.split()]
    try:
        if "torch" in options.part:
            survives(check, "torch", train, [first, second], options.rounds)
        if "graph" in options.part:
            survives(check, "graph", [*train, "graph"], [first, second], options.rounds)
        if "ptx" in options.part:
            os.environ["HED_NAMELESS"] = "yes"
            other = Server(check, "other", "cpu:h200")
            survives(check, "ptx", [work, "400", "64", "20000"], [first, other, second],
                     options.rounds)
            other.close()
    finally:
        first.close()
        second.close()
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
