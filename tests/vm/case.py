"""Shared by the tests in guests: an image of this build, a server, and a guest that a whole class
of tests uses, because it takes seconds to boot.

    HED_BUILD, HED_SCRATCH   as for all tests
    HED_NVCC                 nvcc, if there is one
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests"), str(TOP / "tests/e2e/remote"), str(TOP / "tests/conformance")]
import agree  # noqa: E402
import serve_case  # noqa: E402
from vm import guest, image  # noqa: E402

BUILD = Path(os.path.realpath(os.environ.get("HED_BUILD", "")))
SCRATCH = Path(os.environ.get("HED_SCRATCH", "/nowhere"))
NVCC = os.environ.get("HED_NVCC", "")
HEDDLE = BUILD / "bin/heddle"
LIBRARIES = BUILD / "lib/heddle"
# What a client needs; compilers and the CPU GPU stay on the host.
CLIENT = (HEDDLE, *(LIBRARIES / name for name in (
    "libcuda.so.1", "libnvidia-ml.so.1", "libheddle.so.0", "libheddle-nodes.so",
    "backend-remote.so")))
ARRAY = " ".join(str(i) for i in range(1, 33)) + "\ncudaErrorInvalidValue\n" \
        "cudaErrorMemoryAllocation\n"


def nvcc(source, name, *options):
    """Builds a program, as its users do."""
    program = SCRATCH / name
    subprocess.run([NVCC, "-O1", source, "-o", program, *options], check=True)
    return program


def array_programs():
    """The array example, with the static and with the shared runtime."""
    if not NVCC:
        return []
    source = TOP / "tests/gpu/programs/array.cu"
    return [nvcc(source, "array_static"), nvcc(source, "array_shared", "-cudart", "shared")]


def answer_programs():
    """{program: golden file} of tests/conformance/answers."""
    here = TOP / "tests/conformance/golden"
    return {BUILD / f"tests/conformance/conf_answers_{g.stem}": g
            for g in sorted(here.glob("*.txt"))}


def kernel_programs():
    """{PTX file: golden file} of tests/cu."""
    here = TOP / "tests/cu"
    return {here / f"ptx/{g.stem}.ptx": g for g in sorted((here / "golden").glob("*.txt"))}


def make_image(*programs):
    """The initramfs with the client of this build, and the programs."""
    made = image.Image()
    made.add(BUILD / "tests/vm/vm_agent", where="/bin/agent")
    made.add(*CLIENT, *programs)
    if NVCC:
        made.add(*(Path(NVCC).parents[1] / "lib64").glob("libcudart.so.*[0-9]"))
    made.write(SCRATCH / "initramfs")
    return SCRATCH / "initramfs"


class Case(unittest.TestCase):
    """Tests that share a server and a guest. Subclasses say what is in the image, and may start
    more servers and guests."""

    address = None  # HEDDLE_GPU in the guest

    @classmethod
    def setUpClass(cls):
        # It ends its servers, and checks that none of them crashed.
        cls.keeper = serve_case.Case()
        cls.keeper.setUp()
        cls.addClassCleanup(cls.keeper.tearDown)

    @classmethod
    def serve(cls, *listen, gpu="cpu:h200", options=()):
        path = os.path.join(cls.keeper.dir, "s")
        server = serve_case.Server(cls.keeper, *options, listen=[f"shm:{path}", *listen], gpu=gpu)
        cls.addClassCleanup(server.stop)  # after the guests; it removes its windows
        return server

    @classmethod
    def boot(cls, initramfs, *options, name="guest", **more):
        made = guest.Guest(SCRATCH / name, initramfs, *options, **more)
        cls.addClassCleanup(made.kill)
        return made

    def environment(self, **more):
        cuda = f":{Path(NVCC).parents[1]}/lib64" if NVCC else ""
        return {"HEDDLE_GPU": self.address, "HEDDLE_CONFIG": "", "HEDDLE_INSECURE": "yes",
                "HEDDLE_LOG": "error", "HEDDLE_CONNECT_TIMEOUT": guest.PATIENCE * 1000,
                "HED_LIBCUDA": LIBRARIES / "libcuda.so.1", "LD_LIBRARY_PATH": f"{LIBRARIES}{cuda}",
                **more}

    def job(self, text, vm=None, uid=0, **env):
        """Starts a job, which ends with the test at the latest."""
        job = (vm or self.guest).start(text, uid, **self.environment(**env))
        self.addCleanup(job.kill)
        return job

    def check(self, text, vm=None, uid=0, **env):
        """Runs a job that must succeed, and returns its output."""
        done = self.job(text, vm, uid, **env).wait()
        self.assertEqual(done.status, 0, f"{text}: {done}")
        return done.output

    def agree(self, command, golden):
        """What the command prints in the guest is what an H200 prints."""
        on_purpose = agree.DIFFERENT | agree.DIFFERENT_ELSEWHERE
        output = self.check(f"{command} 2>/dev/null")
        self.assertEqual(agree.differences(golden, output, on_purpose), [], command)


def main():
    try:
        guest.machine_of_this_host()
        image.Image()
    except image.Missing as e:
        print(f"skipped: {e}")
        sys.exit(77)
    unittest.main(verbosity=2)
