"""Images and containers for the tests: podman and buildah with a store of their own, in a folder.

The store is below the build folder, so nothing of the user's containers is seen or touched. What
this machine needs besides is decided here and is no advice to users:

    cgroups     podman refuses a machine that has versions 1 and 2 at once. Root gets a mount
                namespace in which there is only version 2 (enter_namespace). Containers get no
                group of their own, for which crun would raise a limit.
    limits      where root may not raise limits, podman's default of a million files fails.
    building    buildah's isolation is chroot, which works inside other sandboxes.
    health      without systemd podman starts no health checks by itself; tests start them.
"""

import json
import os
from pathlib import Path
import shutil
import subprocess
import sys

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.patience import PATIENCE, until  # noqa: E402,F401

TOP = Path(__file__).resolve().parents[2]
SOURCE = TOP / "examples" / "containers"
FOLDER = Path(os.environ.get("HED_CONTAINERS", TOP / "build" / "containers"))
STORE = FOLDER / "store"
BASE = "localhost/heddle-base:latest"
IMAGES = ("client", "app", "server", "cuda")
SKIPPED = 77
# Installing PyTorch takes longer than anything that a test waits for.
LONG = 3600
INSIDE = "HED_CONTAINERS_INSIDE"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def enter_namespace():
    """Starts this program again with control groups of version 2 alone, if it has to be."""
    if os.environ.get(INSIDE) or os.geteuid() != 0:
        return
    os.environ[INSIDE] = "1"
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return
    script = ('umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"')
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-B",
                          *sys.argv])


def storage_driver():
    """overlay where it works, as it shares layers; vfs copies each."""
    STORE.mkdir(parents=True, exist_ok=True)
    chosen = STORE / "driver"
    if not chosen.exists():
        words = ["podman", "--root", STORE / "root", "--runroot", STORE / "run",
                 "--storage-driver", "overlay", "info"]
        works = subprocess.run(words, capture_output=True, check=False).returncode == 0
        if not works:
            shutil.rmtree(STORE / "root", ignore_errors=True)
        chosen.write_text("overlay" if works else "vfs", encoding="utf-8")
    return chosen.read_text(encoding="utf-8")


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    settings = STORE / "containers.conf"
    settings.write_text('[containers]\ncgroups = "disabled"\n'
                        'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n'
                        '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n',
                        encoding="utf-8")
    shims = STORE / "bin"
    shims.mkdir(exist_ok=True)
    env.update(CONTAINERS_CONF=str(settings), PATH=f"{shims}:{env['PATH']}", BASE=BASE,
               BUILDAH_ISOLATION="chroot")
    return env


def words_of(program, *args):
    return [program, "--root", str(STORE / "root"), "--runroot", str(STORE / "run"),
            "--storage-driver", storage_driver(), *map(str, args)]


def write_shim():
    """A `podman` for podman-compose, which knows nothing of our store."""
    path = STORE / "bin" / "podman"
    path.parent.mkdir(parents=True, exist_ok=True)
    real = shutil.which("podman", path=os.environ["PATH"])
    words = " ".join(f"'{word}'" for word in words_of(real))
    path.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


class Result:
    """What a command printed, on both streams, and how it ended."""

    def __init__(self, words, code, text):
        self.words, self.code, self.text = words, code, text

    def expect(self, *wanted, code=0):
        if self.code != code:
            raise AssertionError(f"{self} ended with {self.code} instead of {code}")
        for text in wanted:
            if text not in self.text:
                raise AssertionError(f"'{text}' is not in the output of {self}")
        return self

    def __str__(self):
        return f"{' '.join(self.words)}:\n{self.text[-4000:]}\n"


def command(*words, cwd=None, timeout=PATIENCE, env=None):
    words = [str(word) for word in words]
    r = subprocess.run(words, env={**environment(), **(env or {})}, text=True, cwd=cwd,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=timeout, check=False, errors="replace")
    return Result(words, r.returncode, r.stdout)


def podman(*args, **how):
    return command(*words_of("podman", *args), **how)


def buildah(*args, **how):
    return command(*words_of("buildah", *args), **how)


def run(image, *args, options=(), **how):
    """`podman run` in the foreground."""
    return podman("run", "--rm", *options, f"localhost/heddle-{image}", *args, **how)


def inspect(name, kind="container"):
    return json.loads(podman("inspect", "--type", kind, name).expect().text)[0]


class Container:
    """A container in the background, which is gone at the end."""

    def __init__(self, image, *args, name, options=()):
        self.name = f"hed-test-{name}"
        podman("rm", "--force", "--time", 0, self.name)
        self.words = ["run", "--detach", "--name", self.name, *options,
                      f"localhost/heddle-{image}", *args]

    def __enter__(self):
        podman(*self.words).expect()
        return self

    def __exit__(self, *_):
        podman("rm", "--force", "--time", 0, self.name)

    def logs(self):
        return podman("logs", self.name).text

    def running(self):
        return inspect(self.name)["State"]["Running"]

    def exec(self, *args, **how):
        return podman("exec", self.name, *args, **how)

    def wait_for(self, words):
        """Until the container has printed this; if it ends before, that is an error."""
        def seen():
            if words in self.logs():
                return True
            if not self.running():
                raise AssertionError(f"{self.name} ended without '{words}':\n{self.logs()}")
            return False
        until(seen, lambda: f"'{words}' in the log of {self.name}:\n{self.logs()}")
        return self


    def wait_for_end(self, *words):
        """Until it has ended by itself, with an error and these words."""
        until(lambda: not self.running(), lambda: f"the end of {self.name}:\n{self.logs()}")
        text = self.logs()
        for wanted in words:
            assert wanted in text, f"'{wanted}' is not in the log of {self.name}:\n{text}"
        assert inspect(self.name)["State"]["ExitCode"] != 0, text


class Server(Container):
    """A server's container that answers."""

    def __init__(self, *args, name="server", options=(), gpu="cpu"):
        super().__init__("server", *(("--gpu", gpu) if gpu else ()), *args, name=name,
                         options=options)

    def __enter__(self):
        super().__enter__()
        return self.wait_for("listening on shm:/run/heddle/heddle.sock")

    def status(self):
        r = self.exec("heddle", "serve", "--status", "--json").expect()
        return json.loads(r.text[r.text.index("{"):])


class Volume:
    """A named volume, which is gone at the end."""

    def __init__(self, name):
        self.name = f"hed-test-{name}"

    def __enter__(self):
        podman("volume", "rm", "--force", self.name)
        podman("volume", "create", self.name).expect()
        return self.name

    def __exit__(self, *_):
        podman("volume", "rm", "--force", self.name)
