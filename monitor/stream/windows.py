"""Evidence of all parts of a recording that end now, for listeners who start later.

The totals of a part are those at its end minus those at its start. An embedding cannot be split,
and a later listener cuts the speech into other windows. Overlapping windows represent these.

Speech detection depends on the exact beginning of a recording, even within a tick. In the first
seconds of speech, this changes many bits. So listeners who begin every `LISTENER_SECONDS` are
followed for this time.
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from monitor.features.embeddings import SpeechWindows
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import AudioFeature
from monitor.features.registry import make
from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.maths.condition import Condition
from monitor.protocols import Feature
from monitor.stream.accumulator import FrameAccumulator
from monitor.stream.clocks import BlocksToTicks
from monitor.stream.monitor import Monitor
from monitor.stream.totals import FeatureTotals, RunningTotals, stack_totals
from monitor.types import TICKS_PER_SECOND, Block, FloatArray, Frames, IntArray, Track

BACK_SECONDS = 20.0
"""Seconds of sound in which all starts are examined. Before, only the recording's beginning is."""
CLOSE_SECONDS = 6.0
"""Seconds of speech up to which the whole is also cut into windows as by a listener."""
LISTENER_SECONDS = 0.75
"""Minimum seconds between the beginnings of two listeners."""
RATE = 16_000
_TICK = RATE // TICKS_PER_SECOND
_GRID = 51  # ticks of speech from one window to the next: odd, as the network takes every other
_HALF = 50  # ticks that an overlapping window counts for
_SHORT = 100  # ticks of a short window; the network embeds shorter ones poorly
_LEAST = 70  # ticks that another recording may count as a second
_EARLY_WINDOWS = 2
_FRESH_TICKS, _FRESH_SPEECH = 600, 200  # sound and speech for which a listener is followed
_SHORTER = 25  # ticks by which another recording may count less of the silence after a word
_UNOPENED_TICKS = 200  # ticks without speech after which later listeners make no difference
_KNOWN_TICKS, _QUIET_DB = 250, 40.0  # speech after which a listener may estimate this SNR
_PHASES = 0.33, 0.67  # fractions of a tick at which listeners to the whole begin
_PHASE_STEP = 0.44  # fraction of a tick from one later listener to the next
_UNBROKEN = 0  # length that marks a short window with its pauses


class _Ticks(AudioFeature):
    """The sound of a recording: one frame per tick, in which the last number is 1 for speech."""

    spec, follow = FeatureSpec("ticks", EMBEDDING, _TICK + 1, 0.01, RATE), None

    def __init__(self) -> None:
        self.activity = VoiceActivity()
        self._rest: FloatArray = np.empty(0, np.float32)
        self._ticks = 0
        super().__init__()

    def process(self, samples: FloatArray) -> Track:
        """Cut the ticks that these further samples, (n,), complete."""
        sound = np.concatenate((self._rest, samples))
        count = sound.size // _TICK
        self._rest = sound[count * _TICK :].copy()
        ticks = sound[: count * _TICK].reshape(count, _TICK)
        self._ticks += count
        at = np.arange(self._ticks - count, self._ticks) + 1
        return Track(at, np.column_stack((ticks, self.activity.process(samples))))

    def flush(self) -> Track:
        """Fill up the last tick with silence."""
        return self.process(np.zeros(-self._rest.size % _TICK, np.float32))

    def reset(self) -> None:
        super().reset()
        self.activity.reset()
        self._rest = self._rest[:0]
        self._ticks = 0


class _Start(NamedTuple):
    """Possible beginning of a part: tick of the recording, tick of its speech, totals before it."""

    tick: int
    spoken: int
    totals: FeatureTotals


@dataclass(slots=True)
class _Window:
    """Embedding of a window, shape (d,), which is empty until `WindowEvidence` computes it."""

    embedding: FloatArray


class _WindowSum(NamedTuple):
    """Sum of embeddings times weights. It counts as ``whole`` windows."""

    windows: list[_Window]
    weights: list[float]
    whole: int
    before: FloatArray | float = 0.0  # sum of earlier ones

    @property
    def total(self) -> FloatArray:
        """Sum, shape (d,), once all windows are embedded."""
        pairs = zip(self.weights, self.windows, strict=True)
        return np.asarray(sum((w * window.embedding for w, window in pairs), self.before))


_Row: TypeAlias = tuple[int, FeatureTotals, dict[str, _WindowSum]]
"""A part: its ticks of speech, its totals, and the windows of each feature."""


class _Sound:
    """A recording so far: its totals, and the speech of its last part."""

    def __init__(
        self,
        monitor: Monitor,
        names: list[str],
        *,
        silent_ticks: float = 0.0,
        is_whole: bool = False,
    ) -> None:
        self._silent_ticks = silent_ticks  # before its first sample
        self.is_whole = is_whole  # begins with the recording
        specs = {name: monitor.population.features[name].spec for name in names}
        features: list[Feature] = [*make(names, monitor.front_end.setup), _Ticks()]
        self._reader = BlocksToTicks(features, None, 0)
        self._accumulator = FrameAccumulator(specs)
        self._ticks = np.empty((0, _TICK), np.float32)
        self._speech: IntArray = np.empty(0, np.intp)  # indices of speech among these
        self.first = 0  # ticks of speech dropped so far
        self.windows: dict[tuple[str, int, int], _Window] = {}  # by feature, begin and length

    @property
    def spoken(self) -> int:
        return self.first + len(self._speech)

    @property
    def tick(self) -> int:
        return self._accumulator.tick

    @property
    def totals(self) -> FeatureTotals:
        return self._accumulator.totals

    @property
    def is_fresh(self) -> bool:
        """True until windows of the whole recording represent this one."""
        most = _FRESH_TICKS if self.spoken else _UNOPENED_TICKS
        return self.tick < most and self.spoken < _FRESH_SPEECH

    def take(self, block: Block) -> None:
        if self._silent_ticks:
            silence = np.zeros(round(self._silent_ticks / TICKS_PER_SECOND * block.rate))
            samples = np.concatenate((silence, block.samples), dtype=np.float32)
            block, self._silent_ticks = replace(block, samples=samples), 0.0
        for frames in self._reader.process(block):
            self._learn(frames)

    def ended(self, silence: Block) -> _Sound:
        end = copy(self)
        end._reader, end._accumulator = deepcopy(self._reader), self._accumulator.fork()
        end.take(silence)
        end._learn(end._reader.flush(), everything=True)
        return end

    def forget(self, spoken: int) -> None:
        """Forget sound before this tick of speech."""
        speech = self._speech[spoken - self.first :]
        begin = int(speech[0]) if len(speech) else len(self._ticks)
        self.first, self._speech, self._ticks = spoken, speech - begin, self._ticks[begin:].copy()
        self.windows = {key: window for key, window in self.windows.items() if key[1] >= spoken}

    def keep_real(self) -> None:
        """Drop windows that contain assumed silence."""
        self.windows = {key: w for key, w in self.windows.items() if self._has(*key[1:])}

    def _has(self, begin: int, length: int) -> bool:
        if length == _UNBROKEN:
            return self.unbroken(begin, _SHORT).size == _SHORT * _TICK
        return begin + length <= self.spoken

    def speech(self, begin: int, length: int) -> FloatArray:
        begin -= self.first
        return self._ticks[self._speech[begin : begin + length]].reshape(-1)

    def unbroken(self, begin: int, length: int) -> FloatArray:
        """Return sound from a tick of speech on, pauses included, shape (n,); less at the end."""
        index = begin - self.first
        first = self._speech[index] if index < len(self._speech) else len(self._ticks)
        return self._ticks[first : first + length].reshape(-1)

    def _learn(self, frames: Frames, *, everything: bool = False) -> None:
        accumulator = self._accumulator
        accumulator.add(frames)
        values = frames.tracks["ticks"].values
        speech = np.flatnonzero(values[:, _TICK]) + len(self._ticks)
        self._speech = np.concatenate((self._speech, speech))
        self._ticks = np.concatenate((self._ticks, values[:, :_TICK]))
        moments = accumulator.moments(
            [accumulator.tick + accumulator.waiting], everything=everything
        )
        accumulator.learn(moments, 0)
        accumulator.tidy(everything=everything)


class WindowEvidence:
    """Evidence of every part of a recording that ends now, as if silence followed.

    The ``monitor`` processes the same audio of the same voice. The figures are its headline.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        names = list(monitor.features)
        features = make(names, monitor.front_end.setup)
        self._embedders = {f.spec.name: f for f in features if isinstance(f, SpeechWindows)}
        self._summed = [name for name in names if name not in self._embedders]
        self._carried = monitor.totals - monitor.own_totals  # of earlier streams
        self._end: FeatureTotals | None = None  # of this recording, as if it ended
        self.before = self._carried - self._carried
        self.reset()

    @property
    def totals(self) -> FeatureTotals:
        """Totals of the whole audio so far, as if it ended where its figure was last computed."""
        return self.before if self._end is None else self.before + self._end

    def reset(self) -> None:
        """Begin another recording."""
        self.before, self._end = self.totals, None
        self._sound = _Sound(self._monitor, self._summed, is_whole=True)
        self._starts = [_Start(0, 0, self._sound.totals)]
        self._listeners = [  # recent ones
            _Sound(self._monitor, self._summed, silent_ticks=phase, is_whole=True)
            for phase in _PHASES
            if self._embedders
        ]
        self._heard = 0.0  # seconds of sound
        self._begun = -LISTENER_SECONDS  # seconds of sound before the last listener
        self._sums = {name: np.zeros(self._size(name)) for name in self._embedders}
        # windows that have no embedding yet, and their sound, by feature
        self._waiting: dict[str, list[tuple[_Window, FloatArray]]] = {
            name: [] for name in self._embedders
        }
        self._counted = 0  # windows of the grid in these sums

    def _size(self, name: str) -> int:
        return self._monitor.population.features[name].spec.size

    def _share(self, name: str) -> float:
        """Return the fraction of a window that is a second, which scales its embedding."""
        return _SHORT / self._window_ticks(name)

    def _window_ticks(self, name: str) -> int:
        return round(self._monitor.population.features[name].spec.frame_seconds * TICKS_PER_SECOND)

    def take(self, block: Block) -> None:
        """Process further sound, one channel."""
        self._heard += block.seconds
        for sound in (self._sound, *self._listeners):
            sound.take(block)

    def mark(self) -> None:
        """Begin a part here, and a listener if the last one began long enough ago."""
        sound = self._sound
        oldest = sound.tick - round(BACK_SECONDS * TICKS_PER_SECOND)
        beginning, *later = self._starts
        later = [start for start in later if start.tick >= oldest]
        self._starts = [beginning, *later, _Start(sound.tick, sound.spoken, sound.totals)]
        first = min(self._starts[1].spoken // _GRID, self._next) * _GRID
        while self._counted < first // _GRID:
            for name in self._embedders:
                window = self._window(name, sound, self._counted * _GRID, _SHORT)
                self._embed_waiting()
                self._sums[name] += window.embedding
            self._counted += 1
        sound.forget(first)
        self._listeners = [listener for listener in self._listeners if listener.is_fresh]
        if self._embedders and self._heard - self._begun >= LISTENER_SECONDS:
            self._begun = self._heard
            phase = self._heard * TICKS_PER_SECOND * _PHASE_STEP % 1.0
            self._listeners.append(_Sound(self._monitor, self._summed, silent_ticks=phase))

    @property
    def _next(self) -> int:
        """Number of complete short windows."""
        return max(0, (self._sound.spoken - _SHORT) // _GRID + 1)

    def bits(self, silence: Block) -> float | None:
        """Return the most bits of any part if the recording ended after this silence, or None."""
        end = self._sound.ended(silence)
        rows = []
        for start in self._starts:
            if end.totals.speech > start.totals.speech and end.spoken > start.spoken:
                rows += self._rows(start, end)
        rows += self._last_seconds(end)
        ends = [(sound, sound.ended(silence)) for sound in self._listeners]
        if end.spoken <= CLOSE_SECONDS * TICKS_PER_SECOND and not end.first:
            ends.append((self._sound, end))
        for sound, ended in ends:
            rows += self._chain(ended, ended.spoken, is_early=True)
            if sound.is_whole:  # other recordings may count less of the silence at their end
                rows += self._chain(ended, sound.spoken)
            sound.keep_real()
        whole = {n: self._overlapping(n, 0, self._starts[0], end) for n in self._embedders}
        self._embed_waiting()
        self._end = self._whole(end, whole)
        earlier = self._carried + self.before
        if earlier.speech:
            totals = earlier + self._end
            windows = {
                name: _WindowSum([], [], totals.frames[name], totals.totals[name])
                for name in self._embedders
            }
            rows.append((totals.speech, totals, windows))
        self._sound.keep_real()
        return self._most(rows) if rows else None

    def _whole(self, end: _Sound, windows: dict[str, _WindowSum]) -> FeatureTotals:
        """Return the totals of the recording, with its speech in overlapping windows."""
        totals = end.totals
        return FeatureTotals(
            totals.speech,
            {**totals.totals, **{name: part.total for name, part in windows.items()}},
            {**totals.frames, **{name: part.whole for name, part in windows.items()}},
            {**totals.usable, **{n: p.whole * self._window_ticks(n) for n, p in windows.items()}},
        )

    def _last_seconds(self, end: _Sound) -> list[_Row]:
        """Return the last second of speech as parts, with all and with less of the silence.

        A listener who begins there has no other window.
        """
        if not self._embedders:
            return []
        rows, last = list[_Row](), end.spoken - _SHORT
        for begin in (last - _SHORTER, last) if end.spoken > self._sound.spoken else (last,):
            if begin >= self._sound.first:
                *_, start = (start for start in self._starts if start.spoken <= begin)
                windows = {
                    name: self._second(name, self._window(name, end, begin, _SHORT))
                    for name in self._embedders
                }
                rows.append((_SHORT, end.totals - start.totals, windows))
        return rows

    def _rows(self, start: _Start, end: _Sound) -> list[_Row]:
        totals = end.totals - start.totals
        rows = []
        begin = -(-start.spoken // _GRID) * _GRID
        if not self._embedders:
            return [(totals.speech, totals, {})]
        overlapping = {name: self._overlapping(name, begin, start, end) for name in self._embedders}
        if all(part.whole for part in overlapping.values()):
            rows.append((totals.speech, totals, overlapping))
        if totals.speech <= 2 * _SHORT and end.unbroken(begin, _SHORT).size == _SHORT * _TICK:
            windows = {n: self._second(n, self._unbroken(n, begin, end)) for n in self._embedders}
            rows.append((_SHORT, totals, windows))
        return rows

    def _overlapping(self, name: str, begin: int, start: _Start, end: _Sound) -> _WindowSum:
        """Return the sum of short windows, each for half a second."""
        last = end.spoken - _SHORT
        before: FloatArray | float = 0.0
        count, share = 0, _HALF / _SHORT
        if start.tick == 0:
            before, count = self._sums[name] * share, self._counted
            begin = self._counted * _GRID
        at = list(range(begin, last + 1, _GRID))
        if last >= begin and (not at or at[-1] != last) and last > self._sound.spoken - _SHORT:
            at.append(last)  # the last second, off the grid
        windows = [self._window(name, end, begin_tick, _SHORT) for begin_tick in at]
        count += len(windows)
        whole = int(np.ceil(count * share * self._share(name)))
        return _WindowSum(windows, [share] * len(windows), whole, before)

    def _chain(self, end: _Sound, spoken: int, *, is_early: bool = False) -> list[_Row]:
        """Return a recording up to these ticks of speech as a part, cut into windows.

        If early, it ends after the last whole second of its first windows. No row if too short.
        """
        windows, speech = {}, end.totals.speech
        for name in self._embedders:
            window = self._window_ticks(name)
            whole, last = divmod(spoken, window)
            seconds = max(last // _SHORT, int(last >= _LEAST))
            if is_early and (whole >= _EARLY_WINDOWS or not seconds):
                return []
            if is_early or _LEAST <= last < _SHORT:
                last = seconds * _SHORT
            sizes = [window] * whole + [last] * (last >= _SHORT)
            if not sizes:
                return []
            # if early, the first window counts as a whole one
            weights = [window / sizes[0] if is_early and k == 0 else 1.0 for k in range(len(sizes))]
            cut = [self._window(name, end, k * window, size) for k, size in enumerate(sizes)]
            windows[name] = _WindowSum(cut, weights, len(cut))
            speech = min(speech, max(0 if is_early else spoken, sum(sizes)))
        return [(speech, end.totals, windows)] if windows else []

    def _window(self, name: str, sound: _Sound, begin: int, length: int) -> _Window:
        """Return a window of speech; if speech is missing, repeat the end of it."""
        key = name, begin, length
        if key not in sound.windows:
            speech = sound.speech(begin, length)
            missing = length * _TICK - speech.size
            if missing:
                speech = np.concatenate((speech, speech[-missing:]))
            sound.windows[key] = self._new_window(name, speech)
        return sound.windows[key]

    def _new_window(self, name: str, sound: FloatArray) -> _Window:
        window = _Window(np.empty(0))
        self._waiting[name].append((window, sound))
        return window

    def _second(self, name: str, window: _Window) -> _WindowSum:
        """Return a window of a second that counts as a whole one."""
        return _WindowSum([window], [1 / self._share(name)], 1)

    def _embed_waiting(self) -> None:
        """Embed the windows that have no embedding yet, by their length, all at once."""
        for name, waiting in self._waiting.items():
            embeddings = self._embedders[name].embed_parts([sound for _, sound in waiting])
            for (window, _), embedding in zip(waiting, embeddings, strict=True):
                window.embedding = np.asarray(embedding, np.float64)
            waiting.clear()

    def _unbroken(self, name: str, begin: int, end: _Sound) -> _Window:
        """Return a second as if all of it were speech.

        In another recording, noise after a word may count as speech.
        """
        sound = end.unbroken(begin, _SHORT)
        if end.spoken >= begin + _SHORT and np.array_equal(sound, end.speech(begin, _SHORT)):
            return self._window(name, end, begin, _SHORT)
        key = name, begin, _UNBROKEN
        if key not in end.windows:
            end.windows[key] = self._new_window(name, sound)
        return end.windows[key]

    def _most(self, rows: list[_Row]) -> float | None:
        """Weigh parts; return the most bits.

        A listener who begins later estimates other conditions. Short parts are also weighed under
        unknown conditions, and as if their noise were known to be low.
        """
        unknown = Condition()
        now = self._monitor.conditions.now or unknown
        short = [row for row in rows if row[0] <= CLOSE_SECONDS * TICKS_PER_SECOND]
        long = [row for row in short if row[0] >= _KNOWN_TICKS and now.snr_db is None]
        quiet = replace(now, snr_db=_QUIET_DB)
        sounds = [now] * len(rows) + [unknown] * len(short) + [quiet] * len(long)
        rows = rows + short + long
        running, _ = stack_totals([part_totals for _, part_totals, _ in rows])
        for name in self._embedders:
            seconds = self._monitor.population.features[name].spec.frame_seconds
            totals = np.array([windows[name].total for _, _, windows in rows])
            frames: IntArray = np.array([windows[name].whole for _, _, windows in rows])
            running[name] = RunningTotals(totals, frames, frames * seconds)
        speech = np.array([speech for speech, _, _ in rows]) / TICKS_PER_SECOND
        attacker = self._monitor.attacker
        figures = attacker.figures(running, speech, {}, sounds)
        name = "evidence_bits" if self._monitor.headline == "evidence" else "closed_set_bits"
        if not attacker.watched and name == "closed_set_bits":
            name = "gain_bits"
        bits = figures[name]
        return None if np.isnan(bits).all() else float(np.nanmax(bits))
