#!/usr/bin/env python3
"""Unmodified CUDA frameworks on heddle: installs them, runs small checks, prints what works.

    run.py [--install] [OPTION...] [FRAMEWORK...]

Each framework has a virtual environment with the wheels that everybody gets, and a file in checks/.
A check is a function check_NAME of that file. It runs in a process of its own under `heddle run`,
with a time limit, and compares what the framework computed with a result computed on the host. So
one that crashes, hangs or computes nothing costs one line of the table:

    framework  version  check  works | the first reason why it does not
"""

import argparse
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]

# Framework: the environment that it is installed in, and the package that gives its version.
FRAMEWORKS = {
    "torch": ("torch", "torch"),
    "torch_train": ("torch", "torch"),
    "torch_distributed": ("torch", "torch"),
    "transformers": ("torch", "transformers"),
    "triton": ("torch", "triton"),
    "cupy": ("cupy", "cupy-cuda13x"),
    "numba": ("numba", "numba-cuda"),
    "jax": ("jax", "jax"),
    "cuda_python": ("cuda_python", "cuda-python"),
    "warp": ("warp", "warp-lang"),
}

# What pip installs into each environment. PyTorch's wheel brings Triton.
ENVIRONMENTS = {
    "torch": ["torch", "transformers", "numpy"],
    "cupy": ["cupy-cuda13x[ctk]", "numpy"],
    "numba": ["numba-cuda[cu13]", "numpy"],
    "jax": ["jax[cuda13]"],
    "cuda_python": ["cuda-python", "cuda-core[cu13]", "nvidia-cuda-nvrtc", "numpy"],
    "warp": ["warp-lang", "numpy"],
}

# Where frameworks keep what they compiled. Each run has its own, or it would see another's.
CACHES = ("CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
          "WARP_CACHE_PATH")

# With --ptx, the frameworks that can do so hand over PTX.
PTX = {"CUPY_COMPILE_WITH_PTX": "1", "TRITON_PTXAS_PATH": str(HERE / "ptxas"),
       "TRITON_PTXAS_BLACKWELL_PATH": str(HERE / "ptxas")}

# Lines of heddle's log: a kernel that cannot run, why machine code was not taken, anything else.
REFUSED = re.compile(r"machine code for real GPUs.*?: kernel (.+?) cannot run here")
NOT_LIFTED = re.compile(r"machine code for sm_\w+: (.+)")
ERROR = re.compile(r"heddle\[\d+\] error \w+: (.+)")


class Result:
    """What became of a check."""

    def __init__(self, framework, version, check, reason, detail, seconds):
        self.framework, self.version, self.check = framework, version, check
        self.reason = reason  # None: it works
        self.detail = detail  # what the check has to say if it works
        self.seconds = seconds

    def text(self):
        return self.reason or ("works" + (f" ({self.detail})" if self.detail else ""))


def list_checks(framework):
    """(name, devices) of each check in a framework's file, in order. The number of devices is the
    default value of the parameter of that name."""
    tree = ast.parse((HERE / "checks" / f"{framework}.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
            defaults = [d.value for d in node.args.defaults]
            yield node.name.removeprefix("check_"), defaults[0] if defaults else 1


def install(folder, name):
    """Makes a virtual environment with the newest wheels; keeps one that is complete."""
    done = folder / name / "complete"
    if done.exists():
        return
    print(f"installing {' '.join(ENVIRONMENTS[name])}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder / name], check=True)
    subprocess.run([folder / name / "bin/pip", "install", "--quiet", "--no-cache-dir",
                    *ENVIRONMENTS[name]], check=True)
    done.touch()


def find_version(python, package):
    command = [python, "-c", "import importlib.metadata, sys;"
               "print(importlib.metadata.version(sys.argv[1]))", package]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "?"


def shorten(text, width=120):
    text = " ".join(text.split())
    return text if len(text) <= width else text[:width - 3] + "..."


def find_reason(status, output):
    """One line that says why a check failed: what heddle refused, else how the program ended."""
    refused = REFUSED.search(output)
    if refused:
        before = NOT_LIFTED.findall(output, 0, refused.start())
        return shorten(f"machine code only{f' ({before[-1]})' if before else ''}: "
                       f"{refused.group(1)}")
    error = ERROR.search(output)
    if error:
        return shorten(error.group(1))
    if status == "time":
        return "no end within the time limit"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    if status > 128 and status - 128 in list(signal.Signals):
        return f"killed by {signal.Signals(status - 128).name}"
    raised = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)\b.*$", output, re.M)
    if raised:
        return shorten(raised[-1])
    lines = output.strip().splitlines()
    return shorten(lines[-1]) if lines else f"exit code {status}"


def run_limited(command, env, limit, log):
    """Status ("time" if there was no end) and output. Ends everything that the command started."""
    with open(log, "w+", errors="replace") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            status = "time"
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        out.seek(0)
        return status, out.read()


def environment(args):
    own = {name: str(args.logs / "cache" / name.lower()) for name in CACHES}
    return {**os.environ, **own, **(PTX if args.ptx else {}), "PYTHONUNBUFFERED": "1"}


def run_check(args, framework, version, name, devices):
    """Runs one check under heddle, or natively if --gpu is `none`."""
    python = args.envs / FRAMEWORKS[framework][0] / "bin/python"
    gpu = args.gpu + (f"x{devices}" if devices > 1 else "")
    command = [python, "-B", HERE / "checks/child.py", framework, name]
    if args.gpu != "none":
        command = [args.heddle, "run", "--gpu", gpu, "--log", args.log,
                   *args.option, "--", *command]
    log = args.logs / f"{framework}.{name}.log"
    begun = time.monotonic()
    status, output = run_limited([str(c) for c in command], environment(args), args.limit, log)
    answer = re.search(r"^CHECKED (.*)$", output, re.M)
    # A check that says that it works must also end well.
    works = answer is not None and status == 0
    return Result(framework, version, name, None if works else find_reason(status, output),
                  json.loads(answer.group(1)) if works else "", time.monotonic() - begun)


def print_result(result):
    print(f"{result.framework:12} {result.version:10} {result.check:22} {result.seconds:6.1f} s  "
          f"{result.text()}", flush=True)


def write_markdown(path, results):
    """The table of docs/frameworks.md."""
    rows = ["| framework | version | check | result |", "| --- | --- | --- | --- |"]
    for r in results:
        text = r.text().replace("|", "\\|").replace("<", "&lt;")
        rows.append(f"| {r.framework} | {r.version} | {r.check} | {text} |")
    path.write_text("\n".join(rows) + "\n")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK",
                        help="one of " + ", ".join(FRAMEWORKS) + " (default: all)")
    parser.add_argument("--envs", type=Path, default=TOP / "build/frameworks",
                        help="folder of the virtual environments (default: build/frameworks)")
    parser.add_argument("--install", action="store_true",
                        help="install what is missing, from the Python package index (15 GB)")
    parser.add_argument("--heddle", type=Path, default=TOP / "build/dev/bin/heddle")
    parser.add_argument("--gpu", default="cpu:a100",
                        help="as for heddle run; none: without heddle (default: cpu:a100)")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION",
                        help="another option of heddle run, such as --option=--cudart=own")
    parser.add_argument("--ptx", action="store_true",
                        help="let CuPy and Triton hand over PTX instead of machine code")
    parser.add_argument("--log", default="info", help="what heddle logs (default: info)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only checks of this name")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a check")
    parser.add_argument("--logs", type=Path, help="folder for the output of each check")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    args = parser.parse_args()
    unknown = set(args.frameworks) - set(FRAMEWORKS)
    if unknown:
        parser.error(f"there is no framework {', '.join(sorted(unknown))}; "
                     f"choose from {', '.join(FRAMEWORKS)}")
    args.envs = args.envs.absolute()
    args.logs = (args.logs or args.envs / "logs").absolute()
    return args


def run_framework(args, framework):
    environment, package = FRAMEWORKS[framework]
    python = args.envs / environment / "bin/python"
    if args.install:
        install(args.envs, environment)
    if not python.exists():
        print(f"{framework}: not installed in {args.envs}; run with --install")
        return
    version = find_version(python, package)
    for name, devices in list_checks(framework):
        if re.search(args.only, name):
            result = run_check(args, framework, version, name, devices)
            print_result(result)
            yield result


def main():
    args = parse_arguments()
    if args.gpu != "none" and not shutil.which(args.heddle):
        sys.exit(f"{args.heddle} is not there: build heddle, or name it with --heddle")
    args.logs.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(args.logs / "cache", ignore_errors=True)
    results = [r for f in args.frameworks or FRAMEWORKS for r in run_framework(args, f)]
    if args.markdown:
        write_markdown(args.markdown, results)
    if args.json:
        args.json.write_text(json.dumps([vars(r) for r in results], indent=1) + "\n")
    failed = sum(r.reason is not None for r in results)
    print(f"{len(results) - failed} of {len(results)} checks work")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
