"""How high others' streams get, and the thresholds that follow."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor import Monitor, Population, alerts, calibrate, corpus, enrol
from monitor.errors import UsageError
from monitor.sources.frames import FramesFile
from monitor.training import Calibration, CalibrationSettings, collect, fitted
from monitor.training.stream_maxima import stream_of, with_maxima

SPEAKERS, SECONDS = 11, 40.0
SETTINGS = CalibrationSettings(
    lengths=(1, 5), template_lengths=(15,), replicates=20, trials=3, prior=None
)


def people_in(folder, simulation, *which):
    write_corpus(folder, simulation, *which)
    return corpus.find(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Their voices, and a population of them with rank models; one more voice than are enrolled."""
    people = people_in(
        tmp_path_factory.mktemp("others") / "people", Simulation(12, 5), SPEAKERS, 1, SECONDS
    )
    voices, specs, _ = collect(people)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted, "LOSSES", ("LL",))
        learnt = calibrate(voices, specs, settings=SETTINGS)
    population = enrol(people, seconds=15.0).population.without("000010")
    return voices, population.calibrated(learnt)


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
    # who trained a network is no other
    trained = {"f0": {voice.name for voice in voices[:4]}, "voice": {voices[5].name}}
    others = maxima(made, horizons=(5.0,), trained=trained)
    assert others.speakers == found.speakers[4:]


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
    again = replace(stream.tracks["f0"], ticks=stream.tracks["f0"].ticks + 4000)
    second = monitor.push(replace(stream, tracks={"f0": again}))
    gain = max(r.gain_bits for r in [*first, *second] if r.seconds <= 60.0)
    assert gain == pytest.approx(float(found.values[1, 0, 2]), abs=4e-3)


@pytest.mark.slow
def test_what_calibrating_in_python_gives_travels_whole(tmp_path):
    """Evidence, and thresholds whose false alarms are known where it was asked for."""
    simulation, speakers = Simulation(21, 5), 21
    found = people_in(tmp_path / "people", simulation, speakers, 2, 40.0)
    people = enrol(found, seconds=15.0).population
    voices, specs, _ = collect(found)
    settings = replace(SETTINGS, prior=CalibrationSettings().prior)
    learnt = calibrate(voices, specs, alarms=people, settings=settings)
    plain = calibrate(voices, specs, settings=settings)
    assert isinstance(learnt, Calibration)
    with pytest.warns(UserWarning, match=r"calibrated\(calibration\)"):
        without = people.with_rank_models(learnt.rank_models)
    people.calibrated(learnt).save(tmp_path / "us.npz")
    kept = Population.load(tmp_path / "us.npz")
    monitors = [Monitor(each, ["f0"], watch=people.names[0]) for each in (kept, without)]
    frames = simulation.frames(0, 2, 1.0)
    assert [each.push(frames)[0].evidence_bits is None for each in monitors] == [False, True]
    for field in ("bits", "evidence_bits"):
        quote = monitors[0].false_alarms(field, rate=0.05, horizon_seconds=30)
        assert quote.speakers == speakers - 1
        assert alerts.Conformal(quote).bits == quote.bits
    silent = Monitor(people.calibrated(plain), ["f0"], watch=people.names[0])
    with pytest.raises(UsageError, match=r"use .*calibrate\(\.\.\., alarms=population\)"):
        silent.false_alarms("bits")
    for one, other in zip(learnt.rank_models, plain.rank_models, strict=True):
        np.testing.assert_array_equal(one.beta, other.beta)


def test_a_stream_is_what_was_heard_pauses_included(tmp_path):
    found = people_in(tmp_path / "people", Simulation(3, 1), 1, 1, 20.0)
    (voice,), _, _ = collect(found)
    stream = stream_of(voice, ["f0"], 600.0)
    runs = list(FramesFile(found.recordings[0].path))
    np.testing.assert_array_equal(stream.speech, np.concatenate([run.speech for run in runs]))
    ticks = np.concatenate([run.tracks["f0"].ticks for run in runs])
    values = np.concatenate([run.tracks["f0"].values for run in runs])
    track = stream.tracks["f0"]
    np.testing.assert_array_equal(track.values, values[: track.values.size])
    assert values.size - track.values.size < 20  # what did not fill a tenth of a second
    spoken = np.cumsum(stream.speech)
    waited = spoken[track.ticks - 1] - spoken[ticks[: track.ticks.size] - 1]
    assert waited.min() >= 0
    assert waited.max() <= 10
