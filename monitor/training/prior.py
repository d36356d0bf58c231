"""Rank models of other people as priors of a calibration (docs/method.md section 3).

The prior counts as m speakers beside your own S, so that its weight m / (S + m) falls with S. Its
rank pmf is mixed into the histogram of ranks with this weight. Its lambda and e anchor those
of the fit (see ``monitor.maths.posterior_fit``). The likelihood of left-out speakers selects m,
pooled over cells so that the choice is stable. The minimum of m is twenty, since a dozen easily
separable speakers do not represent others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from monitor.kinds import FeatureSpec, comparable_features
from monitor.maths import posterior_fit as logit
from monitor.maths.logistic import OpenSet, fit_open_set
from monitor.maths.posterior_fit import Anchor, information
from monitor.maths.rank_models import fit_many, pmf_of
from monitor.maths.ranks import rank_histograms
from monitor.maths.scores import Similarity
from monitor.population.cohort import Cohort
from monitor.population.interpolation import LengthModel, at_template
from monitor.population.population import Population
from monitor.population.rank_model import RankModel
from monitor.training.grid import Cell, ranks_of, singles_of, trials_of
from monitor.types import BoolArray, FloatArray


class Prior:
    """Rank models of other people as priors of a calibration's cells (docs/method.md section 3)."""

    def __init__(
        self,
        population: Population,
        specs: Mapping[str, FeatureSpec],
        scorers: Mapping[str, Similarity],
        replicates: int,
        cohort: Cohort | None = None,
    ) -> None:
        self._cohort, self._rank_models = cohort, population.rank_models
        self._scorers, self._replicates = scorers, replicates
        self._comparable = comparable_features(specs, population.specs)
        self._at_template = cache(self._interpolate_template)

    def find(self, features: tuple[str, ...], session: str) -> RankModel | None:
        """Return the rank model of exactly these features, if it uses the same similarities."""
        rank_model = self._rank_models.find(features, session)
        if rank_model is None or not self._comparable.issuperset(features):
            return None
        similarities = dict(zip(rank_model.features, rank_model.similarities, strict=True))
        same = similarities == {name: self._scorers[name].name for name in features}
        return rank_model if same else None

    def select_cell(
        self, features: tuple[str, ...], session: str, test: float, template: float, candidates: int
    ) -> PriorModel | None:
        """Return the prior of one cell, T and D in speech seconds; None without such a model."""
        rank_model = self.find(features, session)
        if rank_model is None:
            return None
        point = self._at_template(features, session, template).evaluate_at(test)
        resamples = rank_model.alpha.shape[0] - 1
        rows = np.append(0, 1 + np.arange(self._replicates) % resamples)
        order = [rank_model.features.index(name) for name in features]
        return PriorModel(
            point.pmf(candidates, rows, floor=False),
            point.weights[rows][:, order],
            point.floor[rows],
            evidence=self._evidence(rank_model, order, test, template),
        )

    def _interpolate_template(
        self, features: tuple[str, ...], session: str, template: float
    ) -> LengthModel:
        rank_model = self._rank_models.find(features, session)
        assert rank_model is not None
        additive = np.array([self._scorers[name].additive for name in rank_model.features])
        return at_template(rank_model, template, additive)

    def _evidence(
        self, rank_model: RankModel, order: Sequence[int], test: float, template: float
    ) -> FloatArray | None:
        model, cohort = rank_model.evidence, self._cohort
        if model is None or cohort is None:
            return None
        marks = {n: cohort.compute_digest(n) for n in rank_model.features if n in cohort.features}
        if tuple(marks.get(name) for name in rank_model.features) != model.cohort:
            return None
        point = model.at_template(template).evaluate_at(np.array([test]))
        rows = np.append(0, 1 + np.arange(self._replicates) % (model.intercept.shape[0] - 1))
        slopes = point.slopes[0][rows][:, list(order)]
        return np.column_stack([point.intercept[0, rows], slopes])


WORTHS = (20.0, 50.0, 100.0)  # candidates for m, in speakers
_FOLDS = 20
_MOST_SCORES = 200_000  # used to estimate the Fisher information


@dataclass(frozen=True, slots=True)
class PriorModel:
    """Rank model of other speakers at a cell; row 0 the model, rows 1..B its resamples."""

    pmf: FloatArray  # of the ranks at the cell's N, shape (1 + B, N)
    weights: FloatArray  # lambda, shape (1 + B, F)
    floor: FloatArray  # e, shape (1 + B,)
    worth: float = 0.0  # m, speakers
    evidence: FloatArray | None = None  # coefficients of likelihood ratios, shape (1 + B, 1 + F)

    def share(self, speakers: int) -> float:
        """Return its weight beside S speakers: m / (S + m)."""
        return self.worth / (speakers + self.worth)

    def mixed(
        self, histograms: FloatArray, speakers: int, *, resamples: bool = False
    ) -> FloatArray:
        """Mix its rank pmf, or those of its resamples, into histograms (..., N) of S speakers."""
        weight, pmf = self.share(speakers), self.pmf[1:] if resamples else self.pmf[0]
        return np.asarray(
            (1.0 - weight) * histograms + weight * histograms.sum(-1, keepdims=True) * pmf
        )

    def anchor(self, trials: logit.Trials, has_frames: BoolArray) -> Anchor:
        """Return the anchor of lambda and e of the features with frames."""
        weights = self.weights[:, has_frames]
        step = -(-trials.margins.size // _MOST_SCORES)
        fisher = information(trials.margins[::step], weights[0], float(self.floor[0]))
        return Anchor(np.column_stack([weights, np.log(self.floor)]), fisher).scale_to(self.worth)


def held_out_nats(
    cell: Cell,
    axis: Sequence[int],
    prior: PriorModel,
    singles: logit.SingleFeatureFits | None = None,
) -> dict[int, FloatArray]:
    """Compute each speaker's loss under fits on others, for each of `WORTHS`.

    Returns by voice, shape (M,), the nats of its score posterior plus those of its rank.
    """
    selection = trials_of(cell, axis)
    if selection is None:
        return {}
    trials, has_frames = selection
    voices = np.unique(cell.gap_speaker)
    singles = singles_of(cell) if singles is None else singles
    starts, cost = singles.find_starts(np.array(axis)[has_frames].tolist())
    fold = np.arange(voices.size) % min(voices.size, _FOLDS)
    is_fitted = (fold != np.arange(fold.max() + 1)[:, None]).astype(float)
    lowest = logit.smallest_floor(voices.size - 1)
    losses = np.empty((voices.size, len(WORTHS)))
    for i, worth in enumerate(WORTHS):
        weighted_prior = replace(prior, worth=worth)
        anchor = weighted_prior.anchor(trials, has_frames).rank_model
        posterior = logit.fit(trials, cost, anchor, starts)
        weights, floors = logit.fit_replicates(
            trials, posterior.weights, is_fitted, cost, lowest, anchor
        )
        bits = logit.held_out_bits(trials, weights[fold], floors[fold])
        evidence = np.einsum("f,nfj->nj", posterior.weights, trials.margins)
        speaker, better, tied = ranks_of(cell, axis, evidence)
        voice = np.searchsorted(voices, speaker)
        training_ranks = rank_histograms(better, tied, cell.candidates, is_fitted[:, voice])
        pmf = pmf_of(*fit_many(weighted_prior.mixed(training_ranks, voices.size)), cell.candidates)
        gamma = (1.0 - lowest) * pmf + lowest / cell.candidates  # no rank is impossible
        # tied ranks get the mean of their log probabilities
        sums = np.cumsum(np.pad(np.log(gamma), ((0, 0), (1, 0))), axis=1)
        logs = (sums[fold[voice], better + tied] - sums[fold[voice], better]) / tied
        ranked = np.bincount(voice, logs) / np.bincount(voice)
        losses[:, i] = -np.log(2.0) * bits - ranked
    return dict(zip(voices.tolist(), losses, strict=True))


def choose_worth(losses: Sequence[Mapping[int, FloatArray]]) -> float:
    """Choose the worth with the least mean loss of left-out speakers."""
    voices = {voice for cell in losses for voice in cell}
    if not voices:
        return WORTHS[0]
    means = [np.mean([c[v] for c in losses if v in c], axis=0) for v in sorted(voices)]
    return WORTHS[int(np.mean(means, axis=0).argmin())]


def learn_impostors(
    cell: Cell, axis: Sequence[int], evidence: FloatArray, additive: BoolArray
) -> OpenSet:
    """Fit the open-set model to scores of the best candidate by ``evidence``, shape (n, N)."""
    trials = np.arange(evidence.shape[0])
    absolute = cell.gaps[:, list(axis)] + cell.mated[:, list(axis), None]
    frames = np.where(additive, np.maximum(cell.frames[:, list(axis)], 1.0), 1.0)
    absolute /= frames[:, :, None]
    enrolled = absolute[trials, :, evidence.argmax(axis=1)]
    others = evidence.copy()
    others[trials, cell.true_index] = -np.inf
    impostors = absolute[trials, :, others.argmax(axis=1)]
    return fit_open_set(enrolled, impostors, np.unique(cell.gap_speaker, return_inverse=True)[1])
