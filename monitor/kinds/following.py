"""Notices another voice by one feature: do the newest frames still fit the voice heard so far?

What all kinds share: frames are brought together to units, each unit gets a margin, and the margins
are shown to ADWIN. Each kind says in its own file what its margin is, and may add margins up in
another way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from monitor.maths.margin import split
from monitor.types import AnyArray, FloatArray

if TYPE_CHECKING:
    from river.drift import ADWIN

__all__ = [
    "MOST_HELD",
    "MOST_MARGINS",
    "MOST_TEMPLATES",
    "Fall",
    "FollowedVoice",
    "Sensitivity",
    "adwin",
]

MOST_TEMPLATES = 64
"""Of a large population every k-th speaker stands for all."""
MOST_HELD = 60
"""Units of an embedding that wait to be learnt, three minutes."""
MOST_MARGINS = 4000
"""Of a longer voice (an hour and more) the older half of its margins is let go."""

BACK = 0.7
"""How far a voice's margin must be on the way from the other voice's to its own, to be back."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How a feature is followed.

    Attributes:
        unit_frames: frames behind one margin.
        warm_frames: frames of a voice before it has margins.
        gain: what margins are multiplied by, for ADWIN or to give nats of evidence.
        delta: ADWIN's, or the odds that the evidence has to beat; smaller is more careful.
        back_units: newest units by which a voice that was left is known to be back.
        held_units: with ADWIN, the newest units, kept out of the voice's own sketch: another person
            does not at once become part of it.
        min_units: with ADWIN, fewest margins before a change, and fewest after it; none is looked
            for before there are twice as many and two.
        least_drop: with ADWIN, a lower mean is a change from this difference on: a voice's small
            ones are significant after a while, and nobody else's.
        level: of embeddings, the margin that a voice has as seldom as another person has: below it
            a unit speaks for a change.
    """

    unit_frames: int
    warm_frames: int
    gain: float
    delta: float
    back_units: int
    held_units: int = 0
    min_units: int = 1
    least_drop: float = 0.0
    level: float = 0.0


@dataclass(frozen=True, slots=True)
class Fall:
    """From a tick on the mean margin is lower.

    Attributes:
        began: that tick.
        before: mean margin up to there.
        after: mean margin since then.
    """

    began: int
    before: float
    after: float


@dataclass(slots=True)
class Left:
    """A voice that another one took over from, to be known when it is back.

    Attributes:
        own: its sketch, shape (M,).
        frames: behind it.
        level: mean margin of the newest units under it from which on it is back.
        recent: margins of the newest units under it, each with the tick at which the unit began.
    """

    own: FloatArray
    frames: int
    level: float
    recent: list[tuple[float, int]]


@cache
def adwin() -> type[ADWIN]:
    """river's, by itself: its package imports scipy.stats and all of scikit-learn for others."""
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


class FollowedVoice:
    """One feature of the voice since the last change.

    Args:
        size: bins, dimensions or levels.
        how: its settings.

    Attributes:
        KEPT: names in a ``state``.
    """

    LEAST = -np.inf
    """Of a sum of frames."""
    KEPT = ("own", "held", "part", "margins", "began", "counters", "left_own", "left", "recent")

    def __init__(self, size: int, how: Sensitivity) -> None:
        self._size = size
        self._how = how
        self._own: FloatArray
        self._left: Left | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the voice; one that was left is remembered still."""
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

    def _margin(self, unit: FloatArray, own: FloatArray, frames: int) -> float:
        """Of a unit under a voice with this sketch of so many frames."""
        raise NotImplementedError

    def leave(self, fall: Fall | None) -> bool:
        """Another voice has taken over: remember this one, where it is known.

        Args:
            fall: how this feature noticed; None where another one did: then its level is what is
                usual for this voice.

        Returns:
            whether this feature can tell when it is back.
        """
        known = self._frames >= self._how.warm_frames and len(self._margins) > 0
        if known:
            level = self._usual(np.array(self._margins))
            if fall is not None:
                level = BACK * fall.before + (1 - BACK) * fall.after
            self._left = Left(self._own.copy(), self._frames, level, [])
        return known

    def _usual(self, margins: FloatArray) -> float:
        """What the mean of a voice's newest margins hardly ever falls below."""
        return float(margins.mean() - margins.std())

    def back(self) -> Fall | None:
        """Since when the voice that was left is back, as far as the newest units tell."""
        left = self._left
        if left is None or len(left.recent) < self._how.back_units:
            return None
        margins = np.array([margin for margin, _ in left.recent])
        if margins.mean() < left.level:
            return None
        at = split(margins) if margins.size > 1 else 0
        if at and margins[:at].mean() >= left.level:  # the other voice is in none of them
            at = 0
        return Fall(left.recent[at][1], left.level, float(margins[at:].mean()))

    def forget(self, *, take_up: bool) -> None:
        """Remember no voice that was left any more; or take it up again as the one that speaks."""
        left, self._left = self._left, None
        if take_up and left is not None:
            self.reset()
            self._own, self._frames = np.asarray(left.own), left.frames

    def hear(self, values: AnyArray, began: int) -> Fall | None:
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

    def _complete(self) -> Fall | None:
        """A unit is complete."""
        unit, self._part, self._parts = self._part, np.zeros(self._size), 0
        fall = None
        if self._left is not None:
            margin = self._margin(unit, self._left.own, self._left.frames)
            self._left.recent.append((margin, self._part_began))
            del self._left.recent[: -self._how.back_units]
        if self._frames >= self._how.warm_frames:
            self._margins.append(self._margin(unit, self._own, self._frames))
            self._began.append(self._part_began)
            fall = self._look()
            if len(self._margins) >= MOST_MARGINS:
                half = MOST_MARGINS // 2
                self._follow(self._margins[-half:], self._began[-half:])
        self._held.append(unit)
        for _ in range(len(self._held) - self._most_held()):
            self._own = self._own + self._held.pop(0)
            self._frames += self._how.unit_frames
        return fall

    def _most_held(self) -> int:
        """So many of the newest units may be another's."""
        return self._how.held_units

    def _look(self) -> Fall | None:
        """Whether there was a change for the worse by the newest margin."""
        return self._fall() if self._notices() else None

    def _fall(self) -> Fall | None:
        """ADWIN has seen a change: for the worse, and much?"""
        margins = np.array(self._margins)
        at = split(margins)
        before, after = float(margins[:at].mean()), float(margins[at:].mean())
        if before - after > self._how.least_drop:
            return Fall(self._began[at], before, after)
        self._follow(self._margins[at:], self._began[at:])
        return None

    def _follow(self, margins: list[float], began: list[int]) -> None:
        """A new ADWIN that will see these: its own state cannot be saved, so this is it."""
        self._margins, self._began = margins, began
        self._adwin: ADWIN | None = None

    def _notices(self) -> bool:
        """Whether ADWIN notices something with the newest margin."""
        grace = 2 * self._how.min_units + 1
        if len(self._margins) < grace:  # it could not
            return False
        unseen = self._margins[-1:]
        if self._adwin is None:
            self._adwin, unseen = self._fresh_adwin(grace), self._margins
        for margin in unseen:
            self._adwin.update(margin * self._how.gain)
        return bool(self._adwin.drift_detected)

    def _fresh_adwin(self, grace: int) -> ADWIN:
        return adwin()(
            delta=self._how.delta,
            clock=1,
            min_window_length=self._how.min_units,
            grace_period=grace,
        )

    def state(self) -> dict[str, AnyArray]:
        """Everything needed to go on as if never stopped."""
        left = self._left
        return {
            "left_own": np.zeros(0) if left is None else left.own,
            "left": np.array([] if left is None else [left.frames, left.level], dtype=np.float64),
            "recent": np.array([] if left is None else left.recent, float).reshape(-1, 2),
            "own": self._own,
            "held": np.array(self._held).reshape(-1, self._size),
            "part": self._part,
            "margins": np.array(self._margins, dtype=np.float64),
            "began": np.array(self._began, dtype=np.int64),
            "counters": np.array([self._frames, self._parts, self._part_began], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``.

        Raises:
            ValueError: of another size, or one that no voice has.
        """
        left, kept = arrays["left_own"], [arrays[name] for name in ("own", "part", "held")]
        if {array.shape[-1:] for array in kept} != {(self._size,)}:
            raise ValueError
        if min(array.min(initial=0.0) for array in (*kept, left)) < self.LEAST:
            raise ValueError
        if arrays["counters"].shape != (3,) or arrays["recent"].shape[1:] != (2,):
            raise ValueError
        if (left.size, arrays["left"].size) not in ((0, 0), (self._size, 2)):
            raise ValueError
        parts, known = int(arrays["counters"][1]), len(arrays["margins"])
        if not 0 <= parts < self._how.unit_frames or arrays["counters"].min() < 0:
            raise ValueError
        if known > MOST_MARGINS or known != len(arrays["began"]):
            raise ValueError
        self._own, self._part = arrays["own"], arrays["part"]
        self._held = list(arrays["held"])
        self._frames, self._parts, self._part_began = arrays["counters"].tolist()
        self._follow(arrays["margins"].tolist(), arrays["began"].tolist())
        self._left = None
        if arrays["left"].size:
            frames, level = arrays["left"].tolist()
            recent = [(margin, int(began)) for margin, began in arrays["recent"].tolist()]
            self._left = Left(arrays["left_own"], int(frames), level, recent)
