"""Tests of tests/harness/launch: everything that a test has started ends with it, however it ends.

    launch_case.py LAUNCH CTEST

The test in here leaves a process behind that has a session of its own, has lost its parent, and is
busy for ever. It holds a FIFO open, so that the FIFO's end shows the end of that process.
"""

import os
import signal
import subprocess
import sys
import unittest

LAUNCH, CTEST = sys.argv[1:3]
SCRATCH = os.environ["HED_SCRATCH"]

# $1: the FIFO, $2: what the test itself does afterwards.
LEAVE = ('(setsid sh -c \'exec 9>"$0"; echo up >&9; while :; do :; done\' "$1" &); '
         'read go <"$1.go"; eval "$2"')


class Left(unittest.TestCase):
    """Each test waits until no process has the FIFO open. The limit is ctest's timeout."""

    def setUp(self):
        self.fifo = f"{SCRATCH}/{self._testMethodName}"
        os.mkfifo(self.fifo)
        os.mkfifo(self.fifo + ".go")
        self.env = {**os.environ, "HED_SCRATCH": f"{SCRATCH}/inner/scratch/x"}

    def start(self, then, *before):
        """Starts the test, which leaves its process behind."""
        p = subprocess.Popen([*before, LAUNCH, "sh", "-c", LEAVE, "sh", self.fifo, then],
                             env=self.env, stderr=subprocess.DEVNULL)
        self.fd = open(self.fifo)
        self.assertEqual(self.fd.readline(), "up\n")
        return p

    def go(self):
        with open(self.fifo + ".go", "w") as f:
            f.write("go\n")

    def gone(self):
        self.assertEqual(self.fd.read(), "")
        self.fd.close()

    def test_nothing_is_left_of_a_test_that_passes(self):
        p = self.start("exit 0")
        self.go()
        self.assertEqual(p.wait(), 0)
        self.gone()

    def test_nothing_is_left_of_a_test_that_fails(self):
        p = self.start("exit 3")
        self.go()
        self.assertEqual(p.wait(), 3)
        self.gone()

    def test_nothing_is_left_of_a_test_that_crashes(self):
        p = self.start("kill -SEGV $$")
        self.go()
        self.assertEqual(p.wait(), -signal.SIGSEGV)
        self.gone()

    def test_nothing_is_left_of_an_interrupted_test(self):
        p = self.start("exit 0")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(), -signal.SIGTERM)
        self.gone()

    def test_a_killed_launch(self):
        p = self.start("exit 0")
        p.kill()
        self.assertEqual(p.wait(), -signal.SIGKILL)
        self.gone()

    def test_a_killed_parent_of_launch(self):
        p = self.start("exit 0", "sh", "-c", '"$@" & wait', "sh")
        p.kill()
        p.wait()
        self.gone()

    def test_nothing_is_left_of_a_test_that_takes_too_long(self):
        # A busy machine may start it late, so it gets more time until it has started.
        fd = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
        command = ["sh", "-c", LEAVE, "sh", self.fifo, "exit 0"]
        limit, text, up = 1, "", b""
        while not up:
            with open(f"{SCRATCH}/CTestTestfile.cmake", "w") as f:
                f.write("add_test(long " + " ".join(f"[==[{w}]==]" for w in [LAUNCH, *command]) +
                        f")\nset_tests_properties(long PROPERTIES TIMEOUT {limit})\n")
            p = subprocess.run([CTEST, "--test-dir", SCRATCH], env=self.env, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            text, limit = p.stdout, limit * 2
            try:
                up = os.read(fd, 3)
            except BlockingIOError:  # the writer has not started yet: try again
                pass
        self.assertIn("Timeout", text)
        self.assertEqual(up, b"up\n")
        os.set_blocking(fd, True)
        self.assertEqual(os.read(fd, 3), b"")
        os.close(fd)

    def test_a_test_that_leaves_nothing(self):
        p = subprocess.run([LAUNCH, "sh", "-c", "exit 77"], env=self.env, text=True,
                           stderr=subprocess.PIPE)
        self.assertEqual((p.returncode, p.stderr), (77, ""))

    def test_the_scratch_folder_is_empty(self):
        command = [LAUNCH, "sh", "-c", 'cd "$HED_SCRATCH" && ls -A && mkdir -p a/b && touch a/b/c']
        for _ in range(2):
            p = subprocess.run(command, env=self.env, text=True, stdout=subprocess.PIPE)
            self.assertEqual((p.returncode, p.stdout), (0, ""))
        p = subprocess.run(command, env={**self.env, "HED_SCRATCH": "/tmp/hed-not-there"},
                           stderr=subprocess.DEVNULL)
        self.assertEqual(p.returncode, 126)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
