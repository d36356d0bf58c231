"""Scores of a corpus against itself are those by which the monitor ranks the same speech."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.errors import CorpusError, UsageError
from monitor.lab.scoring import ScoreGrid, check_size
from monitor.population import Population
from monitor.population.rank_model import RankModels
from monitor.sources import FramesFile
from monitor.stream.monitor import Monitor
from monitor.training import CalibrationSettings, calibrate, collect, enrol
from tests.lab.test_scoring import SPEAKERS, places, written


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """A corpus of two sessions a speaker, its voices and specs, and rank models learnt on it."""
    corpus = written(tmp_path_factory.mktemp("heard"), range(SPEAKERS), range(2))
    voices, specs, _ = collect(corpus)
    rank_models = calibrate(
        voices,
        specs,
        CalibrationSettings(
            lengths=(5, 20), template_lengths=(30,), trials=4, replicates=20, prior=None
        ),
    ).rank_models
    return corpus, voices, specs, rank_models


def grid(heard, **changes) -> ScoreGrid:
    _, voices, specs, rank_models = heard
    how = {"lengths": (5.0,), "template_lengths": (30.0,), "sessions": ("cross",),
           "scorings": ("average",), "trials": 2, "rank_models": rank_models}  # fmt: skip
    return ScoreGrid(voices, specs, **(how | changes))


def only(grid: ScoreGrid):
    (cell,) = grid.cells()
    return grid.score(*cell)


@pytest.mark.slow
def test_ranks_are_those_of_the_monitor(heard):
    corpus, _, _, rank_models = heard
    cell = only(grid(heard))
    assert set(cell.matrices) == {"codes", "embedding", "joint"}
    first = type(corpus)(corpus.recordings[::2], ())
    population = enrol(first, seconds=30).population.with_rank_models(rank_models)
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


def test_trials_say_where_they_were_said(heard):
    _, voices, _, _ = heard
    for session in ("same", "cross"):
        cell = only(grid(heard, sessions=(session,), lengths=(5.0,), template_lengths=(20.0,)))
        assert cell.matrix.target.tolist() == np.repeat(np.arange(SPEAKERS), 2).tolist()
        templates = [voice.sessions[0]["codes"] for voice in voices]
        for row, (name, start) in enumerate(zip(cell.sessions, cell.start_seconds, strict=True)):
            voice = voices[cell.matrix.target[row]]
            mine = voice.sessions[voice.session_names.index(name)]["codes"]
            total = mine.total(round(start * 10), 50)
            assert total.sum() == 125
            if session == "cross" and row % 2 == 0:  # templates begin the first session
                logs = [np.log((t.total(0, 200) + 0.5) / (516.0)) for t in templates]
                near = cell.matrices["codes"].scores[row]
                assert near == pytest.approx([total @ each for each in logs], abs=1e-4)


def test_max_scoring_takes_the_nearest_five_seconds(heard):
    cell = only(grid(heard, scorings=("average", "max")))
    assert set(cell.matrices) == {"codes", "embedding", "joint", "embedding-max"}
    voices = heard[1]
    frames = voices[3].sessions[0]["embedding"].values.astype(float)
    slices = frames[:30].reshape(6, 5, -1).sum(axis=1)
    test = voices[0].sessions[1]["embedding"].total(0, 50)
    cosines = slices @ test / np.linalg.norm(slices, axis=1) / np.linalg.norm(test)
    assert cell.matrices["embedding-max"].scores[0, 3] == pytest.approx(cosines.max())
    assert cell.matrices["embedding"].scores[0, 3] < cosines.max()


def test_without_a_rank_model_there_is_no_joint_score_and_it_is_said(heard):
    alone = RankModels(
        tuple(rank_model for rank_model in heard[3] if len(rank_model.features) == 1)
    )
    for rank_models, said in (
        (alone, "there is no rank model for any two of codes, embedding"),
        (
            Population.reference().rank_models,
            "the population has no rank model for codes+embedding",
        ),
    ):
        made = grid(heard, rank_models=rank_models)
        assert set(only(made).matrices) == {"codes", "embedding"}
        (why,) = made.problems
        assert why.startswith(f"no joint score: {said}")


def test_the_joint_score_is_of_as_many_features_as_a_rank_model_knows(heard):
    _, voices, specs, _ = heard
    more = [replace(v, sessions=tuple({**s, "third": s["codes"]} for s in v.sessions))
            for v in voices]  # fmt: skip
    both, made = only(grid(heard)), grid(heard)
    three = replace(made, voices=more, specs={**specs, "third": specs["codes"]}, problems=[])
    cell = only(three)
    assert set(cell.matrices) == {"codes", "embedding", "third", "joint"}
    assert set(cell.joint) == {"codes", "embedding"}
    assert np.array_equal(cell.matrices["joint"].scores, both.matrices["joint"].scores)
    (said,) = three.problems
    assert said.startswith("the joint score is of ")


def test_what_cannot_be_scored_is_refused(heard):
    with pytest.raises(CorpusError, match="tests of 30 s and templates of 35 s"):
        grid(heard, lengths=(30.0,), template_lengths=(35.0,), sessions=("same",)).cells()
    with pytest.raises(UsageError, match=r"multiple of 0\.1"):
        grid(heard, lengths=(0.15,)).cells()
    with pytest.raises(UsageError, match=r"3\.7 GB of scores, more than 2 GB"):
        check_size(500_000_000)


def test_every_cell_that_the_speech_reaches(heard):
    made = grid(heard, lengths=(5.0, 20.0), template_lengths=(10.0, 30.0), trials=1,
                sessions=("same", "cross"))  # fmt: skip
    found = [cell[:3] for cell in made.cells()]
    assert ("same", 20.0, 30.0) not in found  # sessions have 40 s
    assert len(found) == 7
