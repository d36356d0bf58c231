from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.errors import UsageError
from monitor.lab.evaluation.anonymity import (
    chance_mean_ranks,
    expected_ranks,
    figures,
    rank_shares,
    speaker_mean_ranks,
)
from monitor.lab.evaluation.comparisons import Roles, ScoreMatrix, resamples
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from tests.lab.evaluation.matrices import ends, with_limits


def by_key(matrix, **options):
    return {figure.key.split(".")[1]: figure for figure in figures(matrix, **options)}


@pytest.mark.parametrize("regime", ["plain", "mid", "weak", "random"])
def test_golden_mean_ranks(golden, regime):
    expected = golden.json("reference")[regime]["usc"]
    matrix = golden.matrix(f"{regime}_eval")
    found = by_key(matrix)
    assert found["mean_rank_p50"].value == pytest.approx(expected["p50"], abs=1e-12)
    assert found["mean_rank_p1"].value == pytest.approx(expected["p1"], abs=1e-12)
    means = speaker_mean_ranks(expected_ranks(matrix.better, matrix.tied), matrix.target)
    assert_allclose(means[:3], expected["mean_rank_first3_speakers"], atol=1e-12)
    histogram = golden.json("reference")[regime]["srd"]["hist"]
    for k in (1, 5, 10, 50):
        assert found[f"share_rank_at_most_{k}"].value == pytest.approx(sum(histogram[:k]) / 1000)


def test_ties_are_expected_ranks(golden):
    matrix = golden.matrix("tied_eval")
    ranks = expected_ranks(matrix.better, matrix.tied)
    golden_mean = golden.json("reference")["tied"]["mid"]["mean_rank"]
    assert ranks.mean() == pytest.approx(golden_mean, abs=1e-12)
    first, last = rank_shares(matrix.better, matrix.tied, 1), matrix.better + matrix.tied
    assert np.mean(matrix.better == 0) > first.mean() > np.mean(last == 1)


def test_the_row_of_usc_that_knows_nothing(golden):
    expected = golden.json("math")["usc_random"]
    chance = chance_mean_ranks(expected["N"], np.full(expected["N"], expected["L"]), draws=10)
    low, middle = np.percentile(chance, [1, 50], axis=1).mean(axis=1)
    assert low == pytest.approx(expected["paper"]["p1"], abs=10)
    assert low == pytest.approx(expected["p1_normal"], abs=10)
    assert middle == pytest.approx(expected["p50"], abs=5)
    assert chance.std() == pytest.approx(expected["sd_of_speaker_mean"], rel=0.01)
    scores = np.zeros((2, expected["N"]), dtype=np.float32)
    nothing = by_key(ScoreMatrix(scores, np.array([0, 1])))["mean_rank_p50"]
    assert nothing.floor == nothing.value == expected["p50"] == 3987.5


def test_edges():
    target = np.arange(20) % 10
    constant = by_key(ScoreMatrix(np.zeros((20, 10)), target))
    assert constant["mean_rank_p50"].value == constant["mean_rank_p1"].value == 5.5
    assert constant["worst_rank"].value == 5.5
    assert constant["share_rank_at_most_1"].value == pytest.approx(0.1)
    assert constant["share_rank_at_most_5"].value == pytest.approx(0.5)
    assert "share_rank_at_most_10" not in constant
    right = np.eye(10)[target]
    assert by_key(ScoreMatrix(right, target))["mean_rank_p50"].value == 1
    reverse = by_key(ScoreMatrix(-right, target))
    assert reverse["mean_rank_p1"].value == reverse["worst_rank"].value == 10
    assert reverse["mean_rank_p1"].ceiling == 10


def test_one_first_rank_hides_in_a_mean():
    scores = np.tile(np.arange(100.0), (100, 1))
    scores[0, 0] = 200.0  # the first speaker is last but once
    found = by_key(ScoreMatrix(scores, np.zeros(100, dtype=int)))
    assert found["mean_rank_p1"].value == pytest.approx(99.01)
    assert found["worst_rank"].value == 1
    assert found["share_rank_at_most_1"].value == 0.01


def test_replicates_equal_a_loop_over_speakers(golden):
    matrix = golden.matrix("tied_eval")
    weights = resamples(matrix, replicates=7)
    found = by_key(matrix, weights=weights)
    ranks = expected_ranks(matrix.better, matrix.tied)
    share = rank_shares(matrix.better, matrix.tied, 5)
    means = speaker_mean_ranks(ranks, matrix.target)
    for draw, row in enumerate(weights.astype(int)):
        drawn = np.repeat(means, row)
        for percent in (1, 50):
            expected = np.percentile(drawn, percent)
            assert found[f"mean_rank_p{percent}"].replicates[draw] == pytest.approx(expected)
        trials = np.concatenate(
            [np.flatnonzero(matrix.owner == s) for s in np.repeat(range(100), row)]
        )
        assert found["share_rank_at_most_5"].replicates[draw] == pytest.approx(share[trials].mean())


def test_chance_lies_within_the_null(golden):
    found = with_limits(figures, golden.matrix("random_eval"))
    for key in ("mean_rank_p50", "share_rank_at_most_1", "share_rank_at_most_10"):
        figure = found[f"anonymity.{key}"]
        low, high = ends(figure)
        assert figure.floor is not None
        assert low <= figure.floor <= high
    lowest = found["anonymity.mean_rank_p1"]
    assert lowest.value == pytest.approx(lowest.floor, abs=4)


def test_roles_are_recorded_and_never_guessed():
    matrix = ScoreMatrix(np.eye(3), np.arange(3))
    few = EvaluationSettings(replicates=0, only=("anonymity",))
    roles = Roles(query="original", reference="anonymised")
    report = evaluate(matrix, settings=replace(few, roles=roles))
    assert "Original queries against anonymised references." in report.notes
    report = evaluate(matrix, settings=few)
    assert "What was anonymised, queries or references, was not given." in report.notes
    with pytest.raises(UsageError, match="a reference is anonymised or original, not 'clean'"):
        Roles(query="original", reference="clean")
    with pytest.raises(UsageError, match="a query is"):
        Roles(query="", reference="original")


def test_refusals():
    with pytest.raises(UsageError, match="ranks start at 1"):
        rank_shares(np.array([0]), np.array([1]), 0)
    with pytest.raises(UsageError, match="one rank and one speaker"):
        speaker_mean_ranks(np.array([1.0]), np.array([1, 2]))
