"""The queue, the gaps and the waiting of `Microphone`, with a device that does as it is told."""

from __future__ import annotations

import sys
from itertools import count

import numpy as np
import pytest

from monitor.errors import SourceError, UsageError
from monitor.sources import Microphone, microphone
from monitor.sources import microphone as portaudio
from monitor.sources.microphone import Device, InputSystem, SoundClock, choose
from monitor.types import Block, Gap
from tests.tapes import LOST, Tape

RATE = 1000
SOUND = np.random.default_rng(0).standard_normal(20 * RATE).astype(np.float32)


def parts(seconds: float, size: int = 100) -> list[np.ndarray]:
    return [SOUND[i : i + size] for i in range(0, round(seconds * RATE), size)]


def hear(tape: Tape, **options) -> list[Block | Gap]:
    options = {"system": InputSystem(tape.opens, tape.rescans), **options}
    with Microphone(**options) as source:
        return list(source)


def sound(items: list[Block | Gap], recording: int = 0) -> np.ndarray:
    blocks = [i.samples for i in items if isinstance(i, Block) and i.recording == recording]
    return np.concatenate(blocks) if blocks else np.empty(0, np.float32)


def gaps(items: list[Block | Gap]) -> list[Gap]:
    return [item for item in items if isinstance(item, Gap)]


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(microphone, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(microphone, "STALLED_SECONDS", 0.3)


def test_it_stops_after_just_so_many_seconds():
    items = hear(Tape([parts(8.0, 300)], RATE), seconds=3.5)
    assert np.array_equal(sound(items), SOUND[:3500])
    assert all(len(item.samples) <= 1.3 * RATE for item in items if isinstance(item, Block))
    assert gaps(items) == []


def test_what_is_not_taken_in_time_is_dropped_and_counted():
    items = hear(Tape([parts(20.0)], RATE, gone=True), queue_seconds=5.0, reconnect_seconds=0)
    kept = len(sound(items))
    dropped = [gap for gap in gaps(items) if gap.reason == "dropped"]
    assert kept >= 5 * RATE
    assert kept / RATE + sum(gap.lost_seconds or 0.0 for gap in dropped) == pytest.approx(20.0)
    assert dropped


def test_overflows_are_counted_and_told_once_a_second():
    script = [x for part in parts(4.0) for x in (LOST, part)]
    items = hear(Tape([script], RATE), seconds=4.0)
    found = gaps(items)
    assert {gap.reason for gap in found} == {"overflow"}
    assert 4 <= len(found) <= 5
    words = " ".join(gap.detail for gap in found)
    times = [int(word) for word in words.replace("once", "1").split() if word.isdigit()]
    assert sum(times) == 40
    assert np.array_equal(sound(items), SOUND[:4000])


def test_a_device_that_is_lost_goes_on_as_another_recording():
    said: list[str] = []
    tape = Tape([parts(1.0), parts(2.0)], RATE, gone=True)
    items = hear(tape, seconds=2.5, report=said.append)
    assert len(sound(items, 0)) == 1000
    assert np.array_equal(sound(items, 1), SOUND[:1500])
    (gap,) = gaps(items)
    assert gap.reason == "device lost"
    assert tape.rescanned == 1
    assert [line.split(";")[0] for line in said] == ["tape is gone", "tape is back after 0 s"]


@pytest.mark.parametrize("gone", [True, False])
def test_a_device_that_stays_away_or_falls_silent_ends_the_stream(gone):
    items = hear(Tape([parts(1.0)], RATE, gone=gone), reconnect_seconds=0.1)
    assert len(sound(items)) == 1000
    assert "did not come back" in items[-1].detail  # type: ignore[union-attr]
    (gap,) = gaps(items)
    assert gap.reason == "device lost"
    # what is lost counts from the last sound, not from when its absence was noticed
    assert (gap.lost_seconds or 0.0) >= (0.1 if gone else microphone.STALLED_SECONDS)


def test_stop_gives_what_was_heard_and_no_more():
    tape = Tape([parts(5.0)], RATE)
    with Microphone(system=InputSystem(tape.opens, tape.rescans)) as source:
        taken = 0
        for item in source:
            assert isinstance(item, Block)
            taken += len(item.samples)
            tape._thread.join()
            source.stop()
    assert taken == 5000
    assert source.waiting_seconds == 0


def test_stop_ends_the_waiting():
    tape = Tape([parts(1.0)], RATE, gone=True)
    source = Microphone(
        system=InputSystem(tape.opens, tape.rescans), report=lambda _: source.stop()
    )
    assert [gap.reason for gap in gaps(list(source))] == ["device lost"]


def test_waiting_and_lag():
    now = count(100.0, 0.0)
    tape = Tape([parts(3.0)], RATE)
    with Microphone(system=InputSystem(tape.opens), clock=lambda: next(now), seconds=3.0) as source:
        assert source.behind_seconds(1.0) == 0.0
        for _ in source:
            tape._thread.join()
        assert source.waiting_seconds == 0.0


def test_a_late_block_does_not_move_the_clock():
    clock = SoundClock()
    assert clock.wall(1.0) is None
    for second in range(1, 100):
        late = 0.7 if second % 3 else 0.0
        clock.record(float(second), 50.0 + second + late)
    assert clock.wall(99.0) == pytest.approx(149.0, abs=0.01)
    clock.lost()
    assert clock.wall(99.0) is None


@pytest.mark.parametrize("options", [{"seconds": 0.0}, {"seconds": -1.0}, {"queue_seconds": 0.5}])
def test_lengths_that_make_no_sense(options):
    with pytest.raises(UsageError, match="must be"):
        Microphone(**options)


INPUTS = [
    Device(0, "HDA Intel: ALC257", "ALSA", 2, 48000, False),
    Device(3, "USB Audio", "ALSA", 2, 48000, True),
    Device(4, "USB Audio 2", "ALSA", 1, 44100, False),
]


@pytest.mark.parametrize(
    ("wanted", "index"), [(None, 3), (0, 0), ("4", 4), ("usb audio", 3), ("alc", 0), ("audio 2", 4)]
)
def test_choosing_a_device(wanted, index):
    assert choose(INPUTS, wanted).index == index


@pytest.mark.parametrize(
    ("wanted", "words"),
    [("webcam", "no input"), ("usb", "may be 3"), ("", "no input"), ("2", "no input")],
)
def test_devices_that_are_not_meant(wanted, words):
    with pytest.raises(UsageError, match=words):
        choose(INPUTS, wanted)


def test_no_input_at_all():
    with pytest.raises(SourceError, match="plug in a microphone"):
        choose([], None)


def test_portaudio_is_missing(monkeypatch):
    class Missing:
        @staticmethod
        def find_spec(name, *_):
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr("sys.meta_path", [Missing, *sys.meta_path])
    with pytest.raises(SourceError, match="apt install libportaudio2"):
        portaudio.devices()


def test_a_stop_before_the_first_block_is_kept():
    tape = Tape([parts(8.0, 300)], RATE)
    with Microphone(seconds=3.5, system=InputSystem(tape.opens, tape.rescans)) as source:
        source.stop()
        assert len(sound(list(source))) < RATE
    again = Tape([parts(8.0, 300)] * 2, RATE)
    with Microphone(seconds=3.5, system=InputSystem(again.opens, again.rescans)) as source:
        source.stop()
        list(source)
        assert len(sound(list(source))) == 3.5 * RATE  # of the one before it tells nothing
