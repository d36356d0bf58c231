"""Names of a package that are imported when first asked for (``benchmarks/startup.py``)."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

__all__ = ["lazily", "own_process", "take_process", "warn_renamed"]

own_process = False
"""Whether this process is the command line's or a worker's of it, which may be changed so that it
is fast: what another program imports changes nothing outside of this package."""

_TRIM, _MAPPED = -1, -3  # of glibc's malloc.h


def take_process() -> None:
    """Take this process for our own: collect garbage seldom, and keep freed memory at hand.

    A start makes 100 000 objects, none of them garbage. And glibc gives large arrays back to the
    system as they are freed, to ask for the same pages again for the next layer of a network.
    """
    global own_process
    own_process = True
    gc.set_threshold(50_000, 20, 20)
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # another C library's
        libc = ctypes.CDLL(None)
        libc.mallopt(_TRIM, 64 << 20)
        libc.mallopt(_MAPPED, 32 << 20)


def lazily(
    package: str,
    homes: Mapping[str, str],
    rooms: Collection[str] = (),
    renamed: Mapping[str, tuple[str, str]] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A ``__getattr__`` and a ``__dir__`` for a package, so that importing it loads nothing.

    Args:
        package: its ``__name__``.
        homes: by module below it, the names that live there, with spaces between them.
        rooms: modules below it that are names of it themselves.
        renamed: by old name, the new one and the version in which the old one goes.

    Example:
        >>> find, _ = lazily("monitor", {"errors": "MonitorError StoreError"})
        >>> find("StoreError").__name__
        'StoreError'
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name in modules:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        if name in rooms:
            return import_module(f"{package}.{name}")
        if renamed and name in renamed:
            new, goes = renamed[name]
            warn_renamed(f"{package}.{name}", f"{package}.{new}", goes)
            return find(new)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *rooms})

    return find, names


def warn_renamed(old: str, new: str, goes: str) -> None:
    """Warn whoever used an old name, two calls up, that there is a new one.

    Args:
        old: the name that still works.
        new: the one to use.
        goes: the version in which the old one goes, such as ``"2.0"``.

    Warns:
        DeprecationWarning: with all three.
    """
    text = f"{old} is called {new} now; the old name goes in version {goes}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
