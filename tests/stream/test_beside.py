"""Words and ready-made frames in the same stream as audio."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor
from monitor.errors import UsageError
from monitor.features import registry
from monitor.features.f0 import F0
from monitor.features.registry import register
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.protocols import StreamInfo
from monitor.sources import Chain, File, FramesFile, SideInputSource, write_frames
from monitor.stream.checkpoint import Checkpoint
from monitor.stream.front_end import check_words
from monitor.stream.records import RunTotals, start_event
from monitor.types import Block, Track, Tracks, Words
from tests.contracts import voice
from tests.population.rank_models import some_rank_model
from tests.stream.streams import Listed

RATE, SECONDS = 16_000, 6.0
TEXTS = ("a", "so", "the")
STYLE = FeatureSpec("style", HISTOGRAM, 3, 0.2, takes="words")
CODES = FeatureSpec("codes", HISTOGRAM, 4, 0.1)


class Style:
    spec, follow = STYLE, None

    def process(self, heard: Words) -> Track:
        own = [i for i, text in enumerate(heard.texts) if text in TEXTS]
        values = np.array([TEXTS.index(heard.texts[i]) for i in own], np.int64)
        return Track(heard.known[own], values, np.column_stack((heard.begins, heard.ends))[own])

    def flush(self) -> Track:
        return self.spec.no_frames()

    def skip_to(self, tick: int) -> None: ...

    def reset(self) -> None: ...


@cache
def population() -> Population:
    rng = np.random.default_rng(3)
    specs = (F0.spec, STYLE, CODES)
    features = {
        s.name: FeatureTemplates(s, rng.integers(1, 60, (12, s.size)).astype(np.uint16))
        for s in specs
    }
    names = tuple(features)
    sets = [*((name,) for name in names), ("f0", "style"), ("f0", "codes"), names]
    return Population(
        [Speaker(name) for name in ("ann", "bob", "cy")],
        np.array([0, 4, 8, 12]),
        features,
        RankModels([some_rank_model(each) for each in sets]),
    )


def said(count: int = 15, late: int = 0, first: int = 0) -> Words:
    begins = first + 40 * np.arange(count)
    texts = tuple((*TEXTS, "moon")[i % 4] for i in range(count))
    return Words(texts, begins, begins + 25, begins + 25 + late)


def codes() -> Track:
    ticks = np.arange(10, 600, 10)
    return Track(ticks, ticks // 10 % 4)


@pytest.fixture(scope="module")
def wav(tmp_path_factory):
    path = tmp_path_factory.mktemp("beside") / "talk.wav"
    soundfile.write(path, voice(SECONDS), RATE)
    return path


@pytest.fixture(scope="module")
def kept(wav):
    path = wav.with_suffix(".npz")
    write_frames(path, np.ones(600, bool), {"codes": codes()}, {"codes": 4}, {"codes": 0.1})
    return path


def hear(source: Any, features: Any = ("f0", "style"), **options: Any) -> list[Any]:
    own = [Style() if name == "style" else name for name in features]
    made = Monitor(population(), own, "ann", step_seconds=0.5, **options).stream(source)
    return [reading.record() for reading in made]


def usable(readings: list[dict[str, Any]], name: str) -> list[float]:
    return [round(reading["features"][name]["usable"], 2) for reading in readings]


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    rate=st.sampled_from([8000, 16_000]),
    block=st.sampled_from([0.013, 0.1, 0.77, 2.0, 30.0]),
    late=st.sampled_from([0, 7, 180, 700]),
    on_change=st.sampled_from(["ignore", "note", "reset", "split"]),
)
def test_the_readings_are_the_same_for_any_block_size(wav, kept, rate, block, late, on_change):
    def run(seconds: float) -> list[dict[str, Any]]:
        path = wav.with_name(f"{rate}.wav")
        if not path.exists():
            soundfile.write(path, voice(SECONDS, rate), rate)
        file = File(path, block_seconds=seconds)
        source = SideInputSource(file, words=said(late=late), frames=kept)
        return hear(source, ("f0", "style", "codes"), on_change=on_change)

    whole = run(SECONDS)
    assert run(block) == whole
    if on_change in ("ignore", "note"):  # nothing that was said within it is lost
        assert usable(whole, "style")[-1] == 3.0


def test_a_word_counts_from_when_it_is_known(wav):
    prompt = usable(hear(SideInputSource(File(wav), words=said())), "style")
    late = usable(hear(SideInputSource(File(wav), words=said(late=100))), "style")
    assert prompt[:4] == [0.25, 0.5, 0.75, 1.0]  # of the four words by 1.5 s one does not count
    assert late[:4] == [0.0, 0.0, 0.25, 0.5]
    assert prompt[-1] == late[-1]  # known after the end counts there
    alone = hear(File(wav), ("f0",))
    together = hear(SideInputSource(File(wav), words=said()))
    assert usable(alone, "f0") == usable(together, "f0")
    assert together[-1]["features"]["f0"] == alone[-1]["features"]["f0"]


def test_a_word_that_comes_after_its_time_counts_from_then_on():
    monitor = Monitor(population(), ["f0", Style()], step_seconds=1.0)
    sound = voice(4.0)
    heard = monitor.push(Block(sound[: 2 * RATE], RATE))
    heard += monitor.push(said(2))  # said in the first second
    heard += monitor.push(Block(sound[2 * RATE :], RATE))
    heard += monitor.finish()
    found = [reading.features["style"].usable for reading in heard]
    assert found[0] == 0.0
    assert found[-1] == pytest.approx(0.5)
    monitor.reset()
    monitor.push(Block(sound[:RATE], RATE))
    monitor.push(said(1, late=200))
    monitor.push(said(1, late=100))  # out of order, and both to come
    heard = [*monitor.push(Block(sound[RATE:], RATE)), *monitor.finish()]
    assert [each.features["style"].usable for each in heard] == [0.0, 0.25, 0.5, 0.5]


def test_recordings_of_a_chain_have_words_of_their_own(wav):
    both = Chain(
        [SideInputSource(File(wav), words=said(8)), SideInputSource(File(wav), words=said(4))]
    )
    assert both.stream_info.words
    made = hear(both)
    assert usable(made, "style")[11::12] == [1.5, 2.25]
    assert usable(made, "style")[12:14] == [1.75, 2.0]  # from the second one's beginning
    with pytest.raises(UsageError, match="chain recordings of one kind"):
        Chain([SideInputSource(File(wav), words=said()), File(wav)])
    with pytest.raises(UsageError, match="and then chain them"):
        list(SideInputSource(Chain([File(wav), File(wav)]), words=said()))


def test_a_run_goes_on_from_a_checkpoint(wav, kept, tmp_path):
    def source() -> SideInputSource:
        return SideInputSource(File(wav, block_seconds=0.3), words=said(late=60), frames=kept)

    def monitor() -> Monitor:
        return Monitor(
            population(), ["f0", Style(), CODES], "ann", step_seconds=0.5, on_change="note"
        )

    whole = [reading.record() for reading in monitor().stream(source())]
    first, checkpoint = monitor(), Checkpoint(tmp_path / "run.state", {})
    for count, _ in enumerate(first.stream(source()), 1):
        if count == 5:
            checkpoint.save(first, RunTotals(), [], 0)
            break
    second = monitor()
    checkpoint.load(second, RunTotals(), [])
    rest = [reading.record() for reading in second.stream(source())]
    assert json.dumps(rest) == json.dumps(whole[5:])


def test_words_lie_beside_ready_made_frames_too(kept):
    readings = hear(SideInputSource(FramesFile(kept), words=said()), ["style"])
    assert usable(readings, "style")[:3] == [0.25, 0.5, 0.75]


def test_only_what_lies_within_the_recording_is_heard(wav):
    cut = SideInputSource(
        File(wav, start_seconds=1.0, end_seconds=3.0), words=said(), start_seconds=1.0
    )
    items = [item for item in cut if isinstance(item, Words)]
    begins = np.concatenate([item.begins for item in items])
    assert begins.tolist() == [20, 60, 100, 140]


@pytest.mark.parametrize(
    ("items", "features", "words"),
    [
        ([Tracks({"f0": Track(np.array([1]), np.array([3]))})], ["f0"], "comes ready-made as well"),
        ([Tracks({"codes": Track(np.array([1]), np.array([9]))})], [CODES], "bins of codes must"),
        ([said(), Block(np.zeros(800), RATE), Tracks({"style": codes()})], [Style()], "ready-made"),
        ([Words(("a",), *np.array([[3], [2], [4]]))], [Style()], "begin before they end"),
    ],
)
def test_what_cannot_be_heard_is_refused_in_a_line(items, features, words):
    monitor = Monitor(population(), features)
    for item in items[:-1]:
        monitor.push(item)
    with pytest.raises(UsageError, match=words) as told:
        monitor.push(items[-1])
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("stream_info", "features", "words"),
    [
        (StreamInfo(), ["f0", Style()], "style is made of timed words, and listed brings none"),
        (StreamInfo(), ["f0", CODES], "listed holds no frames of codes"),
        (StreamInfo(audio=False, words=True), ["f0", Style()], "holds no frames of f0"),
        (
            StreamInfo(tracks={"codes": FeatureSpec("codes", HISTOGRAM, 5, 0.1)}),
            ["codes"],
            "size 5",
        ),
    ],
)
def test_a_source_that_lacks_something_is_refused_before_it_begins(stream_info, features, words):
    source = Listed([])
    source.stream_info = stream_info
    with pytest.raises(UsageError, match=words):
        Monitor(population(), features).front_end.check(source)


@pytest.mark.parametrize(
    "words",
    [
        Words(("a",), np.array([0]), np.array([5]), np.array([4])),
        Words(("a", "so"), np.array([0, 1]), np.array([5, 6]), np.array([9, 8])),
        Words(("a",), np.array([0, 1]), np.array([5]), np.array([5])),
        Words(("a",), np.array([0.5]), np.array([5]), np.array([5])),
        Words((3,), np.array([0]), np.array([5]), np.array([5])),  # type: ignore[arg-type]
    ],
)
def test_words_that_nobody_said(words):
    with pytest.raises(UsageError, match="words"):
        check_words(words)


def test_a_feature_without_settings_is_followed_by_nobody_s_and_the_run_says_so():
    def made(on_change: str) -> Monitor:
        features: list[Any] = ["f0", Style(), CODES]
        return Monitor(population(), features, on_change=on_change)

    assert made("note").front_end.get_change_sensitivities() == {"f0": F0.follow}

    def told(monitor: Monitor) -> list[str]:
        return [
            n for n in start_event(monitor, ["a"]).record()["notices"] if "change of the voice" in n
        ]

    assert told(made("note")) == []  # it is noticed by f0
    alone = Monitor(population(), [Style()], on_change="note")
    assert told(alone) == ["no change of the voice can be noticed by style"]


def test_a_feature_is_registered_by_its_class(monkeypatch):
    monkeypatch.setattr(registry, "FEATURES", dict(registry.FEATURES))
    register(Style)
    (made,) = registry.make(["style"])
    assert isinstance(made, Style)
    assert (registry.takes("style"), registry.get_change_sensitivity("style")) == ("words", None)
    for wrong in (lambda: Style(), type("Codes", (), {"spec": CODES})):
        with pytest.raises(UsageError, match="needs a class attribute spec"):
            register(wrong)
