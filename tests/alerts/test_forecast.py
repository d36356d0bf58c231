from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alerts import Forecast
from monitor.errors import UsageError


def feed(forecast: Forecast, bits_of: object, seconds: range, share: float = 1.0) -> None:
    assert callable(bits_of)
    for t in seconds:
        forecast.update(
            {"type": "reading", "seconds": t, "speech": share * t, "bits": bits_of(share * t)}
        )


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_straight_line_on_log_speech_is_continued_exactly(share: float) -> None:
    forecast = Forecast(3.0)
    feed(forecast, lambda speech: math.log2(speech) - 1, range(2, 11), share)
    assert forecast.seconds_left == pytest.approx(16 / share - 10)


def test_only_the_last_thirty_seconds_count() -> None:
    forecast = Forecast(7.0)
    feed(forecast, lambda speech: -math.log2(speech), range(1, 40))
    feed(forecast, math.log2, range(40, 101))
    assert forecast.seconds_left == pytest.approx(28)


def test_falling_flat_short_and_far_say_nothing() -> None:
    for bits_of in (lambda s: -s, lambda s: 0 * s, lambda s: 1e-4 * math.log(s)):
        forecast = Forecast(3.0)
        feed(forecast, bits_of, range(1, 30))
        assert forecast.seconds_left is None
    short = Forecast(3.0)
    assert short.seconds_left is None
    feed(short, math.log2, range(1, 4))
    assert short.seconds_left is None


def test_reached_is_zero() -> None:
    forecast = Forecast(3.0)
    feed(forecast, math.log2, range(1, 10))
    assert forecast.seconds_left == 0.0


def test_silence_and_nulls_are_ignored() -> None:
    forecast = Forecast(3.0)
    forecast.update({"type": "gap", "seconds": 1.0})
    forecast.update({"type": "reading", "seconds": 1.0, "speech": 0.0, "bits": 0.0})
    forecast.update({"type": "reading", "seconds": 2.0, "speech": 1.0, "bits": None})
    assert forecast.seconds_left is None


def test_threshold_is_checked() -> None:
    with pytest.raises(UsageError):
        Forecast(float("nan"))


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.one_of(st.none(), st.floats(-50, 50))),
        max_size=60,
    )
)
def test_never_fails_and_never_negative(steps: list[tuple[float, float | None]]) -> None:
    forecast = Forecast(3.0)
    speech = 0.0
    for t, (spoken, bits) in enumerate(steps):
        speech += spoken
        forecast.update({"type": "reading", "seconds": t, "speech": speech, "bits": bits})
        left = forecast.seconds_left
        assert left is None or 0 <= left <= 600
