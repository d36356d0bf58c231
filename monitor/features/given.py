"""A feature that arrives as ready-made frames and cannot be computed from audio here."""

from __future__ import annotations

from monitor.errors import UsageError
from monitor.features.tracks import empty_track
from monitor.types import FloatArray, Track

__all__ = ["Given"]


class Given:
    """Describes the frames of a stream that brings its own, so that they can be counted.

    Args:
        name: how the feature is called everywhere.
        size: bins of its histogram, or dimensions of its embedding.
        kind: ``"histogram"`` or ``"embedding"``.
        frame_seconds: usable seconds that one frame stands for.

    Raises:
        UsageError: if one of these makes no sense.

    Example:
        >>> phones = Given("phones", size=40, kind="histogram", frame_seconds=0.08)
        >>> phones.size
        40
    """

    rate = 8000  # of no consequence: it is never fed

    def __init__(self, name: str, size: int, kind: str, frame_seconds: float) -> None:
        if kind not in ("histogram", "embedding"):
            raise UsageError(f"kind={kind!r} of feature {name} must be 'histogram' or 'embedding'")
        if size < 1 or not frame_seconds > 0:
            raise UsageError(
                f"feature {name} needs a positive size and frame_seconds,"
                f" not {size} and {frame_seconds}"
            )
        self.name = name
        self.size = size
        self.kind = kind
        self.frame_seconds = frame_seconds

    def process(self, samples: FloatArray) -> Track:  # noqa: ARG002
        """Always raises UsageError."""
        raise UsageError(
            f"feature {self.name} exists only as frames: it cannot be computed from audio"
        )

    def flush(self) -> Track:
        """Nothing."""
        return empty_track(self)

    def skip_to(self, tick: int) -> None:
        """Nothing to skip."""

    def reset(self) -> None:
        """Nothing to forget."""
