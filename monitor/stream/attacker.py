"""The modelled attacker: from running sketches to ranks, posteriors and bits.

Source: docs/method.md section 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.maths.evidence import enrolled_share
from monitor.maths.posterior import confidence_bits, local_bits, weighted_evidence
from monitor.maths.ranks import rank_now
from monitor.maths.scores import Similarity
from monitor.maths.sketch import AnySketch
from monitor.population.enrolled_probability import GOOD_AREA
from monitor.population.law import Laws, RankLaw
from monitor.population.population import Population
from monitor.population.spread import EvidenceSpread
from monitor.stream.among import CrowdEvidence, among_each, crowds_for
from monitor.stream.assessment import Assessment, RunningTotals
from monitor.stream.choosing import check_networks, choose_law, rows_by_features
from monitor.stream.judgement import Judgement, WeighedScores
from monitor.stream.lengths import common_length
from monitor.stream.ranking import most_probable
from monitor.stream.ratios import RatioBits, Ratios, evidence_law_of, ratios_lack
from monitor.stream.reading import ZERO, Bits, FeatureReading
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

__all__ = ["Attacker"]

_NOTHING = CrowdEvidence()


def _from_even(probability: FloatArray, prior: float) -> FloatArray:
    """A probability at even odds before, at others."""
    if prior == 0.5:
        return probability
    odds = prior / (1.0 - prior) * probability / (1.0 - probability)
    return np.asarray(odds / (1.0 + odds))


class Attacker:
    """Scores a stream against N templates and turns the scores into bits.

    Args:
        population: templates, and laws unless ``laws`` are given.
        features: names; the law says in which order they are kept.
        watch: the speaker the user cares about, or None.
        session: ``"cross"`` or ``"same"``: which law to use. Where there is no cross-session law
            the same-session one stands in, and ``flatters`` is True.
        laws: laws to use instead of the population's.
        template_seconds: D to cut templates to, instead of their common length, or the watched
            speaker's where that is shorter.
        top: how many of the most probable speakers are named.
        among: sizes of crowds; None for the N enrolled and a million.
        enrolled_prior: probability that one of the N speaks, before anything is heard.

    Attributes:
        evidence_law: the law whose likelihood ratios are told, of fewer features where what is
            said has none; None where nothing tells any.
        spread: how far the evidence of different voices lies apart, by length; None where it is not
            known.
        evidence_lacks: why the law of all features has none; empty where it does.

    Raises:
        UsageError: an unknown feature or speaker, or a crowd or prior that makes no sense.
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
        top: int = 5,
        among: Sequence[float] | None = None,
        enrolled_prior: float = 0.5,
    ) -> None:
        if not 0.0 < enrolled_prior < 1.0:
            raise UsageError(f"enrolled_prior={enrolled_prior:g} must lie between 0 and 1")
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
        law, self.session, self.flatters = choose_law(laws, tuple(features), session)
        check_networks(population, law)
        length = common_length(population, law, watch, template_seconds)
        self.scoring, self.withheld, self.length_notice = (
            length.scoring,
            length.withheld,
            length.notice,
        )
        places = np.flatnonzero(self.scoring.members)
        self.names = tuple(population.names[i] for i in places)
        self._most = min(top, len(self.names))
        self.left_out = tuple(
            name
            for name, member in zip(population.names, self.scoring.members, strict=True)
            if not member
        )
        self._watched: int | None = None
        if position is not None and not self.withheld:
            self._watched = int(np.searchsorted(places, position))
        self.speakers = len(self.names)
        self.ceiling = float(np.log2(self.speakers))
        self.among = crowds_for(among, self.speakers)
        self.enrolled_prior = enrolled_prior

        self.law = law
        self.features = law.features
        self.evidence_law = evidence_law_of(population, laws, law)
        self.evidence_lacks = ratios_lack(population, law)
        self.spread: EvidenceSpread | None = None
        if self.evidence_law is not None:
            self.spread = EvidenceSpread.of(self.evidence_law.rows, self.scoring.seconds)
        specs = population.specs
        self._discerning = {name for name in self.features if specs[name].kind.discerning}
        make = partial(self._judgement, population, laws)
        self.joint = make(law)
        self._single: dict[str, Judgement] = {}
        self._similarity: dict[str, Similarity] = {}
        self._templates: dict[str, FloatArray] = {}
        for name, scorer in population.scorers(law).items():
            own = self.joint
            if len(self.features) > 1:
                single, _, flatters = choose_law(laws, (name,), session)
                if single.similarities != (scorer.name,):
                    raise StoreError(
                        f"the law of {name} alone is for {single.similarities[0]} scores, the "
                        f"joint law for {scorer.name}: calibrate both together"
                    )
                check_networks(population, single)
                self.flatters |= flatters
                own = make(single)
            self._single[name] = own
            self._similarity[name] = scorer
            self._templates[name] = population.prepared(name, self.scoring, scorer)
        self._judgements = {frozenset([name]): own for name, own in self._single.items()}
        self._judgements[frozenset(self.features)] = self.joint
        for other in laws:
            names = frozenset(other.features)
            scorers = tuple(dict(zip(law.features, law.similarities, strict=True)).get(name)
                            for name in other.features)  # fmt: skip
            fits = other.session == self.session and other.similarities == scorers
            fits = fits and all(other.network(n) == law.network(n) for n in other.features)
            if fits and names not in self._judgements:
                self._judgements[names] = make(other)
        self.frame_seconds = {name: specs[name].frame_seconds for name in self.features}
        self._unheard = self._before()

    def _judgement(self, population: Population, laws: Laws, law: RankLaw) -> Judgement:
        ratios, telling = None, evidence_law_of(population, laws, law)
        if telling is not None and not self.withheld:
            ratios = Ratios(population, telling, self.scoring, self._watched)
        additive = np.array([each.additive for each in population.scorers(law).values()])
        return Judgement(law, self.scoring.seconds, self.speakers, additive, ratios)

    @property
    def support_bits(self) -> float | None:
        """The most bits of evidence that calibration can support; None where there is none."""
        ratios = self.joint.ratios
        return None if ratios is None else float(ratios.law.support.max())

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
        heard = {}
        for name in self.features:
            frames = np.array([sketches[name].frames])
            usable = frames * self.frame_seconds[name]
            heard[name] = RunningTotals(sketches[name].total[None], frames, usable)
        return self.assess_each(heard, np.array([speech_seconds]))[0]

    def assess_each(
        self, heard: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> list[Assessment]:
        """As ``assess``, at each of R moments; a moment does not depend on the others.

        Args:
            heard: for each feature.
            speech_seconds: T, shape (R,).
        """
        each = [heard[name] for name in self.features]
        steps = [np.diff(row) != 0 for one in each for row in (one.frames, one.usable_seconds)]
        more = np.any([np.diff(speech_seconds) != 0, *steps], axis=0)
        if more.all():
            return self._assess_each(heard, speech_seconds)
        # a pause says nothing new
        new = np.concatenate(([True], more))
        few = {
            name: RunningTotals(one.totals[new], one.frames[new], one.usable_seconds[new])
            for name, one in zip(self.features, each, strict=True)
        }
        found = self._assess_each(few, speech_seconds[new])
        return [found[i] for i in (np.cumsum(new) - 1).tolist()]

    def _assess_each(
        self, heard: Mapping[str, RunningTotals], speech_seconds: FloatArray
    ) -> list[Assessment]:
        moments = speech_seconds.size
        scores = np.empty((moments, len(self.features), self.speakers))
        readings: list[dict[str, FeatureReading]] = [{} for _ in range(moments)]
        alone: WeighedScores | None = None
        for f, name in enumerate(self.features):
            scores[:, f] = self._scores(name, heard[name].totals)
            alone = self._feature(name, scores[:, f : f + 1], speech_seconds, heard[name], readings)
        frames = np.stack([heard[name].frames for name in self.features], axis=1)
        posterior = np.full((moments, self.speakers), 1.0 / self.speakers)
        local: list[Bits | None] = [ZERO if self.watched else None] * moments
        gain, expected = [ZERO] * moments, [ZERO] * moments
        told = [self._unheard] * moments
        enrolled: list[float | None] = [None] * moments
        unable = [""] * moments
        for judgement, some in self._by_judgement(frames > 0):
            axis = np.array([self.features.index(name) for name in judgement.features])
            seconds, mine = speech_seconds[some], scores[np.ix_(some, axis)]
            weighed = alone
            if weighed is None or len(self.features) > 1:
                weighed = judgement.weigh(seconds, mine, self._watched)
            behind = frames[np.ix_(some, axis)]
            found = None
            if judgement.ratios is not None and behind.all():
                told_by = judgement.ratios.features
                totals = {name: heard[name].totals[some] for name in told_by}
                own = [judgement.features.index(name) for name in told_by]
                found = judgement.ratios.at(seconds, totals, mine[:, own])
            if found is None:
                odds = judgement.enrolled(seconds, mine, behind, weighed.posterior)
                odds = _from_even(odds, self.enrolled_prior)
                areas = judgement.stranger_area(seconds)
                evidence = [_NOTHING] * some.size
            else:
                odds = enrolled_share(found.bits, self.enrolled_prior)
                areas = found.area
                odds = np.where(areas >= GOOD_AREA, odds, np.nan)
                evidence = self._told(found)
            posterior[some] = weighed.posterior
            for i, r in enumerate(some.tolist()):
                local[r], told[r] = weighed.local[i], evidence[i]
                gain[r] = weighed.gain[i]
                if np.isnan(odds[i]):
                    unable[r] = self._unable(judgement, float(areas[i]))
                else:
                    enrolled[r] = float(odds[i])
                expected[r] = self.joint.expected.at(float(seconds[i]))
        beyond = (speech_seconds > self.joint.law.lengths[-1]) & (frames > 0).any(axis=1)
        return [
            Assessment(*each)
            for each in zip(
                readings,
                local,
                gain,
                expected,
                [row.copy() for row in posterior],  # none keeps the others alive
                most_probable(posterior, self.names, self._most),
                told,
                enrolled,
                unable,
                beyond.tolist(),
                strict=True,
            )
        ]

    def _told(self, found: RatioBits) -> list[CrowdEvidence]:
        """What these moments say in any crowd."""
        among = among_each(found.bits, found.watched, self._watched, self.among, self.names)
        return [
            CrowdEvidence(*each)
            for each in zip(
                found.watched,
                found.support.tolist(),
                found.at_least.tolist(),
                among,
                [row.copy() for row in found.bits],
                strict=True,
            )
        ]

    def _before(self) -> CrowdEvidence:
        """Before anything is heard everybody is as likely, in any crowd."""
        if self.joint.ratios is None:
            return _NOTHING
        own = ZERO if self.watched else None
        nothing = np.zeros((1, self.speakers))
        (among,) = among_each(nothing, [own], self._watched, self.among, self.names)
        return CrowdEvidence(own, 0.0, False, among, nothing[0])

    def _unable(self, judgement: Judgement, area: float) -> str:
        """Why these features do not say whether the speaker is enrolled, and what could."""
        heard = "+".join(judgement.features)
        measured = "not measured" if np.isnan(area) else f"{area:.2f}"
        waiting = self._discerning.difference(judgement.features)
        cure = ""
        if waiting:
            cure = f"; {', '.join(sorted(waiting))} has not said anything yet"
        elif not self._discerning:
            cure = "; it takes a speaker embedding (voice, identity)"
        return (
            f"{heard} cannot tell strangers from enrolled speakers (area under the ROC curve "
            f"{measured}, {GOOD_AREA:g} is needed){cure}"
        )

    def _by_judgement(self, heard: BoolArray) -> list[tuple[Judgement, IntArray]]:
        """Which law weighs which moments: that of the features heard by then, shape (R, F).

        A feature that has not said anything yet leaves the others to a law of their own; where
        there is none, the joint law weighs what there is.
        """
        if heard.all():
            return [(self.joint, np.arange(len(heard)))]
        return [
            (self._judgements.get(names, self.joint), some)
            for names, some in rows_by_features(self.features, heard)
        ]

    def _scores(self, name: str, totals: AnyArray) -> FloatArray:
        """Shape (R, N); each row as if it were alone."""
        return self._similarity[name].score_each(self._templates[name], totals)

    def _feature(
        self,
        name: str,
        scores: FloatArray,
        speech_seconds: FloatArray,
        heard: RunningTotals,
        readings: list[dict[str, FeatureReading]],
    ) -> WeighedScores | None:
        """Fill in the readings of one feature; what it says at the moments at which it has any."""
        zero = ZERO if self.watched else None
        nothing = FeatureReading.of(0.0, None, ZERO, zero, zero, ZERO)
        for reading in readings:
            reading[name] = nothing
        some = np.flatnonzero(heard.frames)
        if not some.size:
            return None
        judgement, scores = self._single[name], scores[some]
        seconds = speech_seconds[some].tolist()
        weighed = judgement.weigh(speech_seconds[some], scores, self._watched)
        ranks: list[tuple[float | None, Bits | None]] = [(None, None)] * some.size
        if self._watched is not None:
            better, tied = rank_now(scores[:, 0], self._watched)
            ranks = [
                (b + (t + 1) / 2, judgement.rank_bits(at, self.speakers, b, t))
                for at, b, t in zip(seconds, better.tolist(), tied.tolist(), strict=True)
            ]
        usable = heard.usable_seconds[some].tolist()
        for i, r in enumerate(some.tolist()):
            expected, (rank, rank_bits) = judgement.expected.at(seconds[i]), ranks[i]
            readings[r][name] = FeatureReading.of(
                usable[i], rank, expected, rank_bits, weighed.local[i], weighed.gain[i]
            )
        return weighed

    def scores(
        self, totals: Mapping[str, AnyArray], speech_seconds: FloatArray
    ) -> dict[str, FloatArray]:
        """What R stretches of speech score against every template.

        Args:
            totals: of the sketch of each feature, shape (R, M).
            speech_seconds: T, shape (R,).

        Returns:
            raw scores of each feature and, of several, ``"joint"``: their sum as the law weighs
            them at T, by which the posterior ranks. Each of shape (R, N).
        """
        found = {name: self._scores(name, totals[name]) for name in self.features}
        if len(self.features) == 1:
            return found
        every = np.stack([found[name] for name in self.features], axis=1)
        heard = np.stack([totals[name].any(axis=1) for name in self.features], axis=1)
        joint = np.zeros((speech_seconds.size, self.speakers))
        for judgement, some in self._by_judgement(heard):
            axis = np.array([self.features.index(name) for name in judgement.features])
            weights, _ = judgement.law.weighing(speech_seconds[some])
            joint[some] = weighted_evidence(every[np.ix_(some, axis)], weights[:, 0])
        return {**found, "joint": joint}

    def expected_alone(self, feature: str | None, speech_seconds: float) -> float:
        """What a voice gives away on average by one feature, or by all (None), bits."""
        judgement = self.joint if feature is None else self._single[feature]
        return judgement.expected.at(speech_seconds).value

    def most_bits(self, field: str) -> float:
        """What no reading of a field exceeds; infinity where nothing is known.

        Probabilities keep a share e for everybody, at every length.
        """
        name, _, last = field.rpartition(".")
        judgement = self._single.get(name, self.joint)
        if field == "evidence_bits" and self.support_bits is not None:
            return self.support_bits
        known = ("closed_set_bits", "local_bits", "gain_bits")
        if name.partition(".")[0] == "among" or last not in known:
            return math.inf
        lengths = judgement.law.lengths
        spread = float(judgement.law.weighing(lengths)[1][:, 0].min())
        best = np.full((1, self.speakers), spread / self.speakers)
        best[0, 0] += 1.0 - spread
        if last == "gain_bits" or not self.watched:
            return float(confidence_bits(best)[0])
        return float(local_bits(best[:, 0], self.speakers)[0])

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
