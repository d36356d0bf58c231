"""Notices that another person has taken over, or that the channel has changed.

Each feature has a margin (`monitor.maths.margin`): how much better the voice since the last change
explains its newest frames than the population does; the levels of the channel are compared with
their own past alone. Frames are put together to units, one margin each: neighbouring frames are
alike.

An embedding's margin says by itself whether one person spoke: what it lies below a level half way
between is added up as evidence (`monitor.maths.margin.page_cusum`), and what may be another person
is not learnt meanwhile. Of histograms and levels nobody knows how low is low: `river.drift.ADWIN`
looks for a moment from which on the margin's mean is lower; one that rises, as it does while a
voice becomes known, is no change.

ADWIN's bound is for independent numbers in [0, 1]. Margins are neither: `Sensitivity.gain` brings
them to a size at which the bound acts on what speech does, and `Sensitivity.delta` is a setting
whose price was measured, not a probability of false alarm.

Why ADWIN (``benchmarks/change.py --detectors``): it weighs a drop by the margins' variance, so that
one setting serves every voice. river's PageHinkley notices changes in f0 a few seconds sooner at as
many false alarms, but needs an absolute size of drop fitted to each feature; KSWIN misses twice as
many and draws at random. Where ADWIN cuts is no good guess of when it happened: the best split is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.kinds import Kind
from monitor.kinds.following import FollowedVoice, Sensitivity
from monitor.types import TICKS_PER_SECOND, AnyArray

__all__ = ["Change", "ChangeDetector", "Followed", "Open"]

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
        back: the voice that was left is the one that speaks again. The margins are then those under
            it: the level that says so, and since then.
    """

    seconds: float
    since_seconds: float
    features: tuple[str, ...]
    margin_before: float
    margin_after: float
    back: bool = False


@dataclass(frozen=True, slots=True)
class Open:
    """A change that was noted and did not begin the evidence afresh: it may be of two people now.

    Attributes:
        since_seconds: where the new voice seems to have begun.
        features: those that noticed.
    """

    since_seconds: float
    features: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As JSON-able values."""
        return {"since_seconds": self.since_seconds, "features": list(self.features)}


@dataclass(frozen=True, slots=True)
class Followed:
    """A feature that is followed for changes.

    Attributes:
        kind: of its frames.
        others: the population's templates, shape (N, M): counts, or sums of embeddings. Levels are
            the stream's own affair: shape (0, M).
        how: its own settings; there are none that it would have by default.
    """

    kind: Kind
    others: AnyArray
    how: Sensitivity


class ChangeDetector:
    """Follows the features of a stream, on a fixed grid of its clock.

    The first feature that notices reports; then all of them start afresh with the new voice. Where
    asked for, the voice that was left is remembered, and reported when it is ``back``: when an
    embedding says so, else all features that had noticed; where those were levels alone, any
    other feature may say that the voice has stayed the same.

    Where an embedding is followed, which tells voices apart within seconds, histograms are ten
    thousand times more careful: they notice nothing that it does not, and cry wolf.

    Memory is bounded, and the sketches and templates of others are only read.

    Args:
        followed: by name; others are not followed.
        careful: divides every delta: above 1 fewer false alarms, more misses and later reports.
        returns: remember the first voice, and tell when it is back.

    Raises:
        UsageError: ``careful`` makes no sense.

    Example:
        >>> low, high = np.array([9, 1, 0]), np.array([0, 1, 9])
        >>> from monitor.features.f0 import F0
        >>> f0 = Followed(F0.spec.kind, np.array([low, high]), F0.follow)
        >>> detector = ChangeDetector({"f0": f0})
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
        followed: Mapping[str, Followed],
        *,
        careful: float = 1.0,
        returns: bool = False,
    ) -> None:
        if not careful > 0:
            raise UsageError(f"careful={careful:g} must be positive; 1 is the default")
        self._returns = returns
        self._asked: tuple[str, ...] = ()  # whether the voice that was left is back
        self._one_is_enough = False
        kinds = {name: followed[name].kind for name in sorted(followed)}
        self._discerning = tuple(name for name, kind in kinds.items() if kind.discerning)
        self._of_channel = {name for name, kind in kinds.items() if kind.own_past}
        self._voices: dict[str, FollowedVoice] = {}
        for name, kind in kinds.items():
            how = followed[name].how
            beside = kind.beside_discerning if self._discerning else 1.0
            how = replace(how, delta=min(how.delta * beside / careful, _LARGEST_DELTA))
            self._voices[name] = kind.follow(np.asarray(followed[name].others), how)
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
            return self._back(tick)
        if self._returns and not self._asked:
            able = {n for n, voice in self._voices.items() if voice.leave(noticed.get(n))}
            self._asked = tuple(n for n in self._discerning if n in able) or tuple(noticed)
            self._one_is_enough = self._of_channel.issuperset(self._asked)
            if self._one_is_enough:
                self._asked = tuple(sorted(able))
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

    def _back(self, tick: int) -> Change | None:
        """Whether the voice that was left is back."""
        found = {name: self._voices[name].back() for name in self._asked}
        falls = [fall for fall in found.values() if fall is not None]
        if not falls or (len(falls) < len(found) and not self._one_is_enough):
            return None
        change = Change(
            seconds=tick / TICKS_PER_SECOND,
            since_seconds=max(fall.began for fall in falls) / TICKS_PER_SECOND,
            features=tuple(name for name, fall in found.items() if fall is not None),
            margin_before=falls[0].before,
            margin_after=falls[0].after,
            back=True,
        )
        for voice in self._voices.values():
            voice.forget(take_up=True)
        self._asked = ()
        return change

    def reset(self) -> None:
        """Forget the stream."""
        self._tick, self._asked = 0, ()
        for voice in self._voices.values():
            voice.forget(take_up=False)
            voice.reset()

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Everything needed to go on as if never stopped: plain values and arrays."""
        arrays = {
            f"{name}/{key}": value
            for name, voice in self._voices.items()
            for key, value in voice.state().items()
        }
        asked = {"asked": list(self._asked), "one_is_enough": self._one_is_enough}
        return {"tick": self._tick, **asked}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state`` of a detector made with the same arguments.

        Raises:
            StoreError: the state is of other features.
        """
        if not set(plain["asked"]) <= set(self._voices):
            raise StoreError("the checkpoint does not fit: it asks for features that are not there")
        self._tick, self._asked = int(plain["tick"]), tuple(plain["asked"])
        self._one_is_enough = bool(plain["one_is_enough"])
        for name, voice in self._voices.items():
            try:
                voice.restore({key: arrays[f"{name}/{key}"] for key in voice.KEPT})
            except (KeyError, ValueError):
                raise StoreError(
                    f"the checkpoint does not fit: it has no such {name} to look for changes in"
                ) from None
