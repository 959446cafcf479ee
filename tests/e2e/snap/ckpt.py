"""heddle run --ckpt and --resume: a program that is saved from time to time, with a program that
plays the GPU's part (actor.c) and a server of its own."""

import os
from pathlib import Path
import signal
import subprocess
import unittest

from actor import ACTOR, Case, HEDDLE, PATIENCE, can_criu, until


class Supervised(Case):
    def run_heddle(self, *words, **more):
        """Starts heddle run; it is ended at the end of the test."""
        out = open(self.path("out"), "ab")
        err = open(self.path("err"), "ab")
        p = subprocess.Popen([HEDDLE, "run", "--gpu", "null", *words], cwd=self.folder,
                             env=dict(self.env, **more), stdin=subprocess.DEVNULL, stdout=out,
                             stderr=err, start_new_session=True)
        out.close()
        err.close()

        def end():
            if p.poll() is None:
                p.kill()
            p.wait()
            for line in self.text("log").splitlines():
                if line.startswith("ready "):
                    try:
                        os.kill(int(line.split()[1]), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
        self.addCleanup(end)
        return p

    def pid(self):
        until(lambda: "ready " in self.text("log"))
        return int(self.text("log").split("ready ")[1].split()[0])

    def snapshots(self):
        folder = self.path("d")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(n for n in names if n.endswith(".snap"))


class Parent(Supervised):
    """What heddle does as the parent of a program."""

    def test_exit_code(self):
        p = self.run_heddle("--ckpt", "on", "--", ACTOR, self.path("log"), STEPS="5")
        self.assertEqual(p.wait(PATIENCE), 7, self.text("err"))

    def test_signals(self):
        p = self.run_heddle("--ckpt", "on", "--", ACTOR, self.path("log"))
        pid = self.pid()
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(PATIENCE), -signal.SIGTERM)
        until(lambda: not os.path.exists(f"/proc/{pid}"))

    def test_program_has_the_server(self):
        p = self.run_heddle("--ckpt", "on", "--", "sh", "-c", 'echo "$HEDDLE_GPU"')
        self.assertEqual(p.wait(PATIENCE), 0)
        address = self.text("out").strip()
        self.assertRegex(address, "^shm:/tmp/heddle-run-.*/heddle.sock$")
        self.assertFalse(os.path.exists(os.path.dirname(address[4:])))

    def test_given_server_is_used(self):
        p = self.run_heddle("--set", "gpu=shm:/there", "--ckpt", "on", "--", "sh", "-c",
                            'echo "$HEDDLE_GPU"')
        self.assertEqual(p.wait(PATIENCE), 0, self.text("err"))
        self.assertEqual(self.text("out").strip(), "shm:/there")

    def test_no_such_program(self):
        p = self.run_heddle("--ckpt", "on", "--", "/no/such/program")
        self.assertEqual(p.wait(PATIENCE), 127)

    def test_wrong_words(self):
        for words in ("every=soon", "every=1ms", "keep=0", "zstd=99", "what=1", "dir=", "off"):
            self.heddle("run", "--ckpt", words, "--", "true", code=2)
        self.heddle("run", "--ckpt", "on", "--print-env", code=2)
        self.heddle("run", "--ckpt", "on", "--inject", "--trace", "t", "--", "true", code=2)


@unittest.skipIf(can_criu(), str(can_criu()))
class Saved(Supervised):
    def test_crash_and_resume(self):
        words = ("--ckpt", f"every=300ms,keep=2,dir={self.path('d')}", "--resume", self.path("d"),
                 "--", ACTOR, self.path("log"))
        p = self.run_heddle(*words, STEPS="600")
        pid = self.pid()
        for _ in range(3):
            last = self.snapshots()
            until(lambda: len(self.snapshots()) >= 2 and self.snapshots()[-1:] != last[-1:])
            self.assertLessEqual(len(self.snapshots()), 3 + 1)
            os.kill(pid, signal.SIGKILL)
            self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
            p = self.run_heddle(*words, STEPS="600")
            until(lambda: "goes on from" in self.text("err"))
            until(lambda: self.text("log").rstrip().rsplit("\n", 1)[-1].startswith("attach 0") or
                  "done" in self.text("log"))
        self.assertEqual(p.wait(PATIENCE), 7, self.text("err"))
        self.assertNotIn("wrong", self.text("log"))
        self.assertIn("done 600", self.text("log"))
        self.assertEqual(self.text("log").count("ready"), 1)

    def test_session_from_outside(self):
        """As for a command that enters a container: the session's leader is not to be seen."""
        # Its files are opened inside: unshare makes new mounts too.
        script = 'exec "$@" </dev/null >>out 2>>err'
        p = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                              "sh", "-c", script, "sh", HEDDLE, "run", "--gpu", "null", "--ckpt",
                              f"every=300ms,dir={self.path('d')}", "--", ACTOR, self.path("log")],
                             cwd=self.folder, env=self.env)
        try:
            until(self.snapshots, lambda: self.text("err"))
        finally:
            p.kill()
            p.wait()

    def test_stuck_program_is_recovered(self):
        """A program that has left its server for a snapshot, and cannot go back."""
        p = self.run_heddle("--ckpt", f"every=300ms,recover,dir={self.path('d')}", "--", ACTOR,
                            self.path("log"), "no-staging", f"bad-once={self.path('bad')}",
                            STEPS="900")
        until(self.snapshots)
        Path(self.path("bad")).touch()
        until(lambda: "goes on from" in self.text("err") or p.poll() is not None)
        self.assertEqual(p.wait(PATIENCE), 7, self.text("err"))
        self.assertIn("gone after a snapshot was taken", self.text("err"))
        self.assertNotIn("wrong", self.text("log"))
        self.assertIn("done 900", self.text("log"))

    def test_nothing_to_resume(self):
        os.mkdir(self.path("d"))
        self.assertIn("--resume", self.heddle("run", "--gpu", "null", "--resume", "d", code=1))
        p = self.run_heddle("--resume", "d", "--", ACTOR, self.path("log"), STEPS="3")
        self.assertEqual(p.wait(PATIENCE), 7)
        self.assertIn("from the beginning", self.text("err"))


if __name__ == "__main__":
    unittest.main()
