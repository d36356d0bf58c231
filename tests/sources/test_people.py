"""A recording split by person: who gets which sample, for any cutting into blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import SourceError, UsageError
from monitor.protocols import StreamInfo
from monitor.sources import Chain, Diarised, File, PerChannel, Samples
from monitor.transcripts import Turn, Turns
from monitor.types import Block, Gap
from tests.stream.streams import Listed, audio, voice_file

RATE = 1000
RAMP = np.arange(9000, dtype=np.float32) / 9000


def parts(source):
    """By label, its samples; and where each of its stretches begins."""
    found: dict[str, list[Any]] = {label: [] for label in source.people}
    begins: list[tuple[str, int]] = []
    for given_ in source.split():
        if isinstance(given_, Gap):
            continue
        for part in given_:
            found[source.people[part.person]].append(part.block.samples)
            begins.append((source.people[part.person], round(part.seconds * RATE)))
    joined = {label: np.concatenate(each) if each else np.empty(0) for label, each in found.items()}
    return joined, begins


TURNS = st.lists(
    st.builds(
        lambda start, lasts, label: Turn(start / RATE, (start + lasts) / RATE, label),
        st.integers(0, 8999),
        st.integers(1, 3000),
        st.sampled_from("abc"),
    ),
    min_size=1,
    max_size=12,
)


@given(TURNS, st.lists(st.integers(1, 8999), max_size=5))
def test_each_gets_the_samples_in_which_it_is_alone_however_the_recording_is_cut(turns, cuts):
    speaking = {turn.label: np.zeros(9000, bool) for turn in turns}
    for turn in turns:
        low, high = round(turn.start_seconds * RATE), round(turn.end_seconds * RATE)
        speaking[turn.label][low:high] = True
    count = np.sum(list(speaking.values()), axis=0)
    source = Diarised(Listed(audio(RAMP, sorted(cuts), RATE)), turns)
    joined, begins = parts(source)
    for label, each in speaking.items():
        assert np.array_equal(joined[label], RAMP[each & (count == 1)])
    assert all(speaking[label][begin] and count[begin] == 1 for label, begin in begins)


def test_channels_are_each_alone():
    both = np.stack([RAMP, -RAMP], axis=1)
    joined, begins = parts(PerChannel(Samples(both, RATE)))
    assert np.array_equal(joined["channel 1"], RAMP)
    assert np.array_equal(joined["channel 2"], -RAMP)
    assert begins[:2] == [("channel 1", 0), ("channel 2", 0)]


def test_a_part_of_a_recording_is_split_by_turns_on_the_clock_of_all_of_it(tmp_path):
    path = voice_file(tmp_path / "a.wav")
    turns = [Turn(0.0, 1.0, "ann"), Turn(1.5, 2.0, "bob"), Turn(60.0, 70.0, "eve")]
    source = Diarised(File(path, start_seconds=0.5, end_seconds=2.0), turns)
    assert source.people == ("ann", "bob")
    assert source.alone_seconds() == [0.5, 0.5]
    assert source.notices == ()  # that others speak later is no fault
    starts = [
        (part.seconds, part.person)
        for given_ in source.split()
        if not isinstance(given_, Gap)
        for part in given_
    ]
    assert starts == [(0.0, 0), (1.0, 1)]


def test_turns_beyond_the_end_are_told_when_it_is_known():
    turns = [Turn(0.0, 1.0, "ann"), Turn(8.0, 19.0, "bob")]
    known = Diarised(Samples(RAMP, RATE), turns)
    unknown = Diarised(Listed(audio(RAMP, rate=RATE)), turns)
    (line,) = known.notices
    assert "1 turn lies beyond the end of the recording (0:09); 10.0 s are cut off" in line
    assert not unknown.notices
    for _ in unknown.split():
        pass
    assert unknown.notices == (line,)
    assert unknown.alone_seconds() == [1.0, 1.0]
    assert known.alone_seconds() == [1.0, 1.0]


def test_split_twice_is_the_same():
    source = Diarised(Samples(RAMP, RATE), [Turn(1.0, 2.0, "ann"), Turn(4.0, 7.0, "bob")])
    first, second = parts(source), parts(source)
    assert first[1] == second[1]


def test_what_cannot_be_split_is_refused(tmp_path):
    turns = Turns.of([Turn(0.0, 1.0, "ann")])
    path = voice_file(tmp_path / "a.wav")
    with pytest.raises(UsageError, match="one recording at a time"):
        Diarised(Chain([File(path), File(path)]), turns)
    with pytest.raises(UsageError, match="has one channel"):
        PerChannel(File(path))
    with pytest.raises(SourceError, match=r"no turn lies in the recording, which ends at"):
        Diarised(File(path), [Turn(900.0, 901.0, "ann")])
    live = Listed([Block(RAMP, RATE)])
    live.stream_info = StreamInfo(live=True)
    with pytest.raises(UsageError, match="is live"):
        Diarised(live, turns)
    words = Listed([])
    words.stream_info = StreamInfo(words=True)
    with pytest.raises(UsageError, match="not of audio alone"):
        PerChannel(words)
