"""A program under `heddle run --ckpt`, on a server of its own, is killed at random points and goes
on from its newest snapshot: it computes what it computes undisturbed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kills import HEDDLE, PATIENCE, STEPS, WORK, until, why_not

PAUSE = 30000  # microseconds between two steps


def snapshots(folder):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return {n for n in names if n.endswith(".snap")}


def kill_program(parent):
    """Kills the program, a child of heddle run, if it is still there."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    for pid in children.read_text().split() if children.exists() else []:
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(WORK.encode() + b"\0"):
                os.kill(int(pid), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass


def main():
    if why_not():
        print(why_not())
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="hed-resumed")
    kept, out, err = (os.path.join(folder, n) for n in ("kept", "out", "err"))
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")},
           "HEDDLE_CONFIG": "", "HEDDLE_CACHE": os.path.join(folder, "cache")}
    program = [WORK, str(STEPS), "8", str(PAUSE)]

    def start(*words):
        with open(out, "ab") as o, open(err, "ab") as e:
            return subprocess.Popen([HEDDLE, "run", "--gpu", "cpu", *words, "--", *program],
                                    env=env, stdin=subprocess.DEVNULL, stdout=o, stderr=e,
                                    start_new_session=True)

    def text():
        return Path(out).read_text()

    try:
        assert start().wait(PATIENCE) == 0, Path(err).read_text()
        expected = text()
        os.unlink(out)
        words = ("--ckpt", f"every=200ms,keep=2,dir={kept}", "--resume", kept)
        for _ in range(3):
            p = start(*words)
            before = snapshots(kept)
            until(lambda: snapshots(kept) - before or p.poll() is not None)
            time.sleep(random.uniform(0, 0.3))
            if p.poll() is not None:
                break
            kill_program(p.pid)
            assert p.wait(PATIENCE) in (-signal.SIGKILL, 0)
            assert snapshots(kept), Path(err).read_text()
        assert start(*words).wait(PATIENCE) == 0, Path(err).read_text()
        assert text() == expected, f"{text()!r} is not {expected!r}: {Path(err).read_text()}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
