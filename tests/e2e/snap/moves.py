"""Programs that are paused, swapped out, captured and moved between two servers at random points
compute what they compute undisturbed.

    moves.py TRANSPORT          shm, unix, tcp
"""

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))
from patience import PATIENCE, listens, until  # noqa: E402

BUILD = Path(os.environ["HED_BUILD"])
WORK, ASK = os.environ["HED_WORK"], os.environ["HED_ASK"]
ROUNDS = 150


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Servers:
    """Two servers of one transport."""

    def __init__(self, transport, folder):
        self.transport, self.folder = transport, folder
        self.all, self.count = [], 0
        for _ in range(2):
            self.all.append(self.more())

    def more(self, *options):
        """Another one, which the caller ends."""
        mine = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        address = (f"tcp://127.0.0.1:{free_port()}" if self.transport == "tcp"
                   else f"{self.transport}:{self.folder}/s{self.count}")
        secure = ["--insecure"] if self.transport == "tcp" else []
        self.count += 1
        process = subprocess.Popen(
            [BUILD / "lib/heddle/heddled", "--listen", address, "--gpu", "cpu:h200", *secure,
             *options],
            env={**mine, "HEDDLE_CONFIG": "", "HEDDLE_CACHE": f"{self.folder}/cache"},
            stdout=subprocess.DEVNULL)
        until(lambda: listens(address), "a server that listens")
        return address, process

    def address(self, number):
        return self.all[number][0]

    def close(self):
        for _, process in self.all:
            process.terminate()
        for _, process in self.all:
            process.wait(PATIENCE)


class Program:
    def __init__(self, address, rounds=ROUNDS, pause=0, stdin=False, mib=8):
        env = {**os.environ, "HEDDLE_CONFIG": "", "HEDDLE_GPU": address, "HEDDLE_INSECURE": "yes",
               "HEDDLE_LOG": "warn"}
        self.process = subprocess.Popen([WORK, str(rounds), str(mib), str(pause)], env=env,
                                        text=True, stdout=subprocess.PIPE,
                                        stdin=subprocess.PIPE if stdin else None)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, *words, fails=False, either=False):
        p = subprocess.run([ASK, str(self.process.pid), *words], capture_output=True, text=True)
        if (p.returncode != 0) != fails and not either and not self.ends():
            raise AssertionError(f"{words}: {p.stdout}{p.stderr}")
        return p.stdout.strip()

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def running(self):
        return self.process.poll() is None

    def ends(self):
        """It may have been about to end when it was asked."""
        try:
            return self.process.wait(5) is not None
        except subprocess.TimeoutExpired:
            return False

    def result(self, log=()):
        # communicate() would lose what readline() has read ahead.
        if self.process.stdin:
            self.process.stdin.close()
        out = self.process.stdout.read()
        if self.process.wait(PATIENCE):
            raise AssertionError(f"the program ended with {self.process.returncode}: {log}")
        return out.strip()


def out_and_in(program, servers, folder, dice):
    program.ask("out")
    program.ask("in", *(["-v"] if dice.random() < 0.3 else []))


def out_and_in_elsewhere(program, servers, folder, dice):
    program.ask("out")
    program.ask("in", "-a", servers.address(dice.randrange(2)))


def capture_and_attach(program, servers, folder, dice):
    file = f"{folder}/{dice.random()}"
    program.ask("capture", "-f", file)
    program.ask("attach", "-f", file, "-a", servers.address(dice.randrange(2)), "-v")
    os.unlink(file)


def capture_twice(program, servers, folder, dice):
    one, two = f"{folder}/{dice.random()}", f"{folder}/{dice.random()}"
    program.ask("out", "-f", one)
    program.ask("in", "-f", one)
    program.ask("out", "-p", "-f", two, "-f", one)
    program.ask("in", "-f", two, "-f", one)
    os.unlink(one)
    os.unlink(two)


def move(program, servers, folder, dice):
    program.ask("move", "-a", servers.address(dice.randrange(2)))


def move_nowhere(program, servers, folder, dice):
    program.ask("move", "-a", f"unix:{folder}/nobody", fails=True)


def pause(program, servers, folder, dice):
    program.ask("pause")
    time.sleep(dice.random() / 50)
    program.ask("resume")


def stages(servers, folder, want):
    """A snapshot of a running program is as good as one of a stopped program: memory that is
    replaced by it computes the same."""
    program = Program(servers.address(0), rounds=30, pause="stdin", stdin=True)
    parent = []
    for i in range(30):
        program.round()
        if i % 5 != 2:
            continue
        file = f"{folder}/staged{i}"
        program.ask("stage", *(["-p", *parent] if parent else []))
        program.ask("continue", *(["-p"] if parent else []), "-f", file, *parent)
        subprocess.run([ASK, file, "complete"], check=True)
        program.ask("out")
        program.ask("in", "-v", "-f", file, *parent)
        parent = ["-f", file, *parent]
    got = program.result()
    if got.split()[-1] != want:
        print(f"staged: {got}, not {want}")
        return False
    return True


def main():
    transport = sys.argv[1]
    seed = int(os.environ.get("HED_SEED", "1"))
    dice = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="hed")
    servers = Servers(transport, folder)
    things = [out_and_in, out_and_in_elsewhere, capture_and_attach, capture_twice, move,
              move_nowhere, pause]
    try:
        if not stages(servers, folder, Program(servers.address(0), rounds=30).result()):
            return 1
        want = Program(servers.address(0)).result()
        count = 0
        for i in range(int(os.environ.get("HED_PROGRAMS", "4"))):
            program = Program(servers.address(0), pause=2000)
            todo = list(things)
            log = []
            while program.running():
                time.sleep(dice.random() / 10)
                if not program.running():
                    break
                thing = todo.pop(dice.randrange(len(todo))) if todo else dice.choice(things)
                thing(program, servers, folder, dice)
                log.append(thing.__name__)
                count += 1
            got = program.result(log)
            if got != want:
                print(f"program {i} of seed {seed}: {got}, not {want}: {log}")
                return 1
        print(f"{count} times disturbed, {want}")
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
