"""Sound split by person: who gets which sample, of recordings and of turns that come meanwhile."""

import time
from collections.abc import Iterator, Sequence
from queue import Queue
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor
from monitor.errors import SourceError, UsageError
from monitor.protocols import LiveSource, StreamInfo
from monitor.run import Run
from monitor.sources import AudioQueue, Chain, Diarised, File, LiveDiarised, PerChannel, Samples
from monitor.sources.beside import LiveWords
from monitor.transcripts import Turn, TurnPipe, Turns, WordPipe
from monitor.transcripts.turns import MOST_LABELS
from monitor.types import Block, Gap
from tests.contracts import RATE as AUDIO_RATE
from tests.contracts import voice
from tests.stream.streams import Listed, audio, reference, voice_file

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
    overlaps = dict(zip(source.people, source.overlap_of(), strict=True))
    for label, each in speaking.items():
        assert np.array_equal(joined[label], RAMP[each & (count == 1)])
        assert overlaps[label] == pytest.approx(np.sum(each & (count > 1)) / RATE)
    assert source.overlap_seconds == pytest.approx(np.sum(count > 1) / RATE)
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


def test_what_cannot_be_split_is_refused(tmp_path):
    turns = Turns.from_turns([Turn(0.0, 1.0, "ann")])
    path = voice_file(tmp_path / "a.wav")
    with pytest.raises(UsageError, match="one recording at a time"):
        Diarised(Chain([File(path), File(path)]), turns)
    with pytest.raises(UsageError, match="has only one channel"):
        PerChannel(File(path))
    with pytest.raises(SourceError, match=r"no turn is within the recording, which ends at"):
        Diarised(File(path), [Turn(900.0, 901.0, "ann")])
    live = Listed([Block(RAMP, RATE)])
    live.stream_info = StreamInfo(live=True)
    with pytest.raises(UsageError, match="is live"):
        Diarised(live, turns)
    words = Listed([])
    words.stream_info = StreamInfo(words=True)
    with pytest.raises(UsageError, match="other content than audio"):
        PerChannel(words)


def line(start: float, end: float, label: str) -> str:
    return f"SPEAKER call 1 {start!r} {end - start!r} <NA> <NA> {label} <NA> <NA>"


def queue_of(samples, cuts=(), rate=RATE):
    queue = AudioQueue(rate, queue_seconds=1000.0)
    for part in np.split(samples, sorted(cuts)):
        queue.put(part)
    queue.stop()
    return queue


@settings(max_examples=40)
@given(TURNS, st.lists(st.integers(1, 8999), max_size=9), st.sampled_from([0.0, 2.0, 60.0]))
def test_turns_that_come_in_time_split_the_sound_as_they_would_split_a_recording(
    turns, cuts, delay
):
    pipe = TurnPipe([line(t.start_seconds, t.end_seconds, t.label) for t in turns])
    live = LiveDiarised(queue_of(RAMP, cuts), pipe, delay_seconds=delay)
    assert isinstance(live, LiveSource)
    with live:
        pipe.wait()
        found: dict[str, list[np.ndarray]] = {}
        for given_ in live.split():
            for part in () if isinstance(given_, Gap) else given_:
                found.setdefault(live.people[part.person], []).append(part.block.samples)
    joined = {label: np.concatenate(each) for label, each in found.items()}
    recorded = Diarised(Samples(RAMP, RATE), turns)
    expected, _ = parts(recorded)
    for label in expected:
        assert np.array_equal(joined.get(label, []), expected[label])
    of = dict(zip(live.people, live.alone_seconds(), strict=True))
    known = dict(zip(recorded.people, recorded.alone_seconds(), strict=True))
    assert of == {label: pytest.approx(seconds, abs=0.01) for label, seconds in known.items()}
    assert live.overlap_seconds == pytest.approx(recorded.overlap_seconds, abs=0.01)


ENDS = ""
"""In a script: no more turns come."""


class Script(AudioQueue):
    """A live source whose diariser is heard in between: lines, and seconds of sound."""

    def __init__(self, script: Sequence[str | float]) -> None:
        super().__init__(RATE)
        self._script, self._lines = script, Queue[str | None]()
        self.pipe = TurnPipe(iter(self._lines.get, None))

    def items(self) -> Iterator[Block]:
        """The sound, each line when it has come."""
        at = 0
        for each in [*self._script, ENDS]:
            if each == ENDS:
                self._lines.put(None)
                self.pipe.wait(5.0)
            elif isinstance(each, str):
                waiting = self.pipe._queue.qsize()
                self._lines.put(each)
                while self.pipe._queue.qsize() == waiting:
                    time.sleep(1e-3)
            else:
                size = round(float(each) * RATE)
                yield Block(RAMP[at : at + size], RATE)
                at += size


def heard(script: Sequence[str | float], delay: float = 1.0) -> tuple[LiveDiarised, list[Gap]]:
    """A source heard to its end, and its gaps."""
    queue = Script(script)
    with LiveDiarised(queue, queue.pipe, delay_seconds=delay) as source:
        gaps = [each for each in source.split() if isinstance(each, Gap)]
    return source, gaps


def test_what_comes_too_late_counts_for_nobody_and_is_told():
    one, two, three, four = (
        line(*turn) for turn in ((0.0, 1.0, "ann"), (1.0, 3.5, "ann"), (0.5, 3.0, "ann"),
                                 (2.0, 5.0, "bob"))
    )  # fmt: skip
    script: list[str | float] = [1.0, one, 1.0, 1.0, two, three, 1.0, 1.0, four, 1.0]
    source, gaps = heard(script)
    # at 4 s the first 2 are given away, at 6 s the first 4: 1 s, 0 s and 2 s are lost
    assert source.people == ("ann", "bob")
    assert [gap.reason for gap in gaps] == ["late turns"] * 2
    assert [gap.lost_seconds for gap in gaps] == pytest.approx([1.0, 2.0])
    assert "ann arrived 3.0 s after it began. Its first 1.0 s are excluded" in gaps[0].detail
    assert "longer than 1 s" in gaps[0].detail
    assert gaps[1].detail == "2.0 s more arrived too late"
    assert source.alone_seconds() == [1.0 + 1.5, 1.0]
    patient, gaps = heard(script, 6)
    assert not gaps
    assert patient.alone_seconds() == [2.0, 1.5]
    assert patient.overlap_seconds == 1.5


def test_after_the_last_turn_the_sound_counts_for_nobody_and_that_is_told_once():
    source, (gap,) = heard([line(0.0, 1.0, "ann"), 1.0, ENDS, 1.0, 1.0, 1.0, 1.0], 5.0)
    assert (gap.reason, gap.lost_seconds) == ("turns ended", None)
    assert gap.detail == "the turns have ended, so speech from 0:02 on is excluded"
    assert source.alone_seconds() == [1.0]


def test_what_makes_no_sense_is_left_out_and_told():
    labels = [line(0.0, 1.0, f"S{k}") for k in range(MOST_LABELS + 2)]
    malformed: list[bytes | str] = ["SPEAKER call 1 0 x", b"\xff"]
    rows = [*malformed, line(0.2, 90.0, "far"), *labels, "", ";; a comment"]
    told: list[str] = []
    pipe = TurnPipe(rows, report=told.append)
    with LiveDiarised(queue_of(RAMP), pipe) as source:
        pipe.wait()
        assert list(source.split())
    assert (pipe.malformed, pipe.ahead, pipe.beyond) == (2, 1, 2)
    assert len(source.people) == MOST_LABELS
    assert told[0].startswith("- line 1 must be SPEAKER, recording, channel, start, duration")
    lost = "2 malformed lines and 1 turn ahead and 2 turns of labels too many"
    assert told[-1] == f"-: excluded {lost} in total"


def test_a_run_says_of_each_what_it_says_of_a_recording():
    sound = np.concatenate([voice(6.0, seed=1), voice(6.0, seed=2)])
    turns = [Turn(0.0, 3.0, "ann"), Turn(3.0, 5.5, "ann"), Turn(6.0, 11.5, "bob")]
    pipe = TurnPipe([line(t.start_seconds, t.end_seconds, t.label) for t in turns])
    live = LiveDiarised(queue_of(sound, range(1600, len(sound), 1600), AUDIO_RATE), pipe)
    found = []
    for source in (live, Diarised(Samples(sound, AUDIO_RATE), turns)):
        with Run(source, Monitor(reference())) as run:
            pipe.wait()
            records = [event.record() for event in run]
        readings = [record for record in records if record["type"] == "reading"]
        lags = [record.pop("lag", None) for record in readings]
        assert source is not live or min(lags) >= 0
        found.append(sorted(readings, key=lambda record: record["label"]))
        people = records[-1]["people"]
        assert [(row["label"], row["seconds"]) for row in people] == [("ann", 5.5), ("bob", 5.5)]
        assert not run.shortfalls
    assert found[0] == found[1] != []


def test_what_cannot_be_split_live_is_refused():
    with pytest.raises(UsageError, match="must lie between 0 and 60 s"):
        LiveDiarised(AudioQueue(AUDIO_RATE), TurnPipe([]), delay_seconds=61.0)
    with pytest.raises(UsageError, match="other content than audio"):
        LiveDiarised(LiveWords(AudioQueue(AUDIO_RATE), WordPipe([])), TurnPipe([]))
