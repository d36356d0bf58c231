"""Features by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec

from monitor.errors import UsageError
from monitor.protocols import Feature

__all__ = ["FEATURES", "make", "ready"]


def _f0() -> Feature:
    from monitor.features.f0 import F0  # scipy.fft takes a third of a second to import

    return F0()


def _identity() -> Feature:
    from monitor.features.identity import Identity  # torch, once the first one is made

    return Identity()


def _phones() -> Feature:
    from monitor.features.phones import Phones  # pocketsphinx, and its model at the first word

    return Phones()


FEATURES: dict[str, Callable[[], Feature]] = {
    "f0": _f0,
    "phones": _phones,
    "identity": _identity,
}
"""Every feature that can be computed from audio, and how to make one."""


def make(features: Iterable[str | Feature]) -> list[Feature]:
    """A fresh feature for each name; one that is made already stays as it is.

    Raises:
        UsageError: for an unknown name, or one whose extra is not installed.
        StoreError: for ``identity`` without its model.

    Example:
        >>> from monitor.features.given import Given
        >>> codes = Given("codes", size=1024, kind="histogram", frame_seconds=0.02)
        >>> [feature.name for feature in make(["f0", codes])]
        ['f0', 'codes']
    """
    return [_factory(each)() if isinstance(each, str) else each for each in features]


def ready(name: str) -> bool:
    """True where a feature can be computed with what is installed and configured.

    ``identity`` needs its extra, and a network that is at hand: ``MONITOR_ECAPA`` says where, so
    that nobody who did not ask for it waits for a download. What exists only as ready-made frames
    is ready.

    Example:
        >>> ready("f0")
        True
    """
    if name != "identity":
        return True
    installed = all(find_spec(module) for module in ("torch", "torchaudio", "speechbrain"))
    return installed and bool(os.environ.get("MONITOR_ECAPA"))


def _factory(name: str) -> Callable[[], Feature]:
    try:
        return FEATURES[name]
    except KeyError:
        close = difflib.get_close_matches(name, FEATURES, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(FEATURES)}"
        raise UsageError(f"unknown feature {name!r}: {hint}") from None
