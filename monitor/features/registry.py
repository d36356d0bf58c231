"""Features by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from monitor.errors import UsageError
from monitor.kinds import SPEAKER_PREFIX, FeatureSpec, Sensitivity
from monitor.phrases import STYLE_CAVEAT
from monitor.protocols import Feature

_WORD_LIST = "MONITOR_WORD_LIST"


@dataclass(frozen=True, slots=True)
class FeatureSetup:
    """Your own files for some features.

    ``word_list`` is the word list of ``style``. None uses ``MONITOR_WORD_LIST``, or the shipped
    English list. ``speaker_model`` is an ONNX file with your own speaker network. It adds a feature
    with the name in ``speaker``.
    """

    word_list: Path | None = None
    speaker_model: Path | None = None
    speaker: str = field(default="", init=False)  # name of that feature

    def __post_init__(self) -> None:
        if self.speaker_model is not None:
            from monitor.features.own_network import speaker_model  # onnxruntime

            object.__setattr__(self, "speaker_model", Path(self.speaker_model).absolute())
            object.__setattr__(self, "speaker", speaker_model(self.speaker_model).spec.name)

    def elsewhere(self) -> FeatureSetup:
        """Return the same setup with absolute paths, for other processes."""
        listed = self.words()
        return replace(self, word_list=Path(listed).absolute() if listed else None)

    def words(self) -> str | None:
        """Return the path of the word list of ``style``; None or empty for the shipped list."""
        if self.word_list:
            return str(self.word_list)
        return os.environ.get(_WORD_LIST)

    def names(self) -> list[str]:
        """List all features that can be made by name."""
        return [*FEATURES, self.speaker] if self.speaker else [*FEATURES]


AS_ENVIRONMENT = FeatureSetup()  # the settings of the environment


@dataclass(frozen=True, slots=True)
class FeatureEntry:
    """Entry of the registry, which creates a feature."""

    load: Callable[[], Any]  # returns its class, after imports that may be slow
    make: Callable[[FeatureSetup], Feature] | None = None  # None to call the class
    takes: str = "audio"  # "audio" or "words"
    usual: bool = True  # it is used by default
    caveat: str = ""  # shown beside each of its figures

    def new(self, setup: FeatureSetup) -> Feature:
        """Create a new feature."""
        feature: Feature = self.make(setup) if self.make else self.load()()
        return feature


def _load_class(module: str, name: str) -> Any:
    return getattr(import_module(f"monitor.features.{module}"), name)


def _make_style(setup: FeatureSetup) -> Feature:
    from monitor.features.style import Style, read_style_words

    words = setup.words()
    return Style(read_style_words(words)) if words else Style()


def _make_own(setup: FeatureSetup) -> Feature:
    from monitor.features.own_network import speaker_model  # onnxruntime

    assert setup.speaker_model is not None
    feature = speaker_model(setup.speaker_model).another()
    if feature.spec.name != setup.speaker:
        raise UsageError(f"{setup.speaker_model} has changed: it is no longer {setup.speaker}")
    return feature


FEATURES: dict[str, FeatureEntry] = {
    "f0": FeatureEntry(partial(_load_class, "f0", "F0")),
    "phones": FeatureEntry(partial(_load_class, "phones", "Phones")),
    "voice": FeatureEntry(partial(_load_class, "embeddings", "Voice")),
    "tokens": FeatureEntry(partial(_load_class, "phones", "Tokens"), usual=False),
    "f0_robust": FeatureEntry(partial(_load_class, "f0", "RobustF0"), usual=False),
    "style": FeatureEntry(
        partial(_load_class, "style", "Style"),
        _make_style,
        takes="words",
        usual=False,
        caveat=STYLE_CAVEAT,
    ),
}
"""All features that can be made by name, except the one of a `FeatureSetup`."""
_MODEL = FeatureEntry(partial(_load_class, "own_network", "SpeakerModel"), _make_own)


def make(features: Iterable[str | Feature], setup: FeatureSetup = AS_ENVIRONMENT) -> list[Feature]:
    """Create a feature for each name. Features among the arguments are returned unchanged.

    Raises:
        UsageError: a name is unknown, or its extra is not installed.
        StoreError: a network is damaged.
    """
    return [
        _find_entry(feature, setup).new(setup) if isinstance(feature, str) else feature
        for feature in features
    ]


def list_marks(
    features: Iterable[str], setup: FeatureSetup = AS_ENVIRONMENT
) -> dict[str, str | None]:
    """Return the mark of each feature's network by name; None for features without a network."""
    return {feature.spec.name: feature.spec.network for feature in make(features, setup)}


def register(feature: Callable[[], Feature]) -> None:
    """Register a feature by name, for `monitor.enrol`, `monitor.Monitor` and all other functions.

    ``feature`` is its class, with the class attributes ``spec`` and ``follow``. It is called
    without arguments. It replaces a registered feature of the same name.
    """
    spec = getattr(feature, "spec", None)
    if not isinstance(spec, FeatureSpec) or spec.takes == "frames":
        raise UsageError(f"{feature!r} needs a class attribute spec that takes audio or words")
    FEATURES[spec.name] = FeatureEntry(lambda: feature, takes=spec.takes)


def takes(name: str) -> str:
    """Return the input of a feature, such as ``"words"``; ``"audio"`` if it is not registered."""
    return FEATURES[name].takes if name in FEATURES else "audio"


def caveats(names: Iterable[str]) -> list[str]:
    """Return the caveats for figures of these features, one sentence each."""
    entries = (FEATURES[name] for name in names if name in FEATURES)
    return [entry.caveat for entry in entries if entry.caveat]


def get_change_sensitivity(name: str) -> Sensitivity | None:
    """Return a feature's own settings for detecting changes of the voice, or None.

    The margins of an unregistered feature, such as ready-made frames, are unknown. For templates of
    a custom network, see `SpeakerModel`.
    """
    entry = FEATURES.get(name, _MODEL if name.startswith(SPEAKER_PREFIX) else None)
    sensitivity: Sensitivity | None = None if entry is None else entry.load().follow
    return sensitivity


def get_least_share(name: str) -> float:
    """Return the minimum fraction of speech with frames at which a feature counts.

    Fewer frames arise by chance, but would get the weight of all the speech.
    """
    entry = FEATURES.get(name)
    return 0.0 if entry is None else float(getattr(entry.load(), "least_share", 0.0))


def ready(name: str, setup: FeatureSetup = AS_ENVIRONMENT) -> bool:
    """Return whether a feature can be computed with what is installed and configured.

    A feature of your own network needs its file. Ready-made frames are always available.
    """
    return name in setup.names() or not name.startswith(SPEAKER_PREFIX)


def defaults(
    among: Iterable[str] | None = None, setup: FeatureSetup = AS_ENVIRONMENT
) -> tuple[str, ...]:
    """Return the default features: all usual features that are ready and not superseded.

    ``among`` limits the choice, for example to the features of a population; None for all.
    """
    usual = (name for name in setup.names() if FEATURES.get(name, _MODEL).usual)
    able = tuple(name for name in (usual if among is None else among) if ready(name, setup))
    return tuple(name for name in able if not superseded(name, able))


def superseded(name: str, by: Iterable[str]) -> bool:
    """Return whether a feature is ``voice``, and another feature is your own speaker network."""
    return name == "voice" and any(other.startswith(SPEAKER_PREFIX) for other in by)


def _find_entry(name: str, setup: FeatureSetup) -> FeatureEntry:
    if name in FEATURES:
        return FEATURES[name]
    if name == setup.speaker:
        return _MODEL
    if name.startswith(SPEAKER_PREFIX):
        raise UsageError(
            f"{name} needs the network of its templates: --speaker-model FILE.onnx, with a sha256 "
            f"that begins with {name.removeprefix(SPEAKER_PREFIX)}"
        )
    from difflib import get_close_matches

    names = setup.names()
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(names)}"
    raise UsageError(f"unknown feature {name!r}: {hint}")
