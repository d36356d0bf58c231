"""Windows of speech to a speaker network: which, when, and the same bits however they come.

`python -m tests.features.test_embeddings` writes the golden embeddings anew, after another network
has taken the place of this one.
"""

import json
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor.errors import UsageError
from monitor.features.embeddings import RATE, SpeechWindows, Voice, window_spec
from monitor.features.extractor import Extractor, VoiceActivity
from monitor.features.framing import join_tracks
from monitor.jobs import one_thread
from monitor.networks import voice as network
from monitor.networks.layers import read_weights
from monitor.networks.voice import SHA256, VoiceNetwork, shipped
from monitor.types import Block, EarlyFrames, FloatArray
from tests.sounds import synthetic

WINDOW = 3 * RATE


def reader(shared: Path, speaker: str, chapter: str, seconds: float) -> np.ndarray:
    path = shared / "speech" / "dev-clean" / speaker / f"{chapter}.opus"
    return np.asarray(soundfile.read(path, frames=round(seconds * RATE), dtype="float32")[0])


@one_thread()
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
    sound = sound[: len(sound) // 480 * 480]
    ticks = sound.reshape(-1, 160)
    activity = VoiceActivity()
    spoken = activity.process(sound)
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


GOLDEN = Path(__file__).with_name("golden_voice.json")
PITCHES = (110.0, 210.0)
SHOWN = 12
# of dev-clean: a chapter to enrol, another to test; the network was not trained on them
READERS = {
    "1272": ("128104", "135031"),
    "1993": ("147149", "147965"),
    "2035": ("147960", "152373"),
    "2412": ("153947", "153948"),
    "1988": ("147956", "24833"),
    "652": ("129742", "130737"),
}


def golden_sound() -> FloatArray:
    return np.concatenate([synthetic(7.0, pitch) for pitch in PITCHES])


def golden_frames() -> dict[str, Any]:
    """The ticks of all windows, and the first numbers of each embedding."""
    ticks, values = heard(Voice(), golden_sound())
    first = values[:, :SHOWN].astype(float).round(5)
    return {"network": SHA256, "ticks": ticks.tolist(), "values": first.tolist()}


def test_the_frames_are_the_golden_ones():
    golden, made = json.loads(GOLDEN.read_text()), golden_frames()
    assert golden["network"] == made["network"], "python -m tests.features.test_embeddings"
    assert golden["ticks"] == made["ticks"]
    np.testing.assert_allclose(made["values"], golden["values"], atol=1e-4)


@pytest.mark.slow
def test_any_cutting_and_any_batch_gives_the_same_bits():
    sound = np.concatenate([synthetic(20.0, pitch) for pitch in PITCHES])
    _, whole = heard(Voice(), sound)
    assert len(whole) > 4  # more than the network is given at once
    assert np.array_equal(whole, heard(Voice(), *np.array_split(sound, 397))[1])


def test_a_part_of_a_window_is_embedded_by_its_length():
    sound = np.concatenate([synthetic(10.0, pitch) for pitch in PITCHES])
    spoken = np.flatnonzero(VoiceActivity().process(sound))
    voice = Voice()
    track = reduce(join_tracks, [*map(voice.process, np.array_split(sound, 7)), voice.flush()])
    track = track.shifted(5)
    assert track.windows is not None
    assert len(track.windows) == len(track.ticks) > 2
    ticks = np.concatenate([window.ticks for window in track.windows])
    assert np.array_equal(ticks, spoken[: ticks.size] + 6)
    for window, value in zip(track.windows, track.values, strict=True):
        assert np.array_equal(
            window.samples.ravel(), sound.reshape(-1, 160)[window.ticks - 6].ravel()
        )
        assert np.array_equal(voice.embed_part(window.samples)[0], value)
    part = track.windows[0].samples[100:250]
    whole = shipped().embed(part.reshape(1, -1))
    assert np.array_equal(voice.embed_part(part), np.float32(0.5) * whole)
    assert voice.embed_part(part[:99]).shape == (0, voice.spec.size)


def test_parts_embedded_together_are_those_embedded_alone():
    voice, sound = Voice(), np.random.default_rng(1).normal(0, 0.1, 48_000).astype(np.float32)
    parts = [sound[:length] for length in (16_000, 48_000, 16_160, 16_000, 31_840)]
    for part, value in zip(parts, voice.embed_parts(parts), strict=True):
        (alone,) = voice.embed_part(part.reshape(-1, 160))
        np.testing.assert_allclose(value, alone, atol=1e-5)
    assert voice.embed_parts([]) == []


@pytest.mark.parametrize("kept", [False, True])
def test_speech_is_kept_only_where_it_is_wanted(kept):
    extractor = Extractor([Voice()], windows=kept)
    track = extractor.process(Block(synthetic(8.0, 120.0), RATE)).tracks["voice"]
    assert track.ticks.size > 0
    assert (track.windows is not None) == kept

    sound = np.concatenate([synthetic(10.0, pitch) for pitch in PITCHES])
    spoken = VoiceActivity().process(sound)
    speech = sound[: 160 * spoken.size].reshape(-1, 160)[spoken].ravel()
    voice = Voice()

    def early(parts: int, skip: int = 0) -> EarlyFrames:
        voice.reset()
        voice.skip_to(skip)
        made = [voice.process(part).early for part in np.array_split(sound, parts)]
        return reduce(EarlyFrames.joined, [each for each in made if each is not None])

    whole, cut = early(1), early(97)
    assert whole.seconds.tolist() == [1, 2, 1, 2]
    begins = [3 * RATE * window for window in (0, 1) for _ in (1, 2)]
    for value, begin, seconds in zip(whole.values, begins, whole.seconds, strict=True):
        part = speech[begin : begin + seconds * RATE]
        assert np.array_equal(value, shipped().embed(part[None])[0])
    clock = np.cumsum(spoken)
    assert (clock[whole.ticks - 1] * 160 == np.array(begins) + whole.seconds * RATE).all()
    for one, other in ((whole, cut), (whole.select(slice(1, None)), early(5, whole.ticks[0]))):
        assert np.array_equal(one.ticks, other.ticks)
        assert np.array_equal(one.values, other.values)


@pytest.mark.slow
def test_it_tells_real_readers_apart_across_sessions(shared):
    voice = Voice()

    def embedding(name: str, chapter: str, seconds: float) -> FloatArray:
        total = heard(voice, reader(shared, name, chapter, seconds))[1].sum(axis=0)
        return np.asarray(total / np.linalg.norm(total))

    templates = np.stack([embedding(name, one, 40.0) for name, (one, _) in READERS.items()])
    tests = np.stack([embedding(name, two, 15.0) for name, (_, two) in READERS.items()])
    scores = tests @ templates.T
    assert (scores.argmax(axis=1) == np.arange(len(READERS))).mean() >= 5 / 6
    own = np.diag(scores).mean()
    assert own > scores[~np.eye(len(READERS), dtype=bool)].mean() + 0.3


@pytest.mark.slow
def test_another_network_has_another_mark():
    weights, _ = read_weights(Path(network.__file__).with_suffix(".npz"))
    other = VoiceNetwork({**weights, "embed.bias": np.ones(192, np.float32)}, "ab" * 32)
    feature = Voice(other, "voice_adapted")
    assert (feature.spec.name, feature.spec.network) == ("voice_adapted", "ab" * 32)
    assert Voice().spec.network == Voice.spec.network == SHA256  # that of the class stays
    assert (
        np.abs(heard(feature, golden_sound())[1] - heard(Voice(), golden_sound())[1]).max() > 0.01
    )
    with pytest.raises(UsageError, match="sha256"):
        Voice(VoiceNetwork(weights))


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden_frames()) + "\n")
