"""The contracts of docs/architecture.md, over every implementation listed in contracts.py."""

import copy
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import monitor.sources
from monitor import Monitor, Population
from monitor.alerts import Threshold
from monitor.events.declaration import Event
from monitor.events.reading import Reading
from monitor.events.run import GapEvent
from monitor.features.extractor import Extractor
from monitor.features.registry import FEATURES as REGISTERED
from monitor.kinds import KINDS
from monitor.protocols import Feature, Sink, Sketch, Source
from monitor.stream.records import RunTotals, placed, start_event
from monitor.types import Block, Frames, Gap, Track, Tracks, Words
from tests.contracts import (
    FEATURES,
    KILOBYTE,
    LONG_SECONDS,
    SECONDS,
    SINKS,
    SKETCHES,
    SOURCES,
    growth,
    heard,
    listened,
    pieces,
)
from tests.records import as_records

COMPUTED = list(FEATURES)
AUDIBLE = [name for name in FEATURES if name != "style"]


def each(names: Iterable[str]) -> pytest.MarkDecorator:
    """A test for each of these features."""
    return pytest.mark.parametrize("name", list(names))


few, fewer = settings(max_examples=25), settings(max_examples=12)


def same(left: Any, right: Any, tolerance: float) -> bool:
    if tolerance:
        return bool(np.allclose(left, right, rtol=0, atol=tolerance))
    return np.array_equal(left, right)


# ---------------------------------------------------------------------------------------- features


def rate_of(feature: Feature) -> int:
    rate = feature.spec.rate
    assert rate is not None
    return rate


@cache
def sound(name: str) -> Any:
    return FEATURES[name].sound()


@cache
def whole(name: str) -> Track:
    """What a fresh feature makes of it in one piece."""
    return heard(FEATURES[name].make(), [sound(name)])


def length(sound: Any) -> int:
    """Samples, or words."""
    return len(sound.texts) if isinstance(sound, Words) else len(sound)


def ticks_of(feature: Feature, sound: Any) -> int:
    """How many ticks it lasts."""
    if isinstance(sound, Words):
        return int(sound.known[-1])
    return -(-100 * len(sound) // rate_of(feature))


def assert_unchanged(sound: Any, before: Any) -> None:
    if isinstance(sound, Words):
        assert sound.texts == before.texts
        sound, before = (np.stack([x.begins, x.ends, x.known]) for x in (sound, before))
    assert np.array_equal(sound, before)


def assert_same_track(left: Track, right: Track, tolerance: float = 0.0) -> None:
    assert np.array_equal(left.ticks, right.ticks)
    assert left.values.dtype == right.values.dtype
    assert same(left.values, right.values, tolerance)


@each(FEATURES)
def test_feature_offers_what_the_protocol_asks(name):
    feature = FEATURES[name].make()
    assert isinstance(feature, Feature)
    assert feature.spec.name.isidentifier()
    assert (feature.spec.takes == "words") or rate_of(feature) > 0
    assert (name in AUDIBLE) == (feature.spec.takes == "audio")
    assert feature.spec.kind is KINDS[feature.spec.kind.name]
    feature.reset()
    feature.skip_to(10)
    track = feature.flush()
    assert track.ticks.shape == (0,)
    assert track.values.shape == feature.spec.no_frames().values.shape
    assert track.ticks.dtype.kind == "i"


def test_every_registered_feature_is_under_contract_by_its_name():
    assert {name: FEATURES[name].make().spec.name for name in REGISTERED} == {
        name: name for name in REGISTERED
    }


@each(COMPUTED)
def test_feature_frames_are_well_formed(name):
    feature = FEATURES[name].make()
    samples = sound(name)
    before = copy.deepcopy(samples)
    track = heard(feature, [samples])
    assert_unchanged(samples, before)
    usable = track.ticks.size * feature.spec.frame_seconds
    assert 100 * usable > 0.25 * ticks_of(feature, samples)
    assert (np.diff(track.ticks) >= 0).all()
    assert track.ticks[0] >= 1
    assert track.ticks[-1] <= ticks_of(feature, samples)
    spec = feature.spec
    spec.kind.check(spec.name, track.values, track.ticks.size, spec.size)
    assert spec.kind.usable(track.values, spec.size)[1].all()
    assert len(np.unique(track.values, axis=0)) > 1


@pytest.mark.slow
@each(COMPUTED)
@fewer
@given(data=st.data())
def test_feature_frames_are_the_same_for_any_cutting(name, data):
    samples = sound(name)
    cuts = sorted(data.draw(st.lists(st.integers(0, length(samples)), max_size=8)))
    parts = heard(FEATURES[name].make(), pieces(samples, cuts))
    assert_same_track(parts, whole(name), FEATURES[name].tolerance)


@each(COMPUTED)
def test_feature_forgets_at_a_reset(name):
    samples, feature = sound(name), FEATURES[name].make()
    fresh = heard(feature, [samples])
    feature.reset()
    feature.skip_to(100)
    feature.process(pieces(samples, [length(samples) // 2 + 17])[0])
    feature.reset()
    assert_same_track(heard(feature, [samples]), fresh, FEATURES[name].tolerance)


@pytest.mark.slow
@each(COMPUTED)
@fewer
@given(data=st.data())
def test_feature_skips_nothing_but_what_it_was_told(name, data):
    samples, feature, expected = sound(name), FEATURES[name].make(), whole(name)
    skip = data.draw(st.integers(0, int(expected.ticks[-1]) + 50))
    cuts = sorted(data.draw(st.lists(st.integers(0, length(samples)), max_size=4)))
    feature.skip_to(skip)
    track = heard(feature, pieces(samples, cuts))
    kept, due = track.ticks > skip, expected.ticks > skip
    assert_same_track(
        Track(track.ticks[kept], track.values[kept]),
        Track(expected.ticks[due], expected.values[due]),
        FEATURES[name].tolerance,
    )


@each(AUDIBLE)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_counted_and_heard_as_silence(name, bad):
    feature = FEATURES[name].make()
    holes = slice(rate_of(feature), rate_of(feature) + 40)
    silent, broken = sound(name).copy(), sound(name).copy()
    silent[holes], broken[holes] = 0, bad
    expected = listened(extracted(name, silent))
    found = listened(extracted(name, broken))
    assert found.tracks == expected.tracks
    assert found.speech == expected.speech
    assert expected.gaps == []
    ((_, gap),) = found.gaps
    assert gap.reason == "not finite"
    assert gap.lost_seconds == pytest.approx(40 / rate_of(feature))


def extracted(name: str, samples: np.ndarray) -> list[Frames]:
    feature = FEATURES[name].make()
    extractor = Extractor([feature])
    return [extractor.process(Block(samples, rate_of(feature))), extractor.flush()]


@pytest.mark.slow
@each(COMPUTED)
def test_feature_keeps_no_audio(name):
    feature, samples = FEATURES[name].make(), sound(name)
    some = 40 if isinstance(samples, Words) else rate_of(feature) // 2
    block = pieces(samples, [some])[0]  # half a second is 16 kB
    assert growth(20, lambda _: feature.process(block)) < 16 * KILOBYTE


# ---------------------------------------------------------------------------------------- sketches


def learnt(name: str, count: int, seed: int) -> Sketch:
    sketch = SKETCHES[name].make()
    sketch.learn_many(SKETCHES[name].values(count, seed))
    return sketch


def assert_same_sketch(left: Sketch, right: Sketch, tolerance: float = 0.0) -> None:
    assert left.frames == right.frames
    assert left.total.dtype == right.total.dtype
    assert same(left.total, right.total, tolerance)


@pytest.mark.parametrize("name", SKETCHES)
@few
@given(sizes=st.lists(st.integers(0, 12), min_size=3, max_size=3), seed=st.integers(0, 999))
def test_sketches_are_a_commutative_monoid(name, sizes, seed):
    case = SKETCHES[name]
    assert isinstance(case.make(), Sketch)
    assert case.make().frames == 0
    assert not case.make().total.any()
    a, b, c = (learnt(name, size, seed + i) for i, size in enumerate(sizes))
    kept = copy.deepcopy([x.total for x in (a, b, c)])
    both = case.make()
    for i, size in enumerate(sizes[:2]):
        both.learn_many(case.values(size, seed + i))
    assert_same_sketch(a + b, b + a)
    assert_same_sketch(a + b, both, case.tolerance)
    assert_same_sketch((a + b) + c, a + (b + c), case.tolerance)
    assert_same_sketch(a + case.make(), a)
    assert_same_sketch(case.make() + a, a)
    assert type(a + b) is type(a)
    (a + b).learn_many(case.values(3, seed))  # a sum shares nothing with its parts
    assert all(np.array_equal(x.total, t) for x, t in zip((a, b, c), kept, strict=True))


@pytest.mark.parametrize("name", SKETCHES)
@few
@given(
    count=st.integers(0, 30),
    cuts=st.lists(st.integers(0, 30), max_size=4).map(sorted),
    seed=st.integers(0, 999),
)
def test_many_equals_the_loop(name, count, cuts, seed):
    case = SKETCHES[name]
    values = case.values(count, seed)
    before = values.copy()
    many, loop, pieces = case.make(), case.make(), case.make()
    assert many.learn_many(values) is None  # type: ignore[func-returns-value]
    for value in values:
        assert loop.learn_one(value) is None  # type: ignore[func-returns-value]
    for part in np.split(values, cuts):
        pieces.learn_many(part)
    assert_same_sketch(many, loop)
    assert_same_sketch(many, pieces)
    assert many.frames == count
    assert np.array_equal(values, before)


@pytest.mark.parametrize("name", [name for name, case in SKETCHES.items() if case.unusable])
def test_sketch_learns_nothing_from_what_is_no_number(name):
    case: Any = SKETCHES[name]
    sketch, clean = learnt(name, 9, 1), learnt(name, 9, 1)
    sketch.learn_many(case.unusable())
    for value in case.unusable():
        sketch.learn_one(value)
    assert_same_sketch(sketch, clean)


@pytest.mark.slow
@pytest.mark.parametrize("name", SKETCHES)
def test_sketch_has_one_size(name):
    sketch, values = SKETCHES[name].make(), SKETCHES[name].values(500, 0)
    assert growth(30, lambda _: sketch.learn_many(values)) < KILOBYTE


# ----------------------------------------------------------------------------------------- sources


@pytest.fixture(params=SOURCES)
def source_case(request):
    return SOURCES[request.param]


@pytest.mark.slow
def test_every_source_is_under_contract(tmp_path):
    made = {type(case.cuttings(tmp_path)[-1]()).__name__ for case in SOURCES.values()}
    classes = {name for name in monitor.sources.__all__ if name[0].isupper()}
    assert made == classes - {"BaseSource", "SplitSource"}


@pytest.mark.slow
def test_source_offers_what_the_protocol_asks(source_case, tmp_path):
    for opens in source_case.cuttings(tmp_path):
        source = opens()
        assert isinstance(source, Source)
        assert "/" not in source.label
        assert str(tmp_path) not in source.label
        with source as entered:
            assert entered is source
            items = list(source)
        assert all(isinstance(item, Block | Frames | Gap | Words | Tracks) for item in items)
        assert not any(isinstance(item, Gap) for item in items)
        found = listened(items)
        audio = sum(len(x) / rate for (_, rate), x in found.samples.items())
        assert audio + len(found.speech) / 100 == pytest.approx(SECONDS)
        assert source.seconds == pytest.approx(SECONDS)
        assert all(x.dtype == np.float32 and np.abs(x).max() > 0.1 for x in found.samples.values())


@pytest.mark.slow
def test_source_gives_the_same_stream_for_any_cutting_and_again(source_case, tmp_path):
    streams = []
    for opens in source_case.cuttings(tmp_path):
        with opens() as source:
            streams.append(listened(source))
    assert streams
    source = source_case.cuttings(tmp_path)[-1]()
    iterator = iter(source)
    next(iterator)
    if source_case.again:
        streams += [listened(source), listened(source)]
    whole, *others = streams
    for other in others:
        assert other.samples.keys() == whole.samples.keys()
        assert all(np.array_equal(other.samples[key], whole.samples[key]) for key in whole.samples)
        assert (other.speech, other.tracks, other.gaps) == (whole.speech, whole.tracks, whole.gaps)


@pytest.mark.parametrize("name", [name for name, case in SOURCES.items() if case.damaged])
def test_source_counts_and_drops_frames_that_are_no_numbers(name, tmp_path):
    damaged: Any = SOURCES[name].damaged
    with damaged(tmp_path) as source:
        found = listened(source)
    assert {gap.reason for _, gap in found.gaps} == {"not finite", "not a bin"}
    assert all(gap.lost_seconds and gap.lost_seconds > 0 for _, gap in found.gaps)
    for feature, (ticks, values) in found.tracks.items():
        assert len(ticks) == len(values)
        assert np.isfinite(np.array(values)).all(), feature
    assert all(0 <= value < 104 for value in found.tracks["f0"][1])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in SOURCES.items() if case.endless])
def test_source_keeps_nothing_of_what_it_gave(name, tmp_path):
    endless: Any = SOURCES[name].endless
    with endless(tmp_path) as source:
        assert source.seconds == pytest.approx(LONG_SECONDS)
        blocks = iter(source)
        for _ in range(4):
            next(blocks)
        left = [0]

        def step(_: int) -> None:
            block = next(blocks)
            assert isinstance(block, Block)
            left[0] += len(block.samples)

        # half a second a step is 32 kB
        assert growth(8, step) < 48 * KILOBYTE
        assert left[0] > 0


# ------------------------------------------------------------------------------------------- sinks


@pytest.fixture(scope="module")
def records() -> list[Event]:
    """Of every type, from a real run."""
    monitor = Monitor(Population.reference(), watch="19")
    tally, rule = RunTotals(), Threshold("bits", -9.0, hold_seconds=0.0)
    frames = Frames(np.ones(400, bool), {"f0": Track(np.arange(1, 401), np.arange(400) % 104)})
    made: list[Any] = [start_event(monitor, ["a.flac"])]
    for reading in monitor.push(frames):
        made += [reading, *rule.update(reading)]
    gap = GapEvent.from_gap(2.0, Gap("broken file", None, 0, "a.flac: broke"))
    made.append(placed(gap, ["a.flac"]))
    for each in made:
        tally.count(each)
    made.append(tally.end_event(monitor, complete=False))
    assert {each.type for each in made} == {"start", "reading", "gap", "alert", "end"}
    return made


@pytest.fixture(params=SINKS)
def sink_case(request):
    return SINKS[request.param]


def test_sink_takes_every_record_and_changes_none(sink_case, records, tmp_path):
    sink = sink_case.make(tmp_path)
    assert isinstance(sink, Sink)
    before = as_records(records)
    for record in records:
        assert sink.write(record) is None  # type: ignore[func-returns-value]
    nothing: Any = dict.fromkeys(("bits", "bits_low", "bits_high", "sum_bits", "peak_bits"))
    reading = next(each for each in records if isinstance(each, Reading))
    sink.write(replace(reading, **nothing, withheld="template_mismatch: too short"))
    assert as_records(records) == before
    assert sink.close() is None  # type: ignore[func-returns-value]
    sink.close()


@pytest.mark.slow
def test_sink_does_not_grow_with_the_stream(sink_case, records, tmp_path):
    sink = sink_case.make(tmp_path)
    reading = next(each for each in records if isinstance(each, Reading))
    gap = next(each for each in records if isinstance(each, GapEvent))
    sink.write(records[0])

    def step(second: int) -> None:
        sink.write(replace(reading, seconds=second + 1.0, speech=0.8 * second + 0.1))
        sink.write(replace(gap, seconds=second + 1.0))

    assert growth(1000, step) < sink_case.growth
    sink.close()


# ----------------------------------------------------------------------------------------- monitor


def test_assessing_changes_nothing():
    monitor = Monitor(Population.reference(), watch="19")
    monitor.push(Frames(np.ones(150, bool), {"f0": Track(np.arange(1, 151), np.arange(150) % 60)}))
    plain, arrays = copy.deepcopy(monitor.state())
    sketches = monitor._stream.evidence.sketches
    first = monitor.attacker.assess(sketches, 1.5)
    monitor.attacker.assess(sketches, 77.0)
    second = monitor.attacker.assess(sketches, 1.5)
    assert first.local == second.local
    assert first.gain == second.gain
    assert first.features == second.features
    assert np.array_equal(first.posterior, second.posterior)
    after, now = monitor.state()
    assert plain == after
    assert all(np.array_equal(arrays[key], now[key]) for key in arrays)
