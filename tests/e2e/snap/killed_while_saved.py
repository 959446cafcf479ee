"""A program under `heddle run --ckpt` is killed while criu holds it: heddle run ends, as it does
for every program that is killed. (criu waits for ever for a process that dies in the middle.)"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from kills import HEDDLE, PATIENCE, WORK, until, why_not

TIMES = 12


def program_of(parent):
    """The program, a child of heddle run; None: not there yet."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    for pid in children.read_text().split() if children.exists() else []:
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(WORK.encode() + b"\0"):
                return int(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return None


def is_held(pid):
    """Does somebody trace it?"""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(re.search(r"TracerPid:\s*(\d+)", status).group(1)) != 0


def main():
    if why_not():
        print(why_not())
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="hed-held")
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")},
           "HEDDLE_CONFIG": "", "HEDDLE_CACHE": os.path.join(folder, "cache")}
    err = os.path.join(folder, "err")
    try:
        for i in range(TIMES):
            with open(err, "ab") as e:
                p = subprocess.Popen(
                    [HEDDLE, "run", "--gpu", "cpu", "--ckpt",
                     f"every=200ms,keep=1,dir={folder}/kept{i}", "--", WORK, "100000", "8",
                     "30000"],
                    env=env, stdin=subprocess.DEVNULL, stdout=e, stderr=e, start_new_session=True)
            until(lambda: program_of(p.pid), lambda: Path(err).read_text())
            pid = program_of(p.pid)
            until(lambda: is_held(pid), lambda: Path(err).read_text())
            os.kill(pid, signal.SIGKILL)
            code = p.wait(PATIENCE)
            assert code == -signal.SIGKILL, f"{code}: {Path(err).read_text()}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
