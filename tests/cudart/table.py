#!/usr/bin/env python3
"""Compares runtimes call by call: the answers of cudart_table with one and with another.

    table.py check PROGRAM EDITION AREA LIBCUDART     our runtime with the recorded answers
    table.py nvidia PROGRAM EDITION [LIBCUDART]       NVIDIA's runtime with the recorded answers
    table.py both PROGRAM EDITION OURS [NVIDIA'S]     two runtimes with each other, on any backend
    table.py update PROGRAM EDITION LIBCUDART         records NVIDIA's answers
    table.py report PROGRAM EDITION LIBCUDART         every difference, for a person to read

The recorded answers (golden/EDITION/AREA.txt) are those of NVIDIA's runtime of that edition on
heddle's libcuda with HEDDLE_GPU=cpu:h200x2; they hold only what our program prints. Where ours
answers differently on purpose, golden/differences.txt has the line and the reason; a line that is
no longer needed is a failure too. `both` needs no recorded answers, so it also works where the
driver answers differently: on a server, or on a GPU (with HED_TABLE_REAL=1, which leaves out what
NVIDIA's driver may not survive, and allows what golden/differences_gpu.txt has, too);
HED_TABLE_WITHOUT names areas to leave out. Exit code 77: there
is no such runtime on this machine.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
SONAMES = {"10.2": "libcudart.so.10.2", "11": "libcudart.so.11.0", "12": "libcudart.so.12",
           "13": "libcudart.so.13"}
PATIENCE_S = 120


def areas(program):
    done = subprocess.run([program, "--areas"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def answers(program, library, area):
    """The lines of one area, and a last line if the program did not come to its end."""
    env = dict(os.environ, HEDDLE_LOG="off")
    if area == "nodevice":
        env["CUDA_VISIBLE_DEVICES"] = ""
    if area == "nodriver":
        # Ours looks for heddle's libcuda beside its own folder.
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(library, folder)
            env.pop("LD_LIBRARY_PATH", None)
            return run_area(program, alone, area, env)
    return run_area(program, library, area, env)


def run_area(program, library, area, env):
    try:
        done = subprocess.run([program, library, area], capture_output=True, text=True, env=env,
                              timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as late:
        text = late.stdout.decode() if late.stdout else ""
        return text.splitlines() + ["the program did not end"]
    lines = done.stdout.splitlines()
    if done.returncode != 0 or lines[-1:] != ["end"]:
        lines.append(f"the program ended with {done.returncode} {done.stderr.strip()[-300:]}")
    return lines


def cases(lines):
    """{case: its lines}, in their order; the lines about outputs belong to the call before them."""
    table = {}
    for line in lines:
        key = line.split(" > ")[0].split(": ")[0]
        table.setdefault(key, []).append(line)
    return table


def golden_path(edition, area):
    return os.path.join(HERE, "golden", edition, area + ".txt")


def golden(edition, area):
    with open(golden_path(edition, area), encoding="utf-8") as file:
        return file.read().splitlines()


def allowed(edition, area, listed="differences.txt"):
    """{line of ours: reason} from golden/differences.txt, whose format is told at its top."""
    found, reason = {}, ""
    with open(os.path.join(HERE, "golden", listed), encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                reason = ""
            elif not line.startswith(" "):
                reason = f"{reason} {line.strip()}".strip()
            else:
                editions, where, ours = (part.strip() for part in line.split(" | "))
                if where == area and edition in editions.split():
                    found[ours] = reason
    return found


def differences(expected, got, reasons):
    """[(case, lines of NVIDIA's, lines of ours)], and the reasons that were not needed."""
    theirs, ours = cases(expected), cases(got)
    found, unused = [], dict(reasons)
    for key in list(theirs) + [key for key in ours if key not in theirs]:
        left, right = theirs.get(key, []), ours.get(key, [])
        if left == right:
            continue
        odd = [line for line in right if line not in left]
        if odd and len(left) <= len(right) and all(line in reasons for line in odd):
            for line in odd:
                unused.pop(line, None)
            continue
        found.append((key, left, right))
    return found, unused


def tell(found):
    for _, left, right in found:
        gone = [line for line in left if line not in right]
        new = [line for line in right if line not in left]
        print("  expected: " + (" / ".join(gone) or "nothing"))
        print("       got: " + (" / ".join(new) or "nothing"))


def has_driver():
    """Whether the loader finds a driver even without LD_LIBRARY_PATH."""
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    code = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True,
                          check=False).returncode == 0


def check(program, edition, area, library):
    if area == "nodriver" and has_driver():
        print("this machine has a driver")
        return 77
    reasons = allowed(edition, area)
    found, unused = differences(golden(edition, area), answers(program, library, area), reasons)
    tell(found)
    for line in unused:
        print(f"  golden/differences.txt no longer needs: {line}")
    return 1 if found or unused else 0


def find_nvidia(edition):
    """NVIDIA's runtime: what HED_NVIDIA_CUDART names (files, folders), or a toolkit's."""
    named = os.environ.get("HED_NVIDIA_CUDART", "")
    places = named.split(":") + ["/usr/local/cuda/lib64"]
    for place in filter(None, places):
        path = place if os.path.basename(place) == SONAMES[edition] \
            else os.path.join(place, SONAMES[edition])
        if os.path.exists(path):
            return path
    return None


def nvidia(program, edition, library):
    if not library:
        print(f"there is no {SONAMES[edition]} of NVIDIA's here (HED_NVIDIA_CUDART)")
        return 77
    bad = 0
    for area in areas(program):
        if area == "nodriver" and has_driver():
            continue
        found, _ = differences(golden(edition, area), answers(program, library, area), {})
        if found:
            bad += len(found)
            print(f"{area}: the recorded answers are not those of {library}")
            tell(found)
    return 1 if bad else 0


def both(program, edition, ours, theirs):
    if not theirs:
        print(f"there is no {SONAMES[edition]} of NVIDIA's here (HED_NVIDIA_CUDART)")
        return 77
    bad = 0
    without = os.environ.get("HED_TABLE_WITHOUT", "").split(",")
    chosen = [area for area in areas(program) if area not in without]
    # On a GPU, most of the time goes into making contexts.
    with ThreadPoolExecutor(max(1, os.cpu_count() // 2)) as pool:
        sides = list(pool.map(lambda area: [answers(program, library, area)
                                            for library in (theirs, ours)], chosen))
    for area, (left, right) in zip(chosen, sides):
        reasons = allowed(edition, area)
        if os.environ.get("HED_TABLE_REAL"):
            reasons.update(allowed(edition, area, "differences_gpu.txt"))
        found, _ = differences(left, right, reasons)
        if left[-1:] != ["end"] and left[-1:] == right[-1:]:
            bad += 1
            print(f"{area}: with both, {left[-1]}, after {len(left) - 1} and {len(right) - 1} "
                  f"lines: {left[-2:-1]} and {right[-2:-1]}")
        if found:
            bad += len(found)
            print(f"{area}: {len(found)} differences")
            tell(found)
    return 1 if bad else 0


def update(program, edition, library):
    for area in areas(program):
        path = golden_path(edition, area)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        lines = answers(program, library, area)
        if lines[-1:] != ["end"]:
            print(f"{area}: {lines[-1]}")
            return 1
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 0


def report(program, edition, library):
    count = 0
    for area in areas(program):
        found, _ = differences(golden(edition, area), answers(program, library, area),
                               allowed(edition, area))
        count += len(found)
        if not found:
            continue
        print(f"\n### {edition}: {area} ({len(found)})\n")
        for key, left, right in found:
            gone = [line[len(key):].strip(": ") for line in left if line not in right]
            new = [line[len(key):].strip(": ") for line in right if line not in left]
            print(f"- {key} | NVIDIA: {'; '.join(gone) or 'nothing'} | "
                  f"ours: {'; '.join(new) or 'nothing'}")
    print(f"\n{edition}: {count} differences")
    return 0


def main(args):
    verb = args[0] if args else ""
    if verb == "check" and len(args) == 5:
        return check(*args[1:])
    if verb == "nvidia" and len(args) in (3, 4):
        return nvidia(args[1], args[2], args[3] if len(args) == 4 else find_nvidia(args[2]))
    if verb == "both" and len(args) in (4, 5):
        return both(args[1], args[2], args[3], args[4] if len(args) == 5 else find_nvidia(args[2]))
    if verb == "update" and len(args) == 4:
        return update(*args[1:])
    if verb == "report" and len(args) == 4:
        return report(*args[1:])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
