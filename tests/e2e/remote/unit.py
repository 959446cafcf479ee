#!/usr/bin/env python3
"""The unit heddled.service: systemd finds no mistake in it, it exposes little, and a server works
with what it leaves of capabilities and system calls. No systemd has to run here.

    HED_BUILD=build/dev HED_UNIT=build/dev/src/remote/server/heddled.service unit.py [Case.test...]
"""

import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from serve_case import (  # noqa: E402
    HEDDLE, HEDDLED, PATIENCE, ROOT, Case, Server, clean_environment)

UNIT = os.environ.get("HED_UNIT", "")
ANALYZE = shutil.which("systemd-analyze")
MOST = "4.0"  # exposure; docs/security.md has the figure
# Programs of one group of calls each; what systemd allows is a list of groups and calls.
ALLOW, EPERM = 0x7fff0000, 0x00050001
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)


def values(key):
    """The words of all lines `key=` of the unit."""
    with open(UNIT, encoding="utf-8") as f:
        lines = [line.split("=", 1) for line in f if line.startswith(key + "=")]
    return [word for _, text in lines for word in text.split()]


def groups():
    """systemd's groups of system calls, as it lists them."""
    found, name = {}, None
    for line in run(ANALYZE, "syscall-filter", "--no-pager").stdout.splitlines():
        word = line.strip()
        if line.startswith("@"):
            name = found.setdefault(word, [])
        elif word and not word.startswith("#") and name is not None:
            name.append(word)
    return found


def allowed_calls():
    known, todo, names = groups(), values("SystemCallFilter") + ["@default"], set()
    while todo:
        word = todo.pop()
        if word.startswith("@"):
            todo += known.pop(word, [])
        else:
            names.add(word)
    text = run("cc", "-dM", "-E", "-include", "sys/syscall.h", "-x", "c", "/dev/null").stdout
    macros = dict(re.findall(r"#define (__NR\w+) (\w+)", text))

    def number(name):
        value = macros.get(name)
        return number(value) if value and not value.isdigit() else value
    found = {number("__NR_" + n) for n in names}
    return sorted(int(n) for n in found if n)


def filter_calls(numbers):
    """From now on, other system calls fail with EPERM, in this process and its children."""
    code = [(LOAD, 0, 0, 0)]
    for n in numbers:
        code += [(EQUAL, 0, 1, n), (RETURN, 0, 0, ALLOW)]
    code.append((RETURN, 0, 0, EPERM))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code),
                                                      ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((38, 1, 0, 0, 0), (22, 2, ctypes.addressof(program), 0, 0)):
        if libc.prctl(*(ctypes.c_ulong(w) for w in words)) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


@unittest.skipUnless(ANALYZE, "needs systemd-analyze")
class Unit(Case):
    def copy(self):
        """The unit with a program and manual that are there."""
        path = os.path.join(self.dir, "heddled.service")
        with open(UNIT, encoding="utf-8") as f:
            text = re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={HEDDLED}", f.read())
        with open(path, "w", encoding="utf-8") as f:
            f.write(re.sub(r"(?m)^Documentation=.*\n", "", text))
        return path

    def test_systemd_finds_no_mistake(self):
        r = run(ANALYZE, "verify", self.copy())
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_it_exposes_little(self):
        r = run(ANALYZE, "security", "--offline=yes", "--no-pager", self.copy())
        if r.returncode and "offline" in r.stderr:
            self.skipTest("this systemd-analyze only looks at running services")
        level = re.search(r"Overall exposure level for \S+: ([\d.]+)", r.stdout)
        self.assertLessEqual(float(level.group(1)), float(MOST), r.stdout)

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_server_works_with_what_it_leaves(self):
        if not shutil.which("setpriv") or not shutil.which("cc"):
            self.skipTest("needs setpriv and cc")
        free = Server(self, gpu="null")
        free.stop()
        steps = re.search(r"sandbox: (.*)", free.log()).group(1)
        kept = [c.lower().removeprefix("cap_") for c in values("CapabilityBoundingSet")]
        self.assertIn("sys_admin", kept)
        # Python calls more than the server does, so that only the server is filtered.
        limits = ["setpriv", "--bounding-set", ",".join(["-all"] + [f"+{c}" for c in kept]),
                  "--inh-caps", "-all", sys.executable, "-c",
                  "import os, sys; sys.path.insert(0, sys.argv[1]); import unit; "
                  "unit.filter_calls(unit.allowed_calls()); os.execv(sys.argv[2], sys.argv[2:])",
                  os.path.dirname(os.path.abspath(__file__))]
        certs = os.path.join(self.dir, "certs")
        for words in (("ca", certs), ("server", certs, "--host", "127.0.0.1"),
                      ("client", certs, "--name", "a")):
            self.assertEqual(run(HEDDLE, "cert", *words).returncode, 0)
        server = Server(self, "--sandbox", "require", "--tls-ca", f"{certs}/ca.pem",
                        "--tls-cert", f"{certs}/server-127.0.0.1.pem",
                        "--tls-key", f"{certs}/server-127.0.0.1.key", gpu="cpu", before=limits,
                        listen=[f"shm:{self.dir}/s", "tcp://127.0.0.1:0"])
        self.assertIn(f"sandbox: {steps}\n", server.log() + "\n")
        r = subprocess.run([HEDDLE, "devices", "--gpu", f"shm:{server.path}"], capture_output=True,
                           text=True, timeout=PATIENCE, env=clean_environment())
        self.assertEqual((r.returncode, r.stderr), (0, ""), server.log())
        r = subprocess.run(
            [HEDDLE, "devices", "--gpu", f"tcp://127.0.0.1:{server.port()}"], capture_output=True,
            text=True, timeout=PATIENCE, env=clean_environment(
                HEDDLE_TLS_CA=f"{certs}/ca.pem", HEDDLE_TLS_CERT=f"{certs}/client-a.pem",
                HEDDLE_TLS_KEY=f"{certs}/client-a.key"))
        self.assertEqual((r.returncode, r.stderr), (0, ""), server.log())
        self.assertEqual(server.stop(), 0)
        self.assertNotIn(" error ", server.log())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or ["Unit"])])
