from __future__ import annotations

import pytest

from benchmarks.simulation import Simulation
from monitor.corpus import Corpus, Recording
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.sources.frames import write_frames
from monitor.training.enrolling import (
    UNLIKE_BITS,
    Enrolment,
    enrol,
    unlike_additions,
    unlike_sessions,
)

SIMULATION = Simulation(8)


@pytest.fixture(scope="module")
def others() -> Population:
    return Population.reference().only(["f0"])


@pytest.fixture(scope="module")
def enrolled(tmp_path_factory, others):
    """Enrols sessions, (speaker, session) of a simulation, as one person's."""
    folder = tmp_path_factory.mktemp("sessions")
    size = others.specs["f0"].size

    def make(*parts: tuple[int, int], seconds: float = 70.0) -> Enrolment:
        recordings = []
        for number, (speaker, session) in enumerate(parts):
            path = folder / f"{number}.npz"
            frames = SIMULATION.frames(speaker, session, seconds)
            write_frames(path, frames.speech, frames.tracks, {"f0": size}, {"f0": 0.01})
            recordings.append(Recording("me", f"{number}", path))
        return enrol(Corpus(tuple(recordings), ()), seconds=400.0)

    return make


def unlike(made: Enrolment, others: Population) -> list[str]:
    found = unlike_sessions(made.population, made.sessions, others)
    assert all(each.speaker == "me" and each.bits < UNLIKE_BITS for each in found)
    return [each.session for each in found]


def far_apart() -> tuple[int, int]:
    """The highest and the lowest of the simulated voices."""
    return int(SIMULATION.mean.argmax()), int(SIMULATION.mean.argmin())


def test_one_person_is_one(enrolled, others):
    high, low = far_apart()
    for speaker in (high, low):
        assert unlike(enrolled((speaker, 0), (speaker, 0)), others) == []


@pytest.mark.slow
def test_two_people_are_told_apart(enrolled, others):
    high, low = far_apart()
    assert unlike(enrolled((high, 0), (low, 0)), others) == ["0", "1"]
    assert unlike(enrolled((high, 0), (low, 0), (high, 0), (high, 0)), others) == ["1"]


def test_too_little_speech_and_no_rank_model_tell_nothing(enrolled, others):
    high, low = far_apart()
    assert unlike(enrolled((high, 0), (low, 0), seconds=30.0), others) == []
    made = enrolled((high, 0), (low, 0))
    assert unlike(made, Population(others.speakers, others.offsets, others.features)) == []
    assert unlike_sessions(made.population, {}, others) == []


@pytest.mark.slow
def test_a_further_session_of_somebody_else(enrolled, others):
    """A session that is added is held against what was enrolled of the speaker before."""
    high, low = far_apart()
    before = others.joined(enrolled((high, 0)).population)
    for speaker, found in ((high, []), (low, ["0"])):
        more = enrolled((speaker, 1))
        after = before.extended(more.population)
        unlike = unlike_additions(before, after, more.sessions)
        assert [each.session for each in unlike] == found
        assert unlike_sessions(more.population, more.sessions, before) == []


def test_a_candidate_of_any_name_is_somebody_else(enrolled, others):
    high, low = far_apart()
    made = enrolled((high, 0), (low, 0))
    bits = [
        [each.bits for each in unlike_sessions(made.population, made.sessions, among)]
        for among in (renamed(others, "x"), renamed(others, "the speaker"))
    ]
    assert bits[0] == bits[1] != []


def renamed(population: Population, name: str) -> Population:
    """The same people, the last of them by another name."""
    speakers = [*population.speakers[:-1], Speaker(name)]
    return Population(speakers, population.offsets, population.features, population.rank_models)
