#!/usr/bin/env python3
"""Compares `heddle fatbin disasm` with nvdisasm, instruction by instruction, over all machine code
of one architecture in the given files. Nothing of the files is kept.

    corpus.py HEDDLE NVDISASM FILE... [--arch sm_80] [--images N] [--from N]

Labels are compared by the addresses that they stand for, because nvdisasm numbers them through the
whole file. Its notes about branch targets are left out. Exit code 77 if nvdisasm is not there.
"""

import argparse
import collections
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SECTION = re.compile(r"^//-+ \.text\.(\S+)\s+-+$")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*$")
LABEL = re.compile(r"^(\S+):$")
NOTE = re.compile(r"\(\*.*?\*\)")


def sections(text):
    """{section: {address: instruction}}, with labels replaced by addresses."""
    found, labels, waiting, where = {}, {}, [], None   # labels are those of a section
    for line in text.splitlines():
        if line.startswith("//-"):
            m = SECTION.match(line)
            where = m[1] if m else None
            waiting = []
            if where:
                found[where], labels[where] = {}, {}
        elif where and (m := LABEL.match(line)):
            waiting.append(m[1])
        elif where and (m := INSTRUCTION.match(line)):
            address = int(m[1], 16)
            for label in waiting:
                labels[where].setdefault(label, address)
            waiting = []
            found[where][address] = m[2]
    return {s: {a: plain(t, labels[s]) for a, t in code.items()} for s, code in found.items()}


def plain(text, labels):
    text = NOTE.sub("", text)
    text = re.sub(r"\.L_x_\d+", lambda m: f"{labels.get(m[0], -1):#x}", text)
    return re.sub(r"\s+", " ", re.sub(r"\s+([,;])", r"\1", text)).strip().rstrip(";").strip()


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip()[:300]}")
    return done.stdout


class Count:
    def __init__(self):
        self.images = self.kernels = self.instructions = self.different = 0
        self.kinds = collections.Counter()
        self.examples = {}

    def compare(self, heddle, nvdisasm, cubin):
        ours = sections(run(heddle, "fatbin", "disasm", cubin))
        theirs = sections(run(nvdisasm, "-ndf", cubin))
        self.images += 1
        for section, code in theirs.items():
            self.kernels += 1
            mine = ours.get(section, {})
            for address, text in code.items():
                self.instructions += 1
                got = mine.get(address, "nothing")
                if got == text:
                    continue
                self.different += 1
                name = re.sub(r"^@\S+ ", "", text).split(" ")[0].split(".")[0]
                self.kinds[name] += 1
                self.examples.setdefault(name, f"{section}+{address:#x}: {text}\n      ours: {got}")


def check_file(count, args, path):
    with tempfile.TemporaryDirectory() as folder:
        listed = run(args.heddle, "fatbin", "list", "--kind", "cubin", "--arch", args.arch, path)
        numbers = [line.split()[0] for line in listed.splitlines()[1:]]
        for number in numbers[args.first:args.first + args.images if args.images else None]:
            run(args.heddle, "fatbin", "extract", "--entry", number, "-o", folder, path)
            for cubin in Path(folder).iterdir():
                count.compare(args.heddle, args.nvdisasm, cubin)
                cubin.unlink()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("heddle")
    p.add_argument("nvdisasm")
    p.add_argument("files", nargs="+")
    p.add_argument("--arch", default="sm_80")
    p.add_argument("--images", type=int, default=0, help="at most so many of each file")
    p.add_argument("--from", type=int, default=0, dest="first", help="leave out so many images")
    args = p.parse_args()
    if not shutil.which(args.nvdisasm):
        print(f"skipped: there is no {args.nvdisasm}")
        return 77
    count = Count()
    for path in args.files:
        check_file(count, args, path)
        print(f"{path}: so far {count.images} images, {count.kernels} functions, "
              f"{count.instructions} instructions, {count.different} differ", flush=True)
    for name, n in count.kinds.most_common(40):
        print(f"  {name} {n}: {count.examples[name]}")
    return 1 if count.different or not count.instructions else 0


if __name__ == "__main__":
    sys.exit(main())
