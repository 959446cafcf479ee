"""Shared by the tests of `heddle trace`: files in a scratch folder, running the command, and checks
that every export must pass."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

HEDDLE = os.path.join(os.environ.get("HED_BUILD", ""), "bin", "heddle")


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, data, name="a.trace"):
        Path(self.path(name)).write_bytes(data)
        return self.path(name)

    def run_it(self, *words, code=0, **env):
        """(stdout, stderr) of heddle trace; the exit code is checked."""
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        environment.update(TZ="UTC", **env)
        p = subprocess.run([HEDDLE, "trace", *words], capture_output=True, text=True,
                           env=environment, timeout=PATIENCE)
        self.assertEqual(p.returncode, code, f"{words}\n{p.stdout}\n{p.stderr}")
        return p.stdout, p.stderr

    def run_any(self, *words):
        """The same for a file that may be damaged. The command must not be killed by a signal."""
        p = subprocess.run([HEDDLE, "trace", *words], capture_output=True, text=True,
                           timeout=PATIENCE)
        self.assertIn(p.returncode, (0, 1), f"{words}\n{p.stdout}\n{p.stderr}")
        return p.stdout, p.stderr

    def lines(self, *words, **more):
        """The lines of show without the first one, which describes the trace."""
        return self.run_it("show", *words, **more)[0].splitlines()[1:]


class ExportCase(Case):
    def export(self, data):
        path = self.write(data)
        self.run_it("export", "--chrome", path)
        return json.loads(Path(path + ".json").read_text())["traceEvents"]

    def check(self, events):
        """Checks that every export must pass."""
        names, flows, depth = {}, {}, {}
        for e in events:
            self.assertIn("pid", e)
            self.assertIn("tid", e)
            track = (e["pid"], e["tid"])
            if e["ph"] == "M":
                names[(e["name"], *track)] = e["args"]
                continue
            self.assertGreaterEqual(e["ts"], 0)
            self.assertIn(("thread_name", *track), names, "a track is named before it is used")
            if e["ph"] == "X":
                self.assertGreaterEqual(e["dur"], 0)
                self.assertTrue(e["name"] and e["cat"])
            elif e["ph"] in "sf":
                flows.setdefault(e["id"], []).append(e)
            elif e["ph"] in "BE":
                depth[track] = depth.get(track, 0) + (1 if e["ph"] == "B" else -1)
                self.assertGreaterEqual(depth[track], 0)
        self.assertTrue(all(d == 0 for d in depth.values()))
        self.check_nesting(events)
        self.check_flows(events, flows)
        return names

    def check_nesting(self, events):
        """Slices of a track lie beside or inside each other."""
        tracks = {}
        for e in events:
            if e["ph"] == "X":
                tracks.setdefault((e["pid"], e["tid"]), []).append(
                    (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)))
        for slices in tracks.values():
            stack = []
            for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
                while stack and stack[-1] <= start:
                    stack.pop()
                self.assertTrue(not stack or end <= stack[-1])
                stack.append(end)

    def check_flows(self, events, flows):
        """Arrows go from slice to slice, and not back in time."""
        slices = {}
        for e in events:
            if e["ph"] == "X":
                slices.setdefault((e["pid"], e["tid"]), []).append(
                    (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)))
        for first, last in flows.values():
            self.assertEqual((first["ph"], last["ph"], last["bp"]), ("s", "f", "e"))
            self.assertEqual((first["cat"], first["name"]), (last["cat"], last["name"]))
            self.assertLessEqual(first["ts"], last["ts"])
            for e in (first, last):
                at = round(e["ts"] * 1000)
                self.assertTrue(any(start <= at <= end for start, end
                                    in slices.get((e["pid"], e["tid"]), [])), e)
