#!/usr/bin/env python3
"""Checks that the spec, not the code, knows what calls are.

    check_calls.py              check the whole tree
    check_calls.py --list PATH  also print every line below PATH that names a call

Counts how often hand-written files of src/ name a call of the spec (`cuMemAlloc_v2`, alone or at
the end of `hed_cuMemAlloc_v2`, `HED_cuMemAlloc_v2`, `quota_cuMemAlloc_v2`), comments included.
src/driver is left out: a driver has a function for every call. So are src/cudart and src/fastlibs,
which make the calls like any program. Two things are counted apart:

    made    a call that the code itself makes: hed_call(next, cuMemFree_v2, ...),
            hed_worker_do(...), hed_remote_send(...), hed_next(self, cuCtxGetId, ...), ASK(...)
    named   everything else: functions and tables with the call's name, cases of a switch, argument
            structs, texts, comments

The second number of a room only ever goes down. Where code really makes one more call, raise the
first. Where it treats a call in its own way, look for a word in the spec that says why, or add one
(docs/internals/gen.md, "What a call does").
"""

import os
import re
import sys
from collections import Counter

import check_includes

# room: (calls made, other names)
MOST = {
    "backends/gpu": (0, 5),
    "remote/client": (39, 8),
    "cli": (22, 5),
    "core": (2, 13),
    "kernel/fatbin": (0, 1),
    "front": (0, 8),
    "see/inject": (0, 3),
    "layers/fault": (0, 2),
    "layers/lift": (14, 44),
    "layers/watch": (11, 0),
    "share/quota": (33, 0),
    "layers/sched": (9, 1),
    "share/record": (11, 13),
    "move/session": (24, 1),
    "remote/server/worker": (134, 6),
    "see/trace": (0, 2),
    "remote/wire": (0, 5),
}

LEFT_OUT = ("src/driver/", "src/cudart/", "src/fastlibs/")

MAKERS = ("hed_call", "hed_call_nvml", "hed_next", "hed_next_nvml", "hed_worker_do", "nvml_do",
          "hed_remote_send", "hed_remote_ask", "hed_remote_ask_waiting", "ASK", "SEND")
WORD = re.compile(r"[A-Za-z_]\w*")
MADE = re.compile(r"\b(?:" + "|".join(MAKERS) + r")\s*\((?:[^,;(){}]|\([^()]*\)|,)*$")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def known_calls(root):
    calls = set()
    for api in ("cuda", "nvml"):
        with open(os.path.join(root, "spec", f"{api}.ids"), encoding="utf-8") as f:
            calls.update(line.split()[1] for line in f if line[:1].isdigit())
    return calls


def call_in(word, calls):
    """The call that a word names, its per-thread variants included."""
    match = re.search(r"(?:^|_)((?:cu|nvml)[A-Z]\w*)$", word)
    name = re.sub(r"_(ptsz|ptds)$", "", match.group(1)) if match else None
    return name if name in calls else None


def names_in(text, calls):
    """(offset, call, whether the call is made there) for each name of a call in the text."""
    code = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for match in WORD.finditer(text):
        name = call_in(match.group(), calls)
        if name:
            before = code[max(0, match.start() - 200):match.start()].rstrip('"')
            plain = match.group() == name and code[match.start()] == text[match.start()]
            yield match.start(), name, bool(plain and MADE.search(before))


def room_of(path):
    return check_includes.room_of(path[len("src/"):]) or ""


def count_names(files, calls):
    """{room: Counter of made and named}, {path: names that are not calls made}."""
    rooms, paths = {}, Counter()
    for path, text in files.items():
        for _, _, made in names_in(text, calls):
            rooms.setdefault(room_of(path), Counter())["made" if made else "named"] += 1
            paths[path] += not made
    return rooms, paths


def check_files(files, calls, most):
    """Complaints about {path: text}."""
    rooms, paths = count_names(files, calls)
    for room in sorted({*rooms, *most}):
        found, allowed = rooms.get(room, Counter()), most.get(room, (0, 0))
        for kind, limit in zip(("made", "named"), allowed):
            if found[kind] > limit:
                worst = [f"{p} ({n})" for p, n in paths.most_common() if room_of(p) == room][:3]
                what = "calls are made" if kind == "made" else "other names of calls"
                yield (f"src/{room}: {found[kind]} {what}, {limit} are allowed "
                       f"(--list src/{room}); most other names are in {', '.join(worst)}")


def read_tree(root):
    files = {}
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith((".c", ".h", ".def", ".S")) and not path.startswith(LEFT_OUT):
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    files[path] = f.read()
    return files


def list_names(files, calls, prefix):
    for path, text in sorted(files.items()):
        if path.startswith(prefix):
            for at, name, made in names_in(text, calls):
                line = text.count("\n", 0, at) + 1
                print(f"{path}:{line}: {name}{' (made)' if made else ''}")
    rooms, _ = count_names(files, calls)
    for room, found in sorted(rooms.items(), key=lambda r: -sum(r[1].values())):
        print(f"{room}: {found['made']} made, {found['named']} named")
    print(f"in all: {sum(c['made'] for c in rooms.values())} made, "
          f"{sum(c['named'] for c in rooms.values())} named")


def main(args):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files, calls = read_tree(root), known_calls(root)
    if args[:1] == ["--list"]:
        list_names(files, calls, args[1] if len(args) > 1 else "src/")
        return 0
    found = list(check_files(files, calls, MOST))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
