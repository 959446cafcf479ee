"""Runs one check of a framework's file in this process: child.py FRAMEWORK CHECK.

The last line is `CHECKED ` and what the check returned, as JSON. Without it the check failed.
"""

import importlib.util
import json
import sys
from pathlib import Path


def load(framework):
    """The module of a framework's checks. Its folder is not searched for modules, since the files
    are called like the frameworks."""
    path = Path(__file__).resolve().with_name(f"{framework}.py")
    sys.path.remove(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"checks_{framework}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main():
    framework, name = sys.argv[1:]
    said = getattr(load(framework), f"check_{name}")()
    print("CHECKED " + json.dumps(said if said is not None else ""), flush=True)


if __name__ == "__main__":
    main()
