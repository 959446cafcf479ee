#!/usr/bin/env python3
"""The injection library, through `heddle run --inject`, on a fake driver.

    HED_BUILD=build/dev HED_WORK=.../e2e_inject_work HED_FAKE=.../e2e_inject_fake.so \\
        cases.py [Case.test...]
"""

import json
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.meeting import forget  # noqa: E402
from harness.patience import PATIENCE, until  # noqa: E402

BUILD = os.environ.get("HED_BUILD", "")
HEDDLE = os.path.join(BUILD, "bin", "heddle")
LIBDIR = os.path.join(os.path.realpath(BUILD), "lib", "heddle")
LIBRARY = os.path.join(LIBDIR, "libheddle-inject.so")
WORK = os.environ.get("HED_WORK", "")
FAKE = os.environ.get("HED_FAKE", "")

PROGRAMS_CALLS = {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2",
                  "cuStreamCreate", "cuLaunchKernel", "cuCtxSynchronize", "cuStreamSynchronize",
                  "cuMemcpyDtoH_v2"}
LONG = "batch_wait_us=10000000"  # longer than any test lasts


def environment(**more):
    drop = ("LD_PRELOAD", "LD_LIBRARY_PATH", "CUDA_INJECTION64_PATH", "FAKE_CUPTI")
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_") and k not in drop}
    env["HEDDLE_CONFIG"] = ""
    env.update(more)
    return env


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))
        self.scope = f"inj{os.getpid()}.{self._testMethodName[-12:].replace('_', '-')}"

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        forget(f"sched-{self.scope}-*")

    def command(self, *options, sched=None):
        settings = [] if sched is None else ["--sched", f"scope={self.scope},{sched}".rstrip(",")]
        return [HEDDLE, "run", "--inject", "--driver", FAKE, "--set", f"cupti={FAKE}", *settings,
                *options]

    def run_(self, *words, code=0, env=None):
        r = subprocess.run([str(w) for w in words], env=env or environment(), cwd=self.dir,
                           capture_output=True, text=True, timeout=PATIENCE,
                           stdin=subprocess.DEVNULL)
        self.assertEqual(r.returncode, code, f"{words}\n{r.stdout}{r.stderr}")
        return r

    def work(self, case, *options, sched=None, env=None):
        return self.run_(*self.command(*options, sched=sched), "--", WORK, case, env=env)


class Words(Case):
    """heddle run --inject itself."""

    def refused(self, says, *options, env=None, code=2):
        r = self.run_(HEDDLE, "run", "--inject", *options, "true", env=env, code=code)
        self.assertIn(says, r.stderr)

    def test_environment(self):
        old = environment(LD_PRELOAD=f"{LIBDIR}/libcuda.so.1:/other.so",
                          LD_LIBRARY_PATH=f"{LIBDIR}")
        out = self.run_(HEDDLE, "run", "--inject", "--sched", "prio=low", "--print-env",
                        env=old).stdout
        lines = out.splitlines()
        self.assertIn(f"export CUDA_INJECTION64_PATH='{LIBRARY}'", lines)
        self.assertIn("export HEDDLE_SCHED='prio=low'", lines)
        self.assertIn("export LD_PRELOAD='/other.so'", lines)
        self.assertIn("unset LD_LIBRARY_PATH", lines)

    def test_nothing_is_preloaded(self):
        out = self.run_(HEDDLE, "run", "--inject", "--sched", "on", "--print-env").stdout
        self.assertNotIn("LD_", out)

    def test_a_run_without_injection_inside_one_has_none(self):
        out = self.run_(HEDDLE, "run", "--gpu", "null", "--print-env",
                        env=environment(CUDA_INJECTION64_PATH=LIBRARY)).stdout
        self.assertIn("unset CUDA_INJECTION64_PATH", out.splitlines())
        out = self.run_(HEDDLE, "run", "--gpu", "null", "--print-env",
                        env=environment(CUDA_INJECTION64_PATH="/their.so")).stdout
        self.assertNotIn("CUDA_INJECTION64_PATH", out)

    def test_impossible_options_are_refused(self):
        self.refused("has nothing to do")
        self.refused("only on the program's own GPU", "--gpu", "cpu", "--sched", "on")
        self.refused("only on the program's own GPU", "--gpu", "null", "--sched", "on")
        self.refused("cannot limit memory", "--mem", "1G", "--sched", "on")
        self.refused("cannot make calls fail", "--fault", "cuInit:1:CUDA_ERROR_UNKNOWN",
                     "--sched", "on")
        self.refused("cannot use layers", "--layers", "trace", "--sched", "on")
        self.refused("loads only one", "--sched", "on",
                     env=environment(CUDA_INJECTION64_PATH="/a/profiler.so"))

    def test_only_one_symbol_is_exported_and_only_libc_is_needed(self):
        out = self.run_("nm", "-D", "--defined-only", LIBRARY).stdout
        names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
        self.assertEqual(names - {"_init", "_fini"}, {"InitializeInjection"})
        out = self.run_("readelf", "-d", LIBRARY).stdout
        needed = [line.split("[")[1].rstrip("]") for line in out.splitlines() if "NEEDED" in line]
        for name in needed:
            self.assertRegex(name, r"^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so")


class Hold(Case):
    """Launches are held, and released together."""

    def hold(self, case, settings, *options):
        return self.work(case, *options, sched="mode=record,policy=batch," + settings)

    def test_launches_are_released_by_number(self):
        self.hold("by_number", f"batch=4,{LONG}")

    def test_launches_of_one_stream_are_released_by_number(self):
        self.hold("by_number_one_stream", f"batch=4,{LONG}")

    def test_launches_are_released_by_time(self):
        self.hold("by_time", "batch=1000,batch_wait_us=20000")

    def test_launches_are_released_when_a_thread_waits(self):
        self.hold("by_waiting", f"batch=1000,{LONG}")

    def test_a_full_queue_loses_nothing(self):
        self.hold("full_queue", f"batch=1000,queue=8,{LONG}")

    def test_other_calls(self):
        self.hold("other_calls", f"batch=2,{LONG}")

    def test_capture(self):
        self.hold("capture", f"batch=1000,{LONG}")

    def test_per_thread_streams(self):
        self.hold("per_thread", f"batch=2,{LONG}")

    def test_threads(self):
        self.hold("threads", "batch=3,batch_wait_us=1000")

    def test_jumps_out_of_calls(self):
        self.hold("jumps", f"batch=1000,{LONG}")

    def test_fork(self):
        self.hold("forks", f"batch=1000,{LONG}")

    def test_other_policies(self):
        self.work("full_queue", sched="mode=record")
        self.work("threads", sched="mode=record,policy=slice")

    def test_stream_own_is_refused(self):
        r = self.hold("by_waiting", f"batch=1000,stream=own,{LONG}")
        self.assertIn("stream=own has no effect", r.stderr)


class Gate(Case):
    """Programs share the GPU."""

    def sched(self, *words):
        return self.run_(HEDDLE, "sched", *words, "--scope", self.scope).stdout

    def clients(self):
        gpus = json.loads(self.sched("list", "--json"))["gpus"]
        return {c["pid"]: c for g in gpus for c in g["clients"]}

    def start(self, sched):
        p = subprocess.Popen(self.command(sched=sched) + ["--", WORK, "work"],
                             env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_programs_behave_as_without_injection(self):
        for case in ("threads", "capture", "per_thread", "forks"):
            self.work(case, sched="policy=fair")

    def test_calls_pass_the_gate(self):
        for mode in ("mode=gate", "mode=record"):
            p = self.start(mode)
            until(lambda: self.clients().get(p.pid, {}).get("calls", 0) > 10)
            p.kill()
            p.wait()

    def test_a_paused_program_launches_nothing(self):
        p = self.start("policy=fair")
        until(lambda: self.clients().get(p.pid, {}).get("calls", 0) > 10)
        self.sched("pause", "--pid", str(p.pid))
        until(lambda: self.clients()[p.pid]["waiting"] == 1, self.clients)
        before = self.clients()[p.pid]["calls"]
        until(lambda: self.is_asleep(p))
        self.assertEqual(self.clients()[p.pid]["calls"], before)
        self.sched("resume", "--pid", str(p.pid))
        until(lambda: self.clients()[p.pid]["calls"] > before + 10)
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), 0, p.stderr.read())

    def is_asleep(self, p):
        with open(f"/proc/{p.pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "S"


class Trace(Case):
    """Calls, and what the GPU did."""

    def trace(self, case, sched=None, env=None):
        path = os.path.join(self.dir, "t.hed")
        if os.path.exists(path):
            os.unlink(path)
        self.work(case, "--trace", path, sched=sched, env=env)
        return path

    def chrome(self, path):
        out = os.path.join(self.dir, "t.json")
        self.run_(HEDDLE, "trace", "export", "--chrome", path, "-o", out)
        with open(out, encoding="utf-8") as f:
            return json.load(f)["traceEvents"]

    def counts(self, path):
        summary = json.loads(self.run_(HEDDLE, "trace", "summary", "--json", path).stdout)
        return {c["name"]: c["count"] for c in summary["calls"]}

    def test_calls_and_kernels(self):
        path = self.trace("threads")
        counts = self.counts(path)
        self.assertEqual(counts["cuLaunchKernel"], 803)
        self.assertEqual(counts["cuStreamCreate"], 3)
        self.assertLessEqual(set(counts), PROGRAMS_CALLS)
        text = self.run_(HEDDLE, "trace", "show", path).stdout
        self.assertEqual(text.count("kernel wide"), 800)
        self.assertEqual(text.count("kernel mix"), 3)
        self.assertEqual(text.count("copy device to host, 8 bytes"), 2)

    def kernels_lie_behind_their_launches(self, path):
        """The chrome export shows each kernel at its launch's time or later, on the GPU's row."""
        events = self.chrome(path)
        calls = [e for e in events if e.get("ph") == "X" and e["name"] == "cuLaunchKernel"]
        kernels = [e for e in events if e.get("ph") == "X" and e["name"] in ("mix", "wide")]
        self.assertEqual(len(calls), len(kernels))
        # Their order is not known, but all lie within the program's time.
        # (In microseconds. Clocks are compared with a small error; a wrong one would be days off.)
        low = min(e["ts"] for e in calls) - 1e6
        high = max(e["ts"] + e["dur"] for e in calls) + 1e6
        for k in kernels:
            self.assertTrue(low <= k["ts"] <= high, k)

    def test_times_are_those_of_the_calls(self):
        self.kernels_lie_behind_their_launches(self.trace("threads"))

    def test_times_are_those_of_the_calls_if_cupti_has_its_own_clock(self):
        self.kernels_lie_behind_their_launches(
            self.trace("threads", env=environment(FAKE_CUPTI="clock")))

    def test_with_sched_and_record(self):
        for sched in ("policy=fair", f"mode=record,policy=batch,batch=4,{LONG}"):
            path = self.trace("by_number" if "record" in sched else "threads", sched=sched)
            counts = self.counts(path)
            self.assertLessEqual(set(counts), PROGRAMS_CALLS)  # not heddle's own
            launches = 7 if "record" in sched else 803
            self.assertEqual(counts["cuLaunchKernel"], launches)
            text = self.run_(HEDDLE, "trace", "show", path).stdout
            self.assertEqual(text.count("kernel mix") + text.count("kernel wide"), launches)
            self.assertNotIn("CUDA_ERROR_INVALID_VALUE", text)  # held launches succeeded

    def test_a_kernel_names_its_launch(self):
        """Whether it was held or not, the correlation id is that of the program's own call."""
        for sched, launches in ((None, 5), (f"mode=record,policy=batch,batch=4,{LONG}", 11)):
            path = self.trace("by_number_one_stream" if sched else "by_time", sched=sched)
            summary = json.loads(self.run_(HEDDLE, "trace", "summary", "--json", path).stdout)
            links = {w["name"]: w["count"] for w in summary["waits"]}
            self.assertEqual(links, {"cuLaunchKernel": launches, "cuMemcpyDtoH_v2": 1})
            kernels = [e for e in self.chrome(path) if e.get("ph") == "X" and e["name"] == "mix"]
            self.assertEqual(len(kernels), launches)


class Harmless(Case):
    """Whatever goes wrong, the program still runs."""

    def test_another_profiler(self):
        path = os.path.join(self.dir, "t.hed")
        r = self.work("by_time", "--trace", path, env=environment(FAKE_CUPTI="refuse"))
        self.assertIn("another profiler uses CUPTI", r.stderr)
        self.assertEqual(r.stderr.count("\n"), 1)
        self.assertFalse(os.path.exists(path))

    def test_a_driver_that_keeps_its_arguments(self):
        """With such a driver nothing can be held, and every launch runs once."""
        for case in ("full_queue", "threads", "other_calls"):
            r = self.work(case, sched=f"mode=record,policy=batch,batch=4,{LONG}",
                          env=environment(FAKE_CUPTI="deaf"))
            self.assertIn("does not let heddle hold cuLaunchKernel", r.stderr)

    def test_no_cupti(self):
        r = self.run_(HEDDLE, "run", "--inject", "--driver", FAKE, "--sched", "on", "--set",
                      "cupti=/nowhere/libcupti.so", "--", WORK, "by_time")
        self.assertIn("cannot load CUPTI", r.stderr)

    def test_a_library_that_is_not_cupti(self):
        r = self.run_(HEDDLE, "run", "--inject", "--driver", FAKE, "--sched", "on", "--set",
                      f"cupti={LIBRARY}", "--", WORK, "by_time")
        self.assertIn("this libcupti lacks", r.stderr)

    def test_wrong_settings(self):
        base = {"HEDDLE_DRIVER": FAKE, "CUDA_INJECTION64_PATH": LIBRARY, "HEDDLE_CUPTI": FAKE,
                "HEDDLE_LOG": "warn"}
        for more, says in (({"HEDDLE_SCHED": "nonsense"}, "nonsense"),
                           ({"HEDDLE_GPU": "null", "HEDDLE_SCHED": "on"}, "the program's own GPU"),
                           ({"HEDDLE_TRACE": "/nowhere/at/all/t.hed"}, "/nowhere"),
                           ({"HEDDLE_NONSENSE": "1"}, "HEDDLE_NONSENSE")):
            r = self.run_(WORK, "by_time", env=environment(**base, **more))
            self.assertIn(says, r.stderr, more)

    def test_nothing_asked_for(self):
        r = self.run_(WORK, "by_time", env=environment(HEDDLE_DRIVER=FAKE, HEDDLE_LOG="warn",
                                                       CUDA_INJECTION64_PATH=LIBRARY))
        self.assertEqual(r.stderr, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
