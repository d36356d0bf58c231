"""How high others' streams get."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor import Monitor
from monitor.corpus import find
from monitor.errors import UsageError
from monitor.population.population import Population
from monitor.training import calibrating as false_alarm_streams
from monitor.training import fitted
from monitor.training.calibrating import CalibrationSettings, calibrate, stream_of, with_maxima
from monitor.training.enrolling import enrol
from monitor.training.voices import collect

SPEAKERS, SECONDS = 11, 40.0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Their voices, and a population of them with rank models; one more voice than are enrolled."""
    folder = tmp_path_factory.mktemp("others") / "people"
    write_corpus(folder, Simulation(12, 5), SPEAKERS, 1, SECONDS)
    voices, specs, _ = collect(find(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted, "LOSSES", ("LL",))
        made = calibrate(
            voices,
            specs,
            CalibrationSettings(
                lengths=[1, 5], template_lengths=[15], replicates=20, trials=3, prior=None
            ),
        )
    population = enrol(find(folder), seconds=15.0).population.without("000010")
    return voices, population.calibrated(made)


def maxima(made, **options):
    """Of the one rank model of this population."""
    voices, population = made
    (rank_model,) = with_maxima(population, voices, **options).rank_models
    assert rank_model.maxima is not None
    return rank_model.maxima


@pytest.fixture(scope="module")
def found(made):
    return maxima(made, horizons=(10.0, 30.0, 60.0, 100.0))


def test_a_maximum_for_every_speaker_field_and_horizon(found, made):
    voices, population = made
    fields = ("closed_set_bits", "gain_bits", "sum_bits", "rank_bits", "evidence_bits")
    assert found.fields == fields
    assert found.speakers == tuple(voice.name for voice in voices)
    assert found.horizons.tolist() == [10.0, 30.0, 60.0, 100.0]
    assert found.seconds.tolist() == [SECONDS] * SPEAKERS
    assert found.template_seconds == population.scoring().seconds
    assert (np.diff(found.values[..., :3], axis=2) >= 0).all()
    assert np.isnan(found.values[..., 3]).all()  # 40 s are less than half of it


@pytest.mark.slow
def test_they_are_what_the_monitor_says_of_a_impostor(found, made):
    """Each of them is among the maxima under some other's template, the own one left out."""
    voices, population = made
    for place in (0, 3, SPEAKERS - 1):
        voice = voices[place]
        alone = population.without(voice.name) if voice.name in population.names else population
        assert len(alone) == SPEAKERS - 2 + (voice.name not in population.names)
        stream = stream_of(voice, ["f0"], 600.0)
        bits, gain = [], []
        for name in alone.names:
            readings = Monitor(alone, ["f0"], name, session="same").push(stream)
            ten = [reading for reading in readings if reading.seconds <= 10.0]
            bits.append(max(reading.closed_set_bits or 0.0 for reading in ten))
            gain.append(max(reading.gain_bits for reading in ten))
        mine = found.values[:2, place, 0].astype(float)
        assert np.abs(np.array(bits) - mine[0]).min() < 3e-3
        assert gain[0] == pytest.approx(mine[1], abs=3e-3)
        assert mine[1] >= gain[0]


def test_a_short_stream_is_heard_again(found, made):
    """Heard twice, what chance brought goes on: nowhere is the maximum smaller."""
    voices, population = made
    stream = stream_of(voices[0], ["f0"], 600.0)
    alone = population.without(voices[0].name)
    monitor = Monitor(alone, ["f0"], alone.names[0], session="same")
    first = monitor.push(stream)
    ticks = stream.tracks["f0"].ticks
    again = replace(stream.tracks["f0"], ticks=ticks + 4000)
    second = monitor.push(replace(stream, tracks={"f0": again}))
    gain = max(r.gain_bits for r in [*first, *second] if r.seconds <= 60.0)
    assert gain == pytest.approx(float(found.values[1, 0, 2]), abs=4e-3)


def test_who_trained_a_network_is_no_other(made):
    voices, _ = made
    trained = {"f0": {voice.name for voice in voices[:4]}, "voice": {voices[5].name}}
    assert maxima(made, horizons=(5.0,), trained=trained).speakers == tuple(
        voice.name for voice in voices[4:]
    )


@pytest.mark.slow
def test_deterministic_for_a_seed_and_whatever_the_processes(made):
    one, two, other = (
        maxima(made, horizons=(5.0,), seed=seed, jobs=jobs).values
        for seed, jobs in ((0, 1), (0, 2), (1, 1))
    )
    np.testing.assert_array_equal(one, two)
    assert (one[0] != other[0]).any()


def test_of_very_many_some_are_drawn(made, monkeypatch):
    monkeypatch.setattr(false_alarm_streams, "MOST_STREAMS", 4)
    told = []
    some = maxima(made, horizons=(5.0,), progress=lambda *each: told.append(each))
    assert len(some.speakers) == 4
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_they_are_kept_with_the_population(made, tmp_path):
    voices, population = made
    wanted = with_maxima(population, voices, horizons=(5.0,))
    wanted.save(tmp_path / "p.npz")
    assert maxima(made, horizons=(5.0,)).speakers == tuple(voice.name for voice in voices)
    for one, other in zip(
        wanted.rank_models, Population.load(tmp_path / "p.npz").rank_models, strict=True
    ):
        assert one.maxima is not None
        assert other.maxima is not None
        np.testing.assert_array_equal(one.maxima.values, other.maxima.values)


def test_everybody_else(made):
    _, population = made
    less = population.without("000003")
    assert less.names == tuple(name for name in population.names if name != "000003")
    for name in less.names:
        before, after = population.index(name), less.index(name)
        whole = slice(*population.offsets[before : before + 2])
        part = slice(*less.offsets[after : after + 2])
        np.testing.assert_array_equal(
            population.features["f0"].slices[whole], less.features["f0"].slices[part]
        )
    with pytest.raises(UsageError, match="nobody called"):
        population.without("eve")
