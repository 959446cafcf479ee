#!/usr/bin/env python3
"""Reads a trace of heddle and reports what it says about copies: how many, how large, how fast, and which
calls failed.

    heddle run --trace app.hed -- ./app
    report.py app.hed

`heddle trace show --json` prints one JSON object per line: a head ("kind": "trace"), then one for each call,
range and mark, in the order of their times.
"""

import collections
import json
import os
import subprocess
import sys

HEDDLE = os.environ.get("HEDDLE", "heddle")


def read(path):
    """The records of a trace, one at a time: it need not fit into memory."""
    with subprocess.Popen([HEDDLE, "trace", "show", "--json", path], stdout=subprocess.PIPE,
                          text=True) as reader:
        for line in reader.stdout:
            yield json.loads(line)
    if reader.returncode:
        sys.exit(reader.returncode)


def main(path):
    copies = collections.defaultdict(lambda: [0, 0, 0])  # name: calls, bytes, ns
    failed = collections.Counter()
    calls = 0
    for record in read(path):
        if record["kind"] == "trace":
            print(f"{record['program']} on {record['chain'].split('>')[-1]}")
        if record["kind"] != "call":
            continue
        calls += 1
        if record["result"]:
            failed[f"{record['name']}: {record['result_name']}"] += 1
        size = record.get("args", {}).get("in", {}).get("ByteCount")
        if size is not None:
            entry = copies[record["name"]]
            entry[0] += 1
            entry[1] += size
            entry[2] += record["duration_ns"]
    print(f"{calls} calls, {sum(failed.values())} failed")
    for name, (count, size, ns) in sorted(copies.items(), key=lambda item: -item[1][1]):
        print(f"{name:24} {count:6} copies {size:12} bytes {size / max(ns, 1):8.2f} GB/s")
    for name, count in failed.most_common():
        print(f"{count:6} times {name}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
