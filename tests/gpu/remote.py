#!/usr/bin/env python3
"""Shows, on a machine with an NVIDIA GPU, that programs behave on a heddle server's GPU as on their
own: `heddled --gpu gpu` in one process, the program in another.

    tests/gpu/remote.py [--build DIR] [--part programs,conformance,processes,time]
                        [--transport shm] [--runs N] [--sandbox require]

`programs`: real programs print the same natively and remotely. `conformance`: those of
tests/conformance/answers and tests/cu print their golden data, or differ as the soft driver does on
purpose (agree.py). `processes`: programs share memory, events and pools with CUDA IPC. `time`:
bench/remote_calls and the PyTorch step, native beside remote. Ends with
`N passed, N failed, N skipped`; exits with 0 if nothing failed.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import NVCC, build_cu, cu_programs

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
from harness.patience import listens, until  # noqa: E402

PROGRAMS = Path(__file__).resolve().parent / "programs"
results = []

# Programs that are linked on the device side: with machine code for this GPU, with machine code and
# PTX for an older one, and with PTX alone. The driver links the latter two again.
LINKED = {"linked": "linked/first.cu linked/second.cu linked/third.cu", "nested": "nested.cu",
          "conditional": "conditional.cu"}
WAYS = {"machine": ["-arch=sm_90"], "older": ["-arch=sm_80"],
        "ptx": ["-arch=compute_80", "-code=compute_80"]}
# What two processes do with the memory, events and pools of each other: tests/e2e/cpu.
PROCESSES = {"processes": ("memory_goes_both_ways", "a_name_is_opened_again",
                           "events_order_two_processes", "events_are_recorded_in_turns",
                           "pools_are_shared", "bad_addresses_still_fail"),
             "processes_strange": ("an_exporter_is_killed", "hostile_names_are_refused")}


def report(name, verdict, detail=""):
    results.append(verdict)
    print(f"{verdict:4} {name}{': ' + detail if detail else ''}", flush=True)


def run(command, env=None, timeout=180):
    try:
        p = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=work,
                           timeout=timeout, env={**os.environ, **(env or {})})
        return p.stdout, p.stderr, p.returncode
    except subprocess.TimeoutExpired as e:
        return (e.stdout or b"").decode(errors="replace"), f"no end after {timeout} s", "time-out"


def build():
    args = ["cmake", "-S", TOP, "-B", options.build, "-DCMAKE_BUILD_TYPE=Release"]
    if shutil.which("ninja"):
        args += ["-G", "Ninja"]
    targets = ["libcuda", "libnvidia_ml", "backend_remote", "heddled", "heddle",
               "bench_remote_calls", *(f"e2e_cpu_{p}" for p in PROCESSES)]
    targets += [f"conf_answers_{g.stem}" for g in (TOP / "tests/conformance/golden").glob("*.txt")]
    for command in (args, ["cmake", "--build", options.build, "-j", str(os.cpu_count()),
                           "--target", *targets]):
        out, err, status = run(command, timeout=540)
        if status:
            sys.exit(f"the build failed:\n{out[-4000:]}{err[-2000:]}")

    def compile_one(row):
        name, sources, flags = row
        return name, run([NVCC, "-O1", *(PROGRAMS / s for s in sources.split()), "-o", work / name,
                          *flags])

    rows = [("array_static", "array.cu", []), ("array_shared", "array.cu", ["-cudart", "shared"]),
            ("streams", "streams.cu", []), ("system_atomics", "system_atomics.cu", []),
            ("streams_ptds", "streams.cu", ["-default-stream", "per-thread"]),
            ("driver", "driver.c", ["-lcuda"])]
    rows += [(f"{program}_{way}", sources, ["-rdc=true", *flags])
             for program, sources in LINKED.items() for way, flags in WAYS.items()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, (out, err, status) in pool.map(compile_one, rows):
            if status:
                sys.exit(f"nvcc {name}:\n{out}{err}")


def remote():
    return [options.build / "bin" / "heddle", "run", "--gpu", address, "--"]


def programs():
    commands = {n: [work / n] for n in ("array_static", "array_shared", "streams", "streams_ptds",
                                        "driver", "system_atomics")}
    commands |= {n: [work / n] for n in (f"{p}_{w}" for p in LINKED for w in WAYS)}
    commands |= {n: ["python3", PROGRAMS / f"{n}.py"]
                 for n in ("torch_train", "cupy_hello", "triton_hello", "jax_hello", "nvml_hello")}
    for name, command in commands.items():
        want = run(command)
        if want[2] != 0:
            report(name, "skip", "does not run here without heddle")
            continue
        got = run(remote() + command)
        if (got[0], got[2]) == (want[0], 0):
            report(name, "ok")
        else:
            report(name, "FAIL", f"status {got[2]}: {got[0][-600:]!r} for {want[0][-300:]!r} "
                   f"{got[1][-1500:]!r}")


def agree(name, golden, command):
    out, err, status = run([sys.executable, "-B", TOP / "tests" / "conformance" / "agree.py",
                            "--either", golden, *remote(), *command],
                           env={"HEDDLE_GPU": address})
    report(name, "FAIL" if status else "ok", (out + err)[-2500:] if status else "")


def conformance():
    answers = TOP / "tests" / "conformance"
    for golden in sorted((answers / "golden").glob("*.txt")):
        agree(f"answers {golden.stem}", golden,
              [options.build / "tests" / "conformance" / f"conf_answers_{golden.stem}"])
    names = cu_programs()

    def build_one(name):
        return run(build_cu(name, work / f"cu_{name}"))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        built = list(pool.map(build_one, names))
    for name, (out, err, status) in zip(names, built):
        if status:
            report(f"cu {name}", "FAIL", f"nvcc: {out}{err}")
        else:
            agree(f"cu {name}", TOP / "tests" / "cu" / "golden" / f"{name}.txt",
                  [work / f"cu_{name}"])


def processes():
    libraries = options.build / "lib" / "heddle"
    for program, cases in PROCESSES.items():
        for case in cases:
            out, err, status = run([options.build / "tests" / "e2e" / "cpu" / f"e2e_cpu_{program}",
                                    case], env={"HEDDLE_GPU": address, "HEDDLE_CONFIG": "",
                                                "HED_LIBCUDA": str(libraries / "libcuda.so.1")})
            report(f"processes {case}", "FAIL" if status else "ok",
                   (out + err)[-800:] if status else "")


def time_calls():
    """Times the same program natively and remotely. These are figures, not verdicts."""
    bench = options.build / "bench" / "bench_remote_calls"
    rows = {}
    for _ in range(options.runs):
        for way, prefix, library in (
                ("native", [], "libcuda.so.1"),
                ("remote", remote(), options.build / "lib" / "heddle" / "libcuda.so.1")):
            out, err, status = run([*prefix, bench, library, "", "0.5"])
            if status:
                report(f"time/{way}", "FAIL", err[-1000:])
                return
            for line in out.splitlines():
                words = line.split()
                if len(words) == 3:
                    rows.setdefault((words[0], words[2]), {}).setdefault(way, []).append(
                        float(words[1]))
    for (name, unit), ways in rows.items():
        n, r = (statistics.median(ways[w]) for w in ("native", "remote"))
        print(f"{name:24} native {n:10.3f} remote {r:10.3f} {unit:5} {r / n:7.3f}x", flush=True)


def time_torch():
    times = {}
    for _ in range(options.runs):
        for way, prefix in (("native", []), ("remote", remote())):
            out, err, status = run([*prefix, "python3", PROGRAMS / "torch_time.py"])
            if status:
                report(f"torch/{way}", "FAIL", (out + err)[-1500:])
                return
            for line in out.splitlines():
                if line.startswith("time "):
                    _, kind, us = line.split()
                    times.setdefault(kind, {}).setdefault(way, []).append(float(us))
    for kind, ways in times.items():
        n, r = (statistics.median(ways[w]) for w in ("native", "remote"))
        print(f"torch_step_{kind:8} native {n:10.1f} remote {r:10.1f} us {n / r:7.3f} of native",
              flush=True)


def main():
    global options, work, address
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=Path, default=TOP / "build" / "gpu")
    p.add_argument("--part", default="programs,conformance,processes,time")
    p.add_argument("--transport", default="shm", choices=("shm", "unix", "tcp"))
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--sandbox", default="require", choices=("require", "auto", "off"))
    options = p.parse_args()
    options.build = options.build.resolve()
    work = Path(tempfile.mkdtemp(prefix="heddle-gpu-"))
    build()
    address = f"{options.transport}:{work}/s"
    if options.transport == "tcp":
        address = "tcp://127.0.0.1:7717"
        os.environ["HEDDLE_INSECURE"] = "yes"
    server = subprocess.Popen([options.build / "lib" / "heddle" / "heddled", "--listen", address,
                               "--gpu", "gpu", "--log", "warn", "--sandbox", options.sandbox,
                               *(["--insecure"] if options.transport == "tcp" else [])])
    until(lambda: listens(address), "a server that listens")
    try:
        for part in options.part.split(","):
            for f in {"programs": [programs], "conformance": [conformance],
                      "processes": [processes], "time": [time_calls, time_torch]}[part]:
                f()
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(work, ignore_errors=True)
    count = {v: results.count(v) for v in ("ok", "FAIL", "skip")}
    print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
