#!/usr/bin/env python3
"""A heddle that was built without some storeys refuses by name what needs them, and does the rest.

    lacks.py HEDDLE STOREY...
"""
import os
import subprocess
import sys

# storey: commands that need it.
ASKED = {
    "cpu": [["run", "--gpu", "cpu", "--", "true"]],
    "share": [["sched", "list"], ["run", "--mem", "1G", "--", "true"],
              ["run", "--sched", "on", "--", "true"]],
    "remote": [["run", "--gpu", "tcp://localhost:1", "--", "true"]],
    "server": [["serve", "--gpu", "null"]],
    "move": [["snap", "list", "."], ["migrate", "1", "shm:/x"], ["run", "--ckpt", "on", "true"]],
    "see": [["trace", "show", "x"], ["top", "-1"], ["run", "--trace", "x.hed", "--", "true"]],
    "cudart": [["run", "--cudart", "own", "--", "true"]],
    "fastlibs": [["run", "--fast-libs", "--", "true"]],
}


def run(heddle, words):
    env = dict(os.environ, HEDDLE_CONFIG="")
    return subprocess.run([heddle, *words], capture_output=True, text=True, env=env, check=False)


def main(heddle, missing):
    os.chdir(os.environ["HED_SCRATCH"])
    for storey, commands in ASKED.items():
        for words in commands if storey in missing else ():
            answer = run(heddle, words)
            option = f"HEDDLE_{storey.upper()}=OFF"
            assert answer.returncode not in (0, -11), (words, answer)
            assert option in answer.stderr, (words, answer)
    answer = run(heddle, ["version"])
    assert f"without    {' '.join(missing)}\n" in answer.stdout, answer
    answer = run(heddle, ["run", "--gpu", "null", "--", "true"])
    assert answer.returncode == 0, answer


main(sys.argv[1], sys.argv[2:])
