"""What is left of a program at its server when it has gone: nothing."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from moves import BUILD, PATIENCE, Program, Servers, until

HEDDLE = str(BUILD / "bin" / "heddle")


class Gone(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hed-gone")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.servers = Servers("shm", self.folder)
        self.addCleanup(self.servers.close)
        self.address = self.servers.address(0)
        self.program = Program(self.address, pause="stdin", stdin=True)
        self.addCleanup(self.end)

    def end(self):
        if self.program.running():
            self.program.process.kill()
        self.program.process.wait(PATIENCE)
        self.program.process.stdin.close()
        self.program.process.stdout.close()

    def heddle(self, *words, code=0):
        env = {**{k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")},
               "HEDDLE_CONFIG": ""}
        r = subprocess.run([HEDDLE, *map(str, words)], env=env, cwd=self.folder, text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def status(self):
        return json.loads(self.heddle("serve", "--status", "--json", "--listen", self.address))

    def clients(self):
        return self.status()["clients"]

    def test_memory_is_free_when_the_command_ends(self):
        for _ in range(5):
            worker = self.clients()[0]["worker"]
            said = self.heddle("snap", "out", self.program.process.pid)
            self.assertFalse(os.path.exists(f"/proc/{worker}"))
            status = self.status()
            self.assertEqual(status["clients"], [])
            self.assertEqual([d["leased_bytes"] for d in status["devices"]], [0])
            self.assertNotIn("not free yet", said)
            self.heddle("snap", "in", self.program.process.pid)
        self.program.round()

    def test_a_program_that_dies_while_its_worker_is_parked(self):
        self.program.ask("stage")
        self.assertEqual([c["parked"] for c in self.clients()], [True])
        self.program.process.send_signal(signal.SIGKILL)
        self.program.process.wait(PATIENCE)
        until(lambda: not self.clients(), self.clients)
        self.assertEqual([d["leased_bytes"] for d in self.status()["devices"]], [0])

    def test_a_parked_worker_of_a_program_that_lives_stays(self):
        self.program.ask("stage")
        # One that dies meanwhile makes the server look at all.
        other = Program(self.address, pause="stdin", stdin=True)
        other.ask("stage")
        self.assertEqual(len(self.clients()), 2)
        other.process.kill()
        other.process.wait(PATIENCE)
        until(lambda: len(self.clients()) == 1, self.clients)
        other.process.stdin.close()
        other.process.stdout.close()
        self.program.ask("continue")
        self.program.round()

    @unittest.skipIf(os.geteuid() != 0 or not shutil.which("unshare"), "only root can mount")
    def test_a_full_disk_is_called_so(self):
        os.mkdir(f"{self.folder}/small")
        script = ("mount -t tmpfs -o size=200k tmpfs small 2>/dev/null || exit 77; "
                  f"exec {HEDDLE} snap save {self.program.process.pid} -o small/x.snap")
        r = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=self.folder, text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
        if r.returncode == 77 or "criu" in r.stderr and "not installed" in r.stderr:
            self.skipTest("tmpfs cannot be mounted, or there is no criu")
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("No space left on device", r.stderr)
        self.program.round()


if __name__ == "__main__":
    unittest.main()
