from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.lab.evaluation.comparisons import ScoreMatrix, resamples
from monitor.lab.evaluation.lid import (
    STYLES,
    bits_slopes,
    calibrate,
    cross_calibrate,
    information_bits,
    weight_shifts,
)

DRAWS = 30


def made(strength: float, seed: int = 0) -> ScoreMatrix:
    """Thirty speakers who differ in how easily they are told."""
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(30), 8)
    own = target[:, None] == np.arange(30)
    ease = strength + 0.7 * generator.normal(size=30)
    return ScoreMatrix(generator.normal(size=own.shape) + own * ease[target][:, None], target)


def repeated(matrix: ScoreMatrix, weights: np.ndarray) -> ScoreMatrix:
    """The trials of a resample, written out."""
    rows = np.repeat(np.arange(matrix.trials), weights.astype(int)[matrix.owner])
    return ScoreMatrix(matrix.scores[rows], matrix.target[rows])


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_one_step_is_nearly_a_fit_of_each_resample(style, strength):
    matrix = made(strength)
    weights = resamples(matrix, DRAWS)
    found = calibrate(matrix, style)
    shifts = weight_shifts(matrix, found, STYLES[style], weights)
    exact = np.array([calibrate(repeated(matrix, w), style).weight for w in weights])
    exact -= found.weight
    assert np.corrcoef(shifts, exact)[0, 1] > 0.99
    assert np.abs(shifts - exact).max() < 0.2 * np.abs(exact).max()
    whole = weight_shifts(matrix, found, STYLES[style], np.ones((1, 30)))
    assert whole == pytest.approx([0.0], abs=1e-12)


def test_folds_move_together():
    matrix = made(1.0)
    weights = resamples(matrix, DRAWS)
    crossed = weight_shifts(matrix, cross_calibrate(matrix), STYLES["paper"], weights)
    single = weight_shifts(matrix, calibrate(matrix), STYLES["paper"], weights)
    assert np.abs(crossed - single).max() < 0.1 * np.abs(single).max()


@pytest.mark.parametrize("style", STYLES)
def test_slopes_are_those_of_the_bits(style):
    matrix = made(1.0)
    one, crossed = calibrate(matrix, style), cross_calibrate(matrix, style)
    folds = tuple(replace(each, weight=each.weight + 1e-6) for each in crossed.calibrations)
    for found, moved in (
        (one, replace(one, weight=one.weight + 1e-6)),
        (crossed, replace(crossed, calibrations=folds)),
    ):
        gained = (information_bits(matrix, moved) - information_bits(matrix, found)) / 1e-6
        assert bits_slopes(matrix, found, STYLES[style]) == pytest.approx(gained, abs=1e-5)


def test_separated_and_constant_scores_move_little():
    perfect = made(80.0)
    weights = resamples(perfect, DRAWS)
    flat = ScoreMatrix(np.ones((6, 3)), np.arange(6) % 3)
    for matrix, drawn in ((perfect, weights), (flat, resamples(flat, DRAWS))):
        for style in STYLES.values():
            found = calibrate(matrix, style)
            shifts = weight_shifts(matrix, found, style, drawn)
            assert np.isfinite(shifts).all()
            assert np.abs(shifts).max() <= found.weight
