"""What people do in a terminal: jobs of an interactive shell are saved, restored and copied. A job
has a process group of its own in the shell's session, and a terminal for its streams."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from kills import HEDDLE, PATIENCE, WORK, until, why_not

ROUNDS = 60
PAUSE = 30000  # microseconds between two rounds


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, folder, env):
        self.said = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # CRIU would want ctest's log as it was.
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"],
                       {**env, "PS1": "", "TERM": "dumb", "HISTFILE": ""})
        self.say("stty -echo; set -b; PS2=")
        self.number = 0

    def read(self):
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                piece = os.read(self.terminal, 65536)
            except OSError:
                return
            if not piece:
                return
            self.said += piece.decode(errors="replace").replace("\r", "")

    def say(self, line):
        os.write(self.terminal, line.encode() + b"\n")

    def wait_for(self, pattern, end=None):
        """Reads until a pattern is there; returns its match."""
        limit = time.monotonic() + PATIENCE
        while True:
            self.read()
            m = re.search(pattern, self.said, re.M)
            if m:
                return m
            if time.monotonic() > limit:
                raise AssertionError(f"'{pattern}' did not come: {self.said}")
            select.select([self.terminal], [], [], 1)

    def run(self, line):
        """Runs a command in the foreground. Returns what came meanwhile, and its exit code."""
        self.read()
        begin = len(self.said)
        self.number += 1
        self.say(f"{line}\necho \"ended:\"{self.number}:$?")
        m = self.wait_for(rf"ended:{self.number}:(\d+)$")
        return self.said[begin:m.start()], int(m.group(1))

    def end(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@unittest.skipIf(why_not(), str(why_not()))
class Terminal(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hed-terminal")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")},
                    "HEDDLE_CONFIG": "", "HEDDLE_CACHE": f"{self.folder}/cache"}
        self.program = f"{WORK} {ROUNDS} 8 {PAUSE}"
        r = subprocess.run([HEDDLE, "run", "--gpu", "cpu", "--", *self.program.split()],
                           env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.answer = r.stdout.split("\n")[-2]
        self.shell = Shell(self.folder, self.env)
        self.addCleanup(self.shell.end)

    def start(self, *words):
        """Starts the program as a job; returns the number that the shell knows."""
        begin = len(self.shell.said)
        self.shell.say(f"{HEDDLE} run --gpu cpu {' '.join(words)} -- {self.program} &")
        self.shell.say("echo number:$!")
        number = int(self.shell.wait_for(r"^number:(\d+)$").group(1))
        until(lambda: self.shell.read() or "ready" in self.shell.said[begin:])
        return number

    def saved(self, file):
        number = self.start("--ckpt", "on")
        said, code = self.shell.run(f"{HEDDLE} snap save {number} -o {file}")
        self.assertEqual(code, 0, said)
        self.assertIn(f"{file}: ", said)
        self.assertNotIn("/./", said)
        return number

    def test_save_and_restore(self):
        """The README's own commands."""
        number = self.saved("app.snap")
        self.shell.wait_for(r"process \d+ was saved in \S*/app.snap, and has ended")
        self.assertNotIn("Killed", self.shell.said)
        said, code = self.shell.run(f"{HEDDLE} snap restore --detach app.snap")
        self.assertEqual(code, 2, said)
        self.assertIn("--detach needs --gpu ADDRESS", said)
        said, code = self.shell.run(f"{HEDDLE} snap restore app.snap")
        self.assertEqual(code, 0, said)
        self.assertIn(self.answer, said)
        self.assertFalse(os.path.exists(f"/proc/{number}"))

    def test_in_a_namespace(self):
        self.saved("app.snap")
        said, code = self.shell.run(f"{HEDDLE} snap restore --new-pids app.snap")
        self.assertEqual(code, 0, said)
        self.assertIn(self.answer, said)

    def test_copies(self):
        self.saved("app.snap")
        said, code = self.shell.run(f"{HEDDLE} snap fork -n 2 app.snap")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count(self.answer), 2, said)

    def test_keys_reach_copies(self):
        self.saved("app.snap")
        self.shell.read()
        begin = len(self.shell.said)
        self.shell.say(f"{HEDDLE} snap fork -n 2 app.snap")

        def copies():
            self.shell.read()
            return re.findall(r"^(\d+)$", self.shell.said[begin:], re.M)
        until(lambda: len(copies()) == 2)
        os.write(self.shell.terminal, b"\x03")
        said, _ = self.shell.run("true")
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in copies()))
        self.assertNotIn(self.answer, said)

    def test_copies_of_a_job_of_a_script(self):
        """No terminal; the group is that of `timeout`, and not the session's."""
        p = subprocess.Popen(["timeout", str(PATIENCE), HEDDLE, "run", "--gpu", "cpu", "--ckpt",
                              "on", "--", *self.program.split()], env=self.env, cwd=self.folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(p.stdout.readline(), "ready\n")
            number = Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()[0]
            self.assertNotEqual(os.getpgid(int(number)), os.getsid(int(number)))
            subprocess.run([HEDDLE, "snap", "save", number, "-o", "app.snap"], env=self.env,
                           cwd=self.folder, check=True, capture_output=True, timeout=PATIENCE)
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
        r = subprocess.run([HEDDLE, "snap", "fork", "app.snap", "-n", "2"], env=self.env,
                           cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(r.stdout.count(self.answer), 2, r.stdout)

    def test_the_number_that_the_shell_knows(self):
        number = self.start("--ckpt", "on", "--sched", "prio=low")
        for words in ("snap pause", "snap resume", "snap out", "snap in"):
            said, code = self.shell.run(f"{HEDDLE} {words} {number}")
            self.assertEqual(code, 0, said)
        said, code = self.shell.run(f"{HEDDLE} sched list --pid {number}")
        self.assertIn("low", said)
        said, code = self.shell.run(f"{HEDDLE} sched set --pid {number} prio=high")
        self.assertEqual(code, 0, said)
        said, code = self.shell.run(f"{HEDDLE} sched list --pid {number}")
        self.assertIn("high", said)
        said, code = self.shell.run(f"{HEDDLE} cpu explain {number}")
        self.assertIn("mix", said)
        self.shell.run("wait")
        self.assertIn(self.answer, self.shell.said)


if __name__ == "__main__":
    if why_not():
        print(why_not())
        sys.exit(77)
    unittest.main()
