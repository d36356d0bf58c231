"""Short blocks: cheap, on time, and with the same readings."""

import time

import numpy as np
import pytest

from benchmarks.readers import read
from monitor import Monitor, Population
from monitor.errors import SourceError
from monitor.events.reading import Reading
from monitor.features.f0 import F0
from monitor.types import Block, FloatArray, Gap, Item, Track
from tests.stream.streams import RATE, Listed, reference, sounds, told


def push(monitor: Monitor, sound: FloatArray, seconds: float) -> list[tuple[float, Reading]]:
    """Push blocks of a length; return readings, and how long after its audio each came."""
    size = round(seconds * RATE)
    found = []
    for end in range(size, sound.size + 1, size):
        buffer = sound[end - size : end].copy()
        for reading in monitor.push(Block(buffer, RATE)):
            found.append((end / RATE - reading.seconds, reading))
        buffer[:] = np.nan  # as an audio library does, which uses its buffer again
    return found


def test_short_blocks_bring_each_reading_within_a_fifth_of_a_second():
    sound = sounds(8.0)
    late, readings = zip(*push(Monitor(reference()), sound, 0.01), strict=True)
    assert max(late[1:]) <= 0.2  # the first waits until the level of the voice is known
    whole = Monitor(reference()).push(Block(sound, RATE))
    assert told(readings) == told(whole)[: len(readings)]


def test_features_get_short_blocks_hardly_more_than_once_a_reading():
    calls = []

    class Counted(F0):
        def process(self, samples: FloatArray) -> Track:
            calls.append(samples.size)
            return super().process(samples)

    readings = push(Monitor(reference(), [Counted()]), sounds(12.0), 0.02)
    assert len(calls) <= 1.5 * len(readings)


def test_an_invalid_short_block_changes_nothing():
    sound, monitor = sounds(3.0), Monitor(reference())
    push(monitor, sound[:RATE], 0.02)
    with pytest.raises(SourceError, match="int16"):
        monitor.push(Block(np.zeros(160, np.int16), RATE))
    readings = [reading for _, reading in push(monitor, sound[RATE:], 0.02)] + monitor.finish()
    whole = Monitor(reference())
    assert told(readings) == told(whole.push(Block(sound, RATE)) + whole.finish())


def test_a_loss_between_short_blocks_keeps_its_place():
    sound, gap = sounds(4.0), Gap("overflow", 0.1)
    blocks = [Block(part, RATE) for part in np.split(sound, range(320, sound.size, 320))]
    short: list[Item] = [*blocks[:70], gap, *blocks[70:]]
    long: list[Item] = [Block(sound[: 70 * 320], RATE), gap, Block(sound[70 * 320 :], RATE)]
    expected = told(Monitor(reference()).events(Listed(long)))
    assert told(Monitor(reference()).events(Listed(short))) == expected
    assert [record["seconds"] for record in expected if record["type"] == "gap"] == [1.4]


@pytest.mark.slow
def test_blocks_of_10_ms_cost_hardly_more_than_blocks_of_1_s(shared):
    sound = read(shared / "speech/dev-clean/1272/128104.opus", 12.0)
    population = Population.reference()

    def measure(seconds: float) -> float:
        began = time.process_time()
        push(Monitor(population), sound, seconds)
        return time.process_time() - began

    measure(1.0)
    long, short = (min(measure(seconds) for _ in range(3)) for seconds in (1.0, 0.01))
    assert short <= 2 * long  # 1.3 on a quiet machine, and 4 if each block is processed alone
