"""The exceptions of this package. All of them are heddle.Error."""

from __future__ import annotations


class Error(Exception):
    """Something that heddle cannot do. The text says what to do about it."""


class NotInstalledError(Error):
    """There is no heddle for this package: its libraries or its command are missing."""


class SettingError(Error, ValueError):
    """A device, a setting or a rule is wrong."""


class LoadedError(Error):
    """It is too late: this process has a CUDA driver already."""


class NotInUseError(Error):
    """heddle is not the driver of this process: call heddle.use() first."""


for _error in (Error, NotInstalledError, SettingError, LoadedError, NotInUseError):
    _error.__module__ = "heddle"  # where people find them
