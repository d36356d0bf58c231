from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from monitor.kinds import HISTOGRAM
from monitor.maths.rank_models import LOSSES
from monitor.maths.ranks import rank_statistics
from monitor.maths.statistics import speaker_weights
from monitor.training import fitted
from monitor.training.fitted import FittedCell, fit_cell
from monitor.training.voices import Cell, plans
from tests.lab.scored import cell_of

SPEAKERS, TRIALS = 20, 6
ADDITIVE = np.ones(2, dtype=bool)


def fit(*arguments: Any, **settings: Any) -> FittedCell:
    """Of a cell that is enough for a rank model."""
    made = fit_cell(*arguments, **settings)
    assert made is not None
    return made


@pytest.fixture
def noisy() -> Cell:
    """Scores of a known worth: the true speaker is ahead by a little, more for some speakers."""
    generator = np.random.default_rng(5)
    target = np.repeat(np.arange(SPEAKERS), TRIALS)
    scores = generator.normal(size=(target.size, SPEAKERS))
    scores[np.arange(target.size), target] += 0.5 + (target % 4) * 0.5
    return cell_of(scores, target)


@pytest.fixture
def weights() -> np.ndarray:
    return speaker_weights(SPEAKERS, 40, 0)


@pytest.mark.usefixtures("quick")
def test_the_row_says_what_the_ranks_say(noisy, weights):
    row = fit(noisy, [0], weights, ADDITIVE[:1]).row
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


@pytest.mark.usefixtures("quick")
def test_held_out_bits_stay_below_the_ceiling_and_reward_evidence(noisy, weights):
    found = fit(noisy, [0], weights, ADDITIVE[:1])
    assert 0 < found.row["held_out_local_bits"] < found.row["ceiling_bits"]
    # they are of speakers the fit has not seen: a little less than on those it has
    share = np.exp(-np.logaddexp.reduce(found.weights[0, 0] * noisy.gaps[:, 0], axis=1))
    e = found.floor[0]
    own = np.log2(SPEAKERS * ((1 - e) * share + e / SPEAKERS)).mean()
    assert own - 0.2 < found.row["held_out_local_bits"] < own


@pytest.mark.usefixtures("quick")
def test_resamples_surround_the_rank_model(noisy, weights):
    found = fit(noisy, [0], weights, ADDITIVE[:1])
    for values in (found.alpha, found.beta, found.weights[:, 0], found.floor):
        assert values.shape == (41,)
        assert np.isfinite(values).all()
        assert values[1:].min() < values[0] < values[1:].max()
    np.testing.assert_array_equal(found.binomial, np.zeros(41))
    again = fit(noisy, [0], weights, ADDITIVE[:1])
    np.testing.assert_array_equal(found.alpha, again.alpha)
    assert found.row == again.row


@pytest.mark.usefixtures("quick")
def test_the_null_band_brackets_permuted_data(noisy, weights):
    row = fit(noisy, [0], weights, ADDITIVE[:1], seed=3).row
    generator = np.random.default_rng(99)
    means = []
    for _ in range(60):
        # every speaker is taken for another, the same in all of his trials
        wrong = generator.permutation(SPEAKERS)[noisy.own]
        evidence = noisy.gaps[:, 0]
        better = (evidence > evidence[np.arange(wrong.size), wrong][:, None]).sum(axis=1)
        means.append(rank_statistics(np.bincount(better, minlength=SPEAKERS)).mean_bits)
    inside = [row["null_raw_low"] <= mean <= row["null_raw_high"] for mean in means]
    assert np.mean(inside) > 0.85
    assert 0 <= row["null_low"] <= row["null_high"] < row["mean_bits_low"]
    # far above what independent trials would read: whole speakers move together
    assert row["null_raw_high"] > 19 / (2 * 120 * np.log(2))


@pytest.mark.usefixtures("quick")
def test_no_evidence_reads_nothing(weights):
    generator = np.random.default_rng(0)
    target = np.repeat(np.arange(SPEAKERS), TRIALS)
    found = fit(cell_of(generator.normal(size=(120, SPEAKERS)), target), [0], weights, ADDITIVE[:1])
    row = found.row
    assert row["null_low"] <= row["mean_bits_model"] <= row["null_high"] + 1e-9
    assert row["null_raw_low"] <= row["mean_bits_raw"] <= row["null_raw_high"]
    assert row["mean_bits_model"] < 0.15
    assert abs(row["held_out_local_bits"]) < 0.1
    assert fit_cell(cell_of(np.zeros((120, SPEAKERS)), target), [0], weights, ADDITIVE[:1]) is None


def test_perfect_recognition_is_finite_everywhere(weights):
    target = np.repeat(np.arange(SPEAKERS), TRIALS)
    scores = np.zeros((120, SPEAKERS))
    scores[np.arange(120), target] = 100.0
    found = fit(cell_of(scores, target), [0], weights, ADDITIVE[:1])
    row = found.row
    assert row["binomial"]
    assert "perfect" in row["notes"]
    assert row["mean_bits_model"] == pytest.approx(np.log2(SPEAKERS))
    assert row["mean_bits_low"] == row["mean_bits_high"] == pytest.approx(np.log2(SPEAKERS))
    # the floor keeps the posterior from claiming all of it
    assert row["floor"] == pytest.approx(1 / 42)
    assert row["held_out_local_bits"] < np.log2(SPEAKERS)
    json.dumps(row, allow_nan=False)


def test_one_stray_rank_under_a_narrow_rank_model_is_still_json(weights):
    """All at rank 1 but for one trial that is last: no rank model calls that likely."""
    target = np.repeat(np.arange(SPEAKERS), TRIALS)
    scores = np.zeros((120, SPEAKERS))
    scores[np.arange(120), target] = 100.0
    scores[5, target[5]] = -100.0
    json.dumps(fit(cell_of(scores, target), [0], weights, ADDITIVE[:1]).row, allow_nan=False)


def test_every_loss_is_reported(noisy, weights):
    row = fit(noisy, [0], weights, ADDITIVE[:1]).row
    assert set(row["losses"]) == set(LOSSES)
    assert row["losses"]["LL"]["alpha"] == row["alpha"]
    assert row["losses"]["LL"]["kl_bits"] == row["kl_bits"]
    best = min(loss["kl_bits"] for loss in row["losses"].values())
    assert row["kl_bits"] == pytest.approx(best, abs=1e-9)  # LL is the one that minimises it
    assert row["losses"]["CLL"]["rank1_match_bits"] < row["rank1_match_bits"] + 1e-9


@pytest.mark.usefixtures("quick")
def test_the_joint_of_two_features_beats_both(weights):
    generator = np.random.default_rng(1)
    target = np.repeat(np.arange(SPEAKERS), TRIALS)
    rows = np.arange(target.size)
    scores = generator.normal(size=(2, target.size, SPEAKERS))
    scores[0, rows, target] += 1.2
    scores[1, rows, target] += 1.5
    scores[1] *= 50.0  # on another scale: tempering has to bring them together
    cells = [cell_of(each, target) for each in scores]
    both = Cell(
        target,
        np.concatenate([cell.better for cell in cells]),
        np.concatenate([cell.tied for cell in cells]),
        SPEAKERS,
        np.concatenate([cell.gaps for cell in cells], axis=1),
        target,
        target,
        np.concatenate([cell.mated for cell in cells], axis=1),
        np.concatenate([cell.frames for cell in cells], axis=1),
    )
    one, two = (fit(both, [f], weights, ADDITIVE[:1]) for f in (0, 1))
    joint = fit(both, [0, 1], weights, ADDITIVE[:2])
    assert one.row == fit(cells[0], [0], weights, ADDITIVE[:1]).row
    assert joint.weights.shape == (41, 2)
    assert 20 < joint.weights[0, 0] / joint.weights[0, 1] < 100
    better = max(one.row["held_out_local_bits"], two.row["held_out_local_bits"])
    assert joint.row["held_out_local_bits"] > better + 0.2
    assert joint.row["mean_bits_model"] > two.row["mean_bits_model"] + 0.2


@pytest.mark.usefixtures("quick")
def test_a_draw_without_the_speakers_of_a_cell_still_counts(noisy):
    weights = np.zeros((2, 30))
    weights[0, 25] = 30.0  # only speakers that have no trials here
    weights[1, :20] = 1.0
    found = fit(noisy, [0], weights, ADDITIVE[:1])
    np.testing.assert_allclose(found.alpha[1], found.alpha[0], rtol=1e-3)
    np.testing.assert_allclose(found.alpha[2], found.alpha[0], rtol=1e-3)


def test_permutations_are_fewer_for_thousands(monkeypatch):
    monkeypatch.setattr(fitted, "PERMUTATIONS", 200)
    generator = np.random.default_rng(0)
    evidence = generator.normal(size=(4, 7))
    band = fitted._null_band(evidence, np.array([0, 1, 2, 3]), 0)
    assert band == fitted._null_band(evidence, np.array([0, 1, 2, 3]), 0)
    assert band != fitted._null_band(evidence, np.array([0, 1, 2, 3]), 1)


@pytest.mark.usefixtures("quick")
def test_a_real_cell_of_a_simulation(simulated):
    voices = simulated(20, 2, 25.0)
    for _, _, _, plan in plans(voices, [2.0], [10.0], 4):
        cell = plan.run({"f0": HISTOGRAM.similarity("log-likelihood")}, 20, 100)
        row = fit(cell, [0], speaker_weights(20, 30, 0), ADDITIVE[:1]).row
        assert row["null_high"] < row["mean_bits_low"]
        assert 1.0 < row["mean_bits_model"] < 3.5
        assert abs(row["held_out_local_bits"] - row["mean_bits_model"]) < 0.6
