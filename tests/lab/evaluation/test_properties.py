"""What holds for every family of metrics that declares its extremes, whatever the scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.lab.evaluation import comparisons as module
from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix, resamples
from monitor.lab.evaluation.family import EvaluationContext, Family, families
from monitor.lab.evaluation.lid import figures as lid_figures
from monitor.lab.report.model import Figure
from monitor.types import FloatArray
from tests.lab.evaluation.matrices import (
    SEEDS,
    chance,
    constant,
    matrices,
    other_columns,
    other_rows,
    other_weights,
    perfect,
    rescored,
    separated,
    with_limits,
)


def figures_of(
    family: Family, matrix: ScoreMatrix, weights: FloatArray | None = None
) -> tuple[Figure, ...]:
    """Those of a matrix, resampled by these weights."""
    assert family.extremes is not None
    if family.extremes.compute is not None:
        return tuple(family.extremes.compute(matrix, weights))
    dev = chance(matrix.population, 20) if family.extremes.dev else None
    context = EvaluationContext(
        Comparisons.all_of(matrix), matrix, matrix, weights, weights, dev=dev
    )
    return tuple(family.compute(context).figures)


FAMILIES = [family for family in families() if family.extremes is not None]
each = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.key)
few = settings(max_examples=25)


def starting(family: Family, found: tuple[Figure, ...], keys: tuple[str, ...]) -> list[Figure]:
    return [
        figure
        for figure in found
        if figure.key.startswith(tuple(family.key + "." + key for key in keys))
    ]


def without(family: Family, found: tuple[Figure, ...], keys: tuple[str, ...]) -> list[Figure]:
    left_out = starting(family, found, keys)
    return [figure for figure in found if figure not in left_out]


def assert_same(found: Sequence[Figure], expected: Sequence[Figure], rounding: float) -> None:
    assert [figure.key for figure in found] == [figure.key for figure in expected]
    for one, other in zip(found, expected, strict=True):
        assert (one.text, one.ties, one.note, one.unit) == (
            other.text,
            other.ties,
            other.note,
            other.unit,
        )
        assert_allclose(_numbers(one), _numbers(other), rounding, rounding, err_msg=one.key)
        assert (one.replicates is None) == (other.replicates is None)
        if one.replicates is not None and other.replicates is not None:
            assert_allclose(one.replicates, other.replicates, rounding, rounding, err_msg=one.key)


def _numbers(figure: Figure) -> FloatArray:
    """All its numbers, NaN for those that it has not."""
    given = figure.value, figure.ceiling, figure.floor, figure.low, figure.high
    return np.array(given, dtype=float)


@each
@few
@given(matrix=matrices(), seed=SEEDS)
def test_every_figure_is_well_formed(family, matrix, seed):
    assume(matrix.tested.size >= family.extremes.speakers)
    found = figures_of(family, matrix, resamples(matrix, replicates=5, seed=seed))
    assert len({figure.key for figure in found}) == len(found) > 0
    for figure in found:
        assert figure.key.startswith(f"{family.key}.")
        if figure.value is None:
            assert figure.note
        else:
            assert np.isfinite(figure.value), figure.key
            if figure.ceiling is not None:
                assert figure.value <= figure.ceiling + 1e-9, figure.key
        if figure.unit in {"bits", "nats"}:
            assert figure.key.endswith(figure.unit) or f"_{figure.unit}_" in figure.key
        if figure.replicates is not None:
            assert figure.replicates.shape == (5,)
            assert not np.isinf(figure.replicates).any(), figure.key


@pytest.mark.parametrize(
    "family",
    [f for f in FAMILIES if f.extremes and not f.extremes.dev],
    ids=lambda family: family.key,
)
@few
@given(matrix=matrices())
def test_each_speaker_drawn_once_gives_the_point(family, matrix):
    assume(matrix.tested.size >= family.extremes.speakers)
    found = figures_of(family, matrix, np.ones((2, matrix.tested.size)))
    near = {figure.key for figure in starting(family, found, family.extremes.near)}
    for figure in found:
        if figure.replicates is not None and figure.key not in near:
            value = np.nan if figure.value is None else figure.value
            assert_allclose(figure.replicates, np.full(2, value), 1e-6, 1e-6, err_msg=figure.key)


@each
@few
@given(matrix=matrices())
def test_the_point_does_not_depend_on_the_replicates(family, matrix):
    assume(matrix.tested.size >= family.extremes.speakers)
    bare = figures_of(family, matrix, None)
    for one, other in zip(figures_of(family, matrix, resamples(matrix, 3)), bare, strict=True):
        assert (one.key, one.value, one.ceiling) == (other.key, other.value, other.ceiling)
        assert other.replicates is None


@each
@few
@given(matrix=matrices(), seed=SEEDS)
def test_the_order_of_the_speakers_does_not_matter(family, matrix, seed):
    assume(matrix.tested.size >= family.extremes.speakers)
    order = np.random.default_rng(seed).permutation(matrix.population)
    weights = resamples(matrix, replicates=3, seed=seed)
    moved = other_columns(matrix, order), other_weights(matrix, order, weights)
    assert_same(
        figures_of(family, *moved), figures_of(family, matrix, weights), family.extremes.rounding
    )


@pytest.mark.parametrize("seed", range(5))
def test_cross_fitting_does_not_mind_the_order_either(seed):
    """On scores without ties: a fit to a few tied ones is hardly determined."""
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(12), 4)
    scores = generator.normal(size=(48, 12)) + 1.5 * (np.arange(12) == target[:, None])
    matrix = ScoreMatrix(scores, target)
    weights = resamples(matrix, replicates=20)
    columns, rows = generator.permutation(12), generator.permutation(48)
    moved = other_rows(other_columns(matrix, columns), rows)
    found = lid_figures(moved, other_weights(matrix, columns, weights))
    assert_same(found, lid_figures(matrix, weights), 1e-6)


@each
@few
@given(matrix=matrices(), seed=SEEDS)
def test_the_order_of_the_trials_does_not_matter(family, matrix, seed):
    assume(matrix.tested.size >= family.extremes.speakers)
    generator = np.random.default_rng(seed)
    order = generator.permutation(matrix.trials)
    weights = resamples(matrix, replicates=3, seed=seed)
    moved = figures_of(family, other_rows(matrix, order), weights)
    assert_same(moved, figures_of(family, matrix, weights), family.extremes.rounding)


@pytest.mark.slow
@each
@few
@given(matrix=matrices(), change=st.sampled_from([lambda x: np.exp(x / 5), lambda x: 4 * x - 7]))
def test_only_comparisons_count_over_all_rows(family, matrix, change):
    assume(matrix.tested.size >= family.extremes.speakers)
    weights = resamples(matrix, replicates=3)
    moved = figures_of(family, rescored(matrix, change), weights)
    kept = figures_of(family, matrix, weights)
    assert_same(
        starting(family, moved, family.extremes.monotone),
        starting(family, kept, family.extremes.monotone),
        family.extremes.rounding,
    )


POWERS = st.sampled_from([996, -996, 560, -560, 100])
"""Of two, up to 1e300 and down to 1e-300: they round nothing, so that thresholds midway stay."""


@each
@few
@given(matrix=matrices(), power=POWERS)
def test_the_scale_of_the_scores_does_not_matter(family, matrix, power):
    """But to Cllr, which takes them for log-likelihood ratios."""
    assume(matrix.tested.size >= family.extremes.speakers)
    weights = resamples(matrix, replicates=3)
    moved = figures_of(family, rescored(matrix, lambda x: np.ldexp(x, power)), weights)
    kept = figures_of(family, matrix, weights)
    for figure in moved:
        assert figure.value is None or np.isfinite(figure.value), figure.key
    assert_same(
        without(family, moved, family.extremes.scaled),
        without(family, kept, family.extremes.scaled),
        max(family.extremes.rounding, 1e-7),
    )


@each
@few
@given(matrix=matrices(), seed=SEEDS)
def test_only_comparisons_count_within_a_row(family, matrix, seed):
    assume(matrix.tested.size >= family.extremes.speakers)
    generator = np.random.default_rng(seed)
    scale, shift = generator.uniform(0.5, 2, (2, matrix.trials, 1))
    weights = resamples(matrix, replicates=3)
    moved = figures_of(family, rescored(matrix, lambda x: np.exp(scale * x / 5) + shift), weights)
    kept = figures_of(family, matrix, weights)
    assert_same(
        starting(family, moved, family.extremes.rowwise),
        starting(family, kept, family.extremes.rowwise),
        family.extremes.rounding,
    )


@each
@settings(max_examples=10)
@given(matrix=matrices(), size=st.integers(1, 40))
def test_any_block_size_gives_the_same(family, matrix, size):
    assume(matrix.tested.size >= family.extremes.speakers)
    weights = resamples(matrix, replicates=3)
    expected = figures_of(family, matrix, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", size)
        again = ScoreMatrix(matrix.scores, matrix.target)
        assert_same(figures_of(family, again, weights), expected, family.extremes.rounding)


@each
def test_a_memory_map_gives_the_same(family, tmp_path):
    matrix = chance(12, 6)
    np.save(tmp_path / "scores.npy", matrix.scores.astype(np.float32))
    mapped = ScoreMatrix(np.load(tmp_path / "scores.npy", mmap_mode="r"), matrix.target)
    held = rescored(matrix, lambda scores: scores.astype(np.float32).astype(float))
    assert_same(
        figures_of(family, mapped, None), figures_of(family, held, None), family.extremes.rounding
    )


@each
@pytest.mark.parametrize("matrix", [perfect(), perfect(3, 1), perfect(2, 9)], ids=["10", "3", "2"])
def test_perfect_scores_reach_the_ceilings(family, matrix):
    found = starting(family, figures_of(family, matrix, None), family.extremes.at_ceiling)
    assert len(found) >= len(family.extremes.at_ceiling)
    for figure in found:
        assert figure.value == pytest.approx(figure.ceiling), figure.key


@each
def test_more_than_perfect_there_is_not(family):
    one, other = figures_of(family, perfect(), None), figures_of(family, separated(), None)
    for best, good in zip(one, other, strict=True):
        if best.value is not None and good.value is not None and best.ceiling == good.ceiling:
            assert best.ceiling is None or good.value <= best.ceiling + 1e-9, best.key


@each
@pytest.mark.parametrize("seed", [0, 1])
def test_chance_reads_nothing(family, seed):
    matrix = chance(seed=seed)
    made = tuple(with_limits(partial(figures_of, family), matrix).values())
    found = starting(family, made, family.extremes.at_floor)
    assert len(found) >= len(family.extremes.at_floor)
    for figure in found:
        assert figure.value is not None
        assert figure.floor is not None
        low, high = figure.limits
        slack = 0.0 if low is None or high is None else high - low  # about four standard errors
        assert abs(figure.value - figure.floor) <= slack + 1e-12, figure.key


@each
def test_constant_scores_read_nothing(family):
    found = starting(family, figures_of(family, constant(), None), family.extremes.flat_at_floor)
    assert len(found) >= len(family.extremes.flat_at_floor)
    for figure in found:
        assert figure.value == pytest.approx(figure.floor, abs=1e-12), figure.key
