#!/usr/bin/env python3
"""Shows what the tests cost, in processor time.

    HED_TEST_COSTS=$PWD/costs ctest --preset dev
    tools/test_costs.py costs [--most 60]

Prints the sum, the most expensive cases, the sums by kind, and the cases that cost more than --most
seconds and are not labelled `long`; if there are such cases, the exit status is 1.
"""

import argparse
import collections
import json
import subprocess
import sys


def read_costs(path):
    """{case: seconds}; the newest line of a case counts."""
    costs = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            seconds, _, name = line.strip().partition(" ")
            costs[name] = float(seconds)
    return costs


def long_cases(build):
    """The names of the cases with the label `long`."""
    out = subprocess.run(["ctest", "--test-dir", build, "-L", "^long$", "--show-only=json-v1"],
                         capture_output=True, text=True, check=True).stdout
    return {test["name"] for test in json.loads(out)["tests"]}


def too_expensive(costs, long, most):
    return sorted((n for n, s in costs.items() if s > most and n not in long),
                  key=lambda n: -costs[n])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("costs")
    parser.add_argument("--build", default="build/dev", help="the build folder (%(default)s)")
    parser.add_argument("--most", type=float, default=60, help="seconds of a case (%(default)s)")
    args = parser.parse_args()
    costs, long = read_costs(args.costs), long_cases(args.build)
    short = sum(s for n, s in costs.items() if n not in long)
    print(f"{len(costs)} cases, {sum(costs.values()):.0f} s; "
          f"{len(costs.keys() - long)} without the label long, {short:.0f} s")
    for name in sorted(costs, key=lambda n: -costs[n])[:25]:
        print(f"{costs[name]:8.1f}  {name}{' (long)' if name in long else ''}")
    kinds = collections.Counter()
    for name, seconds in costs.items():
        kinds[name.split(".")[0]] += seconds
    print(", ".join(f"{kind} {seconds:.0f}" for kind, seconds in kinds.most_common()))
    bad = too_expensive(costs, long, args.most)
    for name in bad:
        print(f"{name}: {costs[name]:.1f} s, more than {args.most:g} "
              "(add it to tests/long.txt, or split it)")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
