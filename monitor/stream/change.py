"""Notices that another person has taken over, or that the channel has changed.

Each feature has a margin (`monitor.maths.margin`): how much better the voice since the last change
explains its newest frames than the population does; the levels of the channel are compared with
their own past alone. `river.drift.ADWIN` looks for a moment from
which on the margin's mean is lower; one that rises, as it does while a voice becomes known, is no
change. Frames are put together to units, one margin each: neighbouring frames are alike.

ADWIN's bound is for independent numbers in [0, 1]. Margins are neither: `Sensitivity.gain` brings
them to a size at which the bound acts on what speech does, and `Sensitivity.delta` is a setting
whose price was measured, not a probability of false alarm.

Why ADWIN (``benchmarks/change.py --detectors``): it weighs a drop by the margins' variance, so that
one setting serves every voice. river's PageHinkley notices changes in f0 a few seconds sooner at as
many false alarms, but needs an absolute size of drop fitted to each feature; KSWIN misses twice as
many and draws at random. Where ADWIN cuts is no good guess of when it happened: the best split is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.maths.margin import embedding_margin, histogram_margin, level_margin, split
from monitor.types import TICKS_PER_SECOND, AnyArray, FloatArray

if TYPE_CHECKING:
    from river.drift import ADWIN

__all__ = ["SENSITIVITY", "Change", "ChangeDetector", "Sensitivity"]

MOST_TEMPLATES = 64
"""Of a large population every k-th speaker stands for all."""
MOST_MARGINS = 4000
"""Of a longer voice (an hour and more) the older half of its margins is let go."""
_BESIDE_EMBEDDINGS = 0.1
_LARGEST_DELTA = 0.95


@dataclass(frozen=True, slots=True)
class Change:
    """Somebody else speaks, or through something else.

    Attributes:
        seconds: when it was noticed, on the clock of the stream.
        since_seconds: where the new voice seems to have begun.
        features: those whose margin fell.
        margin_before: mean margin of the first of them up to there: nats a frame (histograms), a
            difference of cosines (embeddings) or bels (levels).
        margin_after: the same since then.
    """

    seconds: float
    since_seconds: float
    features: tuple[str, ...]
    margin_before: float
    margin_after: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How a feature is followed.

    Attributes:
        unit_frames: frames behind one margin.
        warm_frames: frames of a voice before it has margins.
        held_units: the newest units, kept out of the voice's own sketch: another person does not
            at once become part of it.
        min_units: fewest margins before a change, and fewest after it; none is looked for before
            there are twice as many and two.
        gain: what margins are multiplied by for ADWIN.
        delta: ADWIN's; smaller is more careful.
        least_drop: a lower mean is a change from this difference on: a voice's small ones are
            significant after a while, and nobody else's.
    """

    unit_frames: int
    warm_frames: int
    held_units: int
    min_units: int
    gain: float
    delta: float
    least_drop: float = 0.0


_F0 = Sensitivity(50, 200, 4, 3, gain=10.0, delta=0.01)
_PHONES = Sensitivity(12, 150, 6, 5, gain=50.0, delta=0.05)
_IDENTITY = Sensitivity(1, 2, 1, 1, gain=10.0, delta=0.5, least_drop=0.25)
_CHANNEL = Sensitivity(1, 4, 1, 3, gain=3.0, delta=0.5, least_drop=0.4)
SENSITIVITY: Mapping[str, Sensitivity] = {
    "f0": _F0,
    "phones": _PHONES,
    "histogram": _F0,
    "embedding": _IDENTITY,
    "levels": _CHANNEL,
}
"""By feature, else by kind. Chosen by ``benchmarks/change.py``."""


class ChangeDetector:
    """Follows the features of a stream, on a fixed grid of its clock.

    The first feature that notices reports; then all of them start afresh with the new voice.
    Where an embedding is followed, which tells voices apart within seconds, histograms are ten
    times more careful.

    Memory is bounded, and the sketches and templates of others are only read.

    Args:
        background: for each feature to follow the population's templates, shape (N, M): counts, or
            sums of embeddings. Levels are the stream's own affair: shape (0, M).
        kinds: ``"histogram"``, ``"embedding"`` or ``"levels"`` of each.
        careful: divides every delta: above 1 fewer false alarms, more misses and later reports.
        sensitivity: other settings, by feature or kind.

    Raises:
        UsageError: a kind or ``careful`` makes no sense.

    Example:
        >>> low, high = np.array([9, 1, 0]), np.array([0, 1, 9])
        >>> detector = ChangeDetector({"f0": np.array([low, high])}, {"f0": "histogram"})
        >>> rng = np.random.default_rng(0)
        >>> for second in range(1, 200):
        ...     voice = low if second <= 100 else high
        ...     bins = rng.choice(3, 40, p=voice / 10)
        ...     if change := detector.update({"f0": bins}, 100 * second):
        ...         print(change.seconds, change.since_seconds, change.features)
        104.0 100.0 ('f0',)
    """

    def __init__(
        self,
        background: Mapping[str, AnyArray],
        kinds: Mapping[str, str],
        *,
        careful: float = 1.0,
        sensitivity: Mapping[str, Sensitivity] | None = None,
    ) -> None:
        # takes nearly a second, which a live stream does not have later
        import river.drift  # noqa: F401

        if not careful > 0:
            raise UsageError(f"careful={careful:g} must be positive; 1 is the default")
        settings = {**SENSITIVITY, **(sensitivity or {})}
        embeddings = "embedding" in (kinds[name] for name in background)
        self._voices: dict[str, _Voice] = {}
        for name in sorted(background):
            kind = kinds[name]
            if kind not in _VOICES:
                raise UsageError(f"kind={kind!r} of {name} must be one of {', '.join(_VOICES)}")
            how = settings.get(name, settings[kind])
            beside = _BESIDE_EMBEDDINGS if embeddings and kind == "histogram" else 1.0
            delta = min(how.delta * beside / careful, _LARGEST_DELTA)
            made = _VOICES[kind](np.asarray(background[name]), replace(how, delta=delta))
            self._voices[name] = made
        self._tick = 0

    def update(self, step: Mapping[str, AnyArray], tick: int) -> Change | None:
        """Hear one step of the stream.

        Args:
            step: the frames of each feature that came in since the last step, as in `Track`; a
                feature without any may be left out, one that is not followed is ignored.
            tick: the end of the step, in ticks of the stream.

        Raises:
            UsageError: frames of another kind or size.
        """
        began = self._tick
        self._tick = tick
        noticed = {
            name: fall
            for name, voice in self._voices.items()
            if name in step and (fall := voice.hear(step[name], began)) is not None
        }
        if not noticed:
            return None
        for voice in self._voices.values():
            voice.reset()
        first = next(iter(noticed.values()))
        return Change(
            seconds=tick / TICKS_PER_SECOND,
            since_seconds=min(fall.began for fall in noticed.values()) / TICKS_PER_SECOND,
            features=tuple(noticed),
            margin_before=first.before,
            margin_after=first.after,
        )

    def reset(self) -> None:
        """Forget the stream."""
        self._tick = 0
        for voice in self._voices.values():
            voice.reset()

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Everything needed to go on as if never stopped: plain values and arrays."""
        arrays = {
            f"{name}/{key}": value
            for name, voice in self._voices.items()
            for key, value in voice.state().items()
        }
        return {"tick": self._tick}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state`` of a detector made with the same arguments.

        Raises:
            StoreError: the state is of other features.
        """
        self._tick = int(plain["tick"])
        for name, voice in self._voices.items():
            try:
                voice.restore({key: arrays[f"{name}/{key}"] for key in voice.KEPT})
            except (KeyError, ValueError):
                raise StoreError(
                    f"the checkpoint does not fit: it has no such {name} to look for changes in"
                ) from None


@dataclass(frozen=True, slots=True)
class _Fall:
    """From a tick on the mean margin is lower."""

    began: int
    before: float
    after: float


class _Voice:
    """One feature of the voice since the last change."""

    KEPT = ("own", "held", "part", "margins", "began", "counters")

    def __init__(self, size: int, how: Sensitivity) -> None:
        self._size = size
        self._how = how
        self.reset()

    def reset(self) -> None:
        self._own = np.zeros(self._size)
        self._frames = 0  # behind it
        self._held: list[FloatArray] = []
        self._part = np.zeros(self._size)  # of a unit
        self._parts = 0  # frames of it
        self._part_began = 0
        self._follow([], [])

    def _frames_of(self, values: AnyArray) -> AnyArray:
        """The frames that can be used."""
        raise NotImplementedError

    def _sum(self, values: AnyArray) -> FloatArray:
        raise NotImplementedError

    def _margin(self, unit: FloatArray) -> float:
        raise NotImplementedError

    def hear(self, values: AnyArray, began: int) -> _Fall | None:
        """What these further frames of a step that began at a tick reveal.

        Those after a change are not heard: the new voice starts with the next step.
        """
        values = self._frames_of(np.asarray(values))
        at = 0
        while at < len(values):
            if not self._parts:
                self._part_began = began
            end = at + self._how.unit_frames - self._parts
            self._part = self._part + self._sum(values[at:end])
            self._parts += len(values[at:end])
            at = end
            if self._parts == self._how.unit_frames and (fall := self._complete()) is not None:
                return fall
        return None

    def _complete(self) -> _Fall | None:
        """A unit is complete."""
        unit, self._part, self._parts = self._part, np.zeros(self._size), 0
        fall = None
        if self._frames >= self._how.warm_frames:
            self._margins.append(self._margin(unit))
            self._began.append(self._part_began)
            if self._show(self._margins[-1]):
                fall = self._fall()
            elif len(self._margins) >= MOST_MARGINS:
                half = MOST_MARGINS // 2
                self._follow(self._margins[-half:], self._began[-half:])
        self._held.append(unit)
        if len(self._held) > self._how.held_units:
            self._own = self._own + self._held.pop(0)
            self._frames += self._how.unit_frames
        return fall

    def _fall(self) -> _Fall | None:
        """ADWIN has seen a change: for the worse, and much?"""
        margins = np.array(self._margins)
        at = split(margins)
        before, after = float(margins[:at].mean()), float(margins[at:].mean())
        if before - after > self._how.least_drop:
            return _Fall(self._began[at], before, after)
        self._follow(self._margins[at:], self._began[at:])
        return None

    def _follow(self, margins: list[float], began: list[int]) -> None:
        """A new ADWIN that has seen these: its own state cannot be saved, so this is it."""
        self._margins, self._began = margins, began
        self._adwin: ADWIN | None = None
        for margin in margins:
            self._show(margin)

    def _show(self, margin: float) -> bool:
        """Whether ADWIN notices something with this further margin."""
        if self._adwin is None:
            from river.drift import ADWIN

            self._adwin = ADWIN(
                delta=self._how.delta,
                clock=1,
                min_window_length=self._how.min_units,
                grace_period=2 * self._how.min_units + 1,
            )
        self._adwin.update(margin * self._how.gain)
        return bool(self._adwin.drift_detected)

    def state(self) -> dict[str, AnyArray]:
        return {
            "own": self._own,
            "held": np.array(self._held).reshape(-1, self._size),
            "part": self._part,
            "margins": np.array(self._margins, dtype=np.float64),
            "began": np.array(self._began, dtype=np.int64),
            "counters": np.array([self._frames, self._parts, self._part_began], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        shapes = {arrays["own"].shape, arrays["part"].shape, arrays["held"].shape[1:]}
        if shapes != {(self._size,)}:
            raise ValueError
        self._own, self._part = arrays["own"], arrays["part"]
        self._held = list(arrays["held"])
        self._frames, self._parts, self._part_began = arrays["counters"].tolist()
        self._follow(arrays["margins"].tolist(), arrays["began"].tolist())


class _HistogramVoice(_Voice):
    def __init__(self, templates: AnyArray, how: Sensitivity) -> None:
        smoothed = templates[:: -(-len(templates) // MOST_TEMPLATES)] + 0.5
        shares = smoothed / smoothed.sum(axis=1, keepdims=True)
        self._others: FloatArray = np.log(shares)
        self._average: FloatArray = shares.mean(axis=0)
        super().__init__(templates.shape[1], how)

    def _frames_of(self, values: AnyArray) -> AnyArray:
        last = self._size - 1
        whole = values.ndim == 1 and (values.dtype.kind in "iu" or not values.size)
        if not whole or (values.size and not 0 <= values.min() <= values.max() <= last):
            raise UsageError(f"bins must be whole numbers in 0..{last}, shape (k,)")
        return values.astype(np.intp, copy=False)

    def _sum(self, values: AnyArray) -> FloatArray:
        return np.bincount(values, minlength=self._size).astype(np.float64)

    def _margin(self, unit: FloatArray) -> float:
        independent = self._how.unit_frames / 3
        return histogram_margin(unit, self._own, self._others, self._average, independent)


class _EmbeddingVoice(_Voice):
    def __init__(self, templates: AnyArray, how: Sensitivity) -> None:
        self._others: FloatArray = _unit(templates.astype(np.float64)).mean(axis=0)
        super().__init__(templates.shape[1], how)

    def _frames_of(self, values: AnyArray) -> AnyArray:
        if values.ndim != 2 or values.shape[1] != self._size:
            raise UsageError(f"embeddings must have shape (k, {self._size})")
        return _unit(values.astype(np.float64))

    def _sum(self, values: AnyArray) -> FloatArray:
        return np.asarray(values.sum(axis=0))

    def _margin(self, unit: FloatArray) -> float:
        return embedding_margin(unit, self._own, self._others)


class _LevelsVoice(_Voice):
    def __init__(self, templates: AnyArray, how: Sensitivity) -> None:
        super().__init__(templates.shape[1], how)

    def _frames_of(self, values: AnyArray) -> AnyArray:
        if values.ndim != 2 or values.shape[1] != self._size:
            raise UsageError(f"levels must have shape (k, {self._size})")
        return values

    def _sum(self, values: AnyArray) -> FloatArray:
        return np.asarray(values.sum(axis=0))

    def _margin(self, unit: FloatArray) -> float:
        return level_margin(unit / self._how.unit_frames, self._own / self._frames)


_VOICES: dict[str, Callable[[AnyArray, Sensitivity], _Voice]] = {
    "histogram": _HistogramVoice,
    "embedding": _EmbeddingVoice,
    "levels": _LevelsVoice,
}


def _unit(vectors: FloatArray) -> FloatArray:
    """Length-normalised rows; those without a direction are left out."""
    lengths = np.hypot.reduce(vectors, axis=1)
    good = (lengths > 0) & np.isfinite(lengths)
    return np.asarray(vectors[good] / lengths[good, None])
