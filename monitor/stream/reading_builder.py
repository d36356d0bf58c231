"""Builder of a stream's readings: the attacker's figures, the headline, peak and guides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict

import numpy as np

from monitor.events.reading import Bits, Bystander, Guides, OpenChange, Reading, with_limits
from monitor.jobs import one_thread
from monitor.maths.composition import guides
from monitor.maths.condition import (
    ROW,
    Condition,
    condition_of,
    list_mismatches,
    list_poor_figures,
    sound_seconds,
)
from monitor.phrases import (
    mismatch_in_words,
    poor_in_words,
    unknown_in_words,
    voicing_in_words,
)
from monitor.stream.accumulator import FeatureTotals, Moments, RunningTotals
from monitor.stream.attacker import Attacker
from monitor.stream.forking import Forking
from monitor.stream.posterior import Assessment, Bystanders
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, FloatArray, IntArray, Notice, Track

_SLOWLY = 1.05
"""The longer a stream, the less a second changes: it is estimated anew at 5 % more."""
_UNKNOWN_SECONDS = 20.0
"""Of sound in which no speech rises above its noise: then that is said."""
_TIMES = 3
"""Estimates on end that must agree before something is said."""
VOICED = "voiced_share"
_LEAST_VOICED_RATIO, _VOICED_SPEECH = 1 / 3, 8 * TICKS_PER_SECOND
"""Of the smaller share of speech with pitch to the larger, after so much speech. Of 59 people at
their own microphones who calibrate one had less in another session with nothing done."""


class ConditionsState(TypedDict):
    """Plain values of `StreamConditions`, in a checkpoint."""

    seconds: int
    due: int
    now: dict[str, float | None] | None
    times: dict[str, int]
    is_voiced_otherwise: bool
    noticed: list[str]


class StreamConditions(Forking):
    """Sound of a stream, second by second, compared with the templates'.

    Args:
        templates: their conditions, or those of several sessions; None where unknown.
        matching: mean bits if templates sounded so, as far as known.
        voiced: share of the templates' speech with pitch, or of several sessions'; empty where
            pitch is not looked for.

    Attributes:
        now: of all seconds so far; None until one was described.
    """

    def __init__(
        self,
        templates: Sequence[Condition | None],
        matching: Callable[[Condition], float | None] = lambda _: None,
        voiced: Sequence[float] = (),
    ) -> None:
        self._sessions = [condition for condition in templates if condition is not None]
        self._matching, self._voiced = matching, voiced
        self.templates = self._sessions[0] if self._sessions else None
        self._waiting: list[tuple[int, AnyArray]] = []
        self._tick = 0
        self.begin_afresh()
        self._noticed: set[str] = set()

    def begin_afresh(self) -> None:
        """Begin another voice: the sound so far is not its own."""
        self._total = np.zeros(ROW, np.int64)
        self._seconds = self._due = 0
        self._times: dict[str, int] = {}
        self._estimates: dict[int, Condition] = {}
        self.now: Condition | None = None
        self._is_voiced_otherwise = False

    @property
    def differs(self) -> tuple[str, ...]:
        """Figures in which the stream is unlike the templates, or bad in itself."""
        names = [name for name, times in self._times.items() if times >= _TIMES]
        return (*names, VOICED) if self._is_voiced_otherwise else tuple(names)

    def add(self, track: Track | None) -> None:
        """Add seconds of sound; those counted before a stop are dropped."""
        if track is not None:
            rows = zip(track.ticks.tolist(), track.values, strict=True)
            self._waiting += [(tick, row) for tick, row in rows if tick > self._tick]

    def look_ahead(self, ticks: Sequence[int]) -> list[Condition | None]:
        """Estimate the sound at each of these ticks, increasing; nothing is counted.

        The rows up to the last of them have arrived.
        """
        conditions, now = [], self.now
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
            conditions.append(now)
        return conditions

    def advance(self, tick: int) -> Iterator[tuple[int, Notice]]:
        """Count the seconds complete by a tick; yield new notices and their ticks."""
        self._tick = tick
        while self._waiting and self._waiting[0][0] <= tick:
            complete, row = self._waiting.pop(0)
            self._total = self._total + row
            self._seconds += 1
            if self._seconds >= self._due:
                self._due = _next_due(self._seconds)
                yield from ((complete, notice) for notice in self._estimate())

    def correct(self, rows: AnyArray, counts: BoolArray) -> None:
        """Count seconds of sound, rows of shape (k, ROW), that were not counted, or the reverse."""
        signs = np.where(counts, 1, -1)
        self._total = self._total + signs @ rows
        self._seconds += int(signs.sum())
        self._due = _next_due(self._seconds)
        self._estimates = {}
        self.now = condition_of(self._total) if self._seconds else None

    def _estimate(self) -> Iterator[Notice]:
        estimate = self._estimates.pop(self._seconds, None)
        self.now = condition_of(self._total) if estimate is None else estimate
        unlike: tuple[str, ...] = ()
        if self._sessions:  # the one that sounds most like the stream counts most
            differences = [list_mismatches(self.now, session) for session in self._sessions]
            place = min(range(len(differences)), key=lambda k: len(differences[k]))
            self.templates, unlike = self._sessions[place], differences[place]
        bad = tuple(name for name in list_poor_figures(self.now) if name not in unlike)
        self._times = {name: self._times.get(name, 0) + 1 for name in (*unlike, *bad)}
        fresh = [name for name in self.differs if name not in {*self._noticed, VOICED}]
        self._noticed.update(fresh)
        mismatches = [name for name in fresh if name in unlike]
        if mismatches and self.templates is not None:
            matching = self._matching(self.now)
            text = mismatch_in_words(
                mismatches, self.now.record(), self.templates.record(), matching
            )
            both = {"stream": self.now.record(), "templates": self.templates.record()}
            fields = {"figures": mismatches, **both, "matching_bits": matching}
            yield Notice("conditions differ", text, fields=fields)
        if rest := [name for name in fresh if name in bad]:
            now = self.now.record()
            yield Notice("poor sound", poor_in_words(rest, now), fields={"figures": rest, **now})
        unknown = self.now.snr_db is None and sound_seconds(self._total) >= _UNKNOWN_SECONDS
        if unknown and "unknown" not in self._noticed:
            self._noticed.add("unknown")
            text = unknown_in_words(_UNKNOWN_SECONDS)
            yield Notice("conditions unknown", text, fields={"sound_seconds": _UNKNOWN_SECONDS})

    def compare_voicing(self, speech: int, voiced_seconds: float) -> Notice | None:
        """Compare the share of the voice's speech, in ticks, with pitch; return a new notice."""
        if not self._voiced or speech < _VOICED_SPEECH:
            return None
        share = voiced_seconds * TICKS_PER_SECOND / speech
        nearest = max(self._voiced, key=lambda other: _ratio_of(share, other))
        self._is_voiced_otherwise = _ratio_of(share, nearest) < _LEAST_VOICED_RATIO
        if not self._is_voiced_otherwise or VOICED in self._noticed:
            return None
        self._noticed.add(VOICED)
        fields = {
            "figures": [VOICED],
            "stream": {VOICED: share},
            "templates": {VOICED: nearest},
            "matching_bits": None,
        }
        return Notice("conditions differ", voicing_in_words(share, nearest), fields=fields)

    def state(self) -> tuple[ConditionsState, dict[str, AnyArray]]:
        """Return what a replay of the stream would not restore: plain values and arrays."""
        plain: ConditionsState = {
            "seconds": self._seconds,
            "due": self._due,
            "now": None if self.now is None else self.now.record(),
            "times": self._times,
            "is_voiced_otherwise": self._is_voiced_otherwise,
            "noticed": sorted(self._noticed),
        }
        return plain, {"total": self._total}

    def restore(self, tick: int, plain: ConditionsState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state`` of a tick of the stream; ValueError where it is none."""
        if arrays["total"].shape != (ROW,):
            raise ValueError
        self._total, self._tick = arrays["total"], tick
        self._seconds, self._due = int(plain["seconds"]), int(plain["due"])
        self.now = Condition.parse(plain["now"])
        self._times = {str(name): int(times) for name, times in plain["times"].items()}
        self._is_voiced_otherwise = bool(plain["is_voiced_otherwise"])
        self._noticed = set(plain["noticed"])


def _ratio_of(first: float, second: float) -> float:
    """Return the ratio of the smaller of two shares to the larger; 1 where both are 0."""
    return min(first, second) / max(first, second) if max(first, second) > 0 else 1.0


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
    """All totals up to a tick of the stream, those of earlier streams included."""

    tick: int
    totals: FeatureTotals


@dataclass(frozen=True, slots=True)
class SegmentSelection:
    """Selection of segments at each of R moments, with ticks of speech in them, shape (R,).

    ``enough``, shape (R,): whether that is enough for it to be chosen.
    """

    totals: Mapping[str, RunningTotals]
    speech: IntArray
    enough: BoolArray

    @classmethod
    def whole(cls, moments: Moments) -> SegmentSelection:
        """Select the whole stream."""
        return cls(moments.totals, moments.speech, np.ones(len(moments.ticks), np.bool_))


class SegmentsState(TypedDict):
    """Plain values of `SpeakerSegments`, in a checkpoint."""

    whole: bool
    chosen: int


class SpeakerSegments(Forking):
    """Segments weighed for a watched speaker where somebody else may have spoken too.

    An attacker who hears that the speaker changes knows where to cut. So totals can be cut where
    each voice seems to have begun, and the segment, or sum of segments, is weighed that says most
    of the watched speaker: another voice does not lower the figure, and neither does a false
    change. Of closed segments the best sum is kept: each that ends is left out, added or takes its
    place. Memory is bounded: totals are kept at marks a second or more apart, the finer the later.

    Attributes:
        before: totals of earlier streams of the watched voice, part of every choice.
        chosen: which of `parts` the last reading was of, 0 for the whole stream.
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
        """True once there was a change."""
        return self._begun is not None

    def mark(self, tick: int, get_totals: Callable[[], FeatureTotals]) -> None:
        """Keep the totals up to a reading."""
        if self._marks and tick - self._marks[-1].tick < _SPACING:
            return
        self._marks.append(Mark(tick, get_totals()))
        if len(self._marks) > _MOST_MARKS:
            self._marks = self._marks[:-_NEWEST:2] + self._marks[-_NEWEST:]

    def unmark(self, since: int) -> None:
        """Drop the marks from a tick on: what was counted up to them was corrected."""
        self._marks = [mark for mark in self._marks if mark.tick < since]

    def parts(self, moments: Moments) -> list[SegmentSelection]:
        """List what may be weighed at these moments: all, then closed and open segments."""
        selections = [SegmentSelection.whole(moments)]
        closed, begun = self._kept, self._begun
        if closed is None or begun is None:
            return selections
        if not self._whole:
            selections.append(self._select_since(moments, begun.totals, closed.totals))
        selections.append(self._select_since(moments, begun.totals, self.before))
        running, speech = stack_totals([closed.totals] * len(moments.ticks))
        selections.append(SegmentSelection(running, speech, self._is_enough(speech)))
        return selections

    def _select_since(
        self, moments: Moments, begun: FeatureTotals, base: FeatureTotals
    ) -> SegmentSelection:
        """Select what came since then, on top of another sum."""
        totals = {}
        for name, running in moments.totals.items():
            usable = running.usable_seconds + (base.usable[name] - begun.usable[name]) / (
                TICKS_PER_SECOND
            )
            totals[name] = RunningTotals(
                running.totals - begun.totals[name] + base.totals[name],
                running.frames + (base.frames[name] - begun.frames[name]),
                np.maximum(usable, 0.0),  # whose halves of a tick were rounded
            )
        speech = moments.speech + (base.speech - begun.speech)
        return SegmentSelection(totals, speech, self._is_enough(speech))

    def _is_enough(self, speech: IntArray) -> BoolArray:
        return np.asarray(speech - self.before.speech >= LEAST_SPEECH)

    def get_totals(self, totals: FeatureTotals) -> FeatureTotals:
        """Return the totals behind the last reading, of all totals up to it."""
        closed, begun = self._kept, self._begun
        if closed is None or begun is None or not self.chosen:
            return totals
        open_now = totals - begun.totals
        choices = [] if self._whole else [closed.totals + open_now]
        return [*choices, self.before + open_now, closed.totals][self.chosen - 1]

    def change(self, since_ticks: int, best: Callable[[Sequence[FeatureTotals]], int]) -> None:
        """Close the open segment at about that tick, and open a new one.

        ``best`` says which of several sums says most of the watched speaker.
        """
        ends = [mark for mark in self._marks if mark.tick <= since_ticks]
        end = ends[-1] if ends else Mark(0, self.before)
        closed, begun = self._kept, self._begun
        if closed is None or begun is None:
            self._kept = end
        else:
            end = max(begun, end, key=lambda mark: mark.tick)
            stretch = end.totals - begun.totals
            both = closed.totals + stretch
            parts = [closed.totals, self.before + stretch]
            speech = np.array([candidate.speech for candidate in parts])
            able = [
                candidate
                for candidate, enough in zip(parts, self._is_enough(speech), strict=True)
                if enough
            ]
            choice = best([both, *able]) if able else 0
            self._kept = Mark(end.tick, [both, *able][choice])
            self._whole = self._whole and choice == 0
        self._begun = end

    def state(self) -> tuple[SegmentsState, dict[str, AnyArray]]:
        """Return what a checkpoint must keep: plain values, and arrays."""
        of_marks: tuple[Sequence[Mark | None], ...] = (self._marks, [self._kept], [self._begun])
        arrays = {
            f"{group}/{name}": array
            for group, marks in zip(_GROUPS, of_marks, strict=True)
            for name, array in self._pack_marks([mark for mark in marks if mark]).items()
        }
        return {"whole": self._whole, "chosen": self.chosen}, arrays

    def restore(self, plain: SegmentsState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``; KeyError or ValueError where no stream has been cut so."""
        marks, closed, begun = (self._unpack_marks(f"{group}/", arrays) for group in _GROUPS)
        if len(marks) > _MOST_MARKS or not len(closed) == len(begun) <= 1:
            raise ValueError
        self._marks = marks
        self._kept, self._begun = (ends[0] if ends else None for ends in (closed, begun))
        self._whole, self.chosen = bool(plain["whole"]), int(plain["chosen"])
        if not 0 <= self.chosen < (4 - self._whole if self.cut else 1):
            raise ValueError

    def _pack_marks(self, marks: Sequence[Mark]) -> dict[str, AnyArray]:
        """Return one row a mark: its tick and counts, and the total of each feature."""
        names = list(self._nothing.totals)
        counts = [
            [
                *(mark.tick, mark.totals.speech),
                *(mark.totals.frames[name] for name in names),
                *(mark.totals.usable[name] for name in names),
            ]
            for mark in marks
        ]
        arrays: dict[str, AnyArray] = {
            "counts": np.array(counts, dtype=np.int64).reshape(-1, 2 + 2 * len(names))
        }
        for name, total in self._nothing.totals.items():
            rows = [mark.totals.totals[name] for mark in marks]
            arrays[f"of {name}"] = np.array(rows, dtype=total.dtype).reshape(-1, total.size)
        return arrays

    def _unpack_marks(self, start: str, arrays: Mapping[str, AnyArray]) -> list[Mark]:
        names, counts = list(self._nothing.totals), arrays[f"{start}counts"]
        totals = {name: arrays[f"{start}of {name}"] for name in names}
        if counts.shape[1:] != (2 + 2 * len(names),) or counts.min(initial=0) < 0:
            raise ValueError
        for name, table in totals.items():
            if table.shape != (len(counts), self._nothing.totals[name].size):
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


def stack_totals(sums: Sequence[FeatureTotals]) -> tuple[dict[str, RunningTotals], IntArray]:
    """Stack several totals as the attacker takes moments, with ticks of speech in each."""
    running = {
        name: RunningTotals(
            np.stack([part.totals[name] for part in sums]),
            np.array([part.frames[name] for part in sums]),
            np.array([part.usable[name] for part in sums]) / TICKS_PER_SECOND,
        )
        for name in sums[0].totals
    }
    return running, np.array([part.speech for part in sums])


_MOST_READINGS = 32
_MOST_SCORES = 1 << 16
"""Readings worked out together: enough to be cheap, few enough to stay in the cache
(benchmarks/runs.py)."""
_CLOSED_SET = ("features", "local", "gain", "expected", "posterior", "top", "beyond_grid")
"""What an assessment says among the enrolled alone."""


class MomentAssessment(NamedTuple):
    """Assessment of one moment, independent of those before it.

    Attributes:
        speech: seconds of all speech.
        excluded_seconds: of these, seconds of segments that were not chosen; None of one voice,
            or nobody's.
        chosen: which of the choices, as of `SpeakerSegments.parts`.
    """

    assessment: Assessment
    speech: float
    excluded_seconds: float | None
    chosen: int
    guides: Guides
    evidence_guides: Guides | None
    bystanders: tuple[Bystander, ...] | None


def _guides(
    length: FloatArray, first_seconds: float, first_bits: float, most: float
) -> list[Guides]:
    linear, root = guides(length, first_seconds, first_bits, most)
    return list(map(Guides, linear.tolist(), root.tolist()))


class ReadingBuilder(Forking):
    """Builder of readings: headline, peak, guides (docs/method.md sections 5 and 6).

    The closed-set figure is the local bits where somebody is watched (``watching``), else the
    attacker's confidence; it is the ``headline`` as long as there is no evidence. At most
    ``together`` moments are assessed at one go. ``peak_bits`` is the peak of earlier streams.
    """

    def __init__(
        self,
        attacker: Attacker,
        watching: bool,
        headline: str,
        bystanders: Bystanders | None,
        peak_bits: float = 0.0,
    ) -> None:
        self._attacker, self._watching, self._bystanders = attacker, watching, bystanders
        self._headline = headline
        self.peak, self.stream = peak_bits, 1
        self.together = max(1, min(_MOST_READINGS, _MOST_SCORES // attacker.speakers))

    def begin_another_stream(self) -> None:
        """Begin another voice's stream, with a peak of its own."""
        self.stream, self.peak = self.stream + 1, 0.0

    def assess(
        self,
        moments: Moments,
        stretches: SpeakerSegments | None = None,
        conditions: Sequence[Condition | None] | None = None,
    ) -> list[MomentAssessment]:
        """Assess these moments together, by the segments with the most of the watched speaker."""
        attacker = self._attacker
        speech = moments.speech / TICKS_PER_SECOND
        parts = [SegmentSelection.whole(moments)] if stretches is None else stretches.parts(moments)
        with one_thread():
            by_part = [
                attacker.assess_each(part.totals, part.speech / TICKS_PER_SECOND, conditions)
                for part in parts
            ]
        assessments, chosen = [], []
        for r in range(speech.size):
            able = [k for k, part in enumerate(parts) if part.enough[r]]
            strongest, index = self._strongest([by_part[k][r] for k in able])
            assessments.append(strongest)
            chosen.append(able[index])
        seconds = np.array([parts[k].speech[r] for r, k in enumerate(chosen)]) / TICKS_PER_SECOND
        nothing: list[None] = [None] * len(assessments)
        excluded = (speech - seconds).tolist() if len(parts) > 1 else nothing
        frames = np.sum([running.frames for running in moments.totals.values()], axis=0)
        for running in moments.totals.values():
            frames = frames + (0 if running.early_seconds is None else running.early_seconds)
        length = np.where(frames > 0, seconds, 0.0)
        expected = attacker.joint.expected
        first_seconds = float(attacker.joint.rank_model.lengths[0])
        closed = _guides(length, first_seconds, expected.first_bits, attacker.ceiling)
        evident: Sequence[Guides | None] = nothing
        if self._headline == "evidence" and attacker.first_evidence is not None:
            evident = _guides(length, *attacker.first_evidence, attacker.support_bits or 0.0)
        others: Sequence[tuple[Bystander, ...] | None] = nothing
        if self._bystanders is not None:
            others = self._bystanders.find([a.crowd_evidence.ratios for a in assessments])
        rows = zip(
            assessments, speech.tolist(), excluded, chosen, closed, evident, others, strict=True
        )
        return [MomentAssessment(*row) for row in rows]

    def _strongest(self, choices: Sequence[Assessment]) -> tuple[Assessment, int]:
        """Choose the assessment highest for the watched speaker, and the headline's index.

        Of equals the first. Evidence and closed-set figures may be of different choices, since
        evidence ends at what calibration supports.
        """
        if len(choices) == 1:
            return choices[0], 0
        places = range(len(choices))
        evident = max(places, key=lambda k: _value(choices[k].crowd_evidence.evidence))
        closed = max(places, key=lambda k: _value(choices[k].local))
        best = choices[evident]
        is_evidence = self._headline == "evidence" and best.crowd_evidence.evidence is not None
        if evident != closed:
            best = replace(best, **{name: getattr(choices[closed], name) for name in _CLOSED_SET})
        return best, evident if is_evidence else closed

    def choose_best(self, sums: Sequence[FeatureTotals], condition: Condition | None = None) -> int:
        """Return which of these totals gives the largest headline; of equals the first."""
        totals, speech = stack_totals(sums)
        sounds = [condition] * len(sums)
        with one_thread():
            choices = self._attacker.assess_each(totals, speech / TICKS_PER_SECOND, sounds)
        return self._strongest(choices)[1]

    def reading(
        self,
        tick: int,
        assessed: MomentAssessment,
        opened: OpenChange | None,
        number: int,
        conditions: StreamConditions,
    ) -> Reading:
        """Build the next reading; ``opened`` is a change since which it may be of two people."""
        assessment, attacker = assessed.assessment, self._attacker
        crowd_evidence = assessment.crowd_evidence._asdict()
        evidence, support = crowd_evidence.pop("evidence"), crowd_evidence["support_bits"]
        closed = assessment.local if self._watching else assessment.gain
        is_evidence = self._headline == "evidence" and evidence is not None
        if assessment.waits:
            evidence = closed = None
        bits = evidence if is_evidence else closed
        features = assessment.features.values()
        parts = [part.local_bits if self._watching else part.gain_bits for part in features]
        spread = None
        if is_evidence and attacker.spread is not None:
            spread = attacker.spread.at(assessed.speech - (assessed.excluded_seconds or 0.0))
        if bits is not None:
            self.peak = max(self.peak, bits.value)
        return Reading(
            seconds=tick / TICKS_PER_SECOND,
            speech=assessed.speech,
            excluded_seconds=assessed.excluded_seconds,
            spread_low=None if spread is None else spread.low,
            spread_high=None if spread is None else min(spread.high, support),
            spread_others=None if spread is None else spread.others,
            **with_limits("bits", bits),
            headline="evidence" if is_evidence else "closed-set",
            **with_limits("closed_set_bits", closed),
            **with_limits("gain_bits", assessment.gain),
            **with_limits("expected_bits", assessment.expected),
            **with_limits("evidence_bits", evidence),
            sum_bits=None if None in parts else sum(part or 0.0 for part in parts),
            peak_bits=None if bits is None else self.peak,
            ceiling=attacker.ceiling,
            plateau=attacker.joint.expected.plateau_bits,
            guides=assessed.guides,
            evidence_guides=assessed.evidence_guides if is_evidence else None,
            session=attacker.session,
            assumes_enrolled=not self._watching,
            beyond_grid=assessment.beyond_grid,
            features=assessment.features,
            names=attacker.names,
            posterior=assessment.posterior,
            top=assessment.top,
            **crowd_evidence,
            bystanders=assessed.bystanders,
            enrolled=assessment.enrolled,
            enrolled_withheld=assessment.enrolled_withheld,
            withheld=attacker.withheld,
            stream=self.stream,
            change=opened,
            recording=number,
            conditions=conditions.now,
            differs=conditions.differs,
        )


def _value(bits: Bits | None) -> float:
    return -np.inf if bits is None else bits.value
