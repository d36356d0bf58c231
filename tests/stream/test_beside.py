"""Words and ready-made frames beside audio: heard when they are known, and how they cover it."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor, Population
from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.events.run import TranscriptStart
from monitor.features import registry
from monitor.features.f0 import F0
from monitor.features.registry import register
from monitor.features.style import Style as RealStyle
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.rank_model import RankModels
from monitor.protocols import StreamInfo
from monitor.sources import Chain, File, FramesFile, SideInputSource, write_frames
from monitor.stream import intake
from monitor.stream.checkpoint import Checkpoint
from monitor.stream.intake import WordCoverage
from monitor.stream.records import RunTotals, coverage_notices, list_coverage, start_event
from monitor.transcripts.transcript import measure_coverage
from monitor.types import AnyArray, Block, Track, Tracks, Words
from tests.contracts import talk, voice
from tests.population.rank_models import some_rank_model
from tests.stream.streams import Listed, audio

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


def hear(source: Any, features: Any = ("f0", "style"), **options: Any) -> list[Any]:
    own = [Style() if name == "style" else name for name in features]
    made = Monitor(population(), own, "ann", step_seconds=0.5, **options).stream(source)
    return [reading.record() for reading in made]


def usable(readings: list[dict[str, Any]], name: str) -> list[float]:
    return [round(reading["features"][name]["usable"], 2) for reading in readings]


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


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    rate=st.sampled_from([8000, 16_000]),
    block=st.sampled_from([0.013, 0.1, 0.77, 2.0, 30.0]),
    late=st.sampled_from([0, 7, 180, 700]),
    on_change=st.sampled_from(["ignore", "note", "reset", "split"]),
)
def test_the_readings_are_the_same_for_any_block_size(wav, kept, rate, block, late, on_change):
    path = wav.with_name(f"{rate}.wav")
    soundfile.write(path, voice(SECONDS, rate), rate)

    def run(seconds: float) -> list[dict[str, Any]]:
        file = File(path, block_seconds=seconds)
        source = SideInputSource(file, words=said(late=late), frames=kept)
        return hear(source, ("f0", "style", "codes"), on_change=on_change)

    whole = run(SECONDS)
    assert run(block) == whole
    if on_change in ("ignore", "note"):  # nothing that was said within it is lost
        assert usable(whole, "style")[-1] == 3.0


def test_a_word_counts_from_when_it_is_known(wav, kept):
    prompt = usable(hear(SideInputSource(File(wav), words=said())), "style")
    late = usable(hear(SideInputSource(File(wav), words=said(late=100))), "style")
    assert prompt[:4] == [0.25, 0.5, 0.75, 1.0]  # of the four words by 1.5 s one does not count
    assert late[:4] == [0.0, 0.0, 0.25, 0.5]
    assert prompt[-1] == late[-1]  # known after the end counts there
    alone = hear(File(wav), ("f0",))
    together = hear(SideInputSource(File(wav), words=said()))
    assert usable(alone, "f0") == usable(together, "f0")
    assert together[-1]["features"]["f0"] == alone[-1]["features"]["f0"]
    # beside ready-made frames too
    of_frames = hear(SideInputSource(FramesFile(kept), words=said()), ["style"])
    assert usable(of_frames, "style")[:4] == prompt[:4]
    # and of a part what lies within it
    part = File(wav, start_seconds=1.0, end_seconds=3.0)
    cut = SideInputSource(part, words=said(), start_seconds=1.0)
    begins = [item.begins for item in cut if isinstance(item, Words)]
    assert np.concatenate(begins).tolist() == [20, 60, 100, 140]


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
        own: list[Any] = ["f0", Style(), CODES]
        return Monitor(population(), own, "ann", step_seconds=0.5, on_change="note")

    whole = [reading.record() for reading in monitor().stream(source())]
    rest = stopped(monitor(), monitor(), source, 5, tmp_path)
    assert json.dumps([reading.record() for reading in rest]) == json.dumps(whole[5:])


def stopped(
    first: Monitor, second: Monitor, source: Callable[[], Any], after: int, folder: Path
) -> list[Reading]:
    """What the second says of what the first leaves of a source in a checkpoint."""
    checkpoint = Checkpoint(folder / "run.state", {})
    for count, _ in enumerate(first.stream(source()), 1):
        if count == after:
            checkpoint.save(first, RunTotals(), [], 0)
            break
    checkpoint.load(second, RunTotals(), [])
    return list(second.stream(source()))


@pytest.mark.parametrize(
    ("items", "features", "words"),
    [
        (
            [Tracks({"f0": Track(np.array([1]), np.array([3]))})],
            ["f0"],
            "its frames are also given",
        ),
        ([Tracks({"codes": Track(np.array([1]), np.array([9]))})], [CODES], "bins of codes must"),
        ([said(), Block(np.zeros(800), RATE), Tracks({"style": codes()})], [Style()], "also given"),
        ([Words(("a",), *np.array([[3], [2], [4]]))], [Style()], "begin before they end"),
        ([Words(("a",), *np.array([[0], [5], [4]]))], [Style()], "words"),
        ([Words(("a", "so"), *np.array([[0, 1], [5, 6], [9, 8]]))], [Style()], "words"),
        ([Words(("a",), np.array([0, 1]), *np.array([[5], [5]]))], [Style()], "words"),
        ([Words(("a",), np.array([0.5]), *np.array([[5], [5]]))], [Style()], "words"),
        ([Words((3,), *np.array([[0], [5], [5]]))], [Style()], "words"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_heard_is_refused_in_a_line(items, features, words):
    monitor = Monitor(population(), features)
    for item in items[:-1]:
        monitor.push(item)
    with pytest.raises(UsageError, match=words) as told:
        monitor.push(items[-1])
    assert "\n" not in str(told.value)


def ready_made(*specs: FeatureSpec) -> StreamInfo:
    return StreamInfo(audio=False, tracks={each.name: each for each in specs})


@pytest.mark.parametrize(
    ("stream_info", "features", "words"),
    [
        (StreamInfo(), ["f0", Style()], "style needs timed words, and listed has none"),
        (StreamInfo(), ["f0", CODES], "listed has no frames of codes"),
        (StreamInfo(audio=False, words=True), ["f0", Style()], "has no frames of f0"),
        (ready_made(replace(CODES, size=5)), ["codes"], "size 5"),
        (ready_made(replace(CODES, kind=EMBEDDING)), ["codes"], "embedding"),
        (ready_made(replace(CODES, name="c")), ["codes"], "no frames of codes, only of c"),
        (ready_made(CODES, replace(CODES, name="more")), ["codes"], ""),
        (ready_made(replace(CODES, size=3)), ["codes"], ""),  # fewer bins
    ],
)
def test_a_source_that_lacks_something_is_refused_before_it_begins(stream_info, features, words):
    source, monitor = Listed([]), Monitor(population(), features)
    source.stream_info = stream_info
    if not words:
        assert list(monitor.stream(source)) == []
        return
    with pytest.raises(UsageError, match=words):
        monitor.front_end.check(source)
    with pytest.raises(UsageError, match=words):
        list(monitor.stream(source))


def test_a_feature_without_settings_is_followed_by_nobody_s_and_the_run_says_so():
    def made(on_change: str) -> Monitor:
        features: list[Any] = ["f0", Style(), CODES]
        return Monitor(population(), features, on_change=on_change)

    assert made("note").front_end.get_change_sensitivities() == {"f0": F0.follow}

    def told(monitor: Monitor) -> list[str]:
        return [
            n for n in start_event(monitor, ["a"]).record()["notices"] if "change of voice" in n
        ]

    assert told(made("note")) == []  # it is noticed by f0
    alone = Monitor(population(), [Style()], on_change="note")
    assert told(alone) == ["a change of voice cannot be detected by style"]


def test_a_feature_is_registered_by_its_class(monkeypatch):
    monkeypatch.setattr(registry, "FEATURES", dict(registry.FEATURES))
    register(Style)
    (made,) = registry.make(["style"])
    assert isinstance(made, Style)
    assert (registry.takes("style"), registry.get_change_sensitivity("style")) == ("words", None)
    for wrong in (lambda: Style(), type("Codes", (), {"spec": CODES})):
        with pytest.raises(UsageError, match="needs a class attribute spec"):
            register(wrong)


@cache
def stylish() -> Population:
    spec = RealStyle().spec
    slices = np.random.default_rng(3).integers(0, 9, (6, spec.size)).astype(np.uint16)
    rank_model = replace(some_rank_model(("style",)), networks=(spec.network,))
    people = [Speaker(name) for name in ("ann", "bob", "cy")]
    features = {"style": FeatureTemplates(spec, slices)}
    return Population(people, np.array([0, 2, 4, 6]), features, RankModels([rank_model]))


def by_style() -> Monitor:
    return Monitor(stylish(), ["style"], "ann", step_seconds=0.5)


def said_in_a_talk() -> Words:
    """Those of the first talk that end within the recording, some known a second late."""
    words, end = talk(60), round(100 * TALK_SECONDS)
    count = int((words.ends <= end).sum())
    known = np.minimum(words.known[:count], end)
    return Words(words.texts[:count], words.begins[:count], words.ends[:count], known)


TALK_SECONDS = 20.0


def expected(*talks: Words) -> AnyArray:
    counts = [
        np.bincount(RealStyle().process(w).values, minlength=RealStyle().spec.size) for w in talks
    ]
    return np.asarray(np.sum(counts, axis=0))


def recording() -> Any:
    return Listed(audio(voice(TALK_SECONDS, 8000), range(2400, 160_000, 2400), 8000))


@pytest.mark.parametrize("after", [1, 11, 37])
def test_a_run_that_was_stopped_counts_as_if_it_had_not_been(after, tmp_path):
    second = by_style()
    source = lambda: SideInputSource(recording(), words=said_in_a_talk())  # noqa: E731
    stopped(by_style(), second, source, after, tmp_path)
    assert second.totals.totals["style"].tolist() == expected(said_in_a_talk()).tolist()


def test_another_recording_begins_anew():
    made = by_style()
    talks = [Words(("no",), *np.array([[at], [at + 30], [at + 30]])) for at in (1900, 10)]
    list(made.stream(Chain([SideInputSource(recording(), words=each) for each in talks])))
    names = RealStyle().bins
    counted = {names[i]: int(n) for i, n in enumerate(made.totals.totals["style"]) if n}
    assert counted == {"no": 2}  # not repeated


def test_words_that_come_when_their_time_has_gone_by_are_all_counted():
    made, words = by_style(), said_in_a_talk()
    late = replace(words, known=np.maximum.accumulate(words.known + 500))
    heard = [*made.stream(SideInputSource(recording(), words=late))]
    assert made.totals.totals["style"].tolist() == expected(words).tolist()
    prompt = [*by_style().stream(SideInputSource(recording(), words=words))]
    behind = [each.features["style"].usable for each in heard]
    ahead = [each.features["style"].usable for each in prompt]
    assert all(b <= a for b, a in zip(behind[:-1], ahead[:-1], strict=True))
    assert behind[9] < ahead[9]
    assert behind[-1] == pytest.approx(ahead[-1])


TICKS = 3000


def said_at_random(seed: int = 0, recording: int = 0) -> Words:
    rng = np.random.default_rng(seed)
    begins = np.sort(rng.integers(0, TICKS - 60, 40))
    ends = begins + rng.integers(5, 50, 40)
    return Words(("so",) * 40, begins, ends, ends, recording)


def speech(seed: int = 0) -> np.ndarray:
    return np.repeat(np.random.default_rng(seed).random(TICKS // 50) < 0.7, 50)


def some(words: Words, low: int, high: int) -> Words:
    own = (words.known > low) & (words.known <= high)
    begins, ends, known = (each[own] for each in (words.begins, words.ends, words.known))
    return Words(("so",) * int(own.sum()), begins, ends, known, words.recording)


@given(cuts=st.lists(st.integers(0, TICKS), max_size=8).map(sorted))
def test_any_cutting_finds_what_the_whole_does(cuts):
    found = WordCoverage()
    edges = [0, *cuts, TICKS]
    for low, high in pairwise(edges):
        found.add_words(some(said_at_random(), low, high))
        found.add_speech(0, speech()[low:high])
    (one,) = found.measure()
    assert one.coverage == measure_coverage(said_at_random(), speech())
    assert (one.words, one.recording) == (40, 0)


def test_each_recording_is_told_by_itself_and_one_without_words_too():
    found = WordCoverage()
    found.add_words(said_at_random())
    found.add_speech(0, speech())
    found.add_speech(1, speech(1))
    found.add_words(said_at_random(2, recording=2))
    found.add_speech(2, np.zeros(TICKS, bool))
    made = found.measure()
    assert [(each.recording, each.words) for each in made] == [(0, 40), (1, 0), (2, 40)]
    assert [each.coverage is None for each in made] == [False, True, True]
    rows = list_coverage(made, ["a", "b", "c"])
    assert rows[1].words_in_speech is None
    assert rows[0].words_in_speech == measure_coverage(said_at_random(), speech()).in_speech
    begun = [TranscriptStart(name, f"{name}.vtt", 40, False, None) for name in ("a", "b")]
    lines = list(map(str, coverage_notices(made, ["a", "b", "c"], begun)))
    assert lines[0].startswith("a.vtt: ")
    assert lines[1:] == [
        "b.vtt: no words arrived, but the average and the plateau still assume words",
        "c: its recording has no speech",
    ]


def test_only_the_last_hours_are_kept(monkeypatch):
    monkeypatch.setattr(intake, "KEPT_TICKS", 500)
    found, words = WordCoverage(), said_at_random()
    for low in range(0, TICKS, 100):
        found.add_words(some(words, low, low + 100))
        found.add_speech(0, speech()[low : low + 100])
        assert sum(each.size for each in found._speech) <= 1000
    (one,) = found.measure()
    first = TICKS - sum(each.size for each in found._speech)
    late = words.begins >= first
    times = words.begins[late] - first, words.ends[late] - first
    kept = Words(("so",) * int(late.sum()), *times, times[1])
    assert one.words == 40
    assert one.coverage == measure_coverage(kept, speech()[first:])
