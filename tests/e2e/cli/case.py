"""Shared by the tests of the heddle command: runs it in a scratch folder, with a known
environment."""

import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.meeting import meetings  # noqa: E402,F401
from harness.patience import PATIENCE  # noqa: E402

BUILD = os.environ.get("HED_BUILD", "")
SOURCE = str(Path(__file__).resolve().parents[3])
HEDDLE = os.path.join(BUILD, "bin", "heddle")
LIBDIR = os.path.join(os.path.realpath(BUILD), "lib", "heddle")
LIBRARIES = ["libheddle.so.0", "libcuda.so.1", "libnvidia-ml.so.1"]
COMMANDS = ["run", "serve", "sched", "trace", "cpu", "snap", "vm", "cert", "devices", "doctor",
            "version", "help"]
PARTS = {"trace": ["show", "summary", "export"], "cert": ["ca", "server", "client", "show"],
         "sched": ["list", "set", "pause", "resume", "release"],
         "fatbin": ["list", "extract", "info"], "cpu": ["explain", "warm", "cache"],
         "snap": ["list", "info", "verify", "prune", "compact"],
         "vm": ["qemu-args", "libvirt", "list"]}

# Libraries with a sanitizer inside cannot be preloaded into programs without it.
SANITIZED = bool(os.environ.get("HED_SANITIZE"))
RUN = ["run", "--no-preload"] if SANITIZED else ["run"]

HAVE_LIBRARIES = all(os.path.exists(os.path.join(LIBDIR, name)) for name in LIBRARIES)
needs_libraries = unittest.skipUnless(HAVE_LIBRARIES, f"no libraries in {LIBDIR}")

PYTHON = sys.executable
FAKE_DRIVER = os.environ.get("HED_FAKE_DRIVER", "")


def clean_environment(**more):
    """Our environment without variables that affect heddle, and with an empty home."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("HEDDLE_") and k not in ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT",
                                                        "XDG_CONFIG_HOME", "NO_COLOR",
                                                        "CUDA_VISIBLE_DEVICES")}
    env["HOME"] = os.environ["HED_SCRATCH"]
    # A test can preload something into heddle itself.
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    env.update(more)
    return env


def options_in(text):
    """The long options that a help text lists. It may mention options of other commands."""
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)", text, re.MULTILINE))


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ["HED_SCRATCH"])

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def subcommands(self):
        """All commands that have options, as lists of words."""
        have_fatbin = self.heddle("fatbin", "--help").returncode == 0  # comes with its libraries
        for command in COMMANDS + (["fatbin"] if have_fatbin else []):
            if command in PARTS:
                yield from ([command, part] for part in PARTS[command])
            elif command != "help":
                yield [command]

    def heddle(self, *args, env=None, cwd=None, **options):
        return subprocess.run([HEDDLE, *args], env=env or clean_environment(),
                              cwd=cwd or self.dir, capture_output=True, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, **options)

    def expect(self, code, *args, says=None, **options):
        """Runs heddle, and checks the exit code and a part of its standard error."""
        r = self.heddle(*args, **options)
        self.assertEqual(r.returncode, code, f"heddle {args}\n{r.stdout}{r.stderr}")
        if says is not None:
            self.assertIn(says, r.stderr)
        return r
