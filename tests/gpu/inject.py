#!/usr/bin/env python3
"""Shows, on a machine with an NVIDIA GPU, what the injection library does: `heddle run --inject`.

    tests/gpu/inject.py [--build DIR] [--part programs,hold,trace,torch,time] [--runs N]

`programs`: real programs print the same natively and under it, in gate mode, in record mode and
traced. `hold`: launches are held and released by number, by a wait, by time, and compute the same.
`trace`: the trace has kernels and copies, each with the call that caused it, and exports. `torch`:
a PyTorch training step's losses are the same, bit for bit. `time`: that step's time; figures, not
verdicts. Needs nvcc and CUPTI. Ends with `N passed, N failed, N skipped`; exit status 0 if nothing
failed.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import PROGRAMS, TOP, Check  # noqa: E402

LONG = "batch_wait_us=10000000"
SCOPE = f"scope=inject{os.getpid()}"
WAYS = {
    "gate": ["--sched", f"{SCOPE},policy=fair"],
    "record": ["--sched", f"{SCOPE},mode=record"],
    "batch": ["--sched", f"{SCOPE}b,mode=record,policy=batch,batch=16,batch_wait_us=500"],
}


def inject(*options):
    return [check.build / "bin" / "heddle", "run", "--inject", *options, "--"]


def traced(name):
    return ["--trace", check.work / f"{name}.hed"]


def same_everywhere(name, command, ways):
    want = check.run(command)
    if want[2] != 0:
        last = (want[1] or want[0]).strip().splitlines()[-1:]
        check.report(name, "skip", f"does not run here without heddle: {last}")
        return
    for way, options in ways.items():
        got = check.run(inject(*options) + command)
        # The log is empty: CUPTI was found, and no other tool used it.
        check.expect(f"{name}/{way}", got == (want[0], "", 0) or (got[0], got[2]) == (want[0], 0)
                     and "without heddle" not in got[1],
                     f"status {got[2]}: {got[0][-400:]!r} for {want[0][-400:]!r} {got[1][-600:]!r}")


def programs():
    for name in ("array_static", "array_shared", "streams", "streams_ptds", "driver", "hold"):
        same_everywhere(name, [check.work / name], {**WAYS, "trace": traced(name)})


def hold():
    """What ran when, as the program printed it."""
    for name, words, settings in (
            ("by number", ["by-number", "8"], f"batch=8,{LONG}"),
            ("by a wait", ["by-wait", "8"], f"batch=1000,{LONG}"),
            ("by time", ["by-time", "8"], "batch=1000,batch_wait_us=2000000")):
        out, err, status = check.run(
            inject("--sched", f"{SCOPE}h,mode=record,policy=batch,{settings}") +
            [check.work / "hold", *words])
        check.expect(f"held, released {name}", (out, status) == ("held 1\nreleased 1\n", 0),
                     f"status {status}: {out!r} {err[-600:]!r}")
    out, err, status = check.run([check.work / "hold", "by-wait", "8"])
    check.expect("nothing is held without it", (out, status) == ("held 0\nreleased 1\n", 0),
                 f"status {status}: {out!r}")
    for settings in (f"batch=4,{LONG}", "batch=64,batch_wait_us=200",
                     f"batch=1000,queue=32,{LONG}"):
        same_everywhere(f"results, {settings}", [check.work / "hold", "results"],
                        {"batch": ["--sched", f"{SCOPE}r,mode=record,policy=batch,{settings}"]})


def chrome(trace):
    out = check.work / "t.json"
    _, err, status = check.run([check.build / "bin" / "heddle", "trace", "export", "--chrome",
                                trace, "-o", out])
    if status:
        check.report("export", "FAIL", err[-600:])
        return []
    return json.loads(out.read_text())["traceEvents"]


def trace():
    heddle = check.build / "bin" / "heddle"
    for way, options in {"alone": [], **WAYS}.items():
        path = check.work / f"trace_{way}.hed"
        out, err, status = check.run(inject("--trace", path, *options) +
                                     [check.work / "hold", "results"])
        if not check.expect(f"trace/{way}", status == 0, f"{out[-300:]!r} {err[-600:]!r}"):
            continue
        out, err, status = check.run([heddle, "trace", "summary", "--json", path])
        try:
            summary = json.loads(out)
        except ValueError:
            check.report(f"trace/{way}/summary", "FAIL", err[-600:])
            continue
        gpus = [g for f in summary["files"] for g in f.get("gpus", [])]
        kernels = sum(g["kernels"] for g in gpus)
        # 8000 on streams, 300 of other kinds, 50 beside graphs, which have 5 each.
        check.expect(f"trace/{way}/kernels", kernels >= 8350, f"{kernels} kernels: {gpus}")
        check.expect(f"trace/{way}/copies", sum(g["copies"] for g in gpus) >= 10, str(gpus))
        waits = {w["name"]: w["count"] for w in summary.get("waits", [])}
        check.expect(f"trace/{way}/links", sum(waits.values()) >= 8350, str(waits))
        events = chrome(path)
        names = {e["name"] for e in events if e.get("ph") == "X"}
        check.expect(f"trace/{way}/chrome", any("mix" in n for n in names) and
                     "cuLaunchKernel" in names, str(sorted(names))[:600])
        calls = [e for e in events if e.get("ph") == "X" and e["name"].startswith("cu")]
        rows = [e for e in events if e.get("ph") == "X" and "mix" in e["name"]]
        if calls and rows:
            low, high = min(e["ts"] for e in calls), max(e["ts"] + e["dur"] for e in calls)
            # In microseconds. A wrong clock would be far off.
            check.expect(f"trace/{way}/clock",
                         all(low - 1e6 <= e["ts"] <= high + 1e6 for e in rows),
                         "kernels lie outside of the program's time")


def torch():
    same_everywhere("torch_train", ["python3", PROGRAMS / "torch_train.py"],
                    {**WAYS, "trace": traced("torch")})


def time_steps():
    command = ["python3", PROGRAMS / "torch_time.py"]
    ways = {"native": [], **{w: inject(*o) for w, o in WAYS.items()}, "trace": None}
    times = {}
    for _ in range(options.runs):
        for way, prefix in ways.items():
            for old in check.work.glob("time*.hed"):
                old.unlink()
            prefix = inject(*traced("time")) if prefix is None else prefix
            out, err, status = check.run(prefix + command)
            if status:
                check.report(f"time/{way}", "FAIL", (out + err)[-600:])
                return
            for line in out.splitlines():
                if line.startswith("time "):
                    _, kind, us = line.split()
                    times.setdefault(kind, {}).setdefault(way, []).append(float(us))
    for kind, by_way in times.items():
        native = statistics.median(by_way["native"])
        for way, values in by_way.items():
            median = statistics.median(values)
            print(f"torch_step_{kind}/inject_{way} {median:.1f} us {median / native:.4f}x",
                  flush=True)


def main():
    global check, options
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=Path, default=TOP / "build" / "gpu")
    p.add_argument("--part", default="programs,hold,trace,torch,time")
    p.add_argument("--runs", type=int, default=3)
    options = p.parse_args()
    check = Check(options.build)
    check.make(["heddle", "libcuda", "libnvidia_ml", "libheddle_inject"], {
        "array_static": ("array.cu", []),
        "array_shared": ("array.cu", ["-cudart", "shared"]),
        "streams": ("streams.cu", []),
        "streams_ptds": ("streams.cu", ["-default-stream", "per-thread"]),
        "driver": ("driver.c", ["-lcuda"]),
        "hold": ("hold.cu", ["-std=c++17", "-arch=native"]),
    })
    for part in options.part.split(","):
        {"programs": programs, "hold": hold, "trace": trace, "torch": torch,
         "time": time_steps}[part]()
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
