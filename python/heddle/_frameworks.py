"""What other packages keep, of which heddle must know. Nothing is imported here: a package that is
not loaded keeps nothing."""

from __future__ import annotations

import ctypes
import importlib.abc
import os
import sys
import warnings
from types import ModuleType
from typing import Any, Callable, Sequence

RUNTIME = "libcudart.so"
DRIVERS = ("libcuda.so", "libnvidia-ml.so")

# Libraries that keep device memory for later by design, from their first use on.
KEEPERS = ("libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse",
           "libcutensor", "libnccl", "libnvshmem", "libnvjpeg", "libnpp")


def loaded_libraries(names: tuple[str, ...]) -> list[str]:
    """The paths of libraries in this process whose file names begin like that."""
    found: list[str] = []
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                path = line.rstrip("\n").split(None, 5)[5:]
                if not path or path[0] in found:
                    continue
                if path[0].rsplit("/", 1)[-1].startswith(names):
                    found.append(path[0])
    except OSError:
        pass
    return found


# ---- who has asked for GPUs while there was no driver --------------------------------------------


def _runtime_remembers() -> bool:
    """A runtime that is a library of its own: PyTorch's. There is no way to ask it but one that
    initialises CUDA, so this is done only where one was loaded before."""
    for path in loaded_libraries((RUNTIME,)):
        version = ctypes.c_int(0)
        try:
            ask = ctypes.CDLL(path).cudaDriverGetVersion
        except (OSError, AttributeError):
            continue  # a file of that name that is no runtime
        if ask(ctypes.byref(version)) != 0 or version.value == 0:
            return True
    return False


def _cupy_remembers() -> bool:
    """CuPy has a runtime inside."""
    runtime = sys.modules.get("cupy_backends.cuda.api.runtime")
    if runtime is None:
        return False
    try:
        runtime.getDeviceCount()
    except runtime.CUDARuntimeError:
        return True
    return False


def _numba_remembers() -> bool:
    for name in ("numba.cuda.cudadrv.driver", "numba_cuda.numba.cuda.cudadrv.driver"):
        driver = getattr(sys.modules.get(name), "driver", None)
        if getattr(driver, "initialization_error", None):
            return True
    return False


def _jax_remembers() -> bool:
    """JAX chooses its devices once."""
    backends = getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None)
    return bool(backends) and "cuda" not in set(backends or ())


def remembers_no_driver() -> str | None:
    """Who has asked for GPUs before heddle was the driver, and goes on without one."""
    asked: dict[str, Callable[[], bool]] = {
        "the CUDA runtime": _runtime_remembers, "CuPy": _cupy_remembers,
        "Numba": _numba_remembers, "JAX": _jax_remembers}
    for name, remembers in asked.items():
        try:
            if remembers():
                return name
        except Exception:  # pylint: disable=broad-except
            continue  # another version of it, of which nothing is known
    return None


# ---- JAX -----------------------------------------------------------------------------------------

NODES = ("/dev/nvidia0", "/dev/nvidiactl")
JAX_LOOKS = "jax._src.xla_bridge"


class _JaxWarner(importlib.abc.MetaPathFinder):
    """Finds nothing, but warns when JAX is imported."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> None:
        if fullname == JAX_LOOKS:
            sys.meta_path.remove(self)
            _warn()


def _warn() -> None:
    warnings.warn("JAX looks for the files /dev/nvidia0 and /dev/nvidiactl before it loads a driver,"
                  " so it will use no GPU in this process; start the program with `heddle run`, or "
                  "use JAX in a process that this one starts", RuntimeWarning, stacklevel=3)


def warn_of_jax() -> None:
    """Where those files are missing, JAX would use the CPU without a word."""
    if any(os.path.exists(path) for path in NODES):
        return  # of a driver, or of `heddle run`
    if JAX_LOOKS in sys.modules:
        _warn()
    else:
        sys.meta_path.insert(0, _JaxWarner())


# ---- memory that frameworks keep -----------------------------------------------------------------


def _torch() -> Any:
    """PyTorch's CUDA part, if the program uses it."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return torch if cuda is not None and cuda.is_initialized() else None


def torch_bytes() -> int:
    """Device memory of tensors. The driver sees only the blocks that they are in."""
    torch = _torch()
    if torch is None:
        return 0
    return sum(torch.cuda.memory_allocated(i) for i in range(torch.cuda.device_count()))


def _empty_torch() -> None:
    torch = _torch()
    if torch is not None:
        clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
        if clear is not None:
            clear()
        torch.cuda.empty_cache()


def _empty_cupy() -> None:
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()


def _empty_numba() -> None:
    cuda = sys.modules.get("numba.cuda")
    if cuda is not None:
        cuda.current_context().memory_manager.deallocations.clear()


def empty_caches() -> None:
    """Frameworks keep memory that was freed. One in a state that is not expected keeps it."""
    for empty in (_empty_torch, _empty_cupy, _empty_numba):
        try:
            empty()
        except Exception:  # pylint: disable=broad-except
            pass
