#!/usr/bin/env python3
"""A program with several devices prints the same wherever they are.

    devices.py GPU PROGRAM

HEDDLE_GPU in the environment is a server whose devices are GPU. The program runs on GPU in this
process and on the server, each time with another choice of devices; then several clients run at
once.
"""

import os
import subprocess
import sys

# Orders, subsets and nonsense, of which CUDA takes the devices before the first wrong one.
CHOICES = [None, "0", "1", "1,0", "0,1", "1,7", "", "-1", "3,2,1,0", "2", "0,0"]


def start(gpu, program, choice):
    env = {**os.environ, "HEDDLE_GPU": gpu}
    env.pop("CUDA_VISIBLE_DEVICES", None)
    if choice is not None:
        env["CUDA_VISIBLE_DEVICES"] = choice
    return subprocess.Popen([program], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def finish(process, choice):
    text = process.communicate()[0]
    text = "".join(line for line in text.splitlines(True) if not line.startswith("heddle["))
    if process.returncode != 0:
        sys.exit(f"with CUDA_VISIBLE_DEVICES={choice!r}: status {process.returncode}\n{text}")
    return text


def main():
    gpu, program = sys.argv[1:]
    server = os.environ["HEDDLE_GPU"]
    expected = {}
    for choice in CHOICES:
        expected[choice] = finish(start(gpu, program, choice), choice)
        got = finish(start(server, program, choice), choice)
        if got != expected[choice]:
            sys.exit(f"with CUDA_VISIBLE_DEVICES={choice!r}, here:\n{expected[choice]}"
                     f"on the server:\n{got}")
    clients = [(choice, start(server, program, choice)) for choice in CHOICES]
    for choice, process in clients:
        if finish(process, choice) != expected[choice]:
            sys.exit(f"with others beside it, CUDA_VISIBLE_DEVICES={choice!r} goes wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
