"""Bits that a voice discloses second by second from the start of a recording.

The monitor processes each stream with its speaker watched. A stream begins in a pause of a chapter,
or at the beginning of a clip from a person's own microphone. The same audio is also compared with a
population without the speaker, which gives the ratios of others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import orjson
import soundfile

from benchmarks.readers import chapters, create_corpus, equal_speaker_weights, read
from monitor import Monitor
from monitor.events.reading import Reading
from monitor.jobs import each_in_order
from monitor.maths.statistics import weighted_quantile
from monitor.networks.layers import RATE
from monitor.population.population import Population
from monitor.training.enrolling import enrol
from monitor.types import Block, BoolArray, FloatArray, IntArray
from recipes.voice.clips import Person, people
from recipes.voice.world import conditions

LENGTHS = (1.0, 2.0, 3.0, 10.0, 20.0)
OWN = "own microphones"
CONDITIONS = ("clean", "telephone", "babble 10 dB", OWN)
HEADS = (
    "condition | speech | streams, people | first | mean bits | tenth percentile | below zero "
    "| mean LR of others | not yet"
)
STEP_SECONDS = 0.25
SHORT_SECONDS = 3.0
"""Seconds of speech in the shorter streams."""
LONG_AUDIO, SHORT_AUDIO = 40.0, 8.0
TEMPLATE_SECONDS = 30.0
"""Maximum seconds of speech in the templates of people enrolled here."""
_LEAST_PAUSE, _MOST_LEAD, _QUIET_DECIBELS = 0.4, 1.0, 30.0


class Stream(NamedTuple):
    """Audio from the start of a recording, its speaker, and the seconds of speech to process."""

    condition: str
    speaker: str
    recording: str
    start: float
    speech: float
    sound: FloatArray


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the first reading at or after a length of speech.

    Attributes:
        condition, speaker, recording, start: those of the stream.
        length: seconds of speech.
        bits: evidence; None if the reading has none.
        first: whether the speaker has the largest ratio.
        others: mean ratio of all enrolled people if the speaker is not enrolled.
    """

    condition: str
    speaker: str
    recording: str
    start: float
    length: float
    bits: float | None
    first: bool
    others: float | None


def measure_streams(
    speech: Path,
    voices: Path,
    *,
    readers: Collection[str] = (),
    named: Sequence[str] = CONDITIONS,
    starts: int = 6,
    jobs: int = 1,
) -> list[Figures]:
    """Measure streams from the starts of recordings.

    Args:
        speech: folder of readers.
        voices: folder of people at their own microphones.
        readers: names; by default all readers with a chapter that is not enrolled.
        named: keys of `recipes.voice.world.conditions`, or `OWN`.
        starts: number per person; every third has 20 s of speech, the others have 3 s.
        jobs: worker processes.
    """
    reference = Population.reference()
    populations = dict.fromkeys(named, reference)
    streams = list(read_reader_streams(speech, reference, readers, named, starts))
    if OWN in named:
        judges = [p for p in people(voices) if p.role == "judge" and len(p.clips) > 1]
        populations[OWN] = enrol_own_microphones(judges, reference, jobs)
        streams += read_people_streams(judges, populations[OWN], starts)
    found = each_in_order(partial(measure_stream, populations), streams, jobs)
    return [figures for each in found for figures in each]


def read_reader_streams(
    speech: Path, reference: Population, readers: Collection[str], named: Sequence[str], starts: int
) -> Iterator[Stream]:
    """Yield streams from chapters that are not enrolled, in each condition."""
    enrolled = {(s.name, note.label) for s in reference.speakers for note in s.sources}
    by_reader: dict[str, list[dict[str, str]]] = {}
    for row in chapters(speech):
        if (row["speaker"], Path(row["path"]).name) not in enrolled:
            by_reader.setdefault(row["speaker"], []).append(row)
    changes = conditions(speech)
    for name in sorted(set(by_reader).intersection(readers or by_reader)):
        starts_of_chapters = [
            (row["path"], start)
            for row in by_reader[name]
            for start in find_starts(read(speech / row["path"]))
        ]
        for number, index in enumerate(spread_indices(len(starts_of_chapters), starts)):
            (path, start), (audio, most) = starts_of_chapters[index], choose_seconds(number)
            sound = read(speech / path, audio, start)
            for condition in named:
                if condition != OWN:
                    changed = np.asarray(changes[condition](sound, number), np.float32)
                    yield Stream(condition, name, path, start, most, changed)


def choose_seconds(number: int) -> tuple[float, float]:
    """Return the seconds of audio of a stream, and the seconds of speech after which it ends."""
    return (SHORT_AUDIO, SHORT_SECONDS) if number % 3 else (LONG_AUDIO, LENGTHS[-1])


def spread_indices(places: int, count: int) -> list[int]:
    """Return at most ``count`` evenly spaced indices of ``places`` items."""
    chosen = np.linspace(0, places - 1, min(count, places)).round()
    return chosen.astype(int).tolist()  # type: ignore[no-any-return]


def find_starts(sound: FloatArray, minimum_seconds: float = LONG_AUDIO) -> list[float]:
    """Return start times in seconds, in pauses and at least 0.2 s before the next sound.

    At least ``rest`` seconds of the recording follow each start.
    """
    hops = sound[: len(sound) // 160 * 160].reshape(-1, 160)
    power = np.convolve(np.mean(hops**2, axis=1), np.full(3, 1 / 3), "same") + 1e-12
    quiet = 10 * np.log10(power / np.quantile(power, 0.95)) < -_QUIET_DECIBELS
    text = "".join("q" if each else "s" for each in quiet)
    long = round(100 * _LEAST_PAUSE)
    found = [
        (pause.end() - min((pause.end() - pause.start()) / 2, 100 * _MOST_LEAD)) / 100
        for pause in re.finditer(f"q{{{long},}}", text)
    ]
    return [each for each in found if each <= len(sound) / RATE - minimum_seconds]


def enrol_own_microphones(judges: Sequence[Person], reference: Population, jobs: int) -> Population:
    """Return the shipped population with people enrolled from their longest session."""
    sounds = ((person.name, join_clips(split_sessions(person)[0])) for person in judges)
    return enrol_people(reference, sounds, jobs)


def enrol_people(
    reference: Population, sounds: Iterable[tuple[str, FloatArray]], jobs: int
) -> Population:
    """Return a population with people enrolled from a recording each, as `monitor enrol --add`."""
    with TemporaryDirectory() as folder:
        files = []
        for name, sound in sounds:
            path = Path(folder) / f"{name}.wav"
            soundfile.write(path, sound, RATE)
            files.append((path, name, "1"))
        names = tuple(reference.features)
        enrolment = enrol(create_corpus(files), features=names, seconds=TEMPLATE_SECONDS, jobs=jobs)
    return reference.joined(enrolment.population)


def split_sessions(person: Person) -> list[list[Path]]:
    """Return the clips of the session with the most clips, and those of all other sessions."""
    order = sorted(person.clips, key=lambda name: (-len(person.clips[name]), name))
    rest = [clip for name in order[1:] for clip in sorted(person.clips[name])]
    return [sorted(person.clips[order[0]]), rest]


def join_clips(clips: Sequence[Path]) -> FloatArray:
    return np.concatenate([soundfile.read(clip, dtype="float32")[0] for clip in clips])


def read_people_streams(
    judges: Sequence[Person], population: Population, starts: int
) -> Iterator[Stream]:
    """Yield streams that begin with a clip, continue with the later ones, then the earlier ones."""
    for person in judges:
        clips = split_sessions(person)[1]
        for number, first in enumerate(spread_indices(len(clips), starts)):
            audio, most = choose_seconds(number)
            sound = join_clips([*clips[first:], *clips[:first]][: round(audio / 2)])
            if person.name in population.names:
                part = sound[: round(audio * RATE)]
                yield Stream(OWN, person.name, clips[first].name, 0.0, most, part)


def measure_stream(populations: Mapping[str, Population], stream: Stream) -> list[Figures]:
    """Measure a stream at each length of speech that it reaches, with and without its speaker."""
    population = populations[stream.condition]
    own = Monitor(population, watch=stream.speaker, step_seconds=STEP_SECONDS)
    seconds = own.attacker.scoring.seconds
    settings = type(own.settings)(template_seconds=seconds)
    others = Monitor(
        population.without(stream.speaker), step_seconds=STEP_SECONDS, settings=settings
    )
    own_index = own.attacker.names.index(stream.speaker)
    reader = own.core.intake.create_block_reader()
    readings, without = list[Reading](), list[Reading]()
    step = round(STEP_SECONDS * RATE)
    for begin in range(0, len(stream.sound), step):
        block = Block(stream.sound[begin : begin + step], RATE)
        for frames in reader.process(block):
            readings += own.push(frames)
            without += others.push(frames)
        if readings and readings[-1].speech >= stream.speech:
            break
    found = []
    for length in (each for each in LENGTHS if each <= stream.speech):
        index = next((i for i, each in enumerate(readings) if each.speech >= length), None)
        if index is None:
            break
        first, mean = False, None
        with_speaker, without_speaker = readings[index], without[index]
        if with_speaker.evidence_bits is not None and with_speaker.ratios is not None:
            ratios = with_speaker.ratios
            first = bool(ratios[own_index] > np.delete(ratios, own_index).max())
        if with_speaker.evidence_bits is not None and without_speaker.ratios is not None:
            mean = float(np.exp2(without_speaker.ratios).mean())
        found.append(Figures(*stream[:4], length, with_speaker.evidence_bits, first, mean))
    return found


def create_length_rows(found: Sequence[Figures]) -> Iterator[list[str]]:
    """Yield the cells of one row per condition and length; each person has the same weight."""
    for condition in dict.fromkeys(each.condition for each in found):
        for length in LENGTHS:
            results = [f for f in found if (f.condition, f.length) == (condition, length)]
            if results:
                yield [condition, f"{length:g} s", *create_cells(results)]


def create_cells(results: Sequence[Figures]) -> list[str]:
    """Return the figures of streams at one length as text."""
    names, speaker = np.unique([each.speaker for each in results], return_inverse=True)
    answered = [index for index, each in enumerate(results) if each.bits is not None]
    counts = f"{len(results)}, {len(names)}"
    missing = f"{100 * (1 - _mean(np.isin(np.arange(len(results)), answered), speaker)):.0f} %"
    if not answered:
        return [counts, *[""] * 5, missing]
    bits = np.array([results[index].bits for index in answered], float)
    answered_speaker, weights = speaker[answered], equal_speaker_weights(speaker[answered])
    first = _mean(np.array([results[index].first for index in answered]), answered_speaker)
    others = np.array(
        [np.nan if results[p].others is None else results[p].others for p in answered], float
    )
    tenth = weighted_quantile(bits, weights[None], 0.1).item()
    return [
        counts,
        f"{100 * first:.0f} %",
        f"{_mean(bits, answered_speaker):.1f}",
        f"{tenth:.1f}",
        f"{100 * _mean(bits < 0, answered_speaker):.0f} %",
        f"{_mean(others, answered_speaker):.2f}",
        missing,
    ]


def _mean(values: FloatArray | BoolArray, speaker: IntArray) -> float:
    return float(np.average(values, weights=equal_speaker_weights(speaker)))


def write_figures(found: Sequence[Figures], path: Path) -> None:
    """Write all figures as JSON, to compare two versions."""
    path.write_bytes(orjson.dumps([asdict(each) for each in found], option=orjson.OPT_INDENT_2))
