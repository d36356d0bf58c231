"""Calibrating in Python gives evidence, and thresholds whose false alarms are known."""

from __future__ import annotations

import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor import Monitor, Population, alerts, calibrate, corpus, enrol
from monitor.errors import UsageError
from monitor.training import Calibration, CalibrationSettings, collect

SPEAKERS = 21
SETTINGS = CalibrationSettings(lengths=(1, 5), template_lengths=(15,), replicates=20, trials=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Who is enrolled, and calibration of their voices with alarms and without."""
    folder = tmp_path_factory.mktemp("alarms") / "people"
    write_corpus(folder, Simulation(SPEAKERS, 5), SPEAKERS, 2, 40.0)
    found = corpus.find(folder)
    people = enrol(found, seconds=15.0).population
    voices, specs, _ = collect(found)
    with_alarms = calibrate(voices, specs, alarms=people, settings=SETTINGS)
    return people, with_alarms, calibrate(voices, specs, settings=SETTINGS)


def evidence_of(population: Population) -> float | None:
    monitor = Monitor(population, ["f0"], watch=population.names[0])
    (reading,) = monitor.push(Simulation(SPEAKERS, 5).frames(0, 2, 1.0))
    return reading.evidence_bits


@pytest.mark.slow
def test_what_was_learnt_travels_whole(made):
    people, learnt, _ = made
    assert isinstance(learnt, Calibration)
    assert evidence_of(people.calibrated(learnt)) is not None
    with pytest.warns(UserWarning, match=r"nothing is said of evidence.*use calibrated\("):
        without = people.with_rank_models(learnt.rank_models)
    assert evidence_of(without) is None


@pytest.mark.slow
def test_false_alarms_are_known_where_it_was_asked_for(made, tmp_path):
    people, learnt, plain = made
    people.calibrated(learnt).save(tmp_path / "us.npz")
    monitor = Monitor(Population.load(tmp_path / "us.npz"), ["f0"], watch=people.names[0])
    for field in ("bits", "evidence_bits"):
        quote = monitor.false_alarms(field, share=0.05, horizon_seconds=30)
        assert quote.speakers == SPEAKERS - 1
        assert alerts.Conformal(quote).bits == quote.bits
    silent = Monitor(people.calibrated(plain), ["f0"], watch=people.names[0])
    with pytest.raises(UsageError, match=r"learn it with.*calibrate\(\.\.\., alarms=population\)"):
        silent.false_alarms("bits")
    assert [rank_model.beta.tolist() for rank_model in learnt.rank_models] == [
        rank_model.beta.tolist() for rank_model in plain.rank_models
    ]
