from __future__ import annotations

import numpy as np
import pytest
import soundfile

from monitor.errors import SourceError, UsageError
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.sources.frames import write_frames
from monitor.training.feature_extraction import Listener, SpeechFrames
from monitor.types import Block, Track


def test_audio_is_heard_as_the_live_path_hears_it(tmp_path, voice):
    samples = voice(12.0)
    soundfile.write(tmp_path / "a.wav", samples, 16_000, subtype="FLOAT")
    heard = Listener().extract(tmp_path / "a.wav")
    extractor = Extractor(make(["f0"]))
    runs = [extractor.process(Block(samples, 16_000)), extractor.flush()]
    speech = np.concatenate([run.speech for run in runs])
    np.testing.assert_array_equal(heard.speech, speech)
    assert 400 < heard.speech_ticks < 1150  # neither silence nor all speech: both branches count
    ticks = np.concatenate([run.tracks["f0"].ticks for run in runs])
    values = np.concatenate([run.tracks["f0"].values for run in runs])
    np.testing.assert_array_equal(heard.tracks["f0"].values, values)
    expected = [int(speech[:tick].sum()) for tick in ticks]
    np.testing.assert_array_equal(heard.tracks["f0"].at, expected)
    assert heard.lost == ""


@pytest.mark.slow
def test_stopping_early_changes_nothing_of_what_was_wanted(tmp_path, voice):
    soundfile.write(tmp_path / "a.wav", voice(90.0), 16_000)
    whole = Listener().extract(tmp_path / "a.wav")
    block = Listener().extract(tmp_path / "a.wav", speech_seconds=0.1).speech_ticks
    assert block < whole.speech_ticks / 2  # files are read in blocks of 30 s
    for ticks in (100, 500, *range(block - 6, block + 2), 2 * block):
        part = Listener().extract(tmp_path / "a.wav", speech_seconds=ticks / 100)
        assert ticks < part.speech_ticks < whole.speech_ticks
        a, b = whole.tracks["f0"], part.tracks["f0"]
        np.testing.assert_array_equal(a.values[a.at <= ticks], b.values[b.at <= ticks])
        assert part.audio_seconds_at(ticks) == whole.audio_seconds_at(ticks)


def test_where_speech_lies_in_the_audio():
    heard = SpeechFrames(np.array([0, 1, 1, 0, 1, 0], bool), {})
    assert [heard.audio_seconds_at(n) for n in range(4)] == [0.01, 0.02, 0.04, 0.06]


def test_a_broken_file_is_named_once(tmp_path, flac):
    with pytest.raises(SourceError, match="could be read") as caught:
        Listener().extract(flac(tmp_path / "bad.flac", 8.0, keep=0.5))
    assert str(caught.value).count("bad.flac") == 1
    assert "\n" not in str(caught.value)


def test_samples_that_are_no_numbers_are_told(tmp_path, voice):
    samples = voice(8.0)
    samples[4000:5600] = np.nan
    soundfile.write(tmp_path / "a.wav", samples, 16_000, subtype="FLOAT")
    heard = Listener().extract(tmp_path / "a.wav")
    assert heard.lost == "0.1 s of a.wav: not finite"
    assert heard.tracks["f0"].values.size


def test_frames_bring_all_their_features(tmp_path):
    tracks = {
        "tone": Track(np.array([1, 3]), np.array([5, 6])),
        "style": Track(np.array([2]), np.ones((1, 3))),
    }
    sizes, seconds = {"tone": 8, "style": 3}, {"tone": 0.01, "style": 1.0}
    write_frames(tmp_path / "a.npz", np.ones(4, bool), tracks, sizes, seconds)
    listener = Listener()
    heard = listener.extract(tmp_path / "a.npz")
    assert listener.specs == {
        "tone": FeatureSpec("tone", HISTOGRAM, 8, 0.01),
        "style": FeatureSpec("style", EMBEDDING, 3, 1.0),
    }
    assert heard.tracks["tone"].at.tolist() == [1, 3]
    assert heard.tracks["style"].values.shape == (1, 3)
    only = Listener(["style"])
    assert list(only.extract(tmp_path / "a.npz").tracks) == ["style"]
    with pytest.raises(SourceError, match=r"a\.npz: holds no frames of f0"):
        Listener(["f0"]).extract(tmp_path / "a.npz")


def test_recordings_must_agree_in_size(tmp_path, frames_file):
    listener = Listener()
    listener.extract(frames_file(tmp_path / "a.npz", np.ones(9), [1], [5], size=200))
    with pytest.raises(SourceError, match=r"b\.npz: its 'f0' is not like"):
        listener.extract(frames_file(tmp_path / "b.npz", np.ones(9), [1], [5], size=201))


def test_frames_and_audio_of_our_own_feature_agree(tmp_path, frames_file, flac):
    listener = Listener()
    listener.extract(frames_file(tmp_path / "a.npz", np.ones(9), [1], [5], size=6))
    listener.extract(flac(tmp_path / "a.flac", 1.0))


def test_an_unknown_feature_is_a_wrong_call_not_a_wrong_file(tmp_path, flac):
    with pytest.raises(UsageError, match="did you mean f0"):
        Listener(["f1"]).extract(flac(tmp_path / "a.flac", 1.0))


def test_a_missing_file(tmp_path):
    with pytest.raises(SourceError, match=r"no\.wav"):
        Listener().extract(tmp_path / "no.wav")
