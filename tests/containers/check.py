#!/usr/bin/env python3
"""The images, the compose file and the recipes of examples/, in real containers.

    check.py [CASE...]           all of them without a name; `check.py --list` has the names, and
                                 `images` stands for those that begin with it

build.py has made the images. Each case is a function in one of the modules below; one that cannot
run here says why and is skipped.
"""

import sys
import time
import traceback

import engine
import images
import compose
import recipes

CASES = {f"{module.__name__}.{name[5:]}": function
         for module in (images, compose, recipes)
         for name, function in vars(module).items() if name.startswith("case_")}


def run_case(name):
    """'ok', 'skipped' or 'FAILED'."""
    try:
        CASES[name]()
        return "ok"
    except SystemExit as end:
        if end.code == engine.SKIPPED:
            return "skipped"
        raise
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc(file=sys.stdout)
        return "FAILED"


def main(*names):
    if names == ("--list",):
        print("\n".join(CASES))
        return 0
    chosen = []
    for name in names or [""]:
        found = [case for case in CASES if case == name or case.startswith(name and name + ".")]
        if not found:
            sys.exit(f"there is no such case: {name}")
        chosen += found
    if not (engine.STORE / "driver").exists():
        engine.skip("there are no images; tools/containers builds them")
    engine.enter_namespace()
    engine.write_shim()
    ends = []
    for name in chosen:
        start = time.monotonic()
        ends.append(run_case(name))
        print(f"containers: {name}: {ends[-1]} ({time.monotonic() - start:.0f} s)", flush=True)
    if "FAILED" in ends:
        return 1
    return engine.SKIPPED if set(ends) == {"skipped"} else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
