#!/usr/bin/env python3
"""What can be said about the recipes for containers and CI without running them: tests/containers
runs them.

    HED_SCRATCH=/tmp/scratch recipes.py

Their schemas are those of the package check-jsonschema: its command in the PATH, or the one that
HED_CHECK_JSONSCHEMA names. Without it the case is skipped, when the rest of it has passed.
"""

import json
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

TOP = Path(__file__).resolve().parents[3]
CONTAINERS, CI = TOP / "examples" / "containers", TOP / "examples" / "ci"
SCRATCH = Path(os.environ.get("HED_SCRATCH", "."))
SKIPPED = 77

# A file, its schema, and what makes a wrong file of it: a check that accepts everything is none.
SCHEMAS = (
    (CI / "github.yml", "github-workflows", ("runs-on:", "run-on:")),
    (CI / "action.yml", "github-actions", ("using: composite", "using: compsite")),
    (CI / "gitlab-ci.yml", "gitlab-ci", ("stage: build", "stagee: build")),
    (CONTAINERS / "compose.yaml", "compose-spec", ("depends_on:", "depend_on:")),
)


def fail(text):
    sys.exit(f"FAILED: {text}")


def check_containerfile():
    """The labels have this version. Nothing is used that only podman or only docker understands:
    mounts are of a stage, because one of the context needs SELinux's `z`, which docker refuses."""
    text = (CONTAINERS / "Containerfile").read_text(encoding="utf-8")
    project = (TOP / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.search(r"project\(heddle VERSION ([0-9.]+)", project).group(1)
    for found in re.findall(r"^ARG VERSION=(.*)$", text, re.MULTILINE):
        if found != version:
            fail(f"Containerfile: ARG VERSION={found}, but this is {version}")
    for mount in re.findall(r"--mount=(\S+)", text):
        words = dict(part.partition("=")[::2] for part in mount.split(","))
        if set(words) != {"type", "from", "source", "target"} or words["from"] != "packages":
            fail(f"Containerfile: --mount={mount}")
    for line in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", text, re.MULTILINE):
        if not isinstance(json.loads(line), list):
            fail(f"Containerfile: {line}: not a list of words, so a shell would get the signals")


def check_ignored():
    """Each file that is copied is let into the build, and nothing else is."""
    text = (CONTAINERS / "Containerfile").read_text(encoding="utf-8")
    allowed = set(re.findall(r"^!(\S+)$", (CONTAINERS / ".dockerignore").read_text(
        encoding="utf-8"), re.MULTILINE))
    copied = {"packages/*.deb", "packages/*.whl"}
    for words in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE):
        copied.update(word for word in words.split()[:-1] if word[:2] != "--")
    copied.discard("packages/")
    if allowed != copied:
        fail(f".dockerignore and COPY differ: {sorted(allowed ^ copied)}")


def check_settings():
    """Variables that begin with HEDDLE_ are settings, and others of this name end every command of
    heddle's: recipes may set only those that there are."""
    keys = set(re.findall(r"^\.(?:B|BI) (\w+)", (TOP / "docs" / "man" / "heddle.conf.5").read_text(
        encoding="utf-8"), re.MULTILINE))
    for path in (*CI.glob("*.yml"), CONTAINERS / "compose.yaml", CONTAINERS / "Containerfile"):
        for name in re.findall(r"(?<![A-Z_])HEDDLE_([A-Z_]+)", path.read_text(encoding="utf-8")):
            if name.lower() not in keys:
                fail(f"{path.name}: HEDDLE_{name} is no setting")


def check_scripts():
    """bash can parse what the recipes run."""
    for path in CI.glob("*.yml"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for at, line in enumerate(lines):
            if not re.search(r"(?:run:|-) \|$", line):
                continue
            indent = len(line) - len(line.lstrip())
            block = []
            for inner in lines[at + 1:]:
                if inner.strip() and len(inner) - len(inner.lstrip()) <= indent:
                    break
                block.append(inner)
            r = subprocess.run(["bash", "-n"], input="\n".join(block), capture_output=True,
                               text=True, check=False)
            if r.returncode:
                fail(f"{path.name}:{at + 1}: {r.stderr}")


def accepts(command, schema, path):
    words = [command, "--builtin-schema", f"vendor.{schema}", str(path)]
    r = subprocess.run(words, capture_output=True, text=True, check=False)
    return r.returncode == 0, r.stdout + r.stderr


def check_schemas():
    command = os.environ.get("HED_CHECK_JSONSCHEMA") or shutil.which("check-jsonschema")
    if not command:
        print("skipped: check-jsonschema is not installed (pip install check-jsonschema)")
        sys.exit(SKIPPED)
    for path, schema, (right, wrong) in SCHEMAS:
        good, output = accepts(command, schema, path)
        if not good:
            fail(f"{path}: {output}")
        text = path.read_text(encoding="utf-8")
        damaged = SCRATCH / path.name
        damaged.write_text(text.replace(right, wrong), encoding="utf-8")
        if right not in text or accepts(command, schema, damaged)[0]:
            fail(f"the schema {schema} accepts '{wrong}'")


def main():
    check_containerfile()
    check_ignored()
    check_settings()
    check_scripts()
    check_schemas()


if __name__ == "__main__":
    main()
