"""Programs whose memory is precopied: they are moved while all of their memory changes, and
notice nothing. What fails meanwhile leaves them where they were.

    precopy.py TRANSPORT          shm, unix, tcp
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import moves  # noqa: E402
from moves import ASK, PATIENCE, Servers  # noqa: E402

RESTLESS = os.environ["HED_RESTLESS"]
SECONDS = float(os.environ.get("HED_SECONDS", "8"))


class Restless(moves.Program):
    def __init__(self, address, seconds=SECONDS, mib=32):
        env = {**os.environ, "HEDDLE_CONFIG": "", "HEDDLE_GPU": address, "HEDDLE_INSECURE": "yes",
               "HEDDLE_LOG": os.environ.get("HEDDLE_LOG", "warn")}
        self.process = subprocess.Popen([RESTLESS, str(seconds), str(mib)], env=env, text=True,
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"

    def finished(self):
        out = self.result()
        assert out.startswith("ok "), out
        return out


def words(answer):
    return dict(w.split("=") for w in answer.split())


def moved_back_and_forth(servers, folder, dice):
    """Rounds are copied, and no thread notices anything."""
    program = Restless(servers.address(0), seconds=PATIENCE)
    begin, count, precopied = time.monotonic(), 0, 0
    while program.running():
        if precopied and time.monotonic() - begin > SECONDS:
            program.process.terminate()
            break
        answer = program.ask("move", "-a", servers.address(count % 2),
                             *(["-v"] if dice.random() < 0.3 else []))
        if not program.running():
            break
        count += 1
        precopied += int(words(answer).get("rounds", 0)) > 1
    print(f"moved {count} times, {precopied} of them by precopy: {program.finished()}")
    assert precopied > 0


def refused(servers, folder, dice):
    """A server that has no room for it, and one that is not there."""
    program = Restless(servers.address(0), seconds=3)
    small, process = servers.more("--memory", "32M")
    try:
        answer = program.ask("move", "-a", small, fails=True)
        assert not program.running() or "memory" in answer, answer
        program.ask("move", "-a", f"unix:{folder}/nobody", fails=True)
    finally:
        process.terminate()
        process.wait(PATIENCE)
    program.finished()


def target_killed(servers, folder, dice):
    """The server to which it moves is killed at any time: it goes on where it was, or it was
    there already and is lost, which it must be told."""
    for _ in range(4):
        address, process = servers.more()
        program = Restless(servers.address(0), seconds=3)
        killer = threading.Timer(dice.random() * 0.8, process.send_signal, [signal.SIGKILL])
        killer.start()
        p = subprocess.run([ASK, str(program.process.pid), "move", "-a", address],
                           capture_output=True, text=True)
        killer.join()
        process.wait(PATIENCE)
        if p.returncode:
            program.finished()
        else:
            program.process.wait(PATIENCE)


def source_killed(servers, folder, dice):
    """The server that it leaves is killed: it has left, or it is told. It does not hang."""
    for _ in range(3):
        address, process = servers.more()
        program = Restless(address, seconds=3)
        killer = threading.Timer(dice.random() * 0.8, process.send_signal, [signal.SIGKILL])
        killer.start()
        subprocess.run([ASK, str(program.process.pid), "move", "-a", servers.address(1)],
                       capture_output=True)
        killer.join()
        process.wait(PATIENCE)
        program.process.wait(PATIENCE)


def moved_between_transports(servers, folder, dice):
    """Pinned memory is shared at one server and not at the next."""
    others = []
    for t in ("shm", "unix", "tcp"):
        if t != servers.transport:
            os.mkdir(f"{folder}/{t}")
            others.append(Servers(t, f"{folder}/{t}"))
    places = [servers, *others]
    try:
        want = moves.Program(servers.address(0), rounds=100).result()
        program = moves.Program(servers.address(0), rounds=100, pause=5000)
        count = 0
        while program.running():
            program.ask("move", "-a", places[(count + 1) % 3].address(0))
            count += 1
        got = program.result()
        assert got == want, f"{got}, not {want}, after {count} moves"
    finally:
        for s in others:
            s.close()


def ended_meanwhile(servers, folder, dice):
    """The program is killed while its memory is precopied: both servers go on."""
    for _ in range(3):
        program = Restless(servers.address(0), seconds=60)
        asking = subprocess.Popen([ASK, str(program.process.pid), "move", "-a", servers.address(1)],
                                  stdout=subprocess.DEVNULL)
        time.sleep(dice.random() * 0.5)
        program.process.kill()
        program.process.wait(PATIENCE)
        asking.wait(PATIENCE)
    Restless(servers.address(1), seconds=1).finished()


def main():
    transport = sys.argv[1]
    dice = random.Random(int(os.environ.get("HED_SEED", "1")))
    folder = tempfile.mkdtemp(prefix="hed")
    servers = Servers(transport, folder)
    try:
        for test in [moved_back_and_forth, refused, target_killed, source_killed,
                     moved_between_transports, ended_meanwhile]:
            test(servers, folder, dice)
            print(f"{test.__name__}: ok", flush=True)
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
