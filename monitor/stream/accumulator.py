"""`FrameAccumulator` adds frames to the running sketches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy, deepcopy
from dataclasses import replace
from functools import reduce
from typing import NotRequired, Self

import numpy as np

from monitor.arrays import real_numbers, refuse_masked
from monitor.errors import StoreError, UsageError
from monitor.features.framing import join_tracks
from monitor.kinds import FeatureSpec
from monitor.maths.scores import AnySketch
from monitor.stream.repeat_gate import Correction
from monitor.stream.totals import FeatureTotals, Moments, RunningTotals, TotalsState
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    BoolArray,
    EarlyFrames,
    Frames,
    IntArray,
    Track,
)


def check_frames(frames: Frames, features: Mapping[str, FeatureSpec]) -> None:
    """Raise UsageError for invalid frames, before the stream changes."""
    speech = real_numbers(frames.speech, "decisions of speech")
    if speech.ndim != 1 or speech.dtype != np.bool_:
        raise UsageError(
            f"speech is {speech.dtype} of shape {speech.shape}: give one bool per tick, shape (n,)"
        )
    for name, track in frames.tracks.items():
        if name in features:
            _check_track(track, features[name])


def _check_track(track: Track, spec: FeatureSpec) -> None:
    name, ticks, values, spans = spec.name, track.ticks, track.values, track.spans
    refuse_masked(f"the frames of {name}", ticks, values, spans)
    if ticks.ndim != 1 or ticks.dtype.kind not in "iu" or np.any(ticks[1:] < ticks[:-1]):
        raise UsageError(f"the ticks of {name} must be whole numbers that do not decrease")
    if len(values) != len(ticks):
        raise UsageError(
            f"{name} has {len(values)} frames and {len(ticks)} ticks: give one tick per frame"
        )
    if spans is not None and (spans.shape != (len(ticks), 2) or spans.dtype.kind not in "iu"):
        raise UsageError(f"the spans of {name} must be pairs of whole numbers, one per frame")
    spec.kind.check(name, values, len(ticks), spec.size)


class AccumulatorState(TotalsState):
    """Plain values of a `FrameAccumulator`, in a checkpoint."""

    tick: int
    begins: NotRequired[bool]
    carried: NotRequired[TotalsState]


_NOTHING = Track(np.empty(0, np.intp), np.empty(0, np.intp))


class FrameAccumulator:
    """Accumulator of frames, which computes the totals of several readings at once.

    `moments` computes totals at coming readings, and `learn` adds the frames up to one of them. The
    sketches at a reading do not depend on how many readings are computed together.
    """

    def __init__(self, features: Mapping[str, FeatureSpec], followed: Collection[str] = ()) -> None:
        self._features = dict(features)
        self._followed = tuple(followed)
        self.sketches: dict[str, AnySketch] = {
            name: spec.sketch() for name, spec in self._features.items()
        }
        # arrived, tick: ticks received, and ticks added to the sketches
        self.arrived = self.tick = 0
        self._ahead: BoolArray = np.empty(0, np.bool_)  # decisions on the ticks between the two
        self._waiting: dict[str, Track] = {}  # frames that came before their tick
        self._early: dict[str, EarlyFrames] = {}  # the current one, and those that wait
        self._begins = True  # whether the sketches hold the stream from its first tick
        self._speech = 0
        self._usable: dict[str, int] = {}
        self.carried: FeatureTotals | None = None  # totals of earlier streams at the start
        self._corrections: list[Correction] = []
        self.uncorrected = 0  # tick up to which nothing is corrected any more

    def fork(self) -> Self:
        """Return an independent copy. Arrays are replaced, not changed, except in sketches."""
        fork = copy(self)
        fork.sketches = deepcopy(self.sketches)
        fork._waiting, fork._early = dict(self._waiting), dict(self._early)
        fork._usable, fork._corrections = dict(self._usable), list(self._corrections)
        return fork

    @property
    def totals(self) -> FeatureTotals:
        """Copy of all totals, including those of earlier streams."""
        return FeatureTotals(
            self._speech,
            {name: sketch.total.copy() for name, sketch in self.sketches.items()},
            {name: sketch.frames for name, sketch in self.sketches.items()},
            {
                name: self._usable.get(name, round(sketch.frames * self._frame_ticks(name)))
                for name, sketch in self.sketches.items()
            },
        )

    def resume_from(self, totals: FeatureTotals) -> None:
        """Start from earlier streams' totals; StoreError if they have other features."""
        for name, sketch in self.sketches.items():
            total = totals.totals.get(name)
            if total is None or total.shape != sketch.total.shape:
                raise StoreError(
                    f"the earlier streams have no such sketch of {name}: "
                    "use the same program and features for both"
                )
            sketch.total[:] = total
            sketch.frames = totals.frames[name]
        self._speech = totals.speech
        self._usable = dict(totals.usable)
        self.carried = totals

    def _frame_ticks(self, name: str) -> float:
        return self._features[name].frame_seconds * TICKS_PER_SECOND

    @property
    def waiting(self) -> int:
        """Number of ticks that have arrived but are not in the sketches yet."""
        return int(self._ahead.shape[0])

    def check(self, frames: Frames) -> None:
        """Raise UsageError for impossible frames."""
        check_frames(frames, self._features)

    def add(self, frames: Frames) -> None:
        """Add further ticks, which `check` has accepted."""
        start = self.arrived
        self.arrived += frames.speech.shape[0]
        fresh_speech = frames.speech[max(self.tick - start, 0) :]  # all, unless resumed later
        self._ahead = np.concatenate((self._ahead, fresh_speech))
        for name, track in frames.tracks.items():
            if name in self._waiting and track.is_empty:
                continue
            if name in self.sketches or name in self._followed:
                # frames may be ahead of the clock, or late
                fresh = replace(track, ticks=np.maximum(track.ticks, start + 1))
                if name in self.sketches:
                    counts = self._features[name].kind.counting(fresh.values)
                    fresh = fresh if counts is None else fresh.select(counts)
                waits = self._waiting.get(name)
                joined = fresh if waits is None else join_tracks(waits, fresh)
                if np.any(joined.ticks[1:] < joined.ticks[:-1]):  # a frame arrived late
                    joined = joined.select(np.argsort(joined.ticks, kind="stable"))
                self._waiting[name] = replace(joined, early=None)
            if name in self.sketches and track.early is not None:
                self._add_early(name, track.early, start + 1)

    def _add_early(self, name: str, early: EarlyFrames, first: int) -> None:
        """Keep early frames while one may replace a whole frame."""
        if not self._begins or self.sketches[name].frames > 1:
            return
        usable = self._features[name].kind.counting(early.values)
        early = early if usable is None else early.select(usable)
        early = replace(early, ticks=np.maximum(early.ticks, first))
        early = early.select(early.ticks > self.tick)  # a resumed stream has the current one
        before = self._early.get(name)
        self._early[name] = early if before is None else before.joined(early)

    def moments(self, ticks: list[int], *, everything: bool = False) -> Moments:
        """Compute the totals at these increasing ticks, which have all arrived.

        If ``everything``, the stream is over, and frames after the last tick count at that tick.
        """
        ahead = self._ahead[: ticks[-1] - self.tick]
        speech = self._speech + np.concatenate(([0], np.cumsum(ahead)))
        running: dict[str, RunningTotals] = {}
        usable: dict[str, IntArray] = {}
        fresh: dict[str, tuple[AnyArray, IntArray]] = {}
        for name in self._followed:
            if name in self._waiting:  # ready-made frames bring no levels
                track, selection, counts = self._select_due(name, ticks, everything)
                fresh[name] = track.values[selection], counts
        for name, sketch in self.sketches.items():
            track, selection, counts = self._select_due(name, ticks, everything)
            fresh[name] = track.values[selection], counts
            totals, frames = sketch.totals_after(track.values[selection], counts)
            seconds = frames * self._features[name].frame_seconds
            if track.spans is not None or name in self._usable:
                if track.spans is None:
                    more = np.rint(counts * self._frame_ticks(name)).astype(np.intp)
                else:
                    spans = track.spans[selection]
                    more = np.concatenate(([0], np.cumsum(spans[:, 1] - spans[:, 0])))[counts]
                usable[name] = self._usable.get(name, 0) + more
                seconds = usable[name] / TICKS_PER_SECOND
            # an early frame after this tick has speech that no whole frame has
            last = np.concatenate(([-1], track.ticks))[selection.start + counts]
            running[name] = RunningTotals(
                totals, frames, seconds, *self._compute_early(name, ticks, frames, last)
            )
        return Moments(ticks, speech[np.array(ticks) - self.tick], running, usable, fresh)

    def _compute_early(
        self, name: str, ticks: list[int], frames: IntArray, last: IntArray
    ) -> tuple[AnyArray | None, IntArray | None]:
        """Compute what early frames add at these ticks, and seconds of these and whole ones."""
        early = self._early.get(name)
        if early is None or not early.ticks.size or (frames > 1).all():
            return None, None
        index = np.searchsorted(early.ticks, ticks, side="right") - 1
        is_early = (index >= 0) & (frames <= 1) & (early.ticks[index] > last)
        window = self._features[name].frame_seconds
        weight = np.where(frames > 0, early.shares(window)[index], 1.0) * is_early
        values = self._features[name].kind.addends(early.values[index])
        seconds = np.rint(frames * window).astype(np.intp) + early.seconds[index]
        return values * weight[:, None], seconds * is_early

    def _select_early(self) -> dict[str, EarlyFrames]:
        """Select the current and later early frames, of speech that no whole frame has."""
        usable = {}
        for name, early in self._early.items():
            if self.sketches[name].frames > 1:
                continue
            learnt = self._waiting.get(name, _NOTHING).within(-1, self.tick).ticks
            if learnt.size:
                early = early.select(early.ticks > learnt[-1])
            stands = max(np.searchsorted(early.ticks, self.tick, "right") - 1, 0)
            usable[name] = early.select(slice(stands, None))
        return usable

    def _select_due(
        self, name: str, ticks: list[int], everything: bool
    ) -> tuple[Track, slice, IntArray]:
        """Return a track, its frames up to the last of these ticks, and their counts by each."""
        track = self._waiting.get(name, _NOTHING)
        first, *ends = np.searchsorted(track.ticks, [self.tick, *ticks], side="right").tolist()
        if everything:
            ends[-1] = len(track.ticks)
        return track, slice(first, ends[-1]), np.array(ends) - first

    def learn(self, moments: Moments, r: int) -> None:
        """Add everything up to one of these moments to the sketches."""
        for name, sketch in self.sketches.items():
            running = moments.totals[name]
            sketch.total[:] = running.totals[r]
            sketch.frames = int(running.frames[r])
        for name, ticks in moments.usable.items():
            self._usable[name] = int(ticks[r])
        self._ahead = self._ahead[moments.ticks[r] - self.tick :]
        self.tick, self._speech = moments.ticks[r], int(moments.speech[r])

    def correct(self, corrections: Iterable[Correction]) -> None:
        """Add corrections, in order of their ticks."""
        # a resumed stream already contains earlier corrections
        self._corrections += [
            correction for correction in corrections if correction.tick >= self.tick
        ]

    @property
    def learnable(self) -> int:
        """Ticks before the next correction."""
        if not self._corrections:
            return self.waiting
        return min(self.waiting, self._corrections[0].tick - self.tick)

    def pop_corrections(self) -> Iterator[Correction]:
        """Yield the corrections that are due, to be applied by `apply`."""
        while self._corrections and self._corrections[0].tick <= self.tick:
            yield self._corrections.pop(0)

    def apply(self, correction: Correction) -> None:
        """Correct the totals, except for ticks up to `uncorrected`."""
        counts = correction.counts[correction.speech > self.uncorrected]
        self._speech += 2 * int(np.count_nonzero(counts)) - counts.size
        for name in self.sketches.keys() & correction.frames.keys():
            change = correction.frames[name]
            inside = change.ticks > self.uncorrected
            counts = change.counts[inside]
            self.sketches[name].correct(change.values[inside], counts)
            if change.spans is not None and name in self._usable:
                lengths = np.diff(change.spans[inside], axis=1)[:, 0]
                self._usable[name] += int(lengths @ np.where(counts, 1, -1))
        for name, early in correction.early.items():
            later = self._early.pop(name, None)
            parts = [frames for frames in (early, later) if frames is not None]
            if later is not None:
                parts[-1] = later.select(later.ticks > correction.tick)
            if parts and self._begins:
                self._early[name] = reduce(EarlyFrames.joined, parts)

    def forget(self) -> None:
        """Reset the sketches and the speech time. The stream continues."""
        self.uncorrected = self.tick
        for sketch in self.sketches.values():
            sketch.total[:] = 0
            sketch.frames = 0
        self._usable, self._speech, self.carried = {}, 0, None
        self._early, self._begins = {}, False  # an unfinished window may have forgotten speech

    def tidy(self, *, everything: bool = False) -> None:
        """Drop frames that are in the sketches. Copy the others, to release their long blocks."""
        self._ahead = self._ahead.copy()
        self._early = self._select_early()
        for name, track in self._waiting.items():
            is_pending = (
                np.zeros(len(track.ticks), np.bool_) if everything else track.ticks > self.tick
            )
            self._waiting[name] = track.select(is_pending)

    def state(self) -> tuple[AccumulatorState, dict[str, AnyArray]]:
        """Return the accumulated state: plain values and arrays."""
        plain: AccumulatorState = {
            "tick": self.tick,
            "speech": self._speech,
            "frames": {name: sketch.frames for name, sketch in self.sketches.items()},
            "usable": dict(self._usable),
            "begins": self._begins,
        }
        arrays = {f"sketch/{name}": s.total for name, s in self.sketches.items()}
        for name, early in self._select_early().items():
            if early.ticks.size and early.ticks[0] <= self.tick:
                arrays[f"early/{name}"] = early.values[0]
                arrays[f"early_at/{name}"] = np.array([early.ticks[0], early.seconds[0]])
        if (carried := self.carried) is not None:
            plain["carried"], more = carried.state("carried")
            arrays |= more
        return plain, arrays

    def restore(self, plain: AccumulatorState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state`` into an unused object. Then add frames again from the first tick."""
        if set(plain["frames"]) != set(self.sketches):
            raise StoreError(f"the checkpoint does not fit: it is not of {'+'.join(self.sketches)}")
        for name, sketch in self.sketches.items():
            total = arrays.get(f"sketch/{name}")
            if total is None or total.shape != sketch.total.shape:
                raise StoreError(f"the checkpoint does not fit: it has no such sketch of {name}")
            sketch.total[:] = total
            sketch.frames = int(plain["frames"][name])
        self.tick, self._speech = int(plain["tick"]), int(plain["speech"])
        self._usable = {name: int(ticks) for name, ticks in plain["usable"].items()}
        self._begins = bool(plain.get("begins", False))  # older checkpoints lack this
        for name in self.sketches:
            if (value := arrays.get(f"early/{name}")) is not None:
                tick, seconds = arrays[f"early_at/{name}"].tolist()
                if value.shape != self.sketches[name].total.shape:
                    raise StoreError(f"the checkpoint does not fit: another early frame of {name}")
                self._early[name] = EarlyFrames(np.array([tick]), value[None], np.array([seconds]))
        self.carried = FeatureTotals.restored("carried", plain.get("carried"), arrays)
