"""Disclosure of each reader in a meeting, compared with the same speech alone."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, read
from monitor import Monitor, Population, Run
from monitor.networks.layers import RATE
from monitor.sources import Diarised, Samples
from monitor.transcripts import Turn
from monitor.types import FloatArray

CONDITIONS = ((0.0, 0.0), (0.2, 0.0), (0.0, 0.1), (0.0, 0.2))
"""Target fractions of the time with two speakers, and with another reader's label."""
LEVEL = 0.05  # root mean square
TURN_SECONDS = 4.0


@dataclass(frozen=True)
class Reader:
    """A reader and utterances in order, from a chapter that is not enrolled."""

    name: str
    utterances: Sequence[FloatArray]


@dataclass(frozen=True)
class Meeting:
    """Audio, true turns, and the same turns with some wrong labels."""

    samples: FloatArray
    turns: Sequence[Turn]
    labelled: Sequence[Turn]


@benchmark()
def meetings(page: Page, speech: Path, *, seconds: float = 60.0) -> None:
    """How much do meetings disclose of each reader, compared with the same speech alone?"""
    population = Population.reference()
    every = load_readers(speech, population, seconds, 16)
    alone = measure_alone(every, population)
    page.note(f"{len(every)} readers, {seconds:g} s of each; alone {np.mean([*alone.values()]):.2f}"
              " bits of evidence on average")  # fmt: skip

    def rows() -> Iterator[list[str]]:
        for size in (2, 4, 8):
            for overlap, errors in CONDITIONS:
                cells = create_cells(every, size, overlap, errors, population, alone)
                yield [str(size), f"{overlap:.0%}, {errors:.0%}", *cells]

    page.table(
        "people | asked for | overlap | wrong labels | bits | less than alone | most so "
        "| matched rightly / to nobody / wrongly | purity",
        rows(),
        keys=2,
    )


def create_cells(
    every: Sequence[Reader], size: int, overlap: float, errors: float, population: Population,
    alone: dict[str, float],
) -> list[str]:  # fmt: skip
    """Return the cells of one row, over all groups of this size."""
    results: list[ReaderResult] = []
    shared_seconds = wrong_seconds = total_seconds = 0.0
    for number in sorted({*range(0, len(every) - size + 1, size), len(every) - size}):
        group = every[number : number + size]
        mixed = mix_meeting(group, overlap, errors, seed=100 * size + number)
        results += measure_readers(group, mixed, population)
        shared_seconds += Diarised(Samples(mixed.samples, RATE), mixed.turns).overlap_seconds or 0.0
        total_seconds += len(mixed.samples) / RATE
        pairs = zip(mixed.turns, mixed.labelled, strict=True)
        wrong_seconds += sum(true.seconds for true, given in pairs if true.label != given.label)
    lost = np.array([alone[each.name] - each.bits for each in results])
    kinds = [each.matched for each in results]
    matched = [str(kinds.count(kind)) for kind in ("rightly", "nobody", "wrongly")]
    return [
        f"{shared_seconds / total_seconds:.0%}",
        f"{wrong_seconds / total_seconds:.0%}",
        f"{np.mean([each.bits for each in results]):.2f}",
        f"{lost.mean():.2f}",
        f"{lost.max():.2f}",
        " / ".join(matched),
        f"{np.nanmean([each.purity for each in results]):.2f}",
    ]


def load_readers(
    speech: Path, population: Population, seconds: float, maximum: int
) -> list[Reader]:
    """Return readers of dev-clean with enough speech in a chapter that is not enrolled."""
    enrolled = {source.label for speaker in population.speakers for source in speaker.sources}
    found = []
    for folder in sorted((speech / "dev-clean").iterdir(), key=lambda path: path.name):
        if folder.name not in population.names:
            continue
        for path in sorted(folder.glob("*.opus")):
            if path.name in enrolled:
                continue
            turns = list(load_turns(path, seconds))
            if sum(map(len, turns)) >= seconds * RATE:
                found.append(Reader(folder.name, turns))
                break
    return found[:maximum]


def load_turns(path: Path, seconds: float) -> Iterator[FloatArray]:
    """Yield turns of at least 4 s at one level, joined from a chapter's first utterances."""
    sound = read(path)
    with path.with_suffix(".tsv").open(encoding="utf-8") as file:
        rows = [(float(row[0]), float(row[1])) for row in csv.reader(file, delimiter="\t")
                if row and row[0].replace(".", "").isdigit()]  # fmt: skip
    begin, total = None, 0.0
    for start, end in rows:
        begin = start if begin is None else begin
        if end - begin < TURN_SECONDS:
            continue
        part = sound[round(begin * RATE) : round(end * RATE)]
        yield (part * (LEVEL / max(float(np.sqrt(np.mean(part**2))), 1e-6))).astype(np.float32)
        total, begin = total + end - begin, None
        if total >= seconds:
            return


def mix_meeting(group: Sequence[Reader], overlap: float, errors: float, seed: int) -> Meeting:
    """Mix a meeting; a reader has two turns in a row only if all others have none left."""
    draw = np.random.default_rng(seed)
    remaining = {reader.name: list(reader.utterances) for reader in group}
    parts: list[tuple[int, str, FloatArray]] = []
    start, before, last = 0, "", 0
    while any(remaining.values()):
        choices = [name for name, rest in remaining.items() if rest and name != before]
        name = str(draw.choice(choices or [name for name, rest in remaining.items() if rest]))
        turn_samples = remaining[name].pop(0)
        # neighbours overlap by ``overlap`` times the shorter turn on average
        shared = 0.0 if name == before else 2 * overlap * draw.uniform(0.5, 1.5)
        start = max(start - round(min(shared, 0.9) * min(last, len(turn_samples)) / 2), 0)
        parts.append((start, name, turn_samples))
        start, before, last = start + len(turn_samples), name, len(turn_samples)
    samples = np.zeros(
        max(begin + len(turn_samples) for begin, _, turn_samples in parts), np.float32
    )
    for begin, _, turn_samples in parts:
        samples[begin : begin + len(turn_samples)] += turn_samples
    turns = [
        Turn(begin / RATE, (begin + len(turn_samples)) / RATE, name)
        for begin, name, turn_samples in parts
    ]
    names = [reader.name for reader in group]
    labelled = [
        Turn(turn.start_seconds, turn.end_seconds,
             str(draw.choice([name for name in names if name != turn.label])))
        if wrong else turn
        for turn, wrong in zip(turns, _draw_wrong_turns(turns, errors, draw), strict=True)
    ]  # fmt: skip
    return Meeting(samples, turns, labelled)


def _draw_wrong_turns(
    turns: Sequence[Turn], errors: float, draw: np.random.Generator
) -> list[bool]:
    """Return flags of random turns that make up about this fraction of the time."""
    wrong, wrong_seconds = [False] * len(turns), 0.0
    total = sum(turn.seconds for turn in turns)
    for index in draw.permutation(len(turns)).tolist():
        if wrong_seconds + turns[index].seconds / 2 < errors * total:
            wrong[index], wrong_seconds = True, wrong_seconds + turns[index].seconds
    return wrong


@dataclass(frozen=True)
class ReaderResult:
    """Result of one reader: evidence under their label, and the match of that label."""

    name: str
    bits: float
    matched: str  # "rightly", "nobody" or "wrongly"
    purity: float


def measure_readers(
    group: Sequence[Reader], meeting: Meeting, population: Population
) -> Iterator[ReaderResult]:
    """Run the monitor on a meeting, and yield the result of each reader."""
    names = [reader.name for reader in group]
    monitors = [Monitor(population, FEATURES, name, step_seconds=10.0) for name in names]
    last: dict[str, float] = {}
    with Run(Diarised(Samples(meeting.samples, RATE), meeting.labelled), monitors) as run:
        for event in run:
            if event.type == "reading" and event.label == event.watch:
                last[str(event.label)] = float(event.evidence_bits or 0.0)
    for person in run.people:
        name = person.label
        yield ReaderResult(
            name,
            last[name],
            {name: "rightly", None: "nobody"}.get(person.person, "wrongly"),
            float("nan") if person.purity is None else person.purity,
        )


def measure_alone(every: Sequence[Reader], population: Population) -> dict[str, float]:
    """Return the evidence of each reader's turns without other readers, in order."""
    bits = {}
    for reader in every:
        monitor = Monitor(population, FEATURES, reader.name, step_seconds=10.0)
        *_, last = monitor.stream(Samples(np.concatenate(reader.utterances), RATE))
        bits[reader.name] = float(last.evidence_bits or 0.0)
    return bits
