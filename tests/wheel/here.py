#!/usr/bin/env python3
"""A wheel of this build, as its users meet it: pip installs the file into a clean virtual
environment, and programs run there without a compiler in sight.

    HED_BUILD=build/dev HED_COMMAND=build/dev/src/cli/wheel/heddle \\
    HED_CU_RUN=build/dev/tests/cu/cu_run HED_SCRATCH=/tmp/scratch here.py [Case.test...]

It needs no network and no root. The wheel of a release has other libraries inside and is tried in
clean systems (run.py); what is packed, where pip puts it, and how it is found there are the same.
"""

import functools
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
from harness.patience import PATIENCE  # noqa: E402

SKIPPED = 77
BUILD, SCRATCH = os.environ["HED_BUILD"], os.environ.get("HED_SCRATCH")
CU = TOP / "tests/cu"
REFUSAL = "is not a supported wheel on this platform"

TEST = """
import ctypes
import os
import pytest

@pytest.mark.heddle(devices=2)
def test_devices(heddle_devices):
    cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
    assert count.value == len(heddle_devices) == 2
    with open("/proc/self/maps") as maps:
        libraries = {line.split(maxsplit=5)[5].strip() for line in maps if "/libcuda.so" in line}
    assert [os.path.relpath(name, os.environ["WANTED"]) for name in libraries] == ["libcuda.so.1"]

def test_refused():
    ctypes.CDLL("libcuda.so.1").cuCoredumpGetAttribute(999, None, None)
"""


def run(*words, code=0, **more):
    r = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                       timeout=PATIENCE, check=False, **more)
    if r.returncode != code:
        raise AssertionError(f"{words} ended with {r.returncode}:\n{r.stdout}{r.stderr}")
    return r


def base_python():
    """An interpreter that can make environments with pip in them, if possible one with pytest."""
    pythons = [p for p in dict.fromkeys((sys.executable, "/usr/bin/python3")) if os.path.exists(p)]
    for modules in ("ensurepip, venv, pytest", "ensurepip, venv"):
        for python in pythons:
            if subprocess.run([python, "-c", f"import {modules}"], capture_output=True,
                              timeout=PATIENCE, check=False).returncode == 0:
                return python
    print("skipped: no Python here makes environments with pip (python3-venv)")
    sys.exit(SKIPPED)


@functools.cache
def make_wheel():
    """`make wheel`, but for what is built."""
    folder = Path(tempfile.mkdtemp(dir=SCRATCH))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    tree, out = folder / "tree", folder / "dist"
    out.mkdir()
    run("cmake", "--install", BUILD, "--strip", "--prefix", tree)
    text = (TOP / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.search(r"^project\(heddle VERSION ([0-9.]+)", text, re.MULTILINE)[1]
    return Path(run(sys.executable, "-B", TOP / "tools/ship/wheel.py", "--tree", tree, "--command",
                    os.environ["HED_COMMAND"], "--for-here", "--version", version, "--epoch",
                    "1700000000", out).stdout.strip())


@functools.cache
def make_environment():
    """The environment with the wheel in it, and what was there before."""
    environment = Path(tempfile.mkdtemp(dir=SCRATCH)) / "env"
    unittest.addModuleCleanup(shutil.rmtree, environment.parent)
    run(base_python(), "-m", "venv", environment)
    before = files_of(environment)
    run(environment / "bin/python", "-m", "pip", "install", "--no-index", make_wheel(),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    return environment, before


def files_of(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


class Wheel(unittest.TestCase):
    def setUp(self):
        self.wheel = make_wheel()
        self.environment, self.before = make_environment()
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH))
        self.addCleanup(shutil.rmtree, self.folder)

    def call(self, program, *words, environment=None, **more):
        """Runs a program of the environment, which is all that there is in PATH."""
        folder = environment or self.environment
        env = {"PATH": str(folder / "bin"), "HOME": str(self.folder), "LC_ALL": "C.UTF-8",
               "HEDDLE_CONFIG": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
               "PYTHONDONTWRITEBYTECODE": "1", **more.pop("env", {})}
        return run(folder / "bin" / program, *words, env=env, cwd=self.folder, **more)

    def install(self, *words, **more):
        return self.call("python", "-m", "pip", "install", "--no-index", *words, self.wheel, **more)

    def agrees(self, name, *program, gpu="cpu:h200", how=()):
        """The program of tests/cu prints what it printed on an H200, in both tiers."""
        for tier in ("baseline", "warp"):
            self.call("heddle", "run", "--gpu", gpu, "--", "python", "-B",
                      TOP / "tests/conformance/agree.py", *how, CU / f"golden/{name}.txt",
                      *program, env={"HEDDLE_CPU_CODEGEN": tier})


class Installed(Wheel):
    def test_the_command_is_there_with_what_belongs_to_it(self):
        self.assertIn("heddle ", self.call("heddle", "--version").stdout)
        self.assertIn("LLVM", self.call("heddle", "doctor").stdout)
        for name in ("man/man1/heddle.1", "bash-completion/completions/heddle"):
            self.assertTrue((self.environment / "share" / name).stat().st_size, name)

    def test_a_program_runs_and_is_compiled(self):
        program = Path(os.environ["HED_CU_RUN"]).resolve()
        self.agrees("grid", program, CU / "ptx/grid.ptx", CU / "grid.cu")

    def test_a_program_of_nvcc_runs(self):
        nvcc = os.environ.get("HED_NVCC")
        if not nvcc:
            self.skipTest("no nvcc")
        program = self.folder / "grid"
        run(nvcc, "-std=c++17", "-O2", "-arch=compute_80", "-code=sm_80", CU / "grid.cu", "-o",
            program)
        self.agrees("grid", program, gpu="cpu:a100", how=["--same"])

    def test_the_module_is_there(self):
        out = self.call("python", "-c", "import heddle; heddle.use('cpu:a100x2'); "
                        "print(len(heddle.devices()), heddle.__version__)").stdout.split()
        self.assertEqual(out, ["2", self.wheel.name.split("-")[1]])

    def test_pytest_finds_the_plug_in_by_itself(self):
        settings = self.environment / "pyvenv.cfg"
        text = settings.read_text(encoding="utf-8")
        self.addCleanup(settings.write_text, text, encoding="utf-8")
        # pytest is not in the environment, but where the interpreter came from.
        settings.write_text(text.replace("packages = false", "packages = true"), encoding="utf-8")
        if self.call("python", "-c", "import importlib.util as u; print(u.find_spec('pytest'))"
                    ).stdout.strip() == "None":
            self.skipTest("no pytest")
        (self.folder / "test_it.py").write_text(TEST, encoding="utf-8")
        [libraries] = self.environment.glob("lib/python3*/site-packages/heddle/_native/lib/heddle")
        # A project may name it for those who have no wheel.
        for named in [], ["-p", "heddle.pytest_plugin"]:
            said = self.call("python", "-m", "pytest", "-p", "no:cacheprovider", *named, "--heddle",
                             "cpu:a100x2", "test_it.py", env={"WANTED": str(libraries)},
                             code=1).stdout
            self.assertIn("heddle: cpu:a100x2, layers trace > fault > watch > cpu", said)
            self.assertRegex(said, r"FAILED test_it.py::test_refused")
            self.assertRegex(said, r"1 failed, 1 passed")


class Folders(Wheel):
    def test_another_processor_is_refused(self):
        platform = "aarch64" if "x86_64" in self.wheel.name else "x86_64"
        r = self.install("--target", self.folder / "t", "--only-binary=:all:", "--platform",
                         f"linux_{platform}", code=1)
        [line] = [line for line in r.stderr.splitlines() if line.startswith("ERROR")]
        self.assertIn(REFUSAL, line)

    def test_it_runs_from_a_folder_that_is_no_environment(self):
        self.install("--target", self.folder / "far")
        self.call("heddle", "devices", "--gpu", "cpu:t4x2", environment=self.folder / "far")

    def test_the_environment_can_be_moved(self):
        moved = self.environment.with_name("moved")
        self.environment.rename(moved)
        try:
            self.call("heddle", "devices", "--gpu", "cpu:t4x2", environment=moved)
        finally:
            moved.rename(self.environment)

    def test_nothing_is_left_of_it(self):
        self.assertGreater(len(files_of(self.environment) - self.before), 50)
        self.call("python", "-m", "pip", "uninstall", "--yes", "heddle-cuda")
        left = files_of(self.environment)
        self.install()
        self.assertEqual(left, self.before)


if __name__ == "__main__":
    unittest.main()
