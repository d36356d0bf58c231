"""Scores of a corpus, at one length or several, are those by which the monitor ranks it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.corpus import Corpus, Recording, find
from monitor.errors import CorpusError, OverlapError, UsageError
from monitor.features.registry import make as make_features
from monitor.lab.normalisation import ScoreNormalisation
from monitor.lab.scoring import (
    EnrolledGrid,
    ScoreGrid,
    average_by_speaker,
    check_size,
    embed_utterances,
    score,
)
from monitor.population import Population
from monitor.sources import FramesFile, write_frames
from monitor.stream.monitor import Monitor
from monitor.training import CalibrationSettings, calibrate, collect, enrol
from monitor.training.voices import SessionFrames, SpeakerSpeech
from monitor.types import Frames, Track

SIZES, FRAME_SECONDS = {"codes": 32, "embedding": 8}, {"codes": 0.04, "embedding": 1.0}
SPEAKERS, SECONDS = 12, 40


def frames_of(speaker: int, session: int) -> Frames:
    """Tokens and an embedding a second of a made-up voice; everything is speech."""
    taste = np.random.default_rng(0).dirichlet(np.full(32, 60.0), size=SPEAKERS + 1)
    centre = np.random.default_rng(1).normal(size=(SPEAKERS + 1, 8))
    generator = np.random.default_rng([speaker, session])
    tokens = generator.choice(32, p=taste[speaker], size=SECONDS * 25)
    made = centre[speaker] + generator.normal(size=(SECONDS, 8)) * 6
    return Frames(
        np.ones(SECONDS * 100, bool),
        {
            "codes": Track(np.arange(1, tokens.size + 1) * 4, tokens),
            "embedding": Track(np.arange(1, SECONDS + 1) * 100, made),
        },
    )


def written(folder, speakers: range, sessions: range):
    for speaker in speakers:
        (folder / f"s{speaker:02}").mkdir(parents=True)
        for session in sessions:
            made, file = frames_of(speaker, session), folder / f"s{speaker:02}" / f"{session}.npz"
            write_frames(file, made.speech, made.tracks, SIZES, FRAME_SECONDS)
    return find(folder)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A corpus of two sessions a speaker, its voices and specs, and rank models learnt on it."""
    corpus = written(tmp_path_factory.mktemp("collected"), range(SPEAKERS), range(2))
    voices, specs, _ = collect(corpus)
    settings = CalibrationSettings(
        lengths=(5, 20), template_lengths=(30,), trials=4, replicates=20, prior=None
    )
    return corpus, voices, specs, calibrate(voices, specs, settings)


@pytest.fixture(scope="module")
def enrolled(collected):
    """The population of that corpus."""
    corpus, _, _, made = collected
    return enrol(corpus, seconds=30).population.calibrated(made)


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    """A third session of everybody."""
    return written(tmp_path_factory.mktemp("later"), range(SPEAKERS), range(2, 3))


def places(scores) -> list[int]:
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5, 20])
def test_they_are_what_the_monitor_ranks_by(later, enrolled, seconds):
    found = score(later, enrolled, seconds=seconds)
    assert set(found.matrices) == {"codes", "embedding", "joint"}
    assert found.session == "cross"
    assert not found.problems
    per = SECONDS // seconds
    for name, matrix in found.matrices.items():
        assert matrix.scores.shape == (SPEAKERS * per, SPEAKERS)
        assert matrix.name == name
        assert matrix.speakers == enrolled.names
        assert matrix.target.tolist() == np.repeat(np.arange(SPEAKERS), per).tolist()
    joint = found.matrices["joint"]
    assert joint.trial_names[per] == "s01 1 1"
    for speaker in range(SPEAKERS):  # the monitor hears the first trial of each alone
        monitor = Monitor(enrolled, watch=f"s{speaker:02}", step_seconds=seconds)
        with FramesFile(later.recordings[speaker].path) as source:
            reading = next(monitor.stream(source))
        assert reading.speech == seconds
        row = speaker * per
        assert places(joint.scores[row]) == places(reading.posterior)
        for name, feature in reading.features.items():
            matrix = found.matrices[name]
            better, tied = matrix.better[row], matrix.tied[row]
            assert feature.rank == better + (tied + 1) / 2


def test_what_cannot_be_scored_is_refused(tmp_path, collected, enrolled):
    corpus = collected[0]
    with pytest.raises(OverlapError, match="enrolled as s00"):
        score(corpus, enrolled)
    assert score(corpus, enrolled, allow_overlap=True).session == "same"
    for seconds in (0, -1, 0.04, 0.15):
        with pytest.raises(UsageError, match="a positive multiple of"):
            score(corpus, enrolled, seconds=seconds)
    others = written(tmp_path, range(SPEAKERS - 1, SPEAKERS + 1), range(2, 3))
    found = score(others, enrolled, seconds=20)
    (problem,) = found.problems
    assert problem.startswith("s12: excluded")
    assert found.matrices["joint"].trials == 2
    nobody = Corpus(tuple(replace(each, speaker="x") for each in others), ())
    with pytest.raises(CorpusError, match="no speaker of the corpus is enrolled: x: "):
        score(nobody, enrolled, seconds=20)
    with pytest.raises(CorpusError, match=" 41 s of speech"):
        score(others, enrolled, seconds=41)


def test_speech_is_counted_on_its_own_clock(tmp_path):
    """Pauses do not count: a trial is so many seconds of speech."""
    simulation = Simulation(3)
    write_corpus(tmp_path, simulation, 3, 1, 60.0)
    corpus = find(tmp_path)
    population = enrol(corpus, seconds=10).population
    rank_models = Population.reference().only(["f0"]).rank_models
    found = score(
        corpus, population, ["f0"], seconds=3, rank_models=rank_models, allow_overlap=True
    )
    spoken = [int(simulation.frames(j, 0, 60.0).speech.sum()) for j in range(3)]
    assert np.bincount(found.matrices["f0"].target).tolist() == [n // 300 for n in spoken]
    assert isinstance(corpus.recordings[0], Recording)


def grid(collected, **changes) -> ScoreGrid:
    _, voices, specs, made = collected
    how = {"lengths": (5.0,), "template_lengths": (30.0,), "sessions": ("cross",),
           "scorings": ("average",), "trials": 2, "rank_models": made.rank_models}  # fmt: skip
    return ScoreGrid(voices, specs, **(how | changes))


def only(grid: Any):
    (cell,) = grid.cells()
    return grid.score(*cell)


@pytest.mark.slow
def test_ranks_are_those_of_the_monitor(collected):
    corpus, _, _, made = collected
    cell = only(grid(collected))
    assert set(cell.matrices) == {"codes", "embedding", "joint"}
    first = type(corpus)(corpus.recordings[::2], ())
    population = enrol(first, seconds=30).population.with_rank_models(made.rank_models)
    between = 0
    for speaker in range(SPEAKERS):  # the first test of each begins its second session
        monitor = Monitor(population, watch=f"s{speaker:02}", step_seconds=5)
        with FramesFile(corpus.recordings[2 * speaker + 1].path) as source:
            reading = next(monitor.stream(source))
        row = 2 * speaker
        assert cell.matrix.trial_names[row] == f"s{speaker:02} 1"
        assert (cell.sessions[row], cell.start_seconds[row]) == ("1", 0.0)
        assert places(cell.matrices["joint"].scores[row]) == places(reading.posterior)
        for name, feature in reading.features.items():
            matrix = cell.matrices[name]
            assert feature.rank == matrix.better[row] + (matrix.tied[row] + 1) / 2
            between += matrix.better[row] > 0
    assert between > 0  # there is something to rank


def test_max_scoring_takes_the_nearest_five_seconds(collected):
    cell = only(grid(collected, scorings=("average", "max")))
    assert set(cell.matrices) == {"codes", "embedding", "joint", "embedding-max"}
    voices = collected[1]
    frames = voices[3].sessions[0]["embedding"].values.astype(float)
    slices = frames[:30].reshape(6, 5, -1).sum(axis=1)
    test = voices[0].sessions[1]["embedding"].total(0, 50)
    cosines = slices @ test / np.linalg.norm(slices, axis=1) / np.linalg.norm(test)
    assert cell.matrices["embedding-max"].scores[0, 3] == pytest.approx(cosines.max())
    assert cell.matrices["embedding"].scores[0, 3] < cosines.max()


def test_normalised_scores_rank_alike_where_only_trials_are_normalised(collected, later, enrolled):
    cohort = {"embedding": np.random.default_rng(2).normal(size=(20, 8))}
    of_itself = grid(collected, normalisation=ScoreNormalisation("t", cohort))
    of_others = EnrolledGrid(
        collect(later)[0], enrolled, ("embedding",), enrolled.rank_models, (5.0,), (None,), "cross",
        ("average",), normalisation=ScoreNormalisation("t", cohort),
    )  # fmt: skip
    for made in (of_itself, of_others):
        matrices = only(made).matrices
        plain, normalised = matrices["embedding"], matrices["embedding-tnorm"]
        assert np.array_equal(plain.better, normalised.better)
        assert not np.allclose(plain.scores, normalised.scores)


def test_every_cell_that_the_speech_reaches_and_those_that_it_does_not(collected):
    made = grid(collected, lengths=(5.0, 20.0), template_lengths=(10.0, 30.0), trials=1,
                sessions=("same", "cross"))  # fmt: skip
    found = [cell[:3] for cell in made.cells()]
    assert ("same", 20.0, 30.0) not in found  # sessions have 40 s
    assert len(found) == 7
    with pytest.raises(CorpusError, match="tests of 30 s and templates of 35 s"):
        grid(collected, lengths=(30.0,), template_lengths=(35.0,), sessions=("same",)).cells()
    with pytest.raises(UsageError, match=r"multiple of 0\.1"):
        grid(collected, lengths=(0.15,)).cells()
    with pytest.raises(UsageError, match=r"3\.7 GB of scores, more than 2 GB"):
        check_size(500_000_000)


@pytest.mark.slow
def test_they_are_those_of_score(later, enrolled):
    grid = EnrolledGrid(
        collect(later)[0], enrolled, ("codes", "embedding"), enrolled.rank_models,
        (5.0, 20.0, 41.0), (None,), "cross", ("average", "max"),
    )  # fmt: skip
    cells = [grid.score(*cell) for cell in grid.cells()]
    assert [(c.session, c.test_seconds, c.template_seconds) for c in cells] == [
        ("cross", 5.0, 30.0), ("cross", 20.0, 30.0),
    ]  # fmt: skip
    assert grid.problems == ["no enrolled speaker has 41 s of speech in one session"]
    for cell in cells:
        alone = score(later, enrolled, seconds=cell.test_seconds).matrices
        for name, matrix in alone.items():
            assert np.array_equal(matrix.scores, cell.matrices[name].scores)
            assert matrix.trial_names == cell.matrices[name].trial_names
        nearest, mean = (cell.matrices[n].scores for n in ("embedding-max", "embedding"))
        assert not np.allclose(nearest, mean)
        assert cell.start_seconds[1] == cell.test_seconds
        assert set(cell.sessions) == {"2"}


def test_utterances_weigh_the_same_in_a_template_whatever_their_length():
    spec = make_features(["voice"])[0].spec
    long, short = np.eye(spec.size)[:2]

    def session(frame, count):
        return {"voice": SessionFrames(np.tile(frame, (count, 1)), np.arange(count), count, spec)}

    voices = [SpeakerSpeech("ann", (session(long, 9), session(short, 1)), (), ("u1", "u2"))]
    embeddings, speakers = embed_utterances(voices, "voice")
    assert speakers == {"u1": "ann", "u2": "ann"}
    assert average_by_speaker(embeddings, speakers)["ann"] == pytest.approx((long + short) / 2)
