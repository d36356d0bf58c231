from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.maths.rank_models import mean_disclosure_bits
from monitor.maths.statistics import limits
from monitor.population.interpolation import at_template
from monitor.stream.posterior import ZERO, ExpectedBits
from tests.population.rank_models import LENGTHS, some_rank_model

ADDITIVE = np.array([True])


def rank_model(kind="plain"):
    made = some_rank_model(replicates=200, lengths=(0.3, 1, 5, 20, 120))
    if kind == "falls at the end":
        made.beta[:, -1] = made.beta[:, 1]
    elif kind == "perfect at the end":
        made.alpha[:, -1], made.beta[:, -1], made.binomial[:, -1] = 0.0, 1.0, True
    elif kind == "degenerate replicates":
        made.alpha[5:60, 2:], made.beta[5:60, 2:], made.binomial[5:60, 2:] = 0.02, 0.98, True
    return at_template(made, 10.0, ADDITIVE)


def direct(made, seconds, speakers):
    """Every draw, at this very length."""
    point = made.at(seconds)
    value = point.expected_bits(speakers, slice(0, 1))[0]
    return (value, *limits(point.expected_bits(speakers, slice(1, None))))


@pytest.mark.parametrize("speakers", [10, 50, 3000])
@pytest.mark.parametrize(
    "kind", ["plain", "falls at the end", "perfect at the end", "degenerate replicates"]
)
@pytest.mark.slow
def test_against_the_direct_evaluation(kind, speakers):
    made = rank_model(kind)
    expected = ExpectedBits(made, speakers)
    generator = np.random.default_rng(speakers)
    lengths = np.exp(generator.uniform(np.log(0.3), np.log(120), 25))
    for seconds in (*lengths, 0.01, 0.15, 0.29, 0.3, 1.0, 20.0, 119.999, 120.0):
        bits = expected.at(float(seconds))
        value, low, high = direct(made, float(seconds), speakers)
        assert bits.value == pytest.approx(value, abs=1e-10)
        assert bits.low == pytest.approx(low, abs=0.05)
        assert bits.high == pytest.approx(high, abs=0.05)
        assert 0 <= bits.low <= bits.value <= bits.high <= np.log2(speakers)


def test_exact_on_the_grid():
    made = rank_model()
    expected = ExpectedBits(made, 50)
    for seconds in made.lengths:
        assert_allclose(expected.at(float(seconds)), direct(made, float(seconds), 50), atol=1e-12)


def test_zero_before_anything_is_heard_and_constant_beyond_the_grid():
    made = rank_model()
    expected = ExpectedBits(made, 50)
    assert expected.at(0.0) == ZERO
    assert expected.at(-1.0) == ZERO
    assert expected.at(1e-9).high < 1e-6
    for seconds in (120.001, 500.0, 1e9):
        assert expected.at(seconds) == expected.at(120.0)


def test_continuous_and_growing_where_the_rank_model_grows():
    expected = ExpectedBits(rank_model(), 50)
    lengths = np.geomspace(0.01, 200, 400)
    curve = np.array([expected.at(float(seconds)) for seconds in lengths])
    assert (np.diff(curve, axis=0) >= 0).all()
    assert np.diff(curve, axis=0).max() < 0.1


def test_it_may_fall_at_long_lengths():
    expected = ExpectedBits(rank_model("falls at the end"), 50)
    assert expected.at(120.0).value < expected.at(20.0).value
    assert expected.plateau_bits == expected.at(20.0).value


def test_first_and_plateau():
    made = some_rank_model()
    expected = ExpectedBits(at_template(made, 10.0, ADDITIVE), 30)
    bits = mean_disclosure_bits(made.alpha[0, :, 0], made.beta[0, :, 0], 30)
    assert expected.first_bits == pytest.approx(bits[0])
    assert expected.plateau_bits == pytest.approx(bits.max())
    assert len(LENGTHS) == bits.size


def test_a_rank_model_of_one_length():
    made = at_template(some_rank_model(lengths=(5.0,)), 10.0, ADDITIVE)
    expected = ExpectedBits(made, 30)
    assert expected.at(0.0) == ZERO
    assert 0 < expected.at(2.0).value < expected.at(5.0).value
    assert expected.at(5.0) == expected.at(50.0)


def test_limits_are_worked_out_a_few_times_only(monkeypatch):
    made = rank_model()
    expected = ExpectedBits(made, 50)
    point = type(made.at(1.0))
    evaluate, calls = point.expected_bits, []

    def counted(self, speakers, row):
        calls.append(row)
        return evaluate(self, speakers, row)

    monkeypatch.setattr(point, "expected_bits", counted)
    for second in range(1, 3600):
        expected.at(float(second))
        expected.at(float(second))
    # 1 to 120 s are seven octaves
    assert 20 < sum(row == slice(1, None) for row in calls) <= 8 * 6
