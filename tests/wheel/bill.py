#!/usr/bin/env python3
"""Asks the package spdx-tools whether bills of materials are valid SPDX 2.3.

    bill.py [FILE...]      files *.spdx.json, or wheels, which have one inside

Without files: those of build/dist. The package comes from the index, into a folder that is removed.
"""

import json
from pathlib import Path
import subprocess
import sys
import tempfile
import venv
import zipfile

TOP = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
for message in validate_full_spdx_document(parse_file(sys.argv[1]), "SPDX-2.3"):
    print(f"{message.context.spdx_id}: {message.validation_message}")
"""
# What must be among the parts: whoever forgets one has a bill that is valid and wrong.
PARTS = ("heddle", "llvm", "libstdc++", "libssl-dev", "libzstd-dev", "liblz4-dev", "libjansson-dev",
         "libncurses-dev")


def text_of(path):
    if path.suffix != ".whl":
        return path.read_text(encoding="utf-8")
    with zipfile.ZipFile(path) as z:
        [name] = [n for n in z.namelist() if n.endswith(".spdx.json")]
        return z.read(name).decode()


def problems(python, path, folder):
    text = text_of(path)
    copy = folder / "bill.spdx.json"
    copy.write_text(text, encoding="utf-8")
    r = subprocess.run([python, "-c", PROGRAM, copy], capture_output=True, text=True, check=False)
    found = (r.stdout if r.returncode == 0 else r.stdout + r.stderr).splitlines()
    names = [package["name"] for package in json.loads(text)["packages"]]
    return found + [f"{part} is not among the packages" for part in PARTS
                    if not any(name.startswith(part) for name in names)]


def main():
    dist = TOP / "build/dist"
    paths = [Path(name) for name in sys.argv[1:]]
    paths = paths or sorted([*dist.glob("*.whl"), *dist.glob("*.spdx.json")])
    if not paths:
        sys.exit("bill.py: there is no bill in build/dist: make wheel, or make release")
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env/bin/python"
        subprocess.run([python, "-m", "pip", "install", "-q", "spdx-tools"], check=True)
        for path in paths:
            found = problems(python, path, folder)
            print(f"{'FAIL' if found else 'ok  '}  {path.name}", *found, sep="\n      ")
            good &= not found
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
