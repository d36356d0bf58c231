"""A change of channel, from audio to the record."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.signal import butter, sosfilt

from monitor import Monitor, Population
from monitor.protocols import StreamInfo
from monitor.sources.base import BaseSource
from monitor.sources.file import File
from monitor.stream.records import placed
from monitor.types import AnyArray, Block

pytestmark = pytest.mark.slow

CUT = 60  # seconds


@pytest.fixture(scope="module")
def call(shared) -> tuple[AnyArray, int]:
    """A reader who goes through a telephone after a minute."""
    path = shared / "speech/train-clean-5/19/198.opus"
    blocks = [b for b in File(path, end_seconds=2.0 * CUT) if isinstance(b, Block)]
    sound, rate = np.concatenate([block.samples.ravel() for block in blocks]), blocks[0].rate
    band = butter(6, [300, 3400], "bandpass", fs=rate, output="sos")
    later = sosfilt(band, sound[CUT * rate :])
    return np.concatenate([sound[: CUT * rate], later]).astype(np.float32), rate


@cache
def population() -> Population:
    return Population.reference()


def monitor(on_change: str = "note") -> Monitor:
    return Monitor(population(), features=["f0"], watch="1088", on_change=on_change)


def records(one, call, every):
    sound, rate = call

    class Cut(BaseSource[Any]):
        label, seconds, stream_info = "call", None, StreamInfo()

        def __iter__(self):
            for at in range(0, len(sound), every):
                yield Block(sound[at : at + every], rate)

    return [placed(event, ["call"], one.on_change).record() for event in one.events(Cut())]


def test_a_telephone_is_noticed(call):
    found = [r for r in records(monitor(), call, 16000) if r["type"] == "change"]
    # and a pitch that stays as it was tells that it is still the same voice
    told = [(r["features"], r.get("back", False)) for r in found]
    assert told == [(["channel"], False), (["f0"], True)]
    assert found[1]["seconds"] <= 2 * CUT
    assert CUT < found[0]["seconds"] <= CUT + 15
    assert abs(found[0]["since_seconds"] - CUT) <= 6
    assert found[0]["margin_before"] > found[0]["margin_after"]


def test_until_one_is_noticed_readings_do_not_depend_on_whether_it_is_looked_for(call):
    noted = [r for r in records(monitor(), call, 16000) if r["type"] == "reading"]
    until = next(i for i, reading in enumerate(noted) if "change" in reading)
    ignored = [r for r in records(monitor("ignore"), call, 16000) if r["type"] == "reading"]
    assert 0 < until < len(noted) == len(ignored)
    assert noted[:until] == ignored[:until]


@pytest.mark.parametrize("every", [997, 16000 * 2 * CUT])
def test_any_cutting_gives_the_same(call, every):
    assert records(monitor("split"), call, every) == records(monitor("split"), call, 16000)


@pytest.mark.parametrize("stop", [40, 70, 90])
def test_stopped_and_resumed_equals_never_stopped(call, stop):
    never = records(monitor("split"), call, 16000)
    sound, rate = call
    one = monitor("split")
    done: list[Mapping[str, Any]] = []
    for at in range(0, len(sound), rate):
        done += [
            placed(e, ["call"], "split").record()
            for e in one._push(Block(sound[at : at + rate], rate))
        ]
        if done and done[-1]["type"] == "reading" and done[-1]["seconds"] >= stop:
            break
    plain, arrays = one.state()
    again = monitor("split")
    again.restore(plain, {name: array.copy() for name, array in arrays.items()})
    assert done + records(again, call, rate) == never
    assert any(record["type"] == "change" for record in never)
