"""Recordings heard for training: as the live path hears them, whoever listens."""

import numpy as np
import pytest
import soundfile
from numpy.testing import assert_array_equal

from monitor.corpus import find
from monitor.errors import SourceError, UsageError
from monitor.features.embeddings import SpeechWindows, window_spec
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.training import feature_extraction
from monitor.training.enrolling import enrol
from monitor.training.feature_extraction import FeatureExtractor, SpeechFrames
from monitor.training.voices import collect
from monitor.types import Block
from tests.features.test_embeddings import Counting
from tests.sounds import synthetic


def test_audio_is_heard_as_the_live_path_hears_it(tmp_path):
    samples = synthetic(12.0)
    soundfile.write(tmp_path / "a.wav", samples, 16_000, subtype="FLOAT")
    heard = FeatureExtractor().extract(tmp_path / "a.wav")
    extractor = Extractor(make(["f0"]))
    runs = [extractor.process(Block(samples, 16_000)), extractor.flush()]
    speech = np.concatenate([run.speech for run in runs])
    assert_array_equal(heard.speech, speech)
    assert 400 < heard.speech_ticks < 1150  # neither silence nor all speech: both branches count
    ticks = np.concatenate([run.tracks["f0"].ticks for run in runs])
    values = np.concatenate([run.tracks["f0"].values for run in runs])
    assert_array_equal(heard.tracks["f0"].values, values)
    expected = [int(speech[:tick].sum()) for tick in ticks]
    assert_array_equal(heard.tracks["f0"].at, expected)
    assert heard.lost == ""
    # where speech lies in the audio
    few = SpeechFrames(np.array([0, 1, 1, 0, 1, 0], bool), {})
    assert [few.audio_seconds_at(n) for n in range(4)] == [0.01, 0.02, 0.04, 0.06]


@pytest.mark.slow
def test_stopping_early_changes_nothing_of_what_was_wanted(tmp_path):
    soundfile.write(tmp_path / "a.wav", synthetic(90.0), 16_000)
    whole = FeatureExtractor().extract(tmp_path / "a.wav")
    block = FeatureExtractor().extract(tmp_path / "a.wav", speech_seconds=0.1).speech_ticks
    assert block < whole.speech_ticks / 2  # files are read in blocks of 30 s
    for ticks in (100, 500, *range(block - 6, block + 2), 2 * block):
        part = FeatureExtractor().extract(tmp_path / "a.wav", speech_seconds=ticks / 100)
        assert ticks < part.speech_ticks < whole.speech_ticks
        a, b = whole.tracks["f0"], part.tracks["f0"]
        assert_array_equal(a.values[a.at <= ticks], b.values[b.at <= ticks])
        assert part.audio_seconds_at(ticks) == whole.audio_seconds_at(ticks)


def test_a_template_costs_no_windows_that_it_is_not_made_of(tmp_path):
    soundfile.write(tmp_path / "a.wav", synthetic(60.0), 16_000)
    network = Counting()
    feature = SpeechWindows(window_spec("own", 192), network)
    whole = FeatureExtractor([feature], starts=True).extract(tmp_path / "a.wav").tracks["own"]
    assert network.early
    network.batches.clear()
    network.early.clear()
    part = FeatureExtractor([feature]).extract(tmp_path / "a.wav", speech_seconds=5.0).tracks["own"]
    assert part.at.tolist() == whole.at[:2].tolist() == [300, 600]
    assert sum(map(len, network.batches)) == 2
    assert not network.early
    # the next recording of the same feature is heard in full
    FeatureExtractor([feature], starts=True).extract(tmp_path / "a.wav")
    assert network.early


def test_what_cannot_be_heard_is_named_once(tmp_path, frames_file, flac):
    with pytest.raises(SourceError, match="ends after") as caught:
        FeatureExtractor().extract(flac(tmp_path / "bad.flac", 8.0, keep=0.5))
    assert str(caught.value).count("bad.flac") == 1
    assert "\n" not in str(caught.value)
    with pytest.raises(SourceError, match=r"no\.wav"):
        FeatureExtractor().extract(tmp_path / "no.wav")
    with pytest.raises(UsageError, match="did you mean f0"):
        FeatureExtractor(["f1"]).extract(flac(tmp_path / "a.flac", 1.0))
    listener = FeatureExtractor()
    listener.extract(frames_file(tmp_path / "a.npz", np.ones(9), [1], [5], size=200))
    with pytest.raises(SourceError, match=r"b\.npz: its 'f0'"):
        listener.extract(frames_file(tmp_path / "b.npz", np.ones(9), [1], [5], size=201))
    listener = FeatureExtractor()  # of an own feature fewer bins may have been heard
    listener.extract(frames_file(tmp_path / "a.npz", np.ones(9), [1], [5], size=6))
    listener.extract(tmp_path / "a.flac")
    samples = synthetic(8.0)
    samples[4000:5600] = np.nan
    soundfile.write(tmp_path / "a.wav", samples, 16_000, subtype="FLOAT")
    heard = FeatureExtractor().extract(tmp_path / "a.wav")
    assert heard.lost == "0.1 s of a.wav: not finite"
    assert heard.tracks["f0"].values.size


@pytest.mark.slow
def test_templates_and_voices_are_the_same_whatever_the_processes(tmp_path, flac, monkeypatch):
    """Three speakers; one has a file too many, one that breaks off, and one no speech at all."""
    for name, pitch in (("ann", 200.0), ("bob", 110.0)):
        for day in ("mon", "tue"):
            flac(tmp_path / name / day / "1.flac", 9.0, pitch)
    flac(tmp_path / "ann/mon/2.flac", 8.0, keep=0.05)
    flac(tmp_path / "ann/wed/3.flac", 8.0, keep=0.4)  # not needed, and not looked at
    flac(tmp_path / "cleo/mon/1.flac", 8.0, keep=0.01)
    corpus, seen = find(tmp_path), list[str]()
    both = ["f0", "phones"]
    one = enrol(corpus, features=["f0"], seconds=10.0)
    voices, specs, problems = collect(corpus, features=both)
    monkeypatch.setattr(feature_extraction, "_extract", None)  # this process hears nothing now
    two = enrol(corpus, features=["f0"], seconds=10.0, jobs=2,
                progress=lambda recording: seen.append(recording.path.name))  # fmt: skip
    assert one.population.fingerprint() == two.population.fingerprint()
    assert one.population.speakers == two.population.speakers
    assert (one.problems, one.sessions) == (two.problems, two.sessions)
    assert seen == [recording.path.name for recording in corpus.recordings]
    assert not [problem for problem in one.problems if "3.flac" in problem]
    assert [problem for problem in one.problems if "2.flac" in problem]
    others, *rest = collect(corpus, features=both, jobs=2)
    assert (specs, problems) == tuple(rest)
    assert [voice.name for voice in voices] == [voice.name for voice in others] == ["ann", "bob"]
    for a, b in zip(voices, others, strict=True):
        for mine, yours in zip(a.sessions, b.sessions, strict=True):
            for name, session in mine.items():
                assert_array_equal(session.values, yours[name].values)
                assert_array_equal(session.units, yours[name].units)
                assert session.length == yours[name].length
