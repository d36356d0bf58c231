from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import UsageError
from monitor.lab.evaluation import comparisons as matrix_module
from monitor.lab.evaluation.comparisons import ScoreCounts, ScoreMatrix, resamples, speaker_cells
from monitor.lab.evaluation.verification import figures
from monitor.maths.roc import count_scores


def pools(matrix):
    others = np.concatenate([block.ravel() for _, block in matrix.non_mated_blocks()])
    return matrix.mated, others


@pytest.mark.parametrize("name", ["mid_eval", "tied_eval"])
def test_counts_are_those_of_the_pools(golden, monkeypatch, name):
    matrix = golden.matrix(name)
    expected = count_scores(*pools(matrix))
    whole = ScoreCounts.of(matrix)
    monkeypatch.setattr(matrix_module, "_BLOCK", 7 * 100)
    in_blocks = ScoreCounts.of(matrix, resamples(matrix, 3))
    for counts in (whole, in_blocks):
        assert_array_equal(counts.exact.mated, expected.mated)
        assert_array_equal(counts.exact.non_mated, expected.non_mated)
        assert (counts.low, counts.high) == (matrix.scores.min(), matrix.scores.max())
    assert_allclose(in_blocks.costs, whole.costs, rtol=1e-13)


@pytest.mark.parametrize("name", ["mid_eval", "tied_eval"])
def test_a_resample_counts_the_drawn_trials_as_often(golden, name):
    matrix = golden.matrix(name)
    weights = resamples(matrix, replicates=3)
    counts = ScoreCounts.of(matrix, weights)
    assert counts.replicates is not None
    assert not counts.coarse
    for draw, times in enumerate(weights[:, matrix.owner].astype(int)):
        rows = np.repeat(np.arange(matrix.trials), times)
        drawn = ScoreMatrix(matrix.scores[rows], matrix.target[rows])
        expected = figures(drawn)
        for ours, theirs in zip(figures(matrix, weights, counts), expected, strict=True):
            assert ours.replicates is not None
            assert ours.value is not None
            assert theirs.value is not None
            near = 1e-3 if ours.key.endswith("nearest") else 1e-12
            assert ours.replicates[draw] == pytest.approx(theirs.value, abs=near)


def test_trials_of_a_speaker_need_not_stand_together(golden):
    matrix = golden.matrix("mid_eval")
    order = np.random.default_rng(0).permutation(matrix.trials)
    shuffled = ScoreMatrix(matrix.scores[order], matrix.target[order])
    cuts = np.linspace(-0.5, 0.5, 30)
    found, expected = speaker_cells(shuffled, cuts), speaker_cells(matrix, cuts)
    assert_array_equal(found[0], expected[0])
    assert_array_equal(found[1], expected[1])


def test_limits_from_coarser_cells_say_so(golden, monkeypatch):
    matrix = golden.matrix("mid_eval")
    weights = resamples(matrix, replicates=20)
    fine = figures(matrix, weights)
    monkeypatch.setattr(matrix_module, "_CELLS", 300 * 100)
    coarse = figures(matrix, weights)
    for ours, theirs in zip(coarse, fine, strict=True):
        assert ours.value == pytest.approx(theirs.value, abs=1e-15)
        assert ours.replicates == pytest.approx(theirs.replicates, abs=0.006)
    assert "coarser" in coarse[0].note
    assert "coarser" not in fine[0].note


def test_equal_weights_give_the_figure_itself(golden):
    matrix = golden.matrix("weak_eval")
    for figure in figures(matrix, np.ones((2, 100))):
        if figure.key != "verification.eer_nearest":
            assert figure.replicates == pytest.approx([figure.value] * 2, abs=1e-14)


def test_a_score_that_is_not_finite_is_named():
    scores = np.array([[0.9, 0.1], [np.nan, 0.6]])
    with pytest.raises(UsageError, match="trial 2 with speaker 0"):
        ScoreCounts.of(ScoreMatrix(scores, np.array([0, 1])))
