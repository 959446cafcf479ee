#!/usr/bin/env python3
"""Shows, on a machine with an NVIDIA GPU, that programs with machine code for another architecture
run under `heddle run --lift` as if they had been built for this GPU.

    tests/gpu/lift.py [--build DIR] [--only NAME,...]

Each program is built twice: with machine code for sm_80 alone, and for this GPU. The first must
fail without heddle, and print under --lift what the second prints without heddle. A program with
kernels that cannot be lifted is skipped if that is why it differs. Ends with a table and
`N passed, N failed, N skipped`; exits with 0 if nothing failed. It takes about two minutes.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import NVCC, PROGRAMS, TOP, Check

CU = TOP / "tests" / "cu"
PATIENCE = 40  # seconds for one run


def all_programs():
    """{name: (sources, nvcc's flags, arguments)}"""
    found = {f"cu/{s.stem}": ([s], ["-std=c++17", "-O2"], []) for s in sorted(CU.glob("*.cu"))}
    for name in ("array", "streams", "system_atomics", "conditional", "constants",
                 "warp_synchronous", "borrow", "sparse"):
        found[name] = ([PROGRAMS / f"{name}.cu"], ["-O1"], [])
    found["array shared"] = ([PROGRAMS / "array.cu"], ["-O1", "-cudart", "shared"], [])
    found["array packed"] = ([PROGRAMS / "array.cu"], ["-O1", "-Xfatbin", "-compress-all"], [])
    found["hold"] = ([PROGRAMS / "hold.cu"], ["-O1"], ["results"])
    found["linked"] = (sorted((PROGRAMS / "linked").glob("*.cu")), ["-O1", "-rdc=true"], [])
    return found


def build_one(name, arch, sources, flags):
    out = check.work / f"{name.replace('/', '_').replace(' ', '_')}_{arch}"
    got = check.run([NVCC, *flags, "-gencode", f"arch=compute_{arch},code=sm_{arch}", *sources,
                     "-o", out])
    return (out, "") if got[2] == 0 else (None, (got[0] + got[1])[-600:])


def lifted_env():
    # A text that was compiled before must not hide one that the driver refuses now.
    return {"CUDA_CACHE_DISABLE": "1"}


def under_lift(command):
    return check.run([check.build / "bin" / "heddle", "run", "--gpu", "gpu", "--lift", "--log",
                      "info", "--", *command], env=lifted_env(), timeout=PATIENCE)


def first_difference(want, got):
    for w, g in zip(want.splitlines() + [""], got.splitlines() + [""]):
        if w != g:
            return f"wants {w[:90]!r}, gets {g[:90]!r}"
    return f"{len(want)} bytes wanted, {len(got)} printed"


def what_ptxas_says(program):
    """If the driver refused the text, the reason: ptxas has the same compiler."""
    text = check.run([check.build / "bin" / "heddle", "fatbin", "lift", "--module", program])[0]
    said = []
    for number, part in enumerate(re.split(r"^(?=\.version)", text, flags=re.M)[1:]):
        one = check.work / f"{program.name}_{number}.ptx"
        one.write_text(part)
        out, err, status = check.run([Path(NVCC).parent / "ptxas", f"-arch=sm_{here}", one, "-o",
                                      check.work / f"{program.name}_{number}.o"], timeout=60)
        said += [(out + err)[:300]] if status else []
    return " ".join(said)


def check_program(item):
    """A row of the table: name, verdict, kernels, seconds, detail."""
    name, (sources, flags, arguments) = item
    old, why = build_one(name, "80", sources, flags)
    new, why2 = build_one(name, here, sources, flags)
    if not old or not new:
        return name, "FAIL", "", 0, f"nvcc: {why or why2}"
    want = check.run([new, *arguments], timeout=PATIENCE)
    bare = check.run([old, *arguments], timeout=PATIENCE)
    begin = time.monotonic()
    got = under_lift([old, *arguments])
    seconds = time.monotonic() - begin
    counts = re.findall(r"is lifted .*: (\d+) of (\d+) kernels", got[1])
    kernels = f"{sum(int(a) for a, _ in counts)}/{sum(int(b) for _, b in counts)}"
    refused = re.findall(r"kernel (\S+) cannot be lifted.*?: (.*)", got[1])
    if bare[::2] == want[::2]:
        return name, "FAIL", kernels, seconds, "the program for sm_80 runs without heddle"
    if got[::2] == want[::2]:
        lifted = any(int(a) for a, _ in counts)
        return name, "ok" if lifted else "FAIL", kernels, seconds, \
            "" if lifted else f"nothing was lifted: {want[0][-200:]!r}"
    detail = f"status {got[2]} (wants {want[2]}): {first_difference(want[0], got[0])}"
    if re.search("cannot be lifted: .*(zstd|LZ4)", got[1]):
        return name, "skip", kernels, seconds, "this heddle was built without zstd or LZ4"
    if refused:
        return name, "skip", kernels, seconds, f"{refused[0][0]}: {refused[0][1]}; {detail}"
    log = [line for line in got[1].splitlines() if "heddle[" not in line or " info " not in line]
    return name, "FAIL", kernels, seconds, \
        f"{detail} {' | '.join(log)[-500:]} {what_ptxas_says(old)}"


def check_ways():
    """A cubin that is loaded in every way of the driver API."""
    cubins = {}
    for arch in ("80", here):
        cubins[arch] = check.work / f"lift_ways_{arch}.cubin"
        check.run([NVCC, "-cubin", f"-arch=sm_{arch}", PROGRAMS / "lift_ways.cu", "-o",
                   cubins[arch]])
    program = check.work / "lift_ways"
    out, err, status = check.run([NVCC, PROGRAMS / "lift_ways.c", "-o", program, "-lcuda",
                                  "-L", Path(NVCC).resolve().parents[1] / "lib64" / "stubs"])
    if status:
        yield "ways", "FAIL", "", 0, f"nvcc: {(out + err)[-600:]}"
        return
    native = check.run([program, cubins[here]], timeout=PATIENCE)[0].splitlines()
    bare = check.run([program, cubins["80"]], timeout=PATIENCE)[0].splitlines()
    got = under_lift([program, cubins["80"]])
    # NVIDIA's linker takes machine code only if it was made to be linked; PTX it takes.
    yield "ways for this GPU", "ok" if len(native) == 7 and all(
        line.endswith(": ok") for line in native if not line.startswith("link")) else "FAIL", \
        "", 0, " | ".join(native)
    yield "ways for sm_80, bare", "FAIL" if len(bare) < 7 or any(
        line.endswith(": ok") for line in bare) else "ok", "", 0, " | ".join(bare)
    for line in got[0].splitlines():
        way, _, said = line.partition(": ")
        yield way, "ok" if said == "ok" else "FAIL", "", 0, said if said != "ok" else ""
    if len(got[0].splitlines()) < 7:
        yield "ways", "FAIL", "", 0, f"status {got[2]}: {got[1][-600:]}"


def capability():
    out = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout
    return out.split()[0].replace(".", "") if out.split() else "90"


def show_rows(rows):
    for name, verdict, kernels, seconds, detail in rows:
        check.results.append((name, verdict, detail))
        print(f"{name:<24} {verdict:4} {kernels:>8} {seconds:8.2f}  {detail}", flush=True)


def main():
    check.make(["heddle", "libcuda", "libnvidia_ml", "layer_lift"], {})
    chosen = {n: p for n, p in all_programs().items()
              if not options.only or n in options.only.split(",")}
    print(f"{'PROGRAM':<24} {'':4} {'KERNELS':>8} {'SECONDS':>8}", flush=True)
    # Kernels of several programs may share the GPU; compilers use the cores.
    with ThreadPoolExecutor(min(8, os.cpu_count())) as pool:
        show_rows(pool.map(check_program, chosen.items()))
    if not options.only:
        show_rows(check_ways())
    return check.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=TOP / "build" / "gpu")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    check = Check(options.build)
    here = capability()
    sys.exit(main())
