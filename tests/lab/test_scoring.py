"""Scores of a corpus are those by which the monitor ranks the same speech."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.corpus import Corpus, Recording, find
from monitor.errors import CorpusError, OverlapError, StoreError, UsageError
from monitor.lab.scoring import score
from monitor.population import Population
from monitor.sources import FramesFile, write_frames
from monitor.stream.monitor import Monitor
from monitor.training import CalibrationSettings, calibrate, collect, enrol
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
def enrolled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("enrolled")
    corpus = written(folder, range(SPEAKERS), range(2))
    voices, specs, _ = collect(corpus)
    made = calibrate(
        voices,
        specs,
        CalibrationSettings(
            lengths=(5, 20), template_lengths=(30,), trials=4, replicates=20, prior=None
        ),
    )
    return corpus, enrol(corpus, seconds=30).population.calibrated(made)


def places(scores) -> list[int]:
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5, 20])
def test_they_are_what_the_monitor_ranks_by(tmp_path, enrolled, seconds):
    _, population = enrolled
    corpus = written(tmp_path, range(SPEAKERS), range(2, 3))
    found = score(corpus, population, seconds=seconds)
    assert set(found.matrices) == {"codes", "embedding", "joint"}
    assert found.session == "cross"
    assert not found.problems
    per = SECONDS // seconds
    for name, matrix in found.matrices.items():
        assert matrix.scores.shape == (SPEAKERS * per, SPEAKERS)
        assert matrix.name == name
        assert matrix.speakers == population.names
        assert matrix.target.tolist() == np.repeat(np.arange(SPEAKERS), per).tolist()
    joint = found.matrices["joint"]
    assert joint.trial_names[per] == "s01 1 1"
    for speaker in range(SPEAKERS):  # the monitor hears the first trial of each alone
        monitor = Monitor(population, watch=f"s{speaker:02}", step_seconds=seconds)
        with FramesFile(corpus.recordings[speaker].path) as source:
            reading = next(monitor.stream(source))
        assert reading.speech == seconds
        row = speaker * per
        assert places(joint.scores[row]) == places(reading.posterior)
        for name, feature in reading.features.items():
            matrix = found.matrices[name]
            better, tied = matrix.better[row], matrix.tied[row]
            assert feature.rank == better + (tied + 1) / 2


@pytest.mark.slow
def test_one_feature_has_no_joint_and_chosen_ones_are_kept_to(tmp_path, enrolled):
    corpus = written(tmp_path, range(SPEAKERS), range(2, 3))
    found = score(corpus, enrolled[1], ["codes"], seconds=5)
    assert 0.0 < np.mean(found.matrices["codes"].better > 0) < 1.0  # there is something to rank
    assert set(found.matrices) == {"codes"}
    other = Population.reference()
    with pytest.raises(StoreError, match="no rank model"):
        score(corpus, enrolled[1].with_rank_models(other.rank_models, other.cohort), seconds=5)


def test_what_was_enrolled_is_refused_unless_insisted(enrolled):
    corpus, population = enrolled
    with pytest.raises(OverlapError, match="enrolled as s00"):
        score(corpus, population)
    assert score(corpus, population, allow_overlap=True).session == "same"


def test_who_is_not_enrolled_is_told(tmp_path, enrolled):
    corpus = written(tmp_path, range(SPEAKERS - 1, SPEAKERS + 1), range(2, 3))
    found = score(corpus, enrolled[1], seconds=20)
    assert found.problems == ("s12: not among the speakers compared with, left out",)
    assert found.matrices["joint"].trials == 2
    nobody = Corpus(tuple(replace(each, speaker="x") for each in corpus), ())
    with pytest.raises(CorpusError, match="nobody who speaks there is enrolled: x: "):
        score(nobody, enrolled[1], seconds=20)
    with pytest.raises(CorpusError, match="as much as 41 s"):
        score(corpus, enrolled[1], seconds=41)


@pytest.mark.parametrize("seconds", [0, -1, 0.04, 0.15])
def test_lengths_that_make_no_sense(enrolled, seconds):
    with pytest.raises(UsageError, match="a positive multiple of"):
        score(enrolled[0], enrolled[1], seconds=seconds)


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
