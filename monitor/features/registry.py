"""Features by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from monitor.errors import UsageError
from monitor.kinds import FeatureSpec, Sensitivity
from monitor.phrases import STYLE_CAVEAT
from monitor.protocols import Feature

MODEL = "speaker_"
"""What the name of a feature by a network of one's own begins with; the file's digest follows."""


@dataclass(frozen=True, slots=True)
class Registered:
    """How to get a feature.

    Attributes:
        load: gives its class; what that imports may be slow, and is imported then.
        make: makes a fresh one; None where the class does, called without arguments.
        takes: what it is made of, ``"audio"`` or ``"words"``.
        usual: whether it is heard where nobody chose.
        caveat: what is to be said wherever a figure of it is shown, in one sentence.
    """

    load: Callable[[], Any]
    make: Callable[[], Feature] | None = None
    takes: str = "audio"
    usual: bool = True
    caveat: str = ""

    def new(self) -> Feature:
        """A fresh feature."""
        made: Feature = (self.make or self.load())()
        return made


def _class_of(module: str, name: str) -> Any:
    return getattr(import_module(f"monitor.features.{module}"), name)


def _style() -> Feature:
    from monitor.features.style import Style, read_style_words

    words = os.environ.get("MONITOR_WORD_LIST")
    return Style(read_style_words(words)) if words else Style()


FEATURES: dict[str, Registered] = {
    "f0": Registered(partial(_class_of, "f0", "F0")),
    "phones": Registered(partial(_class_of, "phones", "Phones")),
    "voice": Registered(partial(_class_of, "embeddings", "Voice")),
    "identity": Registered(partial(_class_of, "ecapa", "Identity")),
    "tokens": Registered(partial(_class_of, "phones", "Tokens"), usual=False),
    "f0_robust": Registered(partial(_class_of, "f0", "RobustF0"), usual=False),
    "style": Registered(
        partial(_class_of, "style", "Style"),
        _style,
        takes="words",
        usual=False,
        caveat=STYLE_CAVEAT,
    ),
}
"""Every feature that can be made by its name."""


def _own(name: str, path: str) -> Feature:
    from monitor.features.ecapa import speaker_model  # onnxruntime

    made = speaker_model(path).another()
    if made.spec.name != name:
        raise UsageError(f"{path} has changed: it is no longer {name}")
    return made


def _take_offered() -> None:
    """The network of a file that the process offers which began this one, or asked it to work."""
    if offered := os.environ.get("MONITOR_OFFERED"):
        name, _, path = offered.partition("=")
        FEATURES.setdefault(
            name, Registered(partial(_class_of, "ecapa", "SpeakerModel"), partial(_own, name, path))
        )


_take_offered()


def make(features: Iterable[str | Feature]) -> list[Feature]:
    """A fresh feature for each name; one that is made already stays as it is.

    Raises:
        UsageError: for an unknown name, or one whose extra is not installed.
        StoreError: for ``identity`` without its model.

    Example:
        >>> [feature.spec.name for feature in make(["f0"])]
        ['f0']
    """
    return [_registered(each).new() if isinstance(each, str) else each for each in features]


def marks_of(features: Iterable[str]) -> dict[str, str | None]:
    """By name, the mark of the network that makes a feature here; None where there is none.

    Raises:
        UsageError, StoreError: as `make`.

    Example:
        >>> marks_of(["f0"])
        {'f0': None}
    """
    _take_offered()
    return {feature.spec.name: feature.spec.network for feature in make(features)}


def register(feature: Callable[[], Feature]) -> None:
    """Make a feature known by its name: for `monitor.enrol`, `monitor.Monitor` and the rest.

    ``feature`` is its class, with ``spec`` and ``follow`` as attributes of the class; called
    without arguments it makes a fresh one. One of that name that is known is replaced.
    """
    spec = getattr(feature, "spec", None)
    if not isinstance(spec, FeatureSpec) or spec.takes == "frames":
        raise UsageError(f"{feature!r} needs a class attribute spec that takes audio or words")
    FEATURES[spec.name] = Registered(lambda: feature, feature, spec.takes)


def takes(name: str) -> str:
    """What a feature of that name is made of; ``"audio"`` where nobody registered it."""
    return FEATURES[name].takes if name in FEATURES else "audio"


def caveats(names: Iterable[str]) -> list[str]:
    """What is to be said wherever figures of these features are shown, a sentence each.

    Example:
        >>> caveats(["f0", "voice"])
        []
    """
    entries = (FEATURES[name] for name in names if name in FEATURES)
    return [entry.caveat for entry in entries if entry.caveat]


def followed(name: str) -> Sensitivity | None:
    """How a feature is followed for changes of the voice, by its own statement, or None.

    Of one that nobody registered, such as ready-made frames, nothing is known of how its margins
    vary. Templates of a network of one's own are followed as `SpeakerModel` says, whether the file
    is at hand or not.
    """
    entry = FEATURES.get(name)
    if entry is None and name.startswith(MODEL):
        entry = Registered(partial(_class_of, "ecapa", "SpeakerModel"))
    how: Sensitivity | None = None if entry is None else entry.load().follow
    return how


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
    from monitor.features.ecapa import at_hand, resolve

    return at_hand(resolve(None))


def defaults(among: Iterable[str] | None = None) -> tuple[str, ...]:
    """The features to hear where nobody chose: all usual ones that are ready and not superseded.

    Args:
        among: what there is to choose from, such as the features of a population; None for all.

    Example:
        >>> "f0" in defaults(), defaults(["voice", "f0"])
        (True, ('voice', 'f0'))
    """
    usual = (name for name, entry in FEATURES.items() if entry.usual)
    able = tuple(filter(ready, usual if among is None else among))
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


def _registered(name: str) -> Registered:
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
