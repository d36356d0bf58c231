from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.corpus import find
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.sources.frames import FramesFile
from monitor.training.calibrating import stream_of
from monitor.training.voices import SessionFrames, SpeakerSpeech, collect


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams") / "people"
    write_corpus(folder, Simulation(3, 1), 1, 1, 20.0)
    return folder


def test_a_stream_is_what_was_heard_pauses_included(corpus):
    (voice,), _, _ = collect(find(corpus))
    stream = stream_of(voice, ["f0"], 600.0)
    runs = list(FramesFile(corpus / "000000" / "s0.npz"))
    np.testing.assert_array_equal(stream.speech, np.concatenate([run.speech for run in runs]))
    ticks = np.concatenate([run.tracks["f0"].ticks for run in runs])
    values = np.concatenate([run.tracks["f0"].values for run in runs])
    track = stream.tracks["f0"]
    np.testing.assert_array_equal(track.values, values[: track.values.size])
    assert values.size - track.values.size < 20  # what did not fill a tenth of a second
    spoken = np.cumsum(stream.speech)
    waited = spoken[track.ticks - 1] - spoken[ticks[: track.ticks.size] - 1]
    assert waited.min() >= 0
    assert waited.max() <= 10


def test_the_session_with_most_speech_comes_first():
    sessions = [np.array([1, 1]), np.array([2, 2, 2]), np.array([3])]
    spec = FeatureSpec("f0", HISTOGRAM, 9, 0.1)
    made = [
        {"f0": SessionFrames(values, np.arange(values.size), values.size, spec)}
        for values in sessions
    ]
    speech = tuple(np.repeat([True, False], [10 * s.size, 5]) for s in sessions)
    stream = stream_of(SpeakerSpeech("ann", tuple(made), speech), ["f0"], 600.0)
    assert stream.tracks["f0"].values.tolist() == [2, 2, 2, 1, 1, 3]
    assert stream.tracks["f0"].ticks.tolist() == [10, 20, 30, 45, 55, 70]
    assert stream.speech.size == 75
    assert np.diff(stream.tracks["f0"].ticks).min() > 0
    short = stream_of(SpeakerSpeech("ann", tuple(made), speech), ["f0"], 0.45)
    assert (short.speech.size, short.tracks["f0"].ticks.tolist()) == (45, [10, 20, 30, 45])
    silent = stream_of(
        SpeakerSpeech("ann", tuple(made)), ["f0"], 600.0
    )  # nobody kept the decisions
    assert silent.speech.tolist() == [True] * 60
