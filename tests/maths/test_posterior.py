from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.maths.posterior import (
    EXACT_CANDIDATES,
    condense,
    confidence_bits,
    local_bits,
    replicate_bits,
    score_posterior,
    weighted_evidence,
)

evidences = st.lists(st.floats(-900, 900), min_size=2, max_size=60).map(np.array)
floors = st.floats(1e-4, 1)


def slow_posterior(evidence, floor):
    total = sum(np.exp(x - max(evidence)) for x in evidence)
    return [
        (1 - floor) * np.exp(x - max(evidence)) / total + floor / len(evidence) for x in evidence
    ]


@pytest.mark.slow
@given(evidences, floors)
def test_against_the_definition(evidence, floor):
    p = score_posterior(evidence, floor)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert_allclose(p, slow_posterior(evidence, floor), rtol=1e-12)


@pytest.mark.slow
@given(evidences, floors)
def test_local_and_gain_stay_within_their_bounds(evidence, floor):
    n = evidence.size
    p = score_posterior(evidence, floor)
    for each in p:
        assert np.log2(floor) - 1e-12 <= local_bits(float(each), n) <= np.log2(n) + 1e-12
    gain = confidence_bits(p)
    assert 0 <= gain <= np.log2(n)
    assert gain == pytest.approx(np.log2(n) + (p * np.log2(p)).sum(), abs=1e-9)


@pytest.mark.slow
@given(evidences, st.floats(-1e6, 1e6))
def test_only_differences_count(evidence, shift):
    assert_allclose(
        score_posterior(evidence + shift, 0.1), score_posterior(evidence, 0.1), rtol=1e-6
    )


@pytest.mark.slow
@given(st.integers(2, 3000), st.floats(-1e6, 1e6), floors)
def test_no_evidence_is_exactly_even(n, value, floor):
    p = score_posterior(np.full(n, value), floor)
    assert (p == 1 / n).all()
    assert local_bits(float(p[0]), n) == 0.0
    assert confidence_bits(p) == 0.0


@pytest.mark.slow
@given(evidences)
def test_a_floor_of_one_is_exactly_even(evidence):
    p = score_posterior(evidence, 1.0)
    assert local_bits(float(p[-1]), evidence.size) == 0.0
    assert confidence_bits(p) == 0.0


def test_certainty_is_the_ceiling():
    assert local_bits(1.0, 64) == 6.0
    assert confidence_bits(np.eye(1, 64)[0]) == 6.0
    assert local_bits(1 / 4, 64) == 4.0


SPREAD = {"mild": 0.5, "plain": 3.0, "strong": 15.0, "extreme": 150.0}


def replicates(seed, features, count=40):
    """Weights of a rank model (row 0) and of replicates up to a factor 2 either way, and floors."""
    generator = np.random.default_rng(seed)
    rank_model = 10 ** generator.uniform(-2, 1, features)
    spread = np.exp(generator.uniform(-np.log(2), np.log(2), (count, features)))
    floor = np.exp(generator.uniform(np.log(0.01), np.log(0.3), count))
    return np.vstack([rank_model, rank_model * spread]), floor


def brute(scores, weights, floors, target):
    local, gain = [], []
    for w, e in zip(weights, floors, strict=True):
        p = score_posterior(w @ scores, e)
        local.append(np.log2(scores.shape[1] * p[target]))
        gain.append(np.log2(scores.shape[1]) + (p * np.log2(p)).sum())
    return np.array(local), np.array(gain)


@pytest.mark.slow
@pytest.mark.parametrize("evidence", SPREAD)
@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize("speakers", [10, 300, 5000])
def test_limits_agree_with_every_candidate_under_every_replicate(speakers, features, evidence):
    generator = np.random.default_rng(speakers + features)
    weights, floors = replicates(speakers, features)
    # raw log-likelihoods are large: only their differences matter
    scores = generator.normal(size=(features, speakers)) / weights[:1].T * SPREAD[evidence] - 5e4
    # few candidates: exact up to single precision
    tolerance = 1e-4 if speakers <= EXACT_CANDIDATES else 2e-3
    order = np.argsort(-(weights[0] @ scores))
    candidates = condense(scores, weights)
    assert candidates.counts.size <= speakers
    for target in order[[0, 1, 5, speakers // 2, -1]]:
        local, gain = candidates.bits(weights[1:], floors, scores[:, target])
        assert local is not None
        expected = brute(scores, weights[1:], floors, target)
        assert_allclose(local, expected[0], atol=tolerance)
        assert_allclose(gain, expected[1], atol=tolerance)


def test_features_that_disagree():
    # under the rank model both are equally likely, under no replicate are they
    weights = np.array([[1.0, 1.0], [2.0, 0.5], [0.5, 2.0]])
    generator = np.random.default_rng(0)
    one = np.concatenate([generator.normal(0, 0.2, 1000), generator.normal(-40, 0.2, 1000)])
    scores = np.stack([one, -40 - one + generator.normal(0, 0.2, 2000)])
    floors = np.array([0.02, 0.02])
    candidates = condense(scores, weights)
    for target in (0, 999, 1000, 1999):
        local, gain = candidates.bits(weights[1:], floors, scores[:, target])
        assert local is not None
        expected = brute(scores, weights[1:], floors, target)
        assert_allclose(local, expected[0], atol=2e-3)
        assert_allclose(gain, expected[1], atol=2e-3)


def test_many_candidates_are_few_groups():
    scores = np.random.default_rng(0).normal(size=(1, 50_000))
    candidates = condense(scores, np.array([[1.0], [2.0], [0.5]]))
    assert candidates.counts.sum() == candidates.speakers == 50_000
    assert candidates.counts.size < 100


@pytest.mark.parametrize("speakers", [2, 49, 3000])
def test_no_evidence_has_limits_of_zero(speakers):
    weights, floors = replicates(0, 2)
    scores = np.zeros((2, speakers))
    local, gain = condense(scores, weights).bits(weights[1:], floors, scores[:, 0])
    assert local is not None
    assert not local.any()
    assert not gain.any()


def test_nobody_watched_has_no_local_bits():
    weights, floors = replicates(0, 1)
    local, gain = condense(np.arange(5.0)[None], weights).bits(weights[1:], floors, None)
    assert local is None
    assert gain.shape == floors.shape


@pytest.mark.slow
@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize("speakers", [2, 49, 50, 256, 300])
@pytest.mark.parametrize("target", [None, 1])
def test_readings_worked_out_together_are_what_each_is_alone(features, speakers, target):
    generator = np.random.default_rng(features)
    weights, floors = (
        np.stack(each) for each in zip(*(replicates(s, features) for s in range(13)), strict=True)
    )
    scores = generator.normal(size=(13, features, speakers)) / weights[:, :1].swapaxes(1, 2) * 5
    together = replicate_bits(scores, weights, floors, target)
    p = score_posterior(weighted_evidence(scores, weights[:, 0]), floors[:, 0])
    gain = confidence_bits(p)
    for r in range(13):
        some = slice(r, r + 1)
        alone = replicate_bits(scores[some], weights[some], floors[some], target)
        for one, other in zip(alone, together, strict=True):
            if one is None or other is None:
                assert one is other is None
            else:
                assert np.array_equal(one[0], other[r])
        single = score_posterior(weighted_evidence(scores[r], weights[r, 0]), floors[r, 0])
        assert np.array_equal(single, p[r])
        assert confidence_bits(single) == gain[r]
