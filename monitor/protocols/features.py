"""What turns audio into frames, and what sums frames up.

`Feature`, the `Embedder` or `CodeStream` that one may be made of, and `Sketch`.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

from monitor.kinds import FeatureSpec
from monitor.kinds.following import Sensitivity
from monitor.types import AnyArray, FloatArray, IntArray, Track

__all__ = ["CodeStream", "Embedder", "Feature", "Sketch"]


@runtime_checkable
class Feature(Protocol):
    """Turns audio into usable frames; any cutting into blocks gives the same frames.

    It is fed mono audio at its own rate, pauses included (or `Words`, where its spec takes those),
    and gives usable frames only: where there is no voice there is nothing to give. Ticks are 10 ms
    and count from the last ``reset``.

    Attributes:
        spec: what its frames look like, which network makes them, and the rate of the audio that
            it is fed. Templates of other frames are refused.
        follow: how it is followed for changes of the voice (``Monitor(on_change=...)``); None where
            it is not.

    Example:
        A feature of one frame for each tick: whether the sample in its middle is positive.

        >>> import numpy as np
        >>> from monitor.kinds import HISTOGRAM
        >>> class Sign:
        ...     spec = FeatureSpec("sign", HISTOGRAM, size=2, frame_seconds=0.01, rate=8000)
        ...     follow = None
        ...
        ...     def __init__(self):
        ...         self.reset()
        ...
        ...     def process(self, samples):
        ...         heard = np.concatenate((self._rest, samples))
        ...         whole = heard.size // 80
        ...         self._rest = heard[whole * 80 :]
        ...         ticks = self._ticks + np.arange(1, whole + 1)
        ...         self._ticks += whole
        ...         values = (heard[: whole * 80].reshape(whole, 80)[:, 40] > 0).astype(int)
        ...         return Track(ticks[ticks > self._skip], values[ticks > self._skip])
        ...
        ...     def flush(self):
        ...         return Track(np.empty(0, int), np.empty(0, int))
        ...
        ...     def skip_to(self, tick):
        ...         self._skip = tick
        ...
        ...     def reset(self):
        ...         self._rest, self._ticks, self._skip = np.empty(0, np.float32), 0, 0
        >>> isinstance(Sign(), Feature), Sign().process(np.ones(200, np.float32)).values.tolist()
        (True, [1, 1])
    """

    @property
    def spec(self) -> FeatureSpec:
        """What its frames look like."""

    @property
    def follow(self) -> Sensitivity | None:
        """Its settings."""

    def process(self, heard: Any, /) -> Track:
        """Frames completed by what is heard next.

        Args:
            heard: samples, shape (n,), mono float at ``spec.rate``, finite; or `Words`, where
                ``spec.takes`` says so, and then frames are complete when their words are known.

        Returns:
            their values, and the tick with which each was complete.
        """

    def flush(self) -> Track:
        """Frames that only the end of the recording completes."""

    def skip_to(self, tick: int) -> None:
        """Frames complete by ``tick`` (counted from the last reset) need not be computed."""

    def reset(self) -> None:
        """Forget everything heard: the next sample is the first of a recording."""


class Embedder(Protocol):
    """A speaker network: windows of speech to embeddings."""

    def embed(self, windows: FloatArray) -> FloatArray:
        """One embedding for each window.

        Args:
            windows: shape (b, n), float32 at 16 kHz.

        Returns:
            shape (b, d), float32, each of length 1.
        """
        ...


class CodeStream(Protocol):
    """Samples at 16 kHz to codes, one of each frame; any cutting gives the same."""

    def push(self, samples: FloatArray) -> IntArray:
        """Hear more: the codes of the frames that are known now, and were not before."""
        ...

    def flush(self) -> IntArray:
        """The codes that are still due; then `reset`."""
        ...

    def reset(self) -> None:
        """Forget all that was heard."""
        ...


@runtime_checkable
class Sketch(Protocol):
    """A running, mergeable summary of one feature over a stream (a commutative monoid).

    ``a + b`` equals having seen the frames of both, in any order.

    Attributes:
        total: shape (M,), integer counts or a sum of embeddings.
        frames: usable frames behind it.
    """

    total: AnyArray
    frames: int

    def learn_one(self, value: Any) -> None:
        """Add one frame: a bin, or an embedding of shape (M,). NaN is dropped."""

    def learn_many(self, values: AnyArray) -> None:
        """Add frames, shape (k,) or (k, M); equals the loop over ``learn_one``."""

    def __add__(self, other: Self) -> Self: ...
