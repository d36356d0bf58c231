"""How soon and how surely a change of speaker or channel is noticed, on real readers.

    python -m benchmarks.change ../shared/speech --frames FRAMES
    python -m benchmarks.change ../shared/speech --features f0 --half choosing --detectors
    python -m benchmarks.change ../shared/speech --features voice --half choosing --grid

Streams of two to five turns of 30 s to 3 min are spliced from the frames of different readers, and
every chapter is heard on its own for false alarms. FRAMES holds CORPUS/SPEAKER/CHAPTER.npz as
`write_frames` makes them; what is not there is heard (slow with phones), as the levels
of the channel always are. A frame that audio of both readers would have been in is left out. The
readers are in two halves: settings were chosen on one, the other one is reported; the population is
always the half that does not speak. Every reader has a channel of their own, so that sets with
``channel`` notice a change of both.

``--channel N`` splices audio instead: N readers, 90 s as they are, then 90 s through a telephone's
band, with noise at 20 dB, or at a quarter of the level.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from monitor.events.run import Change
from monitor.features.channel import Channel
from monitor.features.extractor import Extractor
from monitor.features.framing import join_frames
from monitor.features.registry import get_change_sensitivity, make
from monitor.kinds import EMBEDDING, HISTOGRAM, Sensitivity
from monitor.sources.file import File
from monitor.sources.frames import FramesFile
from monitor.stream.speaker_changes import ChangeDetector, FollowedFeature
from monitor.types import TICKS_PER_SECOND, Block, FloatArray, Frames, Track

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean", "long")
SHORTEST, LONGEST = 30, 180
TEMPLATE_SECONDS = 120
CHANNEL_SECONDS = 90
CAREFUL = (0.3, 1.0, 10.0)
LEVELS = (0.2, 0.225, 0.25, 0.275, 0.3, 0.325, 0.35)
DELTAS = (1e-2, 3e-3, 1e-3, 3e-4)


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
class Found:
    """What became of one change: its delay, or None where it was missed."""

    same_sex: bool
    audio: float | None
    speech: float | None


def main() -> None:
    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    words.add_argument("speech", type=Path)
    words.add_argument("--frames", type=Path)
    words.add_argument("--features", default="f0,phones,voice,channel")
    words.add_argument("--half", choices=("choosing", "reporting"), default="reporting")
    words.add_argument("--streams", type=int, default=200)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--channel", type=int, default=0)
    words.add_argument("--grid", action="store_true", help="level and delta of embeddings")
    words.add_argument("--detectors", action="store_true", help="ADWIN, PageHinkley and KSWIN")
    asked = words.parse_args()
    features = asked.features.split(",")
    readers = listen(asked.speech, asked.frames, features)
    # alternating, so that each half has both sexes and readers of every corpus
    halves = {"choosing": readers[::2], "reporting": readers[1::2]}
    speakers = halves.pop(asked.half)
    (others,) = halves.values()
    background = population(others, features)
    rng = np.random.default_rng(asked.seed)
    streams = [splice(speakers, rng) for _ in range(asked.streams)]
    hours = sum(f.speech.size for r in speakers for f in r.frames) / TICKS_PER_SECOND / 3600
    turns = sum(len(stream.turns) - 1 for stream in streams)
    print(f"{asked.half} half: {len(speakers)} readers, population of {len(others)} others")
    print(f"{turns} changes in {asked.streams} streams; {hours:.1f} h of one reader alone\n")
    print(f"{'':34}false alarms/h  other sex: missed, delay s    same sex: missed, delay s")
    print(f"{'features':24}careful   alone spliced  (median, 90 %; of speech)")
    if asked.grid:
        grid(features, background, speakers, streams)
        return
    for names in feature_sets(features):
        for careful in CAREFUL:

            def detector(names: Sequence[str] = names, careful: float = careful) -> ChangeDetector:
                return ChangeDetector({n: background[n] for n in names}, careful=careful)

            print(f"{'+'.join(names):24}{careful:7g}{row(detector, speakers, streams)}", flush=True)
    if asked.detectors:
        compare(lambda: ChangeDetector(background), speakers, streams)
    if asked.channel:
        channels(speakers[: asked.channel], features, background)


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


def hear(path: Path, features: Sequence[str]) -> Frames:
    return extract((b for b in File(path) if isinstance(b, Block)), features)


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
    background = {}
    for name in features:
        if name == "channel":
            nobody = np.empty((0, Channel.spec.size))
            background[name] = FollowedFeature(Channel.spec.kind, nobody, Channel.follow)
            continue
        tracks = [reader.frames[0].tracks[name] for reader in readers]
        kind = EMBEDDING if tracks[0].values.ndim == 2 else HISTOGRAM  # no network need be here
        size = kind.size_of(tracks[0].values, None)
        if kind.counted:
            size = make([name])[0].spec.size
        sketches = [kind.sketch(size) for _ in tracks]
        for sketch, track in zip(sketches, tracks, strict=True):
            sketch.learn_many(track.values[track.ticks <= TEMPLATE_SECONDS * TICKS_PER_SECOND])
        background[name] = FollowedFeature(
            kind, np.array([sketch.total for sketch in sketches]), settings_of(name)
        )
    return background


def settings_of(name: str) -> Sensitivity:
    how = get_change_sensitivity(name)
    if how is None:
        raise SystemExit(f"{name} states no settings to follow it with")
    return how


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


def row(
    make_detector: Callable[[], ChangeDetector],
    readers: Sequence[Reader],
    streams: Sequence[Spliced],
) -> str:
    alone = [frames for reader in readers for frames in reader.frames]
    alarms = sum(len(changes(make_detector(), frames)) for frames in alone)
    found: list[Found] = []
    wrong = 0
    for stream in streams:
        reports = [
            round(change.seconds * TICKS_PER_SECOND)
            for change in changes(make_detector(), stream.frames)
        ]
        wrong += sum(tick <= stream.ends[0] for tick in reports)
        for i, (begin, end) in enumerate(pairwise(stream.ends)):
            here = [tick for tick in reports if begin < tick <= end]
            wrong += max(0, len(here) - 1)
            same = stream.turns[i].sex == stream.turns[i + 1].sex
            found.append(judged(stream.frames, same, begin, here))
    return (
        f"{alarms / hours(alone):8.2f}{wrong / hours([s.frames for s in streams]):8.2f}"
        f"  {delays([f for f in found if not f.same_sex])}"
        f"   {delays([f for f in found if f.same_sex])}"
    )


def judged(frames: Frames, same: bool, begin: int, reports: Sequence[int]) -> Found:
    if not reports:
        return Found(same, None, None)
    speech = int(np.count_nonzero(frames.speech[begin : reports[0]]))
    return Found(same, (reports[0] - begin) / TICKS_PER_SECOND, speech / TICKS_PER_SECOND)


def delays(found: Sequence[Found]) -> str:
    """Misses, and the delays of what was found."""
    missed = np.mean([f.audio is None for f in found]) if found else np.nan
    audio = [f.audio for f in found if f.audio is not None] or [np.nan]
    speech = [f.speech for f in found if f.speech is not None] or [np.nan]
    low, high = np.quantile(audio, [0.5, 0.9])
    heard, late = np.quantile(speech, [0.5, 0.9])
    return f"{100 * missed:4.0f} %{low:5.0f}{high:5.0f} ({heard:.0f}, {late:.0f})".ljust(26)


def hours(runs: Iterable[Frames]) -> float:
    return sum(frames.speech.size for frames in runs) / TICKS_PER_SECOND / 3600


def grid(
    features: Sequence[str],
    background: Mapping[str, FollowedFeature],
    readers: Sequence[Reader],
    streams: Sequence[Spliced],
) -> None:
    """Other settings of each embedding alone."""
    for name in (each for each in features if background[each].kind.discerning):
        own = background[name]
        for level, delta in product(LEVELS, DELTAS):
            how = replace(own, how=replace(own.how, level=level, delta=delta))

            def detector(name: str = name, how: FollowedFeature = how) -> ChangeDetector:
                return ChangeDetector({name: how})

            label = f"{name} {level:.2f} {delta:g}"
            print(f"{label:31}{row(detector, readers, streams)}", flush=True)


# ---------------------------------------------------------------------------------- other detectors


class Wrapped:
    """Another of river's detectors in ADWIN's place, on the same margins."""

    def __init__(self, make_detector: Callable[[], Any], **_: Any) -> None:
        self._detector = make_detector()

    @property
    def drift_detected(self) -> bool:
        """Something was noticed."""
        return bool(self._detector.drift_detected)

    def update(self, margin: float) -> None:
        """One more margin."""
        self._detector.update(margin)


def compare(
    make_detector: Callable[[], ChangeDetector],
    readers: Sequence[Reader],
    streams: Sequence[Spliced],
) -> None:
    from river.drift import KSWIN, PageHinkley

    print("\nother detectors on the same margins")
    cases: dict[str, Callable[[], Any]] = {}
    for drop, threshold in ((2.0, 40.0), (4.0, 40.0), (4.0, 80.0), (8.0, 40.0)):
        cases[f"PageHinkley {drop:g} {threshold:g}"] = partial(
            PageHinkley,
            min_instances=9,
            delta=drop,
            threshold=threshold,
            alpha=1.0,
            mode="down",
        )
    for alpha, window in ((1e-2, 20), (1e-3, 40)):
        cases[f"KSWIN {alpha:g} {window}"] = partial(
            KSWIN, alpha=alpha, window_size=window, stat_size=window // 4, seed=1
        )
    for name, case in cases.items():
        with mock.patch("river.drift.ADWIN", partial(Wrapped, case)):
            print(f"{name:31}{row(make_detector, readers, streams)}", flush=True)


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
    "telephone": telephone,
    "noise 20 dB": noisy,
    "quarter level": quiet,
}


def channels(
    readers: Sequence[Reader],
    features: Sequence[str],
    background: Mapping[str, FollowedFeature],
) -> None:
    print(f"\nchannel changes after {CHANNEL_SECONDS} s of one reader; {len(readers)} readers")
    sets = feature_sets(features)
    for name, change in CHANNELS.items():
        heard = [through(reader, change, features) for reader in readers]
        for names in sets:
            found: list[Found] = []
            early = 0
            for frames in heard:
                detector = ChangeDetector({n: background[n] for n in names})
                ticks = [round(c.seconds * TICKS_PER_SECOND) for c in changes(detector, frames)]
                begin = CHANNEL_SECONDS * TICKS_PER_SECOND
                early += sum(tick <= begin for tick in ticks)
                found.append(judged(frames, True, begin, [t for t in ticks if t > begin]))
            print(f"{name:16}{'+'.join(names):24}{delays(found)} before it {early}", flush=True)


def through(
    reader: Reader, change: Callable[[FloatArray, int], FloatArray], features: Sequence[str]
) -> Frames:
    """Speech as it was recorded, then as through a channel."""
    blocks = list(File(reader.chapters[0], end_seconds=2.0 * CHANNEL_SECONDS))
    rate = next(block.rate for block in blocks if isinstance(block, Block))
    samples = np.concatenate([b.samples.ravel() for b in blocks if isinstance(b, Block)])
    cut = CHANNEL_SECONDS * rate
    samples = np.concatenate([samples[:cut], change(samples[cut:].astype(np.float64), rate)])
    return extract([Block(samples.astype(np.float32), rate)], features)


if __name__ == "__main__":
    main()
