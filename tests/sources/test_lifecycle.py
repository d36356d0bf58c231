"""A source in the wrong phase says so in one line."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.sources import (
    AudioQueue,
    Chain,
    File,
    FramesFile,
    Paced,
    Pipe,
    Samples,
    SideInputSource,
)
from monitor.types import Track, Words
from tests.sources.conftest import voice

RATE = 16_000


@pytest.fixture(params=["file", "frames", "samples", "chain", "paced", "beside"])
def source(request, recordings, tmp_path):
    """Each kind that can be heard again."""
    file = File(recordings["flac"], block_seconds=1.0)
    if request.param == "frames":
        path = tmp_path / "a.jsonl"
        path.write_text('{"seconds": 0.01, "f0": 5}\n{"seconds": 12.0, "f0": 5}\n')
        return FramesFile(path)
    if request.param == "samples":
        return Samples(voice(2.0), RATE)
    if request.param == "chain":
        return Chain([file, File(recordings["wav"])])
    if request.param == "paced":
        return Paced(file, 1000.0)
    if request.param == "beside":
        said = Words(("yes",), np.array([5]), np.array([9]), np.array([15]))
        return SideInputSource(file, words=said)
    return file


def test_its_phases(source):
    assert source.phase == "opened"
    with source:
        items = iter(source)
        next(items)
        assert source.phase == "running"
        rest = len(list(items))
        assert source.phase == "ended"
    assert source.phase == "closed"
    with pytest.raises(UsageError, match="is closed: open another source"):
        next(iter(source))
    with source:  # entered again, it is open again
        assert len(list(source)) == rest + 1
    source.close()
    source.close()


def test_one_that_is_closed_meanwhile_ends_with_an_error(source):
    items = iter(source)
    next(items)
    source.close()
    with pytest.raises(UsageError, match="is closed"):
        next(items)


def test_closing_what_is_around_a_source_closes_the_source(recordings):
    file = File(recordings["flac"])
    with Paced(file, 1000.0) as paced:
        assert list(paced)
        assert file.phase == "ended"
    assert file.phase == "closed"


@pytest.mark.parametrize("kind", ["pipe", "queue"])
def test_what_comes_once_is_heard_once(kind):
    source: Any
    if kind == "pipe":
        source = Pipe(io.BytesIO(bytes(6400)), raw=(RATE, 1, "s16le"))
    else:
        source = AudioQueue(RATE)
        source.put(np.zeros(160, np.float32))
        source.stop()
    with source:
        assert len(list(source)) == 1
        with pytest.raises(UsageError, match="comes once"):
            next(iter(source))
    with pytest.raises(UsageError, match="is closed"), source:
        pass


def test_one_file_is_heard_by_several_threads(recordings):
    file = File(recordings["flac"], block_seconds=0.1)
    found: list[np.ndarray] = []

    def hear() -> None:
        found.append(np.concatenate([block.samples for block in file.blocks()]))

    threads = [threading.Thread(target=hear) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(each, found[0]) for each in found)


def test_what_a_source_need_not_say():
    samples = Samples(np.zeros(80), 8000, "some")
    assert (samples.labels, samples.transcripts, samples.provenance()) == (("some",), (), None)


def test_selected_and_shifted_frames():
    track = Track(np.array([1, 4]), np.array([7, 8]), np.array([[0, 1], [2, 4]]))
    last = track.some(slice(1, 2)).shifted(3)
    assert last.spans is not None
    assert last.spans.tolist() == [[5, 7]]
    assert track.some(np.array([True, False])).ticks.tolist() == [1]
