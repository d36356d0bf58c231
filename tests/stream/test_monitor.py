"""When a monitor reads and what: for any cutting, after a stop, of all that may come."""

import copy
import math
import pickle
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor, MonitorSettings, Population
from monitor.errors import MonitorError, SourceError, StoreError, UsageError
from monitor.events.reading import Reading
from monitor.features import registry
from monitor.features.framing import Framer
from monitor.features.registry import FeatureSetup
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.population.cohort import FeatureTemplates
from monitor.population.rank_model import RankModels
from monitor.sources import AudioQueue
from monitor.types import Block, Frames, Gap, Track
from tests.contracts import KILOBYTE, growth
from tests.population.rank_models import population as enrolled
from tests.population.rank_models import some_rank_model
from tests.sounds import synthetic
from tests.stream.streams import (
    RATE,
    WATCHED,
    Listed,
    audio,
    cuts,
    frames,
    fresh,
    gaps,
    hear,
    rank_model,
    readings,
    reference,
    resumed,
    simulated,
    sounds,
    told,
    two_features,
)

SOUND = synthetic(2.0)
BROKEN = Gap("broken file", None, 0, "it broke")
some = settings(max_examples=25)


@pytest.mark.slow
@some
@given(data=st.data())
def test_any_cutting_of_audio_gives_the_same_readings(data):
    rate = data.draw(st.sampled_from([8000, 16000, 44100]))
    step = data.draw(st.sampled_from([0.13, 0.5, 1.0]))
    watch = data.draw(st.sampled_from([None, WATCHED]))
    samples = sounds(3.1, rate).copy()
    for at in data.draw(st.lists(st.integers(0, samples.size - 1), max_size=4)):
        samples[at] = data.draw(st.sampled_from([np.nan, np.inf]))
    whole = hear(audio(samples, rate=rate), step_seconds=step, watch=watch)
    parts = audio(samples, data.draw(cuts(samples.size)), rate)
    assert hear(parts, step_seconds=step, watch=watch) == whole
    assert whole[-1]["features"]["f0"]["usable"] > 1


@pytest.mark.parametrize("rate", [8000, 16000])
@pytest.mark.parametrize("size", [80, 400, 1000, 1600])
def test_no_frame_is_lost_between_blocks(rate, size):
    # YIN completes a frame before the clock completes its tick
    samples = sounds(2.0, rate)
    whole = readings(hear(audio(samples, rate=rate)))
    parts = readings(hear(audio(samples, range(size, samples.size, size), rate)))
    usable = [reading["features"]["f0"]["usable"] for reading in whole]
    assert [reading["features"]["f0"]["usable"] for reading in parts] == usable


def marked() -> Frames:
    """Frames with two losses."""
    made = simulated(8.0)
    losses = ((37, Gap("not a bin", 0.02)), (610, Gap("not finite", 0.01)))
    return Frames(made.speech, made.tracks, losses)


@pytest.mark.slow
@some
@given(data=st.data())
def test_any_cutting_of_frames_gives_the_same_readings(data):
    step = data.draw(st.sampled_from([0.07, 0.5, 1.0, 3.0]))
    watch = data.draw(st.sampled_from([None, WATCHED]))
    whole = hear([marked()], step_seconds=step, watch=watch)
    parts = hear(frames(marked(), data.draw(cuts(800))), step_seconds=step, watch=watch)
    assert parts == whole
    assert len(gaps(whole)) == 2


class Late:
    """A feature at another rate that keeps a frame for the end of the recording."""

    spec, follow = FeatureSpec("late", HISTOGRAM, 10, 0.3, 8000), None

    def __init__(self) -> None:
        self.reset()

    def process(self, samples):
        heard = self._framer.push(samples)
        ticks = 30 * (self._frames + 1 + np.arange(len(heard)))
        self._frames += len(heard)
        return Track(ticks, np.minimum(9, 40 * np.abs(heard).mean(axis=1)).astype(int))

    def flush(self):
        return Track(np.array([30 * self._frames]), np.array([9]))

    def skip_to(self, tick: int) -> None:
        pass

    def reset(self) -> None:
        self._framer, self._frames = Framer(2400, 2400), 0


@pytest.fixture
def late(monkeypatch) -> Population:
    monkeypatch.setitem(registry.FEATURES, "late", registry.FeatureEntry(lambda: Late))
    templates = two_features()
    slices = templates.features["f0"].slices
    return Population(
        templates.speakers,
        templates.offsets,
        {"late": FeatureTemplates(FeatureSpec("late", HISTOGRAM, 10, 0.3), slices)},
        RankModels([rank_model(("late",), ["histogram"])]),
    )


@pytest.mark.parametrize("rate", [8000, 16000])
def test_a_frame_that_only_the_end_completes_is_learnt(late, rate):
    samples = sounds(3.0, rate)
    for size in (80, 777, 3 * rate):
        items = audio(samples, range(size, samples.size, size), rate)
        items += audio(samples[: 6 * rate // 10], [], rate, recording=1)
        made = readings(hear(items, population=late, step_seconds=0.25))
        # ten frames and one at the end of the first recording, two and one of the second
        usable = [round(reading["features"]["late"]["usable"] / 0.3) for reading in made]
        assert usable[-1] == 14
        assert usable[11] in (10, 11)
        assert usable[12] == 11
        if size == 80:
            first = made
        assert made == first


@pytest.mark.parametrize("step", [0.01, 0.1, 0.25, 0.3, 1.0, 2.5, 60.0])
def test_readings_come_every_step_and_once_at_the_end(step):
    made = readings(hear([simulated(2.51)], step_seconds=step))
    ticks = round(100 * step)
    due = [*range(ticks, 252, ticks)]
    due += [251] if due[-1:] != [251] else []
    assert [reading["seconds"] for reading in made] == [tick / 100 for tick in due]
    speech = np.cumsum(simulated(2.51).speech)
    assert [reading["speech"] for reading in made] == [speech[tick - 1] / 100 for tick in due]


def test_the_step_does_not_change_a_reading():
    often = {r["seconds"]: r for r in readings(hear([simulated(3.0)], step_seconds=0.1))}
    for reading in readings(hear([simulated(3.0)], step_seconds=0.5)):
        same = often[reading["seconds"]]
        assert {**reading, "peak_bits": None} == {**same, "peak_bits": None}


@pytest.mark.parametrize("step", [0, -1, 0.005, 0.015, 1e-9, float("nan"), float("inf")])
def test_steps_that_make_no_sense(step):
    with pytest.raises(UsageError, match="positive multiple"):
        Monitor(reference(), step_seconds=step)


def test_reset_forgets_everything():
    monitor = Monitor(reference(), watch=WATCHED, step_seconds=0.5)
    expected = told(monitor.events(Listed(audio(sounds(1.3)))))
    monitor.reset()
    monitor.push(Block(sounds(1.7)[::-1], RATE))
    list(monitor.core.push(BROKEN))
    monitor.reset()
    assert told(monitor.events(Listed(audio(sounds(1.3))))) == expected


def bits_of(reading: dict[str, Any]) -> list[Any]:
    """Every figure of bits that changes with the stream."""
    fixed = {"ceiling", "plateau", "support_bits"}
    fixed |= {f"evidence_bits{end}" for end in ("", "_low", "_high")}  # not of every population
    found = [value for key, value in reading.items() if "bits" in key and key not in fixed]
    found += reading["guides"].values()
    for feature in reading["features"].values():
        found += [value for key, value in feature.items() if "bits" in key]
    return found


def test_nothing_heard_gives_no_reading_and_a_sample_is_a_tick():
    assert hear([]) == []
    assert hear([Frames(np.zeros(0, bool), {})]) == []
    assert hear([Block(np.zeros(0, np.float32), RATE)]) == []
    (reading,) = hear([Block(np.zeros(1, np.float32), RATE)])
    assert reading["seconds"] == 0.01


def test_pushed_or_left_in_the_middle_it_loses_nothing_of_a_stream():
    items = audio(sounds(2.6), [100, 9999, 20_000])
    pushed, monitor = [], Monitor(reference(), watch=WATCHED)
    for item in items:
        pushed += monitor.push(item)
    pushed += monitor.finish()
    assert monitor.finish() == []
    streamed = list(Monitor(reference(), watch=WATCHED).stream(Listed(items)))
    assert told(pushed) == told(streamed)
    assert [reading.seconds for reading in pushed] == [1.0, 2.0, 2.6]
    whole = simulated(10.0)
    left = Monitor(reference())
    for reading in left.stream(Listed(frames(whole, [700]))):
        if reading.seconds == 3.0:
            break  # in the middle of a block
    rest = told([*left.push(frames(whole, [700])[1]), *left.finish()])
    assert rest == readings(hear([whole]))[3:]


@pytest.mark.parametrize("watch", [None, WATCHED])
@pytest.mark.parametrize(
    "item",
    [
        Block(np.zeros(2 * RATE, np.float32), RATE),
        Block(np.full(2 * RATE, np.nan, np.float32), RATE),
        Frames(np.ones(200, bool), {"f0": Track(np.zeros(0, int), np.zeros(0, int))}),
        Frames(np.ones(200, bool), {}),
    ],
    ids=["silence", "not finite", "unvoiced", "no track"],
)
def test_without_a_voiced_frame_every_figure_is_exactly_zero(watch, item):
    made = readings(hear([item], watch=watch, step_seconds=0.5))
    assert len(made) == 4
    for reading in made:
        figures = bits_of(reading)
        assert len(figures) == 28
        # rank and local bits are of somebody
        assert figures.count(None) == (0 if watch else 6)
        assert {str(value) for value in figures} - {"None"} == {"0.0"}  # and not -0.0
        assert reading["features"]["f0"]["rank"] is None
        assert reading["features"]["f0"]["usable"] == 0
        assert len(set(reading["posterior"])) == 1
        assert not reading["beyond_grid"]
        assert reading["ceiling"] == np.log2(50)
    if watch and isinstance(item, Frames):
        *_, last = readings(hear([item, simulated(4.0)], watch=watch))
        assert last["bits"] != 0.0
        assert last["expected_bits"] > 0
        assert last["guides"]["linear"] > 0
        assert 1 <= last["features"]["f0"]["rank"] <= 50


def figure(reading, name):
    """A figure with its limits."""
    return tuple(getattr(reading, name + end) for end in ("", "_low", "_high"))


def test_the_headline_is_the_evidence_of_the_watched_else_the_closed_set_figure():
    bare = RankModels(replace(rank_model, evidence=None) for rank_model in reference().rank_models)
    without = Monitor(reference().with_rank_models(bare), watch=WATCHED)
    assert without.headline == "closed-set"
    made = zip(
        Monitor(reference(), watch=WATCHED).stream(Listed([simulated()])),
        Monitor(reference()).stream(Listed([simulated()])),
        without.stream(Listed([simulated()])),
        strict=True,
    )
    differ = 0
    for one, other, third in made:
        assert (one.headline, other.headline) == ("evidence", "closed-set")
        assert figure(one, "bits") == figure(one, "evidence_bits")
        assert figure(other, "bits") == figure(other, "closed_set_bits")
        assert figure(other, "bits") == figure(other, "gain_bits")
        assert (third.headline, third.evidence_bits, other.evidence_bits) == (
            *("closed-set", None, None),
        )
        assert figure(third, "bits") == figure(third, "closed_set_bits")
        assert figure(one, "gain_bits") == figure(other, "gain_bits")
        assert figure(one, "expected_bits") == figure(other, "expected_bits")
        assert (one.assumes_enrolled, other.assumes_enrolled) == (False, True)
        assert np.array_equal(one.posterior, other.posterior)
        place = one.names.index(WATCHED)
        assert one.closed_set_bits == pytest.approx(np.log2(50 * one.posterior[place]))
        assert other.gain_bits == pytest.approx(
            np.log2(50) + (other.posterior * np.log2(other.posterior)).sum()
        )
        differ += one.bits != other.bits
    assert differ


@pytest.mark.slow
@pytest.mark.parametrize("watch", [None, WATCHED, "163"])
def test_the_peak_is_a_high_water_mark(watch):
    made = readings(hear([simulated(30.0)], watch=watch))
    bits = [reading["bits"] for reading in made]
    assert [r["peak_bits"] for r in made] == [max(0.0, *bits[: i + 1]) for i in range(len(bits))]
    assert any(later < earlier for earlier, later in pairwise(bits))


def test_sum_bits_adds_the_features_and_one_without_frames_adds_nothing():
    track = Track(np.arange(1, 201), np.arange(200) % 4)
    other = Track(np.array([90, 180]), np.array([[1.0, 0.0, 0.2], [0.9, 0.1, 0.3]]))
    alone = Frames(np.ones(200, bool), {"f0": track})
    both = Frames(np.ones(200, bool), {"f0": track, "timbre": other})
    for watch, key in ((None, "gain_bits"), ("s2", "local_bits")):
        options = {"population": two_features(), "watch": watch}
        for reading in readings(hear([both], **options)):
            parts = [feature[key] for feature in reading["features"].values()]
            assert reading["sum_bits"] == sum(parts) != reading["bits"]
            assert 0 not in parts
        assert reading["features"]["timbre"]["usable"] == 1.0
        (_, single) = readings(hear([alone], **options))
        assert single["features"]["timbre"][key] == 0.0
        assert single["sum_bits"] == single["features"]["f0"][key]
    one = Monitor(two_features(), ["timbre"])
    assert one.push(both)[-1].features.keys() == {"timbre"}


@pytest.mark.slow
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
@pytest.mark.parametrize("after", [0.0, 0.7, 1.505, 2.0, 3.2])
def test_a_loss_stands_between_the_readings_it_fell_between(rate, after):
    samples, place = sounds(3.2, rate), round(after * rate)
    made = []
    for size in (rate // 100, 1234, len(samples)):
        before = audio(samples[:place], range(size, place, size), rate)
        behind = audio(samples[place:], range(size, len(samples) - place, size), rate)
        made.append(hear([*before, BROKEN, *behind]))
    assert made[0] == made[1] == made[2]
    order = [(record["type"], record["seconds"]) for record in made[0]]
    after = math.ceil(place * 100 / rate) / 100  # a tick that has begun counts
    assert ("gap", after) in order
    at = order.index(("gap", after))
    assert all(seconds <= after for _, seconds in order[:at])
    assert all(seconds >= after for _, seconds in order[at + 1 :])
    assert len(order) == 5


def test_what_is_no_number_is_told_at_the_end_of_its_second():
    samples = sounds(3.4).copy()
    samples[[5, 6, RATE + 9, 3 * RATE + 1]] = np.nan
    for size in (160, 5000, len(samples)):
        made = hear(audio(samples, range(size, len(samples), size)))
        order = [(record["type"], record["seconds"]) for record in made]
        assert [seconds for kind, seconds in order if kind == "gap"] == [1.0, 2.0, 3.4]
        assert order == sorted(order, key=lambda each: (each[1], each[0]))
        assert len(order) == 7
        assert [g["lost_seconds"] for g in gaps(made)] == [2 / RATE, 1 / RATE, 1 / RATE]


def test_recordings_follow_one_another_and_each_is_heard_afresh():
    sound = sounds(1.5, 8000)[::-1]  # another than the first
    one, other = audio(sounds(2.0), [777]), audio(sound, [99], 8000)
    both = Monitor(reference())
    made = told(both.events(Listed([*one, *audio(sound, [99], 8000, recording=1)])))
    assert [record["seconds"] for record in made] == [1.0, 2.0, 3.0, 3.5]
    totals, speech = [], []
    for items in (one, other):
        alone = Monitor(reference())
        *_, last = alone.stream(Listed(items))
        totals.append(alone.state()[1]["sketch/f0"])
        speech.append(last.speech)
    assert np.array_equal(both.state()[1]["sketch/f0"], totals[0] + totals[1])
    assert made[-1]["speech"] == pytest.approx(sum(speech))


def test_a_channel_is_heard_alone():
    left = sounds(2.0)
    stereo = np.column_stack((left, np.zeros_like(left)))
    mono = hear([Block(left, RATE)])
    assert hear([Block(stereo, RATE)], channel=1) == mono
    assert hear([Block(stereo, RATE)], channel=2)[-1]["bits"] == 0.0
    assert hear([Block(np.column_stack((left, left)), RATE)]) == mono
    with pytest.raises(UsageError, match="counted from 1"):
        MonitorSettings(channel=0)
    with pytest.raises(SourceError, match="channel"):
        hear([Block(stereo, RATE)], channel=3)


def test_a_stream_is_of_one_kind():
    monitor = Monitor(reference())
    for first, then in ((simulated(1.0), Block(sounds(1.0), RATE)),
                        (Block(sounds(1.0), RATE), simulated(1.0))):  # fmt: skip
        monitor.reset()
        monitor.push(first)
        with pytest.raises(UsageError, match="either audio or"):
            monitor.push(then)


def after_readings(items: list[Any], again: list[Any], stop: int, **options: Any) -> list[Any]:
    """Hear until reading number ``stop``, then go on with a new monitor from the first sample."""
    population = options.pop("population", None) or reference()
    left = iter(range(stop))
    next(left)

    def stops(event: Any) -> bool:
        return isinstance(event, Reading) and next(left, None) is None

    return resumed(lambda: fresh(population, **options), items, stops, again)


@pytest.mark.slow
@some
@given(data=st.data())
def test_stop_and_resume_equals_never_stopped_on_audio(data):
    rate = data.draw(st.sampled_from([8000, 16000, 44100]))
    step = data.draw(st.sampled_from([0.21, 0.5]))
    samples = sounds(2.1, rate).copy()
    samples[[rate // 3, rate // 2, 3 * rate // 2]] = np.nan

    def items() -> list[Any]:
        made: list[Any] = audio(samples, data.draw(cuts(samples.size)), rate)
        made.append(BROKEN)
        made += audio(samples[: rate + 55], data.draw(cuts(rate + 55)), rate, recording=1)
        return [*made, BROKEN]

    options = {"step_seconds": step, "watch": data.draw(st.sampled_from([None, WATCHED]))}
    expected = hear(items(), **options)
    assert len(gaps(expected)) == 5
    stop = data.draw(st.integers(1, len(readings(expected))))
    assert after_readings(items(), items(), stop, **options) == expected


@pytest.mark.slow
@some
@given(data=st.data())
def test_stop_and_resume_equals_never_stopped_on_frames(data):
    def items() -> list[Any]:
        first, *rest = frames(marked(), [300])
        return [*frames(first, data.draw(cuts(300))), BROKEN, *rest]

    step = data.draw(st.sampled_from([0.37, 1.0, 1.5]))
    expected = hear(items(), step_seconds=step, watch=WATCHED)
    stop = data.draw(st.integers(1, len(readings(expected))))
    assert after_readings(items(), items(), stop, step_seconds=step, watch=WATCHED) == expected


@pytest.mark.parametrize("rate", [8000, 16000])
def test_resume_with_frames_that_only_the_end_completes(late, rate):
    items = audio(sounds(1.5, rate), [4000], rate) + audio(sounds(1.0, rate), [], rate, 1)
    expected = hear(items, population=late, step_seconds=0.25)
    for stop in range(1, 11):
        assert after_readings(items, items, stop, population=late, step_seconds=0.25) == expected


def test_a_state_of_something_else_is_refused():
    plain, arrays = Monitor(reference()).state()
    for other, state in (
        (Monitor(two_features()), (plain, arrays)),
        (Monitor(two_features(), ["f0"]), (plain, arrays)),
        (Monitor(reference()), (plain, {})),
        (Monitor(reference()), Monitor(two_features()).state()),
    ):
        with pytest.raises(StoreError, match="does not fit"):
            other.restore(*state)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "steps", "most"),
    # a block is 160 kB; landmarks of the last minutes are remembered, 2 kB a second at most of the
    # 40 s of audio and the 60 s of losses, and frames of the last seconds, which may turn out to
    # repeat
    [("frames", 40, 32), ("audio", 8, 20 + 40 * 2), ("losses", 60, 48 + 60 * 2)],
)
def test_memory_does_not_grow(kind, steps, most):
    monitor = Monitor(reference(), watch=WATCHED, step_seconds=2.5)
    samples = sounds(0.5 if kind == "losses" else 2.5).copy()
    if kind == "losses":
        samples[7] = np.nan
    item = simulated(5.0) if kind == "frames" else Block(samples, RATE)

    def step(_: int) -> None:
        monitor.push(item)
        if kind == "losses":
            list(monitor.core.push(BROKEN))

    assert growth(steps, step) < most * KILOBYTE


def mono(samples, rate=RATE, recording=0):
    return Block(samples, rate, recording)


BAD_BLOCKS = {
    "no rate": mono(SOUND, 0),
    "negative rate": mono(SOUND, -1),
    "half a rate": mono(SOUND, 16000.5),
    "no number": mono(SOUND, float("nan")),
    "absurd rate": mono(SOUND, 10**9),
    "three axes": mono(SOUND.reshape(10, 40, -1)),
    "no channel": mono(SOUND[:, None][:, :0]),
    "many channels": mono(np.zeros((10, 1024))),
    "words": mono(np.array(["a"])),
    "complex": mono(SOUND + 1j),
    "integers": mono((SOUND * 30000).astype(np.int16)),
    "nothing": mono(None),
    "a number": mono(np.float64(3)),
    "another recording": mono(None, RATE, 1),
    "frames": Frames(np.ones(10, bool), {}),
}


def two_voiced(ticks=(5, 50), values=(3, 4), spans=None, speech=None):
    track = Track(np.array(ticks), np.array(values), spans)
    return Frames(np.ones(100, bool) if speech is None else speech, {"f0": track})


BAD_FRAMES = {
    "a bin too far": two_voiced(values=(3, 104)),
    "a bin below": two_voiced(values=(-1, 3)),
    "half a bin": two_voiced(values=(0.5, 3)),
    "embeddings": two_voiced(values=np.zeros((2, 4))),
    "too few ticks": two_voiced(ticks=(5,)),
    "ticks backwards": two_voiced(ticks=(50, 5)),
    "half a tick": two_voiced(ticks=(0.5, 5)),
    "spans of one": two_voiced(spans=np.zeros((2, 1), int)),
    "speech of numbers": two_voiced(speech=np.ones(100)),
    "speech in two axes": two_voiced(speech=np.ones((10, 10), bool)),
    "audio": mono(SOUND),
}


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        *((mono(SOUND), bad) for bad in BAD_BLOCKS.values()),
        *((two_voiced(), bad) for bad in BAD_FRAMES.values()),
    ],
    ids=[*BAD_BLOCKS, *BAD_FRAMES],
)
def test_a_bad_block_changes_nothing(good, bad):
    whole = Monitor(reference())
    expected = told([*whole.push(good), *whole.push(good), *whole.finish()])
    monitor = Monitor(reference())
    made = monitor.push(good)
    with pytest.raises(MonitorError) as caught:
        monitor.push(bad)
    assert "\n" not in str(caught.value)
    made += [*monitor.push(good), *monitor.finish()]
    assert told(made) == expected


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_monitor_says_that_it_cannot_be_copied_and_what_to_do(make):
    monitor = Monitor(reference())
    monitor.push(mono(SOUND))
    with pytest.raises(UsageError, match=r"cannot be copied or pickled.*state\(\)"):
        make(monitor)
    assert monitor.push(mono(SOUND))


@pytest.mark.parametrize("most", [1, 5, 50, 80])
def test_readings_name_as_many_speakers_as_asked(most):
    monitor = fresh(reference(), top=most)
    last = monitor.push(simulated())[-1]
    posterior = np.sort(last.posterior)[::-1]
    assert len(last.top) == min(most, 50)
    assert [p for _, p in last.top] == posterior[:most].tolist()
    with pytest.raises(UsageError, match="top=0 must be 1 or more"):
        MonitorSettings(top=0)


def test_what_is_heard_where_nobody_chose(monkeypatch):
    """Of voice and a network of the user's the latter, where it is there and has a rank model."""
    there = ["f0", "voice", "speaker_ab"]
    monkeypatch.setattr(FeatureSetup, "names", lambda _: there)
    names = ("f0", "voice", "speaker_ab")
    sets = [("f0",), ("voice",), ("speaker_ab",), ("f0", "voice"), ("f0", "speaker_ab"), names]

    def chosen(*sets: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        rank_models = [some_rank_model(each) for each in sets]
        monitor = Monitor(enrolled(features=names, rank_models=rank_models))
        return monitor.features, monitor.skipped_features

    assert chosen(*sets) == (("f0", "speaker_ab"), ())
    assert chosen(*sets[:4]) == (("f0", "voice"), ("speaker_ab",))
    assert chosen(*sets[:3], names) == (names, ())  # of more features only each and all
    there.remove("speaker_ab")
    assert chosen(*sets) == (("f0", "voice"), ("speaker_ab",))


def test_readings_of_a_queue_have_their_delay_and_those_of_an_array_none():
    queue = AudioQueue(RATE)
    queue.put(sounds(2.0))
    queue.stop()
    lags = [reading.lag for reading in Monitor(reference()).stream(queue)]
    assert len(lags) == 2
    assert all(lag is not None and 0 <= lag < 60 for lag in lags)
    assert [reading.lag for reading in Monitor(reference()).stream(sounds(1.0), rate=RATE)] == [
        None
    ]
