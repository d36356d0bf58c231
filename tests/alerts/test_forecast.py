from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alerts import Forecast
from monitor.errors import UsageError
from tests.records import event


def feed(forecast: Forecast, bits_of: object, seconds: range, share: float = 1.0) -> None:
    assert callable(bits_of)
    for t in seconds:
        forecast.update(
            event(
                {"type": "reading", "seconds": t, "speech": share * t, "bits": bits_of(share * t)}
            )
        )


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_straight_line_on_the_root_of_speech_is_continued_exactly(share: float) -> None:
    forecast = Forecast(3.0)
    feed(forecast, lambda speech: math.sqrt(speech) - 1, range(2, 11), share)
    assert forecast.seconds_left == pytest.approx(16 / share - 10)


def test_only_the_last_twenty_seconds_count() -> None:
    forecast = Forecast(11.0)
    feed(forecast, lambda speech: -math.sqrt(speech), range(1, 40))
    feed(forecast, math.sqrt, range(40, 101))
    assert forecast.seconds_left == pytest.approx(21)


def test_it_goes_on_from_the_latest_reading() -> None:
    forecast = Forecast(8.0)
    feed(forecast, lambda speech: math.sqrt(speech) - (speech < 16), range(9, 17))
    assert 0 < (forecast.seconds_left or 0) < 48  # a jump up makes it sooner, by more than slope


def test_the_field_is_taken_at_its_word() -> None:
    low, plain = Forecast(5.0, "f0.local_bits_low"), Forecast(5.0, "f0.local_bits")
    for t in range(1, 17):
        f0 = {"local_bits": math.sqrt(t) + 2, "local_bits_low": math.sqrt(t)}
        for each in (low, plain):
            each.update(
                event({"type": "reading", "seconds": t, "speech": t, "features": {"f0": f0}})
            )
    assert low.seconds_left == pytest.approx(9)
    assert plain.seconds_left == 0


def test_it_waits_while_a_change_is_open() -> None:
    forecast = Forecast(5.0)
    feed(forecast, math.sqrt, range(1, 17))
    forecast.update(event({"type": "change", "seconds": 17.0, "action": "note"}))
    assert forecast.seconds_left is None
    opened = {"since_seconds": 14.0, "features": ["f0"]}
    reading = {"type": "reading", "seconds": 17, "speech": 17, "bits": 6.0}
    forecast.update(event({**reading, "change": opened}))
    assert forecast.seconds_left is None
    forecast.update(event(reading))
    assert forecast.seconds_left == 0


def test_it_forgets_with_the_evidence() -> None:
    forecast = Forecast(5.0)
    feed(forecast, math.sqrt, range(1, 17))
    forecast.update(event({"type": "reading", "seconds": 17, "speech": 0.5, "bits": 0.1}))
    assert forecast.seconds_left is None


def test_state_does_not_grow_with_the_rate_of_readings() -> None:
    forecast = Forecast(100.0)
    for t in range(1, 5000):
        forecast.update(
            event({"type": "reading", "seconds": t / 100, "speech": t / 100, "bits": t / 1e4})
        )
    assert len(forecast.state()) <= 42
    again = Forecast(100.0)
    again.restore(forecast.state())
    assert again.seconds_left == forecast.seconds_left


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


def test_nothing_is_forecast_that_can_never_come() -> None:
    start = {"type": "start", "headline": "evidence", "support_bits": 8.7, "ceiling": 5.64}
    never, late = Forecast(9.0), Forecast(8.5)
    for forecast in (never, late):
        forecast.update(event(start))
        feed(forecast, math.sqrt, range(1, 65))
    assert never.beyond_reach
    assert never.seconds_left is None
    assert not late.beyond_reach
    assert late.seconds_left


def test_silence_and_nulls_are_ignored() -> None:
    forecast = Forecast(3.0)
    forecast.update(event({"type": "gap", "seconds": 1.0}))
    forecast.update(event({"type": "reading", "seconds": 1.0, "speech": 0.0, "bits": 0.0}))
    forecast.update(event({"type": "reading", "seconds": 2.0, "speech": 1.0, "bits": None}))
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
        forecast.update(event({"type": "reading", "seconds": t, "speech": speech, "bits": bits}))
        left = forecast.seconds_left
        assert left is None or 0 <= left <= 600
