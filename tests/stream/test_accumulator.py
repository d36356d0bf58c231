"""Frames count the same however they come; an embedding speaks from its first second on."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor
from monitor.errors import UsageError
from monitor.features.embeddings import RATE
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.sources.frames import read_frames, write_frames
from monitor.stream.accumulator import FrameAccumulator
from monitor.types import Block, Frames, Track
from tests.sounds import synthetic
from tests.stream.streams import (
    Listed,
    frames,
    hear,
    readings,
    resumed,
    told,
    two_features,
    with_evidence,
)

some = settings(max_examples=20)
FEATURES = {name: two_features().specs[name] for name in ("f0", "timbre")}


def stream(seed=0, ticks=400, spans=True):
    """Pitch now and then, an embedding every 0.9 s that was complete 0.2 s late; some broken."""
    generator = np.random.default_rng(seed)
    voiced = np.flatnonzero(generator.random(ticks) < 0.4) + 1
    begins = np.arange(0, ticks - 110, 90)
    vectors = generator.normal(size=(begins.size, 3))
    vectors[1::3] = 0
    vectors[2::5, 1] = np.nan
    tracks = {
        "f0": Track(voiced, generator.integers(0, 10, voiced.size)),
        "timbre": Track(
            begins + 110, vectors, np.stack([begins, begins + 70], axis=1) if spans else None
        ),
    }
    return Frames(generator.random(ticks) < 0.7, tracks)


@some
@given(st.data())
def test_looking_ahead_sees_what_learning_finds(data):
    frames = stream(data.draw(st.integers(0, 9)))
    ticks = sorted(data.draw(st.sets(st.integers(1, 400), min_size=1, max_size=20)))
    together, alone = FrameAccumulator(FEATURES), FrameAccumulator(FEATURES)
    together.add(frames)
    alone.add(frames)
    ahead = together.moments(ticks)
    assert together.tick == 0
    assert not together.sketches["f0"].total.any()
    for r, tick in enumerate(ticks):
        together.learn(ahead, r)
        single = alone.moments([tick])
        alone.learn(single, 0)
        assert single.speech[0] == ahead.speech[r] == frames.speech[:tick].sum()
        for name in FEATURES:
            one, other = together.sketches[name], alone.sketches[name]
            assert np.array_equal(one.total, other.total)
            assert one.frames == other.frames
            assert ahead.totals[name].usable_seconds[r] == single.totals[name].usable_seconds[0]
    assert together.state()[0] == alone.state()[0]
    assert together.waiting == alone.waiting == 400 - ticks[-1]


def test_usable_seconds_come_from_spans_where_there_are_any():
    monitor = Monitor(two_features(), step_seconds=0.5)
    made = [r.features["timbre"].usable for r in monitor.push(stream())]
    # complete at 1.1, 2.0 (no direction), 2.9 (no number), 3.8: each of 0.7 s
    assert made == [0, 0, 0.7, 0.7, 0.7, 0.7, 0.7, 1.4]
    without = Monitor(two_features(), step_seconds=0.5).push(stream(spans=False))
    assert [r.features["timbre"].usable for r in without] == [
        frames * 0.5 for frames in (0, 0, 1, 1, 1, 1, 1, 2)
    ]


@pytest.mark.slow
@some
@given(st.data())
def test_any_cutting_of_two_features_gives_the_same_readings(data):
    whole = stream(data.draw(st.integers(0, 3)))
    options = {
        "population": with_evidence(),
        "step_seconds": data.draw(st.sampled_from([0.03, 0.25, 1.0])),
        "watch": data.draw(st.sampled_from([None, "s2"])),
    }
    places = sorted(data.draw(st.sets(st.integers(1, 399), max_size=12)))
    made = hear([whole], **options)
    assert hear(frames(whole, places), **options) == made
    assert made[-1]["among"] is not None


def test_a_feature_that_stays_silent_leaves_the_other_alone():
    voice = stream(ticks=3000)
    alone = Frames(voice.speech, {"f0": voice.tracks["f0"]})
    made = readings(hear([alone], population=two_features(), watch="s1"))
    only = readings(hear([alone], population=two_features(), watch="s1", features=["f0"]))
    assert len(made) == 30
    for both, one in zip(made, only, strict=True):
        assert both["features"]["f0"] == one["features"]["f0"]
        assert both["features"]["timbre"]["usable"] == 0
        assert both["features"]["timbre"]["local_bits"] == 0.0
        assert both["bits"] != 0.0


def test_a_frame_that_is_late_is_learnt_at_the_next_tick():
    monitor = Monitor(two_features(), ["timbre"], step_seconds=0.1)
    late = Track(np.array([7]), np.array([[1.0, 0.0, 0.0]]), np.array([[2, 7]]))
    nothing = Frames(np.ones(25, bool), {})
    first = monitor.push(nothing)
    second = monitor.push(Frames(np.ones(25, bool), {"timbre": late}))
    made = [reading.features["timbre"].usable for reading in first + second]
    assert made == [0, 0, 0.05, 0.05, 0.05]
    assert monitor.state()[0]["usable"] == {"timbre": 5}


class Broken:
    """A feature that fails after a second."""

    spec, follow = FeatureSpec("f0", HISTOGRAM, 10, 0.01, 8000), None

    def __init__(self):
        self.reset()

    def process(self, samples):
        self._heard += samples.size
        if self._heard > 8000:
            raise RuntimeError("the model is broken")
        return self.flush()

    def flush(self):
        return Track(np.empty(0, int), np.empty(0, int))

    def skip_to(self, tick): ...

    def reset(self):
        self._heard = 0


def test_features_may_be_given_and_their_failure_is_not_swallowed():
    monitor = Monitor(two_features(), [Broken()])
    assert monitor.features == ("f0",)
    assert len(monitor.push(Block(np.zeros(8000), 8000))) == 0  # it waits for a syllable
    with pytest.raises(RuntimeError, match="the model is broken"):
        monitor.push(Block(np.zeros(20_000), 8000))
    wide = Broken()
    wide.spec = replace(wide.spec, size=11)
    with pytest.raises(UsageError, match=r"f0 .*histogram of size 11"):
        Monitor(two_features(), [wide])


HEARD = ("f0", "voice")


@pytest.mark.parametrize("watch", [None, "s2"])
@pytest.mark.parametrize("stop", [1, 6, 7, 15])
def test_a_stop_amid_readings_worked_out_together(stop, watch):
    def fresh():
        return Monitor(with_evidence(), watch=watch, step_seconds=0.25)

    expected = told(fresh().events(Listed([stream()])))
    assert resumed(fresh, [stream()], stop, frames(stream(), [33, 160])) == expected


@pytest.fixture(scope="module")
def spoken() -> Frames:
    extractor = Extractor(make(HEARD))
    return extractor.process(Block(synthetic(10.0, 140.0), RATE))


def fresh(population: Population | None = None) -> Monitor:
    there = population or Population.reference()
    return Monitor(there, HEARD, there.names[0], step_seconds=0.5)


def without(frames: Frames) -> Frames:
    tracks = {name: replace(each, early=None) for name, each in frames.tracks.items()}
    return replace(frames, tracks=tracks)


def records(monitor: Monitor, *parts: Frames) -> list[dict[str, Any]]:
    return [dict(reading.record()) for part in parts for reading in monitor.push(part)]


def test_it_speaks_early_and_nothing_moves_once_two_windows_are_whole(spoken):
    first, second = spoken.tracks["voice"].ticks[:2] / 100
    now, before = records(fresh(), spoken), records(fresh(), without(spoken))
    told = [each["features"]["voice"]["usable"] for each in now]
    assert told[0] == 0.0
    assert {1.0, 2.0, 3.0, 4.0, 5.0, 6.0} <= set(told)
    for one, other in zip(now, before, strict=True):
        assert (other["features"]["voice"]["usable"] == 0.0) == (one["seconds"] < first)
        if one["seconds"] >= second:  # but for the largest figure so far
            assert {**one, "peak_bits": 0} == {**other, "peak_bits": 0}
    early = [r for r in now if r["features"]["voice"]["usable"] in (1.0, 2.0, 4.0, 5.0)]
    assert all(each["evidence_bits"] is not None for each in early)


def test_early_frames_are_the_same_for_any_cutting_and_after_a_stop(spoken):
    whole = told(fresh().events(Listed([spoken])))
    for most in (37, 100):
        assert told(fresh().events(Listed(frames(spoken, range(most, 1000, most))))) == whole
    parts = frames(spoken, range(10, 1000, 10))
    for second in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
        stops = lambda event, last=second: event.seconds == last  # noqa: E731
        assert resumed(fresh, parts, stops, [spoken]) == whole


def test_a_state_in_the_middle_of_a_block_has_none_of_a_whole_window(spoken):
    heard = FrameAccumulator({each.spec.name: each.spec for each in make(HEARD)})
    heard.add(spoken)
    whole = int(spoken.tracks["voice"].ticks[0])
    for tick, stands in ((whole - 1, True), (whole, False)):
        heard.learn(heard.moments([tick]), 0)
        assert ("early/voice" in heard.state()[1]) == stands


def test_what_began_afresh_has_no_early_frames(spoken):
    stream, (first, then, *_) = fresh(), frames(spoken, range(150, 1000, 150))
    records(stream, first)
    stream._stream.begin_afresh()
    assert records(stream, then)[-1]["features"]["voice"]["usable"] == 0.0


def test_a_rank_model_that_knows_none_hears_none(spoken):
    there, later = Population.reference(), []
    for each in there.rank_models:
        if each.features == ("voice",):  # as if it had been learnt from three seconds on
            assert each.evidence is not None
            evidence = replace(each.evidence, lengths=3 * each.evidence.lengths)
            rows = tuple({**row, "T": 3 * row["T"]} for row in each.rows)
            each = replace(each, lengths=3 * each.lengths, rows=rows, evidence=evidence)
        later.append(each)
    old = there.with_rank_models(RankModels(later))
    first = int(spoken.tracks["voice"].ticks[0]) - 1
    (only, _) = frames(spoken, [first])
    assert only.tracks["voice"].early is not None
    assert records(fresh(old), only) == records(fresh(old), without(only))
    assert records(fresh(), only) != records(fresh(), without(only))


def test_they_survive_a_file_of_frames(spoken, tmp_path):
    path = tmp_path / "a.npz"
    specs = {each.spec.name: each.spec for each in make(HEARD)}
    write_frames(
        path,
        spoken.speech,
        spoken.tracks,
        {name: spec.size for name, spec in specs.items()},
        {name: spec.frame_seconds for name, spec in specs.items()},
        networks={name: spec.network for name, spec in specs.items()},
    )
    early, own = read_frames(path).tracks["voice"].early, spoken.tracks["voice"].early
    assert early is not None
    assert own is not None
    assert early.seconds.tolist() == own.seconds.tolist() == [1, 2, 1, 2]
    assert np.array_equal(early.values, own.values)
    assert np.array_equal(early.ticks, own.ticks)
