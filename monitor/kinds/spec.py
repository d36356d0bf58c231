"""What a feature's frames look like: one value wherever that is said, checked or compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from monitor.errors import UsageError
from monitor.kinds.base import Kind
from monitor.maths.sketch import AnySketch
from monitor.network_marks import is_mark
from monitor.types import Track

__all__ = ["FeatureSpec"]

TAKES = ("audio", "words", "frames")
_CLOSE_SECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """A feature's frames: of what kind and size, how long one is, and which network makes them.

    Two are equal where their frames can be compared; ``rate`` and ``takes`` are of no
    consequence to that.

    Attributes:
        name: how the feature is called everywhere.
        kind: `HISTOGRAM`, `EMBEDDING` or `LEVELS` of `monitor.kinds`.
        size: bins of its histogram, or dimensions of its embedding.
        frame_seconds: usable seconds that one frame stands for.
        rate: the sample rate it is fed at, in Hz; None where it hears no audio.
        network: sha256 of the weights of the network that makes them; None where none does.
        takes: what it is made of: ``"audio"``, timed ``"words"``, or nothing here: ``"frames"``
            come ready-made. Left out, audio where there is a rate, else frames.

    Raises:
        UsageError: one of them makes no sense.

    Example:
        >>> from monitor.kinds import HISTOGRAM
        >>> codes = FeatureSpec("codes", HISTOGRAM, size=1024, frame_seconds=0.02)
        >>> codes.sketch().total.shape
        (1024,)
    """

    name: str
    kind: Kind
    size: int
    frame_seconds: float
    rate: int | None = field(default=None, compare=False)
    network: str | None = None
    takes: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Kind):
            raise UsageError(
                f"kind={self.kind!r} of feature {self.name} must be HISTOGRAM or EMBEDDING of "
                "monitor.kinds"
            )
        if not (self.size >= 1 and 0 < self.frame_seconds < np.inf):
            raise UsageError(
                f"feature {self.name} needs a positive size and frame_seconds,"
                f" not {self.size} and {self.frame_seconds}"
            )

        takes = self.takes or ("frames" if self.rate is None else "audio")
        object.__setattr__(self, "takes", takes)
        if takes not in TAKES or (takes == "audio") != (self.rate is not None):
            raise UsageError(
                f"feature {self.name} takes {takes!r} at rate {self.rate}: it must take one of "
                f"{', '.join(TAKES)}, and has a rate if it takes audio"
            )
        if not is_mark(self.network):
            raise UsageError(f"the network of {self.name} is no sha256 in hexadecimal")

    def sketch(self) -> AnySketch:
        """An empty sketch of it."""
        return self.kind.sketch(self.size)

    def no_frames(self) -> Track:
        """A track without any frame."""
        return Track(np.empty(0, np.intp), self.kind.none(self.size))

    def like(self, other: FeatureSpec) -> bool:
        """Whether the frames of both can be compared, but for the network that made them."""
        return (
            (self.kind, self.size) == (other.kind, other.size)
            and abs(self.frame_seconds - other.frame_seconds) < _CLOSE_SECONDS
        )  # fmt: skip

    def plain(self) -> dict[str, Any]:
        """All but the name and the rate, JSON-able; no network where there is none."""
        made = {"kind": self.kind.name, "size": self.size, "frame_seconds": self.frame_seconds}
        return made if self.network is None else {**made, "network": self.network}

    def __str__(self) -> str:
        return f"{self.kind.name} of size {self.size}"


def comparable_features(
    mine: Mapping[str, FeatureSpec], theirs: Mapping[str, FeatureSpec]
) -> set[str]:
    """Names of the features that both have, with frames that can be compared."""
    return {
        name
        for name, spec in mine.items()
        if (other := theirs.get(name)) is not None
        and spec.like(other)
        and spec.network == other.network
    }
