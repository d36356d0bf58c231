"""The attacker's assessment of one moment, with the figures of a reading."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.events.reading import Bits, Bystander, CrowdReading, FeatureReading, Guides
from monitor.maths.evidence import enrolled_share
from monitor.population.interpolation import GOOD_AREA
from monitor.stream.attacker_model import AttackerModel
from monitor.stream.posterior import ZERO, PosteriorModel, Weighed, compute_crowds
from monitor.stream.totals import RunningTotals
from monitor.stream.weigher import WatchedMoments
from monitor.types import BoolArray, FloatArray

_NO_GUIDES = Guides(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Assessment:
    """The attacker's assessment of one moment, which does not depend on earlier ones.

    Fields have the names of a `Reading`. Figures of evidence are None without evidence. A
    `ReadingBuilder` adds the fields after ``waits``.
    """

    features: Mapping[str, FeatureReading]
    local: Bits | None
    gain: Bits
    expected: Bits
    posterior: FloatArray  # probability of each speaker, (N,)
    top: Sequence[tuple[str, float]]
    evidence: Bits | None = None
    support_bits: float | None = None
    at_least: bool | None = None
    among: tuple[CrowdReading, ...] | None = None
    ratios: FloatArray | None = None  # log2 of each speaker's likelihood ratio, (N,)
    enrolled: float | None = None
    enrolled_withheld: tuple[str, ...] = ()
    beyond_grid: bool = False
    # whether speech is too short for a speaker embedding, so there is no figure yet
    waits: bool = False
    speech: float = 0.0  # seconds of all speech
    # seconds of speech in segments that were not chosen; None without segments
    excluded_seconds: float | None = None
    chosen: int = 0  # index of the chosen part of `SpeakerSegments.parts`
    guides: Guides = _NO_GUIDES
    evidence_guides: Guides | None = None
    bystanders: tuple[Bystander, ...] | None = None
    # seconds and evidence of the watched voice's stretches, once another voice is mixed in
    stretches: tuple[float, float | None] | None = None
    is_of_stretches: bool = False  # whether the figures are of these stretches


def most_probable(
    posterior: FloatArray, names: Sequence[str], count: int
) -> list[list[tuple[str, float]]]:
    """Return the most probable speakers of each row, best first. Ties go to the first enrolled.

    Example:
        >>> most_probable(np.array([[0.2, 0.5, 0.3]]), ["ann", "bob", "eve"], 2)
        [[('bob', 0.5), ('eve', 0.3)]]
    """
    favourites = []
    cutoffs = np.partition(posterior, len(names) - count, axis=1)[:, len(names) - count]
    for row, edge in zip(posterior, cutoffs, strict=True):
        places = np.flatnonzero(row >= edge)
        places = places[np.argsort(-row[places], kind="stable")[:count]]
        favourites.append([(names[j], float(row[j])) for j in places.tolist()])
    return favourites


class Assessor:
    """Converter of a `Weigher`'s results at R moments to assessments."""

    def __init__(self, model: AttackerModel) -> None:
        self._model = model
        self._silence = self._assess_silence()
        self._waiting = replace(
            self._silence,
            evidence=None,
            support_bits=None,
            at_least=None,
            among=None,
            enrolled_withheld=(f"{', '.join(sorted(model.discerning))} needs more speech",),
            waits=True,
        )

    def assess(
        self,
        alone: Mapping[str, Weighed],
        parts: Sequence[Weighed],
        moments: WatchedMoments,
        waits: BoolArray,
    ) -> list[Assessment]:
        """Assess weighed moments; ``waits``, (R,), marks those with too little speech."""
        names, totals = self._model.features, moments.totals
        readings = [
            self._compute_readings(alone.get(name), totals[name].usable_seconds) for name in names
        ]
        spoken = np.any([totals[name].frames > 0 for name in names], axis=0)
        beyond = (moments.seconds > self._model.joint.rank_model.lengths[-1]) & spoken
        assessed = {
            r: assessment for weighed in parts for r, assessment in self._weigh(weighed, moments)
        }
        return [
            replace(
                assessed.get(r) or self._begin(is_waiting),
                features=dict(zip(names, of_moment, strict=True)),
                beyond_grid=is_beyond,
            )
            for r, (of_moment, is_beyond, is_waiting) in enumerate(
                zip(zip(*readings, strict=True), beyond.tolist(), waits.tolist(), strict=True)
            )
        ]

    def _begin(self, waits: bool) -> Assessment:
        """Return an assessment before any figure, with an array of its own."""
        nothing = self._waiting if waits else self._silence
        return replace(nothing, posterior=nothing.posterior.copy())

    def _assess_silence(self) -> Assessment:
        """Assess a stream before any speech: all speakers are as likely, in any crowd."""
        model, watched_bits = self._model, ZERO if self._model.watched else None
        posterior = np.full(model.speakers, 1.0 / model.speakers)
        (top,) = most_probable(posterior[None], model.names, model.top)
        silence = Assessment({}, watched_bits, ZERO, ZERO, posterior, top)
        if model.joint.ratios is None:
            return silence
        even = np.zeros((1, model.speakers))
        (among,) = compute_crowds(
            even, [watched_bits], model.watched_index, model.among, model.names
        )
        return replace(
            silence,
            evidence=watched_bits,
            support_bits=0.0,
            at_least=False,
            among=among,
            ratios=even[0],
        )

    def _weigh(self, weighed: Weighed, moments: WatchedMoments) -> Iterator[tuple[int, Assessment]]:
        """Yield index and assessment of a part's moments, without the figures per feature."""
        model, ratios = self._model, weighed.ratios
        nothing: list[None] = [None] * weighed.rows.size
        figures: list[Sequence[object]] = [
            [Bits(*row) for row in weighed.local.tolist()] if model.watched else nothing,
            [Bits(*row) for row in weighed.gain.tolist()],
            model.joint.expected.evaluate_each(weighed.seconds),
            [row.copy() for row in weighed.posterior],  # a view would keep all rows in memory
            most_probable(weighed.posterior, model.names, model.top),
        ]
        evidence: list[Sequence[object]] = [nothing] * 5
        if ratios is not None:
            watched_bits = [
                Bits(*row) if model.watched else None for row in ratios.watched.tolist()
            ]
            index = None if moments.watched is None else moments.watched[weighed.rows]
            among = compute_crowds(ratios.bits, watched_bits, index, model.among, model.names)
            rows = [row.copy() for row in ratios.bits]
            evidence = [
                watched_bits,
                ratios.support.tolist(),
                ratios.at_least.tolist(),
                among,
                rows,
            ]
        enrolled = self._compute_enrolled(weighed, moments.totals)
        for r, *moment, membership in zip(
            weighed.rows.tolist(), *figures, *evidence, enrolled, strict=True
        ):
            yield r, Assessment({}, *moment, *membership)

    def _compute_readings(
        self, feature: Weighed | None, usable_seconds: FloatArray
    ) -> list[FeatureReading]:
        """Compute readings of one feature at every moment; zeros without enough frames."""
        zero = ZERO if self._model.watched else None
        seconds = usable_seconds.tolist()
        readings = [
            FeatureReading.from_figures(
                usable, None, expected_bits=ZERO, rank_bits=zero, local_bits=zero, gain_bits=ZERO
            )
            for usable in seconds
        ]
        if feature is None:
            return readings
        model, count = feature.model, feature.rows.size
        ranks: list[float | None] = [None] * count
        rank_bits: list[Bits | None] = [None] * count
        if feature.ranks is not None:
            better, tied = feature.ranks
            ranks = (better + (tied + 1) / 2).tolist()
            rank_bits = [
                Bits(*row) for row in model.rank_bits(feature.seconds, better, tied).tolist()
            ]
        figures = zip(
            feature.rows.tolist(),
            ranks,
            model.expected.evaluate_each(feature.seconds),
            rank_bits,
            feature.local.tolist(),
            feature.gain.tolist(),
            strict=True,
        )
        for row, rank, expected_bits, its_rank_bits, local, gain in figures:
            readings[row] = FeatureReading.from_figures(
                seconds[row],
                rank,
                expected_bits=expected_bits,
                rank_bits=its_rank_bits,
                local_bits=Bits(*local) if self._model.watched else None,
                gain_bits=Bits(*gain),
            )
        return readings

    def _compute_enrolled(
        self, weighed: Weighed, totals: Mapping[str, RunningTotals]
    ) -> list[tuple[float | None, tuple[str, ...]]]:
        """Compute the probability at each moment that the speaker is enrolled, or None and why."""
        if weighed.ratios is None:
            features, rows = weighed.model.features, weighed.rows
            frames = np.stack([totals[name].frames[rows] for name in features], axis=1)
            odds, area = weighed.model.enrolled(weighed, frames)
            if (prior := self._model.enrolled_prior) != 0.5:  # the rank model's
                odds = prior / (1.0 - prior) * odds / (1.0 - odds)
                odds = odds / (1.0 + odds)
        else:
            area = weighed.ratios.area
            odds = enrolled_share(weighed.ratios.bits, self._model.enrolled_prior)
            odds = np.where(area >= GOOD_AREA, odds, np.nan)
        return [
            (None, self._explain_enrolled(weighed.model, a)) if math.isnan(p) else (p, ())
            for p, a in zip(odds.tolist(), area.tolist(), strict=True)
        ]

    def _explain_enrolled(self, model: PosteriorModel, area: float) -> tuple[str, ...]:
        """Explain why these features give no probability that the speaker is enrolled."""
        measured = "not measured" if math.isnan(area) else f"{area:.2f}"
        reason = (
            f"{'+'.join(model.features)} cannot distinguish impostors from enrolled speakers (area "
            f"under the ROC curve {measured}, {GOOD_AREA:g} is needed)"
        )
        discerning = self._model.discerning
        if silent := discerning.difference(model.features):
            return reason, f"no {', '.join(sorted(silent))} frames yet"
        if not discerning:
            return reason, "a speaker embedding (voice) is needed"
        return (reason,)
