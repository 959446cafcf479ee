"""The script that asks PyTorch's database of operators, with a worker that is not PyTorch."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import opdb

# What the worker does about the operators of these names.
WORKER = """#!{python}
import json, os, sys, time
print("NAMES " + json.dumps(["good", "crash", "hang", "wrong", "random", "refused"]), flush=True)
for line in sys.stdin:
    n = int(line)
    if n == 1:
        os.abort()
    if n == 2:
        time.sleep(600)
    if n == 5:
        print("heddle[7] error driver: BAD: 'X' at 0x10 (sm_80): kernel f<int> cannot run here.",
              file=sys.stderr, flush=True)
    answer = {{3: ["differs", "1 of 2"], 4: ["left out", "random"], 5: ["failed", "no image"]}}
    print("noise\\nANSWER " + json.dumps(answer.get(n, ["agrees", ""])), flush=True)
"""


class Workers(unittest.TestCase):
    def test_each_operator_has_an_outcome_whatever_becomes_of_the_worker(self):
        with tempfile.TemporaryDirectory() as folder:
            worker, out = Path(folder, "python"), Path(folder, "out.json")
            worker.write_text(WORKER.format(python=sys.executable))
            worker.chmod(0o755)
            command = [sys.executable, "-B", opdb.__file__, "--gpu", "none", "--python", worker,
                       "--limit", "2", "--workers", "2", "--logs", folder, "--json", out]
            end = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(end.returncode, 1, end.stderr)
            self.assertIn("1 of 5 operators agree (20.0 %)", end.stdout)
            results = {r["operator"]: r for r in map(json.loads, out.read_text().splitlines())}
            outcomes = {name: r["outcome"] for name, r in results.items()}
            self.assertEqual(outcomes, {"good": "agrees", "crash": "crashed", "hang": "slow",
                                        "wrong": "differs", "random": "left out",
                                        "refused": "refused"})
            self.assertEqual(results["crash"]["reason"], "SIGABRT")
            self.assertEqual(results["refused"]["reason"], "BAD: 'X' at 0x10 | f<int>")
            # What is known already is not asked again.
            again = subprocess.run([*command, "--only", "good|wrong"], capture_output=True,
                                   text=True)
            self.assertNotIn(" s  ", again.stdout)
            self.assertIn("1 of 5 operators agree", again.stdout)


class Reasons(unittest.TestCase):
    def test_a_result_is_not_explained_by_what_heddle_said(self):
        said = "heddle[7] error driver: a fault\n"
        self.assertEqual(opdb.explain("differs", "x", said), ("differs", "x"))
        self.assertEqual(opdb.explain("crashed", "SIGSEGV", said),
                         ("crashed", "a fault | SIGSEGV"))


if __name__ == "__main__":
    os.chdir(tempfile.gettempdir())
    unittest.main()
