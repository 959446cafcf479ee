"""A program under `heddle run --ckpt recover` whose worker or server is killed at random points
computes what it computes undisturbed.

    recovered.py own            a server of its own: its worker, or the server, is killed
    recovered.py unix|tcp|shm   a server at an address: its worker is killed, or the server, which
                                is started again
    recovered.py limits         what cannot be recovered: the program sees the error; and more
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

from kills import BUILD, HEDDLE, PATIENCE, STEPS, WORK, until, why_not
from moves import Program, free_port, listens
from resumed import kill_program, snapshots

PAUSE = 20000  # microseconds between two steps
LONG = ("100000", "8", str(PAUSE))  # of a program that is not to end by itself
LOST = "has lost its GPU's server"


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def runs(pid, name):
    try:
        return name in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Server:
    """A server at an address, which can be killed and started again."""

    all = []

    def __init__(self, transport, folder):
        self.transport, self.folder = transport, folder
        self.all.append(self)
        self.address = (f"tcp://127.0.0.1:{free_port()}" if transport == "tcp"
                        else f"{transport}:{folder}/server")
        self.start()

    def start(self):
        mine = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        secure = ["--insecure"] if self.transport == "tcp" else []
        self.process = subprocess.Popen(
            [BUILD / "lib/heddle/heddled", "--listen", self.address, "--gpu", "cpu:h200", *secure],
            env={**mine, "HEDDLE_CONFIG": "", "HEDDLE_CACHE": f"{self.folder}/cache"},
            stdout=subprocess.DEVNULL, stderr=open(f"{self.folder}/log", "ab"))
        until(lambda: listens(self.address), "a server that listens")

    def workers(self):
        return [p for p in children(self.process.pid) if runs(p, "heddled")]

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)
        if self.transport != "tcp":
            Path(f"{self.folder}/server").unlink(missing_ok=True)


class Run:
    """heddle run, with a program whose server is at an address, or its own."""

    all = []

    def __init__(self, folder, words, address="cpu:h200", program=WORK,
                 words_of=(str(STEPS), "8", str(PAUSE))):
        self.folder = folder
        self.all.append(self)
        self.err = os.path.join(folder, "err")
        self.out = os.path.join(folder, "out")
        mine = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        env = {**mine, "HEDDLE_CONFIG": "", "HEDDLE_CACHE": os.path.join(folder, "cache"),
               "HEDDLE_INSECURE": "yes"}
        with open(self.out, "wb") as o, open(self.err, "wb") as e:
            self.process = subprocess.Popen(
                [HEDDLE, "run", "--gpu", address, *words, "--", program, *words_of],
                env=env, stdin=subprocess.DEVNULL, stdout=o, stderr=e, start_new_session=True)

    def text(self):
        return Path(self.out).read_text()

    def errors(self):
        return Path(self.err).read_text()

    def runs(self):
        return self.process.poll() is None

    def own_server(self):
        return next((p for p in children(self.process.pid) if runs(p, "heddled")), 0)

    def own_workers(self):
        return [p for p in children(self.own_server()) if runs(p, "heddled")]

    def end(self):
        """Its exit code."""
        return self.process.wait(PATIENCE)

    def recovered(self):
        return self.errors().count("goes on from")


def undisturbed(folder):
    run = Run(folder, ())
    assert run.end() == 0, run.errors()
    return run.text()


def disturb(run, server, dice, kept):
    """Kills the worker or the server once, if the program still runs."""
    before = run.recovered()
    old = snapshots(kept) if dice.random() < 0.7 else set()
    until(lambda: snapshots(kept) - old or not run.runs(), run.errors)
    time.sleep(dice.uniform(0, 0.4))
    if server:
        workers = server.workers()
        if dice.random() < 0.5:
            for pid in workers:
                kill(pid)
        else:
            server.kill()
            time.sleep(dice.uniform(0, 1))
            server.start()
    else:
        workers = run.own_workers()
        for pid in workers if dice.random() < 0.5 else [run.own_server()]:
            if pid:
                kill(pid)
    until(lambda: run.recovered() > before or not run.runs(), run.errors)


def rounds(transport, folder, dice):
    want = undisturbed(folder)
    server = None if transport == "own" else Server(transport, folder)
    count = 0
    for i in range(int(os.environ.get("HED_PROGRAMS", "2"))):
        kept = os.path.join(folder, f"kept{i}")
        run = Run(folder, ("--ckpt", f"every=300ms,keep=2,recover=9,dir={kept}"),
                  server.address if server else "cpu:h200")
        while run.runs() and run.recovered() < 6:
            disturb(run, server, dice, kept)
        assert run.end() == 0, f"{run.end()}: {run.errors()}"
        got = run.text()
        assert got == want, f"{got!r} is not {want!r}: {run.errors()}"
        assert run.recovered(), run.errors()
        count += run.recovered()
        assert "no snapshot of" not in run.errors(), run.errors()
    print(f"{count} recoveries, {want.split()[-1]}")


# ---- what cannot be recovered --------------------------------------------------------------------

def no_snapshot_yet(folder):
    run = Run(folder, ("--ckpt", f"every=1h,recover,dir={folder}/none"), words_of=LONG)
    until(lambda: "ready" in run.text() or not run.runs())
    for pid in run.own_workers():
        kill(pid)
    assert run.end() not in (0, -signal.SIGKILL), run.errors()
    assert f"{LOST}" in run.errors() and "no snapshot of it yet" in run.errors(), run.errors()


def recovery_is_off(folder):
    kept = f"{folder}/off"
    run = Run(folder, ("--ckpt", f"every=300ms,dir={kept}"), words_of=LONG)
    until(lambda: snapshots(kept) or not run.runs(), run.errors)
    for pid in run.own_workers():
        kill(pid)
    assert run.end() not in (0, -signal.SIGKILL), run.errors()
    assert "goes on from" not in run.errors(), run.errors()


def limit_is_reached(folder):
    """The program comes from a snapshot, and there will be no other."""
    kept = f"{folder}/limit"
    run = Run(folder, ("--ckpt", f"every=300ms,dir={kept}"), words_of=LONG)
    until(lambda: snapshots(kept) or not run.runs(), run.errors)
    until(lambda: kill_program(run.process.pid) or not run.runs())
    run = Run(folder, ("--ckpt", f"every=1h,recover=2,dir={kept}", "--resume", kept), words_of=LONG)
    until(lambda: "process" in run.errors())
    for n in range(3):
        until(lambda: run.own_workers() or not run.runs(), run.errors)
        for pid in run.own_workers():
            kill(pid)
        until(lambda: run.errors().count(LOST) > n or not run.runs(), run.errors)
    assert run.end() not in (0, -signal.SIGKILL), run.errors()
    # Once when it was resumed.
    assert run.recovered() == 2 + 1, run.errors()
    assert "2 times already (recover=2)" in run.errors(), run.errors()


def server_stays_away(folder):
    server = Server("unix", folder)
    kept = f"{folder}/away"
    run = Run(folder, ("--ckpt", f"every=300ms,recover,wait=1s,dir={kept}"), server.address,
              words_of=LONG)
    until(lambda: snapshots(kept) or not run.runs(), run.errors)
    server.kill()
    assert run.end() not in (0, -signal.SIGKILL), run.errors()
    assert "waits up to 1.00 s" in run.errors(), run.errors()
    # The second if the server took so long to die that it seemed to be there.
    assert "is told so" in run.errors() or "cannot go on from" in run.errors(), run.errors()


def ended_while_it_waits(folder):
    server = Server("unix", folder)
    kept = f"{folder}/ended"
    run = Run(folder, ("--ckpt", f"every=300ms,recover,wait=1h,dir={kept}"), server.address,
              words_of=LONG)
    until(lambda: snapshots(kept) or not run.runs(), run.errors)
    server.kill()
    until(lambda: "waits up to" in run.errors() or not run.runs(), run.errors)
    run.process.terminate()
    assert run.end() == -signal.SIGTERM, run.errors()


def file_has_changed(folder):
    """CRIU would refuse the file, so the program is not killed for nothing."""
    kept, data = f"{folder}/changed", f"{folder}/data"
    run = Run(folder, ("--ckpt", f"every=1h,recover,dir={kept}"), program="/bin/sh", words_of=(
        "-c", f'exec 7<>"{data}"; exec {WORK} "$@"', "sh", *LONG))
    until(lambda: "ready" in run.text())
    program = next(p for p in children(run.process.pid) if runs(p, WORK))
    saved = subprocess.run([HEDDLE, "snap", "save", str(program), "--leave-running", "--dir", kept],
                           capture_output=True, text=True)
    assert saved.returncode == 0, saved.stderr
    Path(data).write_text("more")
    for pid in run.own_workers():
        kill(pid)
    assert run.end() not in (0, -signal.SIGKILL), run.errors()
    assert "is told so" in run.errors(), run.errors()
    assert f"{data}, which the program had open" in run.errors(), run.errors()


def parked_worker_dies(folder):
    """A program that is away from its worker for a snapshot is released, and sees the loss."""
    server = Server("shm", folder)
    program = Program(server.address, rounds=1000, pause=PAUSE)
    program.ask("stage")
    for pid in server.workers():
        kill(pid)
    program.ask("continue", fails=True)
    assert program.process.wait(PATIENCE) != 0
    server.kill()


def crash_while_it_waits(folder, want):
    """A program that dies because it gets no answer goes back, too."""
    server = Server("unix", folder)
    kept = f"{folder}/crash"
    run = Run(folder, ("--ckpt", f"every=300ms,recover,wait=1h,dir={kept}"), server.address)
    until(lambda: snapshots(kept) or not run.runs(), run.errors)
    server.kill()
    until(lambda: "waits up to" in run.errors() or not run.runs(), run.errors)
    for pid in children(run.process.pid):
        if runs(pid, WORK):
            os.kill(pid, signal.SIGABRT)
    server.start()
    assert run.end() == 0, run.errors()
    assert run.text() == want, run.errors()


def with_children(folder, want):
    """Processes that the program has started go back with it."""
    kept = f"{folder}/children"
    run = Run(folder, ("--ckpt", f"every=300ms,recover,dir={kept}"), program="/bin/sh", words_of=(
        "-c", f"sleep 1000 & exec {WORK} {STEPS} 8 {PAUSE}"))
    until(lambda: snapshots(kept) or not run.runs(), run.errors)
    for pid in run.own_workers():
        kill(pid)
    until(run.recovered, run.errors)
    program = next(p for p in children(run.process.pid) if runs(p, WORK))
    until(lambda: any(runs(p, "sleep") for p in children(program)) or not run.runs(), run.errors)
    for pid in children(program):
        os.kill(pid, signal.SIGTERM)
    assert run.end() == 0, run.errors()
    assert run.text() == want, run.errors()


def log_is_written_once(folder, want):
    """A file that is written from beginning to end has no line twice, and lacks none."""
    kept, log = f"{folder}/log-kept", f"{folder}/numbers"
    writer = ("import os, time, itertools\n"
              "for i in itertools.count():\n"
              "    os.write(7, b'%d\\n' % i)\n"
              "    time.sleep(0.01)\n")
    run = Run(folder, ("--ckpt", f"every=300ms,recover,dir={kept}"), program="/bin/sh", words_of=(
        "-c", f'exec 7>"{log}"; "{sys.executable}" -c "$0" & exec {WORK} {STEPS} 8 {PAUSE}',
        writer))
    until(lambda: snapshots(kept) or not run.runs(), run.errors)
    grown = os.path.getsize(log) + 10
    until(lambda: os.path.getsize(log) > grown)
    for pid in run.own_workers():
        kill(pid)
    until(run.recovered, run.errors)
    assert "1 of its files was cut" in run.errors(), run.errors()
    program = next(p for p in children(run.process.pid) if runs(p, WORK))
    for pid in children(program):
        os.kill(pid, signal.SIGTERM)
    assert run.end() == 0, run.errors()
    assert run.text() == want, run.errors()
    lines = Path(log).read_text().split()
    assert lines == [str(i) for i in range(len(lines))], run.errors()


def main():
    if why_not():
        print(why_not())
        sys.exit(77)
    seed = int(os.environ.get("HED_SEED", time.time_ns() % 1000000))
    print(f"HED_SEED={seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="hed-recovered")
    try:
        if sys.argv[1] == "limits":
            want = undisturbed(folder)
            for case in (no_snapshot_yet, recovery_is_off, limit_is_reached, server_stays_away,
                         ended_while_it_waits, file_has_changed, parked_worker_dies):
                print(case.__name__, flush=True)
                case(folder)
            for case in (crash_while_it_waits, with_children, log_is_written_once):
                print(case.__name__, flush=True)
                case(folder, want)
        else:
            rounds(sys.argv[1], folder, random.Random(seed))
    finally:
        for run in Run.all:
            run.process.kill()
        for server in Server.all:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
