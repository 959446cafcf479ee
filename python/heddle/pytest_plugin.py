"""The pytest plug-in: `pytest --heddle cpu:a100` runs a suite on heddle.

Without --heddle it adds options, fixtures and a marker, and does nothing. With it, heddle is the
driver of the process before a conftest file or a test module is imported, and after each phase of a
test (setup, call, teardown) the plug-in looks at counters: something that heddle refused, or a
context that was broken, fails the test that caused it. Leaks are checked if asked for.

    phase ends -> were there launches? then wait for them -> new problems? then the test fails
    teardown ends -> is memory left that the test's call has allocated? -> collect garbage, empty
                     caches -> still there? then the test fails

docs/python.md says what is a leak, and what the marker takes.
"""

from __future__ import annotations

import gc
import os
import re
from typing import TYPE_CHECKING, Any, Callable, Generator

import pytest

from . import Error

if TYPE_CHECKING:
    from . import Allocation, Device, Failure
    from ._native import Native

MARKER = ("heddle(devices=1, memory=None, check=True, leaks=None): with --heddle, skip the test "
          "unless there are so many devices with so much memory each; check=False: allow refused "
          "launches and broken contexts; leaks=True or False: check it for leaks, or do not")

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SHOWN = 8  # allocations in a message

# What --heddle-set cannot set, and why.
NO_SETTINGS = {"gpu": "the device is that of --heddle",
               "children": "child processes of tests always get heddle, too"}


# ---- options -------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("heddle", "CUDA without a GPU (heddle)")
    group.addoption("--heddle", metavar="GPU", default=None,
                    help="run the tests on heddle: cpu:a100, cpu:h100x2, the address of a server")
    group.addoption("--heddle-set", metavar="KEY=VALUE", action="append", default=[],
                    help="a setting of heddle's, such as mem=4G (heddle help settings)")
    group.addoption("--heddle-leaks", action="store_true", default=False,
                    help="a test that leaves device memory allocated fails")
    group.addoption("--heddle-cache", metavar="DIR", default=None,
                    help="folder for compiled kernels; with xdist, one in it for each worker")
    group.addoption("--heddle-devices", metavar="N", type=int, default=None,
                    help="each process sees N of the devices; with xdist, each worker its own")


def _settings(options: Any) -> dict[str, str]:
    settings: dict[str, str] = {}
    for pair in options.heddle_set:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise pytest.UsageError(f"--heddle-set {pair}: this is not KEY=VALUE")
        if key in NO_SETTINGS:
            raise pytest.UsageError(f"--heddle-set {pair}: {NO_SETTINGS[key]}")
        settings[key] = value
    if options.heddle_cache:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        settings["cache"] = os.path.join(options.heddle_cache, worker)
        os.makedirs(settings["cache"], mode=0o700, exist_ok=True)
    workers = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if workers.isdigit() and "cpu_threads" not in settings and "HEDDLE_CPU_THREADS" not in os.environ:
        # Or each worker would use all cores.
        settings["cpu_threads"] = str(max(1, (os.cpu_count() or 1) // max(1, int(workers))))
    return settings


def _choose_devices(gpu: str, wanted: int) -> None:
    """Leaves this process so many devices: those that follow the ones of the worker before it."""
    from . import devices

    if wanted < 1:
        raise pytest.UsageError(f"--heddle-devices {wanted}: a test process needs a device")
    count = len(devices(gpu))
    if wanted > count:
        raise pytest.UsageError(f"--heddle-devices {wanted}: --heddle {gpu} has {count}")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(i) for i in range(count)]
    number = re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "")) or "0"
    first = int(number) * wanted % (count // wanted * wanted)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names[first:first + wanted])


def _is_controller(options: Any) -> bool:
    """Do xdist's workers run the tests, and not this process?"""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return False
    return bool(getattr(options, "numprocesses", None) or getattr(options, "tx", None))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before a conftest file can import torch."""
    options = early_config.known_args_namespace
    gpu = getattr(options, "heddle", None)
    if gpu is None:
        _refuse_lonely(options)
        return
    from . import use
    from ._process import check

    try:
        if _is_controller(options):
            check(gpu, _settings(options))
            return
        if options.heddle_devices is not None:
            _choose_devices(gpu, options.heddle_devices)
        use(gpu, children=True, **_settings(options))
    except (Error, OSError) as reason:
        raise pytest.UsageError(f"--heddle {gpu}: {reason}") from None


def _refuse_lonely(options: Any) -> None:
    for name in ("heddle_set", "heddle_leaks", "heddle_cache", "heddle_devices"):
        if getattr(options, name, None):
            raise pytest.UsageError(f"--{name.replace('_', '-')} needs --heddle")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    gpu = config.getoption("heddle", None)
    if gpu is None or _is_controller(config.option):
        return
    from ._process import in_use

    if not in_use():
        raise pytest.UsageError("--heddle: the plug-in was loaded too late; install it, or load it "
                                "with `-p heddle.pytest_plugin` on the command line")
    from . import chain

    if "watch" not in chain():
        raise pytest.UsageError(f"--heddle: the layers of this process are {' > '.join(chain())}, "
                                "and without the layer `watch` nothing can be checked; unset "
                                "HEDDLE_LAYERS, and `layers` in heddle's settings file")
    config.pluginmanager.register(Checker(gpu, config.getoption("heddle_leaks")), "heddle-checker")


def pytest_report_header(config: pytest.Config) -> str | None:
    gpu = config.getoption("heddle", None)
    if gpu is None:
        return None
    if not config.pluginmanager.has_plugin("heddle-checker"):
        return f"heddle: {gpu}, in each worker"
    from . import chain

    return f"heddle: {gpu}, layers {' > '.join(chain())}"


# ---- the marker ----------------------------------------------------------------------------------


class Wish:
    """What the marker says of a test."""

    def __init__(self, item: pytest.Item) -> None:
        self.devices = 1
        self.memory = 0
        self.check = True
        self.leaks: bool | None = None
        for mark in reversed(list(item.iter_markers("heddle"))):  # the nearest one counts
            if mark.args:
                raise pytest.UsageError(f"{item.nodeid}: pytest.mark.heddle takes names only: "
                                        "heddle(devices=2)")
            for key, value in mark.kwargs.items():
                self._take(item, key, value)

    def _take(self, item: pytest.Item, key: str, value: Any) -> None:
        if key == "devices" and isinstance(value, int) and value >= 1:
            self.devices = value
        elif key == "memory" and _bytes(value) is not None:
            self.memory = _bytes(value) or 0
        elif key == "check" and isinstance(value, bool):
            self.check = value
        elif key == "leaks" and isinstance(value, bool):
            self.leaks = value
        else:
            raise pytest.UsageError(f"{item.nodeid}: pytest.mark.heddle({key}={value!r}): it takes "
                                    "devices=2, memory=\"8G\", check=False, leaks=True")


def _bytes(text: object) -> int | None:
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(iB|B)?", str(text).strip(), re.IGNORECASE)
    return int(match[1]) * UNITS[match[2].upper()] if match else None


# ---- checks --------------------------------------------------------------------------------------


class Checker:
    """Looks after each phase of a test. Only there with --heddle."""

    def __init__(self, gpu: str, leaks: bool) -> None:
        from ._process import current

        self.gpu = gpu
        self.leaks = leaks
        self.native: Native = current().native
        counters = self.native.counters()
        self.launches = int(counters.launches)
        self.seen = int(counters.problems)
        self.broken = int(counters.context_errors)
        self.breaker: str | None = None  # the test that broke a context
        self.told: list[str] = []  # what the last phase of a test was failed for
        self.wish: Wish | None = None
        self.first = self.last = 0  # serials of allocations before and after the call
        self.failed = False  # the call did
        self.torch_bytes = 0
        self._devices: list[Device] | None = None

    def devices(self) -> list[Device]:
        if self._devices is None:
            from . import devices

            self._devices = devices(self.gpu)
        return self._devices

    # -- what has gone wrong --

    def new_problems(self, where: str) -> list[str]:
        """The problems since the last look, which are of that test. Work that is still under way is
        waited for."""
        counters = self.native.counters()
        if counters.launches != self.launches:
            self.launches = int(counters.launches)
            self.native.settle()
            counters = self.native.counters()
        if counters.problems == self.seen:
            return []
        numbers = range(self.seen, int(counters.problems))
        texts = [text for text in map(self.native.problem, numbers) if text]
        self.seen = int(counters.problems)
        if counters.context_errors != self.broken:
            self.broken = int(counters.context_errors)
            self.breaker = self.breaker or where
        return list(dict.fromkeys(texts)) or ["something that is not kept any more"]

    def fail_for_problems(self, item: pytest.Item) -> None:
        texts = self.new_problems(item.nodeid)
        if texts and (self.wish is None or self.wish.check):
            self.fail("heddle: " + "\n        ".join(texts))

    def fail(self, text: str) -> None:
        self.told.append(text)
        pytest.fail(text, pytrace=False)

    # -- before the tests --

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What went wrong while test modules were imported is not the first test's."""
        texts = self.new_problems("the import of a test module")
        if texts:
            session.config.hook.pytest_collectreport(report=pytest.CollectReport(
                "heddle, while test modules were imported", "failed", "\n".join(texts), []))

    # -- phases --

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.wish = None
        self.wish = wish = Wish(item)
        if wish.devices == 1 and not wish.memory:
            return
        there = [device for device in self.devices() if device.memory >= wish.memory]
        if len(there) < wish.devices:
            size = f" with {wish.memory / UNITS['G']:.3g} GiB" if wish.memory else ""
            pytest.skip(f"heddle: needs {wish.devices} device{'s' * (wish.devices > 1)}{size}, and "
                        f"--heddle {self.gpu} has {len(there)}; try --heddle "
                        f"{self._larger(wish)}")

    def _larger(self, wish: Wish) -> str:
        name = "cpu:h200" if wish.memory > 80 * UNITS["G"] else "cpu:a100-80g"
        return name + (f"x{wish.devices}" if wish.devices > 1 else "")

    def checks_leaks(self) -> bool:
        wish = self.wish
        return self.leaks if wish is None or wish.leaks is None else wish.leaks

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.last = int(self.native.counters().allocations)
        self.fail_for_problems(item)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        self.fail_for_problems(item)
        if self.checks_leaks() and not self.failed:
            text = self.find_leaks()
            if text:
                self.fail(text)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
            self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        outcome = yield
        if call.when == "setup":
            self.begin_call()
        elif call.when == "call" and call.excinfo is not None:
            # What failed in the middle may hold memory in its traceback.
            self.failed = True
        told, self.told = self.told, []
        if call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception):
            return
        # pytest shows the own failure of a unittest.TestCase instead of ours.
        report = str(outcome.get_result().longrepr)
        texts = [text for text in told if text not in report] + self.new_problems(item.nodeid)
        if self.breaker and self.breaker != item.nodeid:
            texts.append(f"{self.breaker} has broken the GPU's context of this process before, so "
                         "later calls of CUDA fail; look at that test first")
        if texts:
            outcome.get_result().sections.append(("heddle", "\n".join(texts)))

    def begin_call(self) -> None:
        """Fixtures have been set up. What went wrong there is told when the call has ended."""
        self.failed = False
        self.first = self.last = int(self.native.counters().allocations)
        if self.checks_leaks():
            from ._frameworks import torch_bytes

            self.torch_bytes = torch_bytes()

    # -- leaks --

    def left(self) -> list[Allocation]:
        """What the call has allocated and nobody has freed, but for what libraries keep."""
        from . import memory
        from ._frameworks import KEEPERS

        return [a for a in memory(self.first)
                if a.serial <= self.last and not a.library.startswith(KEEPERS)]

    def find_leaks(self) -> str | None:
        from ._frameworks import empty_caches, torch_bytes

        if self.left() or torch_bytes() > self.torch_bytes:
            gc.collect()
            empty_caches()
        left = self.left()
        kept = torch_bytes() - self.torch_bytes
        if left:
            total = sum(a.bytes for a in left)
            lines = [f"{a.bytes} bytes at {a.address:#x}" +
                     (f", allocated by {a.library}" if a.library else "") for a in left[:SHOWN]]
            if len(left) > SHOWN:
                lines.append(f"and {len(left) - SHOWN} more")
            return (f"heddle: the test left {total} bytes of device memory allocated:\n        " +
                    "\n        ".join(lines))
        if kept > 0:
            return (f"heddle: the test left {kept} bytes of device memory in tensors of PyTorch: "
                    "something still refers to them")
        return None


# ---- fixtures ------------------------------------------------------------------------------------


def _checker(request: pytest.FixtureRequest) -> Checker:
    checker = request.config.pluginmanager.get_plugin("heddle-checker")
    if checker is None:
        pytest.skip("needs --heddle")
    assert isinstance(checker, Checker)
    return checker


@pytest.fixture
def heddle_devices(request: pytest.FixtureRequest) -> list[Device]:
    """The GPUs that the test sees (heddle.devices())."""
    return _checker(request).devices()


@pytest.fixture
def heddle_fail(request: pytest.FixtureRequest) -> Generator[Callable[..., Failure], None, None]:
    """heddle.fail() for one test: calls fail until the test ends."""
    _checker(request)
    from . import fail

    failures: list[Failure] = []

    def fail_in_test(call: str, **how: Any) -> Failure:
        failures.append(fail(call, **how))
        return failures[-1]

    yield fail_in_test
    for failure in failures:
        failure.remove()
