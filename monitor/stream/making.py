"""Makes the readings of a stream: the attacker's figures, the headline, its peak and its guides.

Source: docs/method.md sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from monitor.maths.composition import guides
from monitor.records.keys import with_limits
from monitor.stream.assessment import Assessment, RunningTotals
from monitor.stream.attacker import Attacker
from monitor.stream.bystanders import Bystander, Bystanders
from monitor.stream.change import Open
from monitor.stream.conditions import StreamConditions
from monitor.stream.heard import HeardTotals
from monitor.stream.intake import Moments
from monitor.stream.reading import Reading
from monitor.stream.stretches import Part, VoiceStretches, as_moments
from monitor.threads import one_thread
from monitor.types import TICKS_PER_SECOND

__all__ = ["Assessed", "ReadingMaker"]

_MOST_READINGS = 32
_MOST_SCORES = 1 << 16
"""Readings worked out together: enough to be cheap, few enough to stay in the cache
(benchmarks/replay.py)."""
_CLOSED_SET = ("features", "local", "gain", "expected", "posterior", "top", "beyond_grid")
"""What an assessment says among the enrolled alone."""


class Assessed(NamedTuple):
    """What can be said of one moment without knowing what came before it.

    Attributes:
        assessment: by the attacker, of the stretches of the stream that were chosen.
        speech: seconds of speech heard.
        left_out: of these, seconds of the stretches that were not; None as long as there is one
            voice, or nobody is watched.
        chosen: which of the choices, as of `VoiceStretches.parts`.
        guides: linear and root, bits.
        bystanders: who else is named; None where nobody asked or can tell.
    """

    assessment: Assessment
    speech: float
    left_out: float | None
    chosen: int
    guides: tuple[float, float]
    bystanders: tuple[Bystander, ...] | None


class ReadingMaker:
    """Makes readings out of what was heard.

    Args:
        attacker: who weighs it.
        watching: whether the closed-set figure is the local bits of a watched speaker, not the
            attacker's confidence.
        headline: ``"evidence"`` or ``"closed-set"``, what the headline is; it is the latter as long
            as there is no evidence.
        bystanders: what names further people, if anything.

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

    def assess(self, moments: Moments, stretches: VoiceStretches | None = None) -> list[Assessed]:
        """Work out these moments together; none depends on another.

        Args:
            moments: what will have been heard.
            stretches: where somebody else may have spoken: at each moment those count that say most
                of the watched speaker.
        """
        attacker = self._attacker
        speech = moments.speech / TICKS_PER_SECOND
        parts = [Part.whole(moments)] if stretches is None else stretches.parts(moments)
        with one_thread():
            each = [self._weigh(part) for part in parts]
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
        linear, root = guides(
            np.where(frames > 0, taken, 0.0),
            float(attacker.joint.law.lengths[0]),
            attacker.joint.expected.first_bits,
            attacker.ceiling,
        )
        both = list(zip(linear.tolist(), root.tolist(), strict=True))
        others: list[tuple[Bystander, ...] | None] = [None] * len(made)
        if self._bystanders is not None:
            others = self._bystanders.each([each.told.ratios for each in made])
        told = zip(made, speech.tolist(), left_out, chosen, both, others, strict=True)
        return [Assessed(*row) for row in told]

    def _strongest(self, choices: Sequence[Assessment]) -> tuple[Assessment, int]:
        """What says most of the watched speaker, and which the headline is of; of equals the first.

        The evidence and what is said among the enrolled may be of different choices, where evidence
        ends at what calibration supports.
        """
        if len(choices) == 1:
            return choices[0], 0
        places = range(len(choices))
        evident = max(places, key=lambda k: _evidence(choices[k]))
        closed = max(places, key=lambda k: _local(choices[k]))
        told, first = choices[evident], evident
        if self._headline != "evidence" or told.told.evidence is None:
            first = closed
        among = {name: getattr(choices[closed], name) for name in _CLOSED_SET}
        return (told if evident == closed else replace(told, **among)), first

    def _weigh(self, part: Part) -> list[Assessment]:
        """By the attacker; what is the same at all moments once."""
        speech = part.speech / TICKS_PER_SECOND
        if not part.constant:
            return self._attacker.assess_each(part.heard, speech)
        first = {
            name: RunningTotals(one.totals[:1], one.frames[:1], one.usable_seconds[:1])
            for name, one in part.heard.items()
        }
        return self._attacker.assess_each(first, speech[:1]) * speech.size

    def best(self, sums: Sequence[HeardTotals]) -> int:
        """Which of these sums the headline is the largest of; of equal ones the first."""
        heard, speech = as_moments(sums)
        with one_thread():
            made = self._attacker.assess_each(heard, speech / TICKS_PER_SECOND)
        return self._strongest(made)[1]

    def reading(
        self,
        tick: int,
        assessed: Assessed,
        opened: Open | None,
        number: int,
        conditions: StreamConditions,
    ) -> Reading:
        """The next reading of the stream.

        Args:
            tick: when.
            assessed: what was heard by then.
            opened: a change since which it is not known whose bits these are.
            number: of the recording.
            conditions: of the sound.
        """
        made, attacker = assessed.assessment, self._attacker
        told = made.told._asdict()
        evidence = told.pop("evidence")
        closed = made.local if self._watching else made.gain
        of_evidence = self._headline == "evidence" and evidence is not None
        bits = evidence if of_evidence else closed
        spread = None
        if of_evidence and attacker.spread is not None:
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
            headline="evidence" if of_evidence else "closed-set",
            **with_limits("closed_set_bits", closed),
            **with_limits("gain_bits", made.gain),
            **with_limits("expected_bits", made.expected),
            **with_limits("evidence_bits", evidence),
            sum_bits=self._sum(made),
            peak_bits=None if bits is None else self.peak,
            ceiling=attacker.ceiling,
            plateau=attacker.joint.expected.plateau_bits,
            guides=assessed.guides,
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
        """The closed-set figures of all features, as if they were independent."""
        if not self._watching:
            return sum(each.gain_bits for each in made.features.values())
        parts = [each.local_bits for each in made.features.values()]
        return None if None in parts else sum(each or 0.0 for each in parts)


def _evidence(made: Assessment) -> float:
    return -np.inf if made.told.evidence is None else made.told.evidence.value


def _local(made: Assessment) -> float:
    return -np.inf if made.local is None else made.local.value
