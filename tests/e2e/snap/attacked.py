"""The agent's socket in a program, attacked by what may connect to it: the program computes
what it computes undisturbed.

    attacked.py
"""

import array
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from moves import ASK, BUILD, Program, Servers, until  # noqa: E402

INFO, CAPTURE, STAGE, CONTINUE, ATTACH, OUT, IN, MOVE, PAUSE, RESUME = range(1, 11)
FDS_MAX = 160
HEADER = Path(__file__).resolve().parents[3] / "src/move/talk/talk.h"
VERSION, LAST = (int(re.search(name + r" (\d+)", HEADER.read_text())[1])
                 for name in ("HED_TALK_VERSION", "HED_TALK_KIND_LAST"))
LEFT = 100  # connections: more than may wait


def request(kind, flags=0, fds=0, magic=0x4b4c4148, version=VERSION, size=440, address=b"",
            label=b""):
    return struct.pack("<IHHIIII16sQiI256s128s", magic, version, kind, size, flags, fds, 0,
                       b"u" * 16, 1, 0, 0, address, label)


class Attacker:
    def __init__(self, program, folder, dice):
        self.program, self.folder, self.dice = program, folder, dice
        self.path = f"{self.meeting()}/snap-{program.process.pid}"
        self.left = []

    def meeting(self):
        user = os.geteuid()
        for path in (f"/run/user/{user}/heddle", f"/dev/shm/heddle-{user}"):
            if os.path.exists(f"{path}/snap-{self.program.process.pid}"):
                return path
        raise AssertionError("the program does not accept connections")

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(self.path)
        s.settimeout(120)
        return s

    def send(self, data, fds=(), answer=False):
        """Sends something, and says how it was answered: an error's number, or None for none."""
        s = self.connect()
        try:
            s.sendmsg([data] if data else [], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                                array.array("i", fds))] if fds else [])
            if not answer:
                return None
            got = s.recv(4096)
            return struct.unpack_from("<i", got, 16)[0] if got else None
        except ConnectionError:
            return None
        finally:
            s.close()

    def garbage(self):
        good = request(INFO)
        assert self.send(good, answer=True) == 0
        for n in (1, 15, 16, 439):
            assert self.send(good[:n], answer=True) is None
        for data in (good + b"x", b"\0" * 65536, os.urandom(440), request(INFO, magic=0),
                     request(INFO, version=VERSION + 1), request(INFO, size=441), request(0),
                     request(LAST + 1), request(65535), request(INFO, flags=2),
                     request(INFO, flags=1 << 31),
                     request(INFO, fds=1), request(MOVE, address=b"x" * 256),
                     request(CAPTURE, label=b"\xff" * 128)):
            assert self.send(data, answer=True) is None, data[:24]
        self.send(b"")
        self.connect().close()

    def descriptors(self):
        null = os.open("/dev/null", os.O_RDWR)
        before = self.count_fds()
        for n in (1, 2, FDS_MAX - 1, FDS_MAX, FDS_MAX + 1, 253):
            self.send(request(INFO, fds=n), [null] * n, answer=n <= FDS_MAX)
            self.send(request(PAUSE, fds=0), [null] * n)
            self.send(b"x", [null] * n)
        os.close(null)
        assert self.send(request(INFO), answer=True) == 0
        until(lambda: self.count_fds() <= before, "descriptors that are closed")

    def count_fds(self):
        return len(os.listdir(f"/proc/{self.program.process.pid}/fd"))

    def odd_files(self, kind):
        """What is no file is refused, and the program is as before."""
        fifo, damaged = f"{self.folder}/fifo", f"{self.folder}/damaged"
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        Path(damaged).write_bytes(os.urandom(9000))
        one, two = socket.socketpair()
        files = [os.open(fifo, os.O_RDWR), os.open("/dev/zero", os.O_RDWR),
                 os.open(self.folder, os.O_RDONLY), os.open(damaged, os.O_RDONLY), one.fileno()]
        if kind != CAPTURE:  # it can be written
            files.append(os.memfd_create("empty"))
        for fd in files:
            for flags in (0, 1):
                err = self.send(request(kind, flags, 2), [fd, fd], answer=True)
                assert err is not None and err < 0, (kind, fd, err)
        for fd in files:
            if fd != one.fileno():
                os.close(fd)
        one.close()
        two.close()

    def wrong_states(self, *allowed):
        for kind in range(STAGE, RESUME + 1):
            if kind not in allowed:
                err = self.send(request(kind, fds=0), answer=True)
                assert err is not None and err < 0, (kind, err)

    def in_every_state(self):
        ask = self.program.ask
        file = f"{self.folder}/captured"
        self.wrong_states(OUT, MOVE, PAUSE, STAGE)  # RUNNING
        self.odd_files(CAPTURE)
        ask("pause")
        self.wrong_states(OUT, RESUME)
        self.odd_files(CAPTURE)
        ask("out")
        self.wrong_states(IN, ATTACH)
        self.odd_files(IN)
        ask("in")
        ask("capture", "-f", file)
        self.wrong_states()
        self.odd_files(ATTACH)
        ask("attach", "-f", file)
        if "error" not in ask("stage", either=True):
            self.wrong_states(CONTINUE)
            self.odd_files(ATTACH)
            # As if its command and the guard had been killed.
            subprocess.run([BUILD / "bin/heddle", "snap", "resume", str(self.program.process.pid)],
                           check=True)

    def floods(self):
        """Connections that nobody uses hold the agent up, for a while."""
        for s in self.left:
            s.close()
        self.left = []
        for _ in range(LEFT):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
            try:
                s.connect(self.path)
                self.left.append(s)
            except BlockingIOError:
                s.close()
        for s in self.left[1:]:
            s.close()
        self.left = self.left[:1]

    def state(self):
        """Where the program stands; "" if it has ended."""
        while self.program.running():
            said = self.program.ask("info", either=True)
            if said.startswith("state="):
                return said.split()[0].partition("=")[2]
        return ""

    def kills(self):
        """A command dies in the middle of a request. Others find the program in a state that is
        known, and bring it back."""
        file = f"{self.folder}/killed"
        for words in (["pause"], ["out"], ["stage"], ["capture", "-f", file], ["move"]):
            if os.path.exists(file):
                os.unlink(file)
            p = subprocess.Popen([ASK, str(self.program.process.pid), *words],
                                 stdout=subprocess.DEVNULL)
            time.sleep(self.dice.random() / 20)
            p.send_signal(signal.SIGKILL)
            p.wait()
            back = {"paused": ["resume"], "swapped": ["in"], "parked": ["continue"],
                    "captured": ["attach", "-f", file]}.get(self.state())
            if back:
                self.program.ask(*back)
            if self.program.running():
                assert self.state() in ("running", ""), self.state()


def main():
    dice = random.Random(int(os.environ.get("HED_SEED", "1")))
    folder = tempfile.mkdtemp(prefix="hed")
    servers = Servers("shm", folder)
    try:
        want = Program(servers.address(0), rounds=60).result()
        program = Program(servers.address(0), rounds=60, pause="stdin", stdin=True)
        attacker = Attacker(program, folder, dice)
        things = [attacker.garbage, attacker.descriptors, attacker.in_every_state, attacker.floods,
                  attacker.kills]
        for i in range(60):
            program.round()
            if i % 4 == 0:
                things[i // 4 % len(things)]()
        got = program.process.stdout.read()
        if program.process.wait() != 0 or got.split()[-1:] != want.split()[-1:]:
            print(f"{got}, not {want}")
            return 1
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
