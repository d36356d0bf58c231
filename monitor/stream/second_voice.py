"""Search for another voice that takes turns with the watched one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice, pairwise
from typing import NamedTuple, TypedDict

import numpy as np

from monitor.features.framing import join_tracks
from monitor.jobs import one_thread
from monitor.kinds import FeatureSpec
from monitor.phrases import stretches_in_words
from monitor.stream.attacker import Attacker
from monitor.stream.evidence import Mark, pack_marks, unpack_marks
from monitor.stream.segments import SegmentSelection
from monitor.stream.totals import FeatureTotals, stack_totals
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    FloatArray,
    Frames,
    Notice,
    SpeechWindow,
    Track,
    list_runs,
)

_SLOT = 50  # ticks of speech, of one voice
_LOOK = 3  # slots that are weighed together
_FAR = 1 << 62
_VOICES = ("ends with the other", "ends with the watched")
_LEAST = 2  # minimum slots of a run that the network can embed
_SHARED_BITS = 4.0  # range of looks at a window that two voices may share
_ALONE_BITS = 6.0  # minimum of all looks at a window of the watched voice alone
_OFF_BITS = 0.9  # subtracted per slot: the watched voice must exceed it
_CHANGE_BITS = 0.5  # cost of a change of voice
LEAST_SPEECH = 150
"""Minimum ticks of speech of either voice."""
LEAST_TURNS = 2
"""Minimum turns of the other voice."""
OWN_BITS, APART_BITS, HIDDEN_BITS = 4.0, 7.0, 1.0
"""Minimum bits of the watched voice's stretches: in total, more than the other voice's, and more
than the whole. A long talk always has a few seconds with few bits, which hide nothing."""
SURE_BITS = 2.0
"""Hidden bits at which another voice is certain at once. Fewer hidden bits need two windows of
speech in a row, since background talk lowers the figure of the whole only for a moment."""


class Turns(NamedTuple):
    """Most probable turns of two voices that end with one of them."""

    bits: float  # log2 of their probability, relative to turns without the watched voice
    watched: FeatureTotals  # watched, other: totals of each voice's stretches
    other: FeatureTotals
    others: int  # number of turns of the other voice


class Mixture(NamedTuple):
    """Both voices up to a tick, by turns that end with the other and with the watched voice.

    ``stands`` is true if another voice is certain. ``most`` has the bits of the most revealing look
    and the tick at which it ends. ``hidden`` has the bits that the other voice hides.
    """

    tick: int
    turns: tuple[Turns, Turns]
    stands: bool
    most: tuple[float, int] | None = None
    hidden: float = 0.0

    @property
    def counts(self) -> bool:
        """True if the watched voice's stretches count, also before another voice is certain."""
        return self.stands or self.hidden >= HIDDEN_BITS

    @property
    def likeliest(self) -> Turns:
        """The more probable turns."""
        return max(self.turns, key=lambda turns: turns.bits)


class SecondVoiceState(TypedDict):
    """Plain values of a `SecondVoice`, in a checkpoint."""

    tick: int
    heard: int
    stands: bool
    chosen: bool
    bits: list[float]
    counts: list[int]
    most: tuple[float, int] | None
    hidden: float


class SecondVoice:
    """Finder of another voice that takes turns with the watched one.

    Each slot of speech belongs to one of two voices. Its evidence comes from the looks that contain
    it. Viterbi's search over two states finds the likeliest turns and keeps their totals. ``embed``
    embeds part of a window of speech, shape (n, s), to (1, d).
    """

    def __init__(
        self,
        attacker: Attacker,
        specs: Mapping[str, FeatureSpec],
        embedded: str,
        embed: Callable[[FloatArray], AnyArray],
    ) -> None:
        self._attacker, self._embedded, self._embed = attacker, embedded, embed
        self._specs = {name: specs[name] for name in attacker.features}
        none = {name: spec.sketch().total for name, spec in self._specs.items()}
        counts = dict.fromkeys(none, 0)
        self._nothing = FeatureTotals(0, none, counts, counts)
        self._windows: list[tuple[SpeechWindow, AnyArray]] = []
        self._tracks: dict[str, Track] = {}
        self._tick = 0
        self.begin_afresh(0)

    def begin_afresh(self, tick: int) -> None:
        """Restart the search after a tick."""
        start = Turns(0.0, self._nothing, self._nothing, 0)
        self.now = Mixture(tick, (start._replace(others=1), start), stands=False)
        self.is_chosen = False
        self._ahead: list[Mixture] = []
        self._windows = [w for w in self._windows if w[0].ticks[0] > tick]

    def add(
        self, frames: Frames, windows: Mapping[str, Sequence[tuple[SpeechWindow, AnyArray]]]
    ) -> None:
        """Add further frames that count, and windows of speech since the last restart."""
        self._windows += [w for w in windows.get(self._embedded, ()) if w[0].ticks[-1] > self._tick]
        for name in self._specs:
            track = frames.tracks.get(name)
            if track is None or track.is_empty or name == self._embedded:
                continue
            track, before = track.within(self._tick, _FAR), self._tracks.get(name)
            self._tracks[name] = track if before is None else join_tracks(before, track)

    def look_ahead(self, ticks: Sequence[int]) -> list[Mixture]:
        """Return both voices at each of these increasing ticks, without any change of state."""
        self._follow(ticks[-1])
        mixtures = [self.now, *self._ahead]
        return [[m for m in mixtures if m.tick <= tick][-1] for tick in ticks]

    def advance(self, tick: int) -> Iterator[tuple[int, Notice]]:
        """Process the speech up to a tick; yield a notice with its tick, if any."""
        self._follow(tick)
        while self._ahead and self._ahead[0].tick <= tick:
            before, self.now = self.now, self._ahead.pop(0)
            if self.now.stands and not before.stands:
                yield self.now.tick, self._describe()
        self._tick = tick
        self._tracks = {n: track.within(self.now.tick, _FAR) for n, track in self._tracks.items()}

    def _describe(self) -> Notice:
        turns = self.now.likeliest
        watched_bits, whole_bits = self.bits([turns.watched, turns.watched + turns.other])
        alone = stretches_in_words("the watched voice", turns.watched.speech_seconds, watched_bits)
        text = f"{alone}, the whole {whole_bits:.1f}. The larger counts"
        seconds = turns.watched.speech_seconds, turns.other.speech_seconds
        names = "stretches_seconds", "other_seconds", "stretches_bits", "whole_bits"
        return Notice(
            "another voice",
            text,
            fields=dict(zip(names, (*seconds, watched_bits, whole_bits), strict=True)),
        )

    def select(
        self, mixtures: Sequence[Mixture], before: FeatureTotals | None
    ) -> SegmentSelection | None:
        """Select the watched voice's stretches at moments, with earlier streams, if they count."""
        if not any(mixture.counts for mixture in mixtures):
            return None
        owned = [mixture.likeliest.watched for mixture in mixtures]
        running, speech = stack_totals(
            [stretches if before is None else before + stretches for stretches in owned]
        )
        counts, stands = ([m.counts for m in mixtures], [m.stands for m in mixtures])
        return SegmentSelection(running, speech, np.array(counts), np.array(stands))

    @property
    def own_totals(self) -> FeatureTotals | None:
        """Totals of the watched voice's stretches; None if the last reading uses the whole."""
        return self.now.likeliest.watched if self.is_chosen else None

    def state(self) -> tuple[SecondVoiceState, dict[str, AnyArray]]:
        """Return what a replay of the stream would not restore: plain values and arrays."""
        plain: SecondVoiceState = {
            "tick": self._tick,
            "heard": self.now.tick,
            "stands": self.now.stands,
            "chosen": self.is_chosen,
            "bits": [turns.bits for turns in self.now.turns],
            "counts": [turns.others for turns in self.now.turns],
            "most": self.now.most,
            "hidden": self.now.hidden,
        }
        arrays: dict[str, AnyArray] = {}
        for voice, turns in zip(_VOICES, self.now.turns, strict=True):
            marks = [Mark(0, turns.watched), Mark(0, turns.other)]
            packed = pack_marks(marks, self._nothing)
            arrays |= {f"{voice}/{name}": array for name, array in packed.items()}
        for name, track in self._tracks.items():
            waiting = track.within(self.now.tick, self._tick)
            arrays |= {f"ticks of {name}": waiting.ticks, f"values of {name}": waiting.values}
            if waiting.spans is not None:
                arrays[f"spans of {name}"] = waiting.spans
        return plain, arrays

    def restore(self, plain: SecondVoiceState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``; KeyError or ValueError if it does not fit."""
        self._tick, self.is_chosen = int(plain["tick"]), bool(plain["chosen"])
        turns = []
        for voice, bits, number in zip(_VOICES, plain["bits"], plain["counts"], strict=True):
            watched, other = unpack_marks(f"{voice}/", arrays, self._nothing)
            turns.append(Turns(float(bits), watched.totals, other.totals, int(number)))
        strongest = (
            None if plain["most"] is None else (float(plain["most"][0]), int(plain["most"][1]))
        )
        tick, hidden = int(plain["heard"]), float(plain["hidden"])
        self.now = Mixture(tick, (turns[0], turns[1]), bool(plain["stands"]), strongest, hidden)
        for name in self._specs:
            if (ticks := arrays.get(f"ticks of {name}")) is not None:
                values, spans = arrays[f"values of {name}"], arrays.get(f"spans of {name}")
                self._tracks[name] = Track(ticks, values, spans)

    def _follow(self, tick: int) -> None:
        """Process the windows that are complete by a tick, all at once."""
        last = self._ahead[-1] if self._ahead else self.now
        start, complete = last.tick, []
        while self._windows and self._windows[0][0].ticks[-1] <= tick:
            complete.append(self._cut(start, *self._windows.pop(0)))
            start = complete[-1].end
        for slots, looks in zip(complete, self._look(complete), strict=True):
            last = self._add_window(last, slots, looks) if looks else last._replace(tick=slots.end)
            self._ahead.append(last)

    def _add_window(self, before: Mixture, slots: _Slots, looks: Sequence[float]) -> Mixture:
        """Return both voices after a further window of speech, from the bits of its looks."""
        size = slots.count - len(looks) + 1
        best = max(looks)
        last = int(slots.window.ticks[(looks.index(best) + size) * _SLOT - 1])
        strongest = max(filter(None, (before.most, (best, last))), key=lambda look: look[0])
        turns = find_turns(before.turns, _share(looks, size), slots)
        mixture = Mixture(slots.end, turns, before.stands, strongest)
        if before.stands:
            return mixture
        hidden = self._hidden_bits(mixture.likeliest)
        stands = hidden >= SURE_BITS or min(hidden, before.hidden) >= HIDDEN_BITS
        return mixture._replace(stands=stands, hidden=hidden)

    def _cut(self, start: int, window: SpeechWindow, value: AnyArray) -> _Slots:
        """Cut a window of speech, which begins after a tick, into slots."""
        ends = window.ticks[_SLOT - 1 :: _SLOT]
        counted: dict[str, tuple[list[AnyArray], list[int], list[int]]] = {}
        for name, track in self._tracks.items():
            spec = self._specs[name]
            parts = [track.within(a, b) for a, b in pairwise((start, *ends.tolist()))]
            totals = [spec.kind.total(frames.values, spec.size) for frames in parts]
            counts = [len(frames.ticks) for frames in parts]
            ticks = [
                round(count * spec.frame_seconds * TICKS_PER_SECOND)
                if frames.spans is None
                else int(np.diff(frames.spans, axis=1).sum())
                for frames, count in zip(parts, counts, strict=True)
            ]
            counted[name] = totals, counts, ticks
        return _Slots(len(ends), counted, self._embedded, window, value, self._embed, self._nothing)

    def _look(self, windows: Sequence[_Slots]) -> list[list[float]]:
        """Return the bits of each look at each window; embed runs of shared windows again."""
        looks = self._read_looks(windows)
        shared = [
            k
            for k, bits in enumerate(looks)
            if bits and min(bits) < _ALONE_BITS and max(bits) > max(0.0, min(bits) + _SHARED_BITS)
        ]
        for k in shared:
            windows[k].leave_runs()
        again = self._read_looks([windows[k] for k in shared])
        for k, bits in zip(shared, again, strict=True):
            looks[k] = bits
        return looks

    def _read_looks(self, windows: Sequence[_Slots]) -> list[list[float]]:
        """Return the bits of each look at each window: of all three slots in a row, or of two."""
        parts = [
            [slots.sum(range(k, k + size)) for k in range(slots.count - size + 1)]
            if (size := min(_LOOK, slots.count)) >= _LEAST
            else []
            for slots in windows
        ]
        if not any(parts):
            return [[] for _ in parts]
        bits = iter(self.bits([look for looks in parts for look in looks]))
        return [list(islice(bits, len(looks))) for looks in parts]

    def _hidden_bits(self, turns: Turns) -> float:
        """Return the bits that another voice hides if two take turns, otherwise 0."""
        if (
            turns.others < LEAST_TURNS
            or min(turns.watched.speech, turns.other.speech) < LEAST_SPEECH
        ):
            return 0.0
        watched, other, together = self.bits(
            [turns.watched, turns.other, turns.watched + turns.other]
        )
        return watched - together if watched >= max(OWN_BITS, other + APART_BITS) else 0.0

    def bits(self, parts: Sequence[FeatureTotals]) -> list[float]:
        """Return the evidence of each of these totals, without their conditions."""
        running, speech = stack_totals(parts)
        with one_thread():
            evidence = self._attacker.evidence(running, speech / TICKS_PER_SECOND)
        bits: list[float] = np.nan_to_num(evidence).tolist()
        return bits


@dataclass
class _Slots:
    """A window of speech in slots, with the totals of each feature per slot, and its sound."""

    count: int
    counted: Mapping[str, tuple[list[AnyArray], list[int], list[int]]]
    embedded: str
    window: SpeechWindow
    value: AnyArray  # embedding of the whole window
    embed: Callable[[FloatArray], AnyArray]
    nothing: FeatureTotals

    def __post_init__(self) -> None:
        self._made: dict[tuple[int, int], AnyArray] = {}
        if (runs := self.window.runs) is not None:  # weighted by their length
            values = runs.astype(np.float64)
            for (begin, end), value in zip(list_runs(self.count), values, strict=True):
                self._made[begin, end] = value * ((end - begin) / self.count)

    def leave_runs(self) -> None:
        """Embed each run by itself from now on: in the window, the other voice affects it."""
        if self.window.has_sound:
            self._made.clear()

    @property
    def end(self) -> int:
        return int(self.window.ticks[-1])

    def sum(self, slots: Sequence[int]) -> FeatureTotals:
        """Return the totals of some of the slots; each run of them has one embedding."""
        totals, frames = dict(self.nothing.totals), dict(self.nothing.frames)
        usable = dict(self.nothing.usable)
        for name, (sums, counts, ticks) in self.counted.items():
            totals[name] = sum((sums[k] for k in slots), totals[name])
            frames[name], usable[name] = sum(counts[k] for k in slots), sum(ticks[k] for k in slots)
        name = self.embedded
        for begin, end in _runs(slots):
            if end - begin >= _LEAST:
                totals[name] = totals[name] + self._value(begin, end)
                frames[name], usable[name] = frames[name] + 1, usable[name] + (end - begin) * _SLOT
        return FeatureTotals(len(slots) * _SLOT, totals, frames, usable)

    def _value(self, begin: int, end: int) -> AnyArray:
        if (begin, end) == (0, self.count):
            return self.value
        if (begin, end) not in self._made:
            (self._made[begin, end],) = self.embed(self.window.samples[begin * _SLOT : end * _SLOT])
        return self._made[begin, end]


def _runs(slots: Sequence[int]) -> list[tuple[int, int]]:
    begins = [k for k in slots if k - 1 not in slots]
    return [(k, next(n for n in count(k) if n not in slots)) for k in begins]


def _share(looks: Sequence[float], size: int) -> list[float]:
    """Return the bits of each slot: the mean per slot of the looks that contain it, less a cost."""
    return [
        float(np.mean(looks[max(0, slot - size + 1) : slot + 1])) / size - _OFF_BITS
        for slot in range(len(looks) + size - 1)
    ]


class _Path(NamedTuple):
    """A path through the slots of a window: its bits, its origin and its watched slots."""

    bits: float
    origin: int
    watched_slots: tuple[int, ...]
    others: int  # turns of the other voice that begin in it


def find_turns(
    before: tuple[Turns, Turns], bits: Sequence[float], slots: _Slots
) -> tuple[Turns, Turns]:
    """Return the likeliest turns that end with either voice, after slots with these bits."""
    other, watched = (_Path(turns.bits, origin, (), 0) for origin, turns in enumerate(before))
    for slot, gain in enumerate(bits):
        change = watched._replace(bits=watched.bits - _CHANGE_BITS, others=watched.others + 1)
        came = other._replace(bits=other.bits - _CHANGE_BITS)
        other, watched = max(other, change), max(watched, came)
        watched = watched._replace(
            bits=watched.bits + gain, watched_slots=(*watched.watched_slots, slot)
        )
    return _extend(before, other, slots), _extend(before, watched, slots)


def _extend(before: tuple[Turns, Turns], path: _Path, slots: _Slots) -> Turns:
    origin = before[path.origin]
    other_slots = [slot for slot in range(slots.count) if slot not in path.watched_slots]
    return Turns(
        path.bits,
        origin.watched + slots.sum(path.watched_slots),
        origin.other + slots.sum(other_slots),
        origin.others + path.others,
    )
