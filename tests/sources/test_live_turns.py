"""Turns that come while a live source is heard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from queue import Queue

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor
from monitor.errors import UsageError
from monitor.protocols import LiveSource
from monitor.run import Run
from monitor.sources import AudioQueue, Diarised, LiveDiarised, Samples
from monitor.sources.beside import LiveWords
from monitor.transcripts import Turn, TurnPipe, WordPipe
from monitor.transcripts.turns import MOST_LABELS
from monitor.types import Block, Gap
from tests.contracts import RATE, voice
from tests.sources.test_people import RAMP, TURNS, parts
from tests.sources.test_people import RATE as SLOW
from tests.stream.streams import reference


def line(start: float, end: float, label: str) -> str:
    return f"SPEAKER call 1 {start!r} {end - start!r} <NA> <NA> {label} <NA> <NA>"


def queue_of(samples, cuts=(), rate=SLOW):
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
    recorded = Diarised(Samples(RAMP, SLOW), turns)
    expected, _ = parts(recorded)
    for label in expected:
        assert np.array_equal(joined.get(label, []), expected[label])
    of = dict(zip(live.people, live.alone_seconds(), strict=True))
    known = dict(zip(recorded.people, recorded.alone_seconds(), strict=True))
    assert of == {label: pytest.approx(seconds, abs=0.01) for label, seconds in known.items()}
    assert live.overlap_seconds == pytest.approx(recorded.overlap_seconds, abs=0.01)


class Script(AudioQueue):
    """A live source whose diariser is heard in between: lines, and seconds of sound."""

    def __init__(self, script: Sequence[str | float]) -> None:
        super().__init__(SLOW)
        self._script, self._lines = script, Queue[str | None]()
        self.told: list[str] = []
        self.pipe = TurnPipe(iter(self._lines.get, None), report=self.told.append)

    def items(self) -> Iterator[Block]:
        """The sound, each line when it has come."""
        at = 0
        for each in self._script:
            if isinstance(each, str):
                waiting = self.pipe._queue.qsize()
                self._lines.put(each)
                while self.pipe._queue.qsize() == waiting:
                    time.sleep(1e-3)
            else:
                size = round(each * SLOW)
                yield Block(RAMP[at : at + size], SLOW)
                at += size
        self._lines.put(None)
        self.pipe.wait(5.0)


def heard(script: Sequence[str | float], delay: float = 1.0) -> tuple[LiveDiarised, list[Gap]]:
    """A source heard to its end, and its gaps."""
    queue = Script(script)
    with LiveDiarised(queue, queue.pipe, delay_seconds=delay) as source:
        gaps = [each for each in source.split() if isinstance(each, Gap)]
    return source, gaps


def test_what_comes_too_late_counts_for_nobody_and_is_told():
    turns = [line(0.0, 1.0, "ann"), line(1.0, 3.5, "ann"), line(0.5, 3.0, "ann"),
             line(2.0, 5.0, "bob")]  # fmt: skip
    source, gaps = heard([1.0, turns[0], 1.0, 1.0, turns[1], turns[2], 1.0, 1.0, turns[3], 1.0])
    # at 4 s the first 2 are given away, at 6 s the first 4: 1 s, 0 s and 2 s are lost
    assert source.people == ("ann", "bob")
    assert [gap.reason for gap in gaps] == ["late turns"] * 2
    assert [gap.lost_seconds for gap in gaps] == pytest.approx([1.0, 2.0])
    assert gaps[0].detail == (
        "a turn of ann came 3.0 s after it began: its first 1.0 s count for nobody; wait longer "
        "for turns than 1 s"
    )
    assert gaps[1].detail == "2.0 s more came too late"
    assert source.alone_seconds() == [1.0 + 1.5, 1.0]
    patient, gaps = heard([1.0, turns[0], 1.0, 1.0, turns[1], turns[2], 1.0, 1.0, turns[3], 1.0], 6)
    assert not gaps
    assert patient.alone_seconds() == [2.0, 1.5]
    assert patient.overlap_seconds == 1.5


def test_after_the_last_turn_the_sound_counts_for_nobody_and_that_is_told_once():
    queue = Script([line(0.0, 1.0, "ann"), 1.0])
    queue.items = lambda: _then_ends(queue)  # type: ignore[method-assign]
    with LiveDiarised(queue, queue.pipe) as source:
        (gap,) = [each for each in source.split() if isinstance(each, Gap)]
    assert (gap.reason, gap.lost_seconds) == ("turns ended", None)
    assert gap.detail == "no more turns come: what is said from 0:02 on counts for nobody"
    assert source.alone_seconds() == [1.0]


def _then_ends(queue: Script) -> Iterator[Block]:
    """The diariser ends after the first second; the sound goes on."""
    yield from Script.items(queue)
    for second in range(1, 5):
        yield Block(RAMP[second * SLOW : (second + 1) * SLOW], SLOW)


def test_what_makes_no_sense_is_left_out_and_told():
    labels = [line(0.0, 1.0, f"S{k}") for k in range(MOST_LABELS + 2)]
    rows = ["SPEAKER call 1 0 x", "\xff", line(0.2, 90.0, "far"), *labels, "", ";; a comment"]
    told: list[str] = []
    pipe = TurnPipe(rows, report=told.append)
    with LiveDiarised(queue_of(RAMP), pipe) as source:
        pipe.wait()
        for _ in source.split():
            pass
    assert (pipe.malformed, pipe.ahead, pipe.beyond) == (2, 1, 2)
    assert len(source.people) == MOST_LABELS
    assert told[0] == (
        "- line 1 must be SPEAKER, recording, channel, start, duration, <NA>, <NA>, label; it is "
        "left out"
    )
    assert told[-1] == (
        "-: left out in all: 2 malformed lines and 1 turn ahead and 2 turns of labels too many"
    )


def test_a_run_says_of_each_what_it_says_of_a_recording():
    sound = np.concatenate([voice(6.0, seed=1), voice(6.0, seed=2)])
    turns = [Turn(0.0, 3.0, "ann"), Turn(3.0, 5.5, "ann"), Turn(6.0, 11.5, "bob")]
    pipe = TurnPipe([line(t.start_seconds, t.end_seconds, t.label) for t in turns])
    queue = queue_of(sound, range(1600, len(sound), 1600), RATE)
    with Run(LiveDiarised(queue, pipe), Monitor(reference())) as run:
        pipe.wait()
        records = [event.record() for event in run]
    with Run(Diarised(Samples(sound, RATE), turns), Monitor(reference())) as other:
        expected = [event.record() for event in other]
    for label in ("ann", "bob"):
        mine, theirs = (
            [{k: v for k, v in r.items() if k != "lag"} for r in found
             if r["type"] == "reading" and r["label"] == label]
            for found in (records, expected)
        )  # fmt: skip
        assert mine == theirs
        assert mine
    assert records[0]["people"] == []
    assert [row["label"] for row in records[-1]["people"]] == ["ann", "bob"]
    assert [row["seconds"] for row in records[-1]["people"]] == [5.5, 5.5]
    assert all(r["lag"] >= 0 for r in records if r["type"] == "reading")
    assert not run.incomplete


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="must lie between 0 and 60 s"):
        LiveDiarised(AudioQueue(RATE), TurnPipe([]), delay_seconds=61.0)
    with pytest.raises(UsageError, match="not of audio alone"):
        LiveDiarised(LiveWords(AudioQueue(RATE), WordPipe([])), TurnPipe([]))
