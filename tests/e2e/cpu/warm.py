#!/usr/bin/env python3
"""`heddle cpu warm`: kernels are compiled before they are needed.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch tests/e2e/cpu/warm.py [CASE...]
"""

import os
from pathlib import Path
import subprocess
import sys
import unittest

from after import HEDDLE, PATIENCE, PROGRAM, Case


class Warm(Case):
    NAMES = ("a", "b", "c")

    def warm(self, *words, code=0, says=(), **env):
        env = self.environment(HEDDLE_LOG="", HEDDLE_CPU_AFTER="off", **env)
        del env["LD_LIBRARY_PATH"]
        p = subprocess.run([HEDDLE, "cpu", "warm", *map(str, words)], capture_output=True,
                           text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, env=env)
        self.assertEqual(p.returncode, code, f"{words}\n{p.stdout}\n{p.stderr}")
        for text in says:
            self.assertIn(text, p.stderr)
        return p

    def expect_all_there(self, path, **env):
        p = self.start(path, *self.NAMES, **env)
        self.wait_for(p, *(f"kernel {n} found in the cache" for n in self.NAMES))
        self.end(p)
        self.assertEqual(self.compiled(p), [])


class OfAProgram(Warm):
    # Ends when all of its kernels are hot, and at once: its standard input is empty.
    def hot(self, path, *, then="sys.exit(5)"):
        program = PROGRAM.replace("while not select.select([sys.stdin], [], [], 0)[0]:",
                                  "for _ in range(1000):") + then
        return sys.executable, "-c", program, path, *self.NAMES

    def test_what_was_hot_is_there_when_it_returns(self):
        path = self.write(600, *self.NAMES)
        p = self.warm("--", *self.hot(path), code=5, says=["3 kernels were compiled"])
        for n in self.NAMES:
            self.assertIn(f"compiled {n} in", p.stderr)
        self.assertEqual(len(self.entries()), 3)
        self.expect_all_there(path)

    def test_its_children_are_waited_for(self):
        path = self.write(300, *self.NAMES)
        run = ("import subprocess, sys\n"
               f"subprocess.run({self.hot(path)!r})")
        self.warm("--", sys.executable, "-c", run, says=["3 kernels were compiled"])
        self.expect_all_there(path)

    def test_a_second_time_nothing_is_left_to_do(self):
        path = self.write(100, *self.NAMES)
        self.warm("--", *self.hot(path, then=""), says=["3 kernels were compiled"])
        self.warm("--", *self.hot(path, then=""), says=["there is no new kernel"])

    def test_a_program_that_is_not_there(self):
        self.warm("--", "/nowhere/program", code=127, says=["there is no new kernel"])


class OfFiles(Warm):
    def test_the_kernels_of_a_file_are_there_for_programs(self):
        path = self.write(50, *self.NAMES)
        self.warm("--lib", path, says=["3 kernels"])
        self.assertEqual(len(self.entries()), 3)
        self.expect_all_there(path)

    def test_some_kernels_are_chosen(self):
        path = self.write(50, "first", "second", "third", "fourth")
        self.warm("--match", "ir", "--lib", path)
        self.assertEqual(len(self.entries()), 2)
        self.warm("--most", 3, "--lib", path, says=["a limit was reached"])
        self.assertLessEqual(len(self.entries()), 4)

    def test_files_without_kernels_are_named(self):
        path = os.path.join(self.dir, "text")
        Path(path).write_text("nothing")
        self.warm("--lib", path, code=1, says=["no GPU code", path])
        self.warm("--lib", "/nowhere", code=1, says=["/nowhere"])

    def test_wrong_words_are_named(self):
        self.warm(code=2, says=["no program and no file"])
        self.warm("--most", "0", "--", "x", code=2, says=["--most '0' is not 1 to 1000"])
        self.warm("--match", "x", "--", "x", code=2, says=["--match is for --lib"])
        self.warm("--gpu", "gpu", "--", "x", code=2, says=["is not the CPU"])
        self.warm("--", "x", code=1, says=["no cache"], HEDDLE_CACHE_SIZE="0")


if __name__ == "__main__":
    unittest.main()
