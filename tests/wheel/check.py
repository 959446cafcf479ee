"""Calls checks of tests/frameworks in this process: check.py FRAMEWORK [FUNCTION...]"""

import importlib.util
from pathlib import Path
import sys


def main():
    path = Path(__file__).resolve().parents[1] / "frameworks/checks" / f"{sys.argv[1]}.py"
    # Its own name is that of what it imports: numba.py is no module "numba".
    spec = importlib.util.spec_from_file_location(f"check_{sys.argv[1]}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    for name in sys.argv[2:] or [n for n in dir(module) if n.startswith("check_")]:
        print(name, flush=True)
        getattr(module, name)()


if __name__ == "__main__":
    main()
