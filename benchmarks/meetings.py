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
    every = readers(speech, population, seconds, 16)
    alone = by_themselves(every, population)
    page.note(f"{len(every)} readers, {seconds:g} s of each; alone {np.mean([*alone.values()]):.2f}"
              " bits of evidence on average")  # fmt: skip

    def rows() -> Iterator[list[str]]:
        for size in (2, 4, 8):
            for overlap, errors in CONDITIONS:
                cells = row(every, size, overlap, errors, population, alone)
                yield [str(size), f"{overlap:.0%}, {errors:.0%}", *cells]

    page.table(
        "people | asked for | overlap | wrong labels | bits | less than alone | most so "
        "| matched rightly / to nobody / wrongly | purity",
        rows(),
        keys=2,
    )


def row(
    every: Sequence[Reader], size: int, overlap: float, errors: float, population: Population,
    alone: dict[str, float],
) -> list[str]:  # fmt: skip
    """Return the cells of one row, over all groups of this size."""
    told: list[Told] = []
    shared = wrong = total = 0.0
    for number in sorted({*range(0, len(every) - size + 1, size), len(every) - size}):
        group = every[number : number + size]
        made = meeting(group, overlap, errors, seed=100 * size + number)
        told += tell(group, made, population)
        shared += Diarised(Samples(made.samples, RATE), made.turns).overlap_seconds or 0.0
        total += len(made.samples) / RATE
        pairs = zip(made.turns, made.labelled, strict=True)
        wrong += sum(true.seconds for true, given in pairs if true.label != given.label)
    lost = np.array([alone[each.name] - each.bits for each in told])
    kinds = [each.matched for each in told]
    matched = [str(kinds.count(kind)) for kind in ("rightly", "nobody", "wrongly")]
    return [
        f"{shared / total:.0%}",
        f"{wrong / total:.0%}",
        f"{np.mean([each.bits for each in told]):.2f}",
        f"{lost.mean():.2f}",
        f"{lost.max():.2f}",
        " / ".join(matched),
        f"{np.nanmean([each.purity for each in told]):.2f}",
    ]


def readers(speech: Path, population: Population, seconds: float, most: int) -> list[Reader]:
    """Return readers of dev-clean with enough speech in a chapter that is not enrolled."""
    enrolled = {note.label for speaker in population.speakers for note in speaker.sources}
    found = []
    for folder in sorted((speech / "dev-clean").iterdir(), key=lambda path: path.name):
        if folder.name not in population.names:
            continue
        for path in sorted(folder.glob("*.opus")):
            if path.name in enrolled:
                continue
            made = list(utterances(path, seconds))
            if sum(map(len, made)) >= seconds * RATE:
                found.append(Reader(folder.name, made))
                break
    return found[:most]


def utterances(path: Path, seconds: float) -> Iterator[FloatArray]:
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


def meeting(group: Sequence[Reader], overlap: float, errors: float, seed: int) -> Meeting:
    """Mix a meeting; a reader has two turns in a row only if all others have none left."""
    draw = np.random.default_rng(seed)
    left = {reader.name: list(reader.utterances) for reader in group}
    parts: list[tuple[int, str, FloatArray]] = []
    at, before, last = 0, "", 0
    while any(left.values()):
        able = [name for name, rest in left.items() if rest and name != before]
        name = str(draw.choice(able or [name for name, rest in left.items() if rest]))
        part = left[name].pop(0)
        # neighbours overlap by ``overlap`` times the shorter turn on average
        shared = 0.0 if name == before else 2 * overlap * draw.uniform(0.5, 1.5)
        at = max(at - round(min(shared, 0.9) * min(last, len(part)) / 2), 0)
        parts.append((at, name, part))
        at, before, last = at + len(part), name, len(part)
    samples = np.zeros(max(begin + len(part) for begin, _, part in parts), np.float32)
    for begin, _, part in parts:
        samples[begin : begin + len(part)] += part
    turns = [Turn(begin / RATE, (begin + len(part)) / RATE, name) for begin, name, part in parts]
    names = [reader.name for reader in group]
    labelled = [
        Turn(turn.start_seconds, turn.end_seconds,
             str(draw.choice([name for name in names if name != turn.label])))
        if wrong else turn
        for turn, wrong in zip(turns, _wrong(turns, errors, draw), strict=True)
    ]  # fmt: skip
    return Meeting(samples, turns, labelled)


def _wrong(turns: Sequence[Turn], errors: float, draw: np.random.Generator) -> list[bool]:
    """Return flags of random turns that make up about this fraction of the time."""
    wrong, spent = [False] * len(turns), 0.0
    total = sum(turn.seconds for turn in turns)
    for place in draw.permutation(len(turns)).tolist():
        if spent + turns[place].seconds / 2 < errors * total:
            wrong[place], spent = True, spent + turns[place].seconds
    return wrong


@dataclass(frozen=True)
class Told:
    """Result of one reader: evidence under their label, and the match of that label."""

    name: str
    bits: float
    matched: str  # "rightly", "nobody" or "wrongly"
    purity: float


def tell(group: Sequence[Reader], made: Meeting, population: Population) -> Iterator[Told]:
    """Run the monitor on a meeting, and yield the result of each reader."""
    names = [reader.name for reader in group]
    monitors = [Monitor(population, FEATURES, name, step_seconds=10.0) for name in names]
    last: dict[str, float] = {}
    with Run(Diarised(Samples(made.samples, RATE), made.labelled), monitors) as run:
        for event in run:
            if event.type == "reading" and event.label == event.watch:
                last[str(event.label)] = float(event.evidence_bits or 0.0)
    for person in run.people:
        name = person.label
        yield Told(
            name,
            last[name],
            {name: "rightly", None: "nobody"}.get(person.person, "wrongly"),
            float("nan") if person.purity is None else person.purity,
        )


def by_themselves(every: Sequence[Reader], population: Population) -> dict[str, float]:
    """Return the evidence of each reader's turns without other readers, in order."""
    found = {}
    for reader in every:
        monitor = Monitor(population, FEATURES, reader.name, step_seconds=10.0)
        *_, last = monitor.stream(Samples(np.concatenate(reader.utterances), RATE))
        found[reader.name] = float(last.evidence_bits or 0.0)
    return found
