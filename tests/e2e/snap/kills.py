"""Programs that are saved, killed and restored at random points compute what they compute
undisturbed, on the CPU GPU. CRIU saves the processes; where it cannot run, the test is skipped.

    kills.py TRANSPORT [ROUNDS]         shm, unix, tcp
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from moves import BUILD, PATIENCE, WORK, Servers, until

HEDDLE = str(BUILD / "bin" / "heddle")
STEPS = 120
PAUSE = 10000  # microseconds between two steps


def why_not():
    if os.geteuid() != 0:
        return "CRIU needs root"
    if not shutil.which("criu", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"):
        return "criu is not installed"
    return None


class Life:
    """A program over several processes, which all write to one file."""

    def __init__(self, folder, address):
        self.folder = folder
        self.env = {**os.environ, "HEDDLE_CONFIG": "", "HEDDLE_GPU": address,
                    "HEDDLE_INSECURE": "yes", "HEDDLE_LOG": "warn"}
        self.out = os.path.join(folder, "out")
        # The program's own file, for appending: CRIU refuses other files that have changed.
        with open(self.out, "wb") as out, open(os.path.join(folder, "err"), "ab") as err:
            self.process = subprocess.Popen([WORK, str(STEPS), "8", str(PAUSE)], env=self.env,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            start_new_session=True)
        self.pid = self.process.pid
        until(lambda: "ready" in self.text())

    def text(self):
        return Path(self.out).read_text()

    def done(self):
        return len(self.text().split()) > 1

    def heddle(self, *words):
        return subprocess.run([HEDDLE, *map(str, words)], env=self.env, cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)

    def gone(self):
        """The process has ended; a child of ours is reaped."""
        if self.process and self.process.pid == self.pid:
            return self.process.poll() is not None
        return not os.path.exists(f"/proc/{self.pid}")

    def save(self, *words):
        """False if the program has ended meanwhile."""
        r = self.heddle("snap", "save", self.pid, *words)
        if r.returncode == 0:
            return True
        time.sleep(0.5)
        assert self.done(), r.stderr
        return False

    def restore(self, *words):
        r = self.heddle("snap", "restore", "--detach", *words)
        assert r.returncode == 0, r.stderr
        assert int(r.stdout) == self.pid
        self.process = None

    def kill(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        until(self.gone)


def saved_and_ended(life, servers, number):
    name = f"{number}.snap"
    if not life.save("-o", name, *random.choice(([], ["--zstd", "1"]))):
        return
    until(life.gone)
    life.restore(name, "--verify", *random.choice(
        ([], ["--gpu", servers.address(0)], ["--gpu", servers.address(1)])))
    os.unlink(os.path.join(life.folder, name))


def saved_and_killed_later(life, servers, number):
    folder = os.path.join(life.folder, "all")
    if not life.save("--leave-running", "--dir", folder):
        return
    time.sleep(random.uniform(0, 0.3))
    life.kill()
    text = life.text().replace("ready\n", "")
    assert not text or number, "it cannot have ended"
    if text:  # it ended before it was killed
        return
    life.restore(folder, "--gpu", servers.address(random.randrange(2)))


def main():
    transport = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    seed = int(os.environ.get("HED_SEED", time.time_ns() % 1000000))
    print(f"HED_SEED={seed}", flush=True)
    random.seed(seed)
    if why_not():
        print(why_not())
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="hed-kills")
    servers = Servers(transport, folder)
    expected = None
    try:
        life = Life(folder, servers.address(0))
        life.process.wait(PATIENCE)
        expected = life.text()
        number = 0
        while number < rounds:
            life = Life(folder, servers.address(0))
            while not life.done() and not life.gone() and number < rounds:
                time.sleep(random.uniform(0, 0.4))
                random.choice((saved_and_ended, saved_and_killed_later))(life, servers, number)
                number += 1
            until(lambda: life.done() or life.gone())
            until(life.gone)
            assert life.text() == expected, f"{life.text()!r} is not {expected!r}"
            shutil.rmtree(os.path.join(folder, "all"), ignore_errors=True)
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
