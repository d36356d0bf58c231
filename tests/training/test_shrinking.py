"""A model of few speakers claims too much; with another rank model as its prior it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.maths import posterior_fit as logit
from monitor.maths.posterior import confidence_bits, local_bits
from monitor.maths.rank_models import log_pmf, mean_bits_of
from monitor.maths.statistics import limits, speaker_weights
from monitor.training.fitted import (
    WORTHS,
    FittedCell,
    PriorModel,
    choose_worth,
    fit_cell,
    held_out_nats,
)
from monitor.training.voices import Cell
from tests.lab.scored import cell_of

ADDITIVE = np.ones(1, dtype=bool)
REPLICATES = 60
CANDIDATES = 40


def people(speakers: int, seed: int, hard: float = 0.08, trials: int = 8) -> Cell:
    """Speakers among as many: most are told apart well, a share of them hardly."""
    generator = np.random.default_rng(seed)
    lead = np.where(generator.random(speakers) < hard, 0.3, 4.5)
    target = np.repeat(np.arange(speakers), trials)
    scores = generator.normal(size=(target.size, speakers))
    scores[np.arange(target.size), target] += lead[target]
    return cell_of(scores, target)


def learn(cell: Cell, known: PriorModel | None = None) -> FittedCell:
    made = fit_cell(cell, [0], speaker_weights(cell.candidates, REPLICATES), ADDITIVE, 0, known)
    assert made is not None
    return made


def known_of(rank_model: FittedCell, candidates: int) -> PriorModel:
    pmf = np.exp(log_pmf(rank_model.alpha, rank_model.beta, candidates))
    return PriorModel(pmf, rank_model.weights, rank_model.floor)


def excess(rank_model: FittedCell, judges: Cell) -> tuple[float, float]:
    """Mean bits claimed of impostors less the bits that are so, and by how much beyond limits."""
    trials, n = logit.Trials(judges.gaps, judges.own), len(judges.own)

    def posterior(draw: int) -> np.ndarray:
        return trials.posterior(
            np.tile(rank_model.weights[draw], (n, 1)), np.full(n, rank_model.floor[draw])
        )

    claims = np.array([confidence_bits(posterior(b)).mean() for b in range(1 + REPLICATES)])
    truth = local_bits(posterior(0)[np.arange(n), judges.own], judges.candidates).mean()
    return claims[0] - truth, limits(claims[1:])[0] - truth


@pytest.fixture(scope="module")
def elsewhere() -> FittedCell:
    """The rank model of fifty others."""
    return learn(people(50, 99))


@pytest.fixture(scope="module")
def judges() -> Cell:
    """Three hundred whom no rank model has seen, told apart among forty."""
    many = people(300, 7)
    few = many.gaps[:, :, :CANDIDATES].copy()
    own = many.own % CANDIDATES
    few[np.arange(own.size), 0, own] = 0.0
    return replace(many, gaps=few, own=own, candidates=CANDIDATES)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("speakers", [10, 15, 19, 30])
def test_claims_of_few_speakers_stay_within_their_limits(elsewhere, judges, speakers):
    before, after = [], []
    for seed in range(3, 7):  # some hold nobody who is hard to tell
        own = people(speakers, seed)
        known = known_of(elsewhere, speakers)
        worth = choose_worth([held_out_nats(own, [0], known)])
        before.append(excess(learn(own), judges))
        after.append(excess(learn(own, replace(known, worth=worth)), judges))
    most_before, most_after = np.max(before, axis=0), np.max(after, axis=0)
    assert most_before[1] > 0.3  # alone, claims lie above the truth by far more than their limits
    assert most_after[1] < 0.2
    assert most_after[0] < 0.7 * most_before[0]


def test_the_prior_fades_as_own_speakers_grow(elsewhere):
    known = replace(known_of(elsewhere, CANDIDATES), worth=20.0)
    assert [known.share(s) for s in (10, 20, 180, 1980)] == pytest.approx([2 / 3, 0.5, 0.1, 0.01])
    histogram = np.zeros(CANDIDATES)
    histogram[:2] = 30, 10
    mixed = known.mixed(histogram, 180)
    assert mixed.sum() == pytest.approx(40)
    assert mixed == pytest.approx(0.9 * histogram + 4 * known.pmf[0])
    many = known.mixed(np.tile(histogram, (REPLICATES, 1)), 180, resamples=True)
    assert many == pytest.approx(0.9 * histogram + 4 * known.pmf[1:])


def test_speakers_left_out_say_how_far_the_prior_goes(elsewhere):
    known = known_of(elsewhere, 30)
    assert choose_worth([held_out_nats(people(30, 1), [0], known)]) > WORTHS[0]
    # nobody is told apart here: the prior misleads
    assert choose_worth([held_out_nats(people(30, 1, hard=1.0), [0], known)]) == WORTHS[0]
    assert choose_worth([]) == WORTHS[0]


def test_every_speaker_counts_once():
    # one speaker in both cells, two in one each: by cell the second worth would win
    losses = [{1: np.array([0.0, 3.0]), 2: np.array([2.0, 0.0])}, {1: np.array([0.0, 3.0])}]
    losses += [{3: np.array([2.0, 1.5])}]
    assert choose_worth(losses, (1.0, 2.0)) == 1.0


@pytest.mark.usefixtures("quick")
def test_limits_hold_the_prior_s_own_uncertainty(elsewhere):
    own = people(12, 0, hard=0.0)
    sure = known_of(elsewhere, 12)
    sure = replace(
        sure,
        pmf=np.tile(sure.pmf[0], (1 + REPLICATES, 1)),
        weights=np.tile(sure.weights[0], (1 + REPLICATES, 1)),
        floor=np.full(1 + REPLICATES, sure.floor[0]),
        worth=100.0,
    )
    widths = []
    for known in (sure, replace(known_of(elsewhere, 12), worth=100.0)):
        rank_model = learn(own, known)
        low, high = limits(
            mean_bits_of(rank_model.alpha, rank_model.beta, rank_model.binomial, 12)[1:]
        )
        widths.append((high - low, np.log(rank_model.weights[1:, 0]).std()))
    assert widths[1][0] > 1.5 * widths[0][0]
    assert widths[1][1] > 1.5 * widths[0][1]
