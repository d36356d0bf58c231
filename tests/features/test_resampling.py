from __future__ import annotations

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.features.extractor import Resampler

RATES = [8000, 11025, 16000, 44100, 48000]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(RATES), st.integers(0, 3000), st.lists(st.integers(1, 900), max_size=8))
def test_any_cutting_equals_one_shot(rate, size, cuts):
    samples = np.random.default_rng(size).normal(size=size).astype(np.float32)
    resampler = Resampler(rate, 8000)
    parts = [resampler.process(part) for part in np.split(samples, np.cumsum(cuts))]
    parts.append(resampler.flush())
    whole = soxr.resample(samples, rate, 8000, quality="HQ") if size else samples
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("rate", RATES)
def test_one_sample_at_a_time(rate):
    samples = np.random.default_rng(1).normal(size=rate // 20).astype(np.float32)
    resampler = Resampler(rate, 8000)
    parts = [resampler.process(samples[at : at + 1]) for at in range(samples.size)]
    out = np.concatenate([*parts, resampler.flush()])
    assert np.array_equal(out, soxr.resample(samples, rate, 8000, quality="HQ"))


@pytest.mark.parametrize("rates", [(0, 8000), (8000, -1)])
def test_refuses_rates_that_are_not_positive(rates):
    with pytest.raises(UsageError, match="positive"):
        Resampler(*rates)
