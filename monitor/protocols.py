"""What a plug-in must offer. Structural: nothing has to be inherited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from monitor.types import AnyArray, Block, FloatArray, Frames, Gap, Track

__all__ = ["Feature", "Sink", "Sketch", "Source"]


@runtime_checkable
class Feature(Protocol):
    """Turns audio into usable frames; any cutting into blocks gives the same frames.

    Attributes:
        name: how the feature is called everywhere.
        rate: the sample rate it is fed at, in Hz.
        size: bins of its histogram, or dimensions of its embedding.
        kind: ``"histogram"`` or ``"embedding"``; ``"levels"`` are followed for changes only.
        frame_seconds: usable seconds that one frame stands for.

    One that a network makes also has ``network``, the sha256 of its weights.
    """

    name: str
    rate: int
    size: int
    kind: str
    frame_seconds: float

    def process(self, samples: FloatArray) -> Track:
        """Frames completed by these further samples: mono float at ``rate``, shape (n,).

        Ticks count from the last ``reset``.
        """

    def flush(self) -> Track:
        """Frames that only the end of the recording completes."""

    def skip_to(self, tick: int) -> None:
        """Frames complete by ``tick`` (counted from the last reset) need not be computed."""

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""


@runtime_checkable
class Sketch(Protocol):
    """A running, mergeable summary of one feature over a stream (a commutative monoid).

    Attributes:
        total: shape (M,), integer counts or a sum of embeddings.
        frames: usable frames behind it.
    """

    total: AnyArray
    frames: int

    def learn_one(self, value: Any) -> None:
        """Add one frame."""

    def learn_many(self, values: AnyArray) -> None:
        """Add frames; equals the loop over ``learn_one``."""

    def __add__(self, other: Self) -> Self: ...


@runtime_checkable
class Source(Protocol):
    """Where audio, or ready-made frames, come from. A context manager.

    Attributes:
        label: how to call it in front of a person; never a full path.
    """

    label: str

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised, None where unknown."""

    def __iter__(self) -> Iterator[Block | Frames | Gap]: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


@runtime_checkable
class Sink(Protocol):
    """Where records go: JSON lines, a terminal, a page."""

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record (``start``, ``reading``, ``alert``, ``gap``, ``end``)."""

    def close(self) -> None:
        """Everything has been written."""
