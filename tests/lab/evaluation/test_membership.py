"""Membership at few false positives, and how a declared epsilon adds up."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation import comparisons as module
from monitor.lab.evaluation.accounting import account
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.membership import (
    Rates,
    _tail_of,
    figures,
    half_trials,
    operating_point,
    operating_points,
)
from monitor.lab.evaluation.resampling import resamples
from monitor.maths.composition import epsilon_lower_nats, epsilon_nats
from tests.lab.evaluation.matrices import drawn, perfect, pools


def members(matrix, **options):
    found = figures(matrix, **options)
    return {figure.key.split(".", 1)[1]: figure for figure in found}


@pytest.mark.parametrize("regime", ["plain", "mid", "weak", "random"])
def test_golden_points(golden, regime):
    expected = golden.json("reference")[regime]["voxguard_strict_gt"]
    matrix = golden.matrix(f"{regime}_eval")
    assert set(expected) == {"0.01", "0.001", "0.0001", "1e-05"}
    others = pools(matrix)[1]
    for rate, row in expected.items():
        point = operating_point(matrix.mated, others, float(rate))
        assert point.threshold == row["thr"]
        assert point.fpr == pytest.approx(row["FPR"], abs=1e-15)
        assert point.tpr == pytest.approx(row["TPR"], abs=1e-15)
        loss = float(epsilon_nats(point.tpr, point.fpr))
        assert loss == pytest.approx(float(row["eps_hat_nats"]), abs=1e-12)
        ((same, _, _),) = operating_points(matrix, (float(rate),))
        assert same == point


def test_figures_of_a_golden_matrix(golden):
    found = members(golden.matrix("mid_eval"))
    assert len(found) == 21
    assert found["tpr_at_1e-2"].value == pytest.approx(0.312)
    assert found["realised_fpr_at_1e-4"].value == pytest.approx(9 / 99000)
    assert found["epsilon_nats_at_1e-3"].value == pytest.approx(4.672828834461906)
    lower = found["epsilon_lower_nats_at_1e-4"]
    assert lower.value == pytest.approx(epsilon_lower_nats(30, 1000, 9, 99000))
    assert 0 < lower.value < found["epsilon_nats_at_1e-4"].value
    assert lower.ceiling == pytest.approx(10.19388213934584, abs=3e-2)  # golden, delta 0
    assert found["epsilon_lower_mirrored_nats_at_1e-2"].value == 0


def test_a_rate_that_too_few_scores_cannot_show(golden):
    found = members(golden.matrix("mid_eval"), rates=(1e-5,))
    assert found["tpr_at_1e-5"].value == pytest.approx(0.013)
    assert found["realised_fpr_at_1e-5"].value == 0
    endless = found["epsilon_nats_at_1e-5"]
    assert (endless.value, endless.text) == (None, "infinite")
    assert found["epsilon_lower_nats_at_1e-5"].value > 4
    for figure in found.values():
        assert figure.note.startswith("99000 non-mated scores cannot resolve a rate of 1e-5")


def test_edges():
    found = members(perfect(10, 3), rates=(1e-1,))
    assert found["realised_fpr_at_1e-1"].value == 0
    assert "Equal scores" in found["realised_fpr_at_1e-1"].note
    assert found["epsilon_nats_at_1e-1"].value is None
    assert found["epsilon_lower_nats_at_1e-1"].value > 4
    target = np.arange(30) % 10
    spread = np.linspace(1, 2, 300).reshape(30, 10) * (1 - np.eye(10)[target])
    reverse = members(ScoreMatrix(spread, target), rates=(1e-1, 0.99))
    assert reverse["tpr_at_1e-1"].value == 0
    assert reverse["epsilon_nats_at_1e-1"].value == 0
    assert reverse["epsilon_lower_nats_at_9.9e-1"].value == 0
    assert reverse["epsilon_lower_mirrored_nats_at_1e-1"].value > 1.5
    single = members(ScoreMatrix(np.array([[0.5, 0.1]]), np.array([0])))
    assert single["half_trials_tpr_at_1e-2"].value is None
    assert "Too few trials to halve" in single["half_trials_tpr_at_1e-2"].note


def test_ties_at_the_threshold_are_rejected(golden):
    matrix = golden.matrix("tied_eval")
    others = np.sort(pools(matrix)[1])[::-1]
    for rate in (1e-2, 1e-3, 1e-4):
        point = operating_point(matrix.mated, others, rate)
        assert point.threshold == others[int(rate * 99000)]
        assert point.false_alarms == np.count_nonzero(others > point.threshold)
        assert point.fpr < rate
        ((same, _, _),) = operating_points(matrix, (rate,))
        assert same == point


@given(
    seed=st.integers(0, 2**32 - 1),
    levels=st.sampled_from([2, 5, 1000]),
    rate=st.sampled_from([0.003, 0.02, 0.1, 0.5]),
    spare=st.sampled_from([0, 3, 200]),
)
@pytest.mark.slow
def test_replicates_equal_resamples_written_out(seed, levels, rate, spare):
    generator = np.random.default_rng(seed)
    target = np.sort(generator.integers(0, 8, 40))
    scores = generator.integers(0, levels, (40, 8)) + (target % 3 == 0)[:, None] * 1.0
    matrix = ScoreMatrix(scores, target)
    weights = resamples(matrix, replicates=5, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("monitor.lab.evaluation.membership._SPARE", spare)
        patch.setattr(module, "_BLOCK", 50)
        ((_, found, _),) = operating_points(matrix, (rate,), weights)
    assert found
    for draw, row in enumerate(weights):
        point = operating_point(*pools(drawn(matrix, row)), rate)
        assert found.tpr[draw] == pytest.approx(point.tpr, abs=1e-12)
        assert found.fpr[draw] == pytest.approx(point.fpr, abs=1e-12)


@pytest.mark.parametrize("levels", [None, 40])
def test_half_trials_equals_resamples_written_out(levels):
    generator = np.random.default_rng(3)
    mated, others = generator.normal(2, 1, 400), generator.normal(0, 1, 3000)
    if levels:
        mated, others = np.round(mated * 5), np.round(others * 5)
    found = half_trials(np.sort(mated)[::-1], _tail_of(others, 0.01), 0.01, replicates=4000)
    slow = []
    for _ in range(1500):
        point = operating_point(generator.choice(mated, 200), generator.choice(others, 1500), 0.01)
        slow.append((point.tpr, point.fpr))
    for fast, written in zip((found.tpr, found.fpr), np.transpose(slow), strict=True):
        assert fast.mean() == pytest.approx(written.mean(), abs=5 * written.std() / np.sqrt(1500))
        assert fast.std() == pytest.approx(written.std(), rel=0.12, abs=1e-9)
    again = half_trials(np.sort(mated)[::-1], _tail_of(others, 0.01), 0.01, replicates=4000)
    assert np.array_equal(found.epsilon_nats, again.epsilon_nats, equal_nan=True)
    losses = Rates(np.array([0.5, 0.0, 0.5]), np.array([0.0, 0.5, 0.1])).epsilon_nats
    assert np.isnan(losses).tolist() == [True, False, False]
    assert losses[1] == 0


def test_the_mirrored_bound_is_that_of_the_negated_scores(golden):
    matrix = golden.matrix("mid_eval")
    distances = ScoreMatrix(-matrix.scores, matrix.target)
    plain, other = members(matrix), members(distances)
    for rate in ("1e-2", "1e-3", "1e-4"):
        bound = plain[f"epsilon_lower_nats_at_{rate}"].value
        assert bound > 1
        assert other[f"epsilon_lower_mirrored_nats_at_{rate}"].value == bound
        assert other[f"epsilon_lower_nats_at_{rate}"].value == 0


def test_refusals():
    with pytest.raises(UsageError, match="invalid false positive rate 1:"):
        operating_point(np.ones(2), np.ones(2), 1.0)
    with pytest.raises(UsageError, match="the same speakers"):
        operating_point(np.ones(0), np.ones(2), 0.1)
    with pytest.raises(UsageError, match="different speakers"):
        operating_point(np.ones(1), np.array([0.1, np.nan]), 0.1)


def test_golden_accounts(golden):
    rows = golden.json("composition")["rows"]
    for row in rows:
        last = account(row["eps0"], row["delta"], row["k"]).rows[-1]
        assert last.trials == row["k"]
        assert last.basic_nats == pytest.approx(row["basic"], rel=1e-12)
        assert last.advanced_nats == pytest.approx(row["advanced_DRV"], rel=1e-12)
        assert last.optimal_nats == pytest.approx(row["dp_accounting_PLD"], rel=1e-6)
        assert last.optimal_nats <= row["KOV_thm33_optimal_grid"] * (1 + 1e-12)

    for epsilon, first in golden.json("composition")["delta_advanced_crossover"].items():
        assert account(float(epsilon), 1e-4).advanced_from == first
    # autodp composes by Renyi divergence, which costs a little more than the optimum
    peer = golden.json("composition")["autodp_RDP_randresponse_eps1_k16_delta1e-4"]
    assert account(1.0, 1e-4, 16).rows[-1].optimal_nats < peer


@pytest.mark.parametrize("epsilon", [math.log(2), 1.0, 800.0])
def test_advanced_never_beats_basic_from_ln_2(epsilon):
    found = account(epsilon, 1e-6, 10**6)
    assert found.advanced_from is None
    assert "never beats basic composition" in found.note
    assert all(row.advanced_nats >= row.basic_nats for row in found.rows)


def test_rows_of_an_account_and_refusals():
    found = account(0.5, trials=1000)
    assert [row.trials for row in found.rows] == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert [row.trials for row in account(0.5, trials=7).rows] == [1, 2, 5, 7]
    assert account(0.0).advanced_from is None
    for wrong, words in (
        ({"trials": 0}, "use at least 1"), ({"delta": 0.0}, "delta"), ({"epsilon": -0.5}, "eps")
    ):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            account(**({"epsilon": 0.5} | wrong))
