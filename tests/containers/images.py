"""Cases about the images: what is in them, and what happens when they are started in the ways in
which people start containers."""

import json
import os
from pathlib import Path
import re
import shutil

from engine import (Container, FOLDER, IMAGES, PATIENCE, Server, TOP, Volume, command, inspect,
                    podman, run, skip, until)

NVCC = os.environ.get("HED_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
CI = TOP / "examples" / "ci"
# What Kubernetes' strictest rules and OpenShift do: another user, no rights, nothing to write to.
STRICT = ("--user", "54321:0", "--cap-drop", "all", "--security-opt", "no-new-privileges",
          "--read-only", "--read-only-tmpfs=false")


def saxpy():
    """A folder with a program of nvcc's that has the CUDA runtime inside."""
    folder = FOLDER / "saxpy"
    if not (folder / "test_saxpy").exists():
        if not Path(NVCC).exists():
            skip("no nvcc")
        folder.mkdir(parents=True, exist_ok=True)
        command(NVCC, "-O2", "-arch=compute_80", CI / "test_saxpy.cu", CI / "saxpy.cu", "-o",
                folder / "test_saxpy").expect()
    return folder


def version():
    text = (TOP / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(heddle VERSION ([0-9.]+)", text).group(1)


def case_labels():
    """Title, licence, version; a user by number, who is not root, as Kubernetes demands."""
    for name in IMAGES:
        config = inspect(f"localhost/heddle-{name}", "image")["Config"]
        labels = {k.rsplit(".", 1)[1]: v for k, v in config["Labels"].items()
                  if k.startswith("org.opencontainers.image.")}
        assert labels["version"] == version(), (name, labels)
        assert labels["licenses"] == "Apache-2.0" and labels["title"] and labels["description"]
        assert config["User"] == "10001", (name, config["User"])
    health = inspect("localhost/heddle-server", "image")["Healthcheck"]
    assert "--status" in health["Test"], health


def files_of(image):
    """The paths of all of its files, also of those that a later layer has removed."""
    folder = FOLDER / "layers"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        podman("save", "--format", "docker-dir", "--uncompressed", "--output", folder,
               f"localhost/heddle-{image}", timeout=4 * PATIENCE).expect()
        layers = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["layers"]
        listed = [command("tar", "-tf", folder / layer["digest"].partition(":")[2]).expect().text
                  for layer in layers]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [path.removeprefix("./") for path in "".join(listed).splitlines()]


def case_layers():
    """Neither keys nor packages nor what apt left are in any layer; the client has no LLVM, and no
    image has anything of NVIDIA's."""
    for name in IMAGES:
        paths = files_of(name)
        assert ("opt/venv" if name == "cuda" else "usr") + "/bin/heddle" in paths, name
        bad = [path for path in paths if path.endswith((".deb", ".key")) or
               re.match(r"packages/.|var/lib/apt/lists/.*Packages|opt/nvidia|.*/libcuda\.so\.\d\d",
                        path)]
        assert not bad, (name, bad)
        llvm = any("libLLVM" in path for path in paths)
        assert llvm == (name == "server"), (name, llvm)
        assert not any("/systemd/systemd" in path for path in paths), f"{name}: systemd"


def case_client():
    """It lists what there is, runs programs under heddle and heddle as it is, and passes exit
    codes on."""
    run("client").expect("heddle CPU GPU")
    # Where the entry point is not process 1. (podman has no `--pid host` without control groups.)
    settings = inspect("localhost/heddle-client", "image")["Config"]
    below = run("client", "-c", '"$@"; exit $?', "sh", *settings["Entrypoint"], *settings["Cmd"],
                options=("--entrypoint", "sh"))
    assert "WARN" not in below.expect("heddle CPU GPU").text, below.text
    run("client", "sh", "-c", "cat /proc/self/maps; exit 41").expect("heddle/libcuda.so.1", code=41)
    # `heddle run` would have set variables that doctor warns of.
    doctor = run("client", "heddle", "doctor").expect("libLLVM")
    assert "contains heddle's own" not in doctor.text, doctor
    run("client", "heddle", "rnu").expect("rnu", code=2)
    run("client", "/no/such/program").expect("/no/such/program", code=127)
    run("client", options=("-e", "HEDDLE_GPU=shm:/run/heddle/heddle.sock")).expect(
        "is heddled running there?", code=1)


def case_strict():
    """Another user, no rights, a root that is read-only and no folder to write to."""
    for image in ("client", "cuda"):
        run(image, options=STRICT).expect("heddle CPU GPU")
    folder = saxpy()
    run("cuda", "./test_saxpy", options=(*STRICT, "--volume", f"{folder}:/w:ro")).expect(
        "n = 100000: 0 wrong")
    run("app", options=STRICT).expect("1024 sums are right")


def case_cuda():
    """A program of nvcc's, and a Python program, from the current folder; devices by name."""
    folder = saxpy()
    shutil.copy(TOP / "examples" / "containers" / "app.py", folder)
    mount = ("--volume", f"{folder}:/w")
    run("cuda", "./test_saxpy", options=mount).expect("n = 100000: 0 wrong")
    run("cuda", "python", "app.py", options=mount).expect("1024 sums are right")
    run("cuda", options=("-e", "HEDDLE_GPU=cpu:h100x2")).expect("H100", "2 devices")
    run("cuda", options=("-e", "HEDDLE_GPU=cpu:h1000")).expect("h1000", code=2)


def case_kernels_are_kept():
    """A volume at /var/cache/heddle keeps what was compiled, whoever the user is."""
    with Volume("kernels") as volume:
        options = ("--volume", f"{volume}:/var/cache/heddle", "--volume", f"{saxpy()}:/w")
        run("cuda", "heddle", "cpu", "warm", "--lib", "./test_saxpy", options=options).expect()
        listed = run("cuda", "heddle", "cpu", "cache", "list", options=options).expect("ok").text
        assert "saxpy_kernel" in listed, listed


def case_stop():
    """SIGTERM reaches the program, which is not process 1."""
    script = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    with Container("client", "sh", "-c", script, name="stop") as c:
        c.wait_for("ready")
        podman("kill", "--signal", "TERM", c.name).expect()
        assert podman("wait", c.name).expect().text.strip() == "3"
        assert "got it" in c.logs()
    with Server(name="stop") as c:
        podman("kill", "--signal", "TERM", c.name).expect()
        assert podman("wait", c.name).expect().text.strip() == "0", c.logs()


def find_process(container, name):
    """The number, in the container, of a process that is not process 1."""
    script = 'for p in /proc/[0-9]*; do echo "${p#/proc/} $(cat $p/comm)"; done'
    lines = container.exec("sh", "-c", script).expect().text.splitlines()
    return next(line.split()[0] for line in lines if line.endswith(f" {name}"))


def case_health():
    """The check asks the server: one that hangs is not healthy, though its process is there."""
    with Server(name="health") as server:
        check = ("healthcheck", "run", server.name)
        podman(*check).expect()
        listener = find_process(server, "heddled")
        server.exec("sh", "-c", f"kill -STOP {listener}").expect()
        try:
            assert podman(*check).code == 1
        finally:
            server.exec("sh", "-c", f"kill -CONT {listener}").expect()
        until(lambda: podman(*check).code == 0, "the server answers again")


def steps_of(server):
    """The steps of the sandbox in force, and those that are not possible."""
    log = server.logs()
    done = re.search(r"sandbox: (environment[a-z, ]*)", log).group(1).split(", ")
    return set(done), set(re.findall(r"sandbox: '(\w+)' is not possible", log))


# The steps without which `--sandbox require` does not start a server, where there is Landlock.
BOUNDARIES = {"environment", "session", "privileges", "limits", "files", "calls"}


def case_sandbox():
    """Workers are confined in a container without rights. podman's list of system calls lets every
    user have namespaces, if the kernel does; a server of root has none without CAP_SYS_ADMIN."""
    strict = ("--cap-drop", "all", "--security-opt", "no-new-privileges")
    with Server("--sandbox", "require", name="sandbox", options=strict) as server:
        steps, missing = steps_of(server)
        assert BOUNDARIES <= steps, server.logs()
        assert not missing or missing <= {"namespaces", "root", "keyring"}, missing
    # Rootless containers have 65536 users, and not the default ones for workers.
    users = ("--worker-uids", "60000-60999")
    with Server(*users, name="sandbox", options=("--user", "0")) as server:
        steps, missing = steps_of(server)
        assert BOUNDARIES | {"user"} <= steps and {"processes", "root"} <= missing, server.logs()
    with Server(*users, name="sandbox",
                options=("--user", "0", "--cap-add", "SYS_ADMIN")) as server:
        steps, missing = steps_of(server)
        assert BOUNDARIES | {"user", "processes", "namespaces", "root"} <= steps, server.logs()


def case_read_only_server():
    """With a root that is read-only and only the socket's folder to write to, it says what it
    cannot keep, and serves."""
    with Volume("socket") as volume:
        with Server(name="read-only", options=(
                *STRICT, "--volume", f"{volume}:/run/heddle")) as server:
            assert "Read-only file system; nothing is stored there" in server.logs()
            client = ("--volume", f"{volume}:/run/heddle:ro", "-e",
                      "HEDDLE_GPU=shm:/run/heddle/heddle.sock", *STRICT)
            run("app", options=client).expect("1024 sums are right")


def case_pip():
    """`pip install` needs neither root nor an option, for the image's user and for any other."""
    wheel = FOLDER / "wheel"
    wheel.mkdir(exist_ok=True)
    make_wheel(wheel / "hedtest-1-py3-none-any.whl")
    for user in ("10001", "54321:0", "0"):
        run("cuda", "sh", "-c", "pip install --no-index hedtest -f /wheel && "
            "python -c 'import hedtest'", options=(
                "--user", user, "--volume", f"{wheel}:/wheel:ro")).expect("Successfully installed")


def make_wheel(path):
    meta = "hedtest-1.dist-info/"
    files = {"hedtest.py": "", meta + "METADATA": "Metadata-Version: 2.1\nName: hedtest\n"
             "Version: 1\n", meta + "WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: "
             "true\nTag: py3-none-any\n", meta + "RECORD": ""}
    script = ("import zipfile, json, sys\nwith zipfile.ZipFile(sys.argv[1], 'w') as z:\n"
              " for k, v in json.loads(sys.argv[2]).items(): z.writestr(k, v)")
    command("python3", "-c", script, path, json.dumps(files)).expect()


def proxy_options():
    """How a container reaches the package index from this machine: by its network, and with the
    certificates that this machine trusts."""
    options = ["--network", "host"]
    trusted = Path(os.environ.get("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt"))
    if trusted.exists():
        options += ["--volume", f"{trusted}:{trusted}:ro", "-e", f"PIP_CERT={trusted}"]
    for name in ("PIP_INDEX_URL", "https_proxy", "http_proxy", "no_proxy"):
        if name in os.environ:
            options += ["-e", f"{name}={os.environ[name]}"]
    return options


def torch_image():
    """The image cuda with PyTorch in it, as its user would make one; skips without the index."""
    image = "localhost/heddle-torch"
    made_from = inspect("localhost/heddle-cuda", "image")["Id"]
    there = not podman("image", "exists", image).code
    if not there or inspect(image, "image")["Config"]["Labels"].get("cuda") != made_from:
        podman("rmi", "--force", image)
        name = "hed-test-torch"
        podman("rm", "--force", name)
        r = podman("run", "--name", name, *proxy_options(), "localhost/heddle-cuda", "pip",
                   "install", "--no-cache-dir", "torch", "numpy", timeout=3600)
        if "No matching distribution" in r.text:
            podman("rm", "--force", name)
            skip("the package index cannot be reached")
        r.expect("Successfully installed")
        podman("commit", "--change", f"LABEL cuda={made_from}", name, image,
               timeout=3600).expect()
        podman("rm", "--force", name)
    return image.removeprefix("localhost/heddle-")


def case_pytorch():
    """PyTorch as pip installs it, as the image's user and as a stranger without rights."""
    image = torch_image()
    mount = ("--volume", f"{CI}:/w:ro")
    for options in (mount, (*mount, *STRICT, "--tmpfs", "/tmp")):
        run(image, "python", "test_torch.py", options=options).expect("heddle CPU GPU", "loss")
