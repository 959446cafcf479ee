"""Runs the recipes of examples/ci as GitHub and GitLab would, in containers: the words between the
quotes are the recipes' own.

Only what the recipes use is understood; everything else is an error, so that a recipe cannot say
more than was run. The caches of both services are folders here, and images of registries are
replaced by ours (Places.image).
"""

import itertools
import re
import shlex
import shutil

from engine import LONG, podman, words_of
import engine

# Absent here: the services themselves download these.
CHECKOUT = "actions/checkout@v5"
RESTORE = "actions/cache/restore@v5"
SAVE = "actions/cache/save@v5"

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
NAME = re.compile(r"[\w-]+(\.[\w-]+)+")
CONDITION = re.compile(r"([\w.-]+) == '([^']*)'")


class Failed(Exception):
    """A step ended with an error, as the service would show."""


class Places:
    """Where a pipeline runs: the project, the caches, and what stands for images and variables."""

    def __init__(self, project, caches, images, variables, options=()):
        self.project, self.caches, self.options = project, caches, options
        self.images, self.variables, self.env = images, variables, {}

    def image(self, name):
        for part, image in self.images.items():
            if part in name:
                return image
        raise KeyError(f"nothing stands for the image {name}")


class Job:
    """A container with a copy of the project at /workspace, where scripts run."""

    def __init__(self, places, image, name):
        self.places, self.name, self.log = places, f"hed-test-job-{name}", ""
        self.env, self.path = {"HOME": "/root", "CI": "true", **places.env}, []
        words = words_of("podman", "run", "--detach", "--name", self.name, "--user", "0",
                         "--entrypoint", "sleep", *places.options,
                         places.image(image), "infinity")
        podman("rm", "--force", "--time", 0, self.name)
        engine.command(*words).expect()
        self.exec("mkdir", "-p", "/workspace", "/runner").expect()
        podman("cp", f"{places.project}/.", f"{self.name}:/workspace").expect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        podman("rm", "--force", "--time", 0, self.name)

    def exec(self, *words, folder="/", env=None):
        options = [f"--env={k}={v}" for k, v in {**self.env, **(env or {})}.items()]
        return podman("exec", "--workdir", folder, *options, self.name, *words, timeout=LONG)

    def script(self, shell, text, folder="/workspace", env=None):
        """Runs text; what it prints is added to the log."""
        local = engine.FOLDER / f"{self.name}.sh"
        local.write_text(text, encoding="utf-8")
        podman("cp", local, f"{self.name}:/runner/script").expect()
        local.unlink()
        if self.path:
            text = ":".join(self.path) + ":" + self.exec("printenv", "PATH").text.strip()
            env = {**(env or {}), "PATH": text}
        r = self.exec(*shell, "/runner/script", folder=folder, env=env)
        self.log += r.text
        if r.code:
            raise Failed(f"exit code {r.code}:\n{r.text[-3000:]}")

    def read(self, path):
        r = self.exec("cat", path)
        return r.text if r.code == 0 else ""

    def fetch(self, inside, outside):
        """Copies a file out of the container; False if there is none."""
        outside.parent.mkdir(parents=True, exist_ok=True)
        return podman("cp", f"{self.name}:{inside}", outside).code == 0

    def bring(self, outside, inside):
        podman("cp", outside, f"{self.name}:{inside}").expect()


# ---- GitHub -------------------------------------------------------------------------------------

class GitHub:
    """One job of a workflow, for one entry of its matrix."""

    def __init__(self, places, load, run_id):
        self.places, self.load, self.run_id = places, load, run_id
        self.log = ""

    def value(self, text, scope):
        """text with its expressions replaced."""
        def look(match):
            name = match.group(1)
            if not NAME.fullmatch(name):
                raise ValueError(f"not understood: {match.group()}")
            here = scope
            for part in name.split("."):
                here = here[part]
            return str(here)
        return EXPRESSION.sub(look, str(text))

    def wanted(self, step, scope):
        if "if" not in step:
            return True
        left, right = CONDITION.fullmatch(step["if"]).groups()
        return self.value("${{" + left + "}}", scope) == right

    def scope(self, **more):
        return {"github": {"run_id": self.run_id, "run_attempt": 1}, "steps": {},
                # What GitHub says here in a container: a path of its host.
                "runner": {"arch": "X64", "os": "Linux", "temp": "/home/runner/work/_temp"},
                "vars": self.places.variables, **more}

    def run_script(self, job, step, scope):
        shell = {"bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
                 None: ["sh", "-e"]}[step.get("shell")]
        env = {k: self.value(v, scope) for k, v in step.get("env", {}).items()}
        files = {"GITHUB_OUTPUT": "/runner/output", "GITHUB_PATH": "/runner/path",
                 "RUNNER_TEMP": "/runner"}
        folder = self.value(step.get("working-directory", "."), scope)
        job.exec("rm", "-f", "/runner/output", "/runner/path").expect()
        job.script(shell, self.value(step["run"], scope), f"/workspace/{folder}", {**env, **files})
        outputs = dict(line.split("=", 1) for line in job.read("/runner/output").splitlines())
        scope["steps"][step.get("id", "")] = {"outputs": outputs}
        job.path = job.read("/runner/path").split() + job.path

    def cache_folder(self, key):
        return self.places.caches / "github" / key.replace("/", "_")

    def restore(self, job, step):
        known = sorted(self.cache_folder("x").parent.glob("*"), key=lambda p: p.stat().st_mtime)
        for wanted in (step["key"], *step.get("restore-keys", "").split()):
            for found in reversed(known):
                if found.name.startswith(self.cache_folder(wanted).name):
                    job.bring(found / "file", step["path"])
                    return

    def save(self, job, step):
        folder = self.cache_folder(step["key"])
        if "," in step["key"] or len(step["key"]) > 512:
            raise Failed(f"no key for a cache: {step['key']}")
        if folder.exists():
            raise Failed(f"there is a cache with the key {step['key']}")
        if not job.fetch(step["path"], folder / "file"):
            raise Failed(f"nothing is at {step['path']}")

    def composite(self, job, action, given, scope):
        inputs = {}
        for name, about in action["inputs"].items():
            if about.get("required") and not given.get(name):
                raise Failed(f"input {name} is missing")
            inputs[name] = given.get(name, about.get("default", ""))
        if unknown := set(given) - set(inputs):
            raise Failed(f"no such inputs: {unknown}")
        inner = self.scope(inputs=inputs, runner=scope["runner"])
        for step in action["runs"]["steps"]:
            if self.wanted(step, inner):
                self.step(job, step, inner)

    def step(self, job, step, scope):
        given = {k: self.value(v, scope) for k, v in step.get("with", {}).items()}
        uses = step.get("uses")
        if not uses:
            self.run_script(job, step, scope)
        elif uses == RESTORE:
            self.restore(job, given)
        elif uses == SAVE:
            self.save(job, given)
        elif uses.startswith("./"):
            self.composite(job, self.load(self.places.project / uses / "action.yml"), given, scope)
        elif uses != CHECKOUT:
            raise ValueError(f"not understood: uses {uses}")

    def job(self, name, workflow):
        """Runs it for each entry of its matrix; the logs."""
        about = workflow["jobs"][name]
        matrix = about.get("strategy", {}).get("matrix", {})
        logs = []
        for values in itertools.product(*matrix.values()):
            scope = self.scope(matrix=dict(zip(matrix, values)))
            with Job(self.places, about["container"], name) as job:
                self.log = job
                for step in about["steps"]:
                    self.step(job, step, scope)
                logs.append(job.log)
        return logs


# ---- GitLab -------------------------------------------------------------------------------------

KNOWN = {"extends", "stage", "image", "script", "before_script", "after_script", "artifacts",
         "cache", "parallel"}


def merge(pipeline, name):
    """The job with what it extends."""
    job = dict(pipeline[name])
    base = merge(pipeline, job.pop("extends")) if "extends" in job else {}
    return {**base, **job}


class GitLab:
    """The jobs of a pipeline, one after the other; artifacts go into the project."""

    def __init__(self, places):
        self.places = places

    def job(self, name, pipeline):
        about = merge(pipeline, name)
        if unknown := set(about) - KNOWN:
            raise ValueError(f"not understood: {unknown}")
        logs = []
        for entry in about.get("parallel", {}).get("matrix", [{}]):
            for values in itertools.product(*entry.values()):
                more = dict(zip(entry, values))
                logs.append(self.once(name, about, {**pipeline.get("variables", {}), **more}))
        return logs

    def once(self, name, about, variables):
        slug = re.sub(r"[^a-z0-9]+", "-", " ".join([name, *variables.values()]).lower())
        shell = ["bash", "-eo", "pipefail"]
        with Job(self.places, about["image"], name) as job:
            job.env.update(variables, **self.places.variables, CI_JOB_NAME_SLUG=slug)
            cache = about.get("cache", {"paths": [], "key": ""})
            key = cache["key"].replace("$CI_JOB_NAME_SLUG", slug)
            folder = self.places.caches / "gitlab" / key
            for path in cache["paths"]:
                if (folder / path).exists():
                    job.bring(folder / path, f"/workspace/{path}")
            try:
                job.script(shell, "\n".join(about.get("before_script", []) + about["script"]))
            finally:
                if "after_script" in about:
                    job.script(shell, "\n".join(about["after_script"]))
            for path in cache["paths"]:
                if not job.fetch(f"/workspace/{path}", folder / path):
                    raise Failed(f"nothing to keep at {path}")
            for path in about.get("artifacts", {}).get("paths", []):
                if not job.fetch(f"/workspace/{path}", self.places.project / path):
                    raise Failed(f"no artifact {path}")
            return job.log


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def quote(words):
    return " ".join(shlex.quote(str(word)) for word in words)
