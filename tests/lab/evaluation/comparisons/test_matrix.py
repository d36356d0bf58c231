from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.evaluation import comparisons as module
from monitor.lab.evaluation.comparisons import ScoreMatrix, resamples
from monitor.maths.ranks import rank_bounds


def test_golden_ranks(golden):
    matrix = golden.matrix("mid_eval")
    assert (matrix.trials, matrix.population) == (1000, 100)
    assert np.count_nonzero(matrix.better == 0) == 279
    assert matrix.ceiling_bits == np.log2(100)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_any_block_size_gives_the_same(monkeypatch, size):
    scores = np.random.default_rng(1).integers(0, 5, (23, 7)).astype(np.float32)
    target = np.random.default_rng(2).integers(0, 7, 23)
    monkeypatch.setattr(module, "_BLOCK", size)
    matrix = ScoreMatrix(scores, target)
    better, tied = rank_bounds(scores, target)
    assert np.array_equal(matrix.better, better)
    assert np.array_equal(matrix.tied, tied)
    assert np.array_equal(matrix.mated, scores[np.arange(23), target])
    non_mated = np.concatenate([block for _, block in matrix.non_mated_blocks()])
    for row, others in enumerate(non_mated):
        assert np.array_equal(others, np.delete(scores[row], target[row]))


def test_a_memory_map_is_read(tmp_path):
    scores = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    np.save(tmp_path / "scores.npy", scores)
    target = np.arange(50) % 4
    mapped = ScoreMatrix(np.load(tmp_path / "scores.npy", mmap_mode="r"), target)
    assert np.array_equal(mapped.better, ScoreMatrix(scores, target).better)


def mapped_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssFile")).split()[1]) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says what is resident")
def test_pages_that_were_read_are_given_back(tmp_path):
    target = np.arange(160) % 100
    scores = np.zeros((160, 100_000), np.float32)
    scores[np.arange(160), target] = 1
    np.save(tmp_path / "scores.npy", scores)
    mapped = ScoreMatrix(np.load(tmp_path / "scores.npy", mmap_mode="r"), target)
    before = mapped_mb()
    assert (mapped.better == 0).all()
    assert sum(block.sum() for _, block in mapped.non_mated_blocks()) == 0
    assert mapped_mb() < before + 16  # of 64


def test_a_private_copy_keeps_what_was_written(tmp_path):
    np.save(tmp_path / "scores.npy", np.zeros((50, 4)))
    scores = np.load(tmp_path / "scores.npy", mmap_mode="c")
    scores[:, 1] = 1.0
    matrix = ScoreMatrix(scores, np.ones(50, int))
    assert (matrix.better == 0).all()
    assert scores.sum() == 50


def test_a_score_that_is_no_number_is_named():
    scores = np.zeros((5, 3))
    scores[3, 1] = np.nan
    matrix = ScoreMatrix(scores, np.zeros(5, dtype=int), ("ann", "bob", "cy"), name="a.npy")
    with pytest.raises(UsageError, match=r"^a.npy: the score of trial 4 with speaker bob is not"):
        _ = matrix.better


@pytest.mark.parametrize(
    ("scores", "target", "speakers", "message"),
    [
        (np.zeros(3), [0, 0, 0], (), "a matrix of numbers"),
        (np.array([["a", "b"]]), [0], (), "a matrix of numbers"),
        (np.zeros((3, 1)), [0, 0, 0], (), "1 speaker;"),
        (np.zeros((0, 3)), [], (), "no trial"),
        (np.zeros((3, 3)), [0, 1], (), "one target column"),
        (np.zeros((1, 3)), [0.5], (), "one target column"),
        (np.zeros((1, 3)), [3], (), "outside the 3 columns"),
        (np.zeros((1, 3)), [-1], (), "outside the 3 columns"),
        (np.zeros((1, 3)), [0], ("a", "b"), "3 different names"),
        (np.zeros((1, 3)), [0], ("a", "b", "a"), "3 different names"),
    ],
)
def test_what_does_not_fit_is_said(scores, target, speakers, message):
    with pytest.raises(UsageError, match=message):
        ScoreMatrix(scores, np.asarray(target), speakers)


def test_resamples_draw_speakers_that_have_trials():
    matrix = ScoreMatrix(np.zeros((6, 5)), np.array([1, 1, 4, 4, 4, 2]))
    weights = resamples(matrix, replicates=50)
    assert weights.shape == (50, 3)
    assert (weights.sum(axis=1) == 3).all()
    assert matrix.owner.tolist() == [0, 0, 2, 2, 2, 1]
    assert np.array_equal(weights, resamples(matrix, replicates=50))
