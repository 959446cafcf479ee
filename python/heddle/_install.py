"""Finding heddle itself: the command and the libraries that belong to this package.

They lie in a folder of the usual form, PREFIX/bin and PREFIX/lib/heddle. Places, first one first:

    $HEDDLE_PREFIX      a build folder, or another installation
    heddle/_native      in this package: a wheel
    PREFIX              if this package is in PREFIX/share/heddle/python, as `make install` puts
                        it, or in PREFIX/lib/pythonX.Y/{site,dist}-packages
    heddle on $PATH     an installation of the system's
"""

from __future__ import annotations

import os
import re
import shutil
from typing import Iterator, NamedTuple

from ._errors import NotInstalledError

CORE = "libheddle.so.0"
HERE = os.path.dirname(os.path.abspath(__file__))

# Where packages are below a prefix. Nothing else above this package is looked at: anybody may write
# to a folder such as /tmp.
LAYOUTS = r"(.*)/(?:share/heddle/python|lib(?:64)?/python[\d.]+/(?:site|dist)-packages)"


class Install(NamedTuple):
    """Complete paths."""

    command: str
    libraries: str  # the folder


def _libraries(prefix: str) -> str | None:
    """The folder of the libraries below a prefix. Debian has a folder for each architecture."""
    folders = [os.path.join(prefix, "lib", "heddle"), os.path.join(prefix, "lib64", "heddle")]
    lib = os.path.join(prefix, "lib")
    if os.path.isdir(lib):
        folders += [os.path.join(lib, name, "heddle") for name in sorted(os.listdir(lib))
                    if name.endswith("-linux-gnu")]
    for folder in folders:
        if os.path.isfile(os.path.join(folder, CORE)):
            return folder
    return None


def _at(prefix: str) -> Install | None:
    command = os.path.join(prefix, "bin", "heddle")
    libraries = _libraries(prefix)
    if libraries and os.access(command, os.X_OK):
        return Install(command, libraries)
    return None


def _prefixes() -> Iterator[str]:
    yield os.path.join(HERE, "_native")
    match = re.fullmatch(LAYOUTS, os.path.dirname(HERE))
    if match:
        yield match[1] or "/"
    command = shutil.which("heddle")
    if command:
        yield os.path.dirname(os.path.dirname(os.path.realpath(command)))


def find() -> Install:
    """Finds heddle, or raises NotInstalledError."""
    chosen = os.environ.get("HEDDLE_PREFIX")
    if chosen:
        found = _at(os.path.abspath(chosen))
        if not found:
            raise NotInstalledError(
                f"HEDDLE_PREFIX is '{chosen}', where there is no bin/heddle with lib/heddle/{CORE};"
                " set it to the folder that heddle is installed in, or unset it")
        return found
    for prefix in _prefixes():
        found = _at(prefix)
        if found:
            return found
    raise NotInstalledError(
        f"heddle's own libraries are missing: there is no lib/heddle/{CORE} in "
        f"{os.path.join(HERE, '_native')}, nor where a command `heddle` is on PATH; install heddle "
        "again, or set HEDDLE_PREFIX to the folder that it is installed in")
