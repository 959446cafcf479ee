"""heddle.use(): makes heddle the CUDA driver of this process.

    settings -> `heddle run --print-env` checks them and says what a program's environment is
             -> is there another driver already?
             -> environment -> libraries -> the chain is built

What is right for a process that `heddle run` starts is decided in the command alone. A process that
runs already differs in two ways: the loader does not read LD_* again, so the libraries are loaded by
hand; and somebody may have loaded another driver.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from typing import Mapping, Union

from . import _install
from ._errors import Error, LoadedError, NotInstalledError, NotInUseError, SettingError
from ._frameworks import DRIVERS, loaded_libraries, remembers_no_driver, warn_of_jax

Setting = Union[str, int, float, bool, "os.PathLike[str]"]

PATHS = ("trace", "cache", "driver", "nvml", "cupti", "tls_ca", "tls_cert", "tls_key")
EXIT_BROKEN = 125  # of `heddle run`: it is not installed properly

# Differences in these do not matter to a process that runs already. Without control=yes, the
# functions that need it say so.
HARMLESS = ("HEDDLE_CONTROL", "HEDDLE_LOG")
OWNER = "HEDDLE_TRACE_OWNER"  # the process that may replace an older trace of that name

# What only a new process can have, and how to get it.
ONLY_RUN = {
    "fail_on_refusal": "heddle.stats().refusals counts what heddle refused",
    "refusals": "heddle.problems() lists what heddle refused",
    "trace_owner": "heddle sets it itself",
    "control": "heddle.use() sets it itself",
}

_lock = threading.RLock()
_used: _Used | None = None
_spoilt = ""  # why heddle was started here and cannot be used


class _Used:
    """What use() has done, and was asked for."""

    def __init__(self, gpu: str | None, settings: Mapping[str, str],
                 changes: Mapping[str, str | None], install: _install.Install) -> None:
        from ._native import Native

        self.gpu = gpu
        self.settings = dict(settings)
        self.changes = dict(changes)  # of the environment
        self.install = install
        self.native = Native(os.path.join(install.libraries, _install.CORE))


def _text(gpu: str | None, settings: Mapping[str, str]) -> str:
    words = [] if gpu is None else [f"'{gpu}'"]
    return ", ".join(words + [f"{key}='{value}'" for key, value in settings.items()])


def current() -> _Used:
    """What use() has done. NotInUseError if it was not called."""
    used = _used
    if used is None:
        raise NotInUseError("heddle is not the driver of this process; call heddle.use() first, "
                            "before `import torch`")
    return used


def in_use() -> bool:
    return _used is not None


# ---- settings ------------------------------------------------------------------------------------


def _value(key: str, value: Setting) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if "\0" in text or "\n" in text:
        raise SettingError(f"{key}: a value cannot have a newline or a zero in it")
    return os.path.abspath(text) if key in PATHS and text else text


def _check_settings(gpu: object, settings: Mapping[str, Setting]) -> dict[str, str]:
    if gpu is not None and not isinstance(gpu, str):
        raise SettingError(f"the device is {gpu!r}, but it must be a string, such as 'cpu:a100'")
    if "gpu" in settings:
        raise SettingError("give the device once")
    for key, instead in ONLY_RUN.items():
        if key in settings:
            raise SettingError(f"{key} is not for heddle.use(): {instead}")
    if settings.get("cudart", "auto") != "auto":
        raise SettingError("cudart chooses the runtime that the loader finds, so it must be set when"
                           " the process starts: use `heddle run --cudart`")
    return {key: _value(key, value) for key, value in settings.items()}


def plain(text: str) -> str:
    """For people: without the bytes that are no text, which cannot be printed."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _message(output: str, command: str = "run: ") -> str:
    """The first line that the command has said, without what it says of itself. Lines of the log
    may come before it."""
    lines = [line for line in plain(output).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("heddle: ")]
    text = (own or lines or ["the command heddle failed and said nothing"])[0]
    for prefix in ("heddle: ", command, "--set: ", "--gpu: "):
        if text.startswith(prefix):
            text = text[len(prefix):]
    return text


def run_command(install: _install.Install, *words: str,
                env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command with output captured. The reason if it cannot be started. Bytes that are no
    text stay as they are, as in os.environ."""
    try:
        return subprocess.run([install.command, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, encoding=sys.getfilesystemencoding(),
                              errors="surrogateescape", check=False, env=env)
    except OSError as reason:
        raise NotInstalledError(f"cannot run {install.command}: {reason}") from None


def _environment(install: _install.Install, gpu: str | None,
                 settings: Mapping[str, str]) -> dict[str, str | None]:
    """What changes in the environment; None: the variable goes."""
    words = ["run", "--print-env", "--set", "control=yes"]
    if gpu is not None:
        words += ["--gpu", gpu]
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"]
    done = run_command(install, *words)
    if done.returncode != 0:
        error = NotInstalledError if done.returncode == EXIT_BROKEN else SettingError
        raise error(_message(done.stderr))
    changes: dict[str, str | None] = {}
    for word in _statements(done.stdout):
        if word[0] == "export":
            name, _, value = word[1].partition("=")
            changes[name] = value
        elif word[0] == "unset":
            changes[word[1]] = None
    return changes


def _statements(text: str) -> list[list[str]]:
    """The words of each line of --print-env; a quoted value can have a newline in it."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace = " \n"
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = list(lexer)
    return [words[i:i + 2] for i in range(0, len(words) - 1, 2)]


# ---- other drivers -------------------------------------------------------------------------------


def _restart() -> str:
    if "ipykernel" in sys.modules:
        return "restart the kernel, and call heddle.use() in the first cell"
    return "call heddle.use() at the program's beginning, before `import torch`"


def _check_drivers(install: _install.Install) -> bool:
    """Is heddle's own driver there already? LoadedError: another one is."""
    ours = False
    for path in loaded_libraries(DRIVERS):
        if os.path.dirname(os.path.realpath(path)) == os.path.realpath(install.libraries):
            ours = True
            continue
        other = os.path.exists(os.path.join(os.path.dirname(path), _install.CORE))
        raise LoadedError(f"this process has loaded {'another heddle, ' if other else ''}{path} "
                          f"already, and a process has one CUDA driver; {_restart()}")
    return ours


def _check_memories() -> None:
    """Is it too late because somebody has asked for GPUs when there were none?"""
    name = remembers_no_driver()
    if name:
        raise LoadedError(f"this process has asked for GPUs before (as torch.cuda.is_available() "
                          f"does), and {name} remembers that there was no driver; {_restart()}")


# ---- use -----------------------------------------------------------------------------------------


def _apply(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """Changes the environment, and returns how to change it back."""
    before: dict[str, str | None] = {}
    for name, value in changes.items():
        before[name] = os.environ.get(name)
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before


def _load_libraries(used: _Used) -> None:
    from ._native import load

    if used.settings.get("fast_libs") == "yes":
        load(os.path.join(used.install.libraries, "libheddle-fast-libs.so"))
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        load(os.path.join(used.install.libraries, name))


def _check_running(used: _Used, changes: Mapping[str, str | None]) -> None:
    """heddle runs already, because this process or its parent was started under it. That is fine if
    it runs with these very settings."""
    differs = [name for name, value in changes.items()
               if name.startswith("HEDDLE_") and name not in HARMLESS and os.environ.get(name, "") != (value or "")]
    if differs:
        raise LoadedError(
            f"heddle runs in this process already, with other settings ({', '.join(differs)}): "
            f"a process has one CUDA driver; {_restart()}")


def _own_trace(changes: dict[str, str | None]) -> None:
    """This process replaces an older trace, as `heddle run` does. A child of a process that writes
    that trace does not: it has a file of its own."""
    trace = changes.get("HEDDLE_TRACE")
    if trace and not (os.environ.get("HEDDLE_TRACE") == trace and os.environ.get(OWNER)):
        changes[OWNER] = str(os.getpid())


def environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """The environment with these changes."""
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _check_place(install: _install.Install, gpu: str,
                 changes: Mapping[str, str | None]) -> None:
    """Asks a driver or a server from another process: if that fails, it can be tried again in this
    one, where heddle has not been started yet."""
    if gpu.split(":")[0] in ("cpu", "null", "auto", ""):
        return
    done = run_command(install, "devices", "--json", env=environment(changes))
    read_devices(done)


def read_devices(done: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    """The devices that `heddle devices --json` has found. SettingError, Error."""
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise SettingError(_message(done.stderr, "devices: ")) from None
    if "error" in answer:
        error = answer["error"]
        raise Error(": ".join(filter(None, (error["text"], error["hint"]))))
    devices: list[dict[str, str]] = answer["devices"]
    return devices


def _start(gpu: str | None, settings: Mapping[str, str], children: bool) -> _Used:
    global _spoilt

    if _spoilt:
        raise LoadedError(_spoilt)
    install = _install.find()
    changes = _environment(install, gpu, settings)
    _check_drivers(install)
    used = _Used(gpu, settings, changes, install)
    if used.native.is_running():
        _check_running(used, changes)
    else:
        _check_place(install, changes.get("HEDDLE_GPU") or os.environ.get("HEDDLE_GPU", ""), changes)
        _own_trace(changes)
    before = _apply(changes)
    try:
        _load_libraries(used)
        used.native.chain()  # the environment is read now
        _check_memories()
    except Error as reason:
        _apply(before)
        if used.native.is_running():
            _spoilt = str(reason)
        raise
    if not children:
        _apply(before)
    warn_of_jax()
    return used


def check(gpu: str | None, settings: Mapping[str, Setting]) -> None:
    """Raises what use() would raise for these settings."""
    _environment(_install.find(), gpu, _check_settings(gpu, settings))


def use(gpu: str | None = None, *, children: bool = True, **settings: Setting) -> None:
    """Makes heddle the CUDA driver of this process. Call it before `import torch`.

    gpu is where work runs, as for `heddle run --gpu`: "cpu", "cpu:a100x8", "gpu", or the address of
    a server. Without it, HEDDLE_GPU and the settings file decide, else it is "auto". Settings are those of `heddle help settings`: use("cpu", mem="4G", trace="t.hed").

    Processes that this one starts get the same driver by their environment, unless children is
    False. A second call with the same device and settings does nothing.

    Raises SettingError for a wrong device or setting, LoadedError if the process has a CUDA driver
    already, NotInstalledError if heddle is not complete.
    """
    global _used

    checked = _check_settings(gpu, settings)
    with _lock:
        if _used is None:
            _used = _start(gpu, checked, children)
        elif (_used.gpu, _used.settings) != (gpu, checked):
            raise LoadedError(f"heddle.use({_text(_used.gpu, _used.settings)}) was called before, "
                              f"and now heddle.use({_text(gpu, checked)}): a process has one CUDA "
                              f"driver; {_restart()}")
