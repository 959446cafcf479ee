"""The parts of bench/share with PyTorch programs: B2 launch-bound and B3 compute-bound work alone,
B4 high priority beside best effort, B6 shares. B6 also runs with plain kernels."""

import os
import sys

from plain import loops, steps_a_us
from world import HERE, Gone, abba, beside, median, percentile, together

REQUESTS = ("short", "long", "generate")
BEST_EFFORT = ("gemm", "train", "replay")
SHARES = ((50, 50), (75, 25), (90, 10))


class Crew:
    """PyTorch programs. They all start at once, because that takes long, and wait for orders."""

    def __init__(self, world):
        self.world = world
        self.workers = {}

    def add(self, side, name, settings="", scope=""):
        """name: KIND or KIND.N. Under heddle, a program measured alone has a scope of its own."""
        key = (side, name, scope)
        if key not in self.workers:
            w = self.world
            self.workers[key] = w.start([*w.prefix(side, settings, scope or "alone." + name),
                                         sys.executable, str(HERE / "workers.py"),
                                         name.split(".")[0], *self.core(side, name)], side)

    @staticmethod
    def core(side, name):
        """Programs that work at the same time get processors of their own, if there are enough.
        Otherwise the kernel's scheduler would decide their times."""
        if os.cpu_count() < 16:
            return []
        return ["12" if "." in name else "0" if name in REQUESTS else
                {"heddle": "8", "record": "10"}.get(side, "4")]

    def ready(self):
        for key, w in list(self.workers.items()):
            try:
                w.ready(240)
            except Gone as e:
                print(f"# {key}: {e}", flush=True)
                del self.workers[key]

    def __call__(self, side, name, scope=""):
        try:
            return self.workers[side, name, scope if side in ("heddle", "record") else ""]
        except KeyError:
            raise Gone(f"{side} {name} is not there") from None


def sides(world):
    """record: the program of low priority is recorded, so that it can run ahead."""
    return ("native", "heddle", "record") + (("mps",) if world.options.mps else ())


def crew_for(world, parts):
    crew = Crew(world)
    alone = (["decoder", "decoder_graph"] if "b2" in parts else []) + (
        ["gemm", "train"] if "b3" in parts else [])
    for name in alone:
        crew.add("native", name)
        crew.add("heddle", name)
    if "b4" in parts:
        for side in sides(world):
            low = "prio=low,mode=record" if side == "record" else "prio=low"
            for name in world.options.requests.split(","):
                crew.add(side, name, "prio=high", scope_of(side))
            for name in world.options.best_effort.split(","):
                crew.add(side, name, low, scope_of(side))
    if "b6" in parts:
        for name in ("gemm", "gemm.2"):
            crew.add("native", name)
            crew.add("heddle", name, "", "fair")
    if crew.workers:
        world.say(f"# {len(crew.workers)} PyTorch programs start")
        crew.ready()
    return crew


# ---- B2, B3 --------------------------------------------------------------------------------------

def alone_of(world, crew, part, title, names, unit):
    seconds = world.options.seconds or (0.8 if world.options.quick else 1.5)
    world.say(f"\n{title}, {unit}")
    world.results[part] = {}
    for name in names:
        rates = {"native": [], "heddle": []}
        means = {"native": [], "heddle": []}
        cpu = {"native": [], "heddle": []}
        for side in abba(2 * world.options.repeat):
            got = crew(side, name).ask(f"closed {seconds}", seconds)
            # By the median step, so that a step that the machine disturbs does not decide.
            rates[side].append(1e3 / median(got["latency"]))
            means[side].append(got["rate"])
            cpu[side].append(got["cpu"])
        ratio = median(rates["heddle"]) / median(rates["native"])
        for side in rates:
            world.say(f"  {name:14} {side:6} {median(rates[side]):10.2f}  cpu"
                      f" {median(cpu[side]):.2f}  [{' '.join(f'{r:.2f}' for r in rates[side])}]")
        mean = median(means["heddle"]) / median(means["native"])
        world.say(f"  {name:14} heddle/native {ratio:.4f} by median step, {mean:.4f} by all steps")
        world.target(f"{part.upper()} {name} alone under the gate", ">= 0.99", f"{ratio:.4f}",
                     ratio >= 0.99)
        world.results[part][name] = {"rates": rates, "means": means, "cpu": cpu,
                                       "ratio": ratio, "mean_ratio": mean}


def b2(world, crew):
    alone_of(world, crew, "b2", "B2 launch-bound, alone", ("decoder", "decoder_graph"), "steps/s")


def b3(world, crew):
    alone_of(world, crew, "b3", "B3 compute-bound, alone", ("gemm", "train"), "steps/s")


# ---- B4 ------------------------------------------------------------------------------------------

def scope_of(side):
    return {"heddle": "prio", "record": "prio.record"}.get(side, "")


def request_alone(crew, side, name, period, seconds):
    got = crew(side, name, scope_of(side)).ask(f"open {seconds} {period}", seconds)
    return got["latency"]


def b4(world, crew):
    o = world.options
    seconds = o.seconds or (4 if o.quick else 8)
    if o.settings:
        for side in ("heddle", "record"):
            world.sched(scope_of(side), "set", o.settings)
    full = {}
    best_effort = o.best_effort.split(",")
    requests = o.requests.split(",")
    for b in best_effort:
        full[b] = crew("native", b).ask("closed 1.5", 1.5)["rate"]
        for side in ("heddle", "record"):
            mine = crew(side, b, scope_of(side)).ask("closed 1.5", 1.5)["rate"]
            world.say(f"# {b} alone, but a higher one idle, {side}: {mine / full[b]:.3f}"
                      f" of native, {full[b]:.2f}/s")
    world.say("\nB4 a request now and then beside best effort; latency against the same alone")
    cells = []
    for name in requests:
        peak = crew("native", name).ask("closed 1.5", 1.5)["rate"]
        period = 5 / peak
        alone = {s: request_alone(crew, s, name, period, seconds / 2) for s in sides(world)}
        pairs = [(s, b) for b in best_effort for s in sides(world)]
        found = []
        hot = {}
        for side, b in pairs:
            if b not in hot:
                hot[b] = crew("native", name).ask(f"busy {seconds / 2} {period} {b}",
                                                  seconds)["latency"]
            got, loss = beside(seconds, crew(side, name, scope_of(side)),
                               f"open {seconds} {period}", crew(side, b, scope_of(side)), "closed")
            found.append((side, b, got, loss))
        for s in reversed(sides(world)):  # before and after, so that drift affects both
            alone[s] += request_alone(crew, s, name, period, seconds / 2)
        for s in sides(world):
            a = alone[s]
            world.say(f"  {name}, peak {peak:.1f}/s, every {period * 1e3:.1f} ms, alone {s}:"
                      f" p50 {percentile(a, .5):.3f} p99 {percentile(a, .99):.3f} ms n {len(a)}")
        for cell in found:
            cells.append(b4_cell(world, name, alone, hot[cell[1]], full, *cell))
    world.results["b4"] = cells


def b4_cell(world, name, alone, hot, full, side, b, got, loss):
    """`hot`: its latency after the same work in the same process. No scheduler can do better,
    because a GPU that is kept busy runs at a lower clock."""
    a, x = alone[side], got["latency"]
    p50 = percentile(x, .5) / percentile(a, .5)
    p99 = percentile(x, .99) / percentile(a, .99)
    part = loss["rate"] / full[b]
    world.say(f"  {name:8} beside {b:6} {side:6} p50 {p50:6.3f}x p99 {p99:6.3f}x"
              f" ({percentile(x, .5):.3f}, {percentile(x, .99):.3f} ms) n {len(x)},"
              f" of hot {percentile(x, .5) / percentile(hot, .5):.3f}x"
              f" {percentile(x, .99) / percentile(hot, .99):.3f}x"
              f"  best effort {part:.3f}  cpu {got['cpu']:.2f}+{loss['cpu']:.2f}")
    if side in ("heddle", "record"):
        world.target(f"B4 {name} beside {b}, {side}: p99, best effort", "<= 1.10x, >= 0.70",
                     f"{p99:.2f}x, {part:.2f}", p99 <= 1.1 and part >= 0.7)
    return {"request": name, "beside": b, "side": side, "p50x": p50, "p99x": p99, "n": len(x),
            "best_effort": part, "latency": x, "alone": a, "hot": hot,
            "loss": {k: v for k, v in loss.items() if k != "latency"}}


# ---- B6 ------------------------------------------------------------------------------------------

def shares_of(world, what, pair, seconds, order):
    """Native together, then each pair of shares under heddle."""
    native, heddle, scope = pair
    full = median([w.ask(f"{order} {seconds / 2}", seconds)["rate"] for w in native])
    x, y = together(seconds, *[(w, f"{order} {seconds}") for w in native])
    total = x["rate"] + y["rate"]
    world.say(f"  {what} native            {100 * x['rate'] / total:5.1f} :"
              f" {100 * y['rate'] / total:5.1f}  total {total / full:.3f} of one alone")
    cells = []
    for a, b in SHARES:
        for w, share in zip(heddle, (a, b)):
            world.sched(scope, "set", "--pid", w.pid, f"share={share}")
        x, y = together(seconds, *[(w, f"{order} {seconds}") for w in heddle])
        total = x["rate"] + y["rate"]
        got = 100 * x["rate"] / total
        world.say(f"  {what} heddle {a:3}:{b:<3}    {got:5.1f} : {100 - got:5.1f}  error"
                  f" {got - a:+.1f} points  total {total / full:.3f} of one alone, native")
        world.target(f"B6 {what} {a}:{b}: points off, total", "5 % off, >= 0.97",
                     f"{got - a:+.1f}, {total / full:.3f}",
                     abs(got - a) <= 0.05 * b and total / full >= 0.97 if world.real else None)
        cells.append({"what": what, "asked": [a, b], "got": got, "total": total / full,
                      "rates": [x["rate"], y["rate"]]})
    return cells


def b6(world, crew):
    o = world.options
    seconds = o.seconds or (2 if o.quick else 4)
    world.say("\nB6 shares of two programs that are the same")
    rate = steps_a_us(world)
    plain = {s: [loops(world, s, "policy=fair", "fair.c", 100, 64, rate) for _ in range(2)]
             for s in ("native", "heddle")}
    for w in plain["native"] + plain["heddle"]:
        w.ready()
    fair = "policy=fair" + ("," + o.settings if o.settings else "")
    world.sched("fair.c", "set", fair)
    cells = shares_of(world, "100 us kernels", (plain["native"], plain["heddle"], "fair.c"),
                      seconds, "flow")
    for w in plain["native"] + plain["heddle"]:
        w.quit()
    if crew is not None and crew.workers:
        world.sched("fair", "set", fair)
        both = ([crew("native", n) for n in ("gemm", "gemm.2")],
                [crew("heddle", n, "fair") for n in ("gemm", "gemm.2")], "fair")
        cells += shares_of(world, "gemm          ", both, seconds, "closed")
    world.results["b6"] = cells
