"""Tests of another voice that takes turns with the watched one."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import soundfile

from monitor import Monitor, Population, enrol
from monitor.events.reading import Reading
from monitor.events.run import NoticeEvent
from monitor.stream.plan import DEFAULTS, MonitorSettings
from monitor.types import Block

pytestmark = pytest.mark.slow
RATE = 16_000
OWN, OTHER = "2035/152373", "1988/147956"
BABBLE = ("460/172359", "19/198", "3242/8112", "7312/92432")
WITHOUT = MonitorSettings(second_voice=False)


@pytest.fixture(scope="module")
def mixed(shared):
    """Another woman for 3 s, the watched one for 1.5 s, alternating."""
    return _mix(shared, 3.0, 1.5)


def _mix(shared, other_seconds, own_seconds, seconds=18.0):
    own, other = _speech(shared, OWN), _speech(shared, OTHER)
    return _alternate(other, own, other_seconds, own_seconds, seconds)


def _alternate(other, own, other_seconds, own_seconds, seconds):
    mine, theirs = round(own_seconds * RATE), round(other_seconds * RATE)
    turns = range(round(seconds * RATE) // (mine + theirs))
    return np.concatenate(
        [
            np.concatenate([other[k * theirs : (k + 1) * theirs], own[k * mine : (k + 1) * mine]])
            for k in turns
        ]
    )


def _speech(shared, chapter):
    sound, rate = soundfile.read(shared / f"speech/dev-clean/{chapter}.opus", stop=30 * RATE)
    assert rate == RATE
    return sound.astype(np.float32)


def _monitor(settings=DEFAULTS):
    return Monitor(Population.reference(), watch="2035", settings=settings)


def _events(monitor, sound, size=RATE):
    events = []
    for at in range(0, len(sound), size):
        events += monitor.core.push(Block(sound[at : at + size], RATE))
    return events + list(monitor.core.end())


def _readings(events):
    return [event for event in events if isinstance(event, Reading)]


def _noticed(events):
    return [e.seconds for e in events if isinstance(e, NoticeEvent) and e.kind == "another voice"]


def _figures(readings):
    return [(r.seconds, r.bits, r.stretches_bits, r.stretches_seconds) for r in readings]


def test_another_voice_does_not_hide_the_watched_one(mixed):
    without = _readings(_events(_monitor(WITHOUT), mixed))
    monitor = _monitor()
    events = _events(monitor, mixed)
    (noticed,) = _noticed(events)
    assert noticed <= 4.5 + 10  # its second turn begins at 4.5 s
    for before, reading in zip(without, _readings(events), strict=True):
        if reading.seconds < noticed:
            assert reading.bits == before.bits
            assert reading.stretches_bits is reading.excluded_seconds is None
        else:
            assert reading.bits >= before.bits
            assert reading.bits >= reading.stretches_bits
    assert reading.bits > before.bits + 3
    assert reading.stretches_seconds < 0.6 * reading.speech
    assert monitor.own_totals.speech_seconds == reading.stretches_seconds  # for a ledger


@pytest.mark.parametrize(("watch", "other"), [("1407", "1336"), ("5547", "5029"), ("2740", "0739")])
def test_voices_of_the_same_sex_and_age_are_told_apart(shared, watch, other):
    sounds = {}
    with TemporaryDirectory() as folder:
        for name in (watch, other):
            sound, rate = soundfile.read(shared / f"nonnative/{name}.opus", dtype="float32")
            assert rate == RATE
            sounds[name] = sound[30 * RATE :]
        Path(folder, watch).mkdir()
        enrolled = soundfile.read(shared / f"nonnative/{watch}.opus", stop=30 * RATE)[0]
        soundfile.write(Path(folder, watch, "a.wav"), enrolled, RATE)
        people = Population.reference().joined(enrol(folder).population)
    mixed = _alternate(sounds[other], sounds[watch], 3.0, 3.0, 31.0)
    monitor = Monitor(people, watch=watch)
    assert _noticed(_events(monitor, mixed))[0] <= 6 + 10
    alone = Monitor(people, watch=watch)
    assert not _noticed(_events(alone, sounds[watch]))


def test_one_voice_reads_as_without_the_search(shared):
    sound = _speech(shared, OWN)
    events = _events(_monitor(), sound)
    assert not _noticed(events)
    without = _readings(_events(_monitor(WITHOUT), sound))
    assert _figures(_readings(events)) == _figures(without)


def test_a_voice_that_hides_nothing_is_not_noticed(shared):
    own, other = _speech(shared, OWN), _speech(shared, OTHER)
    turns = _alternate(other, own[22 * RATE :], 2.5, 1.5, 8.0)
    readings = _readings(events := _events(_monitor(), np.concatenate([own[: 22 * RATE], turns])))
    assert readings[-1].bits > max(reading.bits or 0.0 for reading in readings) - 1.0
    assert not _noticed(events)


def test_talk_behind_a_voice_counts_at_once_and_is_noticed_only_if_it_lasts(shared):
    own, *others = (
        soundfile.read(shared / f"speech/train-clean-5/{name}.opus", frames=17 * RATE, start=start)
        for name, start in [("1737/146161", 30 * RATE), *((name, 0) for name in BABBLE)]
    )
    behind = np.sum([sound for sound, _ in others], axis=0)
    sound = own[0] + behind * np.std(own[0]) / np.std(behind) * 10 ** (-15 / 20)
    monitor = Monitor(Population.reference(), watch="1737")
    events = _events(monitor, sound.astype(np.float32))
    readings = _readings(events)
    assert not _noticed(events)
    assert all(reading.stretches_bits is None for reading in readings)
    assert any(reading.excluded_seconds for reading in readings)
    assert readings[-1].excluded_seconds is None


def test_the_most_revealing_speech_is_the_watched_voices(mixed):
    monitor = _monitor()
    readings = _readings(_events(monitor, mixed))
    assert monitor.core.most_revealing is not None
    bits, seconds = monitor.core.most_revealing
    assert bits > readings[-1].bits - 6 > 0
    assert seconds % 4.5 > 3.5 or seconds % 4.5 < 0.5  # within a turn of 3 to 4.5 s, and its look


def test_blocks_of_any_length_read_the_same(mixed):
    events, others = (_events(_monitor(), mixed, size) for size in (777, 10 * RATE))
    assert _noticed(events) == _noticed(others)
    for one, other in zip(_readings(events), _readings(others), strict=True):
        assert one.bits == (None if other.bits is None else pytest.approx(other.bits, abs=1e-6))
        assert one.stretches_seconds == other.stretches_seconds


@pytest.mark.parametrize("seconds", [7, 14])
def test_a_stream_that_was_stopped_goes_on_alike(mixed, seconds):
    heard = _monitor()
    whole = _events(heard, mixed)
    stopped, resumed = _monitor(), _monitor()
    before: list[Reading] = []
    for at in range(0, seconds * RATE, RATE):
        before = stopped.push(Block(mixed[at : at + RATE], RATE)) or before
    resumed.restore(*stopped.state())
    rest = _readings(_events(resumed, mixed))
    expected = [r for r in _readings(whole) if r.seconds > before[-1].seconds]
    assert [r.seconds for r in rest] == [r.seconds for r in expected]
    assert [r.bits for r in rest] == pytest.approx([r.bits for r in expected], abs=1e-6)
    assert [r.stretches_seconds for r in rest] == [r.stretches_seconds for r in expected]
    assert resumed.core.most_revealing == pytest.approx(heard.core.most_revealing)
