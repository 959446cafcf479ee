#!/usr/bin/env python3
"""What the pytest plug-in costs a suite: 1,000 empty tests without it, with it loaded, and with
--heddle. CPU seconds of the whole run, processes that it starts included; the least of some runs,
because whatever else the machine does only adds to it.

    HEDDLE_PREFIX=build/release bench/python/empty_tests.py [--tests 1000] [--runs 5]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PLUGIN = ["-p", "heddle.pytest_plugin"]
WAYS = {
    "none": [],
    "loaded, without --heddle": PLUGIN,
    "--heddle cpu:a100": [*PLUGIN, "--heddle", "cpu:a100"],
    "--heddle cpu:a100 --heddle-leaks": [*PLUGIN, "--heddle", "cpu:a100", "--heddle-leaks"],
}


def run_suite(folder, words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    env = {**os.environ, "PYTHONPATH": str(TOP / "python"), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words,
                           folder], env=env, capture_output=True, text=True, check=False)
    wall = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"the suite failed: {done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tests = "\n".join(f"def test_{i}():\n    pass\n" for i in range(options.tests))
        Path(folder, "test_empty.py").write_text(tests, encoding="utf-8")
        run_suite(folder, WAYS["none"])  # compiles the file
        times = {name: [] for name in WAYS}
        for _ in range(options.runs):  # in turn, so that a busy machine is busy for all
            for name, words in WAYS.items():
                times[name].append(run_suite(folder, words))
    base = min(times["none"])[0]
    print(f"{options.tests} empty tests, least of {options.runs} runs")
    print(f"{'plug-in':34} {'CPU s':>7} {'more':>7} {'wall s':>7}")
    for name, pairs in times.items():
        cpu = min(cpu for cpu, _ in pairs)
        wall = min(wall for _, wall in pairs)
        print(f"{name:34} {cpu:7.2f} {cpu - base:7.2f} {wall:7.2f}")


if __name__ == "__main__":
    main()
