from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from monitor.errors import UsageError
from monitor.maths.composition import epsilon_lower_nats, epsilon_nats


@pytest.fixture(scope="module")
def rows(golden):
    return golden.json("math")["voxguard_eps_hat"]


def test_golden_points_and_bounds(rows):
    assert len(rows) == 7
    for row in rows:
        point = float(epsilon_nats(row["tp"] / row["n_tar"], row["fp"] / row["n_non"]))
        assert point == pytest.approx(float(row["eps_point"]), abs=1e-12)
        counts = row["tp"], row["n_tar"], row["fp"], row["n_non"]
        lower = epsilon_lower_nats(*counts, delta=row["delta"])
        assert lower == pytest.approx(row["eps_CP_lower"], abs=1e-10)


def test_edges_of_the_point():
    expected = [math.inf, math.inf, 0.0, 0.0, -math.inf, math.log(0.9 / 0.5)]
    found = epsilon_nats([0.5, 1.0, 0.0, 1.0, 0.0, 0.5], [0.0, 0.5, 0.0, 1.0, 1.0, 0.1])
    assert_array_equal(found[:5], expected[:5])
    assert found[5] == pytest.approx(math.log(5))
    assert epsilon_nats(0.01, 0.2) == pytest.approx(math.log(0.8 / 0.99))


@given(st.integers(1, 500), st.integers(1, 500), st.data())
def test_the_bound_never_exceeds_the_point(mated, non_mated, data):
    hits, alarms = data.draw(st.integers(0, mated)), data.draw(st.integers(0, non_mated))
    point = float(epsilon_nats(hits / mated, alarms / non_mated))
    lower = epsilon_lower_nats(hits, mated, alarms, non_mated)
    assert 0 <= lower <= max(point, 0.0) + 1e-12
    assert epsilon_lower_nats(hits, mated, alarms, non_mated, delta=0.0) >= lower


def test_the_bound_covers():
    """A mechanism with epsilon ln 5 at this threshold is accused of more in under 5 %."""
    generator = np.random.default_rng(5)
    hits, alarms = generator.binomial(200, 0.5, 400), generator.binomial(2000, 0.1, 400)
    lower = [
        epsilon_lower_nats(int(hit), 200, int(alarm), 2000, delta=0.0)
        for hit, alarm in zip(hits, alarms, strict=True)
    ]
    assert np.mean(np.array(lower) > math.log(5)) < 0.05
    assert np.mean(lower) > math.log(5) / 2


def test_refusals():
    with pytest.raises(UsageError, match="between 0 and 1"):
        epsilon_nats(1.5, 0.1)
    with pytest.raises(UsageError, match="between 0 and 1"):
        epsilon_nats(0.5, math.nan)
    with pytest.raises(UsageError, match="delta"):
        epsilon_lower_nats(1, 2, 1, 2, delta=1.0)
    with pytest.raises(UsageError, match="3 hits in 2 trials"):
        epsilon_lower_nats(3, 2, 1, 2)
