"""What a callback puts into an `AudioQueue` comes out as blocks and gaps; it never waits."""

from __future__ import annotations

import threading
import time
from itertools import count

import numpy as np
import pytest

from monitor import Monitor
from monitor.errors import UsageError
from monitor.sources import AudioQueue
from monitor.types import Block, Gap
from tests.sounds import synthetic
from tests.stream.streams import reference

RATE = 1000
SOUND = np.random.default_rng(0).standard_normal(20 * RATE).astype(np.float32)


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


def test_the_samples_are_copied():
    queue = AudioQueue(RATE)
    samples = SOUND[:100].copy()
    queue.put(samples)
    samples[:] = 0.0  # a sound library uses its buffer again
    queue.stop()
    (block,) = queue
    assert isinstance(block, Block)
    assert np.array_equal(block.samples, SOUND[:100])


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
    (gap,) = [item for item in items if isinstance(item, Gap)]
    assert (kept, gap.reason, gap.lost_seconds) == (2100, "dropped", 3.0)


def test_what_the_library_lost_is_told_once_a_second():
    queue = AudioQueue(RATE)
    for at in range(0, 3 * RATE, 100):
        queue.put(SOUND[at : at + 100], lost=True)
    queue.stop()
    gaps = [item for item in queue if isinstance(item, Gap)]
    assert {gap.reason for gap in gaps} == {"overflow"}
    assert 3 <= len(gaps) <= 4


def test_channels_and_the_number_of_the_recording():
    queue = AudioQueue(RATE, recording=3)
    for part in (SOUND[:100].reshape(50, 2), SOUND[:200].reshape(100, 2)):
        queue.put(part)
    queue.stop()
    (block,) = queue
    assert isinstance(block, Block)
    assert (block.samples.shape, block.rate, block.recording) == ((150, 2), RATE, 3)


def test_it_ends_where_nothing_comes_for_long():
    queue = AudioQueue(RATE, stalled_seconds=0.3)
    queue.put(SOUND[:100])
    began = time.monotonic()
    assert len(list(queue)) == 1
    assert time.monotonic() - began >= 0.2


def test_how_far_the_listener_is_behind():
    now = count(100.0, 1.0)
    queue = AudioQueue(RATE, clock=lambda: float(next(now)))
    assert queue.behind_seconds(1.0) == 0.0
    queue.put(SOUND[:RATE])
    queue.stop()
    list(queue)
    assert queue.behind_seconds(1.0) > queue.behind_seconds(2.5) > 0.0


def test_a_queue_of_less_than_a_block_is_refused():
    with pytest.raises(UsageError, match=r"queue_seconds=0\.5 must be 1 or more"):
        AudioQueue(RATE, queue_seconds=0.5)
