"""Enrolling: templates of a corpus and of a live take, and sessions that do not fit together."""

import tempfile

import numpy as np
import pytest
import soundfile
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.simulation import SIZE, Simulation, write_corpus
from monitor.corpus import Corpus, Recording, find
from monitor.errors import CorpusError, UsageError
from monitor.features.channel import CONDITION
from monitor.features.embeddings import SpeechWindows, window_spec
from monitor.features.extractor import Extractor
from monitor.features.f0 import F0
from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.population.population import Population
from monitor.protocols import Feature
from monitor.sources.frames import write_frames
from monitor.sources.registry import recording_hashes
from monitor.training.enrolling import Enrolment, enrol
from monitor.training.live_enrolment import LiveEnrolment
from monitor.training.session_checks import UNLIKE_BITS, find_outlier_sessions, unlike_additions
from monitor.types import Block, Track
from tests.contracts import voice as contract_voice
from tests.features.test_embeddings import Counting
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
        assert_array_equal(population.features["f0"].slices[own], np.concatenate(expected))
    assert population.features["f0"].slices.dtype == np.uint16
    assert not len(population.rank_models)


def test_slices_go_on_from_file_to_file_and_stop_at_so_many_seconds(tmp_path, frames_file):
    frames_file(tmp_path / "a/ann/mon/1.npz", np.ones(400), [400], [1])
    frames_file(tmp_path / "a/ann/mon/2.npz", np.ones(700), [100, 101, 600, 601], [2, 3, 4, 5])
    slices = enrol(find(tmp_path / "a")).population.features["f0"].slices
    assert [np.flatnonzero(row).tolist() for row in slices] == [[1, 2], [3, 4]]
    write_corpus(tmp_path / "b", Simulation(2), 2, 2, 30.0)
    whole = enrol(find(tmp_path / "b")).population
    for seconds, count in ((5, 1), (9.9, 1), (10, 2), (30, 6)):
        part = enrol(find(tmp_path / "b"), seconds=seconds).population
        assert part.template_seconds.tolist() == [5.0 * count] * 2
        second = slice(whole.offsets[1], whole.offsets[1] + count)
        assert_array_equal(part.features["f0"].slices[count:], whole.features["f0"].slices[second])


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
    # of 9 s of one session 5 are used; the other files are known, for nothing of them
    for name, ticks in (("mon/1", 700), ("mon/2", 200), ("tue/3", 400)):
        frames_file(tmp_path / f"ann/{name}.npz", np.ones(ticks), [1], [5])
    assert [note[2:] for note in notes(60.0)] == [(0.0, 5.0), (0.0, 0.0), (0.0, 0.0)]


def test_broken_files_are_skipped_and_named(tmp_path, flac):
    flac(tmp_path / "ann/a.flac", 12.0)
    flac(tmp_path / "ann/b.flac", 12.0, keep=0.5)
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob/c.wav").write_text("this is no audio")
    samples = synthetic(12.0, 200.0)
    samples[:1600] = np.inf
    (tmp_path / "cleo").mkdir()
    soundfile.write(tmp_path / "cleo/d.wav", samples, RATE, subtype="FLOAT")
    seen = []
    made = enrol(find(tmp_path), progress=lambda recording: seen.append(recording.path.name))
    assert made.population.names == ("ann", "cleo")
    assert seen == ["a.flac", "b.flac", "c.wav", "d.wav"]
    said = ("ann/b.flac: ", "bob/c.wav ", "bob: less than 5 s of speech, not enrolled",
            "0.1 s of d.wav: not finite")  # fmt: skip
    for words in said:
        assert [line for line in made.problems if line.startswith(words)], words
    slices, place = made.population.features["f0"].slices, made.population.offsets[1]
    assert slices[:place].sum(axis=0).argmax() != slices[place:].sum(axis=0).argmax()


def test_what_does_not_fit_is_named_or_refused(tmp_path, frames_file):
    ticks = np.repeat(np.arange(1, 501), 140)
    path = frames_file(tmp_path / "ann/1.npz", np.ones(600), ticks, np.full(ticks.size, 7))
    frames_file(tmp_path / "bob/2.npz", np.ones(600), [1], [5], size=300)
    made = enrol(find(tmp_path))
    assert made.population.names == ("ann",)
    assert made.population.features["f0"].slices[0, 7] == 70_000  # beyond sixteen bits
    assert "2.npz: its 'f0'" in made.problems[0]
    # a corpus may have problems of its own
    made = enrol(Corpus((Recording("ann", "1", path),), ("3.npz is missing",)))
    assert made.problems == ("3.npz is missing",)
    for error, words, options in (
        (UsageError, "at least 5 s", {"seconds": 4.9}),
        (UsageError, "at least 5 s", {"seconds": -1}),
        (CorpusError, "no speaker could be enrolled: .* no frames of fo", {"features": ["fo"]}),
    ):
        with pytest.raises(error, match=words):
            enrol(find(tmp_path), **options)
    frames_file(tmp_path / "few/ann/1.npz", np.ones(499), [1], [5])
    with pytest.raises(CorpusError, match="ann: less than 5 s of speech"):
        enrol(find(tmp_path / "few"))


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
    assert_allclose(identity.slices[:2], expected, atol=1e-6)
    assert made.population.features["tone"].slices.sum(axis=1).tolist() == [500] * 4
    only = enrol(find(tmp_path), features=["tone"]).population
    assert set(only.features) == {"tone"}


VOICE = contract_voice(8.0)


def taken(samples: np.ndarray, cut: int = 800, feature: Feature | None = None) -> LiveEnrolment:
    take = LiveEnrolment([feature or F0()])
    for i in range(0, len(samples), cut):
        take.push(Block(samples[i : i + cut], RATE))
    return take


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (VOICE, ""),
        (np.clip(20 * VOICE, -1, 1), "clipping"),
        (0.003 * VOICE, "too quiet"),
        (np.pad(VOICE, (0, 5 * RATE)), "too quiet"),
        (
            np.concatenate([VOICE[: RATE // 2], np.zeros(9 * RATE // 2, np.float32)]),
            "mostly silence",
        ),
        (VOICE[: 4 * RATE], ""),
    ],
)
def test_trouble_is_said_while_it_can_be_mended(samples, words):
    trouble = taken(samples).recent.trouble
    assert trouble.startswith(words)
    assert bool(trouble) == bool(words)


@pytest.mark.parametrize("cut", [100, 1234, 100_000])
def test_the_frames_are_those_of_the_audio(cut):
    take = taken(VOICE, cut)
    heard = take.end("take")
    extractor = Extractor([F0()])
    parts = [extractor.process(Block(VOICE, RATE)), extractor.flush()]
    assert take.speech_seconds == pytest.approx(sum(p.speech.sum() for p in parts) / 100)
    values = np.concatenate([p.tracks["f0"].values for p in parts])
    assert np.array_equal(heard.tracks["f0"].values, values)
    assert heard.speech.size == 800
    rows = Extractor([], conditions=True).process(Block(VOICE, RATE)).tracks[CONDITION].values
    assert np.array_equal(heard.sound, rows.sum(axis=0))  # type: ignore[arg-type]


def test_a_take_costs_no_windows_that_templates_are_not_made_of():
    network = Counting()
    feature = SpeechWindows(window_spec("own", 192), network)
    heard = taken(VOICE[: 15 * RATE // 2], feature=feature).end("take")
    assert (heard.tracks["own"].at.tolist(), len(network.batches)) == ([300, 600], 2)
    assert not network.early


def test_frames_of_a_take_never_lie_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    made = taken(np.tile(VOICE, 3)).enrolment("ann", "microphone", 10.0)
    assert made.population.names == ("ann",)
    assert made.population.offsets.tolist() == [0, 2]
    assert made.sessions["ann"][0][1] == 2
    (source,) = made.population.speakers[0].sources
    assert source.hashes == ()
    made.population.save(tmp_path / "ann.npz")
    assert Population.load(tmp_path / "ann.npz").speakers[0].sources == (source,)


SIMULATION = Simulation(8)


HIGH, LOW = int(SIMULATION.mean.argmax()), int(SIMULATION.mean.argmin())


@pytest.fixture(scope="module")
def others() -> Population:
    return Population.reference().only(["f0"])


@pytest.fixture(scope="module")
def enrolled(tmp_path_factory):
    """Enrols sessions, (speaker, session) of a simulation, as one person's."""
    folder = tmp_path_factory.mktemp("sessions")

    def make(*parts: tuple[int, int], seconds: float = 70.0) -> Enrolment:
        recordings = []
        for number, (speaker, session) in enumerate(parts):
            path = folder / f"{number}.npz"
            frames = SIMULATION.frames(speaker, session, seconds)
            write_frames(path, frames.speech, frames.tracks, {"f0": SIZE}, {"f0": 0.01})
            recordings.append(Recording("me", f"{number}", path))
        return enrol(Corpus(tuple(recordings), ()), seconds=400.0)

    return make


def unlike(made: Enrolment, others: Population) -> list[str]:
    found = find_outlier_sessions(made.population, made.sessions, others)
    assert all(each.speaker == "me" and each.bits < UNLIKE_BITS for each in found)
    return [each.session for each in found]


@pytest.mark.slow
def test_two_people_are_told_apart(enrolled, others):
    assert unlike(enrolled((HIGH, 0), (LOW, 0)), others) == ["0", "1"]
    assert unlike(enrolled((HIGH, 0), (LOW, 0), (HIGH, 0), (HIGH, 0)), others) == ["1"]


def test_one_person_too_little_speech_and_no_rank_model_tell_nothing(enrolled, others):
    for speaker in (HIGH, LOW):
        assert unlike(enrolled((speaker, 0), (speaker, 0)), others) == []
    assert unlike(enrolled((HIGH, 0), (LOW, 0), seconds=30.0), others) == []
    made = enrolled((HIGH, 0), (LOW, 0))
    assert unlike(made, Population(others.speakers, others.offsets, others.features)) == []
    assert find_outlier_sessions(made.population, {}, others) == []


@pytest.mark.slow
def test_a_further_session_of_somebody_else(enrolled, others):
    """A session that is added is held against what was enrolled of the speaker before."""
    before = others.joined(enrolled((HIGH, 0)).population)
    for speaker, found in ((HIGH, []), (LOW, ["0"])):
        more = enrolled((speaker, 1))
        after = before.extended(more.population)
        unlike = unlike_additions(before, after, more.sessions)
        assert [each.session for each in unlike] == found
        assert find_outlier_sessions(more.population, more.sessions, before) == []


def test_a_take_keeps_the_landmarks_of_the_recording(tmp_path):
    (tmp_path / "ann").mkdir()
    soundfile.write(tmp_path / "ann" / "a.wav", VOICE, RATE, subtype="FLOAT")
    ((recorded,),) = (
        each.sources for each in enrol(find(tmp_path), features=["f0"]).population.speakers
    )
    (live,) = taken(VOICE).enrolment("ann", "microphone", 60.0).population.speakers[0].sources
    assert live.landmarks.size > 20
    assert np.array_equal(live.landmarks, recorded.landmarks)
