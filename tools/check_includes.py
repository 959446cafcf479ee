#!/usr/bin/env python3
"""Checks that a room of src/ includes only the rooms below it.

The table below is the rule; to change it, write an ADR. Our headers are included by their path from
src/ ("core/layer.h"), generated ones as "gen/...". System headers are free, except the few that
only one room may include. Tests and benchmarks may include anything and are not checked.

    check_includes.py [FILE...]     all of src/ without FILEs
"""

import fnmatch
import os
import re
import sys

# room: the rooms it may include, besides itself. A room is a folder of src/; each layer, backend
# and program of the server is a room of its own. The longest matching pattern counts.
TABLE = {
    "base": "",
    "audit": "base locate",
    "core": "base gen",
    "driver": "core base gen fatbin",
    "fatbin": "base",
    "sass": "base gen fatbin",
    "wire": "base gen",
    "trace": "base gen",
    "snap": "base",
    "ptx": "base foreman",
    "foreman": "base",
    "meet": "base",
    "sched": "base meet",
    "record": "core base gen sched",
    "layers/*": "core base gen",
    "layers/lift": "core base gen fatbin sass",
    "layers/quota": "core base gen meet",
    "layers/sched": "core base gen sched snap",
    "layers/record": "core base gen record sched",
    "layers/trace": "core base gen trace",
    "locate": "base",
    "backends/*": "core base gen",
    "backends/gpu": "core base gen locate",
    "backends/remote": "core base gen wire driver fatbin",
    "backends/remote/snap": "backends/remote core base gen wire driver fatbin snap",
    "backends/cpu": "core base gen foreman ptx driver fatbin sass",
    "front": "core base gen",
    "cudart": "base gen",
    "inject": "core base gen trace sched record",
    # Four programs; each may include what lies in server/ itself, and the listener the headers of
    # the gate and of the bridge (vm), by which they are started.
    "server": "base wire gen",
    "server/gate": "server server/sandbox wire base gen",
    "server/listener": "server server/gate server/vm server/sandbox wire base gen",
    "server/sandbox": "base",
    "server/vm": "server/sandbox wire base",
    "server/worker": "server core foreman wire base gen fatbin",
    "cli": "base core fatbin gen locate ptx sass wire trace sched snap meet",
}

# The only file outside the rooms. It may include everything.
REGISTRY = "src/registry.c"

# The files that put two rooms together: they may include the upper one, too.
JOINTS = {"src/backends/remote/plugin.c": "backends/remote/snap"}

# The public header, in include/; core implements it.
PUBLIC = "heddle.h"

# <header>: the files that may include it.
SYSTEM = {
    "llvm-c/*": "src/ptx/lower/*.[ch]",
    "jansson.h": "src/driver/profile*.c",
    "openssl/*": "src/wire/tls/*.c",
    # heddle builds without a CUDA toolkit: the generated headers have the types.
    "cuda.h": "",
    "cuda_runtime*.h": "",
    "nvml.h": "",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
EXTENSIONS = (".c", ".h", ".inc", ".S")


def room_of(path):
    """The room of a path below src/, or None for a file right in src/."""
    parts = path.split("/")
    if "/".join(parts[:3]) in TABLE and len(parts) > 3:
        return "/".join(parts[:3])
    if parts[0] in ("layers", "backends", "server") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else None


def allowed_rooms(room):
    """What the table lets a room include; None if the table does not know the room."""
    patterns = [p for p in TABLE if fnmatch.fnmatchcase(room, p)]
    return TABLE[max(patterns, key=lambda p: (p == room, len(p)))].split() if patterns else None


def blank_comments(text):
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def check_ours(path, name):
    """What is wrong with `#include "name"` in path; None if nothing is."""
    if path == REGISTRY or (name == PUBLIC and path.startswith("src/core/")):
        return None
    room, target = room_of(path[len("src/"):]), room_of(name)
    if room is None:
        return "only registry.c lies outside of the rooms"
    allowed = allowed_rooms(room)
    if allowed is None:
        return f'the table does not know the room "{room}"'
    if target is None or name.startswith("."):
        return f'"{name}" is not written from the root of src/'
    if target != room and target not in allowed and target != JOINTS.get(path):
        return f'{room} may not include "{name}" (only: {" ".join(allowed) or "itself"})'
    return None


def check_system(path, name):
    for pattern, files in SYSTEM.items():
        if fnmatch.fnmatchcase(name, pattern):
            if not any(fnmatch.fnmatchcase(path, f) for f in files.split()):
                return f'<{name}> may be included by {files or "nobody in src/"} only'
    return None


def check_text(path, text):
    """The complaints about one file, as (line, message)."""
    found = []
    text = blank_comments(text)
    for match in INCLUDE.finditer(text):
        ours, system = match.groups()
        message = check_ours(path, ours) if ours else check_system(path, system)
        if message:
            found.append((text.count("\n", 0, match.start()) + 1, message))
    return found


def all_files(root):
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


def main(args):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad = 0
    for path in args or all_files(root):
        full = os.path.join(root, path)
        if not path.startswith("src/") or not path.endswith(EXTENSIONS) or not os.path.exists(full):
            continue
        with open(full, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for line, message in check_text(path, text):
            print(f"{path}:{line}: {message}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
