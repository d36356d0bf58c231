"""Detection of speaker and channel changes in streams spliced from readers' turns: delay, misses.

The readers are in two halves. Settings were chosen on one half, and results are from the other.
The background is always the half that does not speak. Each reader has their own channel, so sets
with ``channel`` detect a change of both. FRAMES (`monitor enrol SPEECH -o people.npz --frames`)
contains CORPUS/SPEAKER/CHAPTER.npz. Frames of other chapters are extracted from the audio, except
those of the corpus ``long``.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, decode
from monitor.features.channel import Channel
from monitor.features.extractor import Extractor
from monitor.features.framing import join_frames
from monitor.features.registry import get_change_sensitivity, make
from monitor.kinds import EMBEDDING, HISTOGRAM
from monitor.population.population import Population
from monitor.sources.file import File
from monitor.sources.frames import FramesFile
from monitor.stream.speaker_changes import (
    LEAST_LIKENESS,
    ChangeDetector,
    FollowedFeature,
    score_likeness,
    select_cohort,
)
from monitor.stream.totals import FeatureTotals
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, FloatArray, Frames, Track

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean", "long")
SHORTEST, LONGEST, TEMPLATE_SECONDS, CHANNEL_SECONDS = 30, 180, 120, 90


class Reader(NamedTuple):
    """A person and their chapters, as audio files and as frames."""

    name: str
    sex: str
    paths: list[Path]
    chapters: list[Frames]


class Turn(NamedTuple):
    """Part of a chapter: its first tick, and its number of ticks."""

    reader: Reader
    chapter: Frames
    begin: int
    ticks: int


class Spliced(NamedTuple):
    """A stream of several turns: the second at which each turn ends, and its reader."""

    frames: Frames
    ends: list[float]
    readers: list[Reader]


class Halves:
    """The half of the readers that speaks, and the other half as background per feature."""

    def __init__(self, readers: list[Reader], features: Sequence[str]) -> None:
        self.speakers = readers[1::2]  # every other one: both sexes, all corpora
        self.background = {name: create_background(name, readers[::2]) for name in features}

    def select_background(self, names: Sequence[str]) -> dict[str, FollowedFeature]:
        """Return the background of some features."""
        return {name: self.background[name] for name in names}


@benchmark()
def change(
    page: Page, speech: Path,
    *, frames: Path | None = None, features: tuple[str, ...] = (*FEATURES, "channel"),
    streams: int = 200, channel: int = 0,
) -> None:  # fmt: skip
    """How soon and how reliably is a change of speaker or channel detected?

    --channel N also tests N readers from audio. After 90 s of unchanged audio, 90 s follow through
    a telephone's band-pass filter, with noise at an SNR of 20 dB, or at a quarter of the level.
    """
    halves = Halves(load_readers(speech, frames, features), features)
    alone = [frames for reader in halves.speakers for frames in reader.chapters]
    hours = sum(frames.speech.size for frames in alone) / TICKS_PER_SECOND / 3600
    rng = np.random.default_rng(1)
    spliced = [splice(draw_turns(halves.speakers, rng)) for _ in range(streams)]
    page.note(f"{len(halves.speakers)} readers, {hours:.1f} h of one reader alone, "
              f"{sum(len(each.ends) - 1 for each in spliced)} changes")  # fmt: skip

    def row(names: Sequence[str]) -> list[str]:
        background = halves.select_background(names)
        alarms = sum(len(detect_changes(ChangeDetector(background), frames)) for frames in alone)
        delays_by_sex: dict[bool, list[float | None]] = {False: [], True: []}
        for stream in spliced:
            reported = detect_changes(ChangeDetector(background), stream.frames)
            for pair, ends in zip(pairwise(stream.readers), pairwise(stream.ends), strict=True):
                delays_by_sex[pair[0].sex == pair[1].sex].append(find_delay(reported, *ends))
        return [
            "+".join(names),
            f"{alarms / hours:.2f}",
            *(format_delays(x, 0.5) for x in delays_by_sex.values()),
        ]

    without = tuple(name for name in features if name != "channel")
    sets = dict.fromkeys([*((name,) for name in features), without, tuple(features)])
    page.table(
        "features | false alarms an hour | other sex: missed, median delay "
        "| same sex: missed, median delay",
        map(row, sets),
    )

    def through_row(name: str) -> list[str]:
        streams = [
            degrade_second_half(reader.paths[0], name, features)
            for reader in halves.speakers[:channel]
        ]
        cells, span = [name], (float(CHANNEL_SECONDS), 2.0 * CHANNEL_SECONDS)
        for names, quantiles in ((["f0"], ()), (["channel"], (0.5, 0.9))):
            reported = [
                detect_changes(ChangeDetector(halves.select_background(names)), frames)
                for frames in streams
            ]
            delays_found = [find_delay(each, *span) for each in reported]
            cells.append(format_delays(delays_found, *quantiles))
        return cells

    if channel:
        page.table(
            "from then on | f0 alone: missed | channel: missed, median and 90 % delay",
            map(through_row, CHANNELS),
        )


# -------------------------------------------------------------------------------------- the streams


def load_readers(speech: Path, folder: Path | None, features: Sequence[str]) -> list[Reader]:
    """Return the frames of each reader, sorted by sex; omit chapters shorter than a turn."""
    people: dict[tuple[str, str], Reader] = {}
    for row in csv.DictReader((speech / "manifest.csv").open(encoding="utf-8")):
        if row["corpus"] not in CORPORA or float(row["seconds"]) < SHORTEST + 1:
            continue
        path = speech / row["path"]
        ready = folder / Path(row["path"]).with_suffix(".npz") if folder is not None else None
        if ready is not None and ready.exists():
            frames = reduce(join_frames, (r for r in FramesFile(ready) if isinstance(r, Frames)))
            if "channel" in features:
                levels = extract_from_file(path, ["channel"]).tracks["channel"]
                frames = Frames(frames.speech, {**frames.tracks, "channel": levels})
        elif folder is not None and row["corpus"] == "long":
            continue  # an hour in another language: not worth a slow extraction
        else:
            frames = extract_from_file(path, features)
        key = row["gender"], row["speaker"]
        reader = people.setdefault(key, Reader(row["speaker"], row["gender"], [], []))
        reader.paths.append(path)
        reader.chapters.append(frames)
    return [reader for _, reader in sorted(people.items())]


def extract_from_file(path: Path, features: Sequence[str], seconds: float | None = None) -> Frames:
    blocks = (b for b in File(path, end_seconds=seconds) if isinstance(b, Block))
    return extract(blocks, features)


def extract(blocks: Iterable[Block], features: Sequence[str]) -> Frames:
    named = [name for name in features if name != "channel"]
    extractor = Extractor([*make(named), *([Channel()] if "channel" in features else [])])
    runs = [extractor.process(block) for block in blocks]
    return reduce(join_frames, [*runs, extractor.flush()])


def splice(turns: Sequence[Turn]) -> Spliced:
    """Join turns to one stream; omit frames that would contain audio of two turns."""
    ticks, values = defaultdict[str, list[AnyArray]](list), defaultdict[str, list[AnyArray]](list)
    speech, at = list[AnyArray](), 0
    for turn in turns:
        end = turn.begin + turn.ticks
        for name, track in turn.chapter.tracks.items():
            first, last = np.searchsorted(track.ticks, [turn.begin, end], side="right")
            chosen = np.arange(first, last)
            if at and track.spans is not None:
                chosen = chosen[track.spans[first:last, 0] >= turn.begin]
            elif at and track.values.ndim == 2:
                chosen = chosen[1:]
            ticks[name].append(track.ticks[chosen] - turn.begin + at)
            values[name].append(track.values[chosen])
        speech.append(turn.chapter.speech[turn.begin : end])
        at += len(speech[-1])
    tracks = {n: Track(np.concatenate(ticks[n]), np.concatenate(values[n])) for n in ticks}
    ends = np.cumsum([each.size for each in speech]) / TICKS_PER_SECOND
    return Spliced(Frames(np.concatenate(speech), tracks), ends.tolist(), [t.reader for t in turns])


def draw_turns(readers: Sequence[Reader], rng: np.random.Generator) -> list[Turn]:
    """Draw two to five turns; consecutive turns have different readers."""
    drawn: list[Turn] = []
    for _ in range(rng.integers(2, 6)):
        choice = [reader for reader in readers if not drawn or reader is not drawn[-1].reader]
        reader = choice[rng.integers(len(choice))]
        frames = reader.chapters[rng.integers(len(reader.chapters))]
        whole = frames.speech.size // TICKS_PER_SECOND
        seconds = min(int(rng.integers(SHORTEST, LONGEST + 1)), whole)
        begin = int(rng.integers(0, whole - seconds + 1)) * TICKS_PER_SECOND
        drawn.append(Turn(reader, frames, begin, seconds * TICKS_PER_SECOND))
    return drawn


def create_background(name: str, readers: Sequence[Reader]) -> FollowedFeature:
    """Return the background of a feature, from these people."""
    if name == "channel":
        no_templates = np.empty((0, Channel.spec.size))
        return FollowedFeature(Channel.spec.kind, no_templates, Channel.follow)
    tracks = [reader.chapters[0].tracks[name] for reader in readers]
    kind = EMBEDDING if tracks[0].values.ndim == 2 else HISTOGRAM  # needs no network
    size = make([name])[0].spec.size if kind.counted else kind.size_of(tracks[0].values, None)
    sketches = [kind.sketch(size) for _ in tracks]
    for sketch, track in zip(sketches, tracks, strict=True):
        sketch.learn_many(track.values[track.ticks <= TEMPLATE_SECONDS * TICKS_PER_SECOND])
    sensitivity = get_change_sensitivity(name)
    assert sensitivity is not None, name
    return FollowedFeature(kind, np.array([sketch.total for sketch in sketches]), sensitivity)


# ---------------------------------------------------------------------------------------- the count


def detect_changes(detector: ChangeDetector, frames: Frames) -> list[float]:
    """Return the reported changes of a stream in seconds; the detector runs once per second."""
    edges = np.arange(0, frames.speech.size + 1, TICKS_PER_SECOND)
    cuts = {n: np.searchsorted(t.ticks, edges, side="right") for n, t in frames.tracks.items()}
    found = []
    for i, tick in enumerate(edges[1:].tolist()):
        step = {n: t.values[cuts[n][i] : cuts[n][i + 1]] for n, t in frames.tracks.items()}
        change = detector.update(step, tick)
        if change is not None:
            found.append(change.seconds)
    return found


def find_delay(reported: Iterable[float], begin: float, end: float) -> float | None:
    """Return the seconds from a change to its first report; None if it was missed."""
    return next((seconds - begin for seconds in reported if begin < seconds <= end), None)


def format_delays(found: Sequence[float | None], *quantiles: float) -> str:
    """Return the fraction of missed changes, and quantiles of the other delays, as text."""
    known = [each for each in found if each is not None]
    missed = f"{100 * (1 - len(known) / len(found)):.0f} %" if found else "-"
    late = np.quantile(known, quantiles).tolist() if known else []
    return ", ".join([missed, *(f"{each:.0f} s" for each in late)])


# ----------------------------------------------------------------------------------------- channels


def telephone(samples: FloatArray, rate: int) -> FloatArray:
    from scipy.signal import butter, sosfilt

    band = butter(6, [300, min(3400, 0.45 * rate)], "bandpass", fs=rate, output="sos")
    return np.asarray(sosfilt(band, samples), np.float64)


def noisy(samples: FloatArray, rate: int) -> FloatArray:  # noqa: ARG001
    level = np.sqrt(np.mean(samples**2)) / 10  # 20 dB below
    return np.asarray(samples + level * np.random.default_rng(0).standard_normal(samples.size))


def quiet(samples: FloatArray, rate: int) -> FloatArray:  # noqa: ARG001
    return samples / 4


CHANNELS: Mapping[str, Callable[[FloatArray, int], FloatArray]] = {
    "a telephone's band, 300 to 3400 Hz": telephone,
    "noise at 20 dB": noisy,
    "a quarter of the level": quiet,
}


def degrade_second_half(path: Path, name: str, features: Sequence[str]) -> Frames:
    """Return the frames of a recording whose second half passes through a channel."""
    samples, rate = decode(path, 2.0 * CHANNEL_SECONDS)
    samples, cut = samples.ravel(), CHANNEL_SECONDS * rate
    late = CHANNELS[name](samples[cut:].astype(np.float64), rate)
    joined = np.concatenate([samples[:cut], late]).astype(np.float32)
    return extract([Block(joined, rate)], features)


# ------------------------------------------------------------------------------- two recordings


@benchmark()
def recordings(
    page: Page, speech: Path,
    *, features: tuple[str, ...] = ("f0",), seconds: tuple[float, ...] = (30.0, 60.0),
) -> None:  # fmt: skip
    """How well does the similarity of two recordings show whether both are of one person?"""
    chapters, sex = defaultdict[str, list[Path]](list), dict[str, str]()
    for row in csv.DictReader((speech / "manifest.csv").open(newline="")):
        sex[row["speaker"]] = row["gender"]
        if row["corpus"] in ("dev-clean", "train-clean-100"):
            chapters[row["speaker"]].append(speech / row["path"])
    frames_of = {
        reader: [extract_from_file(path, features, max(seconds)) for path in paths[:3]]
        for reader, paths in chapters.items()
        if len(paths) > 1
    }
    choose, judge = (sorted(frames_of)[side::2] for side in (0, 1))

    def rows() -> Iterator[list[str]]:
        for names in (each for each in LEAST_LIKENESS if set(each) <= set(features)):
            for length in seconds:
                voices = {
                    reader: [compute_totals(frames, names, length) for frames in all_of]
                    for reader, all_of in frames_of.items()
                }
                chosen, *_ = score_pairs(voices, choose, names, sex)
                low, least = np.quantile(chosen, 0.05), LEAST_LIKENESS[names]
                page.note(f"5 % are below {low:.2f}; the shipped threshold is {least}")
                found = score_pairs(voices, judge, names, sex)
                counts = (f"{np.sum(each < least)} of {each.size}" for each in found)
                yield ["+".join(names), f"{length:g} s", *counts]

    heads = "one reader taken for two | two readers separated, other sex | same sex"
    page.table(f"features | beginnings | {heads}", rows(), keys=2)


def compute_totals(frames: Frames, names: Sequence[str], seconds: float) -> FeatureTotals:
    """Return the feature totals of the first seconds."""
    ticks, specs = round(seconds * TICKS_PER_SECOND), Population.reference().specs
    totals, counts = {}, {}
    for name in names:
        track, sketch = frames.tracks[name], specs[name].sketch()
        sketch.learn_many(track.values[track.ticks <= ticks])
        totals[name], counts[name] = sketch.total, sketch.frames
    return FeatureTotals(int(frames.speech[:ticks].sum()), totals, counts, counts)


def score_pairs(
    voices: Mapping[str, Sequence[FeatureTotals]], names: Sequence[str], features: Sequence[str],
    sex: Mapping[str, str],
) -> tuple[AnyArray, AnyArray, AnyArray]:  # fmt: skip
    """Return the scores of pairs: one reader, two readers of different sex, two of the same sex."""
    readers = Population.reference()

    def score(one: FeatureTotals, other: FeatureTotals, *left_out: str) -> float:
        is_kept, parts = np.array([name not in left_out for name in readers.names]), []
        for feature in features:
            like = [
                select_cohort(readers, feature, x.speech_seconds)[is_kept] for x in (one, other)
            ]
            kind = readers.specs[feature].kind
            parts.append(score_likeness(kind, one.totals[feature], other.totals[feature], *like))
        return float(np.mean(parts))

    same = [score(a, b, who) for who in names for a, b in combinations(voices[who], 2)]
    different: dict[bool, list[float]] = {False: [], True: []}
    for a, b in combinations(names, 2):
        different[sex[a] == sex[b]].append(score(voices[a][0], voices[b][0], a, b))
    return np.array(same), np.array(different[False]), np.array(different[True])
