"""The parts of bench/share with plain C programs: B1 launches, B5 preemption, B7 memory, B9 start.

They run on a GPU, and on null or the CPU GPU, where times mean less or nothing."""

import json
import subprocess
import time

from world import Gone, beside, end, median, percentile

MIB = 1 << 20


# ---- B1 ------------------------------------------------------------------------------------------

def launch_ways(world):
    """Name -> (world, settings of this program, settings of an idle program beside it)."""
    ways = {"native": ("native", "", None),
            "gate": ("heddle", "", None),
            "gate, idle other": ("heddle", "", "prio=normal"),
            "gate, idle higher": ("heddle", "prio=low,cap_us=1000", "prio=high")}
    if world.knows("mode=record"):
        ways["record"] = ("heddle", "mode=record", None)
        ways["record, idle other"] = ("heddle", "mode=record", "prio=normal")
    else:
        world.say("# B1: this heddle has no mode=record")
    return ways


def launch_rows(world, way, side, settings, other, seconds):
    scope = "b1." + "".join(c for c in way if c.isalnum())
    program = world.program("launches")
    idle = None
    if other is not None:
        idle = world.start([*world.prefix("heddle", other, scope), program, "idle"])
        idle.ready(60)
    try:
        out = world.once([*world.prefix(side, settings, scope), program, str(seconds)], side)
    finally:
        if idle:
            idle.quit()
    if out is None:
        raise Gone(f"{way}: nothing was measured")
    return [json.loads(line) for line in out.splitlines()][1:]


def b1(world):
    seconds = world.options.seconds or (0.15 if world.options.quick else 0.4)
    ways = launch_ways(world)
    got = {}
    for r in range(world.options.repeat):
        order = list(ways.items())
        for way, (side, settings, other) in order if r % 2 == 0 else order[::-1]:
            for row in launch_rows(world, way, side, settings, other, seconds):
                got.setdefault((row["threads"], row["a_wait"]), {}).setdefault(way, []).append(row)
    world.say("\nB1 launches, ns (medians of runs; raw: submit p50)")
    for (threads, a_wait), rows in got.items():
        for way, some in rows.items():
            m = {k: median([s[k] for s in some]) for k in some[0]}
            raw = " ".join(f"{s['submit_p50']:.0f}" for s in some)
            world.say(f"  {threads} threads, {a_wait:3} a wait, {way:18} submit p50"
                      f" {m['submit_p50']:7.0f} p99 {m['submit_p99']:8.0f}  round p50"
                      f" {m['round_p50']:9.0f} p99 {m['round_p99']:9.0f}  cpu {m['cpu']:7.0f}"
                      f"  {m['per_s'] / 1e6:6.3f} M/s  [{raw}]")
    world.results["b1"] = [{"threads": t, "a_wait": a, "ways": w} for (t, a), w in got.items()]
    base = got.get((1, 256), {})
    for way in ways:
        if way != "native" and base.get(way) and base.get("native"):
            more = (median([s["submit_p50"] for s in base[way]])
                    - median([s["submit_p50"] for s in base["native"]]))
            bound = 30 if way == "gate" else None
            world.target(f"B1 {way}: a launch costs more, 1 thread, 256", "<= 30 ns" if bound
                         else "", f"{more:+.0f} ns", more <= bound if bound else None)


# ---- a kernel of a known length ------------------------------------------------------------------

def shape(world):
    """Grid and block: all of a GPU, or as much as one processor can do."""
    return ("132", "128") if world.real else ("1", "1")


def steps_a_us(world):
    out = world.once([*world.prefix("native"), world.program("loops"), "rate", *shape(world)],
                     "native")
    if out is None:
        raise Gone("the kernel cannot be timed")
    return 1 if world.no_time else float(out)


def loops(world, side, settings, scope, us, depth, rate):
    return world.start([*world.prefix(side, settings, scope), world.program("loops"), "serve",
                        *shape(world), str(max(1, int(us * rate))), str(depth)], side)


# ---- B5 ------------------------------------------------------------------------------------------

def b5(world):
    """Latency of a 20 us kernel and its wait, every 5 ms, beside kernels that fill the GPU."""
    o = world.options
    seconds = o.seconds or (0.8 if o.quick else 1.5)
    period = 0.005
    kernels = [float(k) for k in o.kernels.split(",")]
    caps = [int(c) for c in o.caps.split(",")]
    rate = steps_a_us(world)
    sides = ("native", "heddle") + (("mps",) if o.mps else ())
    depth = {k: max(4, min(64, int(16 / k))) for k in kernels}
    high = {s: loops(world, s, "prio=high", "b5", 20, 1, rate) for s in sides}
    low = {(s, k): loops(world, s, "prio=low", "b5", k * 1e3, depth[k], rate)
           for s in sides for k in kernels}
    for w in (*high.values(), *low.values()):
        w.ready()
    if o.settings:
        world.sched("b5", "set", o.settings)
    alone = {s: high[s].ask(f"open {seconds * 2} {period}", seconds * 2) for s in sides}
    full = {k: low["native", k].ask(f"flow {seconds}", seconds) for k in kernels}
    world.say(f"\nB5 a 20 us kernel every {period * 1e3:.0f} ms; latency in us")
    for s in sides:
        a = alone[s]
        world.say(f"  alone, {s}: p50 {a['p50']:.1f} p99 {a['p99']:.1f} max {a['max']:.1f}"
                  f" n {a['n']}")
    cells = []
    for k in kernels:
        for s, cap in [(s, None) for s in sides if s != "heddle"] + [("heddle", c) for c in caps]:
            if cap is not None:
                world.sched("b5", "set", f"cap_us={cap}")
            got, loss = beside(seconds, high[s], f"open {seconds} {period}", low[s, k], "flow")
            a = alone[s]
            cell = {"kernel_ms": k, "side": s, "cap_us": cap, "high": got, "low": loss,
                    "low_part": loss["rate"] / full[k]["rate"]}
            cells.append(cell)
            world.say(f"  {k:5g} ms kernels, {s:6} {'' if cap is None else f'cap {cap}':9}"
                      f" p50 {got['p50']:8.1f} ({got['p50'] / a['p50']:6.2f}x)"
                      f" p99 {got['p99']:8.1f} ({got['p99'] / a['p99']:6.2f}x)"
                      f" max {got['max']:8.1f} n {got['n']:4}  best effort"
                      f" {cell['low_part']:.3f} of {full[k]['rate']:.0f}/s")
            if s == "heddle":
                bound = a["p99"] + cap + k * 1e3
                world.target(f"B5 {k:g} ms kernels, cap {cap} us: p99",
                             f"<= {bound:.0f} us", f"{got['p99']:.0f} us",
                             got["p99"] <= bound if world.real else None)
    world.results["b5"] = {"alone": alone, "full": full, "cells": cells}
    for w in (*high.values(), *low.values()):
        w.quit()


# ---- B7 ------------------------------------------------------------------------------------------

def b7(world):
    limit, piece = 512 * MIB, 16 * MIB
    program = world.program("quota")
    group = f"{world.name}.quota"
    run = [str(world.heddle), "run", "--gpu", world.gpu, "--mem", str(limit), "--"]
    env = {"HEDDLE_MEM_GROUP": group}
    out = world.once([*run, program, str(piece)], timeout=60)
    if out is None:
        raise Gone("nothing can be allocated")
    world.say(f"\nB7 limit {limit // MIB} MiB, in pieces of {piece // MIB} MiB, MiB given")
    rows = {}
    for line in out.splitlines():
        api, got, error = line.split()
        if got == "-" or (world.no_time and "Graph" in api):
            world.say(f"  {api:26} not on this GPU ({error})")
            continue
        rows[api] = int(got)
        world.say(f"  {api:26} {int(got) // MIB:5}  over {max(0, int(got) - limit) // MIB}"
                  f" under {max(0, limit - int(got)) // MIB}  refused with {error}")
    over = max((max(0, v - limit) for v in rows.values()), default=-1)
    under = max((max(0, limit - v) for v in rows.values()), default=-1)
    world.target(f"B7 bytes over the limit, {len(rows)} APIs", "0", str(over), over == 0)
    world.target("B7 bytes under it (what is left of a piece)", f"<= {2 * piece}", str(under),
                 0 <= under <= 2 * piece)
    leaked = killed(world, run, program, limit, env)
    world.target("B7 leaked by three kills -9", "0", str(leaked), leaked == 0)
    quota = world.build / "tests" / "e2e" / "e2e_quota"
    passed = None
    if quota.exists() and not world.no_time:
        passed = world.once([str(quota)], timeout=120, HEDDLE_GPU=world.gpu,
                            HED_LIBCUDA=str(world.build / "lib/heddle/libcuda.so.1"),
                            HED_LIBNVML=str(world.build / "lib/heddle/libnvidia-ml.so.1"),
                            LD_LIBRARY_PATH=str(world.build / "lib/heddle")) is not None
        world.target("B7 e2e/sched/quota.c", "passes", "passes" if passed else "fails", passed)
    world.results["b7"] = {"limit": limit, "given": rows, "leaked": leaked, "e2e": passed}


def killed(world, run, program, limit, env):
    """The bytes that a group has lost after some of its processes were killed."""
    first = world.once([*run, program, "most"], timeout=60, **env)
    for _ in range(3):
        p = subprocess.Popen([*run, program, "hold", str(limit * 3 // 4)], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             start_new_session=True, env={**world.environment(), **env})
        p.stdout.readline()
        end(p)
        p.stdout.close()
    last = world.once([*run, program, "most"], timeout=60, **env)
    return int(first) - int(last) if first and last else -1


# ---- B9 ------------------------------------------------------------------------------------------

def start_all(world, side, count):
    """The milliseconds from start to first launch, of each process and of all together."""
    prefix = world.prefix(side, "", "b9", ("--mem", "1G"))
    began = []
    workers = []
    for _ in range(count):
        began.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        workers.append(world.start([*prefix, world.program("launches"), "first"], side))
    done = [int(w.line(120)) for w in workers]
    for w in workers:
        w.p.stdin.close()
    for w in workers:
        w.quit()
    return [(d - b) / 1e6 for d, b in zip(done, began)], (max(done) - began[0]) / 1e6


def b9(world):
    count = world.options.processes
    world.say(f"\nB9 {count} processes to their first launch, ms")
    for side in ("native", "heddle"):
        start_all(world, side, 1)  # the driver has compiled and kept what it needs
    each = {"native": [], "heddle": []}
    total = {"native": [], "heddle": []}
    for r in range(max(1, world.options.repeat // 2)):
        for side in ("native", "heddle") if r % 2 == 0 else ("heddle", "native"):
            some, all_of_them = start_all(world, side, count)
            each[side] += some
            total[side].append(all_of_them)
    for side in each:
        world.say(f"  {side:6} p50 {percentile(each[side], .5):8.1f} p99"
                  f" {percentile(each[side], .99):8.1f}  all {median(total[side]):8.1f}"
                  f"  [{' '.join(f'{t:.0f}' for t in total[side])}]")
    ratio = median(total["heddle"]) / median(total["native"])
    world.target(f"B9 {count} processes, all of them", "<= 1.10x", f"{ratio:.2f}x",
                 ratio <= 1.1 if world.real else None)
    world.results["b9"] = {"each": each, "total": total}
