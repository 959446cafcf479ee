#!/usr/bin/env python3
"""Says what the workers of a server do in their sandbox, and what they were refused, from a log of

    strace -f --decode-pids=pidns -o LOG heddled --gpu gpu ...

    tools/sandbox_calls.py [--all] LOG

Prints a line for each system call that was refused to a worker after its list of calls was applied
(src/remote/server/sandbox/calls.c), with how often, the error, and an example; the same for signals
that ended one. With --all, all calls, paths and device commands of workers. A refusal is no mistake
as such: libraries try much and do without.
"""

import argparse
import collections
import re

REFUSED = {"ENOSYS", "EPERM", "EACCES", "ENOTTY"}
LINE = re.compile(r"(\d+)\s+(.*)")
RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\w+)(?: (E[A-Z]+))?(.*)")


def whole_calls(lines):
    """The calls of a log as (process, text); those that strace wrote in two parts are joined."""
    begun = {}
    for line in lines:
        m = LINE.match(line)
        if not m:
            continue
        pid, text = m.groups()
        if text.endswith("<unfinished ...>"):
            begun[pid] = text.removesuffix("<unfinished ...>").rstrip()
        elif RESUMED.match(text):
            yield pid, begun.pop(pid, "") + RESUMED.sub("", text)
        else:
            yield pid, text


def confined_calls(lines):
    """The calls of processes, and of threads made by them, that have applied a filter."""
    confined = set()
    for pid, text in whole_calls(lines):
        m = CALL.match(text)
        if not m and pid in confined and "killed by" in text:
            yield text.strip("+ "), "", "killed"
        if not m:
            continue
        name, arguments, result, error, rest = m.groups()
        if pid in confined:
            yield name, arguments, error or ""
        if name == "seccomp" and "SECCOMP_SET_MODE_FILTER" in arguments and result == "0":
            confined.add(pid)
        elif name in ("clone", "clone3") and pid in confined and not error:
            known = re.search(r"(\d+) in strace's PID NS", rest)
            confined.add(known[1] if known else result)


def count_calls(lines, everything):
    counts = collections.Counter()
    examples = {}
    for name, arguments, error in confined_calls(lines):
        what = name
        if everything:
            path = re.search(r'"([^"]*)"', arguments)
            if name == "ioctl":
                request = re.match(r"[^,]*, (_IOC\([^)]*\)|[^,]*)", arguments)
                what += " " + (request[1] if request else "?")
            elif path and "/" in path[1]:
                what += " " + re.sub(r"\d{3,}|[0-9a-f]{16,}", "N", path[1])
        elif error not in REFUSED | {"killed"}:
            continue
        counts[what, error] += 1
        examples.setdefault((what, error), arguments)
    return [(n, what, error, examples[what, error]) for (what, error), n in sorted(counts.items())]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--all", action="store_true", help="not only what was refused")
    p.add_argument("log")
    options = p.parse_args()
    with open(options.log, encoding="utf-8", errors="replace") as f:
        for n, what, error, example in count_calls(f, options.all):
            print(f"{n:6} {what} {error} {'' if options.all else example[:90]}".rstrip())


if __name__ == "__main__":
    main()
