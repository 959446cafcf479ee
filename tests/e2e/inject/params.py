#!/usr/bin/env python3
"""Compares the arguments that CUPTI gives with heddle's structures of the same call.

    params.py NVIDIA/generated_cuda_meta.h GEN/cuda_calls.h

CUPTI's structure of a call has its parameters in order. heddle's has the same parameters and then,
for some calls, `ptds`. The types agree because both come from the same prototypes (the generated
checks of cuda.h see to that), so only the number and order of the fields matter. Names may differ.
"""

import re
import sys


def fields(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return [re.search(r"(\w+)\s*(\[\d*\])?(\)\s*\(.*\))?$", f.strip()).group(1)
            for f in text.split(";") if f.strip()]


def main():
    theirs = open(sys.argv[1], encoding="utf-8").read()
    ours = open(sys.argv[2], encoding="utf-8").read()
    known = {name: [f for f in fields(body) if f not in ("ptds", "none")]
             for name, body in re.findall(r"^struct hed_(cu\w+) \{\n(.*?)^\};", ours,
                                          re.DOTALL | re.MULTILINE)}
    checked = 0
    bad = []
    for name, body in re.findall(r"typedef struct (\w+)_params_st \{(.*?)\}", theirs, re.DOTALL):
        plain = re.sub(r"_pt[ds][sz]$", "", name)
        if plain not in known:
            continue
        want, got = fields(body), known[plain]
        same = len(want) == len(got) and sum(a != b for a, b in zip(want, got)) <= 2
        checked += 1
        if not same:
            bad.append(f"{name}: CUPTI has {want}, heddle {got}")
    print(f"{checked} calls, {len(bad)} differ", *bad, sep="\n")
    return 1 if bad or checked < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
