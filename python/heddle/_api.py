"""What a program asks heddle for, once heddle is its driver."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Iterator, Union

from . import _install
from ._errors import Error, SettingError
from ._process import current, environment, in_use, plain, read_devices, run_command

Path = Union[str, "os.PathLike[str]"]

POLL_SECONDS = 0.02
MEMORY_PART = 100000  # allocations that are asked for at once


def version() -> str:
    """heddle's version: that of the command, which is also the libraries'."""
    done = run_command(_install.find(), "version")
    words = done.stdout.split()
    if done.returncode != 0 or len(words) < 2:
        raise Error(f"`heddle version` ended with {done.returncode}: {plain(done.stderr).strip()}")
    return words[1]


# ---- devices -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU as the program sees it."""

    index: int
    name: str
    uuid: str
    compute_capability: tuple[int, int]
    memory: int  # bytes
    pci_bus_id: str


def devices(gpu: str | None = None) -> list[Device]:
    """The GPUs that this process sees, or would see after use(gpu). Does not initialise CUDA here:
    another process asks."""
    words = ["devices", "--json"]
    env = environment(current().changes) if in_use() else None
    if gpu is None and in_use():
        gpu = current().gpu
    if gpu is not None:
        words += ["--gpu", gpu]
    done = run_command(current().install if in_use() else _install.find(), *words, env=env)
    return [_device(item) for item in read_devices(done)]


def _device(item: dict[str, str]) -> Device:
    major, minor = item["compute_capability"].split(".")
    return Device(index=int(item["index"]), name=item["name"], uuid=item["uuid"],
                  compute_capability=(int(major), int(minor)), memory=int(item["memory_bytes"]),
                  pci_bus_id=item["pci_bus_id"])


# ---- what happened -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Stats:
    """What happened in this process so far (struct heddle_counters in heddle.h)."""

    launches: int  # of kernels and graphs, as far as they were accepted
    grids_interpreted: int  # on the CPU GPU of this process: began in the interpreter
    grids_compiled: int  # ran compiled code only
    kernels_compiled: int  # for this process
    kernels_cached: int  # compiled before, and found in the cache on disk
    memory_bytes: int  # device memory that was asked for and not freed
    memory_peak: int
    allocations: int  # of device memory so far
    live_allocations: int  # of them, not freed
    refusals: int  # launches and calls that heddle cannot do, as opposed to CUDA
    context_errors: int  # contexts that an error has made useless
    problems: int  # both of these: problems() has their texts
    faults_injected: int  # calls that failed on purpose
    unsupported_calls: int
    trace_records: int
    trace_dropped: int
    foreign_pointers: int
    foreign_calls: int
    export_tables: int


_STATS = tuple(field.name for field in dataclasses.fields(Stats))


def stats() -> Stats:
    """The counters of this process."""
    counters = current().native.counters()
    return Stats(**{name: getattr(counters, name) for name in _STATS})


def chain() -> list[str]:
    """The layers that a call passes, and where it ends: ["trace", "fault", "watch", "cpu"]."""
    return current().native.chain().split(">")


def problems(after: int = 0) -> list[str]:
    """What went wrong in this process: refused launches and calls, and errors that have made a
    context useless. The latest 64 are kept; `after` leaves out the first ones, as
    stats().problems counts them."""
    native = current().native
    texts = (native.problem(i) for i in range(after, int(native.counters().problems)))
    return [text for text in texts if text is not None]


@dataclasses.dataclass(frozen=True)
class Allocation:
    """Device memory that was allocated and not freed."""

    serial: int  # the allocations of a process are numbered from 1
    address: int  # or the handle
    bytes: int
    library: str  # whose code asked for it, the CUDA runtime left out: "libc10_cuda.so"


def memory(after: int = 0) -> list[Allocation]:
    """The device memory that the program has: what was allocated after the one with that serial."""
    native = current().native
    found: list[Allocation] = []
    while True:
        room = min(int(native.counters().live_allocations) + 64, MEMORY_PART)
        items = native.memory(found[-1].serial if found else after, room)
        found += [Allocation(int(item.serial), int(item.address), int(item.bytes),
                             bytes(item.library).decode(errors="replace")) for item in items]
        if len(items) < room:
            return found


def settle() -> int:
    """Waits until the work of all devices is done. 0, or the number of the error that one has."""
    return current().native.settle()


# ---- traces --------------------------------------------------------------------------------------


class Trace:
    """A trace of this process. It is written from the start of a `with` block to its end."""

    def __init__(self, path: Path, wait: bool = True) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.wait = wait

    def start(self) -> Trace:
        """Begins the file. One trace at a time; an older trace of that name is replaced."""
        current().native.trace_start(self.path)
        return self

    def stop(self) -> None:
        """Completes the file, after the work that is under way."""
        native = current().native
        if native.trace_file() != self.path:
            raise Error(f"the trace '{self.path}' is not being written")
        if self.wait:
            native.settle()
        native.trace_stop()

    def __enter__(self) -> Trace:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<heddle trace {self.path}>"

    def summary(self) -> str:
        """The calls of a complete trace, how often they were made and how long they took."""
        done = run_command(current().install, "trace", "summary", self.path)
        if done.returncode != 0:
            raise Error(plain(done.stderr).strip())
        return plain(done.stdout)


def trace(path: Path, *, wait: bool = True) -> Trace:
    """Records the CUDA and NVML calls of a `with` block in a file: with heddle.trace("t.hed"): ...

    On the CPU GPU, what ran is in it, too. So the end of the block waits for the devices, unless
    wait is False: where the block ends while a stream captures a graph, which waiting would break."""
    current()
    return Trace(path, wait)


# ---- faults --------------------------------------------------------------------------------------


class Failure:
    """Calls that fail on purpose, until remove() or the end of a `with` block."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self._native = current().native
        self._number = self._native.fault_add(rule)
        self._count: int | None = None

    @property
    def count(self) -> int:
        """How many calls have failed because of it."""
        return self._native.fault_count(self._number) if self._count is None else self._count

    def remove(self) -> None:
        """No call fails because of it any more. Once is enough."""
        if self._count is None:
            count = self.count
            self._native.fault_remove(self._number)
            self._count = count

    def __enter__(self) -> Failure:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<heddle failure {self.rule}, {self.count} so far>"


def _error_name(call: str, error: str | int | None) -> str:
    nvml = call.startswith("nvml")
    if error is None:
        return "NVML_ERROR_UNKNOWN" if nvml else "CUDA_ERROR_OUT_OF_MEMORY"
    text = str(int(error)) if isinstance(error, int) else error.strip()
    if re.fullmatch(r"[A-Z_]+", text) and not text.startswith(("CUDA_", "NVML_")):
        text = ("NVML_ERROR_" if nvml else "CUDA_ERROR_") + text
    return text


def fail(call: str, *, after: int = 0, times: int | None = 1,
         error: str | int | None = None) -> Failure:
    """Makes calls of the CUDA driver fail on purpose, from now on.

    call is a name, such as "cuMemAlloc" (which means all its versions) or "cuLaunch*". The first
    `after` calls work, then `times` of them fail (None: all later ones), then they work again.
    error is the name or number of the result: "OUT_OF_MEMORY" (the default), 700.

        with heddle.fail("cuMemAlloc", after=3):
            ...
    """
    if not isinstance(call, str) or any(c in call for c in ":, \n"):
        raise SettingError(f"{call!r} is not the name of a call, such as 'cuMemAlloc'")
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise SettingError(f"after is {after!r}, but it must be a number of calls from 0 on")
    if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 1):
        raise SettingError(f"times is {times!r}, but it must be a number of calls from 1 on, or None")
    current()
    numbers = f"{after + 1}-" + ("" if times is None else str(after + times))
    try:
        return Failure(f"{call}:{numbers}:{_error_name(call, error)}")
    except Error as reason:
        text = str(reason)
        if not text.startswith("fault: "):
            raise
        raise SettingError(text[7:]) from None


# ---- snapshots -----------------------------------------------------------------------------------

# The command that saves a process must not be one of its children, because those are saved, too. So
# a shell starts it in a session of its own and ends. It leaves the number of that process, which
# may be killed before it has said how it ended.
_SAVER = """
if ! command -v setsid >/dev/null 2>&1; then
    echo "there is no command setsid" >{folder}/said
    echo 127 >{folder}/code
    exit
fi
setsid sh -c '
    unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT HEDDLE_GPU
    {command} snap save {process} --leave-running -o {path} >{folder}/said 2>&1
    echo $? >{folder}/code.new && mv {folder}/code.new {folder}/code
' </dev/null >/dev/null 2>&1 &
echo $! >{folder}/process
"""


def snapshot(path: Path) -> None:
    """Saves this process, with its GPU memory, in a file, and goes on. `heddle snap restore` starts
    it again behind this call. For a process whose GPU is a server's, as under
    `heddle run --ckpt on`; the process itself is saved by CRIU, which needs root."""
    target = os.path.abspath(os.fspath(path))
    if os.path.exists(target):
        raise Error(f"'{target}' exists already, and no snapshot is replaced")
    for character in "'\n":
        if character in target:
            raise Error("the name of a snapshot cannot have quotes or newlines in it")
    folder = tempfile.mkdtemp(prefix="heddle-snapshot-")
    try:
        _save(current().install.command, target, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _save(command: str, target: str, folder: str) -> None:
    inner = {"command": command, "path": target, "folder": folder}
    text = _SAVER.format(process=os.getpid(),
                         **{key: _quote_twice(value) for key, value in inner.items()})
    subprocess.run(["/bin/sh", "-c", text], check=True, stdin=subprocess.DEVNULL)
    for code in _codes(folder):
        if code == "0":
            return
        lines = _lines(folder, "said")
        reason = lines[0] if lines else f"`heddle snap save` ended with {code}"
        raise Error(reason.replace("heddle: snap save: ", ""))


def _lines(folder: str, name: str) -> list[str]:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return [line for line in file.read().splitlines() if line.strip()]
    except FileNotFoundError:
        return []


def _quote_twice(text: str) -> str:
    """As one word inside a word in single quotes."""
    return shlex.quote(text).replace("'", "'\\''")


def _codes(folder: str) -> Iterator[str]:
    """Waits for the saver's exit code. A process that was restored wakes up here, too, perhaps on a
    machine that has no such folder: then it was saved."""
    while os.path.isdir(folder):
        gone = _has_ended(folder)  # asked first: then it cannot say anything any more
        code = _lines(folder, "code")
        if code or gone and os.path.isdir(folder):
            yield code[0].strip() if code else "a signal"
            return
        time.sleep(POLL_SECONDS)
    yield "0"


def _has_ended(folder: str) -> bool:
    """Is the saver gone? Where nobody waits for it, its entry stays."""
    try:
        [process] = _lines(folder, "process")
        with open(f"/proc/{process.strip()}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
    except ValueError:
        return False  # the folder is not there any more
