"""What a source brings: said once, by the source, before its first sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from monitor.kinds import FeatureSpec

__all__ = ["Brings"]


@dataclass(frozen=True, slots=True)
class Brings:
    """What comes out of a source, so that what cannot be heard is refused before it begins.

    Attributes:
        audio: blocks of samples, which then keep the clock; else `Frames` do.
        tracks: ready-made frames, by the feature's name: all there is where there is no audio,
            else frames that lie beside it.
        words: timed words.
        channels: of the audio; None where there is none, or nobody knows yet.
        live: whether it goes on while nobody listens.
        noise: what was added to ready-made embeddings, as ``"laplace:15"``; empty where none is.

    Example:
        >>> Brings(channels=2).audio, Brings(channels=2).words
        (True, False)
    """

    audio: bool = True
    tracks: Mapping[str, FeatureSpec] = field(default_factory=dict)
    words: bool = False
    channels: int | None = None
    live: bool = False
    noise: str = ""
