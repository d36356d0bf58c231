from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor
from monitor.errors import UsageError
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.maths.scores import EmbeddingSum, Histogram
from monitor.stream.accumulator import FrameAccumulator
from monitor.types import Block, Frames, Track
from tests.stream.streams import Listed, hear, readings, told, two_features

few = settings(max_examples=20, deadline=None)
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


def cut(frames, places):
    edges = [0, *places, len(frames.speech)]
    for begin, end in pairwise(edges):
        tracks = {}
        for name, track in frames.tracks.items():
            own = (track.ticks > begin) & (track.ticks <= end)
            spans = None if track.spans is None else track.spans[own]
            tracks[name] = Track(track.ticks[own], track.values[own], spans)
        yield Frames(frames.speech[begin:end], tracks)


@few
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
    left = 400 - ticks[-1]
    assert together.waiting == alone.waiting == left


@few
@given(st.data())
def test_histograms_and_embeddings_look_ahead_as_they_learn(data):
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    ends = np.array(sorted(data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=9))))
    for sketch, values in (
        (Histogram(5), generator.integers(0, 5, 30).astype(np.uint8)),
        (EmbeddingSum(4), generator.normal(size=(30, 4)).astype(np.float32)),
    ):
        sketch.learn_many(values[:3])
        before = sketch.total.copy()
        totals, frames = sketch.after(values, ends)
        assert np.array_equal(sketch.total, before)
        for r, end in enumerate(ends):
            slow = type(sketch)(before.size)
            slow.learn_many(values[:3])
            slow.learn_many(values[:end])
            assert np.array_equal(totals[r], slow.total)
            assert frames[r] == slow.frames


@pytest.mark.parametrize("values", [np.array([5]), np.array([-1]), np.array([0.5])])
def test_what_is_no_bin_is_refused_before_it_is_learnt(values):
    accumulator = FrameAccumulator({"f0": FEATURES["f0"]})
    bad = Track(np.array([1]), values + 10 * (values > 4))
    with pytest.raises(UsageError, match="bins of f0 must"):
        accumulator.add(Frames(np.ones(5, bool), {"f0": bad}))
    assert accumulator.arrived == 0


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
@few
@given(st.data())
def test_any_cutting_of_two_features_gives_the_same_readings(data):
    frames = stream(data.draw(st.integers(0, 3)))
    step = data.draw(st.sampled_from([0.03, 0.25, 1.0]))
    watch = data.draw(st.sampled_from([None, "s2"]))
    places = sorted(data.draw(st.sets(st.integers(1, 399), max_size=12)))
    whole = hear([frames], population=two_features(), step_seconds=step, watch=watch)
    parts = hear(cut(frames, places), population=two_features(), step_seconds=step, watch=watch)
    assert parts == whole


@pytest.mark.slow
@few
@given(st.integers(1, 15), st.sampled_from([None, "s2"]))
def test_a_checkpoint_amid_readings_worked_out_together(stop, watch):
    def fresh():
        return Monitor(two_features(), watch=watch, step_seconds=0.25)

    expected = told(fresh().events(Listed([stream()])))
    first, monitor = [], fresh()
    for reading in monitor.stream(Listed([stream()])):
        first.append(reading)
        if len(first) == stop:
            break
    plain, arrays = monitor.state()
    resumed = fresh()
    resumed.restore(plain, {name: array.copy() for name, array in arrays.items()})
    assert told(first) + told(resumed.events(Listed(cut(stream(), [33, 160])))) == expected


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
        return Track(np.empty(0, int), np.empty(0, int))

    def flush(self):
        return Track(np.empty(0, int), np.empty(0, int))

    def skip_to(self, tick):
        pass

    def reset(self):
        self._heard = 0


def test_features_may_be_given_and_their_failure_is_not_swallowed():
    monitor = Monitor(two_features(), [Broken()])
    assert monitor.features == ("f0",)
    assert len(monitor.push(Block(np.zeros(8000), 8000))) == 0  # the last tick is still open
    with pytest.raises(RuntimeError, match="the model is broken"):
        monitor.push(Block(np.zeros(8000), 8000))


def test_a_feature_given_must_be_that_of_the_templates():
    wide = Broken()
    wide.spec = replace(wide.spec, size=11)
    with pytest.raises(UsageError, match="f0 comes as histogram of size 11, the population has"):
        Monitor(two_features(), [wide])
