"""Samples that a program holds already are heard as a recording of them is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import soundfile

from monitor import Monitor, Run
from monitor.errors import UsageError
from monitor.sources import Samples
from tests.stream.streams import RATE, reference, sounds


def heard(monitor: Monitor, *arguments, **options) -> list[dict[str, Any]]:
    return [reading.record() for reading in monitor.stream(*arguments, **options)]


@pytest.mark.parametrize("channels", [1, 2])
def test_an_array_is_heard_as_the_file_of_it_is(tmp_path, channels):
    whole = np.round(np.stack([sounds(4.3)] * channels, axis=1) * 20_000).astype(np.int16)
    samples = whole[:, 0] if channels == 1 else whole
    path = tmp_path / "talk.wav"
    soundfile.write(path, samples, RATE)
    expected = heard(Monitor(reference()), path)
    assert len(expected) == 5
    assert heard(Monitor(reference()), samples, rate=RATE) == expected
    assert heard(Monitor(reference()), samples.astype(np.float32) / 32768, rate=RATE) == expected
    with Run(Samples(samples, RATE), Monitor(reference())) as run:
        assert run.to_end().readings == 5


def test_what_makes_no_sense_names_the_cure(tmp_path):
    monitor, sound = Monitor(reference()), sounds(2.0)
    with pytest.raises(UsageError, match=r"needs its rate: stream\(samples, rate=16_000\)"):
        list(monitor.stream(sound))
    with pytest.raises(UsageError, match=r"Samples\(samples, rate=16_000\)"), Run(sound, monitor):  # type: ignore[arg-type]
        pass
    with pytest.raises(UsageError, match=r"give samples\.T"):
        list(monitor.stream(np.stack([sound, sound]), rate=RATE))
    for wrong in (np.zeros((3, 4, 5)), np.zeros((100, 65)), np.zeros(100, np.complex64)):
        with pytest.raises(UsageError, match="samples"):
            Samples(wrong, RATE)
    soundfile.write(tmp_path / "talk.wav", sound, RATE)
    with pytest.raises(UsageError, match="a source knows its own"):
        list(monitor.stream(tmp_path / "talk.wav", rate=RATE))
