"""Somebody else takes over, or another recording: when that is noticed, and against whom."""

import json
from dataclasses import replace
from functools import cache, reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor, Population
from monitor import kinds as module
from monitor.alerts import Threshold
from monitor.errors import StoreError, UsageError
from monitor.events.reading import Reading
from monitor.features.channel import Channel
from monitor.features.embeddings import Voice
from monitor.features.f0 import F0
from monitor.features.framing import join_tracks
from monitor.features.own_network import SpeakerModel
from monitor.features.phones import Phones
from monitor.kinds import EMBEDDING, HISTOGRAM, LEVELS, FeatureSpec, Kind, Sensitivity
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.sinks.buffer import RunBuffer
from monitor.sources.frames import read_frames
from monitor.stream import speaker_changes
from monitor.stream.notices import recording_notices
from monitor.stream.speaker_changes import (
    FEWEST,
    ChangeDetector,
    FollowedFeature,
    are_different_people,
    collect_others,
    describe_criterion,
    score_likeness,
    select_cohort,
)
from monitor.stream.totals import FeatureTotals
from monitor.types import Frames, Track
from tests.contracts import KILOBYTE, growth
from tests.records import as_records
from tests.stream.streams import Listed, reference, resumed, run_through, two_features

BINS, DIMENSIONS = 30, 192
KINDS: dict[str, Kind] = {"f0": HISTOGRAM, "phones": HISTOGRAM, "speaker_ab": EMBEDDING}
SETTINGS: dict[str, Sensitivity] = {
    "f0": F0.follow,
    "phones": Phones.follow,
    "speaker_ab": SpeakerModel.follow,
    "voice": Voice.follow,
    "channel": Channel.follow,
}
FRAMES = {"f0": 40, "phones": 45}  # a second


@cache
def voices(count=8):
    """What is typical of simulated people: shares of bins, and directions."""
    rng = np.random.default_rng(1)
    middles = rng.uniform(6, 24, (count, 1))
    bumps = np.exp(-0.5 * ((np.arange(BINS) - middles) / 2.5) ** 2) + 0.01
    return bumps / bumps.sum(axis=1, keepdims=True), rng.standard_normal((count, DIMENSIONS))


def spoken(turns, seed=0, features=("f0",)):
    """One step a second: turns are (person, seconds)."""
    bins, directions = voices()
    rng = np.random.default_rng(seed)
    steps: list[dict[str, np.ndarray]] = []
    for person in (person for person, seconds in turns for _ in range(seconds)):
        step = {n: rng.choice(BINS, FRAMES[n], p=bins[person]) for n in features if n in FRAMES}
        if "speaker_ab" in features:
            lately = len(steps) % 3 == 2
            near = directions[person] + rng.standard_normal((int(lately), DIMENSIONS))
            step["speaker_ab"] = near
        steps.append(step)
    return steps


def following(background, sensitivity=None, **settings):
    """A detector of these templates, with the features' own settings or others."""
    how = SETTINGS | (sensitivity or {})
    kinds = KINDS | {"channel": LEVELS, "voice": EMBEDDING}
    return ChangeDetector(
        {n: FollowedFeature(kinds[n], each, how[n]) for n, each in background.items()}, **settings
    )


def detector(*features, **settings):
    bins, directions = voices()
    known = {"f0": 1000 * bins, "phones": 1000 * bins, "speaker_ab": directions}
    known["channel"] = np.empty((0, 20))
    return following({name: known[name] for name in features}, **settings)


def heard(detector, steps, first=0, seconds=1.0):
    found = []
    for i, step in enumerate(steps, first + 1):
        change = detector.update(step, round(100 * seconds * i))
        if change is not None:
            found.append(change)
    return found


def levels(turns, seed=0):
    """One step of three seconds each: turns are (bels above the usual, steps)."""
    rng = np.random.default_rng(seed)
    usual = rng.uniform(-8, -2, 20)
    moved = [by for by, steps in turns for _ in range(steps)]
    return [{"channel": (usual + by + 0.2 * rng.standard_normal(20))[None]} for by in moved]


@pytest.mark.parametrize("by", [1.2, -1.2, np.r_[2.0 * np.ones(6), np.zeros(14)]])
def test_another_channel_is_noticed_soon(by):
    for seed in range(5):
        steps = levels([(0.0, 30), (by, 20)], seed)
        (change,) = heard(detector("channel"), steps, seconds=3.0)
        assert change.features == ("channel",)
        assert 90 < change.seconds <= 108
        assert abs(change.since_seconds - 90) <= 6
        assert change.margin_before > -0.4 > change.margin_after


def test_a_channel_that_stays_or_sways_a_little_is_none():
    sway = [(0.15 * np.sin(i / 3), 1) for i in range(600)]
    for seed in range(5):
        for turns in ([(0.0, 600)], sway):
            assert not heard(detector("channel"), levels(turns, seed), seconds=3.0)


def same(one, other):
    """Two states are equal to the last bit."""
    assert json.dumps(one[0]) == json.dumps(other[0])
    assert one[1].keys() == other[1].keys()
    for name, value in one[1].items():
        np.testing.assert_array_equal(value, other[1][name])


@pytest.mark.parametrize(
    ("feature", "late", "blur"), [("f0", 12, 4), ("phones", 25, 8), ("speaker_ab", 10, 4)]
)
def test_another_person_is_noticed_soon(feature, late, blur):
    for seed in range(5):
        (change,) = heard(detector(feature), spoken([(0, 90), (1, 60)], seed, (feature,)))
        assert 90 < change.seconds <= 90 + late
        assert change.since_seconds == pytest.approx(90, abs=blur)
        assert change.features == (feature,)
        assert change.margin_after < change.margin_before


@pytest.mark.parametrize(
    ("features", "late"),
    [(("f0",), 25), (("phones",), 40), (("speaker_ab",), 12), (tuple(KINDS), 12)],
)
def test_the_first_voice_is_known_when_it_is_back_and_a_third_is_not_it(features, late):
    for seed in range(5):
        steps = spoken([(0, 90), (1, 60), (0, 90)], seed, features)
        first, *rest = heard(detector(*features, returns=True), steps)
        assert (first.seconds <= 150, first.back) == (True, False)
        (back,) = [change for change in rest if change.back]
        assert 150 < back.seconds <= 150 + late
        assert back.since_seconds == pytest.approx(150, abs=8)
        assert back.margin_after >= back.margin_before
        # without being asked nobody tells
        assert not any(change.back for change in heard(detector(*features), steps))
        if features != ("phones",):
            third = spoken([(0, 90), (1, 60), (2, 90)], seed, features)
            changes = heard(detector(*features, returns=True), third)
            assert not any(change.back for change in changes)


def test_every_turn_is_noticed_once_and_the_next_one_after_it_is_back():
    both, turns = ("f0", "speaker_ab"), [(0, 60), (1, 60), (0, 60), (2, 60)]
    changes = heard(detector(*both), spoken(turns, 0, both))
    assert [change.seconds // 60 for change in changes] == [1, 2, 3]
    turns = [(0, 90), (1, 60), (0, 60), (3, 60), (0, 60)]
    for seed in range(3):
        changes = heard(detector("speaker_ab", returns=True), spoken(turns, seed, ("speaker_ab",)))
        backs = [change.seconds for change in changes if change.back]
        assert len(backs) == 2
        assert 150 < backs[0] < 165
        assert 270 < backs[1] < 285
        assert any(210 < change.seconds < 220 for change in changes if not change.back)


def test_an_embedding_knows_the_voice_through_another_channel():
    direction, rng = voices()[1][0], np.random.default_rng(0)
    steps = [
        {**step, "speaker_ab": direction + rng.standard_normal((1, DIMENSIONS))}
        for step in levels([(0.0, 30), (1.5, 40)])
    ]
    first, back = heard(detector("channel", "speaker_ab", returns=True), steps, seconds=3.0)
    assert (first.features, first.back) == (("channel",), False)
    assert (back.features, back.back) == (("speaker_ab",), True)
    assert back.seconds <= first.seconds + 12
    alone = heard(detector("channel", returns=True), steps, seconds=3.0)
    assert len(alone) == 1  # whoever it is, it may be somebody else


def test_a_pitch_that_stays_tells_that_only_the_channel_changed():
    def steps(who: int, seed: int) -> list[dict[str, np.ndarray]]:
        """The channel changes, and then this person speaks."""
        made = []
        for i, step in enumerate(levels([(0.0, 40), (1.5, 40)])):
            three = spoken([(0 if i < 40 else who, 3)], seed + 10 * i)
            made.append({**step, "f0": np.concatenate([each["f0"] for each in three])})
        return made

    for seed in range(5):
        same, other = (
            heard(detector("channel", "f0", returns=True), steps(who, seed), seconds=3.0)
            for who in (0, 1)
        )
        assert [(change.features, change.back) for change in same] == [
            (("channel",), False),
            (("f0",), True),
        ]
        assert not any(change.back for change in other)


@pytest.mark.slow
@pytest.mark.parametrize("feature", KINDS)
def test_one_person_is_seldom_taken_for_two(feature):
    hours = 4
    reports = sum(
        len(heard(detector(feature), spoken([(person, 1800)], person, (feature,))))
        for person in range(2 * hours)
    )
    assert reports <= hours


def test_a_voice_that_becomes_known_is_no_change():
    # like nobody of the population, so that the margin rises for long
    rng = np.random.default_rng(0)
    follower = detector("f0")
    steps = [{"f0": rng.integers(0, 4, 40)} for _ in range(300)]
    assert heard(follower, steps) == []
    _, arrays = follower.state()
    margins = arrays["f0/margins"]
    assert margins[-50:].mean() > 2.0


def test_a_small_lasting_drop_of_an_embedding_is_the_same_person():
    rng = np.random.default_rng(0)
    _, directions = voices()
    aside = directions[0] + 0.6 * rng.normal(size=DIMENSIONS)
    means = np.array([directions[0]] * 60 + [aside] * 60)[:, None]
    steps = [{"speaker_ab": mean + 0.1 * rng.normal(size=mean.shape)} for mean in means]
    assert heard(detector("speaker_ab"), steps) == []
    eager = {"speaker_ab": replace(SpeakerModel.follow, level=0.9)}
    assert len(heard(detector("speaker_ab", sensitivity=eager), steps)) == 1


def test_what_may_be_another_person_is_not_learnt_before_it_is_known():
    slow = {"speaker_ab": replace(SpeakerModel.follow, gain=1.0)}  # two units are not enough
    follower = detector("speaker_ab", sensitivity=slow)
    heard(follower, spoken([(0, 30)], 0, ("speaker_ab",)))
    own = follower.state()[1]["speaker_ab/own"]
    heard(follower, spoken([(1, 6)], 1, ("speaker_ab",)), first=30)
    _, arrays = follower.state()
    assert np.array_equal(arrays["speaker_ab/own"], own)
    assert len(arrays["speaker_ab/held"]) == 2
    heard(follower, spoken([(0, 30)], 2, ("speaker_ab",)), first=36)  # it was none
    _, arrays = follower.state()
    assert len(arrays["speaker_ab/held"]) == 0
    assert not np.array_equal(arrays["speaker_ab/own"], own)
    # who takes over is learnt from the first units on
    follower = detector("speaker_ab")
    assert heard(follower, spoken([(0, 60), (1, 15)], 0, ("speaker_ab",)))
    _, arrays = follower.state()
    assert len(arrays["speaker_ab/held"]) == 0
    assert arrays["speaker_ab/counters"][0] >= 1


def test_a_smaller_delta_costs_delay():
    def changes(*features, factor=1.0):
        f0 = replace(SETTINGS["f0"], delta=SETTINGS["f0"].delta * factor)
        speech = (spoken([(0, 90), (1, 90)], seed) for seed in range(5))
        return [heard(detector(*features, sensitivity={"f0": f0}), steps) for steps in speech]

    hasty, usual, slow = (
        sum(found[0].seconds for found in changes("f0", factor=factor))
        for factor in (1e3, 1.0, 1e-6)
    )
    assert hasty < usual < slow
    # histograms are more careful beside an embedding
    assert changes("f0", "speaker_ab") == changes("f0", factor=1e-4) != [[]] * 5


@given(
    st.integers(1, 149), st.sampled_from([("f0",), ("speaker_ab",), ("f0", "phones", "speaker_ab")])
)
@settings(max_examples=15)
def test_stopped_and_resumed_equals_never_stopped(at, features):
    steps = spoken([(0, 60), (1, 50), (0, 40)], at, features)
    whole, begun, resumed = (detector(*features, returns=True) for _ in range(3))
    changes = heard(whole, steps)
    before = heard(begun, steps[:at])
    plain, arrays = begun.state()
    resumed.restore(json.loads(json.dumps(plain)), {n: a.copy() for n, a in arrays.items()})
    same(resumed.state(), begun.state())
    assert before + heard(resumed, steps[at:], at) == changes
    same(resumed.state(), whole.state())


def test_resuming_a_long_voice_is_exact_and_its_memory_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_MARGINS", 40)
    steps = spoken([(0, 400), (1, 40)])
    whole, begun, resumed = (detector("f0") for _ in range(3))
    changes = heard(whole, steps)
    assert len(changes) == 1
    assert heard(begun, steps[:350]) == []
    assert begun.state()[1]["f0/margins"].size < 40
    resumed.restore(*begun.state())
    assert heard(resumed, steps[350:], 350) == changes
    plain, arrays = resumed.state()
    with pytest.raises(StoreError, match="speaker_ab"):
        detector("f0", "speaker_ab").restore(plain, arrays)
    with pytest.raises(StoreError, match="f0"):
        following({"f0": np.ones((2, 3))}).restore(plain, arrays)


@given(st.integers(0, 20))
@settings(max_examples=5)
def test_margins_do_not_depend_on_the_length_of_a_step(seed):
    steps = spoken([(0, 120)], seed, ("f0", "speaker_ab"))
    long = [
        {name: np.concatenate([step[name] for step in steps[i : i + 5]]) for name in steps[0]}
        for i in range(0, 120, 5)
    ]
    short = []
    for step in steps:
        short += [{"f0": step["f0"][:7]}, {"f0": step["f0"][7:], "speaker_ab": step["speaker_ab"]}]
    states = []
    for cutting, seconds in ((steps, 1), (long, 5), (short, 0.5)):
        follower = detector("f0", "speaker_ab")
        assert heard(follower, cutting, seconds=seconds) == []
        states.append(follower.state()[1])
    for state in states[1:]:
        for key in ("f0/margins", "f0/own", "f0/held", "f0/part", "speaker_ab/margins"):
            np.testing.assert_array_equal(state[key], states[0][key])


def test_a_feature_that_falls_silent_leaves_the_others_working():
    steps = spoken([(0, 90), (1, 60)], 0, ("f0", "speaker_ab"))
    for name, other in (("f0", "speaker_ab"), ("speaker_ab", "f0")):
        cut = [{other: step[other]} if i >= 70 else step for i, step in enumerate(steps)]
        (change,) = heard(detector("f0", "speaker_ab"), cut)
        assert change.features == (other,)
        assert 90 < change.seconds < 110
        gone = [step if not 40 <= i < 70 else {other: step[other]} for i, step in enumerate(steps)]
        assert 90 < heard(detector(name), gone)[0].seconds < 110


def test_nothing_and_nonsense_leave_no_trace():
    steps = spoken([(0, 60), (1, 30)], 0, ("f0", "speaker_ab"))
    noisy = []
    for i, step in enumerate(steps):
        bad = np.full((i % 3, DIMENSIONS), [np.nan, np.inf, 0.0][i % 3])
        noisy.append(
            {
                "f0": step["f0"],
                "speaker_ab": np.concatenate([bad, step["speaker_ab"]]),
                "unknown": np.array([1.5]),
            }
        )
    plain, dirty = detector("f0", "speaker_ab"), detector("f0", "speaker_ab")
    assert heard(plain, steps) == heard(dirty, noisy)
    same(plain.state(), dirty.state())
    empty = {"f0": np.empty(0, np.intp), "speaker_ab": np.empty((0, DIMENSIONS))}
    silent = detector("f0", "speaker_ab")
    assert heard(silent, [empty, {}] * 100) == []
    fresh = detector("f0", "speaker_ab")
    fresh.update({}, 20_000)
    same(silent.state(), fresh.state())


@pytest.mark.slow
def test_memory_does_not_grow(monkeypatch):
    monkeypatch.setattr(module, "MOST_MARGINS", 60)
    follower = detector("f0", "speaker_ab")
    steps = spoken([(0, 100)], 0, ("f0", "speaker_ab"))
    assert growth(300, lambda i: follower.update(steps[i % 100], 100 * i)) < 16 * KILOBYTE


def listened(paths):
    """Steps of one second, one clip after the other."""
    tracks, ticks = [], 0
    for path in paths:
        frames = read_frames(path)
        ((name, track),) = frames.tracks.items()
        tracks.append(track.shifted(ticks))
        ticks += frames.speech.size
    track = reduce(join_tracks, tracks)
    parts = np.split(track.values, np.searchsorted(track.ticks, np.arange(100, ticks, 100)))
    return [{name: part} for part in parts]


@pytest.mark.slow
def test_real_readers(clips):
    man, woman = clips / "422/122949.npz", clips / "1462/170138.npz"
    population = Population.reference()
    templates = population.templates("f0", population.scoring())
    follower = following({"f0": templates})
    (change,) = heard(follower, listened([man, woman]))
    assert 100 < change.seconds <= 115
    assert change.since_seconds == pytest.approx(100, abs=5)
    assert heard(following({"f0": templates}), listened([man])) == []


def test_a_voice_of_the_same_sex_is_noticed_soon(clips):
    """Of two men, by the network that ships and with the settings for it."""
    men = [clips / f"{each}.npz" for each in ("652/129742", "2803/154320")]
    population = Population.reference()
    templates = collect_others(population, population.scoring(), ["voice"])
    follower = following(templates)
    (change,) = heard(follower, listened(men))
    assert 30 < change.seconds <= 38
    assert change.since_seconds == pytest.approx(30, abs=3)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"f0": np.array([BINS])}, "bins of .* must"),
        ({"f0": np.array([-1])}, "bins of .* must"),
        ({"f0": np.array([0.5])}, "bins of .* must"),
        ({"speaker_ab": np.zeros((1, 3))}, "frames of .* must be floats"),
        ({"speaker_ab": np.zeros(DIMENSIONS)}, "frames of .* must be floats"),
    ],
)
def test_other_frames_are_refused(step, words):
    with pytest.raises(UsageError, match=words):
        detector("f0", "speaker_ab").update(step, 100)


def people(count: int, network: str | None = "ab" * 32, seed: int = 0) -> Population:
    """So many speakers of 20 s, by an embedding and a histogram."""
    rng = np.random.default_rng(seed)
    slices = rng.normal(size=(4 * count, 8)).astype(np.float32)
    counts = rng.integers(0, 9, (4 * count, 5)).astype(np.uint16)
    spec = FeatureSpec("voice", EMBEDDING, 8, 3.0, network=network)
    return Population(
        [Speaker(f"{seed} {i}") for i in range(count)],
        np.arange(0, 4 * count + 1, 4),
        {
            "voice": FeatureTemplates(spec, slices),
            "f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, 5, 0.01), counts),
        },
    )


def pitched(seconds: float, lag: int, recording: int = 0, start: float = 0.0) -> Frames:
    """All speech, at a pitch around one lag."""
    size = round(100 * seconds)
    bins = np.random.default_rng(recording).normal(lag, 4, size).round().clip(0, 103)
    ticks = np.arange(1, size + 1) + round(100 * start)
    track = Track(ticks, bins.astype(np.intp))
    return Frames(np.ones(size, bool), {"f0": track}, recording=recording)


def silence(seconds: float, recording: int) -> Frames:
    nothing = Track(np.empty(0, np.intp), np.empty(0, np.intp))
    return Frames(np.zeros(round(100 * seconds), bool), {"f0": nothing}, recording=recording)


def end_of(items: list[Any], names: list[str], **options: Any) -> dict[str, Any]:
    kept = RunBuffer()
    run_through(Listed(items, names), Monitor(reference(), **options), sinks=[kept])
    return as_records(kept.events)[-1]


def test_recordings_without_speech_are_named():
    items = [silence(3, 0), pitched(4, 40, 1, 3.0), silence(5, 2)]
    end = end_of(items, ["a", "b", "c"])
    assert end["recordings"] == ["a", "b", "c"]
    assert end["notices"] == ["a: no speech in it", "c: no speech in it"]
    assert end_of([pitched(3, 40)], ["a"])["notices"] == []


def test_an_alert_says_in_which_recording_it_was_raised():
    """The first reading that ends in a recording is of it, the one at its end still is."""
    items = [pitched(4, 40), pitched(6, 40, 1, 4.0)]
    rules = [Threshold("sum_bits", -99.0, hold, 0.0) for hold in (0.0, 3.0, 4.0, 8.0)]
    kept = RunBuffer()
    run_through(Listed(items, ["a", "b"]), Monitor(reference()), sinks=[kept], rules=rules)
    alerts = [record for record in as_records(kept.events) if record["type"] == "alert"]
    assert [(alert["seconds"], alert["recording"]) for alert in alerts] == [
        (1.0, "a"), (4.0, "a"), (5.0, "b"), (9.0, "b")
    ]  # fmt: skip


@pytest.mark.slow
def test_two_people_are_told_and_one_is_not():
    names = ["a", "b", "c"]
    one = [pitched(60, 40), pitched(60, 40, 1, 60.0), pitched(60, 40, 2, 120.0)]
    assert end_of(one, names)["notices"] == []
    two = [one[0], pitched(60, 75, 1, 60.0), one[2]]
    (notice,) = end_of(two, names)["notices"]
    assert notice.startswith("b: ")
    assert "judged by f0, which misses most of the same sex" in notice
    for action, count in (("note", 1), ("ignore", 1), ("reset", 0), ("split", 0)):
        assert len(end_of(two, names, on_change=action)["notices"]) == count
    # a few seconds are not judged
    assert end_of([one[0], pitched(15, 75, 1, 60.0)], names[:2])["notices"] == []


def test_features_that_the_shipped_readers_do_not_have_judge_nobody():
    assert describe_criterion(["timbre", "phones", "f0"]).endswith(
        "which misses many of the same sex"
    )
    assert describe_criterion(["f0", "phones", "voice"]).startswith("voice, which misses many")
    ones = FeatureTotals(100, {"f0": np.ones(10, int)}, {"f0": 10}, {"f0": 10})
    for name in ("f0", "timbre"):
        assert not are_different_people({name: two_features().specs["f0"]}, ones, ones)


def test_the_shipped_readers_stand_beside_a_few_where_one_network_made_both(monkeypatch):
    shipped, few = people(30, seed=1), people(3)
    monkeypatch.setattr(speaker_changes, "shipped_readers", lambda: shipped)
    mine = Population(few.speakers, few.offsets, {"own": few.features["voice"]})
    for population, expected in (
        (few, {"voice": 33, "f0": 3}),
        (people(3, "cd" * 32), {"voice": 3, "f0": 3}),  # another network
        (people(3, None), {"voice": 3, "f0": 3}),
        (people(FEWEST), {"voice": FEWEST, "f0": FEWEST}),  # many stand alone
        (people(FEWEST - 1), {"voice": FEWEST + 29, "f0": FEWEST - 1}),
        (mine, {"own": 3}),  # nobody ships that
    ):
        made = collect_others(population, population.scoring(), population.features)
        assert {name: len(each) for name, each in made.items()} == expected
    voices = collect_others(few, few.scoring(), ["voice"])["voice"]
    assert np.array_equal(voices[:3], few.templates("voice", few.scoring()))
    assert np.array_equal(voices[3:], shipped.templates("voice", shipped.scoring()))


@pytest.mark.parametrize("stop", [10, 33, 36, 50, 70, 94])
def test_resumed_the_same_is_said(stop):
    """Stopped in each of the recordings, by turns."""
    items = [pitched(30, 40), silence(5, 1), pitched(30, 75, 2, 35.0), pitched(30, 40, 3, 65.0)]
    whole, first, again = (Monitor(reference(), on_change="note") for _ in range(3))
    found = list(whole.events(Listed(items)))
    recordings = [event.recording for event in found if isinstance(event, Reading)]
    assert recordings == [0] * 30 + [1] * 5 + [2] * 30 + [3] * 30
    said = list(map(str, recording_notices(whole, "abcd")))
    assert len(said) == 2
    resumed(iter([first, again]).__next__, items, lambda event: event.seconds == stop)
    assert list(map(str, recording_notices(again, "abcd"))) == said


def test_alike_is_symmetric_and_knows_the_same_voice():
    like = [select_cohort(reference(), "f0", 60.0)] * 2
    one, same, other = (
        np.bincount(pitched(60, lag, seed).tracks["f0"].values, minlength=104)
        for lag, seed in ((40, 0), (40, 1), (75, 2))
    )
    likeness = score_likeness(HISTOGRAM, one, same, *like)
    assert likeness == score_likeness(HISTOGRAM, same, one, *like)
    assert likeness > 1.2 > score_likeness(HISTOGRAM, one, other, *like)
