"""What one cell of a calibration is fitted to, alone and with another rank model as its prior."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from monitor.maths import posterior_fit as logit
from monitor.maths.posterior import confidence_bits, local_bits
from monitor.maths.rank_models import LOSSES, log_pmf, mean_bits_of
from monitor.maths.ranks import rank_statistics
from monitor.maths.statistics import limits, speaker_weights
from monitor.training.fitted import FittedCell, fit_cell
from monitor.training.grid import Cell
from monitor.training.prior import WORTHS, PriorModel, choose_worth, held_out_nats
from tests.lab.scored import cell_of

SPEAKERS, TRIALS = 20, 6
ADDITIVE = np.ones(1, dtype=bool)


TARGET = np.repeat(np.arange(SPEAKERS), TRIALS)
WEIGHTS = speaker_weights(SPEAKERS, 40, 0)


def fit(cell, axis=(0,), weights=WEIGHTS, **settings: Any) -> FittedCell:
    """Of a cell that is enough for a rank model."""
    made = fit_cell(cell, axis, weights, np.ones(len(axis), dtype=bool), **settings)
    assert made is not None
    return made


def leading(lead) -> Cell:
    """Scores in which the true speaker is ahead by so much."""
    scores = np.random.default_rng(5).normal(size=(TARGET.size, SPEAKERS))
    scores[np.arange(TARGET.size), TARGET] += lead
    return cell_of(scores, TARGET)


@pytest.fixture
def noisy() -> Cell:
    """Scores of a known worth: the true speaker is ahead by a little, more for some speakers."""
    return leading(0.5 + (TARGET % 4) * 0.5)


@pytest.mark.usefixtures("quick")
def test_the_row_says_what_the_ranks_say(noisy):
    found = fit(noisy)
    row = found.row
    histogram = np.bincount(noisy.better[0], minlength=SPEAKERS)  # no ties here
    statistics = rank_statistics(histogram)
    assert (row["speakers"], row["candidates"], row["trials"]) == (20, 20, 120)
    assert row["mean_bits_raw"] == pytest.approx(statistics.mean_bits)
    assert row["mean_bits_miller_madow"] == pytest.approx(statistics.miller_madow_bits)
    assert row["identification_rate"] == histogram[0] / 120
    assert row["ceiling_bits"] == pytest.approx(np.log2(20))
    assert row["mean_bits_low"] < row["mean_bits_model"] < row["mean_bits_high"]
    assert row["mean_bits_high"] - row["mean_bits_low"] < 1.5
    assert abs(row["mean_bits_model"] - row["mean_bits_miller_madow"]) < 0.15
    assert row["notes"] == []
    # held-out bits are of speakers the fit has not seen: a little less than on those it has
    share = np.exp(-np.logaddexp.reduce(found.weights[0, 0] * noisy.gaps[:, 0], axis=1))
    e = found.floor[0]
    own = np.log2(SPEAKERS * ((1 - e) * share + e / SPEAKERS)).mean()
    assert max(0, own - 0.2) < row["held_out_local_bits"] < own < row["ceiling_bits"]
    # resamples surround the rank model
    for values in (found.alpha, found.beta, found.weights[:, 0], found.floor):
        assert values.shape == (41,)
        assert np.isfinite(values).all()
        assert values[1:].min() < values[0] < values[1:].max()
    assert_array_equal(found.binomial, np.zeros(41))
    again = fit(noisy)
    assert_array_equal(found.alpha, again.alpha)
    assert found.row == again.row
    # a draw without the speakers of a cell still counts
    weights = np.zeros((2, 30))
    weights[0, 25], weights[1, :20] = 30.0, 1.0
    drawn = fit(noisy, weights=weights)
    assert_allclose(drawn.alpha[1:], drawn.alpha[0], rtol=1e-3)


@pytest.mark.usefixtures("quick")
def test_the_null_band_brackets_permuted_data(noisy):
    row = fit(noisy, seed=3).row
    generator = np.random.default_rng(99)
    means = []
    for _ in range(60):
        # every speaker is taken for another, the same in all of his trials
        wrong = generator.permutation(SPEAKERS)[noisy.true_index]
        evidence = noisy.gaps[:, 0]
        better = (evidence > evidence[np.arange(wrong.size), wrong][:, None]).sum(axis=1)
        means.append(rank_statistics(np.bincount(better, minlength=SPEAKERS)).mean_bits)
    inside = [row["null_raw_low"] <= mean <= row["null_raw_high"] for mean in means]
    assert np.mean(inside) > 0.85
    assert 0 <= row["null_low"] <= row["null_high"] < row["mean_bits_low"]
    # far above what independent trials would read: whole speakers move together
    assert row["null_raw_high"] > 19 / (2 * 120 * np.log(2))


@pytest.mark.usefixtures("quick")
def test_no_evidence_reads_nothing():
    row = fit(leading(0.0)).row
    assert row["null_low"] <= row["mean_bits_model"] <= row["null_high"] + 1e-9
    assert row["null_raw_low"] <= row["mean_bits_raw"] <= row["null_raw_high"]
    assert row["mean_bits_model"] < 0.15
    assert abs(row["held_out_local_bits"]) < 0.1
    nothing = cell_of(np.zeros((TARGET.size, SPEAKERS)), TARGET)
    assert fit_cell(nothing, [0], WEIGHTS, ADDITIVE) is None


def test_perfect_recognition_is_finite_everywhere_and_every_loss_is_reported(noisy):
    scores = 100.0 * np.eye(SPEAKERS)[TARGET]
    row = fit(cell_of(scores, TARGET)).row
    assert row["binomial"]
    assert "perfect" in row["notes"]
    assert row["mean_bits_model"] == pytest.approx(np.log2(SPEAKERS))
    assert row["mean_bits_low"] == row["mean_bits_high"] == pytest.approx(np.log2(SPEAKERS))
    # the floor keeps the posterior from claiming all of it
    assert row["floor"] == pytest.approx(1 / 42)
    assert row["held_out_local_bits"] < np.log2(SPEAKERS)
    json.dumps(row, allow_nan=False)
    scores[5, TARGET[5]] = -100.0  # one trial is last: no rank model calls that likely
    json.dumps(fit(cell_of(scores, TARGET)).row, allow_nan=False)
    row = fit(noisy).row
    assert set(row["losses"]) == set(LOSSES)
    assert row["losses"]["LL"]["alpha"] == row["alpha"]
    assert row["losses"]["LL"]["kl_bits"] == row["kl_bits"]


@pytest.mark.usefixtures("quick")
def test_the_joint_of_two_features_beats_both():
    generator = np.random.default_rng(1)
    scores = generator.normal(size=(2, TARGET.size, SPEAKERS))
    scores += np.array([1.2, 1.5])[:, None, None] * np.eye(SPEAKERS)[TARGET]
    scores[1] *= 50.0  # on another scale: tempering has to bring them together
    cells = [cell_of(each, TARGET) for each in scores]
    along = {"better": 0, "tied": 0, "gaps": 1, "mated": 1, "frames": 1}
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(cell, name) for cell in cells], axis)
        for name, axis in along.items()
    }
    both = replace(cells[0], **parts)
    one, two, joint = (fit(both, axis) for axis in ((0,), (1,), (0, 1)))
    assert one.row == fit(cells[0]).row
    assert joint.weights.shape == (41, 2)
    assert 20 < joint.weights[0, 0] / joint.weights[0, 1] < 100
    better = max(one.row["held_out_local_bits"], two.row["held_out_local_bits"])
    assert joint.row["held_out_local_bits"] > better + 0.2
    assert joint.row["mean_bits_model"] > two.row["mean_bits_model"] + 0.2


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
    trials, n = logit.Trials(judges.gaps, judges.true_index), len(judges.true_index)

    def posterior(draw: int) -> np.ndarray:
        return trials.posterior(
            np.tile(rank_model.weights[draw], (n, 1)), np.full(n, rank_model.floor[draw])
        )

    claims = np.array([confidence_bits(posterior(b)).mean() for b in range(1 + REPLICATES)])
    truth = local_bits(posterior(0)[np.arange(n), judges.true_index], judges.candidates).mean()
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
    true_index = many.true_index % CANDIDATES
    few[np.arange(true_index.size), 0, true_index] = 0.0
    return replace(many, gaps=few, true_index=true_index, candidates=CANDIDATES)


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


def test_speakers_left_out_say_how_far_the_prior_goes(elsewhere):
    known = known_of(elsewhere, 30)
    assert choose_worth([held_out_nats(people(30, 1), [0], known)]) > WORTHS[0]
    # nobody is told apart here: the prior misleads
    assert choose_worth([held_out_nats(people(30, 1, hard=1.0), [0], known)]) == WORTHS[0]
    assert choose_worth([]) == WORTHS[0]


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
