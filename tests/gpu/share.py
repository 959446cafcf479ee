#!/usr/bin/env python3
"""What works while other programs use the GPU: a matrix of actions and modes of `--sched`.

    tests/gpu/share.py [--build build/gpu] [--modes low,record] [--rows graphs] [--json FILE]

Two programs run beside every program: one of low priority that fills the GPU with kernels, and one
of high priority that begins to work 50 times a second. Each row is compared with the same program
natively and alone: pass, wrong, crash, hang, or refused (a call says that something is not
supported, which it does not say natively). The rows are those of share_matrix (C) and
share_torch.py, and kill -9 of either neighbour or of the program itself while it works. With --gpu
cpu, the C rows run on the CPU GPU. Exits with 1 unless every row passes.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "bench" / "share"))

from plain import loops, steps_a_us
from world import Gone, World, end

MODES = {"low": "prio=low", "high": "prio=high", "normal": "prio=normal", "fair": "policy=fair",
         "slice": "policy=slice,slice_us=2000", "batch": "policy=batch",
         "record": "mode=record,prio=low", "record-own": "mode=record,stream=own,prio=low"}
GOOD = ("pass", "skip")


def run(command, env, timeout):
    """Output and status. The status is None if it did not end."""
    p = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(p)
        out, err = p.communicate()
        return out, err, None
    return out, err, p.returncode


def verdict(want, got):
    out, err, status = got
    why = (err.strip() or out.strip())[-300:]
    if status is None:
        return "hang", why
    if status < 0 or status >= 128:
        return "crash", f"status {status}: {why}"
    if status == 77:
        return "refused", out.strip().splitlines()[-1] if out.strip() else why
    if status != 0:
        return "wrong", f"status {status}: {why}"
    if out != want[0]:
        return "wrong", f"{out.strip()[-150:]!r}, natively {want[0].strip()[-150:]!r}"
    return "pass", ""


class Neighbours:
    """The two neighbours, in the mode's scope and under its policy."""

    def __init__(self, world, mode, rate):
        self.world, self.mode, self.rate = world, mode, rate
        self.settings = [w for w in MODES[mode].split(",")
                       if not w.startswith(("prio=", "mode=", "stream="))]
        self.low = self.start_low()
        self.high = self.start_high()

    def start(self, prio, us, depth, order):
        w = loops(self.world, "heddle", ",".join([f"prio={prio}", *self.settings]), self.mode, us,
                  depth, self.rate)
        w.ready(60)
        w.tell(order)
        return w

    def start_low(self):
        return self.start("low", 500, 16, "flow 100000")

    def start_high(self):
        return self.start("high", 50, 1, "open 100000 0.02")

    def calls(self):
        gpus = json.loads(self.world.sched(self.mode, "list", "--json"))["gpus"]
        found = {c["pid"]: c["calls"] for g in gpus for c in g["clients"]}
        return [found.get(w.pid, -1) for w in (self.low, self.high)]

    def go_on(self, seconds=15):
        """Do both make progress within this time? Returns the verdict and the reason."""
        before = self.calls()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now = self.calls()
            if -1 in now:
                return "crash", f"a neighbour has gone: calls {now}"
            if all(b > a + 5 for a, b in zip(before, now)):
                return "pass", ""
            time.sleep(0.1)
        return "hang", f"calls were {before}, are {now}"

    def close(self):
        for w in (self.low, self.high):
            end(w.p)


class Matrix:
    def __init__(self, options):
        self.options = options
        self.world = World(options)
        self.program = self.world.build / "tests" / "e2e" / "e2e_share_matrix"
        self.results = {}
        self.cache = tempfile.TemporaryDirectory(prefix="heddle-triton-")
        self.timeout = 60 if self.world.real else 120

    def environment(self):
        env = self.world.environment()
        env["TRITON_CACHE_DIR"] = self.cache.name
        env["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # makes PyTorch deterministic
        return env

    def report(self, mode, row, found, why=""):
        self.results.setdefault(row, {})[mode] = (found, why)
        if found != "pass":
            print(f"{mode:10} {row:14} {found} {why}", flush=True)

    def wanted(self, rows):
        """The results of each row natively and alone."""
        want = {}
        for row in rows:
            got = run([*self.world.prefix("native"), self.program, row], self.environment(),
                      self.timeout)
            if got[2] == 0:
                want[row] = got
            else:
                why = (got[1].strip() or got[0].strip())[-200:]
                self.report("native", row, "skip", f"not on this GPU: {why}")
        return want

    def plain_rows(self, mode, want):
        prefix = self.world.prefix("heddle", MODES[mode], mode)

        def one(row):
            return row, verdict(want[row], run([*prefix, self.program, row], self.environment(),
                                               self.timeout))
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for row, (found, why) in pool.map(one, want):
                self.report(mode, row, found, why)

    def torch_rows(self, mode, want):
        command = [sys.executable, PROGRAMS / "share_torch.py"]
        prefix = self.world.prefix("heddle", MODES[mode], mode) if mode != "native" else []
        out, err, status = run([*prefix, *command], self.environment(), 200)
        rows = dict(line[4:].split(" ", 1) for line in out.splitlines() if line.startswith("row "))
        if want is None:
            if status != 0:
                self.report("native", "torch", "skip", err.strip()[-300:])
            for row in [r for r, result in rows.items() if result.startswith("failed: ")]:
                self.report("native", row, "skip", rows.pop(row))
            return rows
        for row, result in want.items():
            if row not in rows:
                found = "hang" if status is None else "crash"
                self.report(mode, row, found, f"status {status}: {err.strip()[-300:]}")
            else:
                same = rows[row] == result
                self.report(mode, row, "pass" if same else "wrong",
                            "" if same else f"{rows[row]}, natively {result}")
        return rows

    def kills(self, mode, near, want):
        """kill -9 of the high neighbour, of the low one, and of the program itself."""
        for who in ("high", "low", "self"):
            row = f"kill_{who}"
            p = subprocess.Popen([*self.world.prefix("heddle", MODES[mode], mode),
                                  str(self.program), "steady"], stdin=subprocess.PIPE, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment(), start_new_session=True)
            p.stdout.readline()  # working
            time.sleep(0.3)
            os.kill({"high": near.high.pid, "low": near.low.pid, "self": p.pid}[who],
                    signal.SIGKILL)
            time.sleep(0.5)
            if who == "self":
                end(p)
                self.report(mode, row, *near.go_on())
                continue
            try:
                out, err = p.communicate("", timeout=self.timeout)
                got = ("working\n" + out, err, p.returncode)
            except subprocess.TimeoutExpired:
                end(p)
                got = (*p.communicate(), None)
            self.report(mode, row, *verdict(want["steady"], got))
            if who == "high":
                end(near.high.p)
                near.high = near.start_high()
            else:
                end(near.low.p)
                near.low = near.start_low()

    def mode(self, mode, want, torch_want, rate):
        if not self.world.knows(MODES[mode]):
            print(f"{mode:10} this heddle does not know {MODES[mode]}", flush=True)
            self.results.setdefault("mode", {})[mode] = ("skip", MODES[mode])
            return
        near = Neighbours(self.world, mode, rate)
        try:
            self.plain_rows(mode, want)
            if torch_want:
                self.torch_rows(mode, torch_want)
            self.report(mode, "neighbours", *near.go_on())
            if "steady" in want:
                self.kills(mode, near, want)
        except Gone as e:
            self.report(mode, "neighbours", "crash", str(e))
        finally:
            near.close()

    def table(self, modes):
        print("\n" + " " * 16 + "".join(f"{m:>11}" for m in modes))
        for row, by in self.results.items():
            if any(m in by for m in modes):
                print(f"{row:16}" + "".join(f"{by.get(m, ('-',))[0]:>11}" for m in modes))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=Path, default=TOP / "build" / "gpu")
    p.add_argument("--gpu", default="gpu", help="gpu, cpu or cpu:MODEL")
    p.add_argument("--modes", default=",".join(MODES))
    p.add_argument("--rows", help="C rows; all")
    p.add_argument("--no-torch", action="store_true")
    p.add_argument("--jobs", type=int, default=4, help="programs of a mode at the same time")
    p.add_argument("--json", type=Path)
    options = p.parse_args()
    options.all = ""
    modes = options.modes.split(",")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    m = Matrix(options)
    began = time.monotonic()
    try:
        out, err, status = run([m.program], m.environment(), 30)
        if status:
            sys.exit(f"{m.program}: {err}")
        rate = steps_a_us(m.world)
        want = m.wanted(options.rows.split(",") if options.rows else out.split())
        torch = m.world.real and not options.no_torch
        torch_want = m.torch_rows("native", None) if torch else {}
        for mode in modes:
            start = time.monotonic()
            m.mode(mode, want, torch_want, rate)
            print(f"# {mode} took {time.monotonic() - start:.0f} s", flush=True)
        m.table(modes)
        count = {}
        for by in m.results.values():
            for found, _ in by.values():
                count[found] = count.get(found, 0) + 1
        print(f"{', '.join(f'{n} {f}' for f, n in count.items())};"
              f" {time.monotonic() - began:.0f} s")
        if options.json:
            options.json.write_text(json.dumps(m.results, indent=1))
    finally:
        m.world.close()
        m.cache.cleanup()
    return 0 if set(count) <= set(GOOD) else 1


if __name__ == "__main__":
    sys.exit(main())
