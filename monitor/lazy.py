"""Names of a package that are imported when first asked for (``benchmarks/startup.py``)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazily", "own_process"]

own_process = False
"""Whether this process is the command line's, which may be changed so that it starts fast: what
another program imports changes nothing outside of this package. `monitor.cli.main` sets it."""


def lazily(
    package: str, homes: Mapping[str, str], rooms: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A ``__getattr__`` and a ``__dir__`` for a package, so that importing it loads nothing.

    Args:
        package: its ``__name__``.
        homes: the module below it in which each name lives.
        rooms: modules below it that are names of it themselves.

    Example:
        >>> find, _ = lazily("monitor", {"MonitorError": "errors"})
        >>> find("MonitorError").__name__
        'MonitorError'
    """

    def find(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        if name in rooms:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes, *rooms})

    return find, names
