#!/usr/bin/env python3
"""Checks that a room of src/ includes only the rooms below it, and other storeys by their door.

The tables below are the rule; to change them, write an ADR. Our headers are included by their path
from src/ ("core/layer.h"), generated ones as "gen/...". System headers are free, except the few
that only one room may include. Tests and benchmarks may include anything and are not checked.

    check_includes.py [FILE...]     all of src/ without FILEs
"""

import fnmatch
import os
import re
import sys

# The rooms of kernel/ptx that others use. The compiler is a library of its own.
PTX = "kernel/ptx kernel/ptx/text kernel/ptx/pass kernel/ptx/run kernel/ptx/interp"

# room: the rooms it may include, besides itself. A room is a folder of src/, and in the storeys of
# STOREYS a folder of the storey; the folders of those in INNER are rooms of their own. The longest
# matching pattern counts. A storey's public header (kernel/kernel.h) belongs to the storey itself.
TABLE = {
    "base": "",
    # The waist: the chain of layers, settings, exported symbols, where NVIDIA's libraries are.
    "locate": "base",
    "audit": "base locate",
    "core": "base gen",
    "front": "core base gen",
    # GPU code in, results on a CPU out. No driver and no chain.
    "kernel": f"base gen kernel/fatbin kernel/sass {PTX} kernel/ptx/lower kernel/engine"
              " kernel/forkserver kernel/cache",
    "kernel/cache": "base",
    "kernel/forkserver": "base kernel/cache",
    "kernel/fatbin": "base",
    "kernel/sass": "base gen kernel/fatbin",
    # The two tiers, interp and lower, know nothing of each other.
    "kernel/ptx": "base",
    "kernel/ptx/text": "base kernel/ptx",
    "kernel/ptx/run": "base kernel/ptx kernel/ptx/text",
    "kernel/ptx/pass": "base kernel/ptx kernel/ptx/text kernel/ptx/run",
    "kernel/ptx/meaning": "base kernel/ptx kernel/ptx/text kernel/ptx/run",
    "kernel/ptx/interp": "base kernel/ptx kernel/ptx/text kernel/ptx/run kernel/ptx/pass"
                         " kernel/ptx/meaning",
    "kernel/ptx/lower": "base kernel/ptx kernel/ptx/text kernel/ptx/run kernel/ptx/pass"
                        " kernel/ptx/meaning kernel/forkserver",
    "kernel/engine": f"base gen {PTX}",
    # The soft driver.
    "driver": "core base gen kernel/fatbin kernel/engine",
    # Several programs on one GPU.
    "share": "share/quota share/record share/sched share/meet",
    "share/meet": "base",
    "share/sched": "base share/meet",
    "share/record": "core base gen share/sched",
    "share/quota": "core base gen share/meet",
    # A GPU elsewhere. The server is four programs; each may include what lies in server/ itself,
    # and the listener the headers of the gate and of the bridge (vm), by which they are started.
    "remote": "remote/wire remote/client",
    "remote/wire": "base gen",
    "remote/client": "core base gen remote/wire driver kernel/fatbin",
    "remote/server": "base remote/wire gen",
    "remote/server/gate": "remote/server remote/server/sandbox remote/wire base gen",
    "remote/server/listener": "remote/server remote/server/gate remote/server/vm"
                              " remote/server/sandbox remote/wire base gen",
    "remote/server/sandbox": "base",
    "remote/server/vm": "remote/server/sandbox remote/wire base",
    "remote/server/worker": "remote/server core kernel/forkserver kernel/fatbin remote/wire base"
                            " gen",
    # Pause, save, restore, move.
    "move": "move/command move/file move/talk",
    "move/talk": "base",
    "move/file": "base",
    "move/session": "move/file move/talk remote/client remote/wire driver kernel/fatbin core base"
                    " gen",
    "move/command": "move/file move/talk remote/wire locate base",
    "move/criu": "base",
    # What a program did.
    "see": "see/trace see/live",
    "see/live": "base gen share/sched share/meet remote/wire",
    "see/trace": "base gen",
    "see/inject": "core base gen see/trace share/sched share/record",
    "cudart": "base gen",
    "fastlibs": "base gen",
    # Adapters between calls and the storeys.
    "layers": "layers/plugin",
    "layers/*": "core base gen",
    "layers/lift": "core base gen kernel/fatbin kernel/sass",
    "layers/quota": "core base gen share/quota",
    "layers/sched": "core base gen share/sched move/talk",
    "layers/record": "core base gen share/record share/sched",
    "layers/trace": "core base gen see/trace",
    "backends": "backends/gpu backends/null",
    "backends/*": "core base gen",
    "backends/gpu": "core base gen locate",
    "backends/null": "core base gen driver",
    "backends/remote": "core base gen remote/client move/session driver",
    "backends/cpu": f"core base gen kernel/forkserver kernel/cache {PTX} kernel/fatbin"
                    " kernel/sass driver kernel/engine",
    "cli": f"base core gen locate kernel/cache kernel/fatbin {PTX} kernel/sass remote/wire"
           " see/trace see/live"
           " share/sched share/meet move/file move/talk move/command",
}

# The public headers of storeys, and the rooms that each stands for. Other storeys include these and
# nothing else of a storey. Where there is more than one, the reason is in ADR 46.
PUBLIC_HEADERS = {
    "kernel/kernel.h": "kernel",  # the library, for programs outside of heddle
    "kernel/fatbin.h": "kernel/fatbin",
    "kernel/sass.h": "kernel/sass",
    "kernel/ptx.h": "kernel/ptx",
    "kernel/engine.h": "kernel/engine",
    "kernel/forkserver.h": "kernel/forkserver",
    "kernel/cache.h": "kernel/cache",
    "driver/driver.h": "driver",
    "share/share.h": "share/quota share/record share/sched share/meet",
    "remote/remote.h": "remote/wire",
    "remote/client.h": "remote/client",
    "move/move.h": "move/command move/file move/talk move/session",
    "see/see.h": "see/trace",
    "see/live.h": "see/live",  # it needs sharing, and traces do not
    "layers/layers.h": "layers",
    "backends/backends.h": "backends",
}

# These have no rooms; each of their headers is about one thing, and all of them are public.
OPEN = ("base", "core", "locate", "gen")

# Storeys whose folders are rooms.
STOREYS = ("kernel", "share", "remote", "move", "see", "layers", "backends")

# Rooms whose folders are rooms too.
INNER = ("kernel/ptx/", "remote/server/")

# The only file outside the rooms. It may include everything.
REGISTRY = "src/registry.c"

# The public headers, in include/, and who implements them.
PUBLIC = {"heddle.h": "src/core/", "heddle/layer.h": "src/layers/plugin/"}

# <header>: the files that may include it.
SYSTEM = {
    "llvm-c/*": "src/kernel/ptx/lower/*.[ch]",
    "jansson.h": "src/driver/profile*.c",
    "curses.h": "src/cli/top/screen.c",
    "openssl/*": "src/remote/wire/tls/*.c",
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
    if path.startswith(INNER) and len(parts) > 3:
        return "/".join(parts[:3])
    if parts[0] in STOREYS and len(parts) > 2:
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
    if name in PUBLIC and path.startswith(PUBLIC[name]):
        return None
    return check_rooms(path, name) or check_door(path, name)


def check_door(path, name):
    """Whether another storey is included by a public header, as check_ours()."""
    storey = name.split("/")[0]
    if storey in OPEN or path.startswith(f"src/{storey}/") or name in PUBLIC_HEADERS:
        return None
    doors = [header for header in PUBLIC_HEADERS if header.startswith(storey + "/")]
    return f'"{name}" is inside of {storey}: include {" or ".join(doors) or "nothing of it"}'


def check_rooms(path, name):
    """What is wrong if the file `path` uses the file `name`, by the table of rooms."""
    if path == REGISTRY:
        return None
    room, target = room_of(path[len("src/"):]), room_of(name)
    if room is None:
        return "only registry.c lies outside of the rooms"
    allowed = allowed_rooms(room)
    if allowed is None:
        return f'the table does not know the room "{room}"'
    if target is None or name.startswith("."):
        return f'"{name}" is not written from the root of src/'
    targets = [target]
    if name in PUBLIC_HEADERS and not path.startswith(f"src/{name.split('/')[0]}/"):
        targets = PUBLIC_HEADERS[name].split()
    if target != room and not set(targets) & set(allowed):
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
