#!/usr/bin/env python3
"""Compiles a file of kernels to PTX and to machine code of ARCH (sm_80, ...), and compares what
both do; then has ptxas compile what was lifted, kernel by kernel and as one module.

    lift.py NVCC HEDDLE LIFT_RUN ARCH FILE.cu
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path


def guards_to_operands(cubin):
    """LDG under a guard becomes LDG with a predicate as its last operand."""
    code, changed = bytearray(cubin.read_bytes()), 0
    for at in range(0, len(code) - 15, 16):
        word = int.from_bytes(code[at:at + 16], "little")
        guard = word >> 12 & 15
        if word & 0xfff == 0x981 and guard != 7:
            word = word & ~(15 << 12) & ~(15 << 64) | 7 << 12
            word |= (7 - (guard & 7) | guard & 8) << 64
            code[at:at + 16] = word.to_bytes(16, "little")
            changed += 1
    cubin.write_bytes(code)
    return changed


def lanes_meet(heddle, text, compiled):
    """Lanes meet in the text where they do in the machine code, and also after ptxas, by whatever
    instruction it prefers."""
    for kernel in re.split(r"^\.visible \.entry ", text, flags=re.M)[1:]:
        name = kernel[:kernel.index("(")]
        meetings = kernel.count("bar.warp.sync %b")
        listing = subprocess.run([heddle, "fatbin", "disasm", "--kernel", name, compiled],
                                 capture_output=True, text=True).stdout
        kept = len(re.findall(r"\b(?:BSYNC|WARPSYNC)\b", listing))
        if meetings == 0 or kernel.count("activemask.b32 %b") != meetings or kept < meetings:
            print(f"{name}: lanes meet {meetings} times in the text, {kept} in machine code")
            return False
    return True


def spills(heddle, cubin):
    """Does each kernel store words in local memory?"""
    listing = subprocess.run([heddle, "fatbin", "disasm", cubin], capture_output=True,
                             text=True).stdout
    return all("STL" in kernel for kernel in re.split(r"^[ \t]*//[-]+ \.text", listing,
                                                     flags=re.M)[1:])


def module_compiles(nvcc, heddle, cubin, folder, source):
    text = subprocess.run([heddle, "fatbin", "lift", "--module", cubin], capture_output=True,
                          text=True).stdout
    one, out = Path(folder, "module.ptx"), Path(folder, "module.cubin")
    one.write_text(text)
    if text.count(".version") != 1 or "bra heddle_LX" in text:
        print("the text is not one module for a GPU")
        return False
    if subprocess.run([Path(nvcc).parent / "ptxas", "-arch=sm_90", "-o", out, one]).returncode:
        return False
    return Path(source).stem != "meet" or lanes_meet(heddle, text, out)


def main():
    nvcc, heddle, lift_run, arch, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = Path(folder, "x.ptx"), Path(folder, "x.cubin")
        for kind, out in (("-ptx", ptx), ("-cubin", cubin)):
            subprocess.run([nvcc, "-std=c++17", f"-arch={arch}", kind, "-o", out, source],
                           check=True)
        if (arch, Path(source).stem) == ("sm_80", "edges") and guards_to_operands(cubin) != 2:
            print("edges.cu: the machine code does not have the two guarded loads")
            return 1
        if Path(source).stem == "spills" and not spills(heddle, cubin):
            print("spills.cu: a kernel has registers enough")
            return 1
        bad = subprocess.run([lift_run, ptx, cubin]).returncode
        bad |= not module_compiles(nvcc, heddle, cubin, folder, source)
        lifted = subprocess.run([heddle, "fatbin", "lift", cubin], capture_output=True, text=True)
        for number, text in enumerate(re.split(r"^(?=\.version)", lifted.stdout, flags=re.M)[1:]):
            one = Path(folder, f"{number}.ptx")
            one.write_text(text)
            for to in (max(arch, "sm_80"), "sm_90"):
                ptxas = Path(nvcc).parent / "ptxas"
                bad |= subprocess.run([ptxas, f"-arch={to}", "-o", Path(folder, "o"),
                                       one]).returncode
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
