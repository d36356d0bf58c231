"""`Microphone` and `AudioQueue`: with a device that does as it is told, and with a real one."""

import sys
import threading
import time

import numpy as np
import pytest

from monitor import Monitor
from monitor.errors import SourceError, UsageError
from monitor.sources import AudioQueue, Microphone, microphone
from monitor.sources.microphone import Device, InputSystem, choose, devices
from monitor.types import Block, Gap
from tests.sounds import synthetic
from tests.stream.streams import reference
from tests.tapes import LOST, FrameBuffer
from tests.virtual_microphone import DEVICE, virtual_microphone

__all__ = ["virtual_microphone"]

RATE = 1000
SOUND = np.random.default_rng(0).standard_normal(20 * RATE).astype(np.float32)


def parts(seconds: float, size: int = 100) -> list[np.ndarray]:
    return [SOUND[i : i + size] for i in range(0, round(seconds * RATE), size)]


def hear(tape: FrameBuffer, **options) -> list[Block | Gap]:
    options = {"system": InputSystem(tape.opens, tape.rescans), **options}
    with Microphone(**options) as source:
        return list(source)


def sound(items: list[Block | Gap], recording: int = 0) -> np.ndarray:
    blocks = [i.samples for i in items if isinstance(i, Block) and i.recording == recording]
    return np.concatenate(blocks) if blocks else np.empty(0, np.float32)


def gaps(items: list[Block | Gap]) -> list[Gap]:
    return [item for item in items if isinstance(item, Gap)]


@pytest.fixture(autouse=True)
def soon(request, monkeypatch):
    """A tape is not waited for as a device is."""
    if "virtual_microphone" not in request.fixturenames:
        monkeypatch.setattr(microphone, "RETRY_SECONDS", 0.01)
        monkeypatch.setattr(microphone, "STALLED_SECONDS", 0.3)


def test_it_stops_after_just_so_many_seconds():
    items = hear(FrameBuffer([parts(8.0, 300)], RATE), seconds=3.5)
    assert np.array_equal(sound(items), SOUND[:3500])
    assert all(len(item.samples) <= 1.3 * RATE for item in items if isinstance(item, Block))
    assert gaps(items) == []


def test_overflows_are_counted_and_told_once_a_second():
    script = [x for part in parts(4.0) for x in (LOST, part)]
    items = hear(FrameBuffer([script], RATE), seconds=4.0)
    found = gaps(items)
    assert {gap.reason for gap in found} == {"overflow"}
    assert 4 <= len(found) <= 5
    words = " ".join(gap.detail for gap in found)
    times = [int(word) for word in words.replace("once", "1").split() if word.isdigit()]
    assert sum(times) == 40
    assert np.array_equal(sound(items), SOUND[:4000])


def test_a_device_that_is_lost_goes_on_as_another_recording():
    said: list[str] = []
    tape = FrameBuffer([parts(1.0), parts(2.0)], RATE, gone=True)
    items = hear(tape, seconds=2.5, report=said.append)
    assert len(sound(items, 0)) == 1000
    assert np.array_equal(sound(items, 1), SOUND[:1500])
    (gap,) = gaps(items)
    assert gap.reason == "device lost"
    assert tape.rescanned == 1
    assert [line.split(";")[0] for line in said] == ["tape is gone", "tape is back after 0 s"]


def test_a_lost_device_comes_back_though_another_stream_forbids_to_list_devices_again():
    def refuse() -> None:
        raise SourceError("devices cannot be listed again while another is open: close it")

    tape = FrameBuffer([parts(1.0), parts(2.0)], RATE, gone=True)
    with Microphone(system=InputSystem(tape.opens, refuse), seconds=2.0) as source:
        assert len(sound([*source], 1)) == 1000


def test_devices_are_listed_again_only_when_no_stream_is_open(virtual_microphone):
    with Microphone(DEVICE, seconds=0.5) as source:
        with pytest.raises(SourceError, match=f"while .*{DEVICE}.* is open"):
            microphone.rescan()
        assert len(sound([*source])) > 0
    microphone.rescan()
    assert microphone.devices()


@pytest.mark.parametrize("gone", [True, False])
def test_a_device_that_stays_away_or_falls_silent_ends_the_stream(gone):
    items = hear(FrameBuffer([parts(1.0)], RATE, gone=gone), reconnect_seconds=0.1)
    assert len(sound(items)) == 1000
    assert "did not come back" in items[-1].detail
    (gap,) = gaps(items)
    assert gap.reason == "device lost"
    # what is lost counts from the last sound, not from when its absence was noticed
    assert (gap.lost_seconds or 0.0) >= (0.1 if gone else microphone.STALLED_SECONDS)


def test_stop_gives_what_was_heard_and_no_more_and_ends_the_waiting():
    tape = FrameBuffer([parts(5.0)], RATE)
    with Microphone(system=InputSystem(tape.opens, tape.rescans)) as source:
        taken = 0
        for item in source:
            assert isinstance(item, Block)
            taken += len(item.samples)
            tape._thread.join()
            source.stop()
    assert taken == 5000
    assert source.waiting_seconds == 0
    system = InputSystem(FrameBuffer([parts(1.0)], RATE, gone=True).opens)
    source = Microphone(system=system, report=lambda _: source.stop())
    assert [gap.reason for gap in gaps(list(source))] == ["device lost"]


@pytest.mark.parametrize("options", [{"seconds": 0.0}, {"seconds": -1.0}, {"queue_seconds": 0.5}])
def test_lengths_that_make_no_sense(options):
    with pytest.raises(UsageError, match="must be"):
        Microphone(**options)
    with pytest.raises(UsageError, match=r"queue_seconds=0\.5 must be 1 or more"):
        AudioQueue(RATE, queue_seconds=0.5)


INPUTS = [
    Device(0, "HDA Intel: ALC257", "ALSA", 2, 48000, False),
    Device(3, "USB Audio", "ALSA", 2, 48000, True),
    Device(4, "USB Audio 2", "ALSA", 1, 44100, False),
]


def test_choosing_a_device():
    wanted = {None: 3, 0: 0, "4": 4, "usb audio": 3, "alc": 0, "audio 2": 4}
    assert {name: choose(INPUTS, name).index for name in wanted} == wanted
    for name, words in (
        ("webcam", "no input"),
        ("usb", "matches several devices, 3"),
        ("", "no i"),
        ("2", "no i"),
    ):
        with pytest.raises(UsageError, match=words):
            choose(INPUTS, name)
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
        devices()


def test_a_callback_in_another_thread_is_heard_as_a_recording_would_be():
    sound = synthetic(4.0)
    queue = AudioQueue(16_000)

    def call() -> None:
        for at in range(0, len(sound), 320):
            queue.put(sound[at : at + 320])
            time.sleep(0.0005)
        queue.stop()

    thread = threading.Thread(target=call)
    thread.start()
    heard = [reading.bits for reading in Monitor(reference(), ["f0"]).stream(queue)]
    thread.join()
    whole = Monitor(reference(), ["f0"])
    readings = [*whole.push(Block(sound, 16_000)), *whole.finish()]
    assert heard == [reading.bits for reading in readings]
    assert len(heard) == 4
    assert queue.waiting_seconds == 0.0
    assert queue.taken_seconds == 4.0


def test_put_never_waits_and_what_is_too_much_is_a_gap():
    queue = AudioQueue(RATE, queue_seconds=2.0)
    for at in range(0, 5 * RATE, 100):
        queue.put(SOUND[at : at + 100])
    assert queue.waiting_seconds == 2.0
    first = next(iter(queue))
    queue.put(SOUND[:100])
    queue.stop()
    queue.put(SOUND)  # nothing more comes after it
    items = [first, *queue]
    kept = sum(len(item.samples) for item in items if isinstance(item, Block))
    (gap,) = gaps(items)
    assert (kept, gap.reason, gap.lost_seconds) == (2100, "dropped", 3.0)


def test_a_queue_copies_samples_of_any_channels():
    queue = AudioQueue(RATE, recording=3)
    samples = SOUND[:100].reshape(50, 2).copy()
    queue.put(samples)
    samples[:] = 0.0  # a sound library uses its buffer again
    queue.put(SOUND[:200].reshape(100, 2))
    queue.stop()
    (block,) = queue
    assert isinstance(block, Block)
    assert (block.samples.shape, block.rate, block.recording) == ((150, 2), RATE, 3)
    assert np.array_equal(block.samples[:50], SOUND[:100].reshape(50, 2))


def test_a_microphone_hears_what_is_played(virtual_microphone):
    assert DEVICE in [device.name for device in devices()]
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(6 * 16_000) / 16_000)
    virtual_microphone.play(tone.astype(np.float32), 16_000)
    with Microphone(DEVICE, seconds=3.0) as source:
        assert source.label == DEVICE
        items = list(source)
    blocks = [item for item in items if isinstance(item, Block)]
    assert blocks == items
    samples = np.concatenate([block.samples for block in blocks])
    rate = blocks[0].rate
    assert len(samples) == 3 * rate
    assert samples.shape[1:] in ((), (2,))
    last = samples[-rate:].reshape(rate, -1)[:, 0]
    spectrum = np.abs(np.fft.rfft(last * np.hanning(rate)))
    assert abs(spectrum.argmax() - 440) <= 1
    assert np.abs(last).max() == pytest.approx(0.5, abs=0.05)
