#!/usr/bin/env python3
"""Checks who calls whom, by the symbols of the object files.

A header below whose code is above is an upward arrow that tools/check_includes.py cannot see: its
table of rooms holds for what a room calls, too. And files of one room that call each other in a
circle cannot be understood, tested or used one by one, so the number of files in circles has a
limit where it has been brought down.

    check_symbols.py BUILD_FOLDER              the lint, over the objects in BUILD_FOLDER/src
    check_symbols.py BUILD_FOLDER FOLDER...    shows the circles of folders of src/
"""

import collections
import fnmatch
import os
import subprocess
import sys

import check_includes

# A room: symbols of rooms that it may not include but calls, by design.
EXCEPTIONS = {
    "core": "hed_backend_* hed_layer_find*",   # registry.c: what is built in
    "remote/server/listener": "hed_worker_*",  # a forked child goes on as a worker
}

# A folder of src/: the most files in call circles, and which folders below it do not count.
CIRCLES = {
    "remote/client": (0, ()),
    "move/session": (8, ()),
}

DEFINED = "TDBRVWC"


def source_of(obj):
    """The source, below src/, of an object file of CMake; None if it is not one of ours."""
    before, _, behind = obj.partition("/CMakeFiles/")
    if not behind.endswith(".c.o"):
        return None
    path = behind.partition("/")[2][:-len(".o")].replace("__/", "../")
    return os.path.normpath(os.path.join(before, path))


def find_objects(root):
    """(source, object file) of all objects below a folder whose source is still in src/."""
    src = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            source = source_of(path)
            if source and os.path.exists(os.path.join(src, source)):
                yield source, os.path.join(root, path)


def read_symbols(objects):
    """{source: (defined, undefined)} of a list of (source, object file)."""
    sources = {path: source for source, path in objects}
    found = {source: (set(), set()) for source in sources.values()}
    out = subprocess.run(["nm", "-A", *sources], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        path, _, rest = line.partition(".o:")
        kind, name = rest.split()[-2:]
        if not name.startswith("hed_"):  # libc's, which some of our programs define themselves
            continue
        if kind in DEFINED:
            found[sources[path + ".o"]][0].add(name)
        elif kind == "U":
            found[sources[path + ".o"]][1].add(name)
    return found


def make_graph(symbols):
    """{source: {source that it calls: names}}. A name that several files define says nothing."""
    owners = collections.defaultdict(set)
    for source, (defined, _) in symbols.items():
        for name in defined:
            owners[name].add(source)
    graph = {source: collections.defaultdict(set) for source in symbols}
    for source, (_, undefined) in symbols.items():
        for name in undefined:
            if len(owners[name]) == 1 and source not in owners[name]:
                graph[source][min(owners[name])].add(name)
    return graph


def find_circles(graph, files):
    """Sets of files that can reach each other, of more than one file each (Tarjan)."""
    number, low, stack, circles = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in graph[v]:
            if w not in files:
                continue
            if w not in number:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], number[w])
        if low[v] == number[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                circles.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(files):
        if v not in number:
            visit(v)
    return circles


def files_below(graph, folder, but=()):
    return {f for f in graph if f.startswith(folder + "/") and
            not any(f.startswith(b + "/") for b in but)}


def is_exception(room, name):
    return any(fnmatch.fnmatchcase(name, p) for p in EXCEPTIONS.get(room, "").split())


def check_arrows(graph):
    """Calls of a room that its row of the table does not allow, as messages."""
    found = []
    for source, calls in sorted(graph.items()):
        room = check_includes.room_of(source)
        for target, names in sorted(calls.items()):
            if check_includes.check_rooms("src/" + source, target) is None:
                continue
            names = {n for n in names if not is_exception(room, n)}
            if names:
                found.append(f"src/{source} calls {', '.join(sorted(names))} of src/{target}, "
                             f"which {room} may not include")
    return found


def check_limits(graph):
    found = []
    for folder, (limit, but) in CIRCLES.items():
        circles = find_circles(graph, files_below(graph, folder, but))
        count = sum(len(c) for c in circles)
        if count > limit:
            found.append(f"src/{folder}: {count} files call each other in circles, at most {limit} "
                         f"may (see them with tools/check_symbols.py BUILD_FOLDER {folder})")
    return found


def show(graph, folder):
    files = files_below(graph, folder)
    circles = find_circles(graph, files)
    print(f"{folder}: {len(files)} files, {sum(len(c) for c in circles)} of them in circles")
    for circle in circles:
        print(f"  a circle of {len(circle)}:")
        for source in circle:
            for target in sorted(set(graph[source]) & set(circle)):
                print(f"    {source} -> {target}: {' '.join(sorted(graph[source][target]))}")


def main(args):
    root = os.path.join(args[0], "src")
    graph = make_graph(read_symbols(list(find_objects(root))))
    if len(args) > 1:
        for folder in args[1:]:
            show(graph, folder)
        return 0
    found = check_arrows(graph) + check_limits(graph)
    print("".join(f"{line}\n" for line in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
