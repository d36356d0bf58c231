"""A block that makes no sense changes nothing: the stream goes on as if it had not come."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from monitor import Monitor, Population
from monitor.errors import MonitorError, UsageError
from monitor.types import Block, Frames, Track
from tests.sounds import synthetic

RATE = 16_000
SOUND = synthetic(2.0)


def mono(samples, rate=RATE, recording=0):
    return Block(samples, rate, recording)


BAD_BLOCKS = {
    "no rate": mono(SOUND, 0),
    "negative rate": mono(SOUND, -1),
    "half a rate": mono(SOUND, 16000.5),
    "no number": mono(SOUND, float("nan")),
    "absurd rate": mono(SOUND, 10**9),
    "three axes": mono(SOUND.reshape(10, 40, -1)),
    "no channel": mono(SOUND[:, None][:, :0]),
    "many channels": mono(np.zeros((10, 1024))),
    "words": mono(np.array(["a"])),
    "complex": mono(SOUND + 1j),
    "integers": mono((SOUND * 30000).astype(np.int16)),
    "nothing": mono(None),
    "a number": mono(np.float64(3)),
    "another recording": mono(None, RATE, 1),
    "frames": Frames(np.ones(10, bool), {}),
}


@pytest.fixture(scope="module")
def population():
    return Population.reference()


def told(readings):
    return [reading.record() for reading in readings]


@pytest.mark.parametrize("bad", BAD_BLOCKS.values(), ids=BAD_BLOCKS)
def test_a_bad_block_changes_nothing(population, bad):
    whole = Monitor(population, ["f0"])
    expected = told([*whole.push(mono(SOUND)), *whole.push(mono(SOUND)), *whole.finish()])
    monitor = Monitor(population, ["f0"])
    readings = monitor.push(mono(SOUND))
    with pytest.raises(MonitorError) as caught:
        monitor.push(bad)
    assert "\n" not in str(caught.value)
    readings += [*monitor.push(mono(SOUND)), *monitor.finish()]
    assert told(readings) == expected


def frames(ticks=(5, 50), values=(3, 4), spans=None, speech=None):
    track = Track(np.array(ticks), np.array(values), spans)
    return Frames(np.ones(100, bool) if speech is None else speech, {"f0": track})


BAD_FRAMES = {
    "a bin too far": frames(values=(3, 104)),
    "a bin below": frames(values=(-1, 3)),
    "half a bin": frames(values=(0.5, 3)),
    "embeddings": frames(values=np.zeros((2, 4))),
    "too few ticks": frames(ticks=(5,)),
    "ticks backwards": frames(ticks=(50, 5)),
    "half a tick": frames(ticks=(0.5, 5)),
    "spans of one": frames(spans=np.zeros((2, 1), int)),
    "speech of numbers": frames(speech=np.ones(100)),
    "speech in two axes": frames(speech=np.ones((10, 10), bool)),
    "audio": mono(SOUND),
}


@pytest.mark.parametrize("bad", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_bad_frames_change_nothing(population, bad):
    whole = Monitor(population, ["f0"])
    expected = told([*whole.push(frames()), *whole.push(frames()), *whole.finish()])
    monitor = Monitor(population, ["f0"])
    readings = monitor.push(frames())
    with pytest.raises(MonitorError):
        monitor.push(bad)
    readings += [*monitor.push(frames()), *monitor.finish()]
    assert told(readings) == expected


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_monitor_says_that_it_cannot_be_copied_and_what_to_do(population, make):
    monitor = Monitor(population, ["f0"])
    monitor.push(mono(SOUND))
    with pytest.raises(UsageError, match=r"cannot be copied or pickled.*state\(\)"):
        make(monitor)
    assert monitor.push(mono(SOUND))
