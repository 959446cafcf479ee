"""The processes of bench/share: how they are started natively and under heddle, told what to do,
and always ended."""

import glob
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

sys.path.insert(0, str(HERE.parents[1] / "tests"))
from harness.meeting import forget  # noqa: E402


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


def median(values):
    return statistics.median(values) if values else float("nan")


class World:
    """Shared by all parts of a run: options, processes, results."""

    def __init__(self, options):
        self.options = options
        self.build = options.build.resolve()
        self.heddle = self.build / "bin" / "heddle"
        self.gpu = options.gpu
        self.no_time = self.gpu.startswith("null")  # kernels take no time
        self.real = self.gpu == "gpu"
        self.name = f"bench{os.getpid()}"
        self.workers = []
        self.scopes = {}     # name -> number, because heddle's names are short
        self.rows = []      # (what, target, got, met)
        self.results = {}   # part -> any JSON value
        self.mps = None

    # ---- commands

    def environment(self, world="heddle"):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HEDDLE_", "HED_"))}
        env["HEDDLE_CONFIG"] = ""
        if world == "mps":
            env["CUDA_MPS_PIPE_DIRECTORY"] = self.mps
        if not self.real:
            env["HEDDLE_CPU_THREADS"] = "1"
        return env

    def scope(self, name):
        return f"{self.name}.{self.scopes.setdefault(name, len(self.scopes))}"

    def prefix(self, world, settings="", scope="all", more=()):
        """The words before a program's command. If there is no GPU, native means heddle without
        layers, which comes nearest to it."""
        run = [str(self.heddle), "run", "--gpu", self.gpu]
        if world in ("native", "mps"):
            return [] if self.real else [*run, "--"]
        settings = [w for w in (settings, "" if "mode=" in settings else self.options.all) if w]
        spec = ",".join([f"scope={self.scope(scope)}", *settings])
        return [*run, "--sched", spec, *map(str, more), "--"]

    def program(self, name):
        return str(self.build / "bench" / f"bench_share_{name}")

    def sched(self, scope, *words):
        """heddle sched, for a scope."""
        p = subprocess.run([str(self.heddle), "sched", *map(str, words), "--scope",
                            self.scope(scope)], capture_output=True, text=True, timeout=30,
                           env=self.environment())
        if p.returncode:
            raise Gone(f"heddle sched {' '.join(map(str, words))}: {p.stderr.strip()}")
        return p.stdout

    def once(self, command, world="heddle", timeout=120, **more):
        """A command's output, or None and a message if it fails or does not end."""
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**self.environment(world), **more}, start_new_session=True)
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            end(p)
            print(f"# does not end: {' '.join(command)}", flush=True)
            return None
        if p.returncode:
            print(f"# status {p.returncode}: {' '.join(command)}\n# {err.strip()[-500:]}",
                  flush=True)
            return None
        return out

    def knows(self, settings):
        """Whether this version of heddle accepts these settings."""
        p = subprocess.run([str(self.heddle), "run", "--gpu", "null", "--sched",
                            f"scope={self.scope('ask')},{settings}", "--",
                            self.program("launches"), "first"], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=60, env=self.environment())
        return p.returncode == 0 and p.stdout.strip().isdigit()

    def start(self, command, world="heddle"):
        w = Worker(command, self.environment(world))
        self.workers.append(w)
        return w

    # ---- results

    def say(self, text):
        print(text, flush=True)

    def target(self, what, target, got, met):
        """A row of the last table. met: True, False, or None if it cannot be judged."""
        self.rows.append((what, target, got, met))

    def table(self):
        self.say("\ntarget / got / met")
        for what, target, got, met in self.rows:
            word = {True: "met", False: "NOT MET", None: "-"}[met]
            self.say(f"  {what:52} {target:>16} {got:>22}  {word}")

    # ---- MPS

    def start_mps(self):
        self.mps = tempfile.mkdtemp(prefix="heddle-mps-")
        env = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": self.mps,
               "CUDA_MPS_LOG_DIRECTORY": self.mps}
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=env, timeout=60, check=True)

    def stop_mps(self):
        if not self.mps:
            return
        env = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": self.mps}
        try:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=env,
                           timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            print(f"# MPS does not end: {e}", flush=True)

    def close(self):
        for w in self.workers:
            end(w.p)
        forget(f"*-{glob.escape(self.name)}.*")
        self.stop_mps()


def end(p):
    """Kills a process and those that it started. It leads a session of its own."""
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    try:
        p.wait(20)
    except subprocess.TimeoutExpired:
        print(f"# {p.pid} cannot be killed", file=sys.stderr)


class Worker:
    """A program that reads lines and answers with lines of JSON."""

    def __init__(self, command, env):
        self.command = command
        self.errors = tempfile.TemporaryFile()
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=self.errors, env=env, start_new_session=True)
        self.pid = self.p.pid
        self.rest = b""

    def line(self, timeout):
        until = time.monotonic() + timeout
        while b"\n" not in self.rest:
            left = until - time.monotonic()
            ready = left > 0 and select.select([self.p.stdout], [], [], left)[0]
            more = os.read(self.p.stdout.fileno(), 1 << 20) if ready else b""
            if not more:
                self.errors.seek(0)
                why = self.errors.read().decode(errors="replace").strip()[-800:]
                end(self.p)
                raise Gone(f"{' '.join(self.command)}: "
                           + ("it ended" if ready else f"no answer in {timeout:.0f} s")
                           + f"; {why}")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def ready(self, timeout=180):
        return self.line(timeout)

    def tell(self, text):
        try:
            self.p.stdin.write((text + "\n").encode())
            self.p.stdin.flush()
        except OSError:
            pass  # reading the answer then fails, and says why

    def answer(self, timeout):
        return json.loads(self.line(timeout))

    def ask(self, text, seconds):
        self.tell(text)
        return self.answer(seconds + 60)

    def quit(self):
        self.p.stdin.close()
        try:
            self.p.wait(10)
        except subprocess.TimeoutExpired:
            pass
        end(self.p)


class Gone(Exception):
    """A worker no longer answers."""


def together(seconds, *pairs):
    """Sends each worker its line at the same time, and returns their answers."""
    for worker, text in pairs:
        worker.tell(text)
    return [worker.answer(seconds + 60) for worker, _ in pairs]


def beside(seconds, high, order, low, kind):
    """The answers of a worker that gets `order`, and of one that works a little longer."""
    low.tell(f"{kind} {seconds + 0.1}")
    time.sleep(0.05)
    high.tell(order)
    got = high.answer(seconds + 60)
    return got, low.answer(seconds + 60)


def abba(repeat):
    """The order of two sides, a and b, over the repeats, so that drift affects both alike."""
    return [side for r in range(repeat) for side in (("native", "heddle") if r % 2 == 0
                                                     else ("heddle", "native"))]
