"""`heddle serve --drain`: programs go to another server while they run, and the empty one stops.

    drain.py      HED_BUILD: the build; HED_DRAIN: the program e2e_remote_drain
"""

import os
import subprocess
import sys
import unittest

from serve_case import HEDDLE, Case, Server, clean_environment

PROGRAM = os.environ.get("HED_DRAIN", "")


class Drain(Case):
    def server(self, name):
        os.makedirs(f"{self.dir}/{name}", exist_ok=True)
        return Server(self, listen=[f"shm:{self.dir}/{name}/s"], gpu="cpu:h200")

    def address(self, name):
        return f"shm:{self.dir}/{name}/s"

    def program(self, address):
        p = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=clean_environment(HEDDLE_GPU=address,
                                                   HED_LIBCUDA=os.environ["HED_LIBCUDA"]))
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def drain(self, *words):
        return subprocess.run([HEDDLE, "serve", "--drain", *words], env=clean_environment(),
                              capture_output=True, text=True)

    def test_programs_go_on_elsewhere(self):
        old, _ = self.server("a"), self.server("b")
        programs = [self.program(self.address("a")) for _ in range(2)]
        r = self.drain("--to", self.address("b"), "--listen", self.address("a"))
        self.assertEqual(r.returncode, 0, r.stderr + old.log())
        self.assertEqual(r.stdout.count("goes on at"), 2, r.stdout)
        self.assertEqual(old.process.wait(), 0)
        for p in programs:
            self.assertEqual(p.communicate("\n")[0], "good\n")
            self.assertEqual(p.returncode, 0)

    def test_a_server_that_is_not_empty_goes_on(self):
        old = self.server("a")
        program = self.program(self.address("a"))
        r = self.drain("--to", f"shm:{self.dir}/nobody", "--listen", self.address("a"))
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("was not moved", r.stderr)
        self.assertIn("still has clients", r.stderr)
        self.assertIsNone(old.process.poll())
        self.assertEqual(program.communicate("\n")[0], "good\n")

    def test_words_that_do_not_go_together(self):
        self.assertEqual(self.drain().returncode, 2)
        self.assertEqual(self.drain("--to", "nowhere").returncode, 2)
        r = subprocess.run([HEDDLE, "serve", "--to", "shm:/x"], env=clean_environment(),
                           capture_output=True, text=True)
        self.assertEqual(r.returncode, 2)


if __name__ == "__main__":
    sys.exit(unittest.main())
