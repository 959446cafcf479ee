"""Cases about examples/ci: what the recipes say is run, as the services run it (pipeline.py)."""

import contextlib
import functools
import hashlib
import http.server
from pathlib import Path
import re
import shutil
import ssl
import threading

import engine
from engine import FOLDER, LONG, TOP, buildah, podman, skip
import images
from pipeline import Failed, GitHub, GitLab, Places, fresh

CI = TOP / "examples" / "ci"
# What stands for images of registries, by a part of their names.
PYTHON, CUDA = "localhost/heddle-ci-python", "localhost/heddle-ci-cuda"
PACKAGES = {PYTHON: "ca-certificates python3 python3-venv python3-pip",
            CUDA: "ca-certificates make g++"}


def load(path):
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        skip("PyYAML is not installed")
    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


def make_image(name):
    """Debian with what such an image has; `python` and `pip` as in the image python."""
    if not podman("image", "exists", name).code:
        return name
    container = buildah("from", engine.BASE).expect().text.strip().splitlines()[-1]
    script = (f"apt-get update -q && apt-get install -y -q --no-install-recommends "
              f"{PACKAGES[name]} && rm -rf /var/lib/apt/lists/*")
    if name == PYTHON:
        script += (" && rm /usr/lib/python3*/EXTERNALLY-MANAGED"
                   " && ln -s python3 /usr/bin/python")
    buildah("run", "--isolation", "chroot", container, "sh", "-c", script, timeout=LONG).expect()
    buildah("config", "--env", "PATH=/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:"
            "/usr/bin:/sbin:/bin", container).expect()
    buildah("commit", "--rm", container, name, timeout=LONG).expect()
    return name


def package(kind):
    return next((FOLDER / "context" / "packages").glob(kind))


WHEEL, DEB = "heddle_cuda-*.whl", "heddle_*.deb"


def make_places(name, kind=WHEEL):
    """A project as a user has it, with the package in it, and empty caches."""
    project = fresh(FOLDER / name / "project")
    shutil.copytree(CI, project, dirs_exist_ok=True)
    action = project / ".github" / "actions" / "heddle"
    action.mkdir(parents=True)
    shutil.move(project / "action.yml", action)
    file = package(kind)
    shutil.copy(file, project)
    toolkit = Path(images.NVCC).resolve().parents[1]
    if not Path(images.NVCC).exists():
        skip("no nvcc")
    options = [*images.proxy_options(), "--volume", f"{toolkit}:/usr/local/cuda:ro"]
    variables = {"MY_HEDDLE_PACKAGE": file.name,
                 "MY_HEDDLE_SHA256": hashlib.sha256(file.read_bytes()).hexdigest()}
    stands = {"nvidia/cuda": make_image(CUDA), "library/python": make_image(PYTHON)}
    return Places(project, fresh(FOLDER / name / "caches"), stands, variables, options)


def case_github_cuda():
    """nvcc's program for each entry of the matrix, twice: the second run has the first's cache."""
    places = make_places("github")
    workflow = load(CI / "github.yml")
    first = GitHub(places, load, 1).job("cuda", workflow)
    assert len(first) == 2
    for log in first:
        assert "n = 100000: 0 wrong" in log, log
        assert "imported" not in log, log
    for log in GitHub(places, load, 2).job("cuda", workflow):
        assert "n = 100000: 0 wrong" in log and "imported" in log, log


class Addresses(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def https(folder, certificates):
    """Serves the folder over https; the port. Certificates are of heddle's own authority."""
    fresh(certificates).chmod(0o777)
    # The folder is not that of the image's user; what is made in it is.
    script = ("heddle cert ca /c/a && heddle cert server /c/a --host localhost && "
              "chmod -R a+rX /c/a")
    engine.run("client", "sh", "-c", script,
               options=("--volume", f"{certificates}:/c")).expect()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "a/server-localhost.pem",
                            certificates / "a/server-localhost.key")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Addresses, directory=folder))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def case_github_address():
    """The package from an https address, in an image that has no curl."""
    places = make_places("address")
    name = places.variables["MY_HEDDLE_PACKAGE"]
    certificates = FOLDER / "address" / "certificates"
    with https(places.project, certificates) as port:
        places.options.extend(("--volume", f"{certificates}/a/ca.pem:/ca.pem:ro"))
        places.env["CURL_CA_BUNDLE"] = "/ca.pem"
        places.variables["MY_HEDDLE_PACKAGE"] = f"https://localhost:{port}/{name}"
        for log in GitHub(places, load, 1).job("cuda", load(CI / "github.yml")):
            assert "n = 100000: 0 wrong" in log, log


def case_github_mistakes():
    """What a user gets wrong ends the job, with a line that says what it was."""
    def ends_with(words, **variables):
        places.variables = {**good, **variables}
        github = GitHub(places, load, 3)
        try:
            github.job("cuda", workflow)
        except Failed as failed:
            assert words in str(failed), failed
        else:
            raise AssertionError(f"no failure: {variables}")

    places = make_places("mistakes")
    good = places.variables
    workflow = load(CI / "github.yml")
    ends_with("the checksum of", MY_HEDDLE_SHA256="0" * 64)
    ends_with("0 files match 'heddle_9.deb'", MY_HEDDLE_PACKAGE="heddle_9.deb")
    ends_with("input package is missing", MY_HEDDLE_PACKAGE="")
    ends_with("'sha256' is required", MY_HEDDLE_PACKAGE="https://x.example/a.deb",
              MY_HEDDLE_SHA256="")
    ends_with("is not an https address", MY_HEDDLE_PACKAGE="http://x.example/a.deb")
    ends_with("is neither a .deb nor a .whl", MY_HEDDLE_PACKAGE="Makefile", MY_HEDDLE_SHA256="")
    ends_with("exit code 7", **tests_that_fail(workflow))


def tests_that_fail(workflow):
    """A workflow whose commands fail; its variables stay as they are."""
    for step in workflow["jobs"]["cuda"]["steps"]:
        if "with" in step:
            step["with"]["run"] = "false || exit 7\necho not reached\n"
    return {}


def gitlab_places(kind):
    """GitLab's recipe gets the package by its address."""
    places = make_places("gitlab", kind)
    places.variables["MY_HEDDLE_PACKAGE"] = f"file:///workspace/{package(kind).name}"
    return places


def case_gitlab_cuda():
    """The same pipeline twice: artifacts go from job to job, kernels from run to run."""
    places = gitlab_places(DEB)
    pipeline = load(CI / "gitlab-ci.yml")
    for first in (True, False):
        gitlab = GitLab(places)
        gitlab.job("build", pipeline)
        logs = gitlab.job("saxpy", pipeline)
        assert len(logs) == 2
        for log in logs:
            assert "n = 100000: 0 wrong" in log, log
            assert ("imported" in log) != first, log


def case_github_deb():
    """The same with the Debian package."""
    for log in GitHub(make_places("github", DEB), load, 1).job("cuda", load(CI / "github.yml")):
        assert "n = 100000: 0 wrong" in log, log


def kernels_in(log):
    """How many kernels the run has brought along, and how many it left for the next one."""
    found = [re.findall(rf"{word} (\d+) kernel", log) for word in ("imported", "exported")]
    return [int(numbers[-1]) if numbers else 0 for numbers in found]


def case_github_pytorch():
    """PyTorch as pip installs it, twice: what the first run compiled, the second one need not."""
    places = make_places("torch")
    log, = GitHub(places, load, 1).job("pytorch", load(CI / "github.yml"))
    assert "heddle CPU GPU (generic): loss" in log, log
    imported, exported = kernels_in(log)
    assert imported == 0 and exported > 0, log
    log, = GitHub(places, load, 2).job("pytorch", load(CI / "github.yml"))
    assert "heddle CPU GPU (generic): loss" in log and kernels_in(log)[0] == exported, log


def case_gitlab_pytorch():
    """The same on GitLab, once."""
    log, = GitLab(gitlab_places(WHEEL)).job("pytorch", load(CI / "gitlab-ci.yml"))
    assert "heddle CPU GPU (generic): loss" in log and kernels_in(log)[1] > 0, log
