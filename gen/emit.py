"""Runs emitters over a spec: `python3 gen/emit.py --spec spec/cuda --out DIR [--only wire]`."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gen import (emit_abi, emit_calls, emit_check, emit_doc, emit_forward, emit_front,  # noqa: E402
                 emit_handles, emit_hash, emit_null, emit_print, emit_real, emit_sets,
                 emit_travel, emit_wire, emit_work)
from gen.model import SpecError  # noqa: E402
from gen.vocabulary import load  # noqa: E402
from gen.writer import write_files  # noqa: E402

EMITTERS = {
    "abi": emit_abi, "calls": emit_calls, "forward": emit_forward, "front": emit_front,
    "wire": emit_wire, "print": emit_print, "check": emit_check, "doc": emit_doc,
    "real": emit_real, "null": emit_null, "handles": emit_handles, "hash": emit_hash,
    "travel": emit_travel, "sets": emit_sets, "work": emit_work,
}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--spec", required=True)
    p.add_argument("--ids", help="file of wire numbers (default: beside the spec)")
    p.add_argument("--out", required=True)
    p.add_argument("--only", help="comma-separated emitters (default: all)")
    args = p.parse_args()
    names = args.only.split(",") if args.only else list(EMITTERS)
    unknown = [n for n in names if n not in EMITTERS]
    if unknown:
        p.error(f"no emitter '{unknown[0]}'; there are {', '.join(EMITTERS)}")
    try:
        spec = load(args.spec, args.ids)
        files = {}
        for n in names:
            files.update(EMITTERS[n].emit(spec))
    except SpecError as e:
        print(e, file=sys.stderr)
        return 1
    write_files(args.out, files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
