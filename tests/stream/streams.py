"""What the tests of the stream share: streams in any cutting, and small populations."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from benchmarks.simulation import Simulation
from monitor import Monitor, MonitorSettings, Population
from monitor.events.reading import Reading
from monitor.features.embeddings import Voice
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.people import SourceNote, Speaker
from monitor.population.rank_model import RankModel, RankModels
from monitor.protocols import Provenance, Source, StreamInfo
from monitor.run import Run
from monitor.sources import BaseSource
from monitor.stream.records import RunTotals, placed
from monitor.stream.stream import Event
from monitor.types import Block, FloatArray, Frames, Item, Track
from tests.contracts import voice
from tests.population.rank_models import evidence_model

RATE = 16_000
WATCHED = "19"
sounds = cache(voice)


class Listed(BaseSource[Item]):
    """A source that gives what it was given, perhaps one that would be known again."""

    label = "listed"
    labels: tuple[str, ...] = ()
    seconds: float | None = None

    def __init__(
        self,
        items: Iterable[Item],
        labels: Sequence[str] = ("listed",),
        provenance: tuple[Provenance, ...] | None = None,
    ) -> None:
        self._items, self.labels, self._provenance = items, tuple(labels), provenance
        frames = isinstance(items, Sequence) and any(isinstance(each, Frames) for each in items)
        tracks = two_features().specs | {"voice": Voice.spec}
        self.stream_info = StreamInfo(audio=False, tracks=tracks) if frames else StreamInfo()

    def provenance(self) -> tuple[Provenance, ...] | None:
        return self._provenance

    def items(self) -> Iterator[Item]:
        return iter(self._items)


def run_through(source: Source, monitor: Monitor, **options: Any) -> RunTotals:
    """A whole run of a source."""
    with Run(source, monitor, **options) as run:
        return run.to_end()


@cache
def reference() -> Population:
    """The shipped readers, by pitch alone."""
    return Population.reference().only(["f0"])


@cache
def simulated(seconds: float = 20.0, speaker: int = 3) -> Frames:
    """Pitch frames of a simulated reader."""
    return Simulation(8, seed=1).frames(speaker, 0, seconds)


def audio(samples: FloatArray, cuts: Sequence[int] = (), rate: int = RATE, recording: int = 0):
    """Blocks of one recording."""
    return [Block(part, rate, recording) for part in np.split(samples, cuts)]


def frames(whole: Frames, cuts: Sequence[int] = ()) -> list[Frames]:
    """Runs of ready-made frames, with all that comes in them."""
    runs = []
    for low, high in pairwise([0, *cuts, len(whole.speech)]):
        tracks = {name: track.within(low, high) for name, track in whole.tracks.items()}
        gaps = tuple(each for each in whole.gaps if low < each[0] <= high)
        notices = tuple(each for each in whole.notices if low < each[0] <= high)
        runs.append(Frames(whole.speech[low:high], tracks, gaps, whole.recording, notices))
    return runs


@st.composite
def cuts(draw: st.DrawFn, size: int) -> list[int]:
    """Places to cut at: a few anywhere, and sometimes one every so often."""
    points = draw(st.lists(st.integers(0, size), max_size=6))
    every = draw(st.sampled_from([0, size // 50 + 1, size // 7 + 3]))
    return sorted([*points, *(range(every, size, every) if every else [])])


def told(
    events: Iterable[Event], labels: Sequence[str] = (), on_change: str = "note"
) -> list[dict[str, Any]]:
    """Events as records, readings with their whole posterior: equal means bit for bit."""
    found = []
    for event in events:
        record: dict[str, Any] = {**placed(event, labels, on_change).record()}
        if isinstance(event, Reading):
            record["posterior"] = event.posterior.tolist()
        found.append(record)
    return found


def resumed(
    fresh: Callable[[], Monitor],
    items: Sequence[Item],
    stop: int | Callable[[Event], bool],
    again: Sequence[Item] | None = None,
) -> list[dict[str, Any]]:
    """All that is told of a stream that stops after an event and goes on with a new monitor."""
    first, second = fresh(), fresh()
    seen: list[Event] = []
    for event in first.events(Listed(items)):
        seen.append(event)
        if stop(event) if callable(stop) else len(seen) == stop:
            break
    plain, arrays = first.state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    second.restore(json.loads(json.dumps(plain)), arrays)
    assert json.dumps(second.state()[0]) == json.dumps(plain)
    assert all(np.array_equal(second.state()[1][name], arrays[name]) for name in arrays)
    rest = second.events(Listed(items if again is None else again))
    return told(seen, on_change=first.on_change) + told(rest, on_change=first.on_change)


RARER = {field.name for field in fields(MonitorSettings)}


def fresh(population: Population, *arguments: Any, **options: Any) -> Monitor:
    """A monitor by options, the rarer ones of which are `MonitorSettings`."""
    rarer = {name: options.pop(name) for name in RARER & options.keys()}
    return Monitor(population, *arguments, settings=MonitorSettings(**rarer), **options)


def hear(items: Iterable[Item], **options: Any) -> list[dict[str, Any]]:
    """All that a fresh monitor tells of a stream."""
    population = options.pop("population", None) or reference()
    return told(fresh(population, **options).events(Listed(items)))


def readings(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if record["type"] == "reading"]


def gaps(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if record["type"] == "gap"]


def rank_model(
    features: tuple[str, ...], kinds: Sequence[str], session: str = "cross"
) -> RankModel:
    """A rank model made up: some certainty that grows with the length."""
    lengths, templates, replicates = np.array([0.3, 1.0, 10.0]), np.array([10.0]), 5
    grow = np.array([0.9, 0.7, 0.4])[None, :, None] * np.linspace(1, 1.2, replicates)[:, None, None]
    weights = np.repeat(0.1 * (2 - grow)[..., None], len(features), axis=-1)
    names = {"histogram": "log-likelihood", "embedding": "embedding-cosine"}
    return RankModel(
        features=features,
        session=session,
        similarities=tuple(names[kind] for kind in kinds),
        lengths=lengths,
        template_lengths=templates,
        alpha=grow,
        beta=3 - grow,
        binomial=np.zeros(grow.shape, bool),
        weights=weights,
        floor=np.full(grow.shape, 0.05),
        open_set=np.ones((lengths.size, 1, 1 + len(features))),
        rows=(),
        speakers=12,
        candidates=6,
    )


@cache
def two_features() -> Population:
    """Six speakers with templates of pitch and an embedding, and models for each and for both."""
    generator = np.random.default_rng(5)
    speakers = [Speaker(f"s{i}") for i in range(6)]
    f0 = np.repeat(generator.integers(0, 40, (6, 10)), 2, axis=0)
    identity = np.repeat(generator.normal(size=(6, 3)), 2, axis=0)
    features = {
        "f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, 10, 0.01), f0),
        "timbre": FeatureTemplates(FeatureSpec("timbre", EMBEDDING, 3, 0.5), identity),
    }
    rank_models = [
        rank_model(("f0",), ["histogram"]),
        rank_model(("timbre",), ["embedding"]),
        rank_model(("f0", "timbre"), ["histogram", "embedding"]),
    ]
    return Population(speakers, np.arange(0, 13, 2), features, RankModels(rank_models))


@cache
def with_evidence() -> Population:
    """The same, and what says how much a voice is worth in any crowd: a cohort, and rank models."""
    population, generator = two_features(), np.random.default_rng(7)
    timbre = generator.normal(size=(30, 3))
    timbre /= np.linalg.norm(timbre, axis=1, keepdims=True)
    cohort = Cohort(
        np.full(30, 3.0),
        {
            "f0": FeatureTemplates(
                FeatureSpec("f0", HISTOGRAM, 10, 0.01), generator.integers(0, 40, (30, 10))
            ),
            "timbre": FeatureTemplates(FeatureSpec("timbre", EMBEDDING, 3, 0.5), timbre),
        },
    )
    rank_models = [
        replace(rank_model, evidence=evidence_model(rank_model, cohort, replicates=9))
        for rank_model in population.rank_models
    ]
    speakers, offsets, features = population.speakers, population.offsets, population.features
    return Population(speakers, offsets, features, RankModels(rank_models), cohort=cohort)


@cache
def run_reporter() -> Population:
    """The same, of voices that are worth more."""
    population = with_evidence()
    rank_models = []
    for rank_model in population.rank_models:
        assert rank_model.evidence is not None
        more = replace(rank_model.evidence, intercept=rank_model.evidence.intercept + 9.0)
        rank_models.append(replace(rank_model, evidence=more))
    return population.with_rank_models(RankModels(rank_models))


def heard_by_both(seconds: int = 9) -> Frames:
    """Pitch from the first second on, an embedding from the third."""
    generator, ticks = np.random.default_rng(2), 100 * seconds
    late = np.arange(250, ticks + 1, 50)
    return Frames(
        generator.random(ticks) < 0.7,
        {
            "f0": Track(np.arange(1, ticks + 1), generator.integers(0, 10, ticks)),
            "timbre": Track(late, generator.normal(size=(late.size, 3))),
        },
    )


def with_speakers(population: Population, **notes: tuple[SourceNote, ...]) -> Population:
    """The population, and copies of its first speaker under other names."""
    first = slice(*population.offsets[:2])
    features = {
        name: replace(templates, slices=np.tile(templates.slices[first], (len(notes), 1)))
        for name, templates in population.features.items()
    }
    offsets = population.offsets[1] * np.arange(len(notes) + 1)
    speakers = [Speaker(name, sources) for name, sources in notes.items()]
    return population.joined(Population(speakers, offsets, features))


def voice_file(path: Path, seconds: float = 4.0, **options: Any) -> Path:
    """A recording of the synthetic voice."""
    import soundfile

    soundfile.write(path, sounds(seconds), RATE, **options)
    return path
