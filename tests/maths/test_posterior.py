import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from monitor.lab.evaluation.calibration import (
    local_information_bits,
    log_likelihood_ratios,
    normalise_rows,
    normalised_ceiling_bits,
)
from monitor.maths.posterior import (
    EXACT_CANDIDATES,
    condense,
    confidence_bits,
    local_bits,
    reliability,
    replicate_bits,
    score_posterior,
    weighted_evidence,
)

evidences = st.lists(st.floats(-900, 900), min_size=2, max_size=60).map(np.array)
floors = st.floats(1e-4, 1)


@pytest.mark.slow
@given(evidences, floors, st.floats(-1e6, 1e6))
def test_posterior_local_bits_and_gain_by_their_definitions(evidence, floor, shift):
    n, own = evidence.size, np.exp(evidence - evidence.max())
    p = score_posterior(evidence, floor)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert_allclose(p, (1 - floor) * own / sum(own) + floor / n, rtol=1e-12)
    # only differences count
    assert_allclose(score_posterior(evidence + shift, floor), p, rtol=1e-6)
    for each in p:
        assert np.log2(floor) - 1e-12 <= local_bits(float(each), n) <= np.log2(n) + 1e-12
    gain = confidence_bits(p)
    assert 0 <= gain <= np.log2(n)
    assert gain == pytest.approx(np.log2(n) + (p * np.log2(p)).sum(), abs=1e-9)


@pytest.mark.slow
@given(evidences, st.integers(2, 3000), st.floats(-1e6, 1e6), floors)
def test_no_evidence_and_a_floor_of_one_are_exactly_even(evidence, n, value, floor):
    for p in (score_posterior(np.full(n, value), floor), score_posterior(evidence, 1.0)):
        assert (p == 1 / p.size).all()
        assert local_bits(float(p[0]), p.size) == 0.0
        assert confidence_bits(p) == 0.0


def test_certainty_is_the_ceiling():
    assert local_bits(1.0, 64) == 6.0
    assert local_bits(1 / 4, 64) == 4.0
    assert confidence_bits(np.eye(1, 64)[0]) == 6.0


SPREAD = {"mild": 0.5, "plain": 3.0, "strong": 15.0, "extreme": 150.0}


def replicates(seed, features, count=40):
    """Weights of a rank model (row 0) and of replicates up to a factor 2 either way, and floors."""
    generator = np.random.default_rng(seed)
    rank_model = 10 ** generator.uniform(-2, 1, features)
    spread = np.exp(generator.uniform(-np.log(2), np.log(2), (count, features)))
    floor = np.exp(generator.uniform(np.log(0.01), np.log(0.3), count))
    return np.vstack([rank_model, rank_model * spread]), floor


def assert_as_every_candidate_says(candidates, scores, weights, floors, target, tolerance):
    """Under every replicate, without condensing anything."""
    local, gain = candidates.bits(weights, floors, scores[:, target])
    for w, e, own, all_of_them in zip(weights, floors, local, gain, strict=True):
        p = score_posterior(w @ scores, e)
        n = scores.shape[1]
        assert own == pytest.approx(np.log2(n * p[target]), abs=tolerance)
        assert all_of_them == pytest.approx(np.log2(n) + (p * np.log2(p)).sum(), abs=tolerance)


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
        assert_as_every_candidate_says(candidates, scores, weights[1:], floors, target, tolerance)


def test_features_that_disagree():
    # under the rank model both are equally likely, under no replicate are they
    weights = np.array([[1.0, 1.0], [2.0, 0.5], [0.5, 2.0]])
    generator = np.random.default_rng(0)
    one = np.concatenate([generator.normal(0, 0.2, 1000), generator.normal(-40, 0.2, 1000)])
    scores = np.stack([one, -40 - one + generator.normal(0, 0.2, 2000)])
    floors = np.array([0.02, 0.02])
    candidates = condense(scores, weights)
    for target in (0, 999, 1000, 1999):
        assert_as_every_candidate_says(candidates, scores, weights[1:], floors, target, 2e-3)


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
    assert not local.any()
    assert not gain.any()
    nobody, gain = condense(scores, weights).bits(weights[1:], floors, None)
    assert nobody is None
    assert not gain.any()


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


def drawn(trials: int, candidates: int, sharpen: float = 1.0):
    """Trials whose posterior is right where ``sharpen`` is 1, and overconfident above."""
    generator = np.random.default_rng(3)
    evidence = generator.normal(size=(trials, candidates)) * 2.0
    p = np.exp(evidence) / np.exp(evidence).sum(axis=1, keepdims=True)
    own = (p.cumsum(axis=1) > generator.random(trials)[:, None]).argmax(axis=1)
    claimed = p**sharpen
    return claimed / claimed.sum(axis=1, keepdims=True), own, np.ones(trials)


@pytest.mark.slow
def test_a_calibrated_posterior_lies_on_the_diagonal_and_an_overconfident_one_does_not():
    honest, boastful = (reliability(*drawn(20_000, 20, power)) for power in (1.0, 3.0))
    assert honest.share.sum() == pytest.approx(1.0)
    assert_allclose(honest.predicted, honest.observed, atol=0.05)
    assert honest.top_error < 0.02
    assert honest.all_error < 0.05
    assert boastful.top_error > honest.top_error + 0.1
    assert boastful.all_error > honest.all_error + 0.2


def test_trials_weigh_what_they_are_given():
    p = np.array([[0.9, 0.1], [0.9, 0.1]])
    own = np.array([0, 1])
    assert reliability(p, own, np.array([1.0, 0.0])).top_error == pytest.approx(0.1)
    assert reliability(p, own, np.array([0.0, 1.0])).top_error == pytest.approx(0.9)
    # probabilities of exactly 0 and 1 have a bin
    found = reliability(np.eye(3), np.arange(3), np.ones(3))
    assert_allclose(found.predicted, [0.0, 1.0])
    assert_allclose(found.observed, [0.0, 1.0])
    assert (found.top_error, found.all_error) == (0.0, 0.0)


@pytest.mark.parametrize("ddof", [0, 1])
def test_golden_worked_example(golden, ddof):
    example = golden.json("math")["lid_worked_example"]
    expected, row = example[f"ddof{ddof}"], np.array(example["scores"])
    assert_allclose(normalise_rows(row, ddof), expected["z"], atol=1e-12)
    steps = {"weight": example["w"], "bias": example["b"], "prior_odds": example["prior_odds"]}
    ratios = log_likelihood_ratios(row, ddof=ddof, **steps)
    assert_allclose(ratios, expected["llr"], atol=1e-12)
    posterior = [
        2.0 ** float(local_information_bits(row, k, ddof=ddof, **steps)) / 6 for k in range(6)
    ]
    assert_allclose(posterior, expected["posterior"], atol=1e-12)
    bits = local_information_bits(row, example["target"], ddof=ddof, **steps)
    assert bits == pytest.approx(expected["LID_bits"], abs=1e-12)
    assert round(float(bits), 1) == example["paper_rounded"]["LID"]


@pytest.mark.parametrize("regime", ["plain", "mid", "weak", "random"])
def test_golden_matrices(golden, regime):
    lid = golden.json("reference")[regime]["lid"]
    scores = golden.scores(f"{regime}_eval").astype(float)
    for name, ddof in (("repo_ddof1_balanced_C1", 1), ("paper_ddof0_balanced_C1", 0)):
        expected = lid[name]
        bits = local_information_bits(
            scores, golden.target, expected["w"], expected["b"], ddof=ddof
        )
        assert_allclose(bits[:5], expected["LID_first5"], atol=1e-5)
        assert bits.mean() == pytest.approx(expected["ALID"], abs=1e-5)
        assert bits.max() == pytest.approx(expected["LIDmax"], abs=1e-5)
        ceiling = normalised_ceiling_bits(100, expected["w"], ddof)
        assert ceiling == pytest.approx(expected["ceiling"], abs=1e-8)
        assert bits.max() <= ceiling


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_row_that_says_nothing(ddof):
    rows = np.array([[0.1] * 7, [0.3] * 7, [0.0] * 7])
    assert not normalise_rows(rows, ddof).any()
    assert not local_information_bits(rows, 2, 4.0, -1.0, 0.1, ddof).any()


@given(
    st.lists(st.floats(-50, 50), min_size=2, max_size=30), st.floats(-8, 8), st.sampled_from([0, 1])
)
def test_bias_and_prior_cancel_and_the_ceiling_holds(row, weight, ddof):
    scores = np.array(row)
    bits = [float(local_information_bits(scores, k, weight, 0.0)) for k in range(scores.size)]
    moved = local_information_bits(scores, 0, weight, -7.0, prior_odds=0.01)
    assert moved == pytest.approx(bits[0], abs=1e-9)
    assert max(bits) <= normalised_ceiling_bits(scores.size, weight) + 1e-9
    assert np.mean(2.0 ** np.array(bits)) == pytest.approx(1)
    one = float(local_information_bits(scores, 0, weight, 0.0, ddof=ddof))
    assert one <= normalised_ceiling_bits(scores.size, weight, ddof) + 1e-9


def test_the_ceiling_is_reached_by_one_high_score():
    row = np.array([1.0, *[0.0] * 9])
    for ddof in (0, 1):
        reached = local_information_bits(row, 0, 0.7, 0.0, ddof=ddof)
        assert reached == pytest.approx(normalised_ceiling_bits(10, 0.7, ddof), abs=1e-12)
    assert normalised_ceiling_bits(10, 100.0) == pytest.approx(math.log2(10))
