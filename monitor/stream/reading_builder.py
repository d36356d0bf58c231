"""`ReadingBuilder` makes readings from the attacker's figures, with headline, peak and guides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from monitor.events.reading import Bits, Bystander, Guides, OpenChange, Reading, with_limits
from monitor.jobs import one_thread
from monitor.maths.composition import guides
from monitor.maths.condition import Condition
from monitor.stream.assessment import Assessment
from monitor.stream.attacker import Attacker, Question, assess_together
from monitor.stream.conditions import StreamConditions
from monitor.stream.posterior import Bystanders
from monitor.stream.segments import SegmentSelection, SpeakerSegments
from monitor.stream.totals import FeatureTotals, Moments, stack_totals
from monitor.types import TICKS_PER_SECOND, FloatArray

_MOST_READINGS = 32
_MOST_SCORES = 1 << 16
"""Limits of the readings computed together, so that they are cheap and stay in the cache
(benchmarks/runs.py)."""
_CLOSED_SET = ("features", "local", "gain", "expected", "posterior", "top", "beyond_grid")
"""Figures of an assessment among the enrolled alone."""
_AS_ASSESSED = (
    *("beyond_grid", "features", "posterior", "top", "support_bits", "at_least", "among", "ratios"),
    *("bystanders", "enrolled", "enrolled_withheld", "speech", "excluded_seconds", "guides"),
)
"""Fields of an assessment that a reading has unchanged."""


def _guides(
    length: FloatArray, first_seconds: float, first_bits: float, maximum: float
) -> list[Guides]:
    linear, root = guides(length, first_seconds, first_bits, maximum)
    return list(map(Guides, linear.tolist(), root.tolist()))


class Asked(NamedTuple):
    """Moments that an attacker must assess, with one question per choice of segments."""

    moments: Moments
    # the choices. The first ``segments`` are segments, and ``watched`` follows, if any
    parts: list[SegmentSelection]
    segments: int
    watched: SegmentSelection | None
    questions: list[Question]  # the attacker's question about each choice


def answer(questions: Sequence[Question]) -> list[list[Assessment]]:
    """Assess the moments of questions on one thread."""
    with one_thread():
        return assess_together(questions)


class ReadingBuilder:
    """Builder of readings: headline, peak, guides (docs/method.md sections 5 and 6).

    The closed-set figure is the local bits of the watched speaker (``watching``), otherwise the
    attacker's confidence. It is the ``headline`` as long as there is no evidence. At most
    ``together`` moments are assessed at once. ``peak_bits`` is the peak of earlier streams.
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

    def assess(
        self,
        moments: Moments,
        stretches: SpeakerSegments | None = None,
        conditions: Sequence[Condition | None] | None = None,
        watched: SegmentSelection | None = None,
    ) -> list[Assessment]:
        """Assess these moments together; arguments as in `ask`."""
        request = self.ask(moments, stretches, conditions, watched)
        return self.complete(request, answer(request.questions))

    def ask(
        self,
        moments: Moments,
        stretches: SpeakerSegments | None = None,
        conditions: Sequence[Condition | None] | None = None,
        watched: SegmentSelection | None = None,
    ) -> Asked:
        """Ask the attacker about these moments, by the segments of each choice.

        ``watched`` are the watched speaker's stretches, if another voice is mixed in.
        """
        parts = [SegmentSelection.whole(moments)] if stretches is None else stretches.parts(moments)
        segments = len(parts)
        parts += [] if watched is None else [watched]
        questions = [
            Question(self._attacker, choice.totals, choice.speech / TICKS_PER_SECOND, conditions)
            for choice in parts
        ]
        return Asked(moments, parts, segments, watched, questions)

    def complete(self, request: Asked, by_part: Sequence[Sequence[Assessment]]) -> list[Assessment]:
        """Complete the answers, by the segments with the watched speaker's highest figure."""
        attacker, (moments, parts, segments, watched, _) = self._attacker, request
        speech = moments.speech / TICKS_PER_SECOND
        assessments, chosen = [], []
        for r in range(speech.size):
            able = [k for k, choice in enumerate(parts) if choice.enough[r]]
            strongest, index = self._strongest([by_part[k][r] for k in able])
            assessments.append(strongest)
            chosen.append(able[index])
        seconds = np.array([parts[k].speech[r] for r, k in enumerate(chosen)]) / TICKS_PER_SECOND
        frames = np.sum([running.frames for running in moments.totals.values()], axis=0)
        for running in moments.totals.values():
            frames = frames + (0 if running.early_seconds is None else running.early_seconds)
        length = np.where(frames > 0, seconds, 0.0)
        expected = attacker.joint.expected
        first_seconds = float(attacker.joint.rank_model.lengths[0])
        closed = _guides(length, first_seconds, expected.first_bits, attacker.ceiling)
        nothing: list[None] = [None] * len(assessments)
        evident: Sequence[Guides | None] = nothing
        if self._headline == "evidence" and attacker.first_evidence is not None:
            evident = _guides(length, *attacker.first_evidence, attacker.support_bits or 0.0)
        others: Sequence[tuple[Bystander, ...] | None] = nothing
        if self._bystanders is not None:
            others = self._bystanders.find([a.ratios for a in assessments])
        completed = []
        for r, assessment in enumerate(assessments):
            is_mixed = watched is not None and bool(watched.enough[r])
            alone = None
            if watched is not None and watched.noticed is not None and watched.noticed[r]:
                alone = float(watched.speech[r]) / TICKS_PER_SECOND, _bits_of(by_part[-1][r])
            left_out = float(speech[r] - seconds[r]) if segments > 1 or is_mixed else None
            completed.append(
                replace(
                    assessment,
                    speech=float(speech[r]),
                    excluded_seconds=left_out,
                    chosen=chosen[r],
                    guides=closed[r],
                    evidence_guides=evident[r],
                    bystanders=others[r],
                    stretches=alone,
                    is_of_stretches=chosen[r] >= segments,
                )
            )
        return completed

    def _strongest(self, choices: Sequence[Assessment]) -> tuple[Assessment, int]:
        """Choose the assessment highest for the watched speaker, and the headline's index.

        The first of equals is chosen. Evidence and closed-set figures may be of different choices,
        since evidence ends at what calibration supports.
        """
        if len(choices) == 1:
            return choices[0], 0
        places = range(len(choices))
        evident = max(places, key=lambda k: _value(choices[k].evidence))
        closed = max(places, key=lambda k: _value(choices[k].local))
        best = choices[evident]
        is_evidence = self._headline == "evidence" and best.evidence is not None
        if evident != closed:
            best = replace(best, **{name: getattr(choices[closed], name) for name in _CLOSED_SET})
        return best, evident if is_evidence else closed

    def choose_best(self, sums: Sequence[FeatureTotals], condition: Condition | None = None) -> int:
        """Return the index of the totals with the largest headline, the first of equal ones."""
        totals, speech = stack_totals(sums)
        sounds = [condition] * len(sums)
        with one_thread():
            choices = self._attacker.assess_each(totals, speech / TICKS_PER_SECOND, sounds)
        return self._strongest(choices)[1]

    def reading(
        self,
        tick: int,
        assessment: Assessment,
        opened: OpenChange | None,
        number: int,
        conditions: StreamConditions,
    ) -> Reading:
        """Build the next reading; ``opened`` is a change after which another person may speak."""
        attacker, evidence, support = self._attacker, assessment.evidence, assessment.support_bits
        closed = assessment.local if self._watching else assessment.gain
        is_evidence = self._headline == "evidence" and evidence is not None
        if assessment.waits:
            evidence = closed = None
        bits = evidence if is_evidence else closed
        features = assessment.features.values()
        terms = [row.local_bits if self._watching else row.gain_bits for row in features]
        spread, excluded = None, assessment.excluded_seconds or 0.0
        if is_evidence and attacker.spread is not None:
            spread = attacker.spread.evaluate_at(assessment.speech - excluded)
        if bits is not None:
            self.peak = max(self.peak, bits.value)
        return Reading(
            seconds=tick / TICKS_PER_SECOND,
            stretches_seconds=None if assessment.stretches is None else assessment.stretches[0],
            stretches_bits=None if assessment.stretches is None else assessment.stretches[1],
            spread_low=None if spread is None else spread.low,
            spread_high=None if spread is None or support is None else min(spread.high, support),
            spread_others=None if spread is None else spread.others,
            **with_limits("bits", bits),
            headline="evidence" if is_evidence else "closed-set",
            **with_limits("closed_set_bits", closed),
            **with_limits("gain_bits", assessment.gain),
            **with_limits("expected_bits", assessment.expected),
            **with_limits("evidence_bits", evidence),
            sum_bits=None if None in terms else sum(term or 0.0 for term in terms),
            peak_bits=None if bits is None else self.peak,
            ceiling=attacker.ceiling,
            plateau=attacker.joint.expected.plateau_bits,
            evidence_guides=assessment.evidence_guides if is_evidence else None,
            session=attacker.session,
            assumes_enrolled=not self._watching,
            names=attacker.names,
            **{name: getattr(assessment, name) for name in _AS_ASSESSED},
            withheld=attacker.withheld,
            stream=self.stream,
            change=opened,
            recording=number,
            conditions=conditions.now,
            differs=conditions.differs,
        )


def _bits_of(assessment: Assessment) -> float | None:
    evidence = assessment.evidence
    return None if evidence is None or assessment.waits else evidence.value


def _value(bits: Bits | None) -> float:
    return -np.inf if bits is None else bits.value
