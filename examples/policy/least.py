#!/usr/bin/env python3
"""A scheduling policy outside of heddle: the program that has used least GPU time goes on, the others wait.

    least.py [--every SECONDS] [--rounds N]

It looks at the programs that share a GPU (heddle run --sched on) with `heddle sched list --json`, pauses
those that must wait, and resumes one. When it ends, for whatever reason, all go on.
"""

import argparse
import json
import os
import subprocess
import time

HEDDLE = os.environ.get("HEDDLE", "heddle")


def sched(*words):
    return subprocess.run([HEDDLE, "sched", *words], capture_output=True, text=True, check=False)


def programs():
    """{process: GPU time in ns} of all programs that share a GPU."""
    listed = sched("list", "--json").stdout
    used = {}
    for gpu in json.loads(listed)["gpus"] if listed else []:
        for client in gpu["clients"]:
            used[client["pid"]] = used.get(client["pid"], 0) + client["gpu_ns"]
    return used


def decide(used, paused):
    """Lets the program with least GPU time go on, and only that. Returns those that wait."""
    first = min(used, key=used.get, default=None)
    for pid in used:
        if pid != first and pid not in paused:
            sched("pause", "--pid", str(pid))
        elif pid == first and pid in paused:
            sched("resume", "--pid", str(pid))
    return {pid for pid in used if pid != first}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=0, help="0: until it is stopped")
    options = parser.parse_args()
    paused = set()
    done = 0
    try:
        while not options.rounds or done < options.rounds:
            used = programs()
            paused = decide(used, paused)
            print(" ".join(f"{pid}:{ns / 1e6:.1f}ms{'(waits)' if pid in paused else ''}"
                           for pid, ns in sorted(used.items())), flush=True)
            time.sleep(options.every)
            done += 1
    except KeyboardInterrupt:
        pass
    finally:
        for pid in programs():
            sched("resume", "--pid", str(pid))


if __name__ == "__main__":
    main()
