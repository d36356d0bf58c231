"""Features by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec

from monitor.errors import UsageError
from monitor.protocols import Feature

__all__ = ["FEATURES", "MODEL", "defaults", "make", "ready", "superseded"]

MODEL = "speaker_"
"""What the name of a feature by a network of one's own begins with; the file's digest follows."""


def _f0() -> Feature:
    from monitor.features.f0 import F0  # scipy.fft takes a third of a second to import

    return F0()


def _identity() -> Feature:
    from monitor.features.identity import Identity  # torch, once the first one is made

    return Identity()


def _phones() -> Feature:
    from monitor.features.phones import Phones

    return Phones()


def _voice() -> Feature:
    from monitor.features.voice import Voice  # its weights, once the first one is made

    return Voice()


FEATURES: dict[str, Callable[[], Feature]] = {
    "f0": _f0,
    "phones": _phones,
    "voice": _voice,
    "identity": _identity,
}
"""Every feature that can be computed from audio, and how to make one."""


def _own(name: str, path: str) -> Feature:
    from monitor.features.speaker_model import speaker_model  # onnxruntime

    made = speaker_model(path).another()
    if made.name != name:
        raise UsageError(f"{path} has changed: it is no longer {name}")
    return made


if _OFFERED := os.environ.get("MONITOR_OFFERED"):  # by the process that began this one
    _NAME, _, _PATH = _OFFERED.partition("=")
    FEATURES[_NAME] = partial(_own, _NAME, _PATH)


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

    ``identity`` needs a network that is at hand: ``MONITOR_ECAPA`` says where, so that nobody who
    did not ask for it waits for a download; and its extra, or what that has exported before. What
    exists only as ready-made frames is ready.

    Example:
        >>> ready("f0")
        True
    """
    if name != "identity":
        return name in FEATURES or not name.startswith(MODEL)
    if not os.environ.get("MONITOR_ECAPA"):
        return False
    if all(find_spec(module) for module in ("torch", "torchaudio", "speechbrain")):
        return True
    from monitor.features.ecapa import resolve
    from monitor.features.exported import at_hand

    return at_hand(resolve(None))


def defaults(among: Iterable[str] | None = None) -> tuple[str, ...]:
    """The features to hear where nobody chose: all that are ready but for those superseded.

    Args:
        among: what there is to choose from, such as the features of a population; None for all.

    Example:
        >>> "f0" in defaults(), defaults(["voice", "f0"])
        (True, ('voice', 'f0'))
    """
    able = tuple(filter(ready, FEATURES if among is None else among))
    return tuple(name for name in able if not superseded(name, able))


def superseded(name: str, by: Iterable[str]) -> bool:
    """Whether another feature does the same better.

    ``voice`` is in every install; a stronger network, ``identity`` or one of the user's own, takes
    its place.

    Example:
        >>> superseded("voice", ["f0", "identity"]), superseded("voice", ["f0", "voice"])
        (True, False)
    """
    return name == "voice" and any(o == "identity" or o.startswith(MODEL) for o in by)


def _factory(name: str) -> Callable[[], Feature]:
    try:
        return FEATURES[name]
    except KeyError:
        if name.startswith(MODEL):
            raise UsageError(
                f"{name} needs the network that made its templates: --speaker-model FILE.onnx, the "
                f"file whose sha256 begins with {name.removeprefix(MODEL)}"
            ) from None
        close = difflib.get_close_matches(name, FEATURES, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(FEATURES)}"
        raise UsageError(f"unknown feature {name!r}: {hint}") from None
