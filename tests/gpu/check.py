#!/usr/bin/env python3
"""Shows, on a machine with an NVIDIA GPU, that programs behave under heddle as without it.

    tests/gpu/check.py [--build DIR] [--out DIR] [--part programs,conformance,tools,time] [--runs N]

`programs`: real programs print the same, natively, under heddle, and under heddle with a trace.
`conformance`: those of tests/conformance/answers and tests/cu print their golden data, both ways.
`tools`: compute-sanitizer, ncu, torch.profiler and nvidia-smi still work. `time`: the PyTorch
training step's time, alternating native, heddle, and heddle with a trace. Builds what it needs with
cmake and nvcc. Ends with `N passed, N failed, N skipped`; exit status 0 if nothing failed.
"""

import argparse
import json
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
PROGRAMS = Path(__file__).resolve().parent / "programs"
results = []


def report(name, verdict, detail=""):
    results.append((name, verdict, detail))
    print(f"{verdict:4} {name}{': ' + detail if detail else ''}", flush=True)


def run(command, env=None, timeout=240):
    """Output, errors and status of a command. A timeout has a status of its own."""
    try:
        p = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=work,
                           timeout=timeout, env={**os.environ, **(env or {})})
        return p.stdout, p.stderr, p.returncode
    except subprocess.TimeoutExpired:
        return "", f"no end after {timeout} s", "time-out"


def build():
    args = ["cmake", "-S", TOP, "-B", options.build, "-DCMAKE_BUILD_TYPE=Release"]
    if shutil.which("ninja"):
        args += ["-G", "Ninja"]
    for command in (args, ["cmake", "--build", options.build, "-j", str(os.cpu_count())]):
        out, err, status = run(command, timeout=540)
        if status:
            sys.exit(f"the build failed:\n{out[-4000:]}{err[-2000:]}")
    for name, source, flags in (
            ("array_static", "array.cu", []), ("array_shared", "array.cu", ["-cudart", "shared"]),
            ("streams", "streams.cu", []), ("oob", "oob.cu", []),
            ("streams_ptds", "streams.cu", ["-default-stream", "per-thread"]),
            ("driver", "driver.c", ["-lcuda"])):
        out, err, status = run([NVCC, "-O1", PROGRAMS / source, "-o", work / name, *flags])
        if status:
            sys.exit(f"nvcc {source}:\n{out}{err}")


def heddle(*args):
    return [options.build / "bin" / "heddle", "run", "--gpu", "gpu", *args, "--"]


def same_everywhere(name, command):
    """The program's output without heddle, under heddle in both ways, and traced."""
    want = run(command)
    if want[2] != 0:
        last = (want[1] or want[0]).strip().splitlines()[-1:]
        report(name, "skip", f"does not run here without heddle: {last}")
        return
    trace = work / f"{name}.hed"
    ways = {"heddle": heddle(), "library-path": heddle("--no-preload"),
            "trace": heddle("--trace", trace)}
    for way, prefix in ways.items():
        got = run(prefix + command)
        if (got[0], got[2]) == (want[0], 0):
            report(f"{name}/{way}", "ok")
        else:
            report(f"{name}/{way}", "FAIL", f"status {got[2]}: {got[0][-300:]!r} {got[1][-600:]!r}")
    out, err, status = run([options.build / "bin" / "heddle", "trace", "summary", "--json", trace])
    try:
        calls = sum(c["count"] for c in json.loads(out)["calls"])
        report(f"{name}/records", "ok" if calls > 5 else "FAIL", f"{calls} calls in the trace")
    except (ValueError, KeyError, TypeError) as e:
        report(f"{name}/records", "FAIL", f"{e}: {err[-300:]}")


def programs():
    for name in ("array_static", "array_shared", "streams", "streams_ptds", "driver"):
        same_everywhere(name, [work / name])
    for name in ("torch_train", "cupy_hello", "triton_hello", "jax_hello", "nvml_hello"):
        same_everywhere(name, ["python3", PROGRAMS / f"{name}.py"])


def agree(name, golden, command, way):
    """The program prints exactly the golden data."""
    out, err, status = run([sys.executable, "-B", TOP / "tests" / "conformance" / "agree.py",
                            "--same", golden, *command])
    report(f"{name}/{way}", "FAIL" if status else "ok", (out + err)[-1500:] if status else "")


def conformance():
    """The GPU still gives the golden data, and so does heddle above it."""
    answers = TOP / "tests" / "conformance"
    for golden in sorted((answers / "golden").glob("*.txt")):
        program = options.build / "tests" / "conformance" / f"conf_answers_{golden.stem}"
        for way, prefix in (("native", []), ("heddle", heddle())):
            agree(f"answers {golden.stem}", golden, [*prefix, program], way)
    names = cu_programs()

    def build_one(name):
        return run(build_cu(name, work / f"cu_{name}"))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        built = list(pool.map(build_one, names))
    for name, (out, err, status) in zip(names, built):
        if status:
            report(f"cu {name}", "FAIL", f"nvcc: {out}{err}")
            continue
        for way, prefix in (("native", []), ("heddle", heddle())):
            agree(f"cu {name}", TOP / "tests" / "cu" / "golden" / f"{name}.txt",
                  [*prefix, work / f"cu_{name}"], way)


def expect(name, command, test, env=None):
    out, err, status = run(command, env)
    if test(out, err, status):
        report(name, "ok")
    else:
        report(name, "FAIL", f"status {status}: {out[-500:]!r} {err[-500:]!r}")


def tools():
    traced = heddle("--trace", work / "tools.hed")
    for way, prefix in (("heddle", heddle()), ("trace", traced)):
        expect(f"torch.profiler/{way}", prefix + ["python3", PROGRAMS / "profiler.py"],
               lambda o, e, s: s == 0 and o.split() == ["True", "True"])
        expect(f"compute-sanitizer/{way}", prefix + ["compute-sanitizer", work / "array_static"],
               lambda o, e, s: "1 2 3 4" in o and "ERROR SUMMARY" in o)
        expect(f"compute-sanitizer finds/{way}", prefix + ["compute-sanitizer", work / "oob"],
               lambda o, e, s: "Invalid __global__ write" in o and "past" in o)
        expect(f"ncu/{way}", prefix + ["ncu", "--clock-control", "none", work / "array_static"],
               lambda o, e, s: "sum" in o and "Duration" in o and "1 2 3 4" in o)
    want = run(["nvidia-smi", "-L"])
    expect("nvidia-smi", heddle() + ["nvidia-smi", "-L"],
           lambda o, e, s: (o, s) == (want[0], want[2]))
    expect("heddle devices", [options.build / "bin" / "heddle", "devices", "--gpu", "gpu"],
           lambda o, e, s: s == 0 and "NVIDIA" in o)
    doctor = run([options.build / "bin" / "heddle", "doctor"])
    report("heddle doctor", "FAIL" if doctor[2] else "ok", doctor[0] if doctor[2] else "")


def time_steps():
    """The median step time of each way and its ratio to native, over alternating runs."""
    command = ["python3", PROGRAMS / "torch_time.py"]
    ways = {"native": [], "heddle": heddle(), "trace": heddle("--trace", work / "time.hed")}
    times = {}
    for _ in range(options.runs):
        for way, prefix in ways.items():
            for old in work.glob("time*.hed"):
                old.unlink()
            out, err, status = run(prefix + command)
            if status:
                report(f"time/{way}", "FAIL", err[-300:])
                return
            for line in out.splitlines():
                if line.startswith("time "):
                    _, kind, us = line.split()
                    times.setdefault((kind, way), []).append(float(us))
    # Figures, not verdicts: no test of ours asserts a time. Targets: heddle 1.01, trace 1.03.
    for kind in ("small", "large", "graph"):
        native = statistics.median(times[kind, "native"])
        print(f"torch_step_{kind}/native {native:.1f} us")
        for way in ("heddle", "trace"):
            ratios = [m / n for m, n in zip(times[kind, way], times[kind, "native"])]
            mine = statistics.median(times[kind, way])
            print(f"torch_step_{kind}/{way} {mine:.1f} us")
            print(f"torch_step_{kind}/{way}_x {mine / native:.4f} ratio")
            print(f"torch_step_{kind}/{way}_paired_x {statistics.median(ratios):.4f} ratio")
        raw = {w: [round(t, 1) for t in times[kind, w]] for w in ways}
        print(f"# raw {kind} {json.dumps(raw)}", flush=True)
    ratios = [a / b for a, b in zip(times["small", "trace"], times["small_off", "trace"])]
    print(f"torch_step_small/recording_on_x {statistics.median(ratios):.4f} ratio")
    print(f"# raw on/off {json.dumps([round(r, 4) for r in ratios])}")


def main():
    global options, work
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=Path, default=TOP / "build" / "gpu")
    p.add_argument("--out", type=Path, help="folder for the results (default: nowhere)")
    p.add_argument("--part", default="programs,conformance,tools,time")
    p.add_argument("--runs", type=int, default=5)
    options = p.parse_args()
    work = Path(tempfile.mkdtemp(prefix="heddle-gpu-"))
    build()
    for part in options.part.split(","):
        {"programs": programs, "conformance": conformance, "tools": tools,
         "time": time_steps}[part]()
    count = {v: sum(r[1] == v for r in results) for v in ("ok", "FAIL", "skip")}
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "results.json").write_text(json.dumps(results, indent=1))
    print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    shutil.rmtree(work, ignore_errors=True)
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
