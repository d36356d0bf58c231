"""Kinds of features and their differences.

A kind defines how frames are counted, compared, checked and stored, and how voice changes are
detected. No other code depends on a feature's kind. A `FeatureSpec` describes one feature's frames.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from monitor.errors import UsageError
from monitor.lazy import once
from monitor.maths.scores import (
    OF_COUNTS,
    OF_VECTORS,
    AnySketch,
    EmbeddingSum,
    Histogram,
    Similarity,
    are_countable,
    embedding_margin,
    find_split,
    histogram_margin,
    level_margin,
    page_cusum,
    unit_vectors,
)
from monitor.types import AnyArray, BoolArray, FloatArray, Track

if TYPE_CHECKING:
    from river.drift import ADWIN

__all__ = [
    "EMBEDDING",
    "HISTOGRAM",
    "KINDS",
    "LEVELS",
    "FeatureSpec",
    "Kind",
    "comparable_features",
    "kind",
]


SPEAKER_PREFIX = "speaker_"  # before the file's digest, in features by a user's own network

_SHA256 = re.compile("[0-9a-f]{64}")
_SHOWN = 12


def is_mark(value: object) -> bool:
    """Return whether a value from a file is a network's mark or None."""
    return value is None or (isinstance(value, str) and _SHA256.fullmatch(value) is not None)


def unlike_networks(
    name: str, first: str, first_mark: str | None, second: str, second_mark: str | None
) -> str:
    r"""Explain that different networks made a feature in ``first`` and ``second``.

    Example:
        >>> unlike_networks("voice", "a.npz", "ab" * 32, "b.npz", "cd" * 32)[:63]
        'voice of a.npz is by network abababababab, that of b.npz by net'
        >>> "\x1b" in unlike_networks("voice", "a", "\x1b[2J", "b", None)  # a file's word
        False
    """

    def network(mark: str | None) -> str:
        if mark is None:
            return "an unknown network"
        return f"network {mark[:_SHOWN]}" if is_mark(mark) else "an unknown network"

    return (
        f"{name} of {first} is by {network(first_mark)}, that of {second} by "
        f"{network(second_mark)}: they cannot be compared"
    )


MOST_TEMPLATES = 64  # a larger population is represented by every k-th speaker
MOST_HELD = 60  # units of embeddings that may be held back, three minutes
MOST_MARGINS = 4000  # about an hour; then the older half is dropped
BACK = 0.7  # a voice is back this far on the way from the other voice's margin to its own


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Settings for detecting voice changes by a feature."""

    unit_frames: int  # per margin
    warm_frames: int  # of a voice before its first margin
    gain: float  # factor of margins for ADWIN, or to nats of evidence
    delta: float  # ADWIN's, or evidence must exceed -ln(delta) nats; smaller is more cautious
    back_units: int  # newest units that decide whether an earlier voice is back
    held_units: int = 0  # with ADWIN, newest units not yet in the voice's sketch
    min_units: int = 1  # with ADWIN, fewest margins before a change, and fewest after it
    least_drop: float = 0.0  # with ADWIN, smaller drops of the mean margin are no change
    level: float = 0.0  # for embeddings, margin below which a unit is evidence of a change


@dataclass(frozen=True, slots=True)
class ScoreDrop:
    """Drop of the mean margin from ``before`` to ``after``, at the tick ``began``."""

    began: int
    before: float
    after: float


@dataclass(slots=True)
class DetectionWindow:
    """An earlier voice that may return, with its sketch, (M,), and number of frames.

    It has returned if its mean margin reaches ``level``. ``recent`` has its margins in the newest
    units, each with the unit's first tick.
    """

    sketch: FloatArray
    frames: int
    level: float
    recent: list[tuple[float, int]]


@once
def adwin() -> type[ADWIN]:
    """Load river's ADWIN alone, since its package imports scipy.stats and scikit-learn."""
    import river

    path = Path(str(river.__file__)).parent / "drift" / "adwin.py"
    spec = spec_from_file_location("river.drift.adwin", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:  # it has moved
        module = import_module("river.drift")
    detector: type[ADWIN] = module.ADWIN
    return detector


class FollowedVoice(ABC):
    """Detector of voice changes by one feature. It tests whether the newest frames still fit.

    Frames are grouped into units, each unit gets a margin, and ADWIN tests the margins. Each kind
    defines its margin, and may accumulate margins in another way.
    """

    KEPT = ("own", "held", "part", "margins", "began", "counters", "left_own", "left", "recent")

    def __init__(self, kind: Kind, size: int, sensitivity: Sensitivity) -> None:
        self._kind, self._size, self._sensitivity = kind, size, sensitivity
        self._own: FloatArray
        self._left: DetectionWindow | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the current voice. An earlier voice that may return is kept."""
        self._own = np.zeros(self._size)
        self._frames = 0  # in its sketch
        self._held: list[FloatArray] = []
        self._part = np.zeros(self._size)  # of an incomplete unit
        self._parts = 0  # frames in that unit
        self._part_began = 0
        self._follow([], [])

    def _prepare(self, values: AnyArray) -> AnyArray:
        return values

    def _sum(self, values: AnyArray) -> FloatArray:
        return np.asarray(values.sum(axis=0))

    @abstractmethod
    def _margin(self, unit: FloatArray, sketch: FloatArray, frames: int) -> float:
        """Compute the margin of a unit under a voice with this sketch and number of frames."""

    def leave(self, fall: ScoreDrop | None) -> bool:
        """Store this voice when another begins; return whether its return can be detected.

        ``fall`` is the change, if this feature detected it. Otherwise the usual level of this voice
        is used.
        """
        has_margins = self._frames >= self._sensitivity.warm_frames and len(self._margins) > 0
        if has_margins:
            level = self._usual(np.array(self._margins))
            if fall is not None:
                level = BACK * fall.before + (1 - BACK) * fall.after
            self._left = DetectionWindow(self._own.copy(), self._frames, level, [])
        return has_margins

    def _usual(self, margins: FloatArray) -> float:
        return float(margins.mean() - margins.std())

    def back(self) -> ScoreDrop | None:
        """Return the change back to the earlier voice, by the newest units; or None."""
        earlier = self._left
        if earlier is None or len(earlier.recent) < self._sensitivity.back_units:
            return None
        margins = np.array([margin for margin, _ in earlier.recent])
        if margins.mean() < earlier.level:
            return None
        index = find_split(margins) if margins.size > 1 else 0
        if index and margins[:index].mean() >= earlier.level:  # all are the earlier voice's
            index = 0
        return ScoreDrop(earlier.recent[index][1], earlier.level, float(margins[index:].mean()))

    def take_up(self) -> None:
        """Make the earlier voice the current voice again."""
        earlier, self._left = self._left, None
        if earlier is not None:
            self.reset()
            self._own, self._frames = np.asarray(earlier.sketch), earlier.frames

    def update(self, values: AnyArray, began: int) -> ScoreDrop | None:
        """Process further frames of a step that began at a tick; return a detected change or None.

        Frames after a change are ignored. The new voice starts with the next step.
        """
        values = np.asarray(values)
        if not len(values):
            return None
        self._kind.check("the followed voice", values, len(values), self._size)
        values = self._prepare(values)
        start = 0
        while start < len(values):
            if not self._parts:
                self._part_began = began
            end = start + self._sensitivity.unit_frames - self._parts
            self._part = self._part + self._sum(values[start:end])
            self._parts += len(values[start:end])
            start = end
            if (
                self._parts == self._sensitivity.unit_frames
                and (fall := self._complete()) is not None
            ):
                return fall
        return None

    def _complete(self) -> ScoreDrop | None:
        unit, self._part, self._parts = self._part, np.zeros(self._size), 0
        fall = None
        if self._left is not None:
            margin = self._margin(unit, self._left.sketch, self._left.frames)
            self._left.recent.append((margin, self._part_began))
            del self._left.recent[: -self._sensitivity.back_units]
        if self._frames >= self._sensitivity.warm_frames:
            self._margins.append(self._margin(unit, self._own, self._frames))
            self._began.append(self._part_began)
            fall = self._find_change()
            if len(self._margins) >= MOST_MARGINS:
                half = MOST_MARGINS // 2
                self._follow(self._margins[-half:], self._began[-half:])
        self._held.append(unit)
        for _ in range(len(self._held) - self._most_held()):
            self._own = self._own + self._held.pop(0)
            self._frames += self._sensitivity.unit_frames
        return fall

    def _most_held(self) -> int:
        """Return how many of the newest units to hold back, since another voice may have begun."""
        return self._sensitivity.held_units

    def _find_change(self) -> ScoreDrop | None:
        if not self._adwin_detects():
            return None
        margins = np.array(self._margins)
        index = find_split(margins)
        before, after = float(margins[:index].mean()), float(margins[index:].mean())
        if before - after > self._sensitivity.least_drop:
            return ScoreDrop(self._began[index], before, after)
        self._follow(self._margins[index:], self._began[index:])
        return None

    def _follow(self, margins: list[float], began: list[int]) -> None:
        """Replace the margins. A new ADWIN will process them, since its state cannot be saved."""
        self._margins, self._began = margins, began
        self._adwin: ADWIN | None = None

    def _adwin_detects(self) -> bool:
        min_units = self._sensitivity.min_units
        grace = 2 * min_units + 1
        if len(self._margins) < grace:  # too few for a change
            return False
        unseen = self._margins[-1:]
        if self._adwin is None:
            self._adwin = adwin()(
                self._sensitivity.delta, 1, min_window_length=min_units, grace_period=grace
            )
            unseen = self._margins
        for margin in unseen:
            self._adwin.update(margin * self._sensitivity.gain)
        return bool(self._adwin.drift_detected)

    def state(self) -> dict[str, AnyArray]:
        """Return the complete state."""
        earlier = self._left
        return {
            "left_own": np.zeros(0) if earlier is None else earlier.sketch,
            "left": np.array(
                [] if earlier is None else [earlier.frames, earlier.level], dtype=np.float64
            ),
            "recent": np.array([] if earlier is None else earlier.recent, float).reshape(-1, 2),
            "own": self._own,
            "held": np.array(self._held).reshape(-1, self._size),
            "part": self._part,
            "margins": np.array(self._margins, dtype=np.float64),
            "began": np.array(self._began, dtype=np.int64),
            "counters": np.array([self._frames, self._parts, self._part_began], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``; ValueError if it is invalid."""
        left_own, sums = arrays["left_own"], [arrays[name] for name in ("own", "part", "held")]
        counters, count = arrays["counters"], len(arrays["margins"])
        if (
            {array.shape[-1:] for array in sums} != {(self._size,)}
            or min(array.min(initial=0.0) for array in (*sums, left_own)) < self._kind.minimum_total
            or counters.shape != (3,)
            or arrays["recent"].shape[1:] != (2,)
            or (left_own.size, arrays["left"].size) not in ((0, 0), (self._size, 2))
            or counters.min() < 0
            or counters[1] >= self._sensitivity.unit_frames
            or not len(arrays["began"]) == count <= MOST_MARGINS
        ):
            raise ValueError("no such voice")
        self._own, self._part = arrays["own"], arrays["part"]
        self._held = list(arrays["held"])
        self._frames, self._parts, self._part_began = counters.tolist()
        self._follow(arrays["margins"].tolist(), arrays["began"].tolist())
        self._left = None
        if arrays["left"].size:
            frames, level = arrays["left"].tolist()
            recent = [(margin, int(began)) for margin, began in arrays["recent"].tolist()]
            self._left = DetectionWindow(arrays["left_own"], int(frames), level, recent)


class Kind(ABC):
    """A kind of frames, with all operations that depend on the kind.

    There is one object of each kind, and unpickling returns the same object. In this base class,
    frames are vectors of floats, shape (k, size), and have no templates.
    """

    name: ClassVar[str]  # in stores, records and messages
    enrolled: ClassVar[bool] = True  # otherwise it only detects changes, against its own past
    discerning: ClassVar[bool] = False  # separates voices, and detects impostors, within seconds
    beside_discerning: ClassVar[float] = 1.0  # factor of its rate of false changes beside one
    counted: ClassVar[bool] = False  # frames are bins to count, of which some may be unseen
    pointed: ClassVar[bool] = False  # frames are vectors, so that a linear map can separate people
    unusable: ClassVar[str] = "not finite"  # why a frame was dropped
    wide: ClassVar[type[np.int64 | np.float64]] = np.float64  # type of its sums
    stored: ClassVar[str] = "<f8"  # type of a sketch's total in files
    minimum_total: ClassVar[float] = -np.inf  # lower limit of totals
    similarities: ClassVar[Mapping[str, Similarity]] = {}  # the first is the default

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Kind], tuple[str]]:
        return kind, (self.name,)

    def similarity(self, name: str | None = None) -> Similarity:
        """Return a similarity by its name; None for the default."""
        if name is None:
            return next(iter(self.similarities.values()))
        if name not in self.similarities:
            names = ", ".join(self.similarities)
            raise UsageError(f"similarity {name!r} is not one of {names}")
        return self.similarities[name]

    def none(self, size: int) -> AnyArray:
        """Return an empty array of frames."""
        return np.empty((0, size))

    def holds(self, values: AnyArray) -> bool:
        """Return whether an array has the shape and type of frames of this kind."""
        return values.ndim == 2 and values.shape[1] > 0 and values.dtype.kind == "f"

    def size_of(self, values: AnyArray, stated: int | None) -> int:
        """Return the number of bins or dimensions; ValueError if ``stated`` contradicts it."""
        if stated not in (None, values.shape[1]):
            raise ValueError(f"has {values.shape[1]} dimensions, but its header states {stated}")
        return int(values.shape[1])

    def usable(self, values: AnyArray, size: int) -> tuple[AnyArray, BoolArray]:
        """Convert frames from a file; return them, and whether each is usable, shape (k,)."""
        return values, np.logical_and.reduce(np.isfinite(values), axis=1)

    def check(self, name: str, values: AnyArray, count: int, size: int) -> None:
        """Raise UsageError for frames, (count, ...), that cannot be added to a sketch."""
        if values.dtype.kind != "f" or values.shape != (count, size):
            raise UsageError(f"the frames of {name} must be floats, shape (k, {size})")

    def counting(self, values: AnyArray) -> BoolArray | None:
        """Return whether a sketch counts each frame, shape (k,); None if it counts all."""
        return None

    def is_compatible(self, size: int, enrolled: int) -> bool:
        """Return whether frames of one size can be compared with templates of another."""
        return size == enrolled

    def sketch(self, size: int) -> AnySketch:
        """Return an empty sketch."""
        raise self._in_no_template()

    def total(self, values: AnyArray, size: int) -> AnyArray:
        """Compute the total of a sketch of these frames, shape (size,)."""
        return self.added(self.addends(values), size)

    def addends(self, values: AnyArray) -> AnyArray:
        """Prepare frames for `added`, before it is known which of them count."""
        return values

    def added(self, addends: AnyArray, size: int) -> AnyArray:
        """Compute the total of frames from their `addends`."""
        raise self._in_no_template()

    def narrow(self, values: AnyArray, size: int) -> AnyArray:
        """Return the same frames in the smallest type."""
        return values

    def span_seconds(self, frame_seconds: float) -> float:
        """Return the duration of one frame in seconds; 0 for an instant."""
        return 0.0

    def packed(self, slices: AnyArray) -> AnyArray:
        """Pack the sketches of template slices, shape (S, M), for a store."""
        raise self._in_no_template()

    def wrong_slices(self, slices: AnyArray) -> str:
        """Describe a fault in a store's slices; empty if they are valid."""
        return "of another kind: levels have no templates"

    def background_row(self, sketch: AnySketch) -> AnyArray:
        """Return a cohort's row for one of its speakers, shape (M,)."""
        raise self._in_no_template()

    def packed_background(self, rows: AnyArray) -> AnyArray:
        """Pack the rows of a cohort, shape (C, M), for a store."""
        raise self._in_no_template()

    def _in_no_template(self) -> UsageError:
        return UsageError(f"{self.name} are used only to detect changes and have no templates")

    def wrong_background(self, rows: AnyArray) -> str:
        """Describe a fault in a cohort's rows; empty if they are valid."""
        return ""

    @abstractmethod
    def follow(self, others: AnyArray, sensitivity: Sensitivity) -> FollowedVoice:
        """Create a detector of voice changes, which compares with others' templates, (N, M)."""


def within(values: AnyArray, minimum: float, maximum: float) -> bool:
    """Return whether all values are numbers in this range."""
    if not values.size:
        return True
    low, high = float(values.min()), float(values.max())
    return low >= minimum and high <= maximum


TAKES = ("audio", "words", "frames")
_CLOSE_SECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """Specification of a feature's frames: kind, size, duration and network.

    Two specs are equal if their frames are comparable, for any ``rate`` and ``takes``.

    Attributes:
        name: name of the feature.
        kind: `HISTOGRAM`, `EMBEDDING` or `LEVELS` of `monitor.kinds`.
        size: number of bins of the histogram, or of dimensions of the embedding.
        frame_seconds: usable seconds of one frame.
        rate: sample rate of the input audio in Hz; None without audio.
        network: sha256 of the network's weights, or None.
        takes: ``"audio"``, timed ``"words"`` or precomputed ``"frames"``. The default is audio if
            there is a rate, otherwise frames.
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
            raise UsageError(f"the network of {self.name} is not a sha256 in hexadecimal")

    def sketch(self) -> AnySketch:
        """Return an empty sketch of this feature."""
        return self.kind.sketch(self.size)

    def no_frames(self) -> Track:
        """Return a track without any frame."""
        return Track(np.empty(0, np.intp), self.kind.none(self.size))

    def like(self, other: FeatureSpec) -> bool:
        """Return whether frames of both can be compared, ignoring their networks."""
        is_close = abs(self.frame_seconds - other.frame_seconds) < _CLOSE_SECONDS
        return (self.kind, self.size) == (other.kind, other.size) and is_close

    def plain(self) -> dict[str, object]:
        """Return kind, size, frame_seconds and, if known, the network as JSON values."""
        fields = {"kind": self.kind.name, "size": self.size, "frame_seconds": self.frame_seconds}
        return fields if self.network is None else {**fields, "network": self.network}

    def __str__(self) -> str:
        return f"{self.kind.name} of size {self.size}"


def comparable_features(
    features: Mapping[str, FeatureSpec], others: Mapping[str, FeatureSpec]
) -> set[str]:
    """List the features that both have, with comparable frames."""
    return {
        name
        for name, spec in features.items()
        if (other := others.get(name)) is not None
        and spec.like(other)
        and spec.network == other.network
    }


MOST_LENGTH = 1e30  # limit of a slice's sum of embeddings: far above `LONGEST`, in single precision


class _EmbeddingKind(Kind):
    """Frames are vectors, shape (k, d), with lengths as weights. A sketch sums them.

    Only the direction of the sum is compared.
    """

    name = "embedding"
    discerning = True
    pointed = True
    minimum_total = -1e15
    similarities = OF_VECTORS

    def counting(self, values: AnyArray) -> BoolArray | None:
        counts = are_countable(values)
        return None if counts.all() else counts

    def sketch(self, size: int) -> AnySketch:
        return EmbeddingSum(size)

    def addends(self, values: AnyArray) -> AnyArray:
        values = values.astype(np.float64)
        return np.where(are_countable(values)[:, None], values, 0.0)

    def added(self, addends: AnyArray, size: int) -> AnyArray:
        return np.asarray(addends.sum(axis=0))

    def span_seconds(self, frame_seconds: float) -> float:
        return frame_seconds

    def packed(self, slices: AnyArray) -> AnyArray:
        return slices.astype(np.float32)

    def wrong_slices(self, slices: AnyArray) -> str:
        good = slices.dtype.kind == "f" and within(slices, -MOST_LENGTH, MOST_LENGTH)
        return "" if good else "finite sums of embeddings"

    def background_row(self, sketch: AnySketch) -> AnyArray:
        return unit_vectors(sketch.total)

    def packed_background(self, rows: AnyArray) -> AnyArray:
        return rows.astype(np.float16)  # a cosine moves by less than 1e-4

    def wrong_background(self, rows: AnyArray) -> str:
        return "" if within(rows, -1, 1) else "has no valid directions of embeddings"

    def follow(self, others: AnyArray, sensitivity: Sensitivity) -> FollowedVoice:
        return _EmbeddingFollowed(self, others, sensitivity)


class _EmbeddingFollowed(FollowedVoice):
    """Detector of changes in embeddings by Page's cumulative sum (CUSUM), without ADWIN."""

    def __init__(self, kind: Kind, templates: AnyArray, sensitivity: Sensitivity) -> None:
        sample = templates[:: max(-(-len(templates) // MOST_TEMPLATES), 1)]
        self._others = self._prepare(sample)
        super().__init__(kind, templates.shape[1], sensitivity)

    def reset(self) -> None:
        super().reset()
        self._doubted = 0  # newest units that are evidence of a change

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        super().restore(arrays)
        self._doubted = len(self._held)

    def _most_held(self) -> int:
        """Hold back units that are evidence of a change, until later units refute it."""
        return min(self._doubted, MOST_HELD)

    def _find_change(self) -> ScoreDrop | None:
        recent = np.array(self._margins[-1 - len(self._held) :])  # evidence begins within these
        nats, index = page_cusum(self._sensitivity.gain * (self._sensitivity.level - recent))
        self._doubted = recent.size - index
        if nats <= -np.log(self._sensitivity.delta):
            return None
        index += len(self._margins) - recent.size
        before = float(np.mean(self._margins[:index])) if index else self._sensitivity.level
        return ScoreDrop(self._began[index], before, float(np.mean(self._margins[index:])))

    def _prepare(self, values: AnyArray) -> AnyArray:
        """Normalise rows to length 1; drop rows without a direction."""
        vectors = values.astype(np.float64)
        lengths = np.hypot.reduce(vectors, axis=1)
        good = (lengths > 0) & np.isfinite(lengths)
        return np.asarray(vectors[good] / lengths[good, None])

    def _margin(self, unit: FloatArray, sketch: FloatArray, frames: int) -> float:
        return embedding_margin(unit, sketch, self._others)

    def _usual(self, margins: FloatArray) -> float:
        return min(self._sensitivity.level, float(margins.mean()))


EMBEDDING: Kind = _EmbeddingKind()
"""Kind of features with vectors as frames. Their directions are compared."""


MOST_COUNT = 1e9  # limit of a slice's counts: sums over a template are exact in double precision
_MOST_BINS = 1 << 31


class _HistogramKind(Kind):
    """Frames are whole numbers 0..M-1, shape (k,); a sketch counts them."""

    name = "histogram"
    # an embedding detects every change that they detect, with fewer false ones
    beside_discerning = 1e-4
    counted = True
    unusable = "not a bin"
    wide = np.int64
    stored = "<i8"
    minimum_total = 0.0
    similarities = OF_COUNTS

    def none(self, size: int) -> AnyArray:
        return np.empty(0, np.intp)

    def holds(self, values: AnyArray) -> bool:
        return values.ndim == 1 and values.dtype.kind in "iu"

    def size_of(self, values: AnyArray, stated: int | None) -> int:
        if stated is not None:
            return stated
        seen = int(values.max(initial=1)) + 1
        if seen >= _MOST_BINS:
            raise ValueError(f"has bin {seen - 1}; state its size in the header")
        return seen

    def usable(self, values: AnyArray, size: int) -> tuple[AnyArray, BoolArray]:
        good: BoolArray = (values >= 0) & (values < size)
        if values.dtype.kind == "u" and values.dtype.itemsize == 8:
            values = np.where(good, values, 0)
        return values.astype(np.int64), good

    def check(self, name: str, values: AnyArray, count: int, size: int) -> None:
        if values.shape != (count,) or values.dtype.kind not in "iu":
            raise UsageError(f"the bins of {name} must be whole numbers, shape (k,)")
        if count and not 0 <= values.min() <= values.max() < size:
            raise UsageError(f"the bins of {name} must lie in 0..{size - 1}")

    def is_compatible(self, size: int, enrolled: int) -> bool:
        return size <= enrolled

    def sketch(self, size: int) -> AnySketch:
        return Histogram(size)

    def added(self, addends: AnyArray, size: int) -> AnyArray:
        return np.bincount(addends, minlength=size)

    def narrow(self, values: AnyArray, size: int) -> AnyArray:
        return values.astype(np.min_scalar_type(max(size - 1, 1)))

    def packed(self, slices: AnyArray) -> AnyArray:
        return slices.astype(np.uint16 if slices.max(initial=0) < 2**16 else np.uint32)

    def wrong_slices(self, slices: AnyArray) -> str:
        good = slices.dtype.kind in "iu" and within(slices, 0, MOST_COUNT)
        return "" if good else f"counts from 0 to {MOST_COUNT:g}"

    def background_row(self, sketch: AnySketch) -> AnyArray:
        return sketch.total

    def packed_background(self, rows: AnyArray) -> AnyArray:
        return rows.astype(np.min_scalar_type(int(rows.max(initial=0))))

    def follow(self, others: AnyArray, sensitivity: Sensitivity) -> FollowedVoice:
        return _HistogramFollowed(self, others, sensitivity)


class _HistogramFollowed(FollowedVoice):
    def __init__(self, kind: Kind, templates: AnyArray, sensitivity: Sensitivity) -> None:
        smoothed = templates[:: -(-len(templates) // MOST_TEMPLATES)] + 0.5
        shares = smoothed / smoothed.sum(axis=1, keepdims=True)
        self._others: FloatArray = np.log(shares)
        self._average: FloatArray = shares.mean(axis=0)
        super().__init__(kind, templates.shape[1], sensitivity)

    def _sum(self, values: AnyArray) -> FloatArray:
        return np.bincount(values.astype(np.intp), minlength=self._size).astype(np.float64)

    def _margin(self, unit: FloatArray, sketch: FloatArray, frames: int) -> float:
        independent = self._sensitivity.unit_frames / 3
        return histogram_margin(unit, sketch, self._others, self._average, independent)


HISTOGRAM: Kind = _HistogramKind()
"""Kind of features with bin numbers as frames, which are counted."""


class _LevelsKind(Kind):
    """Frames are levels of the channel in bels, shape (k, M). They have no templates."""

    name = "levels"
    enrolled = False

    def follow(self, others: AnyArray, sensitivity: Sensitivity) -> FollowedVoice:
        return _LevelsFollowed(self, others.shape[1], sensitivity)


class _LevelsFollowed(FollowedVoice):
    def _margin(self, unit: FloatArray, sketch: FloatArray, frames: int) -> float:
        return level_margin(unit / self._sensitivity.unit_frames, sketch / frames)


LEVELS: Kind = _LevelsKind()
"""Kind of features that only detect changes."""


KINDS: dict[str, Kind] = {member.name: member for member in (HISTOGRAM, EMBEDDING, LEVELS)}
"""All kinds by the name in stores."""


def kind(name: str) -> Kind:
    """Return a kind by name; UsageError for an unknown name."""
    member = KINDS.get(name) if isinstance(name, str) else None
    if member is None:
        raise UsageError(f"kind={name!r} must be one of {', '.join(KINDS)}")
    return member
