#!/usr/bin/env python3
"""The installed files of each package, and a program that is built with heddle.h by pkg-config.

    HED_BUILD=build/dev HED_CC=cc HED_SCRATCH=/tmp/scratch install.py [Case.test...]
"""

import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

BUILD = os.environ["HED_BUILD"]
CC = os.environ.get("HED_CC", "cc")

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(heddle ${WANTED} REQUIRED COMPONENTS heddle kernel)
add_executable(program program.c)
target_link_libraries(program PRIVATE heddle::heddle)
add_executable(ptxrun ${PTXRUN})
target_link_libraries(ptxrun PRIVATE heddle::kernel)
message(STATUS "command ${HEDDLE_COMMAND}")
"""

PROGRAM = r"""
#include <heddle.h>
#include <stdio.h>

int
main(void)
{
    puts(heddle_version());
    return 0;
}
"""

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

TWO_KERNELS = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry runs(.param .u32 n) { ret; }
.visible .entry multiplies() { wgmma.fence.sync.aligned; ret; }
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.prefix = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))
        self.addCleanup(shutil.rmtree, self.prefix)

    def install(self, component):
        subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix",
                        self.prefix], check=True, capture_output=True, timeout=PATIENCE)

    def files(self):
        """The paths below the prefix."""
        found = set()
        for folder, _, names in os.walk(self.prefix):
            found.update(os.path.relpath(os.path.join(folder, name), self.prefix)
                         for name in names)
        return found

    def file(self, name):
        [path] = [path for path in self.files() if os.path.basename(path) == name]
        return os.path.join(self.prefix, path)


class Uninstall(Case):
    def test_nothing_is_left(self):
        root = os.path.join(self.prefix, "root")
        build = os.path.realpath(BUILD)
        manifest = os.path.join(self.prefix, "manifest.txt")
        r = subprocess.run(["cmake", "--install", build, "--prefix", "/opt/weaver"], check=True,
                           capture_output=True, text=True, timeout=PATIENCE,
                           env=dict(os.environ, DESTDIR=root))
        paths = re.findall(r"^-- (?:Installing|Up-to-date): (.*)$", r.stdout, re.MULTILINE)
        files = [path[len(root):] for path in paths if not os.path.isdir(path)]
        self.assertIn("/opt/weaver/lib/systemd/system/heddled.service", files)
        with open(manifest, "w", encoding="utf-8") as f:
            f.write("\n".join(files))
        subprocess.run([EXAMPLES.parent / "tools" / "uninstall", manifest], check=True,
                       env=dict(os.environ, DESTDIR=root), capture_output=True, timeout=PATIENCE)
        self.prefix = root
        self.assertEqual(self.files(), set())
        for folder, _, _ in os.walk(root):
            self.assertNotEqual(os.path.basename(folder), "heddle", folder)


class Components(Case):
    def test_the_command_and_its_libraries(self):
        self.install("heddle")
        names = {os.path.basename(path) for path in self.files()}
        self.assertLessEqual({"heddle", "libheddle.so.0", "libcuda.so.1", "libnvidia-ml.so.1",
                              "libcuda.so", "libnvidia-ml.so",
                              "heddle.1", "heddle.conf.5", "60-heddle-window.rules"}, names)
        self.assertFalse(names & {"heddled", "heddled.service", "heddle.h", "heddle.pc",
                                  "libheddle.so"}, names)
        if os.path.isdir(os.path.join(BUILD, "lib", "heddle", "cudart")):
            self.assertLessEqual({f"libcudart.so.{edition}"
                                  for edition in ("8.0", "10.2", "11.0", "12", "13")}, names)
        # Where udev and systemd look, if the prefix is /usr or /usr/local.
        self.assertLessEqual({"lib/udev/rules.d/60-heddle-window.rules",
                              "lib/sysusers.d/heddle.conf"}, self.files())
        for path in self.files():
            if os.path.basename(path).startswith("lib"):
                folder = "cudart" if "libcudart.so." in path else "heddle"
                self.assertEqual(os.path.basename(os.path.dirname(path)), folder, path)

    def test_programs_find_the_libraries_by_their_short_names(self):
        self.install("heddle")
        program = ("import ctypes; ctypes.CDLL('libcuda.so').cuInit; "
                   "ctypes.CDLL('libnvidia-ml.so').nvmlInit_v2")
        heddle = os.path.join(self.prefix, "bin", "heddle")
        subprocess.run([heddle, "run", "--gpu", "null", "--", sys.executable, "-c", program],
                       check=True, timeout=PATIENCE)
        for name in ("libcuda.so", "libnvidia-ml.so"):
            self.assertEqual(os.readlink(self.file(name)), name + ".1")

    def test_the_server(self):
        self.install("heddle-server")
        self.assertEqual({os.path.basename(path) for path in self.files()},
                         {"heddled", "heddled.service", "heddled.conf"})
        # Where systemd looks, if the prefix is /usr or /usr/local.
        self.assertIn("lib/systemd/system/heddled.service", self.files())
        # The prefix of the installation, not that of the configuration.
        unit, = (path for path in self.files() if path.endswith("heddled.service"))
        program, = (path for path in self.files() if path.endswith("heddled"))
        with open(os.path.join(self.prefix, unit), encoding="utf-8") as f:
            self.assertIn(f"ExecStart={os.path.join(self.prefix, program)} ", f.read())

    def test_the_kernel_library_where_the_loader_looks(self):
        self.install("libheddle-kernel")
        self.assertEqual({os.path.basename(path) for path in self.files()},
                         {"libheddle-kernel.so.0"})
        self.assertNotEqual(os.path.basename(os.path.dirname(self.file("libheddle-kernel.so.0"))),
                            "heddle")

    def test_the_developers_files(self):
        self.install("libheddle-dev")
        self.assertEqual({os.path.basename(path) for path in self.files()},
                         {"heddle.h", "heddle.pc", "libheddle.so", "kernel.h",
                          "heddle-kernel.pc", "libheddle-kernel.so", "heddle-config.cmake",
                          "heddle-config-version.cmake", "layer.h", "cuda_abi.h",
                          "cuda_calls.h"})
        self.assertEqual(os.readlink(self.file("libheddle.so")), "heddle/libheddle.so.0")


class Settings(Case):
    """The example files of settings: every line that is switched on is accepted."""

    def switched_on(self, name):
        with open(os.path.join(self.prefix, "share", "doc", "heddle", "examples", name),
                  encoding="utf-8") as f:
            lines = re.findall(r"^#([a-z_-]+) = (.+)$", f.read(), re.MULTILINE)
        self.assertGreater(len(lines), 5)
        return lines

    def test_of_programs(self):
        self.install("heddle")
        path = os.path.join(self.prefix, "all.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"{key} = {value}\n" for key, value in self.switched_on("heddle.conf"))
        heddle = os.path.join(self.prefix, "bin", "heddle")
        subprocess.run([heddle, "run", "--config", path, "--print-env"], check=True,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE)

    def test_of_the_server(self):
        self.install("heddle")
        self.install("heddle-server")
        heddle = os.path.join(self.prefix, "bin", "heddle")
        known = subprocess.run([heddle, "serve", "--help"], check=True, capture_output=True,
                               text=True, timeout=PATIENCE).stdout
        for key, _ in self.switched_on("heddled.conf"):
            self.assertIn(f"  --{key} ", known)


@unittest.skipUnless(shutil.which("pkg-config") and shutil.which(CC), "no pkg-config or compiler")
class Development(Case):
    def test_a_program_is_built_and_runs(self):
        self.install("heddle")
        self.install("libheddle-dev")
        folder = os.path.dirname(self.file("heddle.pc"))
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "heddle"], check=True,
                               capture_output=True, text=True, timeout=PATIENCE,
                               env=dict(os.environ, PKG_CONFIG_PATH=folder)).stdout.split()
        source = os.path.join(self.prefix, "program.c")
        program = os.path.join(self.prefix, "program")
        with open(source, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        subprocess.run([CC, source, "-o", program, *flags], check=True, timeout=PATIENCE)
        r = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertEqual(r.stdout.strip(), subprocess.run(
            ["pkg-config", "--modversion", "heddle"], check=True, capture_output=True, text=True,
            env=dict(os.environ, PKG_CONFIG_PATH=folder), timeout=PATIENCE).stdout.strip())

    def test_cmake_finds_it_after_it_was_moved(self):
        first = os.path.join(self.prefix, "first")
        moved = os.path.join(self.prefix, "moved")
        for component in ("heddle", "libheddle-kernel", "libheddle-dev"):
            subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix",
                            first], check=True, capture_output=True, timeout=PATIENCE)
        os.rename(first, moved)
        source, build = os.path.join(self.prefix, "source"), os.path.join(self.prefix, "build")
        os.mkdir(source)
        for name, text in (("CMakeLists.txt", PROJECT), ("program.c", PROGRAM)):
            with open(os.path.join(source, name), "w", encoding="utf-8") as f:
                f.write(text)
        version = subprocess.run([os.path.join(moved, "bin", "heddle"), "version"], check=True,
                                 capture_output=True, text=True,
                                 timeout=PATIENCE).stdout.split()[1]
        configure = ["cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={moved}",
                     f"-DCMAKE_C_COMPILER={CC}", f"-DPTXRUN={EXAMPLES}/ptxrun/ptxrun.c"]
        r = subprocess.run([*configure, "-DWANTED=99.0"], capture_output=True, text=True,
                           timeout=PATIENCE)
        self.assertNotEqual(r.returncode, 0)
        r = subprocess.run([*configure, f"-DWANTED={version}"], capture_output=True, text=True,
                           timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn(f"command {os.path.realpath(moved)}/bin/heddle", r.stdout)
        subprocess.run(["cmake", "--build", build], check=True, capture_output=True,
                       timeout=PATIENCE)
        r = subprocess.run([os.path.join(build, "program")], capture_output=True, text=True,
                           timeout=PATIENCE)
        self.assertEqual((r.returncode, r.stdout.strip()), (0, version))
        subprocess.run([os.path.join(build, "ptxrun")], check=True, timeout=PATIENCE)

    @unittest.skipUnless(shutil.which("make"), "no make")
    def test_the_example_runs_ptx_with_the_kernel_library_alone(self):
        self.install("libheddle-kernel")
        self.install("libheddle-dev")
        folder = os.path.join(self.prefix, "ptxrun")
        shutil.copytree(EXAMPLES / "ptxrun", folder)
        pc = os.path.dirname(self.file("heddle-kernel.pc"))
        subprocess.run(["make", "-C", folder, f"CC={CC}"], check=True, capture_output=True,
                       timeout=PATIENCE, env=dict(os.environ, PKG_CONFIG_PATH=pc))
        program = os.path.join(folder, "ptxrun")
        r = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertIn("10000 sums on the processor, 0 of them wrong", r.stdout)
        text = os.path.join(folder, "two.ptx")
        with open(text, "w", encoding="utf-8") as f:
            f.write(TWO_KERNELS)
        r = subprocess.run([program, text], capture_output=True, text=True, timeout=PATIENCE)
        self.assertIn("runs: 1 parameters, 0 bytes of shared memory\n", r.stdout)
        self.assertIn("multiplies: 0 parameters, 0 bytes of shared memory; refused: ", r.stdout)
        r = subprocess.run([program, text, "runs"], capture_output=True, text=True,
                           timeout=PATIENCE)
        self.assertIn("instructions ", r.stdout)


if __name__ == "__main__":
    unittest.main()
