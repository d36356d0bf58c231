"""The modelled attacker: from running sketches to ranks, posteriors and bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.maths.bootstrap import limits
from monitor.maths.posterior import condense, gain_bits, local_bits, score_posterior
from monitor.maths.ranks import rank_now
from monitor.maths.scores import Similarity, similarity
from monitor.maths.sketch import AnySketch
from monitor.population.interpolation import LawPoint, LengthLaw, at_template
from monitor.population.law import Laws, RankLaw
from monitor.population.population import Population
from monitor.stream.expected import ExpectedBits
from monitor.stream.reading import ZERO, Bits, FeatureReading
from monitor.types import FloatArray

__all__ = ["Assessment", "Recogniser"]

_DRAWS = slice(1, None)
_MOST_RANKS = 1000


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the attacker makes of a stream so far.

    Attributes:
        features: by name.
        local, gain, expected: of the joint posterior.
        posterior: shape (N,).
        beyond_grid: T is longer than anything calibrated.
    """

    features: Mapping[str, FeatureReading]
    local: Bits | None
    gain: Bits
    expected: Bits
    posterior: FloatArray
    beyond_grid: bool


class _Judgement:
    """One law (of a feature, or of the joint) ready to weigh scores."""

    def __init__(self, law: RankLaw, seconds: float, speakers: int, kinds: Sequence[str]) -> None:
        additive = np.array(
            [
                similarity(name, kind).additive
                for name, kind in zip(law.similarities, kinds, strict=True)
            ]
        )
        self.law: LengthLaw = at_template(law, seconds, additive)
        self.expected = ExpectedBits(self.law, speakers)
        # beyond the grid the rank law stands still, for hours: the same ranks say the same
        self._beyond: dict[tuple[int, int], Bits] = {}

    def rank_bits(self, point: LawPoint, speakers: int, better: int, tied: int) -> Bits:
        """Rank bits with limits."""
        if point.beyond and (better, tied) in self._beyond:
            return self._beyond[better, tied]
        draws = point.rank_bits(speakers, better, tied)
        bits = Bits(float(draws[0]), *limits(draws[1:]))
        if point.beyond and len(self._beyond) < _MOST_RANKS:
            self._beyond[better, tied] = bits
        return bits

    def weigh(
        self, point: LawPoint, scores: FloatArray, watched: int | None
    ) -> tuple[FloatArray, Bits | None, Bits]:
        """Posterior, local bits and gain bits for raw scores, shape (F, N)."""
        speakers = scores.shape[1]
        evidence = point.weights[0] @ scores
        spread = point.spread
        posterior = score_posterior(evidence, float(spread[0]))
        target = None if watched is None else scores[:, watched]
        local_draws, gain_draws = condense(scores, point.weights).bits(
            point.weights[_DRAWS], spread[_DRAWS], target
        )
        gain = Bits(gain_bits(posterior), *limits(gain_draws))
        if watched is None or local_draws is None:
            return posterior, None, gain
        value = local_bits(float(posterior[watched]), speakers)
        return posterior, Bits(value, *limits(local_draws)), gain


class Recogniser:
    """Scores a stream against N templates and turns the scores into bits.

    Args:
        population: templates, and laws unless ``laws`` are given.
        features: names; the law says in which order they are kept.
        watch: the speaker the user cares about, or None.
        session: ``"cross"`` or ``"same"``: which law to use. Where there is no cross-session law
            the same-session one stands in, and ``flatters`` is True.
        laws: laws to use instead of the population's.
        template_seconds: D to cut templates to, instead of their common length.

    Raises:
        UsageError: an unknown feature or speaker.
        StoreError: there is no law for these features.
    """

    def __init__(
        self,
        population: Population,
        features: Sequence[str],
        watch: str | None = None,
        *,
        session: str = "cross",
        laws: Laws | None = None,
        template_seconds: float | None = None,
    ) -> None:
        laws = laws if laws is not None else population.laws
        if not features or len(set(features)) != len(features):
            raise UsageError("name each feature once, and at least one")
        unknown = [name for name in features if name not in population.features]
        if unknown:
            raise UsageError(
                f"the population has no templates of {', '.join(unknown)}; "
                f"it has {', '.join(population.features)}"
            )
        position = None if watch is None else population.index(watch)
        self.scoring = population.scoring(template_seconds)
        places = np.flatnonzero(self.scoring.members)
        self.names = tuple(population.names[i] for i in places)
        self.left_out = tuple(
            name
            for name, member in zip(population.names, self.scoring.members, strict=True)
            if not member
        )
        self.withheld = ""
        self._watched: int | None = None
        if watch is not None and watch in self.left_out:
            have = float(population.template_seconds[population.index(watch)])
            self.withheld = (
                f"template_mismatch: {watch} has {have:g} s of enrolled speech, the others "
                f"{self.scoring.seconds:g} s; enrol more, or cut all with --template-seconds "
                f"{have:g}"
            )
        elif position is not None:
            self._watched = int(np.searchsorted(places, position))
        self.speakers = len(self.names)
        self.ceiling = float(np.log2(self.speakers))

        law, self.session, self.flatters = _choose(laws, tuple(features), session)
        self.law = law
        self.features = law.features
        kinds = [population.features[name].kind for name in self.features]
        self.joint = _Judgement(law, self.scoring.seconds, self.speakers, kinds)
        self._single: dict[str, _Judgement] = {}
        self._similarity: dict[str, Similarity] = {}
        self._templates: dict[str, FloatArray] = {}
        for name, kind, scorer in zip(self.features, kinds, law.similarities, strict=True):
            own = self.joint
            if len(self.features) > 1:
                single, _, flatters = _choose(laws, (name,), session)
                if single.similarities != (scorer,):
                    raise StoreError(
                        f"the law of {name} alone is for {single.similarities[0]} scores, the "
                        f"joint law for {scorer}: calibrate both together"
                    )
                self.flatters |= flatters
                own = _Judgement(single, self.scoring.seconds, self.speakers, [kind])
            self._single[name] = own
            self._similarity[name] = similarity(scorer, kind)
            raw = population.templates(name, self.scoring)
            self._templates[name] = self._similarity[name].prepare(raw)
        self._frame_seconds = {
            name: population.features[name].frame_seconds for name in self.features
        }

    @property
    def watched(self) -> bool:
        """True where local bits are measured."""
        return self._watched is not None

    def assess(self, sketches: Mapping[str, AnySketch], speech_seconds: float) -> Assessment:
        """Rank and weigh what was heard.

        Args:
            sketches: one for each feature.
            speech_seconds: T.

        Returns:
            exact zeros, and an even posterior, as long as no feature has a frame.
        """
        readings: dict[str, FeatureReading] = {}
        scores = np.empty((len(self.features), self.speakers))
        single = len(self.features) == 1
        joint: tuple[FloatArray, Bits | None, Bits] | None = None
        for f, name in enumerate(self.features):
            sketch = sketches[name]
            scores[f] = self._similarity[name].score(self._templates[name], sketch.total)
            reading, weighed = self._one(name, scores[f : f + 1], sketch.frames, speech_seconds)
            readings[name] = reading
            joint = weighed if single else None
        heard = any(sketches[name].frames for name in self.features)
        point = self.joint.law.at(speech_seconds)
        if not heard:
            even = np.full(self.speakers, 1.0 / self.speakers)
            local = ZERO if self.watched else None
            return Assessment(readings, local, ZERO, ZERO, even, False)
        if joint is None:
            joint = self.joint.weigh(point, scores, self._watched)
        posterior, local, gain = joint
        expected = self.joint.expected.at(speech_seconds)
        return Assessment(readings, local, gain, expected, posterior, point.beyond)

    def _one(
        self, name: str, scores: FloatArray, frames: int, seconds: float
    ) -> tuple[FeatureReading, tuple[FloatArray, Bits | None, Bits] | None]:
        zero = ZERO if self.watched else None
        if frames == 0:
            return FeatureReading(0.0, None, ZERO, zero, zero, ZERO), None
        judgement = self._single[name]
        point = judgement.law.at(seconds)
        weighed = judgement.weigh(point, scores, self._watched)
        rank, rank_bits = None, None
        if self._watched is not None:
            better, tied = rank_now(scores[0], self._watched)
            rank = better + (tied + 1) / 2
            rank_bits = judgement.rank_bits(point, self.speakers, better, tied)
        usable = frames * self._frame_seconds[name]
        expected = judgement.expected.at(seconds)
        return FeatureReading(usable, rank, expected, rank_bits, *weighed[1:]), weighed

    def rank_posterior(self, sketch: AnySketch, feature: str, speech_seconds: float) -> FloatArray:
        """``gamma_{r_j}`` of every candidate: what the rank alone says, shape (N,).

        Tied candidates share their ranks' mean; the floor e of the live law is mixed in.
        """
        scores = self._similarity[feature].score(self._templates[feature], sketch.total)
        point = self._single[feature].law.at(speech_seconds)
        pmf = point.pmf(self.speakers, slice(0, 1), floor=True)[0]
        _, place, counts = np.unique(-scores, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        sums = np.concatenate([[0.0], np.cumsum(pmf)])
        return np.asarray(((sums[ends] - sums[ends - counts]) / counts)[place])


def _choose(laws: Laws, features: tuple[str, ...], session: str) -> tuple[RankLaw, str, bool]:
    """The law to use, the session it is of, and whether it flatters the attacker."""
    law = laws.find(features, session)
    if law is not None:
        return law, session, False
    other = "same" if session == "cross" else "cross"
    law = laws.find(features, other)
    if law is not None:
        return law, other, other == "same"
    raise StoreError(
        f"the population has no rank law for {'+'.join(features)}; "
        "learn one with: monitor calibrate CORPUS -o POPULATION.npz"
    )
