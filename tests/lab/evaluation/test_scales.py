"""Scores may be as large or as small as numbers go: no warning (those are errors), no zero."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.embeddings import read_embeddings
from monitor.lab.evaluation.linkage import d_sys
from monitor.lab.evaluation.membership import operating_point
from monitor.lab.evaluation.validation import validate
from monitor.lab.evaluation.verification import cllr, det_curve, eer, min_cllr
from monitor.lab.evaluation.zebra import d_ece, ece_profile, log10_l
from monitor.lab.report.model import format_value
from monitor.maths.logistic import platt
from monitor.maths.posterior import normalise_rows

SCALES = [1e300, 1e160, 1e-160, 1e-300]
each = pytest.mark.parametrize("scale", SCALES)


def _matrix(scale, seed=0):
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(12), 6)
    scores = generator.normal(size=(72, 12)) + 1.5 * (target[:, None] == np.arange(12))
    return ScoreMatrix(scores * scale, target)


@pytest.fixture(scope="module")
def usual():
    return evaluate(_matrix(1.0), _matrix(1.0, 1), settings=EvaluationSettings(replicates=10))


def _numbers(figure):
    given = (figure.value, *figure.limits)
    return np.array([np.nan if number is None else number for number in given])


@each
def test_a_whole_report(usual, scale):
    found = evaluate(_matrix(scale), _matrix(scale, 1), settings=EvaluationSettings(replicates=10))
    assert found.figures.keys() == usual.figures.keys()
    for key, figure in usual.figures.items():
        if key == "verification.cllr_bits":
            continue
        here, there = _numbers(figure), _numbers(found[key])
        np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-5, err_msg=key)
    cost = found["verification.cllr_bits"].value
    assert cost is not None
    assert cost == pytest.approx(1.0) if scale < 1 else 1e100 < cost < np.inf
    assert len(format_value(cost, "bits")) < 12


@pytest.mark.parametrize("scale", [1e305, *SCALES])
@pytest.mark.parametrize("dev", [False, True], ids=["crosswise", "dev"])
def test_a_validation(scale, dev):
    here, there = (
        validate(_matrix(by), _matrix(by, 1) if dev else None, replicates=10) for by in (1.0, scale)
    )
    np.testing.assert_allclose(there.mated, here.mated, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(there.others, here.others, rtol=1e-5, atol=1e-5)


@each
def test_metrics_of_two_pools(scale):
    matrix = _matrix(1.0)
    others = np.concatenate([scores.ravel() for _, scores in matrix.non_mated_blocks()])
    pools, scaled = (matrix.mated, others), (matrix.mated * scale, others * scale)
    for metric in (d_sys, min_cllr, d_ece, log10_l, eer):
        assert metric(*scaled) == pytest.approx(metric(*pools), rel=1e-9), metric.__name__
    for one, other in zip(det_curve(*scaled), det_curve(*pools), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    best = ece_profile(*scaled).calibrated, ece_profile(*pools).calibrated
    np.testing.assert_allclose(*best, rtol=1e-9)
    here, there = operating_point(*scaled, 0.01), operating_point(*pools, 0.01)
    assert (here.hits, here.false_alarms) == (there.hits, there.false_alarms)
    assert np.isfinite(cllr(*scaled))


@each
def test_rows_are_normalised_to_the_same(scale):
    scores = np.random.default_rng(0).normal(size=(20, 9))
    for ddof in (0, 1):
        np.testing.assert_allclose(
            normalise_rows(scores * scale, ddof), normalise_rows(scores, ddof), rtol=1e-12
        )
    assert not normalise_rows(np.full((2, 3), scale), 0).any()


@each
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("apart", [0.5, 9.0])
def test_a_logistic_fit_follows_the_scale(scale, balanced, apart):
    generator = np.random.default_rng(0)
    own, others = generator.normal(apart, 1, 60), generator.normal(0, 1, 200)
    found = platt(own * scale, others * scale, balanced=balanced)
    plain = platt(own, others, balanced=balanced)
    assert found.bounded == plain.bounded
    if apart < 1:
        assert found.weight * scale == pytest.approx(plain.weight, rel=1e-9)
        assert found.bias == pytest.approx(plain.bias, rel=1e-9)
    assert found.weight > 0
    penalised = platt(own * scale, others * scale, balanced=balanced, strength=1.0)
    assert np.isfinite([penalised.weight, penalised.bias]).all()


@each
@pytest.mark.parametrize("scoring", ["average", "max"])
def test_cosines_of_embeddings(tmp_path, scale, scoring):
    generator = np.random.default_rng(0)
    centre = generator.normal(size=(6, 8))
    heard = centre[np.arange(24) % 6] + 0.5 * generator.normal(size=(24, 8))
    found = []
    for size in (1.0, scale):
        for name, values in (("trials", heard), ("enrolment", centre)):
            whose = np.array([f"s{i % 6}" for i in range(len(values))])
            np.savez(tmp_path / f"{name}.npz", embeddings=size * values, speakers=whose)
        files = tmp_path / "trials.npz", tmp_path / "enrolment.npz"
        found.append(read_embeddings(*files, scoring).matrix)
    np.testing.assert_allclose(found[1].scores, found[0].scores, rtol=1e-6)
