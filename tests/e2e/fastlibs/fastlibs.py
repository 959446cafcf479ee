#!/usr/bin/env python3
"""heddle run --fast-libs: who answers what cuBLAS is asked for, and what is said at the end.

    HED_BUILD=build/dev HED_ASKS=... HED_LIBRARIES=... tests/e2e/fastlibs/fastlibs.py [CASE...]
"""

import os
from pathlib import Path
import subprocess
import sys
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

HEDDLE = os.path.join(os.path.abspath(os.environ.get("HED_BUILD", "build/dev")), "bin", "heddle")
ASKS, LIBRARIES = os.environ["HED_ASKS"], os.environ["HED_LIBRARIES"]

ANSWERED = """plain: 0 4
added: 0 8
without a handle: 99 8
of no rows: 99 8
behind the allocation: 99 8
factors on the device: 99 8
with an order of sums: 99 8
times 0: 99 8
captured: 99 8
matmul with a bias: 0 5
matmul without counters: 0 5
matmul with counters: 99 5
matmul without counters: 0 5
matmul with counters: 99 5
matmul with more than the CPU has: 99 5
convolution: 0 2
convolution, turned around: 97 2
convolution, two operations: 97 2
convolution, unknown plan: 97 2
convolution, another one's place: 97 2
convolution, behind the allocation: 97 2
to data: 0 4
to filter: 0 32
of a plug-in: 0 4
of a plug-in, factors on the device: 98 4
"""

SAID = ("OpenBLAS 9.8.7 computed 6 matrix products and 3 convolutions, 13 were left to kernels: "
        "8 of other types or kinds, 2 with factors in the GPU's memory, "
        "1 captured into graphs, 2 with operands outside of the GPU's allocations\n")


def run(*options, how=(), **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    env |= {"HEDDLE_CONFIG": "", "LD_LIBRARY_PATH": LIBRARIES, **more}
    program = [ASKS, f"{LIBRARIES}/e2e_fastlibs_plugin.so", *how]
    return subprocess.run([HEDDLE, "run", *options, "--", *program], env=env,
                          capture_output=True, text=True, timeout=PATIENCE)


class FastLibs(unittest.TestCase):
    def test_answers(self):
        r = run("--gpu", "cpu:a100", "--fast-libs")
        self.assertEqual((r.returncode, r.stdout), (0, ANSWERED), r.stderr)
        self.assertTrue(r.stderr.endswith(SAID), r.stderr)
        self.assertEqual(r.stderr.count("\n"), 1)

    def test_off(self):
        r = run("--gpu", "cpu:a100")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertNotIn(": 0 ", r.stdout)
        self.assertEqual(r.stderr, "")

    def test_setting(self):
        r = run("--gpu", "cpu:a100", "--set", "fast_libs=yes")
        self.assertEqual((r.returncode, r.stdout), (0, ANSWERED), r.stderr)

    def end(self, how):
        """The program ends while the first of two products is being computed."""
        r = run("--gpu", "cpu:a100", "--fast-libs", how=(how,), PLAYED_SLOW="yes")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("computed 2 matrix products", r.stderr)
        return r.stdout

    def test_no_product_is_computed_after_the_librarys_end(self):
        self.assertEqual(self.end("end"), "")

    def test_an_exit_handler_may_wait_for_products(self):
        self.assertEqual(self.end("wait"), "at the end: 0 8\n")

    def test_a_forked_child_ends_without_the_parents_products(self):
        self.assertEqual(self.end("fork"), "")

    def test_other_gpu(self):
        for options in (("--gpu", "null"), ("--gpu", "unix:/nowhere"),
                        ("--gpu", "cpu", "--no-preload")):
            r = run(*options, "--fast-libs")
            self.assertEqual(r.returncode, 2, r.stderr)
            self.assertIn("--fast-libs", r.stderr)
            self.assertEqual(r.stderr.count("\n"), 1)

    def test_inner_run_has_the_last_word(self):
        env = {**os.environ, "HEDDLE_CONFIG": "", "LD_LIBRARY_PATH": LIBRARIES}
        r = subprocess.run([HEDDLE, "run", "--gpu", "cpu:a100", "--fast-libs", "--",
                            HEDDLE, "run", "--set", "fast_libs=no", "--",
                            "sh", "-c", "echo $LD_PRELOAD"],
                           env=env, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertNotIn("fast-libs", r.stdout)

    def test_preloaded_elsewhere(self):
        """The library answers nothing where the GPU's memory is not this process's."""
        plain = run("--gpu", "cpu:a100", "--fast-libs")
        self.assertIn("plain: 0", plain.stdout)
        library = os.path.join(os.path.dirname(HEDDLE), "..", "lib", "heddle",
                               "libheddle-fast-libs.so")
        r = run("--gpu", "null", LD_PRELOAD=os.path.abspath(library))
        self.assertNotIn(": 0 ", r.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
