#!/usr/bin/env python3
"""Every example of examples/ is built and run outside the tree, against an installed heddle.

    HED_BUILD=build/dev HED_PREFIX=/tmp/prefix examples.py install        installs it there
    HED_PREFIX=/tmp/prefix HED_SCRATCH=/tmp/scratch examples.py NAME      one example
    examples.py                                                           is each of them tested?
"""

import json
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

SOURCE = Path(__file__).resolve().parents[3] / "examples"
PREFIX = os.environ.get("HED_PREFIX", "")
SCRATCH = Path(os.environ.get("HED_SCRATCH", "."))
CC = os.environ.get("HED_CC", "cc")
HEDDLE = os.path.join(PREFIX, "bin", "heddle")
SKIPPED = 77

# Keeps a GPU busy until it is told to stop.
BUSY = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(1 << 20))
while not os.path.exists(sys.argv[1]):
    cuda.cuMemsetD8_v2(at, 1, ctypes.c_size_t(1 << 20))
    cuda.cuCtxSynchronize()
"""


def environment(**more):
    """As after an installation to a prefix of one's own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_") and k not in
           ("LD_PRELOAD", "LD_LIBRARY_PATH", "MAKEFLAGS")}
    pc = [str(p.parent) for p in Path(PREFIX).glob("**/heddle.pc")]
    env.update(PATH=os.path.join(PREFIX, "bin") + ":" + env["PATH"], HEDDLE=HEDDLE, CC=CC,
               PKG_CONFIG_PATH=":".join(pc), CMAKE_PREFIX_PATH=PREFIX, HOME=str(SCRATCH), **more)
    return env


def run(*command, code=0, **more):
    r = subprocess.run([str(word) for word in command], env=environment(**more), text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
                       stdin=subprocess.DEVNULL, check=False)
    print(r.stdout, end="")
    if r.returncode != code:
        sys.exit(f"{command} ended with {r.returncode}")
    return r.stdout


def expect(text, *wanted):
    for words in wanted:
        if words not in text:
            sys.exit(f"'{words}' is not in the output")


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"waited in vain for {what}")
        time.sleep(0.05)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def install():
    shutil.rmtree(PREFIX, ignore_errors=True)
    run("cmake", "--install", os.environ["HED_BUILD"], "--prefix", PREFIX)


def test_ptxrun():
    run("make")
    expect(run("./ptxrun"), "10000 sums on the processor, 0 of them wrong")


def test_layer():
    run("make")
    app = SOURCE / "containers" / "app.py"
    Path("busy.py").write_text(app.read_text().replace(
        'call("cuMemsetD8', "call('cuMemcpyHtoD_v2', at, data, ctypes.c_size_t(4096))\n"
        'call("cuMemsetD8'))
    command = [HEDDLE, "run", "--gpu", "cpu", "--log", "info", "--", sys.executable, "busy.py"]
    layer = os.path.abspath("copies.so")
    expect(run(*command, HEDDLE_PLUGINS=layer), "copies: 4096 bytes went to the device")
    expect(run(*command, code=1, HEDDLE_PLUGINS=f"{layer}:100"), "cuMemcpyHtoD_v2 failed with 800")


def test_marks():
    run("cmake", "-B", "build", f"-DCMAKE_C_COMPILER={CC}")
    run("cmake", "--build", "build")
    expect(run("build/version"), "heddle ")
    run("build/marks")
    expect(run(HEDDLE, "run", "--gpu", "cpu", "--trace", "marks.hed", "--", "build/marks"),
           "records in the trace")
    seen = run(HEDDLE, "trace", "show", "marks.hed")
    expect(seen, "fill", "the rest is not recorded")
    if seen.count("cuMemsetD8_v2") != 8 or seen.count("cuCtxSynchronize") > 1:
        sys.exit("the trace has other calls than it should have")


def waiting_programs():
    """The programs that `least.py` lets wait in five rounds."""
    out = run(sys.executable, "least.py", "--rounds", "5", "--every", "0.02")
    return set(re.findall(r"(\d+):[0-9.]+ms\(waits\)", out))


def test_policy():
    Path("busy.py").write_text(BUSY)
    programs = [subprocess.Popen([HEDDLE, "run", "--gpu", "cpu", "--sched", "on", "--",
                                  sys.executable, "busy.py", "stop"], env=environment())
                for _ in range(2)]
    try:
        seen = set()
        # Each has waited while the other went on, so each has used time since.
        wait_for("both to wait in turn",
                 lambda: seen.update(waiting_programs()) or len(seen) == 2)
        # When the policy has ended, nobody waits.
        listed = json.loads(run(HEDDLE, "sched", "list", "--json"))
        if any(client["state"] == "paused" for client in listed["gpus"][0]["clients"]):
            sys.exit("a program still waits")
    finally:
        Path("stop").write_text("")
        for program in programs:
            program.wait(PATIENCE)


def test_containers():
    """The server's settings, and what the program does; tests/containers has the rest."""
    Path("run").mkdir()
    here = os.path.abspath("run")
    settings = Path("heddled.conf")
    settings.write_text(settings.read_text().replace("/run/heddle", here))
    server = subprocess.Popen([HEDDLE, "serve", "--config", settings, "--gpu", "cpu"],
                              env=environment())
    try:
        expect(run("sh", "app.sh", HEDDLE_GPU=f"shm:{here}/heddle.sock"),
               "4096 bytes made the way to the server's GPU and back, and 1024 sums are right")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE)


def test_ci():
    nvcc = os.environ.get("HED_NVCC") or shutil.which("nvcc")
    if not nvcc:
        skip("no nvcc")
    out = run("make", "test", NVCC=nvcc)
    expect(out, "n = 100000: 0 wrong")


def test_snapshot():
    if not shutil.which("criu") or os.geteuid() != 0:
        skip("criu is not installed, or this is not root")
    if subprocess.run(["criu", "check"], capture_output=True, check=False).returncode:
        skip("criu does not work here")
    run("make")
    out = run(HEDDLE, "run", "--gpu", "cpu", "--ckpt", "on", "--", "./selfsave")
    expect(out, "step 6\n", "done; 0 steps are wrong")
    out = run(HEDDLE, "snap", "restore", "self.snap")
    expect(out, "step 4\n", "done; 0 steps are wrong")
    if "step 3" in out:
        sys.exit("it did not go on where it was")


def test_trace():
    app = SOURCE / "containers" / "app.py"
    run(HEDDLE, "run", "--gpu", "cpu", "--trace", "app.hed", "--", sys.executable, app)
    expect(run(sys.executable, "report.py", "app.hed"), "0 failed", "cuMemcpyDtoH_v2", "4096 bytes")


def check_all():
    """Every folder of examples/ has a README and a test."""
    for folder in sorted(path for path in SOURCE.iterdir() if path.is_dir()):
        if f"test_{folder.name}" not in globals() or not (folder / "README.md").exists():
            sys.exit(f"{folder.name}: no README.md, or no test in {__file__}")


def main(name=""):
    if name == "install":
        install()
    elif not name:
        check_all()
    else:
        work = SCRATCH / name
        shutil.copytree(SOURCE / name, work)
        os.chdir(work)
        globals()[f"test_{name}"]()


if __name__ == "__main__":
    main(*sys.argv[1:])
