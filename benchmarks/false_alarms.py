"""Do thresholds over whole streams hold, on people whom nothing was learnt from?

    python -m benchmarks.false_alarms FRAMES [--features f0,voice] [--folds 5] [--impostors FOLDER]

FRAMES is a folder that `benchmarks.build_reference` heard, its background set with it. The readers
are split: rank models, evidence and maxima are learnt on four parts of them, which are also who is
enrolled (a chapter each), and the fifth part is judged. Every reader of it is heard as a stream,
watched as several of the enrolled in turn: how often are thresholds exceeded within so long a
stream that `Monitor.false_alarms` works out for 5, 10 and 20 %? Beside them plain thresholds, and
for every k the share of streams that ever showed k bits of evidence, where Ville's inequality would
allow 2^-k. Then the readers with further chapters are enrolled as well and watched as themselves in
these: how long until each threshold is exceeded? Streams are taken as long as the frames are, and
nobody is heard again in them.

``--long FRAMES`` adds readers' frames that go on for longer, to judge streams of ten minutes by
(`--frames`); ``--impostors FOLDER`` judges the same thresholds on another corpus, a file a
speaker. Prints tables.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path

import numpy as np

from benchmarks.build_reference import (
    TEMPLATE_SPEECH_SECONDS,
    _chapter,
    _manifest,
)
from benchmarks.hear import BACKGROUND, trainers
from monitor import Monitor, Population
from monitor.alerts.rules import figure
from monitor.corpus import find
from monitor.errors import UsageError
from monitor.features.framing import join_tracks
from monitor.jobs import cores, each_in_order
from monitor.maths.composition import clopper_pearson
from monitor.sources.frames import FramesFile
from monitor.training.calibrating import CalibrationSettings, calibrate, stream_of, with_maxima
from monitor.training.enrolling import enrol
from monitor.training.voices import SpeakerSpeech, cohort_of, collect
from monitor.types import FloatArray, Frames

LENGTHS = (1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0)
SHARES = (0.05, 0.1, 0.2)
HORIZONS = (60.0, 300.0, 600.0)
FIELDS = ("bits", "closed_set_bits")
PLAIN = {"bits": (3.0, 6.0), "closed_set_bits": (2.0, 4.0)}
WATCHED = 4
"""Enrolled people that each impostor is watched as."""


@dataclass
class Found:
    """Maxima of impostors and times of true speakers, by field.

    Attributes:
        crossed: by field, rule and horizon: one flag a stream and watched speaker, in lists of one
            impostor.
        refused: rules that there are too few speakers for.
        reached: by field: the largest value of each impostor's stream.
        times: by field and rule: seconds until a true speaker exceeded it; infinity for never.
    """

    crossed: dict[tuple[str, str, float], list[list[bool]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    refused: set[tuple[str, str, float]] = field(default_factory=set)
    reached: list[float] = field(default_factory=list)
    times: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: Found) -> None:
        """Take up what another part of the readers brought."""
        for key, flags in other.crossed.items():
            self.crossed[key] += flags
        for key2, seconds in other.times.items():
            self.times[key2] += seconds
        self.refused |= other.refused
        self.reached += other.reached


def main() -> None:
    parser = argparse.ArgumentParser(description="False alarms over whole streams.")
    parser.add_argument("frames", type=Path)
    parser.add_argument("--features", default="f0,voice")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--long", type=Path)
    parser.add_argument("--impostors", type=Path)
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    features = tuple(given.features.split(","))
    population, voices = prepared(given.frames, features)
    trained = trainers(given.frames)
    judged = [v for v in voices if not any(v.name in trained.get(f, ()) for f in features)]
    parts = [{v.name for v in judged[i :: given.folds]} for i in range(given.folds)]
    longer = dict(heard_of(given.long, features))
    impostors = list(dict(heard_of(given.impostors, features)).items())
    own, others = Found(), Found()
    work = partial(part, population, voices, trained, features, longer, impostors)
    for mine, theirs in each_in_order(work, parts, given.jobs):
        own.add(mine)
        others.add(theirs)
        print(f"{len(own.reached)} streams judged", file=sys.stderr)
    print(f"{'+'.join(features)}, {len(judged)} readers in {given.folds} parts\n")
    tables(own)
    if impostors:
        print(f"\n{given.impostors.name}, each under the thresholds of every part\n")
        tables(others, given.folds)


def prepared(frames: Path, features: Sequence[str]) -> tuple[Population, list[SpeakerSpeech]]:
    """Everybody enrolled from a chapter, a cohort, and everybody's speech."""
    rows = [
        {"path": str(path.relative_to(frames)), "speaker": path.parent.name, "chapter": path.stem,
         "seconds": str(FramesFile(path).seconds)}
        for path in sorted(frames.glob("*/*/*.npz"))
    ]  # fmt: skip
    background = [row for row in rows if row["path"].startswith(BACKGROUND)]
    rows = [row for row in rows if row not in background]
    readers = sorted({row["speaker"] for row in rows}, key=int)
    chosen = [_chapter([row for row in rows if row["speaker"] == name]) for name in readers]
    with tempfile.TemporaryDirectory() as folder:

        def corpus(name: str, some: list[dict[str, str]]) -> Path:
            return _manifest(Path(folder) / f"{name}.csv", frames, some)

        made = enrol(
            find(corpus("enrol", chosen)), features=features, seconds=TEMPLATE_SPEECH_SECONDS
        ).population
        voices, _, _ = collect(find(corpus("all", rows)), features=features)
        cohort, _ = cohort_of(find(corpus("others", background)), features=features)
    enrolled = {row["speaker"]: row["chapter"] for row in chosen}
    made = Population(made.speakers, made.offsets, made.features, cohort=cohort)
    return made, [_others_last(voice, rows, enrolled) for voice in voices]


def _others_last(
    voice: SpeakerSpeech, rows: list[dict[str, str]], enrolled: dict[str, str]
) -> SpeakerSpeech:
    """With the session that was enrolled first."""
    sessions = sorted({row["chapter"] for row in rows if row["speaker"] == voice.name})
    first = sessions.index(enrolled[voice.name])
    order = [first, *(i for i in range(len(voice.sessions)) if i != first)]
    return SpeakerSpeech(
        voice.name,
        tuple(voice.sessions[i] for i in order),
        tuple(voice.speech[i] for i in order),
    )


def heard_of(folder: Path | None, features: Sequence[str]) -> Iterator[tuple[str, Frames]]:
    """By speaker, one stream of the frames of a folder: a file, or a folder, a speaker."""
    for path in [] if folder is None else sorted(folder.glob("**/*.npz")):
        runs = list(FramesFile(path))
        track = {
            name: reduce(join_tracks, [run.tracks[name] for run in runs if name in run.tracks])
            for name in features
        }
        name = path.stem if path.parent == folder else path.parent.name
        yield name, Frames(np.concatenate([run.speech for run in runs]), track)


def part(
    population: Population,
    voices: Sequence[SpeakerSpeech],
    trained: dict[str, set[str]],
    features: tuple[str, ...],
    longer: dict[str, Frames],
    impostors: Sequence[tuple[str, Frames]],
    out: set[str],
) -> tuple[Found, Found]:
    """Learn on all but some readers, and judge these, and the impostors."""
    known = [voice for voice in voices if voice.name not in out]
    enrolled = population
    for name in out:
        enrolled = enrolled.without(name)
    specs = population.specs
    made = calibrate(
        known,
        specs,
        CalibrationSettings(
            lengths=LENGTHS,
            template_lengths=[population.scoring().seconds],
            sets=sorted({(name,) for name in features} | {features}),
            trained=trained,
            replicates=20,
            prior=None,
            cohort=population.cohort,
        ),
    )
    enrolled = with_maxima(
        enrolled.calibrated(made),
        known,
        trained=trained,
        is_measured=lambda rank_model: (
            rank_model.session == "cross" and set(rank_model.features) == set(features)
        ),
    )
    generator = np.random.default_rng(len(out))
    own, others = Found(), Found()
    for voice in (voice for voice in voices if voice.name in out):
        stream = stream_of(voice, features, max(HORIZONS))
        if voice.name in longer and longer[voice.name].speech.size > stream.speech.size:
            stream = longer[voice.name]
        judge(own, enrolled, features, stream, generator)
        if len(voice.sessions) > 1:
            rest = SpeakerSpeech(voice.name, voice.sessions[1:], voice.speech[1:])
            with_them = population
            for name in out - {voice.name}:
                with_them = with_them.without(name)
            wait(own, with_them.with_rank_models(enrolled.rank_models), voice.name, features, rest)
    for _, stream in impostors:
        judge(others, enrolled, features, stream, generator, watched=1)
    return own, others


def judge(
    found: Found,
    population: Population,
    features: tuple[str, ...],
    stream: Frames,
    generator: np.random.Generator,
    watched: int = WATCHED,
) -> None:
    """An impostor's stream, watched as some of the enrolled."""
    names = generator.permutation(population.names)[:watched].tolist()
    flags: dict[tuple[str, str, float], list[bool]] = defaultdict(list)
    for name in names:
        monitor = Monitor(population, features, name)
        table = run(monitor, stream)
        found.reached.append(float(np.nanmax(table[:, 1])))
        for f, each in enumerate(FIELDS):
            for horizon in HORIZONS:
                if stream.speech.size < 100 * horizon:
                    continue
                most = np.nanmax(table[table[:, 0] <= horizon, 1 + f])
                for rule, bits in thresholds(monitor, each, horizon, found):
                    flags[each, rule, horizon].append(bool(most > bits))
    for key, of_impostor in flags.items():
        found.crossed[key].append(of_impostor)


def wait(
    found: Found,
    population: Population,
    name: str,
    features: tuple[str, ...],
    rest: SpeakerSpeech,
) -> None:
    """The true speaker's stream: how long until each rule is exceeded."""
    monitor = Monitor(population, features, name)
    table = run(monitor, stream_of(rest, features, max(HORIZONS)))
    for f, each in enumerate(FIELDS):
        for rule, bits in thresholds(monitor, each, 300.0, found):
            over = table[table[:, 1 + f] > bits, 0]
            found.times[each, rule].append(float(over[0]) if over.size else np.inf)


def thresholds(
    monitor: Monitor, each: str, horizon: float, found: Found
) -> Iterator[tuple[str, float]]:
    """What every rule comes to here."""
    for share in SHARES:
        try:
            yield f"{100 * share:g} %", monitor.false_alarms(each, share, horizon).bits
        except UsageError:
            found.refused.add((each, f"{100 * share:g} %", horizon))
    for bits in PLAIN[each]:
        yield f"> {bits:g}", bits


def run(monitor: Monitor, stream: Frames) -> FloatArray:
    """Seconds and fields of every reading, shape (R, 1 + fields)."""
    readings = monitor.push(stream)
    rows = [[r.seconds, *(figure(field, r) for field in FIELDS)] for r in readings]
    return np.array(rows, dtype=np.float64)


def tables(found: Found, times: int = 1) -> None:
    """What came of it, each impostor having been judged so many times."""
    print("| field | rule | " + " | ".join(f"{h / 60:g} min" for h in HORIZONS) + " |")
    print("| --- | --- |" + " --- |" * len(HORIZONS))
    for each in FIELDS:
        rules = [f"{100 * share:g} %" for share in SHARES] + [f"> {b:g}" for b in PLAIN[each]]
        for rule in rules:
            cells = [_share(found, (each, rule, h), times) for h in HORIZONS]
            print(f"| {each} | {rule} | " + " | ".join(cells) + " |")
    if found.times:
        print("\n| field | rule | alerted | median, s | 90 %, s |\n| --- | --- | --- | --- | --- |")
        for (each, rule), seconds in found.times.items():
            alerted = f"{sum(np.isfinite(seconds))} of {len(seconds)}"
            half, most = (_seconds(seconds, q) for q in (0.5, 0.9))
            print(f"| {each} | {rule} | {alerted} | {half} | {most} |")
    print(f"\n| k bits | ever shown, of {len(found.reached)} | 2^-k |\n| --- | --- | --- |")
    for k in range(1, 8):
        shown = np.mean(np.array(found.reached) >= k)
        print(f"| {k} | {100 * shown:.1f} % | {100 * 2.0**-k:.1f} % |")


def _share(found: Found, key: tuple[str, str, float], times: int) -> str:
    """Of streams that exceeded it, mean over impostors, with limits as if each counted once."""
    flags = found.crossed.get(key)
    if not flags:
        return "refused" if key in found.refused else "no such streams"
    share = float(np.mean([np.mean(each) for each in flags]))
    impostors = len(flags) // times
    low, high = clopper_pearson(round(share * impostors), impostors)
    return f"{100 * share:.1f} % ({100 * low:.0f} to {100 * high:.0f}), {impostors} impostors"


def _seconds(seconds: Sequence[float], share: float) -> str:
    """A quantile of times to wait, never among them."""
    value = float(np.quantile(seconds, share, method="inverted_cdf"))
    return "never" if np.isinf(value) else f"{value:.0f}"


if __name__ == "__main__":
    main()
