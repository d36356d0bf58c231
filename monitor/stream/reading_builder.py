"""Makes the readings of a stream: the attacker's figures, the headline, its peak and its guides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from monitor.jobs import one_thread
from monitor.maths.composition import guides
from monitor.maths.condition import (
    ROW,
    Condition,
    condition_of,
    mismatch,
    poor,
    sound_seconds,
)
from monitor.phrases import mismatch_in_words, poor_in_words, unknown_in_words
from monitor.records.keys import with_limits
from monitor.stream.accumulator import FeatureTotals, Moments
from monitor.stream.attacker import Attacker
from monitor.stream.reading import (
    Assessment,
    Bits,
    Bystander,
    Bystanders,
    Open,
    Reading,
    RunningTotals,
)
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, FloatArray, IntArray, Notice, Track

_SLOWLY = 1.05
"""The longer a stream, the less a second changes: it is estimated anew at 5 % more."""
_UNKNOWN_SECONDS = 20.0
"""Of sound in which no speech rises above its noise: then that is said."""
_TIMES = 3
"""Estimates on end that must agree before something is said."""


class StreamConditions:
    """What the sound of a stream is like, second by second, compared with the templates'.

    Args:
        templates: what they sound like, or each of several sessions; None where nobody knows.
        matching: what templates that sound so would say on average, bits, as far as it is known.

    Attributes:
        now: of all seconds so far; None until one was described.
        differs: figures in which the stream is unlike the templates, or bad in itself.
    """

    def __init__(
        self,
        templates: Sequence[Condition | None],
        matching: Callable[[Condition], float | None] = lambda _: None,
    ) -> None:
        self._sessions, self._matching = [each for each in templates if each is not None], matching
        self.templates = self._sessions[0] if self._sessions else None
        self.now: Condition | None = None
        self.differs: tuple[str, ...] = ()
        self._waiting: list[tuple[int, AnyArray]] = []
        self._estimates: dict[int, Condition] = {}
        self._tick = 0
        self.begin_afresh()
        self._noticed: set[str] = set()

    def begin_afresh(self) -> None:
        """Another voice: what was heard before is not of its sound."""
        self._total = np.zeros(ROW, np.int64)
        self._seconds = self._due = 0
        self._times: dict[str, int] = {}
        self._estimates = {}
        self.now, self.differs = None, ()

    def add(self, track: Track | None) -> None:
        """Seconds of sound have arrived; those that were counted before a stop are dropped."""
        if track is not None:
            rows = zip(track.ticks.tolist(), track.values, strict=True)
            self._waiting += [(tick, row) for tick, row in rows if tick > self._tick]

    def ahead(self, ticks: Sequence[int]) -> list[Condition | None]:
        """What the stream will sound like at each of these ticks, increasing; nothing is counted.

        The rows up to the last of them have arrived.
        """
        found, now = [], self.now
        total, seconds, due, place = self._total.copy(), self._seconds, self._due, 0
        for tick in ticks:
            while place < len(self._waiting) and self._waiting[place][0] <= tick:
                total += self._waiting[place][1]
                place, seconds = place + 1, seconds + 1
                if seconds >= due:
                    due = _next_due(seconds)
                    if seconds not in self._estimates:
                        self._estimates[seconds] = condition_of(total)
                    now = self._estimates[seconds]
            found.append(now)
        return found

    def advance(self, tick: int) -> Iterator[tuple[int, Notice]]:
        """Count the seconds complete by a tick: what they bring up for the first time, and when."""
        self._tick = tick
        while self._waiting and self._waiting[0][0] <= tick:
            complete, row = self._waiting.pop(0)
            self._total += row
            self._seconds += 1
            if self._seconds >= self._due:
                self._due = _next_due(self._seconds)
                yield from ((complete, notice) for notice in self._estimate())

    def _estimate(self) -> Iterator[Notice]:
        known = self._estimates.pop(self._seconds, None)
        self.now = condition_of(self._total) if known is None else known
        unlike: tuple[str, ...] = ()
        if self._sessions:  # the one that sounds most like the stream counts most
            each = [mismatch(self.now, session) for session in self._sessions]
            place = min(range(len(each)), key=lambda k: len(each[k]))
            self.templates, unlike = self._sessions[place], each[place]
        bad = tuple(name for name in poor(self.now) if name not in unlike)
        self._times = {name: self._times.get(name, 0) + 1 for name in (*unlike, *bad)}
        self.differs = tuple(name for name, times in self._times.items() if times >= _TIMES)
        fresh = [name for name in self.differs if name not in self._noticed]
        self._noticed.update(fresh)
        told = [name for name in fresh if name in unlike]
        if told and self.templates is not None:
            matching = self._matching(self.now)
            text = mismatch_in_words(told, self.now.record(), self.templates.record(), matching)
            both = {"stream": self.now.record(), "templates": self.templates.record()}
            fields = {"figures": told, **both, "matching_bits": matching}
            yield Notice("conditions differ", text, fields=fields)
        if rest := [name for name in fresh if name in bad]:
            now = self.now.record()
            yield Notice("poor sound", poor_in_words(rest, now), fields={"figures": rest, **now})
        unknown = self.now.snr_db is None and sound_seconds(self._total) >= _UNKNOWN_SECONDS
        if unknown and "unknown" not in self._noticed:
            self._noticed.add("unknown")
            text = unknown_in_words(_UNKNOWN_SECONDS)
            yield Notice("conditions unknown", text, fields={"sound_seconds": _UNKNOWN_SECONDS})

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What hearing the stream again would not bring back: plain values and arrays."""
        plain = {
            "seconds": self._seconds,
            "due": self._due,
            "now": None if self.now is None else self.now.record(),
            "times": self._times,
            "noticed": sorted(self._noticed),
        }
        return plain, {"total": self._total}

    def restore(self, tick: int, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state`` of a tick of the stream; ValueError where it is none."""
        if arrays["total"].shape != (ROW,):
            raise ValueError
        self._total, self._tick = arrays["total"], tick
        self._seconds, self._due = int(plain["seconds"]), int(plain["due"])
        self.now = Condition.of(plain["now"])
        self._times = {str(name): int(times) for name, times in plain["times"].items()}
        self.differs = tuple(name for name, times in self._times.items() if times >= _TIMES)
        self._noticed = set(plain["noticed"])


def _next_due(seconds: int) -> int:
    return max(seconds + 1, math.ceil(_SLOWLY * seconds))


_SPACING = TICKS_PER_SECOND
"""Ticks between marks, at least."""
_MOST_MARKS = 48
_NEWEST = 24
"""Marks that are never thinned out."""
LEAST_SPEECH = 5 * TICKS_PER_SECOND
"""Ticks of speech of a choice that leaves something out: with less, nothing said of anybody would
count for more than what was heard against it."""
_GROUPS = ("marks", "kept", "begun")


@dataclass(frozen=True, slots=True)
class Mark:
    """All that was heard up to a tick of the stream, that of earlier streams included."""

    tick: int
    heard: FeatureTotals


@dataclass(frozen=True, slots=True)
class SegmentSelection:
    """A choice of stretches at each of R moments, with ticks of speech in them, shape (R,).

    ``enough``, shape (R,): whether that is enough for it to be chosen.
    """

    heard: Mapping[str, RunningTotals]
    speech: IntArray
    enough: BoolArray

    @classmethod
    def whole(cls, moments: Moments) -> SegmentSelection:
        """All that was heard."""
        return cls(moments.heard, moments.speech, np.ones(len(moments.ticks), np.bool_))


class SpeakerSegments:
    """What is weighed for a watched speaker where somebody else may have spoken as well.

    An attacker who hears that the speaker changes knows where to cut. So the sums of what was heard
    can be cut where each voice seems to have begun, and what is weighed is the stretch, or the sum
    of stretches, that says most of the watched speaker: another voice does not lower the figure,
    whoever spoke first, and neither does a change that was none. Of the stretches that are over the
    best sum is kept: each that ends is left out, added or takes its place. With it go the stretch
    that is still open, and all that was heard. Memory is bounded: sums are remembered at marks a
    second or more apart, the finer the later.

    Args:
        nothing: what is heard of no speech at all, for names and sizes.

    Attributes:
        before: what earlier streams of the watched voice brought, which is part of every choice.
        chosen: which of `parts` the last reading was of, 0 for all that was heard.
    """

    def __init__(self, nothing: FeatureTotals) -> None:
        self._nothing = self.before = nothing
        self._marks: list[Mark] = []
        self._kept: Mark | None = None  # the best sum of those that are over
        self._begun: Mark | None = None  # where the open one began
        self._whole = True  # whether the kept sum leaves nothing out
        self.chosen = 0

    @property
    def cut(self) -> bool:
        """Whether there has been a change at all."""
        return self._begun is not None

    def mark(self, tick: int, heard: Callable[[], FeatureTotals]) -> None:
        """Remember what was heard up to a reading."""
        if self._marks and tick - self._marks[-1].tick < _SPACING:
            return
        self._marks.append(Mark(tick, heard()))
        if len(self._marks) > _MOST_MARKS:
            self._marks = self._marks[:-_NEWEST:2] + self._marks[-_NEWEST:]

    def parts(self, moments: Moments) -> list[SegmentSelection]:
        """What may be weighed at these moments: all, then the kept and the open stretches."""
        made = [SegmentSelection.whole(moments)]
        kept, begun = self._kept, self._begun
        if kept is None or begun is None:
            return made
        if not self._whole:
            made.append(self._since(moments, begun.heard, kept.heard))
        made.append(self._since(moments, begun.heard, self.before))
        heard, speech = as_moments([kept.heard] * len(moments.ticks))
        made.append(SegmentSelection(heard, speech, self._enough(speech)))
        return made

    def _since(
        self, moments: Moments, begun: FeatureTotals, beside: FeatureTotals
    ) -> SegmentSelection:
        """What was heard since then, and another sum beside it."""
        heard = {}
        for name, running in moments.heard.items():
            usable = running.usable_seconds + (beside.usable[name] - begun.usable[name]) / (
                TICKS_PER_SECOND
            )
            heard[name] = RunningTotals(
                running.totals - begun.totals[name] + beside.totals[name],
                running.frames + (beside.frames[name] - begun.frames[name]),
                np.maximum(usable, 0.0),  # whose halves of a tick were rounded
            )
        speech = moments.speech + (beside.speech - begun.speech)
        return SegmentSelection(heard, speech, self._enough(speech))

    def _enough(self, speech: IntArray) -> BoolArray:
        return np.asarray(speech - self.before.speech >= LEAST_SPEECH)

    def weighed(self, heard: FeatureTotals) -> FeatureTotals:
        """The sums behind the last reading, of all that was heard up to it."""
        kept, begun = self._kept, self._begun
        if kept is None or begun is None or not self.chosen:
            return heard
        open_now = heard - begun.heard
        choices = [] if self._whole else [kept.heard + open_now]
        return [*choices, self.before + open_now, kept.heard][self.chosen - 1]

    def change(self, since_ticks: int, best: Callable[[Sequence[FeatureTotals]], int]) -> None:
        """Another voice began at about that tick: the open stretch is over, and a new one open.

        ``best`` says which of several sums says most of the watched speaker.
        """
        ends = [mark for mark in self._marks if mark.tick <= since_ticks]
        end = ends[-1] if ends else Mark(0, self.before)
        kept, begun = self._kept, self._begun
        if kept is None or begun is None:
            self._kept = end
        else:
            end = max(begun, end, key=lambda mark: mark.tick)
            stretch = end.heard - begun.heard
            both = kept.heard + stretch
            apart = [kept.heard, self.before + stretch]
            speech = np.array([each.speech for each in apart])
            able = [
                each for each, enough in zip(apart, self._enough(speech), strict=True) if enough
            ]
            found = best([both, *able]) if able else 0
            self._kept = Mark(end.tick, [both, *able][found])
            self._whole = self._whole and found == 0
        self._begun = end

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a checkpoint must keep: plain values, and arrays."""
        of_marks: tuple[Sequence[Mark | None], ...] = (self._marks, [self._kept], [self._begun])
        arrays = {
            f"{group}/{name}": array
            for group, marks in zip(_GROUPS, of_marks, strict=True)
            for name, array in self._packed([mark for mark in marks if mark]).items()
        }
        return {"whole": self._whole, "chosen": self.chosen}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``; KeyError or ValueError where no stream has been cut so."""
        marks, kept, begun = (self._unpacked(f"{group}/", arrays) for group in _GROUPS)
        if len(marks) > _MOST_MARKS or not len(kept) == len(begun) <= 1:
            raise ValueError
        self._marks = marks
        self._kept, self._begun = (each[0] if each else None for each in (kept, begun))
        self._whole, self.chosen = bool(plain["whole"]), int(plain["chosen"])
        if not 0 <= self.chosen < (4 - self._whole if self.cut else 1):
            raise ValueError

    def _packed(self, marks: Sequence[Mark]) -> dict[str, AnyArray]:
        """One row a mark: its tick and counts, and the total of each feature."""
        names = list(self._nothing.totals)
        counts = [
            [
                *(mark.tick, mark.heard.speech),
                *(mark.heard.frames[name] for name in names),
                *(mark.heard.usable[name] for name in names),
            ]
            for mark in marks
        ]
        arrays: dict[str, AnyArray] = {
            "counts": np.array(counts, dtype=np.int64).reshape(-1, 2 + 2 * len(names))
        }
        for name, total in self._nothing.totals.items():
            each = [mark.heard.totals[name] for mark in marks]
            arrays[f"of {name}"] = np.array(each, dtype=total.dtype).reshape(-1, total.size)
        return arrays

    def _unpacked(self, start: str, arrays: Mapping[str, AnyArray]) -> list[Mark]:
        names, counts = list(self._nothing.totals), arrays[f"{start}counts"]
        totals = {name: arrays[f"{start}of {name}"] for name in names}
        if counts.shape[1:] != (2 + 2 * len(names),) or counts.min(initial=0) < 0:
            raise ValueError
        for name, each in totals.items():
            if each.shape != (len(counts), self._nothing.totals[name].size):
                raise ValueError
        rows: list[list[int]] = counts.tolist()
        return [
            Mark(
                tick,
                FeatureTotals(
                    speech,
                    {name: totals[name][r].copy() for name in names},
                    dict(zip(names, rest[: len(names)], strict=True)),
                    dict(zip(names, rest[len(names) :], strict=True)),
                ),
            )
            for r, (tick, speech, *rest) in enumerate(rows)
        ]


def as_moments(sums: Sequence[FeatureTotals]) -> tuple[dict[str, RunningTotals], IntArray]:
    """Several sums as the attacker takes moments, and ticks of speech in each."""
    made = {
        name: RunningTotals(
            np.stack([each.totals[name] for each in sums]),
            np.array([each.frames[name] for each in sums]),
            np.array([each.usable[name] for each in sums]) / TICKS_PER_SECOND,
        )
        for name in sums[0].totals
    }
    return made, np.array([each.speech for each in sums])


_MOST_READINGS = 32
_MOST_SCORES = 1 << 16
"""Readings worked out together: enough to be cheap, few enough to stay in the cache
(benchmarks/replay.py)."""
_CLOSED_SET = ("features", "local", "gain", "expected", "posterior", "top", "beyond_grid")
"""What an assessment says among the enrolled alone."""


class MomentAssessment(NamedTuple):
    """What can be said of one moment without knowing what came before it.

    Attributes:
        assessment: by the attacker, of the stretches of the stream that were chosen.
        speech: seconds of speech heard.
        left_out: of these, seconds of stretches that were not chosen; None of one voice, or
            nobody's.
        chosen: which of the choices, as of `SpeakerSegments.parts`.
        guides: linear and root, bits.
        evidence_guides: the same of the evidence; None where there is none.
        bystanders: who else is named; None where nobody asked or can tell.
    """

    assessment: Assessment
    speech: float
    left_out: float | None
    chosen: int
    guides: tuple[float, float]
    evidence_guides: tuple[float, float] | None
    bystanders: tuple[Bystander, ...] | None


def _guides(
    length: FloatArray, first_seconds: float, first_bits: float, most: float
) -> list[tuple[float, float]]:
    linear, root = guides(length, first_seconds, first_bits, most)
    return list(zip(linear.tolist(), root.tolist(), strict=True))


class ReadingBuilder:
    """Makes readings of what was heard: headline, peak, guides (docs/method.md sections 5 and 6).

    The closed-set figure is the local bits where somebody is watched (``watching``), else the
    attacker's confidence; it is the ``headline`` as long as there is no evidence.

    Attributes:
        peak: the largest headline so far, bits.
        stream: number of the stream, from 1.
        together: the most moments to assess at one go.
    """

    def __init__(
        self, attacker: Attacker, watching: bool, headline: str, bystanders: Bystanders | None
    ) -> None:
        self._attacker, self._watching, self._bystanders = attacker, watching, bystanders
        self._headline = headline
        self.peak, self.stream = 0.0, 1
        self.together = max(1, min(_MOST_READINGS, _MOST_SCORES // attacker.speakers))

    def begin_another_stream(self) -> None:
        """What follows is of another voice, with a peak of its own."""
        self.stream, self.peak = self.stream + 1, 0.0

    def assess(
        self,
        moments: Moments,
        stretches: SpeakerSegments | None = None,
        conditions: Sequence[Condition | None] | None = None,
    ) -> list[MomentAssessment]:
        """Work out these moments together, by the stretches that say most of the watched."""
        attacker = self._attacker
        speech = moments.speech / TICKS_PER_SECOND
        parts = [SegmentSelection.whole(moments)] if stretches is None else stretches.parts(moments)
        with one_thread():
            each = [
                attacker.assess_each(part.heard, part.speech / TICKS_PER_SECOND, conditions)
                for part in parts
            ]
        made, chosen = [], []
        for r in range(speech.size):
            able = [k for k, part in enumerate(parts) if part.enough[r]]
            strongest, place = self._strongest([each[k][r] for k in able])
            made.append(strongest)
            chosen.append(able[place])
        taken = np.array([parts[k].speech[r] for r, k in enumerate(chosen)]) / TICKS_PER_SECOND
        left_out: list[float | None] = [None] * len(made)
        if len(parts) > 1:
            left_out = (speech - taken).tolist()
        frames = np.sum([each.frames for each in moments.heard.values()], axis=0)
        for one in moments.heard.values():
            frames = frames + (0 if one.early_seconds is None else one.early_seconds)
        length = np.where(frames > 0, taken, 0.0)
        first_seconds = float(attacker.joint.rank_model.lengths[0])
        closed = _guides(
            length, first_seconds, attacker.joint.expected.first_bits, attacker.ceiling
        )
        evident: Sequence[tuple[float, float] | None] = [None] * len(made)
        if self._headline == "evidence" and attacker.first_evidence is not None:
            evident = _guides(length, *attacker.first_evidence, attacker.support_bits or 0.0)
        others: list[tuple[Bystander, ...] | None] = [None] * len(made)
        if self._bystanders is not None:
            others = self._bystanders.each([each.told.ratios for each in made])
        told = zip(made, speech.tolist(), left_out, chosen, closed, evident, others, strict=True)
        return [MomentAssessment(*row) for row in told]

    def _strongest(self, choices: Sequence[Assessment]) -> tuple[Assessment, int]:
        """What says most of the watched speaker, and which the headline is of; of equals the first.

        The evidence and what is said among the enrolled may be of different choices, where evidence
        ends at what calibration supports.
        """
        if len(choices) == 1:
            return choices[0], 0
        places = range(len(choices))
        evident = max(places, key=lambda k: _value(choices[k].told.evidence))
        closed = max(places, key=lambda k: _value(choices[k].local))
        told, first = choices[evident], evident
        if self._headline != "evidence" or told.told.evidence is None:
            first = closed
        among = {name: getattr(choices[closed], name) for name in _CLOSED_SET}
        return (told if evident == closed else replace(told, **among)), first

    def best(self, sums: Sequence[FeatureTotals], condition: Condition | None = None) -> int:
        """Which of these sums the headline is the largest of; of equal ones the first."""
        heard, speech = as_moments(sums)
        sounds = [condition] * len(sums)
        with one_thread():
            made = self._attacker.assess_each(heard, speech / TICKS_PER_SECOND, sounds)
        return self._strongest(made)[1]

    def reading(
        self,
        tick: int,
        assessed: MomentAssessment,
        opened: Open | None,
        number: int,
        conditions: StreamConditions,
    ) -> Reading:
        """The next reading; ``opened`` is a change since which it may be of two people."""
        made, attacker = assessed.assessment, self._attacker
        told = made.told._asdict()
        evidence = told.pop("evidence")
        closed = made.local if self._watching else made.gain
        is_evidence = self._headline == "evidence" and evidence is not None
        bits = evidence if is_evidence else closed
        spread = None
        if is_evidence and attacker.spread is not None:
            spread = attacker.spread.at(assessed.speech - (assessed.left_out or 0.0))
        if bits is not None:
            self.peak = max(self.peak, bits.value)
        return Reading(
            seconds=tick / TICKS_PER_SECOND,
            speech=assessed.speech,
            excluded_seconds=assessed.left_out,
            spread_low=None if spread is None else spread.low,
            spread_high=None if spread is None else spread.high,
            spread_others=None if spread is None else spread.others,
            **with_limits("bits", bits),
            headline="evidence" if is_evidence else "closed-set",
            **with_limits("closed_set_bits", closed),
            **with_limits("gain_bits", made.gain),
            **with_limits("expected_bits", made.expected),
            **with_limits("evidence_bits", evidence),
            sum_bits=self._sum(made),
            peak_bits=None if bits is None else self.peak,
            ceiling=attacker.ceiling,
            plateau=attacker.joint.expected.plateau_bits,
            guides=assessed.guides,
            evidence_guides=assessed.evidence_guides if is_evidence else None,
            session=attacker.session,
            assumes_enrolled=not self._watching,
            beyond_grid=made.beyond_grid,
            features=made.features,
            names=attacker.names,
            posterior=made.posterior,
            top=made.top,
            **told,
            bystanders=assessed.bystanders,
            enrolled=made.enrolled,
            enrolled_withheld=made.enrolled_withheld,
            withheld=attacker.withheld,
            stream=self.stream,
            change=opened,
            recording=number,
            conditions=conditions.now,
            differs=conditions.differs,
        )

    def _sum(self, made: Assessment) -> float | None:
        if not self._watching:
            return sum(each.gain_bits for each in made.features.values())
        parts = [each.local_bits for each in made.features.values()]
        return None if None in parts else sum(each or 0.0 for each in parts)


def _value(bits: Bits | None) -> float:
    return -np.inf if bits is None else bits.value
