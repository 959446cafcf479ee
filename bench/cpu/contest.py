"""Runs the contestants, each time in a process of its own, and keeps what they printed."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile

LIMIT_S = 900
HOT_S = 2.5  # how long a cold kernel is launched again and again until it is compiled


class Contestant:
    """One way to run the cases: a program and its environment."""

    def __init__(self, name, program, env, cache_variable=None):
        self.name = name
        self.program = program
        self.env = env
        self.cache_variable = cache_variable

    def without(self, variable, value):
        """The same contestant, except that the variable is not set if it has this value."""
        env = {k: v for k, v in self.env.items() if (k, v) != (variable, value)}
        return Contestant(self.name, self.program, env, self.cache_variable)

    def run(self, scratch, case, seconds, *more, threads=1, cache=None):
        """The program's figures for a case, or None with a message when it fails."""
        env = dict(os.environ, **self.env)
        env["HEDDLE_CPU_THREADS"] = env["POCL_MAX_PTHREAD_COUNT"] = str(threads)
        env["POCL_CPU_MAX_CU_COUNT"] = str(threads)
        if self.cache_variable:
            env[self.cache_variable] = cache or os.path.join(scratch, "cache." + self.name)
            os.makedirs(env[self.cache_variable], exist_ok=True)
        command = [self.program, case, str(seconds), *more]
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            print(f"{case}: {self.name} took over {LIMIT_S} s")
            return None
        if done.returncode != 0:
            print(f"{case}: {self.name} failed ({done.returncode}): {done.stderr.strip()[-300:]}")
            return None
        return json.loads(done.stdout)


class Contest:
    def __init__(self, programs, contestants, seconds, rounds):
        self.programs = programs
        self.contestants = contestants
        self.seconds = seconds
        self.rounds = rounds
        self.scratch = tempfile.mkdtemp(prefix="bench-cpu.")

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def list_cases(self):
        """Name, file, kernel and tolerance of each case."""
        text = subprocess.run([self.programs.plain, "list"], capture_output=True, text=True,
                              check=True).stdout
        return [line.split() for line in text.splitlines()]

    def probe(self):
        text = subprocess.run([self.programs.probe], capture_output=True, text=True,
                              check=True).stdout
        return json.loads(text)

    def check_results(self, case):
        """Each contestant's first results against plain C's, which also fills its cache."""
        reference = os.path.join(self.scratch, "reference")
        found = {}
        for c in self.contestants:
            if c.name == "plain":
                found[c.name] = c.run(self.scratch, case, 0, "write", reference)
        for c in self.contestants:
            if c.name != "plain":
                found[c.name] = c.run(self.scratch, case, self.seconds / 4, "check", reference)
        os.unlink(reference)
        return found

    def measure(self, case, threads=1, contestants=None):
        """Medians over the rounds: {contestant: figures}, the contestants taking turns."""
        rows = {}
        for _ in range(self.rounds):
            for c in contestants or self.contestants:
                row = c.run(self.scratch, case, self.seconds, threads=threads)
                if row:
                    rows.setdefault(c.name, []).append(row)
        return {name: medians(found) for name, found in rows.items()}

    def measure_first(self, case):
        """The first launch with an empty cache and when it got hot, then the first launch with a
        filled cache, in ms."""
        rows = {}
        for _ in range(max(1, self.rounds // 2)):
            for c in self.contestants:
                if not c.cache_variable:
                    continue
                cache = tempfile.mkdtemp(dir=self.scratch)
                cold = c.run(self.scratch, case, HOT_S, "hot", cache=cache)
                warm = c.run(self.scratch, case, 0, cache=cache)
                shutil.rmtree(cache, ignore_errors=True)
                if cold and warm:
                    rows.setdefault(c.name, []).append({
                        "cold_cpu_ms": cold["first_cpu_ms"], "cold_wall_ms": cold["first_wall_ms"],
                        "hot_cpu_ms": cold["hot_cpu_ms"], "hot_wall_ms": cold["hot_wall_ms"],
                        "warm_cpu_ms": warm["first_cpu_ms"], "warm_wall_ms": warm["first_wall_ms"],
                        "rss_mib": warm["rss_mib"]})
        return {name: medians(found) for name, found in rows.items()}


def medians(rows):
    return {key: value if isinstance(value, str) else statistics.median(r[key] for r in rows)
            for key, value in rows[0].items()}
