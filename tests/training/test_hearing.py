"""A corpus heard by several processes is the corpus heard by one."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.corpus import find
from monitor.population.population import Population
from monitor.training import feature_extraction as hearing
from monitor.training.enrolling import enrol
from monitor.training.voices import collect


@pytest.fixture
def corpus(tmp_path, flac):
    """Three speakers; one has a file too many, one that breaks off, and one no speech at all."""
    for name, pitch in (("ann", 200.0), ("bob", 110.0)):
        for session in ("mon", "tue"):
            flac(tmp_path / name / session / "1.flac", 9.0, pitch)
    flac(tmp_path / "ann/mon/2.flac", 8.0, keep=0.05)
    flac(tmp_path / "ann/wed/3.flac", 8.0, keep=0.4)  # not needed, and not looked at
    flac(tmp_path / "cleo/mon/1.flac", 8.0, keep=0.01)
    return find(tmp_path)


def contents(population: Population):
    slices = {name: each.slices.tobytes() for name, each in population.features.items()}
    return population.speakers, population.offsets.tolist(), slices


@pytest.mark.slow
def test_templates_are_the_same_to_the_last_bit(corpus, monkeypatch):
    names = [r.path.name for r in corpus.recordings]
    seen: list[str] = []
    one = enrol(corpus, features=["f0"], seconds=10.0)
    monkeypatch.setattr(hearing, "_extract", None)  # this process hears nothing now
    two = enrol(
        corpus,
        features=["f0"],
        seconds=10.0,
        progress=lambda r: seen.append(r.path.name),
        jobs=2,
    )
    assert contents(one.population) == contents(two.population)
    assert (one.problems, one.sessions) == (two.problems, two.sessions)
    assert seen == names
    assert [problem for problem in one.problems if "3.flac" in problem] == []
    assert [problem for problem in one.problems if "2.flac" in problem]


@pytest.mark.slow
def test_voices_are_the_same_to_the_last_bit(corpus):
    (one, specs, problems), (two, *others) = (
        collect(corpus, features=["f0", "phones"], jobs=jobs) for jobs in (1, 2)
    )
    assert (specs, problems) == tuple(others)
    assert [voice.name for voice in one] == [voice.name for voice in two] == ["ann", "bob"]
    for a, b in zip(one, two, strict=True):
        assert len(a.sessions) == len(b.sessions)
        for mine, yours in zip(a.sessions, b.sessions, strict=True):
            for name, session in mine.items():
                np.testing.assert_array_equal(session.values, yours[name].values)
                np.testing.assert_array_equal(session.units, yours[name].units)
                assert session.length == yours[name].length
