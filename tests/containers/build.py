#!/usr/bin/env python3
"""Builds the images of examples/containers for the tests, with buildah.

    build.py [IMAGE...]          client app server cuda

Needs heddle's Debian packages and its wheel, in build/deb and build/dist (`make deb`, `make wheel`)
or in the folders of HED_PACKAGES. No registry is asked: the images are made on a Debian tree of
mmdebstrap's, which is kept.
"""

import os
from pathlib import Path
import shutil
import sys

import engine
from engine import BASE, FOLDER, IMAGES, LONG, SOURCE, TOP, buildah, command, podman


def say(text):
    print(f"containers: {text}", flush=True)


def make_base():
    """The image that stands for debian:12: this machine's release, from its archive."""
    if not podman("image", "exists", BASE).code:
        return
    tree = FOLDER / "base.tar"
    if not tree.exists():
        say("making a Debian tree")
        command("mmdebstrap", "--variant=minbase", "bookworm", FOLDER / "base.tar.new",
                timeout=LONG).expect()
        (FOLDER / "base.tar.new").rename(tree)
    name = buildah("from", "scratch").expect().text.strip().splitlines()[-1]
    buildah("add", name, tree, timeout=LONG).expect()
    buildah("config", "--cmd", "bash", name).expect()
    buildah("commit", "--rm", name, BASE, timeout=LONG).expect()


def packages():
    """What `make deb` and `make wheel` have built."""
    folders = os.environ.get("HED_PACKAGES", f"{TOP}/build/deb:{TOP}/build/dist").split(":")
    for pattern, command_ in (("heddle_*.deb", "deb"), ("heddle-server_*.deb", "deb"),
                              ("heddle_cuda-*.whl", "wheel")):
        found = [path for folder in folders for path in Path(folder).glob(pattern)]
        if len(found) != 1:
            sys.exit(f"containers: {len(found)} files are called {pattern} instead of one in "
                     f"{', '.join(folders)}: run `make {command_}`")
        yield found[0]


def make_context():
    """A copy of the folder, with the packages: as a user has it."""
    context = FOLDER / "context"
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(SOURCE, context)
    (context / "packages").mkdir()
    for path in packages():
        shutil.copy(path, context / "packages")
    return context


def build_image(context, target):
    say(f"building {target}")
    r = buildah("build", "--isolation", "chroot", "--format", "docker", "--layers",
                "--file", context / "Containerfile", "--target", target, "--build-arg",
                f"BASE={BASE}", "--tag", f"localhost/heddle-{target}", context, timeout=LONG)
    (FOLDER / f"{target}.log").write_text(r.text, encoding="utf-8")
    r.expect()


def main(*targets):
    FOLDER.mkdir(parents=True, exist_ok=True)
    engine.enter_namespace()
    engine.write_shim()
    make_base()
    context = make_context()
    for target in targets or IMAGES:
        build_image(context, target)
    podman("image", "prune", "--force")


if __name__ == "__main__":
    main(*sys.argv[1:])
