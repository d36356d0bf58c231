"""Names of a package that are imported when first asked for (``benchmarks/startup.py``)."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
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
    if own_process:
        return
    own_process = True
    gc.set_threshold(50_000, 20, 20)
    sys.meta_path.insert(0, _ScipyToCome())
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # another C library's
        libc = ctypes.CDLL(None)
        libc.mallopt(_TRIM, 64 << 20)
        libc.mallopt(_MAPPED, 32 << 20)


class _ScipyToCome:
    """Waits for the first part of scipy, and spares it half of the CPU that its import takes.

    scipy copies every name of numpy, and so loads ``numpy.f2py`` (a Fortran compiler's front end)
    and ``numpy.testing``, and parses the docstrings of its functions to add a note to each.
    """

    PARTS = ("scipy.fft", "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.special")
    _come = False

    def find_spec(self, name: str, *_: object) -> None:
        """Find nothing, as others do that."""
        if name in self.PARTS and not self._come:
            self._come = True
            for part in ("f2py", "ma", "polynomial", "random", "testing"):
                _on_first_use("numpy", part)
            with suppress(ImportError):
                from scipy._lib import _array_api

                if hasattr(_array_api, "xp_capabilities"):  # scipy 1.16 and later
                    vars(_array_api)["xp_capabilities"] = lambda **_: lambda function: function


def _on_first_use(package: str, part: str) -> None:
    """Let a part of a package be loaded when something of it is asked for."""
    whole = f"{package}.{part}"
    spec = None if whole in sys.modules else find_spec(whole)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[whole] = module_from_spec(spec)
    setattr(sys.modules[package], part, module)
    spec.loader.exec_module(module)


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
