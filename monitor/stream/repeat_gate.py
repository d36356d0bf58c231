"""Exclusion of audio that repeats earlier audio of a stream.

`RepeatFinder` finds a repetition a second or two after it began, so the totals are then corrected.
During a repetition, further audio waits for the next search, and is then dropped or counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from monitor.features.channel import CONDITION
from monitor.features.framing import attributes_without, join_tracks
from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.maths.condition import ROW
from monitor.maths.landmarks import FRAME_TICKS, FRAMES_PER_SECOND, StreamLandmarks
from monitor.maths.repeats import BACK_TICKS, KEPT_TICKS, LATE_TICKS, NAME, WaveformPast
from monitor.stream.copies import LandmarkWindows
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    BoolArray,
    EarlyFrames,
    FloatArray,
    Frames,
    IntArray,
    Notice,
    SpeechWindow,
    Track,
)

_NEW, _WAITS, _REPEATS = 1, 2, 0
_FAR = int(np.iinfo(np.intp).max)
_REMEMBERED_TICKS = 60 * TICKS_PER_SECOND  # for which speech decisions are kept: windows are long
_LOGGED_TICKS = BACK_TICKS + 2 * TICKS_PER_SECOND  # for which frames are kept, to be corrected
_LEAST_WINDOW_SHARE = 0.4  # minimum new fraction of a window that counts without its speech

RECALLED_TICKS = _LOGGED_TICKS + 4 * TICKS_PER_SECOND
"""Ticks before a checkpoint in which a resumed stream needs the frames."""
LEAST_SHARE = 0.6
"""Minimum fraction of half seconds of a window found before, if only landmarks decide."""
LEAST_CELLS = 6
_NEWEST = 4  # last half seconds of the window, of which all but one must repeat
_LANDMARK_TICKS = 5 * TICKS_PER_SECOND  # between searches by landmarks
_POINTED_TICKS = 10 * TICKS_PER_SECOND  # for which a distance found by landmarks is tried


@dataclass(frozen=True, slots=True)
class FrameChange:
    """Frames, shape (k,), that count from now on (``counts``) or no longer count."""

    ticks: IntArray
    values: AnyArray
    spans: IntArray | None
    counts: BoolArray


@dataclass(frozen=True, slots=True)
class Correction:
    """Change of weights, applied after a tick."""

    tick: int  # tick after which it applies
    speech: IntArray  # shape (k,), ticks of speech that count from now on, or no longer count
    counts: BoolArray  # shape (k,), whether each of them counts
    frames: Mapping[str, FrameChange]  # changed frames by feature
    # by feature, the early frame that counts from now on, or None
    early: Mapping[str, EarlyFrames | None]

    @property
    def since(self) -> int:
        """Earliest changed tick."""
        ticks = [self.speech, *(change.ticks for change in self.frames.values())]
        return min((int(array.min()) for array in ticks if array.size), default=self.tick)


@dataclass(slots=True)
class FrameLog:
    """Recent frames of one feature, whether they count, and their counted values."""

    track: Track
    counts: BoolArray
    values: AnyArray
    parts: dict[tuple[int, bytes], AnyArray] = field(default_factory=dict)  # embedded window parts
    early: EarlyFrames | None = None
    ahead: Track | None = None  # frames of later ticks

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes that a snapshot keeps, without values equal to the track's."""
        track, values = self.track, self.values
        if track.windows is not None:
            windows = tuple(replace(window, runs=None) for window in track.windows)
            track = replace(track, windows=windows)
        plain = {"counts": self.counts, "parts": self.parts, "early": self.early}
        same = None if np.array_equal(values, track.values) else values
        return {**plain, "ahead": self.ahead, "track": track, "values": same}

    def resume(self) -> None:
        """Continue from a snapshot's attributes."""
        self.values = self.track.values if self.values is None else self.values

    @property
    def is_idle(self) -> bool:
        """True if no frame is ahead of the clock."""
        return self.ahead is None or self.ahead.is_empty


class RepeatGate:
    """Gate that excludes repeated audio, and corrects the totals afterwards.

    If only part of a window of speech is new, ``embed_part`` embeds this part, by feature. If the
    speech is not stored, the whole embedding is weighted by the new fraction.
    """

    def __init__(
        self, specs: Mapping[str, FeatureSpec], embed_part: Callable[[str, FloatArray], AnyArray]
    ) -> None:
        self._specs, self._embed_part = dict(specs), embed_part
        none = {name: spec.no_frames() for name, spec in self._specs.items()}
        none[CONDITION] = Track(np.empty(0, np.intp), np.empty((0, ROW), np.int32))
        self._logs = {
            name: FrameLog(track, np.empty(0, np.bool_), track.values)
            for name, track in none.items()
        }
        self._first = self._end = 0  # ticks before the kept ones, and all ticks
        self._status = np.empty(0, np.int8)
        self._speech = np.empty(0, np.bool_)
        self._default = _NEW  # of ticks to come
        self._recording, self._began = 0, 0
        self._noticed: set[int] = set()
        self._notices: list[tuple[int, Notice]] = []
        self._repeated = 0  # ticks of speech

    @property
    def seconds(self) -> float:
        """Excluded speech in seconds."""
        return self._repeated / TICKS_PER_SECOND

    def pop_notices(self) -> list[tuple[int, Notice]]:
        """Return the notices since the last call, as (tick, Notice), each once per recording."""
        notices, self._notices = self._notices, []
        return notices

    def select_new_windows(
        self, tracks: Mapping[str, Track]
    ) -> dict[str, list[tuple[SpeechWindow, AnyArray]]]:
        """Select windows of speech without repetitions, with their embeddings, by feature."""
        return {
            name: [
                (window, value)
                for window, value in zip(track.windows, track.values, strict=False)
                if self._are_new(window.ticks).all()
            ]
            for name, track in tracks.items()
            if track.windows is not None
        }

    def process(
        self, frames: Frames, recording: int, decisions: Sequence[Decision], *, last: bool = False
    ) -> tuple[Frames, list[Correction]]:
        """Process further ticks; return the frames that count at once, and corrections.

        ``decisions`` are those within these ticks. ``last`` is true at the end of the stream.
        """
        start, arrived = self._end, self._end + len(frames.speech)
        if recording != self._recording:
            self._recording, self._began = recording, start
        idle = {
            name: track if track.windows is None else replace(track, windows=None)
            for name, track in frames.tracks.items()
            if name in self._logs and track.is_empty and self._logs[name].is_idle
        }
        waiting = {
            name: self._joined(name, frames.tracks.get(name))
            for name in self._logs
            if name not in idle
        }
        passed: dict[str, list[Track]] = {name: [] for name in waiting}
        counts, corrections = [np.empty(0, np.bool_)], list[Correction]()
        for decision in (*decisions, None):
            end = arrived if decision is None else decision.tick
            counts.append(self._extend(frames.speech[self._end - start : end - start]))
            horizon = _FAR if last else end
            for name, track in waiting.items():
                passed[name].append(self._pass(name, track.within(-1, horizon)))
                waiting[name] = track.within(horizon, _FAR)
            if decision is not None:
                corrections += self._decide(decision)
                self._forget()
        for name, track in waiting.items():
            self._logs[name].ahead = track
        tracks = {name: reduce(join_tracks, parts) for name, parts in passed.items()}
        counted = frames.speech & np.concatenate(counts)
        tracks = {**frames.tracks, **idle, **tracks}
        return replace(frames, speech=counted, tracks=tracks), corrections

    def _joined(self, name: str, track: Track | None) -> Track:
        """Return frames that were ahead of the clock, joined with further ones, in order."""
        ahead = self._logs[name].ahead
        fresh = self._logs[name].track.select(slice(0)) if track is None else track
        early = fresh.early
        if early is not None:
            early = replace(early, ticks=np.maximum(early.ticks, self._end + 1))
        fresh = replace(fresh, ticks=np.maximum(fresh.ticks, self._end + 1), early=early)
        joined = fresh if ahead is None else join_tracks(ahead, fresh)
        if np.any(joined.ticks[1:] < joined.ticks[:-1]):
            order = np.argsort(joined.ticks, kind="stable")
            joined = replace(joined.select(order), early=joined.early)
        return joined

    def _extend(self, speech: BoolArray) -> BoolArray:
        """Add speech decisions on further ticks; return which ticks count at once."""
        self._speech = np.concatenate((self._speech, speech))
        self._status = np.append(self._status, np.full(speech.size, self._default, np.int8))
        self._end += speech.size
        return np.full(speech.size, self._default == _NEW)

    def _pass(self, name: str, track: Track) -> Track:
        """Log frames; return those that count now, with their values."""
        log, early = self._logs[name], track.early
        if early is not None:
            log.early = early if log.early is None else log.early.joined(early)
            early = early.select(self._are_early_new(early))
        if not track.ticks.size:
            return replace(track, early=early, windows=None)
        track = replace(track, early=None)
        counts, values = self._weigh(name, track)
        log.track = join_tracks(log.track, track)
        log.counts = np.append(log.counts, counts)
        log.values = np.concatenate((log.values, values))
        return replace(replace(track, values=values, windows=None).select(counts), early=early)

    def _weigh(self, name: str, track: Track) -> tuple[BoolArray, AnyArray]:
        """Return which frames count, and their values."""
        if (self._status == _NEW).all():
            return np.ones(track.ticks.size, np.bool_), track.values
        if name == CONDITION:  # a row describes a second of sound
            sums = np.concatenate(([0], np.cumsum(self._status == _NEW)))
            last = np.maximum(track.ticks - self._first, 0)
            first = np.maximum(last - TICKS_PER_SECOND, 0)
            return sums[last] - sums[first] >= (last - first) / 2, track.values
        if self._specs[name].kind is not EMBEDDING:
            return self._are_new(track.first_ticks), track.values
        if track.windows is None:
            ticks = round(self._specs[name].frame_seconds * TICKS_PER_SECOND)
            shares = self._new_shares(track.ticks, np.full(track.ticks.size, ticks))
            values = (track.values * shares[:, None]).astype(track.values.dtype)
            return shares >= _LEAST_WINDOW_SHARE, values
        counts, values = np.ones(track.ticks.size, np.bool_), track.values.copy()
        for i, window in enumerate(track.windows):
            is_new = self._are_new(window.ticks)
            if not is_new.all() and not window.has_sound:  # a snapshot dropped its speech
                counts[i], values[i] = (
                    is_new.mean() >= _LEAST_WINDOW_SHARE,
                    is_new.mean() * values[i],
                )
            elif not is_new.all():
                embedded = self._embed_new(name, window, is_new)
                counts[i], values[i] = len(embedded), embedded.sum(axis=0)
        return counts, values

    def _embed_new(self, name: str, window: SpeechWindow, is_new: BoolArray) -> AnyArray:
        parts, key = self._logs[name].parts, (int(window.ticks[-1]), is_new.tobytes())
        if key not in parts:
            parts[key] = self._embed_part(name, window.samples[is_new])
        return parts[key]

    def _are_new(self, ticks: IntArray) -> BoolArray:
        """Return which ticks are new; ticks that are no longer kept count as new."""
        places = np.clip(ticks - self._first - 1, -1, self._status.size - 1)
        return np.asarray((places < 0) | (self._status[places] == _NEW))

    def _new_shares(self, ticks: IntArray, lengths: IntArray) -> FloatArray:
        """Compute the new fraction of the last ``lengths`` ticks of speech before each tick."""
        speech = np.flatnonzero(self._speech)
        new = np.concatenate(([0], np.cumsum(self._status[speech] == _NEW)))
        last = np.searchsorted(speech, ticks - self._first, side="left")
        first = np.maximum(last - lengths, 0)
        return np.asarray((new[last] - new[first]) / np.maximum(last - first, 1))

    def _are_early_new(self, early: EarlyFrames) -> BoolArray:
        if (self._status == _NEW).all():
            return np.ones(early.ticks.size, np.bool_)
        shares = self._new_shares(early.ticks, early.seconds * TICKS_PER_SECOND)
        return np.asarray(shares == 1)

    def _decide(self, decision: Decision) -> Iterator[Correction]:
        """Apply a decision to the kept ticks; yield a correction if anything changed."""
        early = {n: self._are_early_new(g.early) for n, g in self._logs.items() if g.early}
        before = self._status.copy()
        self._judge(decision)
        if np.array_equal(before, self._status):
            return
        repeated = (self._status == _REPEATS) & (before != _REPEATS) & self._speech
        self._repeated += int(np.count_nonzero(repeated))
        if repeated.any() and self._recording not in self._noticed:
            self._noticed.add(self._recording)
            text = (
                "this audio repeats earlier audio of the stream. It adds no evidence and is "
                "excluded"
            )
            self._notices.append((decision.tick, Notice("repeated", text)))
        counts = self._status == _NEW
        changed = np.flatnonzero((counts != (before == _NEW)) & self._speech)
        changes = {name: change for name in self._logs if (change := self._recount(name))}
        yield Correction(
            decision.tick,
            self._first + 1 + changed,
            counts[changed],
            changes,
            {
                n: self._newest_early(n, decision.tick)
                for n in early
                if self._has_other(n, early[n], changes)
            },
        )

    def _judge(self, decision: Decision) -> None:
        ticks = self._first + 1 + np.arange(self._status.size)
        for begin, end in decision.intervals:
            inside = (ticks > begin) & (ticks <= end)
            # ticks that earlier recordings counted do not change
            self._status[inside & ((ticks > self._began) | (self._status == _WAITS))] = _REPEATS
        waits_from = decision.waits_from
        self._default = _NEW if waits_from is None else _WAITS
        late = ticks > (_FAR if waits_from is None else max(waits_from, self._began))
        self._status[late & (self._status == _NEW)] = _WAITS
        self._status[~late & (self._status == _WAITS)] = _NEW

    def _recount(self, name: str) -> FrameChange | None:
        """Weigh the logged frames again; return the changed ones."""
        log = self._logs[name]
        before, values = log.counts, log.values
        log.counts, log.values = self._weigh(name, log.track)
        same = np.all(values == log.values, axis=tuple(range(1, values.ndim))) & log.counts & before
        gone, come = np.flatnonzero(before & ~same), np.flatnonzero(log.counts & ~same)
        if not gone.size + come.size:
            return None
        track = log.track.select(np.concatenate((gone, come)))
        values = np.concatenate((values[gone], log.values[come]))
        return FrameChange(track.ticks, values, track.spans, np.arange(len(values)) >= gone.size)

    def _has_other(self, name: str, before: BoolArray, changes: Mapping[str, FrameChange]) -> bool:
        """Return whether another early frame may count now."""
        early = self._logs[name].early
        if early is None:
            return False
        return name in changes or not np.array_equal(before, self._are_early_new(early))

    def _newest_early(self, name: str, tick: int) -> EarlyFrames | None:
        """Return the newest early frame of new speech after the last counted frame, or None."""
        log = self._logs[name]
        if log.early is None:
            return None
        counted = log.track.ticks[log.counts]
        after = counted[-1] if counted.size else -1
        new = np.flatnonzero(self._are_early_new(log.early) & (log.early.ticks > after))
        if not new.size:
            return None
        return replace(log.early.select(new[-1:]), ticks=np.array([tick + 1]))

    def _forget(self) -> None:
        if (over := self._end - _REMEMBERED_TICKS - self._first) > 0:
            self._status, self._speech = self._status[over:].copy(), self._speech[over:].copy()
            self._first += over
        for log in self._logs.values():
            old = int(np.searchsorted(log.track.ticks, self._end - _LOGGED_TICKS))
            if old:
                log.track = log.track.select(slice(old, None))
                log.counts, log.values = log.counts[old:].copy(), log.values[old:].copy()
            if log.parts:
                since = log.track.ticks[0] if log.track.ticks.size else self._end
                log.parts = {key: value for key, value in log.parts.items() if key[0] >= since}
            if log.early is not None:
                log.early = log.early.select(log.early.ticks > self._end - _LOGGED_TICKS)


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of one search for repeated audio."""

    tick: int  # tick after which the decision applies
    intervals: tuple[tuple[int, int], ...]  # repeated audio, (begin, end] in ticks
    # tick after which audio waits for the next search; None if audio counts at once
    waits_from: int | None


class RepeatFinder:
    """Finder of audio that repeats earlier audio of a stream. It searches once per second.

    The waveform of the last 25 s is compared at every distance, and that of the last ten minutes at
    distances suggested by landmarks. Further back, up to two hours, only landmarks decide. The
    result does not depend on how the audio is cut. Checkpoints contain none of it.
    """

    def __init__(self) -> None:
        self._windows, self._own = LandmarkWindows(), StreamLandmarks()
        self._windows.every = _LANDMARK_TICKS
        self._past = WaveformPast()
        self._rows: list[Track] = []  # waveform that is not in the past yet
        self._pointers: list[tuple[int, list[float]]] = []  # ticks, and distances in ticks
        self._old: list[tuple[int, tuple[int, int]]] = []  # ticks, and intervals by landmarks alone
        self._looked = 0  # tick of the last search
        self._since = 0  # tick from which on there is a waveform

    def snapshot_attributes(self) -> dict[str, object]:
        """Return the attributes for a snapshot: landmarks, without the waveform."""
        return {**attributes_without(self, "_past", "_rows"), "_since": self._looked}

    def update(self, frames: Frames, arrived: int) -> list[Decision]:
        """Process further ticks; return their decisions, the last one at their end."""
        if NAME in frames.tracks:
            self._rows.append(frames.tracks[NAME])
        for tick, times, pitches in self._windows.update(frames, arrived):
            self._compare(tick, times, pitches)
        decisions = []
        while self._looked + TICKS_PER_SECOND <= arrived:
            self._looked += TICKS_PER_SECOND
            decisions.append(self._search(self._looked - 1, self._looked - LATE_TICKS))
        return decisions

    def finish(self, arrived: int) -> Decision:
        """Return the decision at the end of the stream, after which no audio waits."""
        decision = self._search(arrived, arrived)
        return replace(decision, waits_from=None)

    def _search(self, tick: int, newest_tick: int) -> Decision:
        """Search for earlier occurrences of the second before ``newest_tick``."""
        self._add_rows(newest_tick)
        distances = [
            distance
            for since, distances in self._pointers
            if since <= tick
            for distance in distances
        ]
        repetition = self._past.look(newest_tick, distances)
        intervals = list(repetition.intervals)
        intervals += [interval for since, interval in self._old if since <= tick]
        self._old = [interval for interval in self._old if interval[0] > tick]
        self._pointers = [
            pointer for pointer in self._pointers if pointer[0] > tick - _POINTED_TICKS
        ]
        return Decision(tick, tuple(intervals), newest_tick if repetition.goes_on else None)

    def _add_rows(self, newest_tick: int) -> None:
        """Add the waveform up to a tick, always in the same portions."""
        waiting = []
        for track in self._rows:
            ticks = track.first_ticks
            count = int(np.searchsorted(ticks, newest_tick, side="right"))
            self._past.add(ticks[:count], track.values[:count])
            if count < ticks.size:
                waiting.append(track.select(slice(count, None)))
        self._rows = waiting

    def _compare(self, tick: int, times: IntArray, pitches: IntArray) -> None:
        """Look up the landmarks of the last ten seconds among all before them."""
        repeated, frames = self._own.find_repeats(times, pitches)
        distances = [distance * FRAME_TICKS for distance in frames]
        reach = min(KEPT_TICKS, tick - self._since)
        if near := [distance for distance in distances if distance <= reach]:
            self._pointers.append((tick, near))
        elif distances and is_repetition(times, repeated):
            first, last = times[repeated][[0, -1]].tolist()
            self._old.append((tick, (first * FRAME_TICKS, (last + 1) * FRAME_TICKS)))


def is_repetition(times: IntArray, before: BoolArray) -> bool:
    """Return whether most of a window, and its end, repeats earlier audio.

    ``times`` are frames of the window's landmarks, non-decreasing. ``before`` marks those that
    occurred before.
    """
    if not before.any():  # the usual case
        return False
    cells, cell = np.unique(times * 2 // FRAMES_PER_SECOND, return_inverse=True)
    is_counted = np.bincount(cell, minlength=cells.size) >= 2
    again = (np.bincount(cell, before, cells.size) >= 2)[is_counted]
    if again.size < LEAST_CELLS or again.mean() < LEAST_SHARE:
        return False
    return bool(again[-_NEWEST:].sum() >= _NEWEST - 1)
