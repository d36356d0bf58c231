"""Starts of recordings that are played, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.by_length import Figures, Stream, create_length_rows, find_starts, measure_stream
from monitor import Monitor, Population
from monitor.networks.layers import RATE


def test_streams_begin_in_pauses_before_what_follows():
    rng = np.random.default_rng(0)
    sound = 0.1 * rng.standard_normal(60 * RATE)
    pauses = (5.0, 5.3), (10.0, 10.6), (20.0, 24.0), (50.0, 51.0)  # one is too short, one too late
    for begin, end in pauses:
        sound[round(begin * RATE) : round(end * RATE)] *= 1e-3
    found = find_starts(sound)
    assert found == pytest.approx([10.3], abs=0.03)
    assert find_starts(sound, 8.0) == pytest.approx([10.3, 23.0, 50.5], abs=0.03)


def test_people_weigh_the_same_and_what_has_no_figure_counts_as_such():
    def told(who, bits, *, first=True):
        return Figures("clean", who, "", 0.0, 1.0, bits, first, None if bits is None else 0.5)

    found = [told("a", 6.0), told("a", 8.0), told("b", -1.0, first=False), told("c", None)]
    (row,) = create_length_rows(found)
    assert row == ["clean", "1 s", "4, 3", "50 %", "3.0", "-1.0", "50 %", "0.50", "33 %"]
    assert next(create_length_rows([told("c", None)]))[2:] == ["1, 1", *[""] * 5, "100 %"]


@pytest.mark.slow
def test_what_is_played_is_what_a_stream_shows(shared):
    from benchmarks.readers import read

    population = Population.reference()
    sound = read(shared / "speech/dev-clean/84/121550.opus", 8.0)
    stream = Stream("clean", "84", "121550", 0.0, 3.0, sound)
    found = measure_stream({"clean": population}, stream)
    assert [each.length for each in found] == [1.0, 2.0, 3.0]
    readings = list(Monitor(population, watch="84", step_seconds=0.25).stream(sound, rate=RATE))
    for each in found:
        reading = next(r for r in readings if r.speech >= each.length)
        assert each.bits == pytest.approx(reading.evidence_bits, abs=1e-6)
        assert each.others is not None
        assert 0 <= each.others < 50
