"""heddle: a drop-in CUDA driver, from Python.

    import heddle
    heddle.use("cpu:a100x8")      # before `import torch`: heddle is this process's CUDA driver
    import torch

    heddle.devices()              # the GPUs that the program sees
    heddle.stats()                # launches, memory, what was refused
    heddle.chain()                # the layers that a call passes
    with heddle.trace("t.hed"):   # record CUDA calls; `heddle trace show t.hed`
        ...
    with heddle.fail("cuMemAlloc", after=3):    # the fourth allocation fails
        ...
    heddle.snapshot("app.snap")   # save this process with its GPU memory

docs/python.md tells the whole story. Everything that goes wrong is a heddle.Error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import Error, LoadedError, NotInstalledError, NotInUseError, SettingError

if TYPE_CHECKING:
    from ._api import (Allocation, Device, Failure, Stats, Trace, chain, devices, fail, memory,
                       problems, snapshot, stats, trace)
    from ._process import use

    __version__: str

__all__ = [
    "Allocation", "Device", "Error", "Failure", "LoadedError", "NotInUseError", "NotInstalledError",
    "SettingError", "Stats", "Trace", "chain", "devices", "fail", "memory", "problems", "snapshot",
    "stats", "trace", "use",
]


def __getattr__(name: str) -> Any:
    # Loaded when it is used: pytest imports this package in every run, for its plug-in.
    value: Any
    if name == "use":
        from ._process import use as value
    elif name == "__version__":
        from ._api import version

        value = version()
    elif name in __all__:
        from . import _api

        value = getattr(_api, name)
    else:
        raise AttributeError(f"module 'heddle' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
