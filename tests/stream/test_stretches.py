"""Another voice in the stream does not lower what is told of the watched speaker."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from monitor.events.reading import Reading
from monitor.events.run import Change
from monitor.stream.accumulator import FeatureTotals, Moments
from monitor.stream.monitor import Monitor
from monitor.stream.reading_builder import SpeakerSegments, stack_totals
from monitor.types import TICKS_PER_SECOND
from tests.stream.streams import reference
from tests.stream.test_following import FIRST, SECOND, TURN, cut


def heard_by(watch: str, *turns: str, on_change: str = "note") -> tuple[Monitor, list[Reading]]:
    monitor = Monitor(reference(), watch=watch, on_change=on_change)
    found = list(monitor.events(cut(1000, *turns)))
    return monitor, [event for event in found if isinstance(event, Reading)]


def changes_in(*turns: str) -> list[Change]:
    monitor = Monitor(reference(), watch=turns[0], on_change="note")
    return [event for event in monitor.events(cut(1000, *turns)) if isinstance(event, Change)]


def says(reading: Reading) -> float:
    local = reading.closed_set_bits
    assert local is not None
    return local


@pytest.mark.slow
@pytest.mark.parametrize("turns", [(FIRST, SECOND), (FIRST, SECOND, FIRST)])
def test_another_voice_does_not_lower_the_first_ones_figure(turns):
    noticed = changes_in(*turns)
    _, readings = heard_by(FIRST, *turns)
    _, mixed = heard_by(FIRST, *turns, on_change="ignore")
    first = noticed[0]
    before = next(r for r in readings if r.seconds >= first.since_seconds - 1)
    for reading, all_of_it in zip(readings, mixed, strict=True):
        if reading.seconds < first.seconds:
            assert reading.excluded_seconds is None
            assert says(reading) == says(all_of_it)
            continue
        assert says(reading) >= says(all_of_it) - 1e-9
        assert says(reading) >= says(before) - 0.05
        assert reading.excluded_seconds is not None
        assert 0 <= reading.excluded_seconds < reading.speech
    assert says(mixed[-1]) < says(readings[-1]) - 0.2
    left_out = readings[-1].excluded_seconds
    # where the first speaks again there may be more evidence in all of it than in both turns
    assert left_out == pytest.approx(TURN, abs=15) or (len(turns) == 3 and left_out == 0)
    assert readings[-1].speech == len(turns) * TURN


def test_who_comes_second_is_not_lost():
    _, readings = heard_by(SECOND, FIRST, SECOND)
    _, afresh = heard_by(SECOND, FIRST, SECOND, on_change="reset")
    _, alone = heard_by(SECOND, SECOND)
    assert says(readings[-1]) >= says(afresh[-1]) - 0.1
    assert says(readings[-1]) >= says(alone[-1]) - 0.2
    now, later = readings[-1].bits, afresh[-1].bits
    assert now is not None
    assert later is not None
    assert now >= later - 0.1  # of other seconds: the reset comes when the change is noticed


def test_the_first_voice_goes_on_where_it_was():
    _, readings = heard_by(FIRST, FIRST, SECOND, FIRST)
    _, alone = heard_by(FIRST, FIRST, FIRST)
    assert says(readings[-1]) >= says(alone[-1]) - 0.1


def test_nobody_watched_all_is_summed():
    monitor, readings = heard_by(FIRST, FIRST, SECOND)
    nobody = Monitor(reference(), on_change="note")
    found = [e for e in nobody.events(cut(1000)) if isinstance(e, Reading)]
    assert all(reading.excluded_seconds is None for reading in found)
    assert nobody.own_totals.speech == nobody.all_totals.speech == 2 * TURN * TICKS_PER_SECOND
    # what a ledger adds up is the watched speaker's
    own = monitor.own_totals
    excluded = readings[-1].excluded_seconds
    assert excluded is not None
    assert own.speech == round(100 * (readings[-1].speech - excluded))
    assert own.frames["f0"] == own.totals["f0"].sum() < monitor.all_totals.frames["f0"]


def test_a_twin_is_cut_at_the_same_place():
    clear = Monitor(reference(), watch=FIRST, on_change="note")
    twin, told = clear.twin()
    found = []
    other = iter(twin.listen(cut(1000)))
    change = None
    for event in clear.listen(cut(1000)):
        if isinstance(event, Change):
            change = event
        if not isinstance(event, Reading):
            continue
        if change is not None:
            told.set_change(round(event.seconds * TICKS_PER_SECOND), change)
            change = None
        same = next(each for each in other if isinstance(each, Reading))
        found.append((event.bits, event.excluded_seconds) == (same.bits, same.excluded_seconds))
    assert all(found)
    assert len(found) == 2 * TURN


def sums(speech: int) -> FeatureTotals:
    counts = np.array([speech, 2 * speech])
    return FeatureTotals(speech, {"f0": counts}, {"f0": 3 * speech}, {"f0": speech})


def test_marks_are_bounded_and_the_newest_are_fine():
    stretches = SpeakerSegments(sums(0))
    for second in range(1, 5000):
        stretches.mark(100 * second, partial(sums, second))
        stretches.mark(100 * second + 10, lambda: sums(-1))  # too near
    _, arrays = stretches.state()
    ticks = arrays["marks/counts"][:, 0]
    assert len(ticks) <= 48
    assert (np.diff(ticks[-20:]) == 100).all()
    assert ticks[0] == 100
    assert (np.diff(ticks) > 0).all()
    again = SpeakerSegments(sums(0))
    again.restore(*stretches.state())
    for one, other in zip(again.state()[1].values(), arrays.values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_of_the_stretches_that_are_over_the_best_sum_is_kept():
    stretches = SpeakerSegments(sums(0))
    asked = []

    def best(choices: Sequence[FeatureTotals]) -> int:
        asked.append([each.speech for each in choices])
        return answers.pop(0)

    answers = [2, 0, 0]
    for second in range(1, 61):
        stretches.mark(100 * second, partial(sums, 100 * second))
        if second in (12, 31, 35, 50):
            stretches.change(100 * (second - 2), best)
    # [0, 10) is kept at first, then [10, 29) instead; [29, 33) is too short to be alone
    assert asked == [[2900, 1000, 1900], [2300, 1900], [3800, 2300, 1500]]
    for chosen, speech in enumerate([6000, 5000, 1200, 3800]):
        stretches.chosen = chosen
        assert stretches.get_totals(sums(6000)).speech == speech


def test_what_nobody_said_is_no_choice():
    """A stretch of no speech reads 0 bits, which is more than much speech of somebody else."""
    stretches, counts = SpeakerSegments(sums(0)), [0, 100, 2000]
    for second in range(1, 31):
        stretches.mark(100 * second, partial(sums, 100 * second))
    stretches.change(300, lambda _: 0)  # of three seconds
    speech = np.array([3000 + more for more in counts])
    running, _ = stack_totals([sums(each) for each in speech])
    parts = stretches.parts(Moments([3000, 3100, 5000], speech, running, {}, {}))
    assert [part.enough.tolist() for part in parts] == [[True] * 3, [True] * 3, [False] * 3]
    assert [part.speech.tolist() for part in parts[1:]] == [(speech - 300).tolist(), [300] * 3]


@pytest.mark.parametrize(
    "change",
    [
        {"chosen": 4}, {"chosen": -1}, {"marks/counts": np.zeros((3, 4), np.int64)},
        {"kept/counts": np.zeros((0, 4), np.int64)}, {"marks/counts": np.zeros((1, 3), np.int64)},
    ],
)  # fmt: skip
def test_what_no_stream_was_is_refused(change):
    stretches = SpeakerSegments(sums(0))
    for second in (1, 2):
        stretches.mark(100 * second, partial(sums, second))
    stretches.change(100, lambda _: 0)
    plain, arrays = stretches.state()
    plain |= {key: value for key, value in change.items() if key in plain}
    arrays |= {key: value for key, value in change.items() if key in arrays}
    with pytest.raises((ValueError, KeyError)):
        SpeakerSegments(sums(0)).restore(plain, arrays)
