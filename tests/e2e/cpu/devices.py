#!/usr/bin/env python3
"""The CPU GPU's devices from the outside: heddle devices, CUDA and NVML in several processes.

    HED_BUILD=build/dev tests/e2e/cpu/devices.py [CASE...]
"""

import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

BUILD = os.path.abspath(os.environ.get("HED_BUILD", "build/dev"))
HEDDLE = os.path.join(BUILD, "bin", "heddle")
LIBDIR = os.path.join(BUILD, "lib", "heddle")
SANITIZED = bool(os.environ.get("HED_SANITIZE"))
MIB = 1 << 20

# The program: allocates on device 0, says so, and waits for its end.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def must(r):
    if r: sys.exit(f"failed with {r}")
ctx, at, uuid = ctypes.c_void_p(), ctypes.c_uint64(), (ctypes.c_ubyte * 16)()
must(cuda.cuInit(0))
must(cuda.cuDeviceGetUuid(ctypes.byref(uuid), 0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0))
must(cuda.cuCtxSetCurrent(ctx))
must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(int(sys.argv[1]))))
print(bytes(uuid).hex(), flush=True)
sys.stdin.read()
"""

# The monitor: lists all devices and the processes that use them. It never starts CUDA.
MONITOR = """
import ctypes, json, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
def must(r):
    if r: sys.exit(f"failed with {r}")
class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("a", ctypes.c_uint),
                ("b", ctypes.c_uint)]
count, out = ctypes.c_uint(), []
must(nvml.nvmlInit_v2())
must(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
for i in range(count.value):
    h, memory = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
    name, uuid = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
    n, list = ctypes.c_uint(64), (Process * 64)()
    must(nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(h)))
    must(nvml.nvmlDeviceGetName(h, name, 96))
    must(nvml.nvmlDeviceGetUUID(h, uuid, 96))
    must(nvml.nvmlDeviceGetMemoryInfo(h, memory))
    must(nvml.nvmlDeviceGetComputeRunningProcesses_v3(h, ctypes.byref(n), list))
    out.append({"name": name.value.decode(), "uuid": uuid.value.decode(), "total": memory[0],
                "used": memory[2], "pids": {p.pid: p.used for p in list[:n.value]}})
print(json.dumps(out))
"""


def environment(gpu, **more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("HEDDLE_") and k not in ("LD_PRELOAD", "CUDA_VISIBLE_DEVICES")}
    env.update(HOME=os.environ["HED_SCRATCH"], HEDDLE_GPU=gpu, HEDDLE_LOG="warn",
               LD_LIBRARY_PATH=LIBDIR)
    env.update(more)
    return env


class Case(unittest.TestCase):
    def setUp(self):
        # Only this test uses these devices; another test may be using the usual ones right now.
        self.dir = tempfile.mkdtemp(dir=os.environ["HED_SCRATCH"])
        self.name = f"Mine {os.getpid()} {self.id()}"[:90]
        self.profile = os.path.join(self.dir, "mine.json")
        with open(self.profile, "w") as f:
            json.dump({"base": "t4", "name": self.name, "memory": "4G"}, f)

    def devices(self, *args, cwd=None, **more):
        env = environment("auto", **more)
        del env["HEDDLE_GPU"], env["HEDDLE_LOG"], env["LD_LIBRARY_PATH"]
        return subprocess.run([HEDDLE, "devices", *args], env=env, cwd=cwd or self.dir,
                              capture_output=True, text=True, timeout=PATIENCE)


class Devices(Case):
    """heddle devices on the CPU GPU."""

    def list(self, gpu, **more):
        r = self.devices("--gpu", gpu, "--json", **more)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r.stdout)
        return json.loads(r.stdout)["devices"]

    def test_names_and_counts(self):
        self.assertEqual([d["name"] for d in self.list("cpu:h100x2,t4")],
                         ["NVIDIA H100 80GB HBM3"] * 2 + ["Tesla T4"])
        self.assertEqual([d["pci_bus_id"] for d in self.list("cpu:rtx4090x2")],
                         ["0000:01:00.0", "0000:02:00.0"])
        self.assertEqual(self.list("cpu")[0]["memory_bytes"], 16 << 30)

    def test_plain_cpu_is_like_an_a100(self):
        self.assertEqual([self.list(gpu)[0]["compute_capability"] for gpu in ("cpu", "cpu:a100")],
                         ["8.0", "8.0"])

    def test_the_a100_is_recommended_for_frameworks(self):
        for gpu, hint in (("cpu", False), ("cpu:a100,l4,t4", False), ("cpu:b200", True),
                          ("cpu:a100,rtx5090", True)):
            r = self.devices("--gpu", gpu)
            self.assertEqual((r.returncode, "choose --gpu cpu or cpu:a100" in r.stdout), (0, hint))

    def test_a_path_may_be_relative(self):
        d, = self.list("cpu:./mine.json")
        self.assertEqual((d["name"], d["memory_bytes"]), (self.name, 4 << 30))

    def test_visible_devices(self):
        all = self.list("cpu:h100x4")
        some = self.list("cpu:h100x4", CUDA_VISIBLE_DEVICES=f"2,{all[0]['uuid'][:20]}")
        self.assertEqual([d["uuid"] for d in some], [all[2]["uuid"], all[0]["uuid"]])

    def test_what_is_not_there_is_named(self):
        for gpu, says in (("cpu:h1000", "no device 'h1000'; choose from a100-40g, "),
                          ("cpu:/no/p.json", "no device profile '/no/p.json'"),
                          ("cpu:h100x99", "from 1 to 64")):
            for command in (["devices"], ["run"], ["serve", "--listen", f"unix:{self.dir}/s"]):
                rest = ["--", "false"] if command == ["run"] else []
                r = subprocess.run([HEDDLE, *command, "--gpu", gpu, *rest], cwd=self.dir, text=True,
                                   env=environment("auto"), capture_output=True, timeout=PATIENCE)
                self.assertEqual(r.returncode, 2, r.stderr)
                self.assertIn(says, r.stderr)

    def test_a_program_that_did_not_come_through_the_command_is_told_too(self):
        r = subprocess.run([sys.executable, "-c", PROGRAM, "1"], env=environment("cpu:h1000"),
                           text=True, capture_output=True, timeout=PATIENCE)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("no device 'h1000'; choose from a100-40g, ", r.stderr)


@unittest.skipIf(SANITIZED, "python has no sanitizer in it")
class Monitor(Case):
    """NVML in a process that never starts CUDA."""

    def monitor(self, gpu):
        r = subprocess.run([sys.executable, "-c", MONITOR], env=environment(gpu), text=True,
                           capture_output=True, timeout=PATIENCE)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return json.loads(r.stdout)

    def start(self, gpu, bytes, **more):
        p = subprocess.Popen([sys.executable, "-c", PROGRAM, str(bytes)], text=True,
                             env=environment(gpu, **more), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        self.addCleanup(p.communicate)
        uuid = p.stdout.readline().strip()
        self.assertEqual(len(uuid), 32)
        return p, uuid

    def test_memory_of_other_processes_is_seen(self):
        gpu = f"cpu:{self.profile}x3"
        self.assertEqual([d["used"] for d in self.monitor(gpu)], [0, 0, 0])
        a, uuid_a = self.start(gpu, 100 * MIB, CUDA_VISIBLE_DEVICES="1")
        b, uuid_b = self.start(gpu, 300 * MIB, CUDA_VISIBLE_DEVICES="1")
        self.assertEqual(uuid_a, uuid_b)
        seen = self.monitor(gpu)
        self.assertEqual(seen[1]["uuid"].replace("-", "")[3:], uuid_a)
        self.assertEqual((seen[0]["used"], seen[2]["used"]), (0, 0))
        self.assertEqual(set(seen[1]["pids"]), {str(a.pid), str(b.pid)})
        self.assertGreaterEqual(seen[1]["pids"][str(a.pid)], 100 * MIB)
        self.assertGreaterEqual(seen[1]["pids"][str(b.pid)], 300 * MIB)
        self.assertEqual(seen[1]["used"], sum(seen[1]["pids"].values()))
        a.communicate()
        self.assertEqual(set(self.monitor(gpu)[1]["pids"]), {str(b.pid)})
        b.kill()
        b.communicate()
        self.assertEqual(self.monitor(gpu)[1]["used"], 0)


if __name__ == "__main__":
    if not os.path.exists(os.path.join(LIBDIR, "backend-cpu.so")):
        print(f"skipped: no backend-cpu.so in {LIBDIR}")
        sys.exit(77)
    os.environ.setdefault("HED_SCRATCH", tempfile.mkdtemp())
    unittest.main(verbosity=2)
