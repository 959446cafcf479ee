#!/usr/bin/env python3
"""A program with more rights than the user who starts it takes nothing from that user: no HEDDLE_*
variables and no settings file. Needs root, to make a setuid copy of a program."""

import os
import shutil
import subprocess
import sys
import unittest

from case import BUILD, PATIENCE, Case, clean_environment

NOBODY = 65534
PROGRAM = os.path.join(BUILD, "bin", "e2e_secure")


def run_as_nobody(command, env):
    return subprocess.run(command, env=env, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                          capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL)


class Secure(Case):
    def setUp(self):
        super().setUp()
        for folder in (os.environ["HED_SCRATCH"], self.dir):
            os.chmod(folder, 0o755)
        os.mkdir(self.path("roots"), 0o700)
        os.mkdir(self.path("nobodys"))
        os.chown(self.path("nobodys"), NOBODY, NOBODY)
        os.makedirs(self.path("settings", "heddle"))

    def setuid_copy(self):
        path = self.path("program")
        shutil.copy(PROGRAM, path)
        os.chown(path, 0, 0)
        os.chmod(path, 0o4755)
        r = run_as_nobody([path, "who"], {})
        if "real 65534 effective 0" not in r.stdout:
            self.skipTest(f"setuid has no effect here: {r.stdout}{r.stderr}")
        return path

    def environments(self, trace):
        """Each of the ways in which the user asks for a trace."""
        self.write("settings/heddle/heddle.conf", f"gpu = null\ntrace = {trace}\n")
        os.makedirs(self.path("home", ".config"), exist_ok=True)
        if not os.path.exists(self.path("home", ".config", "heddle")):
            shutil.copytree(self.path("settings", "heddle"), self.path("home", ".config", "heddle"))
        self.write("home/.config/heddle/heddle.conf", f"gpu = null\ntrace = {trace}\n")
        yield {"HEDDLE_GPU": "null", "HEDDLE_TRACE": trace}
        yield {"HEDDLE_CONFIG": self.path("settings", "heddle", "heddle.conf")}
        yield {"XDG_CONFIG_HOME": self.path("settings")}
        yield {"HOME": self.path("home")}

    def test_plain_program_obeys(self):
        """Shows that the next test would fail if the settings were obeyed."""
        trace = self.path("nobodys", "plain.hed")
        for env in self.environments(trace):
            r = run_as_nobody([PROGRAM], clean_environment(**env))
            self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
            self.assertTrue(os.path.exists(trace), env)
            os.unlink(trace)

    def test_setuid_program_does_not(self):
        program = self.setuid_copy()
        for folder in ("roots", "nobodys"):
            trace = self.path(folder, "secure.hed")
            for env in self.environments(trace):
                r = run_as_nobody([program], clean_environment(**env))
                self.assertIn("cuInit", r.stdout, r.stderr)
                self.assertFalse(os.path.exists(trace), env)

    def test_setuid_program_loads_no_driver_of_the_user(self):
        program = self.setuid_copy()
        env = clean_environment(HEDDLE_GPU="gpu", HEDDLE_DRIVER=self.path("evil.so"),
                                HEDDLE_NVML=self.path("evil.so"), HEDDLE_LOG="debug")
        r = run_as_nobody([program], env)
        self.assertIn("cuInit", r.stdout)
        self.assertNotIn("evil.so", r.stderr)
        self.assertIn("evil.so", run_as_nobody([PROGRAM], env).stderr)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("only root can make a setuid program")
        sys.exit(77)
    try:
        seen = run_as_nobody([PROGRAM, "who"], {}).returncode == 0
    except PermissionError:
        seen = False
    if not seen:
        print("other users cannot read the build folder")
        sys.exit(77)
    unittest.main()
