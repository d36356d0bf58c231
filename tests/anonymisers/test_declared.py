"""What windows with a declared epsilon promise together."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.anonymisers.laplace import Declared
from monitor.errors import UsageError
from monitor.maths.composition import basic, optimal

TOKEN = Declared("usc:15", 15.0, 0.04, ahead_seconds=0.3)


@given(st.floats(0.01, 20), st.integers(1, 50_000))
def test_what_is_shown_is_a_bound_and_hardly_more_than_the_least(epsilon, windows):
    spent = Declared("m", epsilon, 0.04).after(windows).spent
    least = optimal(epsilon, windows, 1e-4)
    assert spent.trials == windows
    assert spent.basic_nats == basic(epsilon, windows)
    assert least <= spent.optimal_nats <= min(spent.basic_nats, 1.11 * least + 1e-9)


@given(st.floats(0.01, 3600), st.floats(0, 10))
def test_a_promise_never_grows_back(seconds, more):
    assert TOKEN.windows(seconds) <= TOKEN.windows(seconds + more)


@pytest.mark.parametrize(
    ("seconds", "windows"), [(0, 0), (0.01, 8), (0.1, 10), (0.11, 11), (1.0, 33), (60.0, 1508)]
)
def test_windows_that_sound_depends_on_before_it_is_over_are_counted(seconds, windows):
    assert TOKEN.windows(seconds) == windows == (seconds and math.ceil((seconds + 0.3) * 25 - 1e-6))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_epsilon_is_refused(epsilon):
    with pytest.raises(UsageError, match="is not an epsilon"):
        Declared("m", epsilon, 0.04)


def test_noise_on_frames_declares_what_its_setting_says():
    assert Declared.parse_noise("tokens:2.5", 0.04) == Declared("tokens:2.5", 2.5, 0.04)
    assert Declared.parse_noise("laplace:15,1", 3.0) == Declared("laplace:15,1", 15.0, 3.0)
    for unknown in ("", "laplace", "laplace:much", "laplace:-1", "laplace:inf", "mist:3"):
        assert Declared.parse_noise(unknown, 3.0) is None
