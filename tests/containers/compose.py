"""Cases about compose.yaml: podman-compose starts both of its ways; then programs and servers are
killed under each other."""

import os
import shutil
import sys

import engine
from engine import FOLDER, PATIENCE, Server, Volume, command, podman, run, skip, until

# A program that is on the GPU until its standard output is closed, or its GPU is lost.
BUSY = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
for name, args in (("cuInit", (0,)), ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), 0)),
                   ("cuCtxSetCurrent", (context,)),
                   ("cuMemAlloc_v2", (ctypes.byref(at), ctypes.c_size_t(1 << 28)))):
    if getattr(cuda, name)(*args):
        sys.exit(name + " failed")
print("has its memory", flush=True)
while True:
    error = cuda.cuMemsetD8_v2(at, 1, ctypes.c_size_t(1 << 20)) or cuda.cuCtxSynchronize()
    if error:
        sys.exit(f"the GPU is gone: {error}")
    time.sleep(0.01)
"""


def podman_compose():
    found = os.environ.get("HED_PODMAN_COMPOSE") or shutil.which("podman-compose")
    here = os.path.join(os.path.dirname(sys.executable), "podman-compose")
    if not found and os.path.exists(here):
        found = here
    if not found:
        skip("podman-compose is not installed (pip install podman-compose)")
    return found


class Compose:
    """A project of compose.yaml, which is gone at the end, with its volumes."""

    def __init__(self, profile):
        self.words = (podman_compose(), "--project-name", "hedtest", "--profile", profile)

    def __enter__(self):
        self("down", "--volumes", "--timeout", "5")
        return self

    def __exit__(self, *_):
        self("down", "--volumes", "--timeout", "5")

    def __call__(self, *args):
        return command(*self.words, *args, cwd=FOLDER / "context", timeout=4 * PATIENCE)


def check_profile(profile, app):
    """`run` starts what the program depends on; its exit code is the program's."""
    with Compose(profile) as compose:
        compose("run", "--rm", app).expect("heddle CPU GPU", "and 1024 sums are right")
        compose("run", "--rm", app, "sh", "-c", "exit 41").expect(code=41)


def case_shm():
    """Server and program over a socket in a volume, in shared memory."""
    check_profile("shm", "app")


def case_tls():
    """The same over TCP with certificates; workers have the whole sandbox that TCP insists on."""
    check_profile("tls", "tls-app")


def case_tls_keeps_secrets():
    """The program's container has neither the server's key nor the authority's."""
    with Compose("tls") as compose:
        compose("up", "--no-build", "--detach")
        for name, owner in (("app-certs", "app"), ("server-certs", "tls-server")):
            def listed(name=name):
                return run("app", "ls", "/certs", options=(
                    "--volume", f"hedtest_{name}:/certs:ro")).text.split()
            until(lambda listed=listed: len(listed()) == 3, listed)
            assert {f.rsplit("-", 1)[0] for f in listed() if f != "ca.pem"} <= {
                "client", "server-tls"}, (owner, listed())
            assert "ca.key" not in listed()


def program(volume, name, code):
    """A client of the server whose socket is in the volume."""
    return engine.Container("app", "python3", "-c", code, name=name, options=(
        "--volume", f"{volume}:/run/heddle:ro", "-e",
        "HEDDLE_GPU=shm:/run/heddle/heddle.sock"))


def right_result(volume):
    run("app", options=("--volume", f"{volume}:/run/heddle:ro", "-e",
                        "HEDDLE_GPU=shm:/run/heddle/heddle.sock")).expect("1024 sums are right")


def case_killed_client():
    """kill -9 for a program's container: the server frees all it had, and serves the others."""
    with Volume("socket") as volume, \
            Server(options=("--volume", f"{volume}:/run/heddle")) as server:
        with program(volume, "killed", BUSY) as client, program(volume, "other", BUSY) as other:
            client.wait_for("has its memory")
            other.wait_for("has its memory")
            assert len(server.status()["clients"]) == 2
            podman("kill", "--signal", "KILL", client.name).expect()
            until(lambda: len(server.status()["clients"]) == 1, "one client less")
            assert server.status()["devices"][0]["leased_bytes"] < 2 << 28
            assert other.running(), other.logs()
        right_result(volume)


def case_restarted_server():
    """A server that is killed and started again: programs get an error and end; the same volume
    serves new ones, although the old socket's file was left."""
    with Volume("socket") as volume, \
            Server(options=("--volume", f"{volume}:/run/heddle")) as server:
        with program(volume, "loses", BUSY) as client:
            client.wait_for("has its memory")
            podman("kill", "--signal", "KILL", server.name).expect()
            podman("wait", server.name)
            client.wait_for_end("the GPU's server is lost", "the GPU is gone")
        before = server.logs().count("listening on")
        podman("start", server.name).expect()
        until(lambda: server.logs().count("listening on") > before, server.logs)
        right_result(volume)


def case_stranger_cannot_take_the_place():
    """A client whose volume is read-only cannot put a socket of its own where the server's is."""
    with Volume("socket") as volume, Server(options=("--volume", f"{volume}:/run/heddle")):
        run("app", "sh", "-c", "rm /run/heddle/heddle.sock || touch /run/heddle/x", options=(
            "--user", "0", "--volume", f"{volume}:/run/heddle:ro")).expect("Read-only", code=1)
        right_result(volume)
