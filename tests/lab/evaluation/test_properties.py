"""What holds for every family of metrics in `EXTREMES`, whatever the scores."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.lab.evaluation import anonymity, membership, srd, verification, zebra
from monitor.lab.evaluation import comparisons as module
from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix
from monitor.lab.evaluation.family import EvaluationContext, Family, families
from monitor.lab.evaluation.lid import figures as lid_figures
from monitor.lab.evaluation.resampling import resamples
from monitor.lab.report.model import Figure
from monitor.types import FloatArray
from tests.lab.evaluation.matrices import (
    SEEDS,
    by_key,
    chance,
    constant,
    drawn,
    leading,
    linkage_figures,
    matrices,
    other_columns,
    other_rows,
    perfect,
    rescored,
    with_limits,
)


@dataclass(frozen=True)
class Extremes:
    """Expected values of a family's figures whatever the scores.

    Texts are beginnings of keys, without the family's own name: ``"eer"``.
    """

    monotone: tuple[str, ...] = ()  # they only compare scores over all rows
    rowwise: tuple[str, ...] = ()  # they only compare scores within a row
    at_ceiling: tuple[str, ...] = ()  # perfect scores bring them to their ceiling
    at_floor: tuple[str, ...] = ()  # chance leaves them at their floor
    flat_at_floor: tuple[str, ...] = ()  # constant scores leave them there
    scaled: tuple[str, ...] = ()  # they change with the scale of the scores
    dev: bool = False  # it is calibrated on a dev matrix, with its speakers resampled too
    near: tuple[str, ...] = ()  # replicates come only near the value where all are drawn once
    rounding: float = 1e-9  # how far iterative fits of the same numbers may lie apart
    # figures of a matrix and weights, where `Family.compute` does not find them
    compute: Callable[[ScoreMatrix, FloatArray | None], Iterable[Figure]] | None = None


EXTREMES = {
    "srd": Extremes(
        monotone=("",),
        rowwise=("",),
        at_ceiling=("idr", "mean_bits", "maxd_bits", "rank1_bits"),
        at_floor=("mean_bits_model", "idr"),
        flat_at_floor=("mean_bits_model", "idr"),
        rounding=1e-6,
        compute=partial(srd.figures, permutations=0),
    ),
    "lid": Extremes(at_floor=("alid",), flat_at_floor=("alid",), dev=True, rounding=1e-6),
    "zebra": Extremes(
        monotone=("",),
        at_ceiling=("d_ece", "log10_l"),
        at_floor=("d_ece",),
        flat_at_floor=("d_ece", "log10_l"),
        compute=zebra.figures,
    ),
    "verification": Extremes(
        monotone=("eer", "min_cllr"),
        at_floor=("eer", "min_cllr"),
        flat_at_floor=("eer", "min_cllr"),
        scaled=("cllr",),
        near=("eer_nearest",),
        compute=verification.figures,
    ),
    "linkage": Extremes(
        monotone=("pi_link",),
        at_ceiling=("pi",),
        at_floor=("pi",),
        flat_at_floor=("d_sys",),
        compute=linkage_figures,
    ),
    "anonymity": Extremes(
        monotone=("",),
        rowwise=("",),
        at_ceiling=("share",),
        at_floor=("share", "mean_rank_p50"),
        flat_at_floor=("share", "mean_rank_p50"),
        compute=partial(anonymity.figures, cuts=(1, 2, 5)),
    ),
    "membership": Extremes(
        monotone=("",),
        at_ceiling=("tpr", "epsilon_lower_nats", "half_trials_tpr"),
        at_floor=("tpr", "epsilon_lower"),
        flat_at_floor=("tpr", "epsilon", "half_trials"),
        compute=partial(membership.figures, rates=(0.01, 0.1, 0.5)),
    ),
}


def figures_of(
    family: Family, matrix: ScoreMatrix, weights: FloatArray | None = None
) -> tuple[Figure, ...]:
    """Those of a matrix, resampled by these weights."""
    extremes = EXTREMES[family.key]
    if extremes.compute is not None:
        return tuple(extremes.compute(matrix, weights))
    dev = chance(matrix.population, 20) if extremes.dev else None
    context = EvaluationContext(
        Comparisons.all_of(matrix), matrix, matrix, weights, weights, dev=dev
    )
    return tuple(family.compute(context).figures)


def key_of(family: Family) -> str:
    return family.key


FAMILIES: list[Any] = [family for family in families() if family.key in EXTREMES]
each = pytest.mark.parametrize("family", FAMILIES, ids=key_of)
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
        for name in ("text", "ties", "note", "unit"):
            assert getattr(one, name) == getattr(other, name), one.key
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


@pytest.mark.parametrize("family", [f for f in FAMILIES if not EXTREMES[f.key].dev], ids=key_of)
@few
@given(matrix=matrices())
def test_each_speaker_drawn_once_gives_the_point(family, matrix):
    found = figures_of(family, matrix, np.ones((2, matrix.tested.size)))
    near = {figure.key for figure in starting(family, found, EXTREMES[family.key].near)}
    for figure in found:
        if figure.replicates is not None and figure.key not in near:
            value = np.nan if figure.value is None else figure.value
            assert_allclose(figure.replicates, np.full(2, value), 1e-6, 1e-6, err_msg=figure.key)


@each
@few
@given(matrix=matrices())
def test_the_point_does_not_depend_on_the_replicates(family, matrix):
    bare = figures_of(family, matrix, None)
    for one, other in zip(figures_of(family, matrix, resamples(matrix, 3)), bare, strict=True):
        assert (one.key, one.value, one.ceiling) == (other.key, other.value, other.ceiling)
        assert other.replicates is None


def all_of(family: Family, found: tuple[Figure, ...]) -> Sequence[Figure]:
    return found


CHANGES: dict[str, tuple[Callable[..., ScoreMatrix], Callable[..., Sequence[Figure]]]] = {
    "another order of the speakers": (
        lambda matrix, random: other_columns(matrix, random.permutation(matrix.population)),
        all_of,
    ),
    "another order of the trials": (
        lambda matrix, random: other_rows(matrix, random.permutation(matrix.trials)),
        all_of,
    ),
    # up to 1e300 and down to 1e-300, by powers of two: they round nothing, so that thresholds
    # midway stay; but Cllr takes scores for log-likelihood ratios
    "another scale": (
        lambda matrix, random: rescored(
            matrix, lambda x: np.ldexp(x, random.choice([996, -996, 560, -560, 100]))
        ),
        lambda family, found: without(family, found, EXTREMES[family.key].scaled),
    ),
    "a rising function": (
        lambda matrix, random: rescored(
            matrix, random.choice([lambda x: np.exp(x / 5), lambda x: 4 * x - 7])
        ),
        lambda family, found: starting(family, found, EXTREMES[family.key].monotone),
    ),
    "a rising function of each row": (
        lambda matrix, random: rescored(
            matrix,
            lambda x: (
                np.exp(random.uniform(0.5, 2, (matrix.trials, 1)) * x / 5)
                + random.uniform(0.5, 2, (matrix.trials, 1))
            ),
        ),
        lambda family, found: starting(family, found, EXTREMES[family.key].rowwise),
    ),
}


@each
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "a rising function"))
     for name in CHANGES],
)  # fmt: skip
@few
@given(matrix=matrices(), seed=SEEDS)
def test_what_figures_do_not_depend_on(family, name, matrix, seed):
    """Speakers are drawn by name, so that resamples are the same in any order."""
    change, chosen = CHANGES[name]
    moved = change(matrix, np.random.default_rng(seed))
    found, kept = (
        figures_of(family, each, resamples(each, replicates=3, seed=seed))
        for each in (moved, matrix)
    )
    if name == "another scale":
        for figure in found:
            assert figure.value is None or np.isfinite(figure.value), figure.key
    rounding = max(EXTREMES[family.key].rounding, 1e-7 * (name == "another scale"))
    assert_same(chosen(family, found), chosen(family, kept), rounding)


@pytest.mark.parametrize("seed", range(5))
def test_cross_fitting_does_not_mind_the_order_either(seed):
    """On scores without ties: a fit to a few tied ones is hardly determined."""
    matrix = leading(12, 4, 1.5, seed)
    generator = np.random.default_rng(seed)
    columns, rows = generator.permutation(12), generator.permutation(48)
    moved = other_rows(other_columns(matrix, columns), rows)
    found, kept = (lid_figures(each, resamples(each, replicates=20)) for each in (moved, matrix))
    assert_same(found, kept, 1e-6)


@each
@settings(max_examples=10)
@given(matrix=matrices(), size=st.integers(1, 40))
def test_any_block_size_gives_the_same(family, matrix, size):
    weights = resamples(matrix, replicates=3)
    expected = figures_of(family, matrix, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", size)
        again = ScoreMatrix(matrix.scores, matrix.target)
        assert_same(figures_of(family, again, weights), expected, EXTREMES[family.key].rounding)


@each
@pytest.mark.parametrize("matrix", [perfect(), perfect(3, 1), perfect(2, 9)], ids=["10", "3", "2"])
def test_perfect_scores_reach_the_ceilings(family, matrix):
    found = starting(family, figures_of(family, matrix, None), EXTREMES[family.key].at_ceiling)
    assert len(found) >= len(EXTREMES[family.key].at_ceiling)
    for figure in found:
        assert figure.value == pytest.approx(figure.ceiling), figure.key


@each
@pytest.mark.parametrize("seed", [0, 1])
def test_chance_reads_nothing(family, seed):
    matrix = chance(seed=seed)
    made = tuple(with_limits(partial(figures_of, family), matrix).values())
    found = starting(family, made, EXTREMES[family.key].at_floor)
    assert len(found) >= len(EXTREMES[family.key].at_floor)
    for figure in found:
        assert figure.value is not None
        assert figure.floor is not None
        low, high = figure.limits
        slack = 0.0 if low is None or high is None else high - low  # about four standard errors
        assert abs(figure.value - figure.floor) <= slack + 1e-12, figure.key


COUNTED = {
    "anonymity": ("share",),
    "linkage": ("pi_link",),
    "membership": ("tpr",),
    "srd": ("mean_bits_model", "idr", "maxd_bits", "rank1_bits", "spread", "alpha"),
    "verification": ("eer_rocch", "cllr", "min_cllr"),
    "zebra": ("d_ece",),
}


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.key in COUNTED], ids=key_of)
@pytest.mark.parametrize("name", ["mid_eval", "tied_eval"])
def test_a_resample_counts_the_drawn_trials_as_often(family, golden, name):
    """Of figures over trials: a mean of speakers' own figures counts speakers."""
    matrix = golden.matrix(name)
    weights = resamples(matrix, replicates=3)
    found = starting(family, figures_of(family, matrix, weights), COUNTED[family.key])
    assert len(found) >= len(COUNTED[family.key])
    near = 1e-6 if family.key == "srd" else 1e-12  # rank models are fitted
    for draw, row in enumerate(weights):
        expected = by_key(figures_of(family, drawn(matrix, row)))
        for figure in found:
            assert figure.replicates is not None, figure.key
            value = expected[figure.key].value
            assert figure.replicates[draw] == pytest.approx(value, rel=near, abs=near), figure.key


@each
def test_constant_scores_read_nothing(family):
    found = starting(
        family, figures_of(family, constant(), None), EXTREMES[family.key].flat_at_floor
    )
    assert len(found) >= len(EXTREMES[family.key].flat_at_floor)
    for figure in found:
        assert figure.value == pytest.approx(figure.floor, abs=1e-12), figure.key
