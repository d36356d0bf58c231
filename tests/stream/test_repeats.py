"""Audio that repeats itself is noticed, and does not count again."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from monitor import Monitor, Run
from monitor.events.reading import Reading
from monitor.events.run import NoticeEvent
from monitor.maths.landmarks import PITCHES, StreamLandmarks
from monitor.types import Block
from tests.stream.streams import Listed, audio, reference, told

RATE = 16_000


@pytest.fixture(scope="session")
def speech(shared) -> np.ndarray:
    """Seventy seconds of a reader."""
    path = shared / "speech/train-clean-5/19/198.opus"
    return soundfile.read(path, frames=70 * RATE, dtype="float32")[0]  # type: ignore[no-any-return]


def heard(sound, cuts=()):
    monitor = Monitor(reference(), step_seconds=5)
    events = list(monitor.events(Listed(audio(sound, cuts))))
    kinds = [each.notice.kind for each in events if isinstance(each, NoticeEvent)]
    return monitor, [each for each in events if isinstance(each, Reading)], kinds


def test_a_clip_in_a_loop_counts_once(speech):
    clip = speech[10 * RATE : 12 * RATE]
    monitor, readings, kinds = heard(np.tile(clip, 40))
    assert kinds.count("repeated") == 1
    counted = [reading.speech for reading in readings]
    assert counted[-1] <= 12.0
    assert counted[-1] == counted[4]  # nothing more after 25 s
    assert monitor.repeated_seconds > 45
    assert readings[-1].bits == readings[4].bits


def test_what_was_heard_a_minute_ago_does_not_count_again_and_new_speech_does(speech):
    talk, more = speech[: 40 * RATE], speech[40 * RATE :]
    monitor, readings, kinds = heard(np.concatenate([talk, talk, more]))
    assert "repeated" in kinds
    whole = heard(np.concatenate([talk, more]))[1][-1].speech
    assert abs(readings[-1].speech - whole) <= 12
    assert 15 <= monitor.repeated_seconds <= 45


@pytest.mark.parametrize("seconds", [41.0, 41.3, 41.9])
def test_new_speech_counts_again_soon_after_a_loop(speech, seconds):
    clip, new = speech[10 * RATE : 12 * RATE], speech[40 * RATE : 60 * RATE]
    loop = np.tile(clip, 25)[: round(seconds * RATE)]
    monitor, readings, _ = heard(np.concatenate([loop, new]))
    looped, readings_of_loop, _ = heard(loop)
    alone = heard(new)[1][-1].speech
    lost = alone - (readings[-1].speech - readings_of_loop[-1].speech)
    assert 0 <= lost <= 4
    assert abs(monitor.repeated_seconds - looped.repeated_seconds - lost) <= 0.5


def test_a_loop_that_begins_again_soon_is_left_out_soon(speech):
    clip, new = speech[10 * RATE : 12 * RATE], speech[40 * RATE : 46 * RATE]
    loop = np.tile(clip, 15)
    before = heard(np.concatenate([loop, new]))[1][-1].speech
    after = heard(np.concatenate([loop, new, loop]))[1][-1].speech
    assert after - before <= 10


def test_a_reader_is_not_taken_for_a_repetition(speech):
    monitor, _, kinds = heard(speech)
    assert monitor.repeated_seconds == 0
    assert "repeated" not in kinds


def test_for_any_cutting_and_after_a_stop(speech):
    talk = speech[15 * RATE : 27 * RATE]
    loop = np.concatenate([np.tile(speech[: 3 * RATE], 10), talk, talk[: 6 * RATE]])
    whole = told(Monitor(reference()).events(Listed([Block(loop, RATE)])))
    parts = [Block(part, RATE) for part in np.split(loop, range(4999, loop.size, 4999))]
    assert told(Monitor(reference()).events(Listed(parts))) == whole
    for after in (15, 30):
        first = Monitor(reference())
        events = first.events(Listed(parts))
        seen = told(next(events) for _ in range(after))
        again = Monitor(reference())
        again.restore(*first.state())
        assert [*seen, *told(again.events(Listed(parts)))] == whole


def test_the_run_says_how_much_was_left_out(speech):
    source = Listed(audio(np.tile(speech[: 2 * RATE], 20)))
    with Run(source, Monitor(reference())) as run:
        end = [event.record() for event in run][-1]
    assert end["repeated_seconds"] > 10
    assert any("heard before" in line for line in end["notices"])


def test_windows_that_overlap_remember_what_is_heard_once():
    rng = np.random.default_rng(0)
    times, pitches = np.sort(rng.integers(0, 500, 220)), rng.integers(0, PITCHES, 220)
    apart, often = StreamLandmarks(), StreamLandmarks()
    for end in (250, 500):
        some = (times >= end - 250) & (times < end)
        assert not apart.find_repeats(times[some], pitches[some]).any()
    for end in (250, *range(275, 501, 25)):
        some = (times >= end - 250) & (times < end)
        assert not often.find_repeats(times[some], pitches[some]).any()
    # those pairs as well that lie across the two
    assert apart.remembered < often.remembered < 1.1 * apart.remembered


def test_what_is_remembered_is_bounded_and_known_after_an_hour():
    rng, own = np.random.default_rng(0), StreamLandmarks()
    clip = np.sort(rng.integers(0, 250, 110)), rng.integers(0, PITCHES, 110)
    sizes = []
    for window in range(3 * 360):  # three hours
        times, pitches = np.sort(rng.integers(0, 250, 110)), rng.integers(0, PITCHES, 110)
        if window in (0, 360):
            times, pitches = clip
        before = own.find_repeats(times + 250 * window, pitches)
        assert (before.mean() > 0.05) == (window == 360)
        sizes.append(own.remembered)
    assert max(sizes) < 90_000
    assert sizes[-1] <= max(sizes[:-60]) + 1000
