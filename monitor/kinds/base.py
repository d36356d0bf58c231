"""What the program asks of a kind of feature; each kind answers in a file of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from monitor.errors import UsageError
from monitor.kinds.following import FollowedVoice, Sensitivity
from monitor.maths.scores import Similarity
from monitor.maths.sketch import AnySketch
from monitor.types import AnyArray, BoolArray

__all__ = ["Kind"]


class Kind(ABC):
    """A kind of frames: how they are counted, compared, checked, stored and followed.

    There is one object of each kind; a pickled one comes back as the same object.

    Attributes:
        name: how it is called in stores, records and messages.
        enrolled: whether templates are made of it; else it is followed for changes alone.
        discerning: whether it tells voices apart within seconds, and strangers from enrolled
            speakers: what else is followed beside it need not notice changes by itself.
        own_past: whether a change is told from the stream's own past, without other speakers.
        beside_discerning: what multiplies its chance of a false change beside a discerning one.
        wants_background: whether other readers may stand in where few are enrolled.
        open_size: whether frames can be of more bins than were seen of them.
        counted: whether a frame is one more in a bin.
        pointed: whether a frame is a vector, so that a line can part people by it.
        unusable: why a frame was dropped, in a word or two.
        wide: what its sums are worked out in.
        stored: what a sketch's total is written as, little-endian whatever the machine.
        least: no total is below it.
        similarities: ways to compare it with templates, by name; the first is the default.
    """

    name: ClassVar[str]
    enrolled: ClassVar[bool] = True
    discerning: ClassVar[bool] = False
    own_past: ClassVar[bool] = False
    beside_discerning: ClassVar[float] = 1.0
    wants_background: ClassVar[bool] = False
    open_size: ClassVar[bool] = False
    counted: ClassVar[bool] = False
    pointed: ClassVar[bool] = False
    unusable: ClassVar[str] = "not finite"
    wide: ClassVar[type[np.int64 | np.float64]] = np.float64
    stored: ClassVar[str] = "<f8"
    least: ClassVar[float] = -np.inf
    similarities: ClassVar[Mapping[str, Similarity]] = {}

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        from monitor.kinds import kind

        return kind, (self.name,)

    def similarity(self, name: str | None = None) -> Similarity:
        """A similarity by its name; None for the one that is used unless told otherwise.

        Raises:
            UsageError: there is no such similarity for this kind of feature.
        """
        if name is None:
            return next(iter(self.similarities.values()))
        if name not in self.similarities:
            known = ", ".join(self.similarities)
            raise UsageError(f"similarity {name!r} is not one of {known}")
        return self.similarities[name]

    # ------------------------------------------------------------------------------ frames

    @abstractmethod
    def none(self, size: int) -> AnyArray:
        """The values of no frames at all."""

    @abstractmethod
    def holds(self, values: AnyArray) -> bool:
        """Whether an array has the shape and type of frames of this kind."""

    @abstractmethod
    def size_of(self, values: AnyArray, stated: int | None) -> int:
        """Bins or dimensions of frames: as stated, else as seen.

        Raises:
            ValueError: they contradict what is stated, or nothing could hold as many.
        """

    @abstractmethod
    def usable(self, values: AnyArray, size: int) -> tuple[AnyArray, BoolArray]:
        """Frames from a file as they are computed with, and which of them can be used, (k,)."""

    @abstractmethod
    def check(self, name: str, values: AnyArray, count: int, size: int) -> None:
        """Refuse frames of a feature that could not be learnt, (count, ...) of them.

        Raises:
            UsageError: their shape, type or values do not fit.
        """

    def counting(self, values: AnyArray) -> BoolArray | None:
        """Which of these frames a sketch counts, shape (k,); None where it is all of them."""
        return None

    def fits(self, size: int, enrolled: int) -> bool:
        """Whether frames of one size can be compared with templates of another."""
        return size == enrolled

    # -------------------------------------------------------------------- sums and templates

    @abstractmethod
    def sketch(self, size: int) -> AnySketch:
        """An empty sketch.

        Raises:
            UsageError: no positive size.
        """

    @abstractmethod
    def total(self, values: AnyArray, size: int) -> AnyArray:
        """What a sketch of these frames would hold, shape (size,), worked out at once."""

    def narrow(self, values: AnyArray, size: int) -> AnyArray:
        """The same frames in as little memory as holds them."""
        return values

    def span_seconds(self, frame_seconds: float) -> float:
        """Seconds that one frame takes to hear; 0 where it stands for a moment."""
        return 0.0

    @abstractmethod
    def packed(self, slices: AnyArray) -> AnyArray:
        """The sketches of template slices, shape (S, M), as a store keeps them."""

    @abstractmethod
    def wrong_slices(self, slices: AnyArray) -> str:
        """What slices of a store should be and are not; empty where nothing is wrong."""

    @abstractmethod
    def background_row(self, sketch: AnySketch) -> AnyArray:
        """What a cohort keeps of one of its speakers, shape (M,)."""

    @abstractmethod
    def packed_background(self, rows: AnyArray) -> AnyArray:
        """The rows of a cohort, shape (C, M), as a store keeps them."""

    def wrong_background(self, rows: AnyArray) -> str:
        """What rows of a cohort do not hold; empty where nothing is wrong."""
        return ""

    # --------------------------------------------------------------------------- changes

    @abstractmethod
    def follow(self, others: AnyArray, how: Sensitivity) -> FollowedVoice:
        """Something that follows this feature of a stream, to notice when the voice changes.

        Args:
            others: templates of other speakers, shape (N, M); (0, M) with ``own_past``.
            how: the feature's settings.
        """


def within(values: AnyArray, least: float, most: float) -> bool:
    """Whether all are numbers in that range."""
    if not values.size:
        return True
    low, high = float(values.min()), float(values.max())
    return low >= least and high <= most
