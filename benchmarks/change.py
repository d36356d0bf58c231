"""Streams spliced of readers' turns: how soon and how surely another voice or channel is noticed.

The readers are in two halves: settings were chosen on one, the other one is reported; the
population is always the half that does not speak. A frame that audio of both readers would have
been in is left out. Every reader has a channel of their own, so that sets with ``channel`` notice a
change of both. FRAMES (`monitor enrol SPEECH -o people.npz --frames`) holds
CORPUS/SPEAKER/CHAPTER.npz; what is not there is heard, as the levels of the channel always are.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, around
from monitor.corpus import find
from monitor.events.reading import Reading
from monitor.events.run import Change
from monitor.features.channel import Channel
from monitor.features.extractor import Extractor
from monitor.features.framing import join_frames
from monitor.features.registry import get_change_sensitivity, make
from monitor.kinds import EMBEDDING, HISTOGRAM
from monitor.maths.statistics import limits, speaker_weights
from monitor.population.population import Population
from monitor.protocols import StreamInfo
from monitor.sources.file import File
from monitor.sources.frames import FramesFile
from monitor.stream.monitor import Monitor
from monitor.stream.speaker_changes import ChangeDetector, FollowedFeature
from monitor.training.enrolling import enrol
from monitor.types import TICKS_PER_SECOND, Block, FloatArray, Frames, Track
from recipes.voice.corpus import recordings
from tests.stream.streams import Listed

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean", "long")

SHORTEST, LONGEST = 30, 180

TEMPLATE_SECONDS = 120

CHANNEL_SECONDS = 90
AROUND_SECONDS, TURNS, SOON_SECONDS = 120, 10, 60
REPLIES_SECONDS, TURNS_SECONDS = (20, 120), (20, 40, 60)
Detector = Callable[[], ChangeDetector]


@dataclass(frozen=True)
class Reader:
    """One person: their chapters."""

    name: str
    sex: str
    chapters: tuple[Path, ...]
    frames: tuple[Frames, ...]


@dataclass(frozen=True)
class Spliced:
    """A stream of several turns: who speaks, and the tick at which each turn ends."""

    frames: Frames
    ends: tuple[int, ...]
    turns: tuple[Reader, ...]


@dataclass(frozen=True)
class Halves:
    """Who speaks, and what the half that does not speak is followed by."""

    speakers: list[Reader]
    background: dict[str, FollowedFeature]

    @classmethod
    def of(cls, readers: list[Reader], features: Sequence[str], half: str) -> Halves:
        """The half that was chosen on, or the one that is reported."""
        which = ("choosing", "reporting").index(half)  # by turns: both sexes, all corpora
        return cls(readers[which::2], population(readers[1 - which :: 2], features))

    def detector(self, names: Sequence[str], *, returns: bool = True) -> Detector:
        """Of some features."""
        some = {name: self.background[name] for name in names}
        return lambda: ChangeDetector(some, returns=returns)

    def alone(self) -> list[Frames]:
        """Every chapter by itself."""
        return [frames for reader in self.speakers for frames in reader.frames]


@benchmark()
def change(
    page: Page,
    speech: Path,
    *,
    frames: Path | None = None,
    features: tuple[str, ...] = (*FEATURES, "channel"),
    half: str = "reporting",
    streams: int = 200,
    seed: int = 1,
    channel: int = 0,
) -> None:
    """How soon and how surely is a change of speaker or channel noticed?

    Streams of two to five turns of 30 s to 3 min; every chapter on its own for false alarms. With
    --channel N also N readers from audio, 90 s as they are, then 90 s through a telephone's band,
    with noise at 20 dB, or at a quarter of the level.
    """
    halves = Halves.of(listen(speech, frames, features), features, half)
    rng = np.random.default_rng(seed)
    spliced = [splice(halves.speakers, rng) for _ in range(streams)]
    turns = sum(len(stream.turns) - 1 for stream in spliced)
    page.note(f"{len(halves.speakers)} readers; {turns} changes in {streams} streams; "
              f"{hours(halves.alone()):.1f} h of one reader alone")  # fmt: skip
    page.table(
        "features | false alarms an hour | other sex: missed, median delay "
        "| same sex: missed, median delay",
        (
            ["+".join(names), *row(halves.detector(names), halves.alone(), spliced)]
            for names in feature_sets(features)
        ),
    )
    if channel:
        page.table(
            "from then on | f0 alone: missed | channel: missed, median and 90 % delay",
            (through_row(halves, name, channel, features) for name in CHANNELS),
        )


@benchmark()
def replies(
    page: Page,
    speech: Path,
    frames: Path,
    *,
    features: tuple[str, ...] = ("f0", "voice", "channel"),
    half: str = "reporting",
    streams: int = 200,
    seed: int = 1,
) -> None:
    """Is a reply within one person's speech noticed, and when the first voice is back?

    Two minutes of a reader, another one for 20 or 120 s, the first again. And two readers in turn,
    ten turns of one length. Chapters that FRAMES holds.
    """
    halves = Halves.of(listen(speech, frames, features, ready_only=True), features, half)
    rng, speakers = np.random.default_rng(seed), halves.speakers
    answered = {s: [reply(speakers, rng, s) for _ in range(streams)] for s in REPLIES_SECONDS}
    talks = {s: [dialogue(speakers, rng, s) for _ in range(streams // 5)] for s in TURNS_SECONDS}

    def rows() -> Iterator[list[str]]:
        for names in (*((name,) for name in FEATURES if name in features), features):
            quick = halves.detector(names, returns=False)
            shares = [
                np.mean([told for each in some for told in seen(quick(), each)])
                for some in talks.values()
            ]
            found = [
                judged_replies([told(halves.detector(names)(), each) for each in some])
                for some in answered.values()
            ]
            noticed, early, close, after = np.array(found).T
            yield [
                "+".join(names),
                f"{', '.join(f'{100 * share:.0f}' for share in shares)} %",
                *(f"{', '.join(f'{100 * x:.0f}' for x in part)} %" for part in (noticed, early)),
                f"{', '.join(f'{100 * x:.0f}' for x in close)} %, "
                f"{', '.join(f'{x:.0f}' for x in after)} s",
            ]

    page.table(
        f"features | dialogue of {', '.join(map(str, TURNS_SECONDS))} s "
        f"| reply of {', '.join(map(str, REPLIES_SECONDS))} s noticed | back too early "
        f"| back within {SOON_SECONDS} s, median",
        rows(),
    )


@benchmark("truth")
def stretches(page: Page, speech: Path, nonnative: Path, *, people: int = 26) -> None:
    """Does the choice of the stretch that says most keep ratios of other people true?

    Two non-native speakers whom the networks have not heard speak for 30 s each, and every further
    one, whose template joins the shipped readers', is watched for: with the choice that a reading
    makes and without. The ratio of who does not speak should be 1 on average.
    """
    apart = [each.speaker for each in recordings(speech, nonnative) if each.role == "held out"]
    everybody = find(nonnative)
    chosen = [each for each in everybody if each.speaker in apart[:people]]
    corpus = replace(everybody, recordings=tuple(chosen))
    base, templates = (
        Population.reference().only(FEATURES),
        enrol(corpus, features=FEATURES, seconds=30),
    )
    heard = [(each.speaker, hear(each.path, FEATURES)) for each in corpus]
    speakers, watched = heard[: len(heard) // 2], heard[len(heard) // 2 :]
    ticks = 30 * TICKS_PER_SECOND

    def bits(population: Population, name: str, rule: str, pair: Sequence[Frames]) -> list[float]:
        """Of somebody along a stream of two others, from 10 s of speech on."""
        pieces = [part(frames, 0, ticks, fresh=i > 0) for i, frames in enumerate(pair)]
        whole = joined(pieces, []).frames
        ends = range(TICKS_PER_SECOND, whole.speech.size + 1, TICKS_PER_SECOND)
        spoken = Listed([part(whole, end - TICKS_PER_SECOND, end, fresh=False) for end in ends])
        specs = {each.spec.name: each.spec for each in make(FEATURES)}
        spoken.stream_info = StreamInfo(audio=False, tracks=specs)
        events = Monitor(population, FEATURES, watch=name, on_change=rule).events(spoken)
        found = [e.evidence_bits for e in events if isinstance(e, Reading) and e.speech >= 10.0]
        return [each for each in found if each is not None]

    def rows() -> Iterator[list[str]]:
        for rule, choice in (("note", "as a reading does"), ("ignore", "without")):
            found = []
            for name, _ in watched:
                population = base.extended(templates.population.chosen([name]))
                pairs = pairwise(frames for _, frames in speakers)
                told = [bits(population, name, rule, pair) for pair in pairs]
                found.append([(2.0 ** each[-1], float(max(each) >= 3)) for each in told])
            cells = []
            for each in np.moveaxis(np.array(found), -1, 0).mean(axis=2):
                weights = speaker_weights(each.size, 1000)
                cells.append(around(each.mean(), *limits(weights @ each / weights.sum(axis=1))))
            yield [choice, *cells]

    page.note(f"{len(watched)} people watched for in {len(speakers) - 1} streams of two others")
    page.table("choice of the stretch | mean ratio at the end | ever reach 3 bits", rows())


def feature_sets(features: Sequence[str]) -> list[tuple[str, ...]]:
    """Each alone, f0 with an embedding, all; with the channel and without."""
    sets: list[tuple[str, ...]] = [(name,) for name in features]
    voices: list[tuple[str, ...]] = [("f0", "phones"), ("f0", "voice"), ("f0", "phones", "voice")]
    wanted = [*voices, *((*names, "channel") for names in voices), tuple(features)]
    sets += [names for names in wanted if set(names) <= set(features)]
    return list(dict.fromkeys(sets))


# -------------------------------------------------------------------------------------- the streams


def listen(
    speech: Path, folder: Path | None, features: Sequence[str], *, ready_only: bool = False
) -> list[Reader]:
    """The frames of every reader, sexes apart; a chapter shorter than a turn is left out."""
    rows = list(csv.DictReader((speech / "manifest.csv").open(encoding="utf-8")))
    people: dict[tuple[str, str], list[tuple[Path, Frames]]] = {}
    for row in rows:
        if row["corpus"] not in CORPORA or float(row["seconds"]) < SHORTEST + 1:
            continue
        ready = folder / Path(row["path"]).with_suffix(".npz") if folder is not None else None
        if ready is not None and ready.exists():
            frames = reduce(join_frames, (r for r in FramesFile(ready) if isinstance(r, Frames)))
            if "channel" in features:
                levels = hear(speech / row["path"], ["channel"]).tracks["channel"]
                frames = replace(frames, tracks={**frames.tracks, "channel": levels})
        elif ready_only or (folder is not None and row["corpus"] == "long"):
            continue  # an hour of another language, only worth it where it is ready or quick
        else:
            frames = hear(speech / row["path"], features)
        chapters = people.setdefault((row["gender"], row["speaker"]), [])
        chapters.append((speech / row["path"], frames))
    return [
        Reader(name, sex, tuple(path for path, _ in heard), tuple(frames for _, frames in heard))
        for (sex, name), heard in sorted(people.items())
    ]


def hear(path: Path, features: Sequence[str], seconds: float | None = None) -> Frames:
    blocks = (b for b in File(path, end_seconds=seconds) if isinstance(b, Block))
    return extract(blocks, features)


def extract(blocks: Iterable[Block], features: Sequence[str]) -> Frames:
    named = [name for name in features if name != "channel"]
    extractor = Extractor([*make(named), *([Channel()] if "channel" in features else [])])
    runs = [extractor.process(block) for block in blocks]
    return reduce(join_frames, [*runs, extractor.flush()])


def part(frames: Frames, begin: int, end: int, *, fresh: bool) -> Frames:
    """A turn: ticks count from its begin; ``fresh`` leaves out frames that reach back before it."""
    tracks = {}
    for name, track in frames.tracks.items():
        first, last = np.searchsorted(track.ticks, [begin, end], side="right")
        chosen = np.arange(first, last)
        if fresh and track.spans is not None:
            chosen = chosen[track.spans[first:last, 0] >= begin]
        elif fresh and track.values.ndim == 2:
            chosen = chosen[1:]
        tracks[name] = Track(track.ticks[chosen] - begin, track.values[chosen])
    return Frames(frames.speech[begin:end], tracks)


def splice(readers: Sequence[Reader], rng: np.random.Generator) -> Spliced:
    turns: list[Reader] = []
    pieces: list[Frames] = []
    for _ in range(rng.integers(2, 6)):
        choice = [reader for reader in readers if not turns or reader is not turns[-1]]
        reader = choice[rng.integers(len(choice))]
        frames = reader.frames[rng.integers(len(reader.frames))]
        whole = frames.speech.size // TICKS_PER_SECOND
        seconds = min(int(rng.integers(SHORTEST, LONGEST + 1)), whole)
        begin = int(rng.integers(0, whole - seconds + 1)) * TICKS_PER_SECOND
        end = begin + seconds * TICKS_PER_SECOND
        pieces.append(part(frames, begin, end, fresh=bool(turns)))
        turns.append(reader)
    return joined(pieces, turns)


def joined(pieces: Sequence[Frames], turns: Sequence[Reader]) -> Spliced:
    """One stream of these turns."""
    ends = np.cumsum([piece.speech.size for piece in pieces])
    tracks = {}
    for name in pieces[0].tracks:
        ticks = [
            piece.tracks[name].ticks + end - piece.speech.size
            for piece, end in zip(pieces, ends, strict=True)
        ]
        values = [piece.tracks[name].values for piece in pieces]
        tracks[name] = Track(np.concatenate(ticks), np.concatenate(values))
    speech = np.concatenate([piece.speech for piece in pieces])
    return Spliced(Frames(speech, tracks), tuple(ends.tolist()), tuple(turns))


def population(readers: Sequence[Reader], features: Sequence[str]) -> dict[str, FollowedFeature]:
    """What the features of these people are followed by."""
    background = {}
    for name in features:
        if name == "channel":
            nobody = np.empty((0, Channel.spec.size))
            background[name] = FollowedFeature(Channel.spec.kind, nobody, Channel.follow)
            continue
        tracks = [reader.frames[0].tracks[name] for reader in readers]
        kind = EMBEDDING if tracks[0].values.ndim == 2 else HISTOGRAM  # no network need be here
        size = make([name])[0].spec.size if kind.counted else kind.size_of(tracks[0].values, None)
        sketches = [kind.sketch(size) for _ in tracks]
        for sketch, track in zip(sketches, tracks, strict=True):
            sketch.learn_many(track.values[track.ticks <= TEMPLATE_SECONDS * TICKS_PER_SECOND])
        how = get_change_sensitivity(name)
        assert how is not None, name
        totals = np.array([sketch.total for sketch in sketches])
        background[name] = FollowedFeature(kind, totals, how)
    return background


def reply(readers: Sequence[Reader], rng: np.random.Generator, seconds: int) -> Spliced:
    """One reader, another one for so long, the first one again (of the same chapter)."""
    long = 2 * AROUND_SECONDS * TICKS_PER_SECOND
    able = [
        (reader, frames)
        for reader in readers
        for frames in reader.frames
        if frames.speech.size >= long
    ]
    first, own = able[rng.integers(len(able))]
    others = [reader for reader in readers if reader is not first]
    second = others[rng.integers(len(others))]
    other = second.frames[rng.integers(len(second.frames))]
    ticks = min(seconds * TICKS_PER_SECOND, other.speech.size)
    half = long // 2
    at = int(rng.integers(0, own.speech.size - long + 1))
    begin = int(rng.integers(0, other.speech.size - ticks + 1))
    pieces: list[Frames] = [
        part(own, at, at + half, fresh=False),
        part(other, begin, begin + ticks, fresh=True),
        part(own, at + half, at + long, fresh=True),
    ]
    return joined(pieces, [first, second, first])


def dialogue(readers: Sequence[Reader], rng: np.random.Generator, seconds: int) -> Spliced:
    """Two readers in turn, each from the begin of a chapter that is long enough for all turns."""
    ticks = seconds * TICKS_PER_SECOND
    long = {
        reader.name: [f for f in reader.frames if f.speech.size >= TURNS // 2 * ticks]
        for reader in readers
    }
    able = [reader for reader in readers if long[reader.name]]
    pair = [able[i] for i in rng.permutation(len(able))[:2]]
    chapters = [long[r.name][rng.integers(len(long[r.name]))] for r in pair]
    turns = [(which, i * ticks) for i in range(TURNS // 2) for which in (0, 1)]
    pieces = [
        part(chapters[which], at, at + ticks, fresh=n > 0) for n, (which, at) in enumerate(turns)
    ]
    return joined(pieces, [pair[which] for which, _ in turns])


# ---------------------------------------------------------------------------------------- the count


def changes(detector: ChangeDetector, frames: Frames) -> list[Change]:
    """What is reported along a stream, a step a second."""
    edges = np.arange(0, frames.speech.size + 1, TICKS_PER_SECOND)
    cuts = {
        name: np.searchsorted(track.ticks, edges, side="right")
        for name, track in frames.tracks.items()
    }
    found = []
    for i, (_, tick) in enumerate(pairwise(edges.tolist())):
        step = {n: t.values[cuts[n][i] : cuts[n][i + 1]] for n, t in frames.tracks.items()}
        change = detector.update(step, tick)
        if change is not None:
            found.append(change)
    return found


def hours(runs: Iterable[Frames]) -> float:
    return sum(frames.speech.size for frames in runs) / TICKS_PER_SECOND / 3600


def row(detector: Detector, alone: Sequence[Frames], streams: Sequence[Spliced]) -> list[str]:
    """False alarms an hour, and what became of the changes to the other sex and within one."""
    alarms = sum(len(changes(detector(), frames)) for frames in alone)
    found: dict[bool, list[float | None]] = {False: [], True: []}
    for stream in streams:
        reports = [change.seconds for change in changes(detector(), stream.frames)]
        for i, (begin, end) in enumerate(pairwise(stream.ends)):
            same = stream.turns[i].sex == stream.turns[i + 1].sex
            found[same].append(delay(reports, begin, end))
    return [f"{alarms / hours(alone):.2f}", *(delays(found[same], 0.5) for same in found)]


def delay(reports: Iterable[float], begin: int, end: int) -> float | None:
    """Seconds from a change to the first report before the next; None where it was missed."""
    late = (seconds - begin / TICKS_PER_SECOND for seconds in reports)
    return next((each for each in late if 0 < each <= (end - begin) / TICKS_PER_SECOND), None)


def delays(found: Sequence[float | None], *quantiles: float) -> str:
    """Misses, and quantiles of the delays of what was found."""
    known = [each for each in found if each is not None]
    missed = f"{100 * (1 - len(known) / len(found)):.0f} %" if found else "-"
    told = np.quantile(known, quantiles).tolist() if known else []
    return ", ".join([missed, *(f"{each:.0f} s" for each in told)])


def told(detector: ChangeDetector, stream: Spliced) -> tuple[float | None, list[float]]:
    """Seconds from the begin of the reply until it is noticed, and from its end until each back."""
    begin, end, _ = (tick / TICKS_PER_SECOND for tick in stream.ends)
    noticed, back = None, []
    for change in changes(detector, stream.frames):
        if change.back and noticed is not None:
            back.append(change.seconds - end)
        elif noticed is None and begin < change.seconds <= end:
            noticed = change.seconds - begin
    return noticed, back


def seen(detector: ChangeDetector, stream: Spliced) -> list[bool]:
    """Of each change of a dialogue, whether anything was told before the next one."""
    told_at = [change.seconds * TICKS_PER_SECOND for change in changes(detector, stream.frames)]
    return [any(begin < at <= end for at in told_at) for begin, end in pairwise(stream.ends)]


def judged_replies(
    found: Sequence[tuple[float | None, list[float]]],
) -> tuple[float, float, float, float]:
    """Shares noticed, taken to be back too early, back soon after; and after how many seconds."""
    noticed = [back for at, back in found if at is not None]
    early = [any(late <= 0 for late in back) for back in noticed]
    soon = [min(later) for back in noticed if (later := [b for b in back if b > 0])]
    close = sum(late <= SOON_SECONDS for late in soon) / max(len(noticed), 1)
    return len(noticed) / len(found), float(np.mean(early)), close, float(np.median(soon))


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


def through_row(halves: Halves, name: str, count: int, features: tuple[str, ...]) -> list[str]:
    """What became of changes of channel alone."""
    begin = CHANNEL_SECONDS * TICKS_PER_SECOND
    heard = [through(r.chapters[0], name, features) for r in halves.speakers[:count]]
    cells = [name]
    for names, quantiles in ((["f0"], ()), (["channel"], (0.5, 0.9))):
        reports = [changes(halves.detector(names)(), frames) for frames in heard]
        found = [delay((c.seconds for c in each), begin, 2 * begin) for each in reports]
        cells.append(delays(found, *quantiles))
    return cells


def through(path: Path, name: str, features: Sequence[str]) -> Frames:
    """Speech as it was recorded, then as through a channel."""
    blocks = [b for b in File(path, end_seconds=2.0 * CHANNEL_SECONDS) if isinstance(b, Block)]
    samples, rate = np.concatenate([b.samples.ravel() for b in blocks]), blocks[0].rate
    cut = CHANNEL_SECONDS * rate
    late = CHANNELS[name](samples[cut:].astype(np.float64), rate)
    whole = np.concatenate([samples[:cut], late]).astype(np.float32)
    return extract([Block(whole, rate)], features)
