#!/usr/bin/env python3
"""The `heddle` that a wheel puts beside pip: it finds the package, wherever pip has put it.

    HED_COMMAND=build/dev/src/cli/wheel/heddle HED_SCRATCH=/tmp/scratch wheel.py [Case.test...]
"""

import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

COMMAND = os.environ["HED_COMMAND"]
REAL = "heddle/_native/bin/heddle"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))
        self.addCleanup(shutil.rmtree, folder)
        self.top = Path(folder) / "an [odd] name*"
        self.command = self.top / "bin/heddle"
        self.command.parent.mkdir(parents=True)
        shutil.copy(COMMAND, self.command)

    def package(self, folder, text):
        """Installs a command that says `text` and its arguments, and ends with 7."""
        path = self.top / folder / REAL
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' {text} \"$@\"\nexit 7\n")
        path.chmod(0o755)
        return path

    def run_command(self, *arguments, command=None):
        r = subprocess.run([command or self.command, *arguments], capture_output=True, text=True,
                           timeout=PATIENCE, env={})
        return r.returncode, r.stdout, r.stderr


class Finds(Case):
    def test_the_package_wherever_pip_puts_it(self):
        for folder in ("lib/python3.11/site-packages", "lib64/python3.9/site-packages",
                       "lib/python3/dist-packages", "lib/python3.13t/site-packages",
                       "lib/pypy3.10/site-packages", "."):
            with self.subTest(folder):
                package = self.package(folder, "here")
                self.assertEqual(self.run_command("run", "a b", ""), (7, "here\nrun\na b\n\n", ""))
                shutil.rmtree(package.parents[2])

    def test_that_of_the_newest_python(self):
        for version in ("3.9", "3.12", "3.10"):
            self.package(f"lib/python{version}/site-packages", version)
        (self.top / "lib/python3.14/site-packages").mkdir(parents=True) # without the package
        self.assertEqual(self.run_command()[1], "3.12\n")

    def test_it_through_a_link(self):
        self.package("lib/python3.11/site-packages", "here")
        link = self.top / "elsewhere/heddle"
        link.parent.mkdir()
        link.symlink_to(self.command)
        self.assertEqual(self.run_command(command=link)[1], "here\n")


class Says(Case):
    def test_that_the_package_is_missing(self):
        self.assertEqual(self.run_command("version"), (
            127, "", f"heddle: the Python package heddle-cuda is not in {self.top}; install it "
                     "again: pip install --force-reinstall heddle-cuda\n"))

    def test_that_the_command_cannot_be_started(self):
        path = self.package("lib/python3.11/site-packages", "here")
        path.chmod(0o644)
        self.assertEqual(self.run_command(),
                         (126, "", f"heddle: {path}: Permission denied\n"))

    def test_that_its_own_folder_is_too_deep(self):
        self.package("lib/python3.11/site-packages", "here")
        deep = self.top
        try:
            while len(str(deep)) < 4000:
                deep = deep / ("d" * 200)
                deep.mkdir()
            (deep / "bin").mkdir()
            shutil.copy(COMMAND, deep / "bin/heddle")
        except OSError:
            self.skipTest("no path is that long here")
        code, _, err = self.run_command(command=deep / "bin/heddle")
        self.assertEqual(code, 127)
        self.assertEqual(err.count("\n"), 1, err)


if __name__ == "__main__":
    unittest.main()
