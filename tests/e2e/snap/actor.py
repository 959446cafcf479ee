"""The commands that work on running programs, with a program that plays the GPU's part (actor.c).
CRIU is real where it can run."""

import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE, until  # noqa: E402

HEDDLE = os.path.join(os.environ["HED_BUILD"], "bin", "heddle")
ACTOR = os.environ["HED_ACTOR"]


def can_criu():
    """Why CRIU cannot be used here; None if it can."""
    if os.geteuid() != 0:
        return "CRIU needs root"
    if not shutil.which("criu", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"):
        return "criu is not installed"
    return None


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hed-snap")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.meet = os.path.join(self.folder, "meet")
        os.mkdir(self.meet, 0o700)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        self.env["HOME"] = self.folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        return Path(self.path(name)).read_text() if os.path.exists(self.path(name)) else ""

    def actor(self, *words, steps=0):
        """Starts an actor, and waits until it listens."""
        out = open(self.path("out"), "ab")
        env = dict(self.env, STEPS=str(steps)) if steps else self.env
        p = subprocess.Popen([ACTOR, self.path("log"), *words], env=env, stdin=subprocess.DEVNULL,
                             stdout=out, stderr=out, start_new_session=True)
        out.close()

        def end():
            if p.poll() is None:
                p.kill()
            p.wait()
        self.addCleanup(end)
        until(lambda: f"ready {p.pid}" in self.text("log"))
        return p

    def heddle(self, *words, code=0):
        r = subprocess.run([HEDDLE, *map(str, words)], env=self.env, text=True, cwd=self.folder,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=PATIENCE)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        return r.stdout if code == 0 else r.stderr

    def steps(self):
        return len(re.findall("^step ", self.text("out"), re.M))

    def goes_on(self):
        now = self.steps()
        until(lambda: self.steps() > now + 20)


class Waiting(Case):
    """What needs no CRIU."""

    def test_pause_and_resume(self):
        p = self.actor()
        self.heddle("snap", "pause", p.pid)
        self.assertIn("paused", self.heddle("snap", "pause", p.pid, code=1))
        self.heddle("snap", "resume", p.pid)
        self.goes_on()

    def test_out_and_in(self):
        p = self.actor()
        self.assertIn("5.0 MiB", self.heddle("snap", "out", p.pid))
        self.assertIn("shm:/else", self.heddle("snap", "in", p.pid, "--gpu", "shm:/else"))
        self.goes_on()

    def test_migrate(self):
        p = self.actor()
        self.assertIn("3 rounds", self.heddle("migrate", p.pid, "--to", "unix:/there"))
        self.goes_on()

    def test_who_is_meant(self):
        self.assertIn("cannot be reached", self.heddle("snap", "pause", os.getpid(), code=1))
        self.assertIn("not the number", self.heddle("snap", "pause", "abc", code=2))
        self.assertIn("no program given", self.heddle("snap", "pause", code=2))
        self.assertIn("shm:/no/server", self.heddle("snap", "pause", os.getpid(), "--listen",
                                                    "shm:/no/server", code=1))

    def test_wrong_words(self):
        for words in (["save", "1", "--zstd", "77"], ["save", "1", "--deadline", "soon"],
                      ["save", "1", "2"], ["save", "1", "-o", "x", "--dir", "y"],
                      ["restore"], ["restore", "x", "y"], ["restore", "x", "--gpu", "what"],
                      ["restore", "x", "--gpu", "cpu", "--detach"], ["fork", "x", "-n", "0"],
                      ["in", "1", "--gpu", "what"], ["pause", "1", "--deadline", "x"]):
            self.heddle("snap", *words, code=2)
        for words in (["1"], ["1", "--to", "x"], ["1", "2", "--to", "shm:/x"]):
            self.heddle("migrate", *words, code=2)
        for word in ("save", "restore", "fork", "out", "in", "pause", "resume"):
            self.assertIn("usage: heddle snap " + word, self.heddle("snap", word, "--help"))
        self.assertIn("usage:", self.heddle("migrate", "--help"))


@unittest.skipIf(can_criu(), str(can_criu()))
class Saved(Case):
    def leftovers(self, folder):
        return [n for n in os.listdir(folder) if n.startswith(".heddle") or ".tmp" in n]

    def save(self, p, *words):
        out = self.heddle("snap", "save", p.pid, *words)
        if "--leave-running" not in words:
            self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
        return out

    def test_saved_and_restored(self):
        p = self.actor(steps=200)
        self.goes_on()
        self.save(p, "-o", "a.snap", "--label", "first")
        before = self.steps()
        self.heddle("snap", "restore", "a.snap", code=7)
        self.assertEqual(self.text("out"), "".join(f"step {i}\n" for i in range(1, 201)))
        self.assertLess(before, 200)
        self.assertEqual(self.leftovers(self.folder), [])

    def test_restored_again_and_again(self):
        p = self.actor(steps=300)
        self.save(p, "-o", "a.snap", "--zstd", "3")
        for _ in range(3):
            pid = int(self.heddle("snap", "restore", "a.snap", "--detach"))
            self.assertEqual(pid, p.pid)
            self.goes_on()
            os.kill(pid, signal.SIGKILL)
            until(lambda: not os.path.exists(f"/proc/{pid}"))
        self.heddle("snap", "restore", "a.snap", code=7)

    def test_leave_running(self):
        for words in ([], ["no-staging"]):
            p = self.actor(*words)
            out = self.save(p, "--leave-running", "--dir", "d")
            self.assertEqual("no room" in out, bool(words), out)
            self.goes_on()
            self.save(p, "--leave-running", "--dir", "d")
            self.goes_on()
            p.kill()
            p.wait()
            pid = int(self.heddle("snap", "restore", "d", "--detach"))
            self.assertEqual(pid, p.pid)
            self.goes_on()
            os.kill(pid, signal.SIGKILL)
            until(lambda: not os.path.exists(f"/proc/{pid}"))
            self.assertEqual(self.leftovers(self.path("d")), [])

    def test_later_ones_need_the_first(self):
        p = self.actor()
        for _ in range(3):
            self.save(p, "--leave-running", "--dir", "d")
        p.kill()
        p.wait()
        os.rename(self.path("d/actor-000001.snap"), self.path("first"))
        self.heddle("snap", "restore", "d/actor-000003.snap", code=1)
        os.rename(self.path("first"), self.path("d/actor-000001.snap"))
        pid = int(self.heddle("snap", "restore", "d/actor-000003.snap", "--detach"))
        self.goes_on()
        os.kill(pid, signal.SIGKILL)

    def test_number_is_taken(self):
        p = self.actor()
        self.save(p, "--leave-running", "-o", "a.snap")
        err = self.heddle("snap", "restore", "a.snap", code=1)
        self.assertIn("in use", err)
        self.goes_on()

    def test_failed_save_leaves_the_program_running(self):
        p = self.actor("refuse")
        self.assertIn("open capture", self.heddle("snap", "save", p.pid, code=1))
        self.goes_on()
        p.kill()
        p.wait()
        p = self.actor()
        os.mkdir(self.path("full"))
        r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", self.path("full")])
        if r.returncode != 0:
            self.skipTest("cannot mount a small disk")
        try:
            for words in ([], ["--leave-running"]):
                self.heddle("snap", "save", p.pid, "--dir", "full", *words, code=1)
                self.goes_on()
                self.assertEqual([n for n in os.listdir(self.path("full")) if n != "HEAD"], [])
        finally:
            subprocess.run(["umount", self.path("full")], check=True)

    def test_program_that_does_not_attach(self):
        p = self.actor("bad-attach")
        self.save(p, "-o", "a.snap")
        self.assertIn("told not to attach", self.heddle("snap", "restore", "a.snap", code=1))
        self.assertFalse(os.path.exists(f"/proc/{p.pid}"))

    def test_damaged_file(self):
        p = self.actor()
        self.save(p, "-o", "a.snap")
        data = bytearray(Path(self.path("a.snap")).read_bytes())
        data[-100] ^= 1
        Path(self.path("b.snap")).write_bytes(data)
        self.heddle("snap", "restore", "b.snap", code=1)
        self.assertFalse(os.path.exists(f"/proc/{p.pid}"))

    def test_fork(self):
        p = self.actor(steps=100)
        self.save(p, "-o", "a.snap")
        r = self.heddle("snap", "fork", "a.snap", "-n", "3", code=1)  # 7 is a failure
        self.assertEqual(self.text("log").count("done 100"), 3, r)

    def test_new_pids(self):
        p = self.actor(steps=100)
        self.save(p, "--leave-running", "-o", "a.snap")
        self.assertEqual(p.wait(PATIENCE), 7)
        self.heddle("snap", "restore", "a.snap", "--new-pids", code=7)
        self.assertEqual(self.text("log").count("done 100"), 2)

    def test_signals_reach_it(self):
        p = self.actor()
        self.save(p, "-o", "a.snap")
        r = subprocess.Popen([HEDDLE, "snap", "restore", "a.snap"], env=self.env, cwd=self.folder,
                             stdin=subprocess.DEVNULL)
        self.goes_on()
        r.send_signal(signal.SIGTERM)
        self.assertEqual(r.wait(PATIENCE), -signal.SIGTERM)
        until(lambda: not os.path.exists(f"/proc/{p.pid}"))

    def test_output_that_changed_is_that_of_the_command(self):
        with open(self.path("plain"), "wb") as out:
            p = subprocess.Popen([ACTOR, self.path("log")], env=dict(self.env, STEPS="150"),
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True)
        until(lambda: f"ready {p.pid}" in self.text("log"))
        self.heddle("snap", "save", p.pid, "--leave-running", "-o", "a.snap")
        before = len(self.text("plain"))
        until(lambda: len(self.text("plain")) > before + 50)
        p.kill()
        p.wait()
        with open(self.path("plain"), "wb") as out:  # as a shell does
            r = subprocess.run([HEDDLE, "snap", "restore", "a.snap"], env=self.env,
                               cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                               timeout=PATIENCE)
        self.assertEqual(r.returncode, 7)
        self.assertRegex(self.text("plain"), r"\Astep \d+\n(.*\n)*step 150\n\Z")

    def test_pipes_are_those_of_the_command(self):
        p = subprocess.Popen([ACTOR, self.path("log")], env=dict(self.env, STEPS="150"),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             start_new_session=True)
        until(lambda: f"ready {p.pid}" in self.text("log"))
        self.heddle("snap", "save", p.pid, "-o", "a.snap")
        before = p.communicate()[0].decode()
        out = subprocess.run([HEDDLE, "snap", "restore", "a.snap"], env=self.env, cwd=self.folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                             timeout=PATIENCE)
        self.assertEqual(out.returncode, 7)
        self.assertEqual(before + out.stdout, "".join(f"step {i}\n" for i in range(1, 151)))


if __name__ == "__main__":
    unittest.main()
