#!/usr/bin/env python3
"""`heddle trace diff`: what it calls worse, and its exit codes.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch trace_diff.py [Case.test...]
"""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.trace_file import (  # noqa: E402
    DEVICE, HOST, begin, call, copy, gpu_sample, kernel, launch, linked, u32)
from trace_case import Case  # noqa: E402

T = 1_000_000_000
WORSE = 3


class Diff(Case):
    def trace(self, name, kernels, chain="trace>cpu", copied=4096, failed=0):
        """A file with one launch of each kernel: (name, ns)."""
        f = begin(chain=chain)
        f.records(1, [linked(launch(T + i * 1000, 5, 0), i + 1) for i in range(len(kernels))] +
                  [call(3, T, 5, u32(0), result=1) for _ in range(failed)])
        f.records(2, [kernel(k, T + i * 1000, ns, i + 1) for i, (k, ns) in enumerate(kernels)] +
                  [copy(T, 10, copied, HOST, DEVICE)])
        f.end()
        return self.write(f.data, name)

    def diff(self, a, b, *words, code):
        out, _ = self.run_it("diff", a, b, *words, code=code)
        d = json.loads(self.run_it("diff", a, b, "--json", *words, code=code)[0])
        self.assertEqual(d["worse"], code == WORSE)
        return out, d

    def test_the_same_is_not_worse(self):
        a = self.write(gpu_sample().data)
        out, d = self.diff(a, a, code=0)
        self.assertIn("the same kernels", out)
        self.assertEqual(d["kernels"], [])

    def test_more_launches(self):
        a = self.trace("a", [("k", 100)] * 10 + [("gone", 100)])
        b = self.trace("b", [("k", 100)] * 50 + [("new", 10)])
        out, d = self.diff(a, b, code=WORSE)
        self.assertIn("launches                11           51  +40\n", out)
        worse, better = out.split("worse in b\n")[1].split("better in b\n")
        self.assertIn("  40 launches more (10 -> 50): k\n", worse)
        self.assertIn("  1 launch more (0 -> 1): new\n", worse)
        self.assertIn("  1 launch fewer (1 -> 0): gone\n", better)
        self.assertEqual([(k["name"], k["count"]) for k in d["kernels"]],
                         [("k", [10, 50]), ("new", [0, 1]), ("gone", [1, 0])])
        self.diff(self.trace("c", [("k", 100)] * 3), self.trace("d", [("k", 100)] * 2), code=0)

    def test_slower_kernels(self):
        a = self.trace("a", [("_Z4fastv", 100)] * 4 + [("slow", 1000)] * 4)
        b = self.trace("b", [("_Z4fastv", 180)] * 4 + [("slow", 1000)] * 4)
        out, d = self.diff(a, b, code=WORSE)
        self.assertIn("  1.8x slower (median 100 ns -> 180 ns): fast\n", out)
        self.assertEqual([(k["slower"], k["p50_ns"]) for k in d["kernels"]], [(True, [100, 180])])
        self.assertIn("1.8x faster", self.diff(b, a, code=0)[0])
        self.diff(a, b, "--slower", "2", code=0)
        self.assertNotIn("slower", self.diff(a, b, "--counts", code=0)[0])

    def test_what_does_not_matter_is_not_slower(self):
        long = [("long", 1_000_000)]
        self.diff(self.trace("a", [("k", 100)] * 5 + long),
                  self.trace("b", [("k", 900)] * 5 + long), code=0)
        # One slow launch among many, such as the first one.
        self.diff(self.trace("a", [("k", 100)] * 5),
                  self.trace("b", [("k", 100)] * 4 + [("k", 9999)]), code=0)

    def test_times_of_different_sources_are_not_compared(self):
        a = self.trace("a", [("k", 100)])
        b = self.trace("b", [("k", 900)], chain="trace>gpu")
        out, d = self.diff(a, b, code=0)
        self.assertIn("times are not compared", out)
        self.assertFalse(d["times"])

    def test_more_bytes_or_failures_are_worse(self):
        a = self.trace("a", [("k", 100)])
        self.diff(a, self.trace("b", [("k", 100)], copied=4097), code=WORSE)
        self.diff(a, self.trace("c", [("k", 100)], failed=1), code=WORSE)

    def test_names_cannot_control_a_terminal(self):
        a = self.trace("a", [])
        b = self.trace("b", [("k\x1b[2J\u009b", 100)])
        out, _ = self.run_it("diff", a, b, code=WORSE)
        self.assertFalse(set(out) & set("\x1b\u009b"))

    def test_damage_and_missing_files(self):
        a = self.trace("a", [("k", 100)])
        data = bytearray(Path(a).read_bytes())
        data[-60] ^= 1
        b = self.write(bytes(data), "b")
        _, err = self.run_it("diff", a, b, code=1)
        self.assertIn("damaged", err)
        self.run_it("diff", a, self.path("none"), code=1)
        self.run_it("diff", a, code=2)
        self.run_it("diff", a, a, a, code=2)
        self.run_it("diff", a, a, "--slower", "1", code=2)


if __name__ == "__main__":
    unittest.main()
