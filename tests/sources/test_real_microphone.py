"""`Microphone` on a real sound device: a private PulseAudio that real speech is played into."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from monitor.sources import Microphone
from monitor.sources.microphone import devices
from monitor.types import Block, Gap
from tests.virtual_microphone import DEVICE, virtual_microphone

__all__ = ["virtual_microphone"]

RATE = 16_000


def tone(seconds: float, hertz: float = 440.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype("f4")


def test_a_microphone_hears_what_is_played(virtual_microphone):
    assert DEVICE in [device.name for device in devices()]
    virtual_microphone.play(tone(6.0), RATE)
    with Microphone(DEVICE, seconds=3.0) as microphone:
        assert microphone.label == DEVICE
        items = list(microphone)
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


def test_a_device_that_vanishes_is_waited_for(virtual_microphone):
    said: list[str] = []
    microphone = Microphone(DEVICE, seconds=4.0, reconnect_seconds=30.0, report=said.append)
    items = []

    def away() -> None:
        virtual_microphone.stop()
        time.sleep(1.5)
        virtual_microphone.start()

    thread = threading.Thread(target=away)
    with microphone:
        for item in microphone:
            items.append(item)
            if microphone._heard > 1.0 and not thread.ident:
                thread.start()
    thread.join()
    (gap,) = [item for item in items if isinstance(item, Gap)]
    assert gap.reason == "device lost"
    assert gap.lost_seconds is not None
    assert 1.0 < gap.lost_seconds < 30.0
    assert {item.recording for item in items if isinstance(item, Block)} == {0, 1}
    seconds = sum(len(item.samples) / item.rate for item in items if isinstance(item, Block))
    assert seconds == pytest.approx(4.0)
    assert len(said) == 2


def test_a_device_that_stays_away_ends_the_stream_with_a_gap(virtual_microphone):
    with Microphone(DEVICE, reconnect_seconds=2.0) as microphone:
        items = []
        for item in microphone:
            items.append(item)
            if len(items) == 3:
                virtual_microphone.stop()
    assert isinstance(items[-1], Gap)
    assert "did not come back" in items[-1].detail
