#!/usr/bin/env python3
"""Shows that programs in a QEMU guest use the GPU of their host as programs of the host do:
`heddled --gpu gpu --listen vm:NAME` on the host, the program in a guest.

    tests/gpu/guest.py [--build DIR] [--part programs,conformance,copies,bare,time] [--gpu gpu]
                       [--over window,vsock] [--accel auto|kvm|tcg] [--size 4G] [--runs 3]

Needs a machine with an NVIDIA GPU, QEMU 7.2 or later, a static busybox and the guest's kernel
(tests/vm/README.md); exits with 77 if one of the latter is missing. Guests use KVM if one boots
with it, and are emulated (TCG) otherwise: a /dev/kvm alone says little, as some need a guest's
kernel of their own.

`programs`: they print in the guest what they print natively on the host. `conformance`: those of
tests/conformance/answers and tests/cu print their golden data, or differ as the soft driver does on
purpose (agree.py). `copies`: every word of pinned and pageable memory, there and back. All three
with a window; `programs` and `copies` also in a guest that has only the vsock. `bare`: what memcpy
reaches in the guest's memory and in the window, as it is mapped (resource2_wc) and uncached
(resource2). `time`: bench/remote_calls natively on the host, over shm on the host, and in both
guests. Ends with `N passed, N failed, N skipped`; exits with 0 if nothing failed.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from common import NVCC, PROGRAMS, TOP, Check

sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / "tests"), str(TOP / "tests/conformance")]
import agree  # noqa: E402
from harness.patience import listens, until  # noqa: E402
from vm import guest, image  # noqa: E402

CUDA = Path(NVCC).resolve().parents[1]
LINKED = {"linked": "linked/first.cu linked/second.cu linked/third.cu", "nested": "nested.cu",
          "conditional": "conditional.cu"}
FIND_WINDOW = """for d in /sys/bus/pci/devices/*; do
    [ "$(cat $d/vendor)$(cat $d/device)" = 0x1af40x1110 ] && echo $d
done; true"""
BOOT_SECONDS = 20
# MiB of a buffer, MiB there and back
COPY_SIZES = {"window": ((256, 2048), (1, 128)), "vsock": ((8, 128), (1, 32))}


class Programs:
    """What runs in the guests, and where it is built."""

    def __init__(self, check):
        self.check = check
        self.plain = ["array_static", "array_shared", "streams", "streams_ptds", "driver",
                      "system_atomics", *LINKED]
        self.answers = sorted((TOP / "tests/conformance/golden").glob("*.txt"))
        self.kernels = sorted((TOP / "tests/cu/golden").glob("*.txt"))

    def build(self):
        flags = {"array_static": ("array.cu", []),
                 "array_shared": ("array.cu", ["-cudart", "shared"]),
                 "streams": ("streams.cu", []), "system_atomics": ("system_atomics.cu", []),
                 "streams_ptds": ("streams.cu", ["-default-stream", "per-thread"]),
                 "driver": ("driver.c", ["-lcuda"])}
        for name, sources in LINKED.items():
            first, *more = sources.split()
            flags[name] = (first, ["-rdc=true", "-arch=sm_90", *(PROGRAMS / s for s in more)])
        for golden in self.kernels:
            flags[f"cu_{golden.stem}"] = (TOP / f"tests/cu/{golden.stem}.cu",
                                          ["-std=c++17", "-arch=compute_90", "-code=compute_90"])
        targets = ["libcuda", "libnvidia_ml", "libheddle_nodes", "backend_remote", "heddled",
                   "heddle", "vm_agent", "vm_copy", "bench_remote_calls", "bench_vm_bare"]
        self.check.make(targets + [f"conf_answers_{g.stem}" for g in self.answers], flags)

    def answer(self, golden):
        return self.check.build / f"tests/conformance/conf_answers_{golden.stem}"

    def image(self):
        """The initramfs with the client and all programs."""
        build, made = self.check.build, image.Image()
        # A program of the driver API needs some libcuda.so.1: in the guest, this one.
        before = os.environ.get("LD_LIBRARY_PATH", "")
        os.environ["LD_LIBRARY_PATH"] = f"{build}/lib/heddle:{CUDA}/lib64"
        made.add(build / "tests/vm/vm_agent", where="/bin/agent")
        made.add(build / "bin/heddle", *(build / "lib/heddle" / n for n in (
            "libcuda.so.1", "libnvidia-ml.so.1", "libheddle.so.0", "libheddle-nodes.so",
            "backend-remote.so")))
        made.add(*(self.check.work / n for n in self.plain))
        made.add(*(self.check.work / f"cu_{g.stem}" for g in self.kernels))
        made.add(*map(self.answer, self.answers), build / "tests/vm/vm_copy")
        made.add(*(build / f"bench/{n}" for n in ("bench_remote_calls", "bench_vm_bare")))
        os.environ["LD_LIBRARY_PATH"] = before
        made.write(self.check.work / "initramfs")
        return self.check.work / "initramfs"


class Host:
    """The server, and the guests that it serves."""

    def __init__(self, check, programs):
        self.check = check
        self.heddle = check.build / "bin/heddle"
        self.library = check.build / "lib/heddle/libcuda.so.1"
        self.names = {"window": f"gpu-{os.getpid()}", "vsock": f"gpu-{os.getpid()}-v"}
        self.initramfs = programs.image()
        self.shm = f"shm:{check.work}/s"
        self.log = check.work / "server.log"
        sizes = {"window": options.size, "vsock": "0"}
        listen = [w for over, name in self.names.items()
                  for w in ("--listen", f"vm:{name},size={sizes[over]}")]
        with open(self.log, "wb") as log:
            self.server = subprocess.Popen(
                [check.build / "lib/heddle/heddled", "--listen", self.shm, *listen, "--gpu",
                 options.gpu, "--sandbox", options.sandbox, "--log", "info"],
                stderr=log, stdout=log, stdin=subprocess.DEVNULL)
        until(lambda: listens(self.shm) or self.server.poll() is not None,
              "a server that listens")
        if self.server.poll() is not None:
            sys.exit(f"the server did not start:\n{self.log.read_text()}")

    def boot(self, over):
        words = guest.qemu_options(self.heddle, self.names[over], options.memory)
        return guest.Guest(self.check.work / over, self.initramfs, *words, memory=options.memory,
                           cpus=options.cpus)

    def choose_accelerator(self):
        """KVM, if a guest boots with it."""
        if options.accel != "auto":
            guest.ACCELERATOR = options.accel
            return
        guest.ACCELERATOR = "kvm"
        try:
            with guest.Guest(self.check.work / "kvm", self.initramfs, memory=options.memory,
                             wait=False) as vm:
                vm.until_ready(BOOT_SECONDS)
        except guest.Gone as e:
            guest.ACCELERATOR = "tcg"
            print(f"not with KVM: {e}", flush=True)

    def here(self, *command):
        """Runs a command on the host, on the same kind of GPU, but without the server."""
        own = [] if options.gpu == "gpu" else [self.heddle, "run", "--gpu", options.gpu, "--"]
        return self.check.run([*own, *command])

    def run(self, vm, command, seconds=180):
        """Runs a command in the guest."""
        return vm.run(" ".join(str(c) for c in command), seconds=seconds, HEDDLE_GPU="vm:",
                      HEDDLE_CONFIG="", HED_LIBCUDA=self.library,
                      LD_LIBRARY_PATH=f"{self.library.parent}:{CUDA}/lib64")

    def end(self):
        self.server.terminate()
        self.server.wait()
        for line in self.log.read_text(errors="replace").splitlines():
            if " error " in line or " warn" in line:
                print(f"     server: {line}", flush=True)


def run_programs(check, host, programs, vm, over):
    for name in programs.plain:
        want = host.here(check.work / name)
        if want[2] != 0:
            check.report(f"{over} {name}", "skip", "does not run on the host")
            continue
        got = host.run(vm, [check.work / name])
        check.expect(f"{over} {name}", (got.output, got.status) == (want[0], 0),
                     f"{got!r} for {want[0][-300:]!r}")


def run_conformance(check, host, programs, vm, over):
    on_purpose = agree.DIFFERENT | agree.DIFFERENT_ELSEWHERE

    def one(name, golden, program):
        got = host.run(vm, [program, "2>/dev/null"])
        found = agree.differences(golden, got.output, on_purpose, either=True)
        check.expect(f"{over} {name}", not found and got.status == 0,
                     "\n".join(found)[-2500:] or str(got))

    for golden in programs.answers:
        one(f"answers {golden.stem}", golden, programs.answer(golden))
    for golden in programs.kernels:
        one(f"cu {golden.stem}", golden, check.work / f"cu_{golden.stem}")


def run_copies(check, host, _, vm, over):
    for kind in ("pinned", "pageable"):
        for size, total in COPY_SIZES[over]:
            got = host.run(vm, [check.build / "tests/vm/vm_copy", kind, size, total])
            check.expect(f"{over} {kind} copies of {size} MiB",
                         got.status == 0 and "ok" in got.output, str(got))


def run_bare(check, host, _, vm, over):
    """The window's own speed. Its last part is in nobody's use."""
    program, size, piece = check.build / "bench/bench_vm_bare", window_bytes(), 128
    rows = [("memory", [program, "ram", piece])]
    if over == "window":
        device = host.run(vm, [FIND_WINDOW]).output.strip()
        rows += [(name, [program, "window", f"{device}/{name}", size - (piece << 20), piece])
                 for name in ("resource2_wc", "resource2")]
    for name, command in rows:
        got = host.run(vm, command)
        if got.status:
            check.report(f"{over} bare {name}", "FAIL", str(got))
        for line in got.output.splitlines():
            print(f"{over} {name:14} {line}", flush=True)
    if over == "window":
        print(check.run([program, "ram", piece])[0].replace("bare/ram", "host memory  ram"), end="")
        ping(check, host, vm, f"{device}/resource2_wc", size - (1 << 20))


def ping(check, host, vm, window, offset):
    program = check.build / "bench/bench_vm_bare"
    path = f"/dev/shm/heddle-vm-{os.geteuid()}-{host.names['window']}"
    with subprocess.Popen([program, "pong", path, str(offset)], stdout=subprocess.PIPE) as pong:
        pong.stdout.readline()
        print(host.run(vm, [program, "ping", window, offset]).output, end="", flush=True)
        pong.kill()


def window_bytes():
    units = {"M": 20, "G": 30}
    return int(options.size[:-1]) << units[options.size[-1]]


def run_time(check, host, _, vm, over):
    """The same program natively, over shm and in the guest. These are figures, not verdicts."""
    bench, rows = check.build / "bench/bench_remote_calls", {}
    # What is slow is done less often.
    batches, megabytes = (200, 128) if guest.ACCELERATOR == "kvm" else \
        (50, 128) if over == "window" else (5, 16)

    def native():
        return host.here(bench, "libcuda.so.1", "", "0.5")

    def shm():
        return check.run([host.heddle, "run", "--gpu", host.shm, "--", bench, host.library, "",
                          "0.5"])

    def in_guest():
        got = host.run(vm, [bench, host.library, "''", "0.5", "all", batches, megabytes], 400)
        return got.output, got.output, got.status

    ways = {"native": native, "shm": shm, over: in_guest}
    for _ in range(options.runs):
        for way, f in ways.items():
            out, err, status = f()
            if status:
                check.report(f"time {way}", "FAIL", err[-1000:])
                return
            for line in out.splitlines():
                words = line.split()
                if len(words) == 3:
                    rows.setdefault((words[0], words[2]), {}).setdefault(way, []).append(
                        float(words[1]))
    for (name, unit), found in rows.items():
        n, s, g = (statistics.median(found[w]) for w in ways)
        print(f"{name:26} native {n:10.3f} shm {s:10.3f} {over} {g:10.3f} {unit:5} "
              f"{g / n:8.3f} of native", flush=True)


PARTS = {"programs": run_programs, "conformance": run_conformance, "copies": run_copies,
         "bare": run_bare, "time": run_time}
WITHOUT_WINDOW = ("programs", "copies", "time")


def main():
    check = Check(options.build)
    programs = Programs(check)
    programs.build()
    host = Host(check, programs)
    try:
        host.choose_accelerator()
        for over in options.over.split(","):
            with host.boot(over) as vm:
                print(f"{guest.ACCELERATOR} guest with {over}: "
                      f"{host.run(vm, [host.heddle, 'devices']).output.strip()}", flush=True)
                for part in options.part.split(","):
                    if over == "window" or part in WITHOUT_WINDOW:
                        PARTS[part](check, host, programs, vm, over)
    finally:
        host.end()
    return check.finish()


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=Path, default=TOP / "build" / "gpu")
    p.add_argument("--part", default=",".join(PARTS))
    p.add_argument("--over", default="window,vsock")
    p.add_argument("--gpu", default="gpu", help="gpu, or cpu:h200")
    p.add_argument("--accel", choices=("auto", "kvm", "tcg"), default="auto")
    p.add_argument("--size", default="4G", help="of the window, in M or G")
    p.add_argument("--cpus", type=int, default=4)
    p.add_argument("--memory", type=int, default=4096, help="of a guest, in MiB")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--sandbox", default="require", choices=("require", "auto", "off"))
    options = p.parse_args()
    try:
        guest.machine_of_this_host()
        image.Image()
    except image.Missing as e:
        print(f"skipped: {e}")
        sys.exit(77)
    sys.exit(main())
