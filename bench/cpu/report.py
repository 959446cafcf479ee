"""The tables that bench/cpu/run prints."""

import math
import os
import platform

import build


def us(value):
    """A time in microseconds with about three digits."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(one, other):
    return f"{one / other:.2f}" if one and other else "-"


def field(row, name, key):
    return row[name][key] if name in row else None


def geometric_mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def heading(text):
    print(f"\n{text}", flush=True)


def line(first, width, rest):
    text = f"{first:<16}" + "".join(f"{text:>{width}}" for text in rest)
    print(text.rstrip(), flush=True)


def machine(a, programs, contest):
    """Prints and returns what the figures depend on."""
    names = [c.name for c in contest.contestants]
    found = {
        "processor": f"{platform.machine()} {build.processor_name()}, {os.cpu_count()} processors",
        "threads": a.threads[0],
        "load": os.getloadavg()[0],
        "plain C": build.version_of(programs.compiler) + " -O3 " + " ".join(build.native_flags()),
        "ptx": build.version_of(programs.nvcc) if programs.nvcc else "as committed (no nvcc here)",
        "pocl": build.package_version("pocl-opencl-icd") if "pocl" in names else None,
        "peak": contest.probe(),
    }
    print(f"{found['processor']}; load {found['load']:.1f}; {a.threads[0]} thread(s) each; "
          f"{a.rounds} rounds of {contest.seconds} s")
    print("plain C:", found["plain C"], "(one thread)")
    peak = found["peak"]
    print(f"one core, measured: {peak['fma_gflops']} GFLOP/s, "
          f"triad {peak['triad_l2_gbs']} GB/s from L2, {peak['triad_mem_gbs']} from memory")
    if "pocl" in names:
        print("PoCL:", found["pocl"])
    else:
        print("PoCL is not installed (pocl-opencl-icd ocl-icd-opencl-dev opencl-headers): "
              "its columns are missing")
    return found


class Table:
    def __init__(self, contestants):
        self.names = [c.name for c in contestants]
        self.others = [n for n in self.names if n != "heddle"]
        self.devices = [n for n in self.names if n != "plain"]


class KernelTable(Table):
    def __init__(self, contestants, tolerances):
        super().__init__(contestants)
        self.tolerances = tolerances
        # There is no room for the wall times of more than three.
        self.keys = ("cpu_us", "wall_us") if len(self.names) <= 3 else ("cpu_us",)

    def head(self):
        heading("Kernels: CPU and wall microseconds a launch; heddle's CPU time over the others'; "
                "largest error, and allowed")
        line("", 10, [text for n in self.names for text in (n, "wall")[:len(self.keys)]]
             + ["/" + n for n in self.others] + ["error", "allowed"])

    def row(self, case, row):
        values = [us(field(row, n, key)) for n in self.names for key in self.keys]
        mine = field(row, "heddle", "cpu_us")
        values += [ratio(mine, field(row, n, "cpu_us")) for n in self.others]
        errors = [(n, field(row, n, "wrong"), field(row, n, "error")) for n in self.devices]
        bad = [f"{n} WRONG ({count:.0f})" for n, count, _ in errors if count]
        worst = max((e for _, _, e in errors if e is not None), default=0)
        errors = [f"{e:.0e}".replace("0e+00", "0") for e in (worst, self.tolerances[case])]
        line(case, 10, values + errors + ([" " + ", ".join(bad)] if bad else []))


class BeforeTable(Table):
    """This run beside an earlier one's figures (--json)."""

    def __init__(self, contestants, before):
        super().__init__(contestants)
        self.before = before

    def show(self, kernels):
        heading("Beside an earlier run: CPU microseconds of heddle then and now, then / now")
        gains = []
        for case, row in kernels.items():
            then, now = (field(r, "heddle", "cpu_us") for r in (self.before.get(case, {}), row))
            if then and now:
                gains.append(then / now)
                line(case, 10, [us(then), us(now), ratio(then, now)])
        mean = geometric_mean(gains)
        line("geometric mean", 10, ["", "", f"{mean:.2f}" if mean else "-"])


class OverheadTable(Table):
    def head(self):
        heading("What a launch costs: CPU and wall microseconds")
        line("", 10, [text for n in self.devices for text in (n, "wall")]
             + ["/" + n for n in self.devices[1:]])

    def row(self, case, row):
        values = [us(field(row, n, key)) for n in self.devices for key in ("cpu_us", "wall_us")]
        mine = field(row, "heddle", "cpu_us")
        line(case, 10, values + [ratio(mine, field(row, n, "cpu_us")) for n in self.devices[1:]])


class FirstTable(Table):
    KEYS = ("cold_cpu_ms", "cold_wall_ms", "warm_cpu_ms", "warm_wall_ms", "hot_cpu_ms",
            "hot_wall_ms")

    def __init__(self, contestants):
        super().__init__(contestants)
        # PoCL compiles before the first launch, so it is never hotter than then.
        self.columns = [(n, key) for n in self.devices for key in self.KEYS
                        if n != "pocl" or not key.startswith("hot")]

    def head(self):
        heading("From nothing to the first result, CPU and wall ms: with an empty cache (cold) and "
                "a filled one (warm);\nhot: when launches had become as fast as they are in the "
                "end, since the start")
        line("", 10, [n if key == "cold_cpu_ms" else "" for n, key in self.columns])
        line("", 10, ["wall" if "wall" in key else key.split("_")[0] for _, key in self.columns])

    def row(self, case, row):
        line(case, 10, [us(field(row, n, key)) for n, key in self.columns])

    def foot(self, rows):
        means = [geometric_mean([field(r, n, key) for r in rows.values()])
                 for n, key in self.columns]
        line("geometric mean", 10, [us(m) for m in means])


class GrowthTable(Table):
    def head(self):
        heading("Growth with the grid, blocks of 256: CPU and wall nanoseconds a thread")
        line("threads", 10, [text for n in self.names for text in (n, "wall")])

    def row(self, case, row):
        threads = float(case.split("_")[1])
        values = []
        for n in self.names:
            for key in ("cpu_us", "wall_us"):
                value = field(row, n, key)
                values.append(f"{value * 1e3 / threads:.3f}" if value else "-")
        line(case.split("_")[1], 10, values)


class ThreadTable(Table):
    """How much faster n threads are by the clock, and could be by how evenly they share the CPU
    time: the one says little on a busy machine, the other does not see threads that wait."""

    def __init__(self, contestants, threads):
        super().__init__(contestants)
        self.threads = [str(n) for n in threads]

    def head(self):
        heading(f"Threads: wall time of {self.threads[0]} over wall time of n; in brackets CPU "
                f"time of {self.threads[0]} over CPU time of the busiest of n")
        line("", 16, [f"{n} x{t}" for n in self.devices for t in self.threads[1:]])

    def speedups(self, rows, name, threads):
        found = []
        for key in ("wall_us", "busiest_us"):
            one, many = (field(rows[t], name, key) for t in (self.threads[0], threads))
            found.append(one / many if one and many else None)
        return found

    def row(self, case, rows):
        values = []
        for n in self.devices:
            for t in self.threads[1:]:
                wall, cpu = self.speedups(rows, n, t)
                values.append(f"{wall:.2f} ({cpu:.2f})" if wall and cpu else "-")
        line(case, 16, values)

    def foot(self, cases):
        values = []
        for n in self.devices:
            for t in self.threads[1:]:
                pairs = [self.speedups(rows, n, t) for rows in cases.values()]
                wall, cpu = (geometric_mean([p[i] for p in pairs]) for i in (0, 1))
                values.append(f"{wall:.2f} ({cpu:.2f})" if wall and cpu else "-")
        line("geometric mean", 16, values)


def rate(row, name, key):
    """GFLOP/s or GB/s of one core, by CPU time."""
    found = row.get(name)
    return found[key] / found["cpu_us"] * 1e-3 if found and found[key] else None


def print_fractions(kernels, names, peak):
    wanted = [("triad_l2", "bytes", "triad_l2_gbs", "GB/s"),
              ("triad_mem", "bytes", "triad_mem_gbs", "GB/s")]
    wanted += [(n, "flops", "fma_gflops", "GFLOP/s") for n in kernels if n.startswith("sgemm")]
    wanted = [w for w in wanted if w[0] in kernels]
    if not wanted:
        return
    heading("Of what one core can do (measured in this run), by CPU time")
    line("", 20, names)
    for case, key, limit, unit in wanted:
        values = []
        for n in names:
            found = rate(kernels[case], n, key)
            values.append(f"{found:.1f} ({100 * found / peak[limit]:.0f} %)" if found else "-")
        line(case, 20, values + [f"of {peak[limit]:.1f} {unit}"])


def ratios(kernels, other, key):
    """{case: heddle's time over the other's}"""
    return {case: row["heddle"][key] / row[other][key]
            for case, row in kernels.items() if "heddle" in row and other in row}


def print_means(kernels, names):
    heading("heddle's CPU time over the others', geometric mean (in brackets: wall time); "
            "the worst kernels")
    means = {}
    for other in names[1:]:
        pairs = ratios(kernels, other, "cpu_us")
        if not pairs:
            continue
        means[other] = geometric_mean(pairs.values())
        wall = geometric_mean(ratios(kernels, other, "wall_us").values())
        worst = sorted(pairs, key=pairs.get, reverse=True)[:4]
        print(f"/{other:<8} {means[other]:6.2f} ({wall:.2f}) over {len(pairs)}; "
              + ", ".join(f"{case} {pairs[case]:.1f}" for case in worst))
    return means


def summary(results, contest):
    """The fractions of the machine and the means. True if all results are right."""
    kernels = results.get("kernels")
    if not kernels:
        return True
    names = [c.name for c in contest.contestants]
    print_fractions(kernels, names, results["machine"]["peak"])
    results["means"] = print_means(kernels, names)
    return print_verdict(kernels, names)


def print_verdict(kernels, names):
    wrong = [f"{case} ({n})" for case, row in kernels.items() for n in row if row[n].get("wrong")]
    failed = [f"{case} ({n})" for case, row in kernels.items() for n in names if n not in row]
    print("results: " + ("all within their tolerance" if not wrong else
                         "WRONG: " + ", ".join(wrong)))
    if failed:
        print("failed: " + ", ".join(failed))
    return not wrong and not failed
