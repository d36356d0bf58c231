"""Three seconds of speech at a time: which windows a network is given, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import _webrtcvad
import numpy as np
import pytest
import soundfile
import webrtcvad

from monitor.features.embeddings import RATE, SpeechWindows, window_spec
from monitor.features.extractor import Extractor
from monitor.types import Block
from tests.contracts import growth

WINDOW = 3 * RATE


def reader(shared: Path, speaker: str, chapter: str, seconds: float) -> np.ndarray:
    path = shared / "speech" / "dev-clean" / speaker / f"{chapter}.opus"
    sound, rate = soundfile.read(path, frames=round(seconds * RATE), dtype="float32")
    assert rate == RATE
    return np.asarray(sound)


def heard(feature: Any, *parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    feature.reset()
    tracks = [*map(feature.process, parts), feature.flush()]
    return (
        np.concatenate([track.ticks for track in tracks]),
        np.concatenate([track.values for track in tracks]),
    )


class Counting:
    """A network that notes which windows it was given."""

    def __init__(self) -> None:
        self.batches: list[np.ndarray] = []
        self.early: list[np.ndarray] = []
        """The first window while it grew: after one second, and after two."""

    def embed(self, windows: np.ndarray) -> np.ndarray:
        grows = windows.shape[1] in (RATE, 2 * RATE)
        (self.early if grows else self.batches).append(windows.copy())
        return np.ones((len(windows), 192), np.float32)


@pytest.fixture
def counting() -> tuple[SpeechWindows, Counting]:
    network = Counting()
    return SpeechWindows(window_spec("timbre", 192), network), network


def test_the_windows_are_the_speech_without_the_pauses(shared, counting):
    feature, network = counting
    sound = reader(shared, "1272", "128104", 16.0)
    detector = webrtcvad.Vad(2)
    ticks = sound[: len(sound) // 160 * 160].reshape(-1, 160)
    whole = np.clip(np.rint(ticks * 32768), -32768, 32767).astype(np.int16)
    spoken = [detector.is_speech(tick.tobytes(), RATE) for tick in whole]
    assert 0.5 < np.mean(spoken) < 0.99
    speech = ticks[spoken].ravel()
    found, _ = heard(feature, sound)
    windows, rest = divmod(speech.size, WINDOW)
    given = np.concatenate([batch.ravel() for batch in network.batches])
    np.testing.assert_array_equal(given, speech[: given.size])
    assert [window.shape for window in network.early] == [(1, RATE), (1, 2 * RATE)] * 2
    for k, window in enumerate(network.early):
        begin = k // 2 * WINDOW
        assert (window[0] == speech[begin : begin + window.size]).all()
    assert given.size == windows * WINDOW + (rest if rest >= RATE else 0)
    assert [int(np.sum(spoken[:tick])) for tick in found[:windows]] == [
        300 * (i + 1) for i in range(windows)
    ]
    assert all(spoken[tick - 1] for tick in found[:windows])


def test_a_replay_is_batched_and_a_live_stream_is_not(shared, counting):
    feature, network = counting
    sound = reader(shared, "2412", "153947", 30.0)
    ticks, _ = heard(feature, sound)
    assert max(len(batch) for batch in network.batches) == 4
    together, network.batches = network.batches, []
    assert len(ticks) == sum(map(len, together)) > 6
    heard(feature, *np.split(sound, range(1600, sound.size, 1600)))
    assert {len(batch) for batch in network.batches} == {1}
    one_by_one = np.concatenate([batch.ravel() for batch in network.batches])
    np.testing.assert_array_equal(one_by_one, np.concatenate([b.ravel() for b in together]))


@pytest.mark.parametrize(("seconds", "frames"), [(0.9, 0), (1.1, 1), (2.9, 1), (3.2, 1), (4.3, 2)])
def test_what_is_left_at_the_end_counts_from_a_second_on(counting, seconds, frames, monkeypatch):
    feature, network = counting
    monkeypatch.setattr(_webrtcvad, "process", lambda *_: True)
    sound = np.zeros(round(seconds * RATE), np.float32)
    tracks = [feature.process(sound), feature.flush(), feature.flush()]
    assert [len(track.ticks) for track in tracks] == [int(seconds // 3), frames - seconds // 3, 0]
    assert sum(batch.size for batch in network.batches) in (0, WINDOW, sound.size)
    assert tracks[1].ticks.tolist() in ([], [round(100 * seconds)])


def test_silence_makes_no_frames_and_costs_no_memory(counting):
    feature, network = counting
    silence = np.zeros(10 * RATE, np.float32)
    assert growth(5, lambda _: feature.process(silence)) < 2048
    assert feature.flush().ticks.size == 0
    assert network.batches == []


def test_what_is_skipped_is_never_embedded(shared, counting):
    feature, network = counting
    sound = reader(shared, "1272", "135031", 20.0)
    ticks, _ = heard(feature, sound)
    assert len(ticks) >= 5
    network.batches = []
    feature.reset()
    feature.skip_to(int(ticks[2]))
    tracks = [feature.process(sound), feature.flush()]
    assert np.concatenate([track.ticks for track in tracks]).tolist() == ticks[3:].tolist()
    assert sum(map(len, network.batches)) == len(ticks) - 3
    feature.reset()
    network.batches = []
    feature.skip_to(10**6)
    assert feature.process(sound).ticks.size == feature.flush().ticks.size == 0
    assert network.batches == []


def test_any_rate_is_heard_and_no_frame_lies_beyond_the_end(counting):
    feature, _ = counting
    feature.reset()
    extractor = Extractor([feature])
    feature_sound = np.sin(np.arange(44_100 * 5) * 2 * np.pi * 130 / 44_100).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_webrtcvad, "process", lambda *_: True)
        runs = [extractor.process(Block(feature_sound, 44_100)), extractor.flush()]
    ticks = np.concatenate([run.tracks["timbre"].ticks for run in runs])
    assert ticks.tolist() == [300, 500]
    assert sum(run.speech.size for run in runs) == 500
