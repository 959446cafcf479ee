#!/usr/bin/env python3
"""Tries the wheel where nothing else of heddle is: installs the file with pip in clean systems, and
runs programs there, without a GPU.

    run.py [--wheel FILE] [--work FOLDER] [--keep] [--only CHECK,...] [SYSTEM...]

The systems are root folders that mmdebstrap makes from the distributions' archives. They have
Python and nothing to build with: no compiler, no CUDA toolkit, no LLVM. Frameworks come from the
package index, by one cache. Each check prints one line; the exit code is 1 if one failed. It must
be run as root, and what it cannot reach is a failure, too.
"""

import argparse
import hashlib
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import time
import urllib.request

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
PATIENCE = 3600 # seconds, for one command

DEBIAN = "http://deb.debian.org/debian"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
# Debian does not have Ubuntu's keys.
UBUNTU_KEYS = (f"{UBUNTU}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2021.03.26_all.deb",
               "0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f")
# The archive, the suite, the components, and does pip take the wheel there?
SYSTEMS = {
    "debian12": (DEBIAN, "bookworm", "main", True),
    "ubuntu2204": (UBUNTU, "jammy", "main,universe", True),
    "debian11": (DEBIAN, "bullseye", "main", False),
}
PACKAGES = "apt,python3,python3-venv,ca-certificates"
TOOLS = ("cc", "gcc", "clang", "ld", "nvcc", "ptxas", "llvm-config", "cmake")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# What says how the package index is reached.
PASSED_ON = re.compile(r"^(PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT|CERT)"
                       r"|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|(https?|no|all)_proxy)$", re.IGNORECASE)
REFUSAL = "is not a supported wheel on this platform"
# Which binaries of tests/cu: the device, and what nvcc puts into them.
CU_DEVICE, CU_CODES = "cpu:h200", ("compute_90", "sm_80")
GRID = ("python3 -B /heddle/tests/conformance/agree.py /heddle/tests/cu/golden/grid.txt "
        "/cu/grid.compute_90")


class Failed(Exception):
    """A check's reason, in one line."""


def say(text):
    print(text, flush=True)


class System:
    """A root folder, and commands in it."""

    def __init__(self, name, work):
        self.name, self.work = name, work
        self.archive, self.suite, self.components, self.is_supported = SYSTEMS[name]
        self.root = work / "roots" / name
        self.cache = work / "pip"

    def make(self, is_kept):
        if is_kept and (self.root / "heddle").is_dir():
            return
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.parent.mkdir(parents=True, exist_ok=True)
        self.cache.mkdir(exist_ok=True)
        command = ["mmdebstrap", "--mode=root", "--variant=minbase", "--quiet",
                   f"--include={PACKAGES}", f"--components={self.components}", self.suite,
                   self.root, self.archive]
        if self.archive == UBUNTU:
            command[1:1] = [f"--keyring={self.ubuntu_keys()}"]
        r = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if r.returncode:
            raise Failed(f"mmdebstrap: {last_line(r.stderr)}")
        for folder in ("heddle", "cu", "wheel", "root/.cache/pip"):
            (self.root / folder).mkdir(parents=True)
        # The index may be behind a proxy with a certificate of its own.
        shutil.copy(CERTIFICATES, self.root / CERTIFICATES[1:])
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        found = [tool for tool in TOOLS if self.run(f"command -v {tool}", check=False).stdout]
        if found:
            raise Failed(f"the root is not clean: it has {', '.join(found)}")

    def ubuntu_keys(self):
        url, digest = UBUNTU_KEYS
        folder = self.work / "keys"
        package = self.work / "keys.deb"
        with urllib.request.urlopen(url, timeout=60) as answer:
            package.write_bytes(answer.read())
        if hashlib.sha256(package.read_bytes()).hexdigest() != digest:
            raise Failed(f"{url} is not what it was")
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        return folder / "usr/share/keyrings/ubuntu-archive-keyring.gpg"

    def run(self, command, check=True, **environment):
        """Runs a shell command in the root: with its own mounts and processes, and with nothing of
        this environment but the way to the index."""
        mounts = [("--rbind", "/dev", "dev"), ("--bind", self.cache, "root/.cache/pip"),
                  ("--bind", TOP, "heddle"), ("--bind", self.work / "cu", "cu"),
                  ("--bind", self.work / "wheel", "wheel")]
        lines = [f"mount {how} '{what}' '{self.root / where}'" for how, what, where in mounts]
        script = " && ".join([*lines, f"mount -t proc proc '{self.root}/proc'",
                              f"exec /usr/sbin/chroot '{self.root}' /bin/sh -c \"$0\""])
        passed = {k: v for k, v in os.environ.items() if PASSED_ON.match(k)}
        env = {"PATH": "/env/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "HOME": "/root", "LC_ALL": "C.UTF-8", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
               "PIP_ROOT_USER_ACTION": "ignore", **passed, **environment}
        r = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                            script, command], env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, errors="replace", timeout=PATIENCE,
                           check=False)
        if check and r.returncode:
            log = self.work / f"{self.name}.log"
            log.write_text(f"$ {command}\n{r.stdout}\n{r.stderr}\n")
            raise Failed(f"`{command}` ended with {r.returncode}: "
                         f"{last_line(r.stderr or r.stdout)} (all of it: {log})")
        return r

    def heddle(self, program, gpu="cpu:a100", **environment):
        """Runs a program under heddle."""
        return self.run(f"heddle run --gpu {gpu} --fail-on-refusal -- {program}", **environment)

    def check_of(self, framework, *functions, **environment):
        """Runs checks of tests/frameworks."""
        self.heddle(gpu="cpu:a100x2", program="/env/bin/python /heddle/tests/wheel/check.py "
                    f"{framework} {' '.join(functions)}", **environment)


def last_line(text):
    return (text.strip().splitlines() or ["(nothing was said)"])[-1]


# ---- checks: each gets a System and the name of the wheel, and returns what there is to say ------


def check_install(system, wheel):
    system.run("rm -rf /env && python3 -m venv /env")
    start = time.monotonic()
    system.run(f"pip install --no-index /wheel/{wheel}")
    seconds = time.monotonic() - start
    version = system.run("heddle --version").stdout.strip()
    doctor = system.run("heddle doctor", check=False)
    if doctor.returncode or "LLVM" not in doctor.stdout:
        raise Failed(f"heddle doctor: {doctor.stdout}")
    for name in ("man/man1/heddle.1", "bash-completion/completions/heddle"):
        system.run(f"test -s /env/share/{name}")
    return f"{version}, installed in {seconds:.1f} s"


def check_folders(system, wheel):
    """Everything is found relative to the command, whatever pip did, and after a move."""
    devices = "devices --gpu cpu:t4x2"
    system.run(f"/env/bin/python -m pip install --no-index --target /far/away /wheel/{wheel}")
    system.run(f"/far/away/bin/heddle {devices}", PATH="/usr/bin:/bin")
    system.run("ln -s /env/bin/heddle /usr/local/bin/heddle-link")
    system.run(f"heddle-link {devices}")
    system.run("python3 -m venv /tmp/one && /tmp/one/bin/pip install --no-index "
               f"/wheel/{wheel} && mv /tmp/one /tmp/two && /tmp/two/bin/heddle {devices}")
    system.run("mv /tmp/two /tmp/one && /tmp/one/bin/pip uninstall -y heddle-cuda")
    left = system.run("find /tmp/one /far/away/bin -name '*heddle*' -newer /etc/resolv.conf "
                      "-path '/tmp/one/*'").stdout
    if left:
        raise Failed(f"pip uninstall leaves {left.split()[0]}")
    system.run("rm -rf /tmp/one /far /usr/local/bin/heddle-link")
    return "in --target, through a link, after a move; nothing is left"


def check_module(system, _wheel):
    text = system.run("python -c 'import heddle; heddle.use(\"cpu:a100x2\"); "
                      "print(len(heddle.devices()))'").stdout.strip()
    if text != "2":
        raise Failed(f"heddle.devices() has {text} devices in place of 2")
    return "import heddle; heddle.use()"


def check_pytest(system, _wheel):
    """The entry point: pytest finds the plug-in by itself."""
    system.run("pip install pytest")
    (system.root / "root/test_it.py").write_text(
        "import ctypes, pytest\n\n"
        "@pytest.mark.heddle(devices=2)\n"
        "def test_devices():\n"
        "    cuda, count = ctypes.CDLL('libcuda.so.1'), ctypes.c_int()\n"
        "    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0\n"
        "    assert count.value == 2\n", encoding="utf-8")
    said = last_line(system.run("cd /root && pytest -q --heddle cpu:a100x2 test_it.py").stdout)
    if not said.startswith("1 passed"):
        raise Failed(f"pytest says: {said}")
    return said


def check_cu(system, _wheel):
    programs = sorted(path.name for path in (system.work / "cu").iterdir())
    if not programs:
        raise Failed("there are no programs: is nvcc there?")
    for program in programs:
        golden = f"/heddle/tests/cu/golden/{program.split('.')[0]}.txt"
        same = "--same " if program.endswith("sm_80") else ""
        gpu = "cpu:a100" if same else CU_DEVICE
        for tier in ("baseline", "warp"):
            system.run(f"heddle run --gpu {gpu} -- python3 -B /heddle/tests/conformance/agree.py "
                       f"{same}{golden} /cu/{program}", HEDDLE_CPU_CODEGEN=tier)
    return f"{len(programs)} programs, in both tiers"


def check_server(system, _wheel):
    """heddled from the wheel; tls uses the OpenSSL that is inside."""
    found = system.run("echo /env/lib*/python3*/site-packages/heddle/_native/lib/heddle").stdout
    libraries = found.split()[0]
    for transport in ("shm", "tls"):
        system.run(f"python3 -B /heddle/tests/harness/serve {transport} {libraries} "
                   f"/env/bin/heddle {CU_DEVICE} heddle run -- {GRID}")
    return "a program of tests/cu over shm and tls"


def check_tarball(system, _wheel):
    """The release's other file for every system. `make wheel` makes none."""
    found = list((system.work / "wheel").glob("*.tar.xz"))
    if not found:
        return "there is none in build/dist: not tried"
    system.run("rm -rf /srv/here && mkdir /srv/here && python3 -c 'import tarfile; tarfile.open("
               f"\"/wheel/{found[0].name}\").extractall(\"/srv/here\")'")
    command = f"/srv/here/{found[0].name.removesuffix('.tar.xz')}/bin/heddle"
    system.run(f"{command} doctor")
    system.run(f"{command} run --gpu {CU_DEVICE} -- {GRID}")
    return found[0].name


def check_torch(system, _wheel):
    system.run("pip install torch numpy")
    system.run("rm -rf /root/.cache/heddle")
    cold = system.heddle("/env/bin/python /heddle/tests/wheel/first_step.py").stdout.strip()
    warm = system.heddle("/env/bin/python /heddle/tests/wheel/first_step.py").stdout.strip()
    system.check_of("torch_train", "check_autograd", "check_adamw")
    return f"{cold}; again: {warm}"


def check_triton(system, _wheel):
    """Triton compiles a C program of its own at the first kernel, on every machine."""
    system.run("pip install ziglang")
    system.run("apt-get update -qq && apt-get install -qq -y --no-install-recommends "
               "libpython3-dev", DEBIAN_FRONTEND="noninteractive")
    system.run("printf '#!/bin/sh\\nexec /env/bin/python -m ziglang cc \"$@\"\\n' "
               ">/env/bin/zig-cc && chmod +x /env/bin/zig-cc")
    system.check_of("triton", "check_vector_add", CC="/env/bin/zig-cc")
    return "vector add; its launcher by the package ziglang"


def check_cupy(system, _wheel):
    system.run("pip install 'cupy-cuda13x[ctk]' numpy")
    system.check_of("cupy")
    return "all checks of tests/frameworks"


def check_numba(system, _wheel):
    system.run("pip install 'numba-cuda[cu13]' numpy")
    system.check_of("numba")
    return "all checks of tests/frameworks"


def check_refused(system, wheel):
    """Not for here: one line of pip says so."""
    system.run("python3 -m venv /env")
    r = system.run(f"pip install --no-index /wheel/{wheel}", check=False)
    errors = [line for line in r.stderr.splitlines() if line.startswith("ERROR")]
    if r.returncode == 0 or len(errors) != 1 or REFUSAL not in errors[0]:
        raise Failed(f"pip says: {last_line(r.stderr or r.stdout)}")
    return errors[0]


def check_processor(system, wheel):
    platform = wheel.rsplit("-", 1)[1].removesuffix(".whl")
    swap = {"x86_64": "aarch64", "aarch64": "x86_64"}
    platform = re.sub("x86_64|aarch64", lambda m: swap[m[0]], platform)
    r = system.run(f"pip install --no-index --target /tmp/t --only-binary=:all: "
                   f"--platform {platform} /wheel/{wheel}", check=False)
    if r.returncode == 0 or REFUSAL not in r.stderr:
        raise Failed(f"pip says: {last_line(r.stderr or r.stdout)}")
    return last_line(r.stderr)


CHECKS = ("install", "folders", "processor", "module", "pytest", "cu", "server", "tarball", "torch",
          "triton", "cupy", "numba")


# ---- what is tried -------------------------------------------------------------------------------


def build_programs(folder):
    """tests/cu, as their users build them: with nvcc and its static runtime."""
    folder.mkdir(parents=True, exist_ok=True)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.access(nvcc, os.X_OK):
        return
    for source in sorted((TOP / "tests/cu").glob("*.cu")):
        linked = ["-rdc=true"] if source.stem in ("children", "pending") else []
        for code in CU_CODES:
            out = folder / f"{source.stem}.{code}"
            if not out.exists():
                subprocess.run([nvcc, "-std=c++17", "-O2", f"-arch=compute_{code.split('_')[1]}",
                                f"-code={code}", *linked, source, "-o", out], check=True,
                               timeout=PATIENCE, stdout=subprocess.DEVNULL)


def try_one(system, name, wheel):
    """True if the check passes."""
    start = time.monotonic()
    try:
        what = globals()[f"check_{name}"](system, wheel)
    except (Failed, OSError, subprocess.SubprocessError) as e:
        say(f"FAIL  {system.name:11} {name:10} {e}")
        return False
    say(f"ok    {system.name:11} {name:10} {what} ({time.monotonic() - start:.0f} s)")
    return True


def try_system(system, wheel, only, is_kept):
    checks = [name for name in (CHECKS if system.is_supported else ("refused",))
              if not only or name in only]
    if not checks:
        return True
    try:
        system.make(is_kept)
    except (Failed, OSError, subprocess.SubprocessError) as e:
        say(f"FAIL  {system.name:11} {e}")
        return False
    return all([try_one(system, name, wheel) for name in checks])


def find_wheel(path):
    if path:
        return Path(path)
    found = sorted((TOP / "build/dist").glob("*.whl"))
    if len(found) != 1:
        sys.exit("run.py: there is not one wheel in build/dist: make wheel, or --wheel FILE")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--wheel", help="default: that of build/dist")
    parser.add_argument("--work", type=Path, default=TOP / "build/wheel-test")
    parser.add_argument("--keep", action="store_true", help="keep the root folders, and use them")
    parser.add_argument("--only", type=lambda s: s.split(","), default=[], help=", ".join(CHECKS))
    args = parser.parse_args()
    unknown = [name for name in args.systems if name not in SYSTEMS]
    unknown += [name for name in args.only if name not in (*CHECKS, "refused")]
    if unknown:
        parser.error(f"there is no {unknown[0]}")
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        sys.exit("run.py: it needs root, and mmdebstrap")
    wheel = find_wheel(args.wheel)
    args.work = args.work.resolve()
    (args.work / "wheel").mkdir(parents=True, exist_ok=True)
    for path in (wheel, *wheel.parent.glob("*.tar.xz")):
        shutil.copy(path, args.work / "wheel")
    build_programs(args.work / "cu")
    passed = True
    for name in args.systems or SYSTEMS:
        system = System(name, args.work)
        passed &= try_system(system, wheel.name, args.only, args.keep)
        if not args.keep:
            shutil.rmtree(system.root, ignore_errors=True)
    if not args.keep:
        shutil.rmtree(args.work)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
