"""The voice feature: windows to the network in the package, the same bits however they come.

`python -m tests.features.test_voice` writes the golden embeddings anew, after another network has
taken the place of this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor.errors import StoreError, UsageError
from monitor.features.embeddings import RATE, Voice
from monitor.features.extractor import VoiceActivity
from monitor.features.registry import defaults, make, superseded
from monitor.networks import voice as network
from monitor.networks.layers import read_weights
from monitor.networks.voice import SHA256, SIZE, VoiceNetwork, shipped
from monitor.run.pace import Timed
from monitor.types import EarlyFrames, FloatArray, Track
from tests.sounds import synthetic

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


def heard(feature: Voice, *parts: FloatArray) -> Track:
    feature.reset()
    tracks = [*map(feature.process, parts), feature.flush()]
    values = np.concatenate([track.values for track in tracks])
    return Track(np.concatenate([track.ticks for track in tracks]), values)


def golden_sound() -> FloatArray:
    return np.concatenate([synthetic(7.0, pitch) for pitch in PITCHES])


def golden_frames() -> dict[str, Any]:
    """The ticks of all windows, and the first numbers of each embedding."""
    track = heard(Voice(), golden_sound())
    first = track.values[:, :SHOWN].astype(float).round(5)
    return {"network": SHA256, "ticks": track.ticks.tolist(), "values": first.tolist()}


def test_the_frames_are_the_golden_ones():
    golden, made = json.loads(GOLDEN.read_text()), golden_frames()
    assert golden["network"] == made["network"], "python -m tests.features.test_voice"
    assert golden["ticks"] == made["ticks"]
    np.testing.assert_allclose(made["values"], golden["values"], atol=1e-4)


@pytest.mark.slow
def test_any_cutting_and_any_batch_gives_the_same_bits():
    sound = np.concatenate([synthetic(20.0, pitch) for pitch in PITCHES])
    whole = heard(Voice(), sound)
    assert len(whole.values) > 4  # more than the network is given at once
    assert np.array_equal(whole.values, heard(Voice(), *np.array_split(sound, 397)).values)


@pytest.mark.parametrize(("every", "windows"), [(0, [0, 1]), (3, [0, 1, 3, 4])])
def test_the_first_seconds_are_early_frames_in_any_cutting(every, windows):
    sound = np.concatenate([synthetic(10.0, pitch) for pitch in PITCHES])
    spoken = VoiceActivity(RATE, ticks=1).process(sound)
    speech = sound.reshape(-1, 160)[spoken].ravel()
    voice = Voice()
    voice.early_every = every

    def early(parts: int, skip: int = 0) -> EarlyFrames:
        voice.reset()
        voice.skip_to(skip)
        made = [voice.process(part).early for part in np.array_split(sound, parts)]
        return reduce(EarlyFrames.joined, [each for each in made if each is not None])

    whole, cut = early(1), early(97)
    assert whole.seconds.tolist() == [1, 2] * len(windows)
    begins = [3 * RATE * window for window in windows for _ in (1, 2)]
    for value, begin, seconds in zip(whole.values, begins, whole.seconds, strict=True):
        part = speech[begin : begin + seconds * RATE]
        assert np.array_equal(value, shipped().embed(part[None])[0])
    clock = np.cumsum(spoken)
    assert (clock[whole.ticks - 1] * 160 == np.array(begins) + whole.seconds * RATE).all()
    for one, other in ((whole, cut), (whole.some(slice(1, None)), early(5, whole.ticks[0]))):
        assert np.array_equal(one.ticks, other.ticks)
        assert np.array_equal(one.values, other.values)


@pytest.mark.slow
def test_it_tells_real_readers_apart_across_sessions(shared):
    voice = Voice()

    def embedding(reader: str, chapter: str, seconds: float) -> FloatArray:
        path = shared / "speech" / "dev-clean" / reader / f"{chapter}.opus"
        sound, _ = soundfile.read(path, frames=round(seconds * RATE), dtype="float32")
        total = heard(voice, sound).values.sum(axis=0)
        return np.asarray(total / np.linalg.norm(total))

    templates = np.stack([embedding(name, one, 40.0) for name, (one, _) in READERS.items()])
    tests = np.stack([embedding(name, two, 15.0) for name, (_, two) in READERS.items()])
    scores = tests @ templates.T
    assert (scores.argmax(axis=1) == np.arange(len(READERS))).mean() >= 5 / 6
    own = np.diag(scores).mean()
    assert own > scores[~np.eye(len(READERS), dtype=bool)].mean() + 0.3


def test_it_is_marked_with_its_network_wherever_it_is_made():
    (made,) = make(["voice"])
    assert isinstance(made, Voice)
    assert made.spec.network == Timed(made).spec.network == SHA256 == shipped().sha256
    assert (str(made.spec), made.spec.frame_seconds) == (f"embedding of size {SIZE}", 3.0)


def test_a_damaged_network_is_refused(monkeypatch):
    whole = shipped()
    monkeypatch.setattr(network, "SHA256", "ab" * 32)
    with pytest.raises(StoreError, match=r"voice\.npz in the package .*: install again"):
        shipped.__wrapped__()
    monkeypatch.setattr(VoiceNetwork, "load", lambda _: 1 / 0)  # it is loaded once
    assert shipped() is whole


def test_the_stronger_network_takes_its_place(monkeypatch):
    ready = {"f0", "phones", "voice", "speaker_ab", "codes"}
    monkeypatch.setattr("monitor.features.registry.ready", lambda name, _: name in ready)
    assert defaults() == ("f0", "phones", "voice")
    assert defaults(["voice", "f0", "codes"]) == ("voice", "f0", "codes")
    assert defaults(["voice", "speaker_ab"]) == ("speaker_ab",)
    ready.remove("speaker_ab")
    assert defaults(["f0", "voice", "speaker_ab"]) == ("f0", "voice")
    assert superseded("voice", ["voice", "speaker_ab"])
    assert not superseded("speaker_ab", ["voice", "speaker_ab"])


@pytest.mark.slow
def test_it_needs_no_torch():
    code = (
        "import sys; from monitor.features.embeddings import Voice; Voice();"
        "print([name for name in ('torch', 'onnxruntime', 'scipy.stats') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_another_network_has_another_mark():
    other = VoiceNetwork({**_weights(), "embed.bias": np.ones(192, np.float32)}, "ab" * 32)
    feature = Voice(other, "voice_adapted")
    assert (feature.spec.name, feature.spec.network) == ("voice_adapted", "ab" * 32)
    assert Voice().spec.network == Voice.spec.network == SHA256  # that of the class stays
    sound = golden_sound()
    own = heard(Voice(shipped(), "voice_again"), sound).values
    assert np.abs(heard(feature, sound).values - own).max() > 0.01
    with pytest.raises(UsageError, match="sha256"):
        Voice(VoiceNetwork(_weights()))


def _weights() -> dict[str, FloatArray]:
    return read_weights(Path(network.__file__).with_suffix(".npz"))[0]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden_frames()) + "\n")
