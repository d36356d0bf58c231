"""The remaining time of a job, by simulated clocks: it is about right, or not shown."""

import heapq
import math

import numpy as np
import pytest

from monitor.jobs import RemainingTime


def work(preparation, workers, step_seconds, spread, skipped=0, seed=0):
    """Times at which each step of three minutes of work is ready, in order."""
    count = max(24, round(180 * workers / step_seconds))
    costs = step_seconds * np.random.default_rng(seed).lognormal(0, spread, count)
    costs[: round(skipped * count)] = 0.002
    free, ready = [float(preparation)] * workers, []
    for cost in costs:
        ready.append(heapq.heappop(free) + cost)
        heapq.heappush(free, ready[-1])
    return np.maximum.accumulate(ready).tolist()


def estimates(ready):
    """Every estimate that would be printed, ten seconds or more after the last, and the truth."""
    remaining, shown = RemainingTime(len(ready), 0.0), 0.0
    for now in ready:
        remaining.add(1, now)
        if now - shown >= 10 and ready[-1] - now > 10:
            shown = now
            if (seconds := remaining.estimate_seconds()) is not None:
                yield seconds, ready[-1] - now


@pytest.mark.parametrize("preparation", [0, 5, 20, 60])
@pytest.mark.parametrize("workers", [1, 2, 16])
@pytest.mark.parametrize("step_seconds", [0.05, 0.5, 3])
@pytest.mark.parametrize("spread", [0.1, 0.6])
def test_the_first_estimate_is_within_a_factor_of_two(preparation, workers, step_seconds, spread):
    found = list(estimates(work(preparation, workers, step_seconds, spread)))
    assert found
    for seconds, truth in found:
        assert abs(math.log2(seconds / truth)) < 1


@pytest.mark.parametrize("skipped", [0.2, 0.5, 0.8])
def test_finished_work_that_is_skipped_does_not_shorten_it(skipped):
    """The first cells of a resumed run are there at once."""
    found = list(estimates(work(5, 2, 0.5, 0.3, skipped)))
    assert found
    for seconds, truth in found:
        assert abs(math.log2(seconds / truth)) < 1


def test_a_first_step_after_a_long_start_gives_no_estimate():
    """A step of 219 after 17 s once announced an hour of four minutes."""
    remaining = RemainingTime(219, 0.0)
    remaining.add(1, 17.2)
    assert remaining.estimate_seconds() is None
    assert remaining.describe() == ""


def test_amounts_count_and_steps_are_only_when_they_come():
    remaining = RemainingTime(10.0, 100.0)
    for second in range(1, 21):
        remaining.add(0.25, 100.0 + second)
    assert remaining.estimate_seconds() == pytest.approx(20)
    assert remaining.describe() == "about 0:20 left"


def test_it_keeps_ten_steps_a_second_at_most():
    remaining = RemainingTime(1e6, 0.0)
    for step in range(100_000):
        remaining.add(1, step / 10_000)
    assert len(remaining._times) < 150
    assert remaining.estimate_seconds() == pytest.approx(90, rel=0.05)
