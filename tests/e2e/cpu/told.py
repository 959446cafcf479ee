#!/usr/bin/env python3
"""A trace on the CPU GPU tells what ran there: with names, times, and the calls it came from.

    HED_BUILD=build/dev HED_TOLD=.../e2e_cpu_told told.py [Told.test...]
"""

import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

HEDDLE = os.path.join(os.environ.get("HED_BUILD", "build/dev"), "bin", "heddle")
TOLD = os.environ["HED_TOLD"]
SCALE = "_Z5scaleIfEvPT_i"


class Told(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.trace = os.path.join(scratch.name, "told.hed")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
        self.env |= {"HEDDLE_CONFIG": "", "HEDDLE_CACHE_SIZE": "0", "HED_LIBCUDA": "libcuda.so.1"}

    def heddle(self, *words):
        r = subprocess.run([HEDDLE, *words], env=self.env, timeout=PATIENCE, text=True,
                           capture_output=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def run_it(self, *options, words=()):
        self.heddle("run", "--gpu", "cpu", "--trace", self.trace, *options, "--", TOLD, *words)
        lines = self.heddle("trace", "show", "--json", self.trace).splitlines()
        records = [json.loads(line) for line in lines][1:]
        self.calls = {r["correlation"]: r for r in records
                      if r["kind"] == "call" and "correlation" in r}
        self.ran = [r for r in records if r["kind"] == "activity"]

    def of(self, kind, call):
        """What ran of a kind, and comes from calls of a name."""
        return [r for r in self.ran if r["activity"] == kind and
                self.calls.get(r["correlation"], {}).get("name", "").startswith(call)]

    def test_everything_is_told_with_its_call(self):
        self.run_it()
        launched = self.of("kernel", "cuLaunchKernel")
        self.assertEqual([k["name"] for k in launched], [SCALE] * 6)
        self.assertEqual({k["readable"] for k in launched}, {"scale<float>"})
        first = launched[0]
        self.assertEqual((first["grid"], first["block"]), ([2, 1, 1], [16, 1, 1]))
        self.assertEqual((first["static_shared"], first["dynamic_shared"]), (64, 128))
        self.assertNotEqual(launched[0]["stream"], launched[5]["stream"])
        # A graph's kernels come from its launch, three each.
        of_graph = self.of("kernel", "cuGraphLaunch")
        self.assertEqual(len(of_graph), 6)
        self.assertEqual(len({k["correlation"] for k in of_graph}), 2)
        self.assertEqual([(c["from"], c["to"], c["bytes"]) for c in self.of("copy", "cuMemcpy")],
                         [("device", "pinned", 4096), ("host", "device", 4096),
                          ("device", "host", 4096)])
        fills = self.of("fill", "cuMemsetD32Async")
        self.assertEqual([(f["to"], f["bytes"]) for f in fills], [("device", 4096)])
        functions = self.of("other", "cuLaunchHostFunc")
        self.assertEqual([f["name"] for f in functions], ["host function"])
        self.assertEqual(len(self.ran), 6 + 6 + 3 + 1 + 1)

    def test_nothing_runs_before_its_call(self):
        self.run_it()
        for r in self.ran:
            self.assertGreaterEqual(r["time_ns"], self.calls[r["correlation"]]["time_ns"])
        times = [r["time_ns"] for r in self.of("kernel", "cuLaunchKernel")]
        self.assertEqual(times, sorted(times))

    def test_what_fails_is_told_too(self):
        self.run_it(words=["trap"])
        self.assertIn("traps", [r["name"] for r in self.ran if r["activity"] == "kernel"])

    def test_deferred_work_has_no_call(self):
        self.run_it("--sched", "mode=record")
        self.assertEqual(len([r for r in self.ran if r["activity"] == "kernel"]), 12)

    def test_summary_and_timeline(self):
        self.run_it()
        out = self.heddle("trace", "summary", self.trace)
        self.assertIn("12 kernels, 3 copies, 1 fill, 1 other", out)
        self.assertIn("  scale<float>\n", out)
        self.heddle("trace", "export", "--chrome", self.trace)
        with open(self.trace + ".json", encoding="utf-8") as f:
            events = json.load(f)
        events = events["traceEvents"] if isinstance(events, dict) else events
        slices = [e for e in events if e.get("ph") == "X" and e.get("cat") == "kernel"]
        self.assertEqual([e["name"] for e in slices], ["scale<float>"] * 12)
        self.assertEqual({e["args"]["symbol"] for e in slices}, {SCALE})


if __name__ == "__main__":
    unittest.main(verbosity=2)
