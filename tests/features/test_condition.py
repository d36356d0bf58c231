from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.features.channel import CONDITION, ConditionRows
from monitor.features.extractor import Extractor
from monitor.features.f0 import F0
from monitor.features.framing import HighPass, join_frames
from monitor.maths.condition import ROW, describe_seconds
from monitor.types import Block

RATE = 8000
SOUND = np.random.default_rng(0).standard_normal((5 * RATE + 99, 2)).astype(np.float32) / 9


def heard(cuts, skip=0, channel=None):
    extractor = Extractor([F0()], channel, conditions=True)
    extractor.skip_to(skip)
    runs = [extractor.process(Block(part, RATE)) for part in np.split(SOUND, cuts)]
    joined = runs[0]
    for run in (*runs[1:], extractor.flush()):
        joined = join_frames(joined, run)
    return joined


@given(st.lists(st.integers(0, len(SOUND)), max_size=6).map(sorted))
def test_any_cutting_gives_the_same_rows(cuts):
    whole, parts = heard([]).tracks[CONDITION], heard(cuts).tracks[CONDITION]
    assert whole.ticks.tolist() == parts.ticks.tolist() == [100, 200, 300, 400, 500]
    assert np.array_equal(whole.values, parts.values)


@pytest.mark.parametrize("channel", [None, 1])
def test_a_row_is_of_the_samples_as_they_were_decoded(channel):
    rows = heard([], channel=channel).tracks[CONDITION].values
    columns = SOUND[:RATE] if channel is None else SOUND[:RATE, 1:]
    mean = HighPass(RATE).process(columns.mean(axis=1))
    assert np.array_equal(rows[0], describe_seconds(columns[None], mean[None], RATE)[0])
    assert rows.shape == (5, ROW)


def test_skipped_seconds_are_not_described():
    rows = heard([7000], skip=250).tracks[CONDITION]
    assert rows.ticks.tolist() == [300, 400, 500]
    assert np.array_equal(rows.values, heard([]).tracks[CONDITION].values[2:])


def test_another_recording_begins_its_own_seconds():
    extractor = Extractor([F0()], conditions=True)
    ticks = []
    for recording in (0, 1):
        run = extractor.process(Block(SOUND[: RATE + RATE // 2], RATE, recording))
        ticks += run.tracks[CONDITION].ticks.tolist()
    assert ticks == [100, 250]


def test_nobody_who_does_not_ask_gets_rows():
    assert CONDITION not in Extractor([F0()]).process(Block(SOUND, RATE)).tracks


def test_a_block_that_was_pushed_may_change():
    sound = SOUND[:, 0].copy()
    rows = ConditionRows(RATE)
    rows.process(sound[: RATE - 1, None], sound[: RATE - 1])
    sound[:] = 0
    rest = SOUND[RATE - 1 : RATE, 0]
    (made,) = rows.process(rest[:, None], rest).values
    first = SOUND[:RATE, 0]
    assert np.array_equal(made, describe_seconds(first[None, :, None], first[None], RATE)[0])
