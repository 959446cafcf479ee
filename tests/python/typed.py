#!/usr/bin/env python3
"""The package's types are complete: mypy --strict accepts it, and a program that uses it."""

import os
import subprocess

from programs import PATIENCE, Programs, main, python_with

import heddle

PROGRAM = """
import heddle
heddle.use("cpu:a100x8", mem="4G", children=False, lift=True)
names: list[str] = [device.name for device in heddle.devices()]
launches: int = heddle.stats().launches
layers: list[str] = heddle.chain()
with heddle.trace("t.hed") as trace:
    path: str = trace.path
with heddle.fail("cuMemAlloc", after=3, error="OUT_OF_MEMORY") as failure:
    count: int = failure.count
heddle.snapshot("app.snap")
"""


class Typed(Programs):
    def mypy(self, *files):
        return subprocess.run([python_with("mypy"), "-m", "mypy", "--strict", "--cache-dir",
                               os.path.join(self.folder, "cache"), *files], capture_output=True,
                              text=True, check=False, cwd=self.folder, timeout=PATIENCE)

    def test_the_package_is_typed(self):
        folder = os.path.dirname(heddle.__file__)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))
        words = [] if python_with("pytest") == python_with("mypy") else ["--ignore-missing-imports"]
        done = self.mypy(*words, folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_programs_can_be_checked(self):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        done = self.mypy(path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(path, "a", encoding="utf-8") as file:
            file.write("heddle.fail('cuInit', after='x')\nheddle.stats().lunches\n")
        done = self.mypy(path)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("Found 2 errors", done.stdout)


if __name__ == "__main__":
    main("mypy", "pip install mypy")
