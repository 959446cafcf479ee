"""How long a program stands still when it is moved, beside the time that the bytes of its last
round take from the device to the host and back on their own, in the same run.

    downtime.py BUILD TRANSPORT GPU TOTAL_MIB MIB...

BUILD: the folder of a build. TRANSPORT: shm, unix, tcp. GPU: what the servers serve (gpu,
cpu:h200). MIB: the program changes so much of its TOTAL_MIB all the time, so that is its last
round. HED_LINK_LIBCUDA names the library with which the link is measured (the build's own, on the
same GPU); HED_MOVES the moves of each program (5), of which the best and the median are shown.
"""

import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD, TRANSPORT, GPU = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
MOVES = int(os.environ.get("HED_MOVES", "5"))
LIBCUDA = next(BUILD.glob("lib/**/libcuda.so.1"))
CHANGES, ASK = BUILD / "bench/bench_snap_changes", BUILD / "tests/e2e/snap/e2e_snap_ask"
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def serve(folder, number):
    address = (f"tcp://127.0.0.1:{free_port()}" if TRANSPORT == "tcp"
               else f"{TRANSPORT}:{folder}/s{number}")
    # Addresses of variables are the same at both servers.
    process = subprocess.Popen(
        ["setarch", "-R", BUILD / "lib/heddle/heddled", "--listen", address, "--gpu", GPU,
         *(["--insecure"] if TRANSPORT == "tcp" else [])],
        env={**PLAIN, "HEDDLE_CONFIG": "", "HEDDLE_CACHE": f"{folder}/cache"},
        stdout=subprocess.DEVNULL)
    return address, process


def link_times(sizes):
    env = {**PLAIN, "HEDDLE_CONFIG": "", "HEDDLE_GPU": GPU,
           "HED_LIBCUDA": os.environ.get("HED_LINK_LIBCUDA", str(LIBCUDA))}
    out = subprocess.run([CHANGES, "link", *map(str, sizes)], env=env, text=True, check=True,
                         stdout=subprocess.PIPE).stdout
    return {int(line.split()[0]): float(line.split()[1]) for line in out.splitlines()}


def start(address, total, changed):
    env = {**PLAIN, "HEDDLE_CONFIG": "", "HEDDLE_GPU": address, "HEDDLE_INSECURE": "yes",
           "HEDDLE_LOG": "warn", "HED_LIBCUDA": str(LIBCUDA)}
    for _ in range(100):  # until the server listens
        p = subprocess.Popen([CHANGES, "run", str(total), str(changed)], env=env, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        if p.stdout.readline() == "ready\n":
            return p
        p.wait()
        time.sleep(0.1)
    raise SystemExit(f"no program runs at {address}")


def move(program, address):
    p = subprocess.run([ASK, str(program.pid), "move", "-a", address], text=True,
                       stdout=subprocess.PIPE)
    if p.returncode:
        raise SystemExit(p.stdout)
    return {k: int(v) for k, v in (w.split("=") for w in p.stdout.split()) if v.isdigit()}


def show(changed, answers, link, longest):
    last = statistics.median(a["last"] for a in answers) / 2**20
    best = min(answers, key=lambda a: a["stall_us"])
    # What the program's own work took to end is not the move's.
    ours = [(a["stall_us"] - a["stop_us"] - a["drain_us"]) / 1e3 for a in answers]
    at_link = link[changed] * last / changed
    parts = " ".join(f"{k[:-3]} {v / 1e3:.2f}" for k, v in best.items()
                     if list(best).index(k) > list(best).index("host") and v >= 20)
    print(f"{last:8.1f} {at_link:9.2f} {best['stall_us'] / 1e3:9.2f} "
          f"{statistics.median(a['stall_us'] for a in answers) / 1e3:9.2f} {min(ours):9.2f} "
          f"{min(ours) / at_link:7.2f} {best['rounds']:4} {longest:8.2f}   {parts}", flush=True)


def main():
    total, sizes = int(sys.argv[4]), [int(w) for w in sys.argv[5:]]
    folder = tempfile.mkdtemp(prefix="hed")
    servers = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and ends the servers
    try:
        link = link_times(sizes)
        servers = [serve(folder, i) for i in range(2)]
        print(f"{TRANSPORT}, {GPU}, {total} MiB; ms; `ours` is without the program's own work; "
              "parts of the best; `felt` is the\n"
              "longest round of the program, over all moves")
        print("last_MIB   at_link held_best held_med.      ours   ratio rnds     felt   parts")
        for changed in sizes:
            program = start(servers[0][0], max(total, changed), changed)
            answers = [move(program, servers[(i + 1) % 2][0]) for i in range(MOVES)]
            program.stdin.close()
            end = program.stdout.read().strip()
            if program.wait() != 0 or not end.startswith("ok"):
                raise SystemExit(f"the program ended with {program.returncode}: {end}")
            show(changed, answers, link, float(end.split()[2]))
    finally:
        for _, process in servers:
            process.terminate()
        for _, process in servers:
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
