from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from monitor.maths.rank_models import binomial_mean_disclosure_bits, fit_many, mean_disclosure_bits
from monitor.maths.statistics import REPLICATES, limits, speaker_weights


def test_limits_of_two_hundred_replicates():
    values = np.random.default_rng(0).permutation(200).astype(float)
    assert limits(values) == (5.0, 194.0)
    assert REPLICATES == 200


def test_every_replicate_holds_as_many_speakers():
    weights = speaker_weights(17, 60, seed=3)
    assert weights.shape == (60, 17)
    assert (weights.sum(axis=1) == 17).all()
    assert (weights == np.round(weights)).all()
    assert weights.min() == 0
    assert_array_equal(weights, speaker_weights(17, 60, seed=3))
    assert (weights != speaker_weights(17, 60, seed=4)).any()


def test_replicates_are_drawn_with_replacement():
    weights = speaker_weights(30, 4000)
    # multinomial: mean 1, variance 1 - 1/S
    assert np.abs(weights.mean(axis=0) - 1).max() < 0.08
    assert weights.var() == pytest.approx(1 - 1 / 30, abs=0.02)


def model_bits(histograms):
    n = histograms.shape[1]
    alpha, beta, binomial = fit_many(histograms)
    bits = np.empty(alpha.shape)
    bits[binomial] = binomial_mean_disclosure_bits(alpha[binomial], n)
    bits[~binomial] = mean_disclosure_bits(alpha[~binomial], beta[~binomial], n)
    return bits


def plug_in_bits(histograms):
    p = histograms / histograms.sum(axis=1, keepdims=True)
    terms = np.where(p > 0, p * np.log2(np.where(p > 0, p, 1)), 0)
    return np.log2(p.shape[1]) + terms.sum(axis=1)


def coverage(bits, alpha, beta, trials, own_chance, corpora=300):
    """How often limits on 40 speakers among N = 40 hold the MeanD behind the ranks."""
    n, speakers, true = 40, 40, float(mean_disclosure_bits(alpha, beta, 40))
    held = 0
    for seed in range(corpora):
        generator = np.random.default_rng(seed)
        chance = generator.beta(alpha, beta, (speakers, 1 if own_chance else trials))
        better = generator.binomial(n - 1, np.broadcast_to(chance, (speakers, trials)))
        ranks = np.stack([np.bincount(row, minlength=n) for row in better])
        low, high = limits(bits(speaker_weights(speakers, seed=seed) @ ranks))
        held += low <= true <= high
    return held / corpora


@pytest.mark.slow
@pytest.mark.parametrize("own_chance", [False, True], ids=["trials", "speakers"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.7, 4.0), (0.6, 2.0)])
def test_limits_cover_the_true_mean_disclosure(alpha, beta, own_chance):
    """Also where a speaker is easy or hard to recognise in all trials alike."""
    assert 0.90 <= coverage(model_bits, alpha, beta, 20, own_chance) <= 0.99


def test_limits_of_plug_in_bits_would_not_cover_it():
    assert coverage(plug_in_bits, 0.7, 4.0, 5, own_chance=False, corpora=100) < 0.6
