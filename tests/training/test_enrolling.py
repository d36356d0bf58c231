from __future__ import annotations

import numpy as np
import pytest
import soundfile

from benchmarks.simulation import SIZE, Simulation, write_corpus
from monitor.corpus import Corpus, Recording, find
from monitor.errors import CorpusError, UsageError
from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.sources.frames import write_frames
from monitor.sources.registry import recording_hashes
from monitor.training.enrolling import enrol
from monitor.types import Track
from tests.sounds import RATE, synthetic


def slices_of(frames, count: int) -> np.ndarray:
    """What the slices should be, tick by tick: 5 s of speech each."""
    spoken = np.cumsum(frames.speech)
    slices = np.zeros((count, SIZE), int)
    for tick, value in zip(frames.tracks["f0"].ticks, frames.tracks["f0"].values, strict=True):
        place = max(int(spoken[tick - 1]) - 1, 0) // 500
        if place < count:
            slices[place, value] += 1
    return slices


def test_slices_of_five_speech_seconds_and_no_session_shares_one(tmp_path):
    simulation = Simulation(3)
    write_corpus(tmp_path, simulation, 3, 2, 30.0)
    population = enrol(find(tmp_path)).population
    assert population.names == ("000000", "000001", "000002")
    for j in range(3):
        expected = []
        for session in range(2):
            frames = simulation.frames(j, session, 30.0)
            count = int(frames.speech.sum()) // 500
            assert count >= 2
            assert frames.speech.sum() % 500  # a rest that must not run into the next session
            expected.append(slices_of(frames, count))
        own = slice(population.offsets[j], population.offsets[j + 1])
        np.testing.assert_array_equal(
            population.features["f0"].slices[own], np.concatenate(expected)
        )
    assert population.features["f0"].slices.dtype == np.uint16
    assert not len(population.rank_models)


def test_slices_go_on_from_file_to_file(tmp_path, frames_file):
    frames_file(tmp_path / "ann/mon/1.npz", np.ones(400), [400], [1])
    frames_file(tmp_path / "ann/mon/2.npz", np.ones(700), [100, 101, 600, 601], [2, 3, 4, 5])
    slices = enrol(find(tmp_path)).population.features["f0"].slices
    assert [np.flatnonzero(row).tolist() for row in slices] == [[1, 2], [3, 4]]


@pytest.mark.parametrize(("seconds", "slices"), [(5, 1), (9.9, 1), (10, 2), (30, 6)])
def test_at_most_so_many_seconds(tmp_path, seconds, slices):
    write_corpus(tmp_path, Simulation(2), 2, 2, 30.0)
    whole, part = enrol(find(tmp_path)), enrol(find(tmp_path), seconds=seconds)
    assert part.population.template_seconds.tolist() == [5.0 * slices] * 2
    first = whole.population.offsets[1]
    np.testing.assert_array_equal(
        part.population.features["f0"].slices[slices:],  # the second speaker
        whole.population.features["f0"].slices[first : first + slices],
    )


@pytest.mark.parametrize("seconds", [0, 4.9, -1])
def test_less_than_a_slice_is_refused_at_once(tmp_path, seconds):
    with pytest.raises(UsageError, match="at least 5 s"):
        enrol(Corpus((), ()), seconds=seconds)


def test_notes_tell_which_audio_was_used(tmp_path, frames_file):
    # seconds 0-1 silence, 1-8 speech, 8-9 silence, 9-12 speech, 12-20 silence
    speech = np.zeros(2000, bool)
    speech[100:800] = speech[900:1200] = True
    one = frames_file(tmp_path / "ann/mon/1.npz", speech, [1], [5])
    two = frames_file(tmp_path / "ann/mon/2.npz", speech, [1], [6])
    three = frames_file(tmp_path / "ann/tue/3.npz", speech, [1], [7])

    def notes(seconds: float):
        (speaker,) = enrol(find(tmp_path), seconds=seconds).population.speakers
        return [(n.label, n.session, n.start_seconds, n.end_seconds) for n in speaker.sources]

    assert notes(5.0) == [("1.npz", "mon", 0.0, 6.0)]
    # ten seconds are the whole first file, its last silence included
    assert notes(10.0) == [("1.npz", "mon", 0.0, 20.0)]
    assert notes(15.0) == [("1.npz", "mon", 0.0, 20.0), ("2.npz", "mon", 0.0, 6.0)]
    assert [note[3] for note in notes(60.0)] == [20.0, 20.0, 20.0]
    (speaker,) = enrol(find(tmp_path)).population.speakers
    hashes = [note.hashes for note in speaker.sources]
    assert hashes == [recording_hashes(path) for path in (one, two, three)]


def test_notes_leave_out_what_is_no_whole_slice(tmp_path, frames_file):
    frames_file(tmp_path / "ann/mon/1.npz", np.ones(700), [1], [5])
    frames_file(tmp_path / "ann/mon/2.npz", np.ones(200), [1], [5])
    frames_file(tmp_path / "ann/tue/3.npz", np.ones(400), [1], [5])
    (speaker,) = enrol(find(tmp_path)).population.speakers
    notes = [(n.label, n.start_seconds, n.end_seconds) for n in speaker.sources]
    # of 9 s of one session 5 are used; the other files are known, for nothing of them
    assert notes == [("1.npz", 0.0, 5.0), ("2.npz", 0.0, 0.0), ("3.npz", 0.0, 0.0)]


def test_broken_files_are_skipped_and_named(tmp_path, flac):
    flac(tmp_path / "ann/a.flac", 12.0)
    flac(tmp_path / "ann/b.flac", 12.0, keep=0.5)
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob/c.wav").write_text("this is no audio")
    flac(tmp_path / "cleo/d.flac", 12.0, pitch=200.0)
    seen = []
    made = enrol(find(tmp_path), progress=lambda recording: seen.append(recording.path.name))
    assert made.population.names == ("ann", "cleo")
    assert seen == ["a.flac", "b.flac", "c.wav", "d.flac"]
    broken, text, bob = made.problems
    assert broken.startswith("ann/b.flac: ")
    assert text.startswith("bob/c.wav ")
    assert bob == "bob: less than 5 s of speech, not enrolled"
    low, high = (
        int(s.sum(axis=0).argmax())
        for s in np.split(made.population.features["f0"].slices, made.population.offsets[1:-1])
    )
    assert low != high


def test_samples_that_are_no_numbers_are_told(tmp_path, voice):
    samples = voice(12.0)
    samples[:1600] = np.inf
    (tmp_path / "ann").mkdir()
    soundfile.write(tmp_path / "ann/a.wav", samples, 16_000, subtype="FLOAT")
    assert enrol(find(tmp_path)).problems == ("0.1 s of a.wav: not finite",)


def test_too_little_speech_for_anybody(tmp_path, frames_file):
    frames_file(tmp_path / "ann/1.npz", np.ones(499), [1], [5])
    with pytest.raises(CorpusError, match="ann: less than 5 s of speech"):
        enrol(find(tmp_path))


def test_sizes_that_disagree(tmp_path, frames_file):
    frames_file(tmp_path / "ann/1.npz", np.ones(600), [1], [5])
    frames_file(tmp_path / "bob/2.npz", np.ones(600), [1], [5], size=300)
    frames_file(tmp_path / "cleo/3.npz", np.ones(600), [1], [5])
    made = enrol(find(tmp_path))
    assert made.population.names == ("ann", "cleo")
    assert "2.npz: its 'f0' is not like" in made.problems[0]


def test_an_unknown_feature_stops_at_once(tmp_path, flac):
    flac(tmp_path / "ann/a.flac", 6.0)
    with pytest.raises(UsageError, match="did you mean f0"):
        enrol(find(tmp_path), features=["fo"])


def test_two_features_and_embeddings(tmp_path):
    generator = np.random.default_rng(0)
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
        values = generator.normal(size=(20, 3)).astype(np.float32)
        values[7] = 0.0  # without a direction
        tracks = {
            "tone": Track(np.arange(1, 1001), generator.integers(0, 8, 1000)),
            "identity": Track(np.arange(50, 1001, 50), values),
        }
        sizes, seconds = {"tone": 8, "identity": 3}, {"tone": 0.01, "identity": 0.5}
        write_frames(tmp_path / name / "a.npz", np.ones(1000, bool), tracks, sizes, seconds)
        if name == "ann":
            expected = [values[:10].sum(axis=0), values[10:].sum(axis=0)]
    made = enrol(find(tmp_path))
    assert set(made.population.features) == {"tone", "identity"}
    identity = made.population.features["identity"]
    assert identity.spec == FeatureSpec("identity", EMBEDDING, 3, 0.5)
    np.testing.assert_allclose(identity.slices[:2], expected, atol=1e-6)
    assert made.population.features["tone"].slices.sum(axis=1).tolist() == [500] * 4
    only = enrol(find(tmp_path), features=["tone"]).population
    assert set(only.features) == {"tone"}


def test_counts_beyond_sixteen_bits(tmp_path, frames_file):
    ticks = np.repeat(np.arange(1, 501), 140)
    frames_file(tmp_path / "ann/1.npz", np.ones(500), ticks, np.full(ticks.size, 7))
    population = enrol(find(tmp_path)).population
    assert population.features["f0"].slices[0, 7] == 70_000


def test_a_corpus_with_problems_of_its_own(tmp_path, frames_file):
    path = frames_file(tmp_path / "ann/1.npz", np.ones(600), [1], [5])
    made = enrol(Corpus((Recording("ann", "1", path),), ("2.npz is missing",)))
    assert made.problems == ("2.npz is missing",)


def test_a_real_reader(clips):
    own = tuple(r for r in find(clips) if r.speaker == "1272")
    assert len({recording.session for recording in own}) == 2
    population = enrol(Corpus(own, ()), seconds=30.0).population
    assert population.template_seconds.tolist() == [30.0]
    slices = population.features["f0"].slices
    assert (slices.sum(axis=1) > 75).all()  # a fifth of read speech and more is voiced
    assert 30 < population.speakers[0].sources[0].end_seconds < 60


def test_copies_that_are_known_again_and_those_that_are_not(tmp_path):
    """What docs/own-people.md says of copies of what was enrolled."""
    samples = np.rint(9000 * synthetic(4.0)).astype(np.int16)
    copies = {"wav": samples, "flac": samples, "cut": samples[: len(samples) // 2]}
    for name, each in copies.items():
        file = "FLAC" if name == "flac" else "WAV"
        soundfile.write(tmp_path / name, each, RATE, format=file)
    soundfile.write(tmp_path / "resampled", np.repeat(samples, 2), 2 * RATE, format="WAV")
    wav, flac, cut, resampled = (
        set(recording_hashes(tmp_path / name)) for name in (*copies, "resampled")
    )
    assert len(wav & flac) == 1
    assert not wav & cut
    assert not wav & resampled
