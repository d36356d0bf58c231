"""Makes the readings of a stream: the attacker's figures, the headline, its peak and its guides.

Source: docs/method.md sections 5 and 6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.maths.composition import guides
from monitor.stream.assessment import Assessment
from monitor.stream.attacker import Attacker
from monitor.stream.bystanders import Bystander, Bystanders
from monitor.stream.change import Open
from monitor.stream.intake import Moments
from monitor.stream.reading import Reading
from monitor.threads import one_thread
from monitor.types import TICKS_PER_SECOND

__all__ = ["Assessed", "ReadingMaker"]

_MOST_READINGS = 32
_MOST_SCORES = 1 << 16
"""Readings worked out together: enough to be cheap, few enough to stay in the cache
(benchmarks/replay.py)."""


class Assessed(NamedTuple):
    """What can be said of one moment without knowing what came before it.

    Attributes:
        assessment: by the attacker.
        speech: T, seconds.
        guides: linear and root, bits.
        bystanders: who else is named; None where nobody asked or can tell.
    """

    assessment: Assessment
    speech: float
    guides: tuple[float, float]
    bystanders: tuple[Bystander, ...] | None


class ReadingMaker:
    """Makes readings out of what was heard.

    Args:
        attacker: who weighs it.
        watching: whether the headline is the local bits of a watched speaker, not the attacker's
            confidence.
        bystanders: what names further people, if anything.

    Attributes:
        peak: the largest headline so far, bits.
        stream: number of the stream, from 1.
        together: the most moments to assess at one go.
    """

    def __init__(self, attacker: Attacker, watching: bool, bystanders: Bystanders | None) -> None:
        self._attacker, self._watching, self._bystanders = attacker, watching, bystanders
        self.peak, self.stream = 0.0, 1
        self.together = max(1, min(_MOST_READINGS, _MOST_SCORES // attacker.speakers))

    def begin_another_stream(self) -> None:
        """What follows is of another voice, with a peak of its own."""
        self.stream, self.peak = self.stream + 1, 0.0

    def assess(self, moments: Moments) -> list[Assessed]:
        """Work out these moments together; none depends on another."""
        attacker = self._attacker
        speech = moments.speech / TICKS_PER_SECOND
        with one_thread():
            made = attacker.assess_each(moments.heard, speech)
        frames = np.sum([each.frames for each in moments.heard.values()], axis=0)
        linear, root = guides(
            np.where(frames > 0, speech, 0.0),
            float(attacker.joint.law.lengths[0]),
            attacker.joint.expected.first_bits,
            attacker.ceiling,
        )
        both = list(zip(linear.tolist(), root.tolist(), strict=True))
        others: list[tuple[Bystander, ...] | None] = [None] * len(made)
        if self._bystanders is not None:
            others = self._bystanders.each([each.told.ratios for each in made])
        return [Assessed(*each) for each in zip(made, speech.tolist(), both, others, strict=True)]

    def reading(self, tick: int, assessed: Assessed, opened: Open | None, number: int) -> Reading:
        """The next reading of the stream.

        Args:
            tick: when.
            assessed: what was heard by then.
            opened: a change since which it is not known whose bits these are.
            number: of the recording.
        """
        made, attacker = assessed.assessment, self._attacker
        headline = made.local if self._watching else made.confidence
        if self._watching:
            parts = [feature.local for feature in made.features.values()]
        else:
            parts = [feature.confidence for feature in made.features.values()]
        total = None if any(p is None for p in parts) else sum(p.value for p in parts if p)
        if headline is not None:
            self.peak = max(self.peak, headline.value)
        value, low, high = headline if headline is not None else (None, None, None)
        return Reading(
            seconds=tick / TICKS_PER_SECOND,
            speech=assessed.speech,
            bits=value,
            bits_low=low,
            bits_high=high,
            confidence=made.confidence,
            local=made.local,
            expected=made.expected,
            sum_bits=total,
            peak_bits=None if headline is None else self.peak,
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
            **made.told._asdict(),
            bystanders=assessed.bystanders,
            enrolled=made.enrolled,
            enrolled_withheld=made.enrolled_withheld,
            withheld=attacker.withheld,
            stream=self.stream,
            change=opened,
            recording=number,
        )
