"""Features by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from monitor.errors import UsageError
from monitor.protocols import Feature

__all__ = ["FEATURES", "make"]


def _f0() -> Feature:
    from monitor.features.f0 import F0  # scipy.fft takes a third of a second to import

    return F0()


FEATURES: dict[str, Callable[[], Feature]] = {"f0": _f0}
"""Every feature that can be computed from audio, and how to make one."""


def make(names: Iterable[str]) -> list[Feature]:
    """A fresh feature for each name.

    Raises:
        UsageError: for an unknown name.

    Example:
        >>> [feature.name for feature in make(["f0"])]
        ['f0']
    """
    return [_factory(name)() for name in names]


def _factory(name: str) -> Callable[[], Feature]:
    try:
        return FEATURES[name]
    except KeyError:
        close = difflib.get_close_matches(name, FEATURES, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(FEATURES)}"
        raise UsageError(f"unknown feature {name!r}: {hint}") from None
