"""What meetings of real readers disclose of each, beside the same speech alone.

    python -m benchmarks.meetings ../shared/speech [--seconds 60] [--plot docs/meetings.svg]
    python -m benchmarks.meetings ../shared/speech --labels 1,4,16,64

Makes meetings of readers of LibriSpeech by the chapters that the shipped templates were not made
of: two, four and eight of them take turns of an utterance or two. Then neighbours overlap, or turns
get somebody else's label, as a diariser's do. Prints, over all readers, the evidence of each under
their own label, how much less that is than of the same turns alone, how many labels are matched to
the right reader, and how pure they are. ``--labels`` prints the most memory of `monitor replay
--rttm` on five minutes that are dealt out to so many labels, five seconds a turn.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from monitor import Monitor, Population, Run
from monitor.sources import Diarised, Samples
from monitor.transcripts import Turn
from monitor.types import FloatArray

RATE = 16_000
FEATURES = ("f0", "phones", "voice")
SIZES = (2, 4, 8)
CONDITIONS = ((0.0, 0.0), (0.2, 0.0), (0.0, 0.1), (0.0, 0.2))
"""Of the time: in which two speak, and with somebody else's label."""
LEVEL = 0.05  # root mean square
TURN_SECONDS = 4.0


@dataclass(frozen=True)
class Reader:
    """A reader and utterances that no template was made of, in order."""

    name: str
    utterances: Sequence[FloatArray]


@dataclass(frozen=True)
class Meeting:
    """Sound, true turns, and the labels that somebody gave them."""

    samples: FloatArray
    turns: Sequence[Turn]
    labelled: Sequence[Turn]


def readers(speech: Path, population: Population, seconds: float, most: int) -> list[Reader]:
    """Readers of dev-clean with so much speech in a chapter that was not enrolled."""
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
    """The first utterances of a chapter, at one level, joined to turns of some seconds."""
    sound, rate = soundfile.read(path, dtype="float32")
    assert rate == RATE
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
    """Readers take turns, never twice on end where somebody else has something left to say."""
    draw = np.random.default_rng(seed)
    left = {reader.name: list(reader.utterances) for reader in group}
    parts: list[tuple[int, str, FloatArray]] = []
    at, before, last = 0, "", 0
    while any(left.values()):
        able = [name for name, rest in left.items() if rest and name != before]
        name = str(draw.choice(able or [name for name, rest in left.items() if rest]))
        part = left[name].pop(0)
        # two neighbours share 2 o of the shorter on average: o of each
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
    """Turns that make up that share of the time, as nearly as whole turns can."""
    wrong, spent = [False] * len(turns), 0.0
    total = sum(turn.seconds for turn in turns)
    for place in draw.permutation(len(turns)).tolist():
        if spent + turns[place].seconds / 2 < errors * total:
            wrong[place], spent = True, spent + turns[place].seconds
    return wrong


@dataclass(frozen=True)
class Told:
    """What came of one reader: evidence for the reader under the label, and beside it."""

    bits: float
    alone: float
    matched: str  # rightly, to nobody, wrongly
    probability: float
    purity: float
    speech: float
    others: float


def told(group: Sequence[Reader], made: Meeting, population: Population,
         alone: dict[str, float]) -> list[Told]:  # fmt: skip
    """What a run of the meeting says of everybody in it."""
    names = [reader.name for reader in group]
    monitors = [Monitor(population, FEATURES, name, step_seconds=10.0) for name in names]
    source = Diarised(Samples(made.samples, RATE), made.labelled)
    last: dict[tuple[str, str], float] = {}
    with Run(source, monitors) as run:
        for event in run:
            if event.type == "reading":
                last[str(event.label), str(event.watch)] = float(event.evidence_bits or 0.0)
    found = []
    for person in run.people:
        name = person.label
        others = [last[name, other] for other in names if other != name]
        found.append(
            Told(
                last[name, name],
                alone[name],
                {name: "rightly", None: "nobody"}.get(person.person, "wrongly"),
                person.probability or 0.0,
                float("nan") if person.purity is None else person.purity,
                0.0 if person.reading is None else person.reading.speech,
                max(others),
            )
        )
    return found


def by_themselves(every: Sequence[Reader], population: Population) -> dict[str, float]:
    """Evidence of each reader's turns alone, in order, with nobody else in the room."""
    found = {}
    for reader in every:
        monitor = Monitor(population, FEATURES, reader.name, step_seconds=10.0)
        *_, last = monitor.stream(Samples(np.concatenate(reader.utterances), RATE))
        found[reader.name] = float(last.evidence_bits or 0.0)
    return found


def table(speech: Path, seconds: float, plot: Path | None) -> None:
    """Print what meetings disclose of everybody."""
    population = Population.reference()
    every = readers(speech, population, seconds, 16)
    alone = by_themselves(every, population)
    print(f"{len(every)} readers, {seconds:g} s of each; alone {np.mean([*alone.values()]):.2f} "
          "bits of evidence on average\n")  # fmt: skip
    heads = (
        *("people", "overlap", "wrong labels", "bits", "less than alone", "most so"),
        *("in another's name", "matched rightly / to nobody / wrongly", "probability", "purity"),
    )
    print(f"| {' | '.join(heads)} |\n|{' ---: |' * len(heads)}")
    drawn: dict[int, list[tuple[float, float]]] = {}
    for size in SIZES:
        for overlap, errors in CONDITIONS:
            rows: list[Told] = []
            shared = wrong = total = 0.0
            firsts = range(0, len(every) - size + 1, size)
            for number in sorted({*firsts, len(every) - size}):
                group = every[number : number + size]
                made = meeting(group, overlap, errors, seed=100 * size + number)
                rows += told(group, made, population, alone)
                source = Diarised(Samples(made.samples, RATE), made.turns)
                shared += source.overlap_seconds or 0.0
                total += len(made.samples) / RATE
                wrong += sum(
                    true.seconds
                    for true, given in zip(made.turns, made.labelled, strict=True)
                    if true.label != given.label
                )
            lost = np.array([row.alone - row.bits for row in rows])
            kinds = [row.matched for row in rows]
            matched = [kinds.count(kind) for kind in ("rightly", "nobody", "wrongly")]
            drawn.setdefault(size, []).append((errors if not overlap else -1.0, lost.mean()))
            print(
                f"| {size} | {shared / total:.0%} | {wrong / total:.0%} "
                f"| {np.mean([row.bits for row in rows]):.2f} | {lost.mean():.2f} "
                f"| {lost.max():.2f} | {np.mean([row.others for row in rows]):.1f} "
                f"| {' / '.join(map(str, matched))} "
                f"| {np.mean([row.probability for row in rows]):.2f} "
                f"| {np.nanmean([row.purity for row in rows]):.2f} |",
                flush=True,
            )
    if plot is not None:
        draw(drawn, plot)


def draw(lost: dict[int, list[tuple[float, float]]], path: Path) -> None:
    """How evidence falls with wrong labels, a line for each number of people."""
    from monitor.plots.canvas import BLUE, GREEN, RED, spread_apart
    from monitor.plots.canvas import draw as written

    def paint(figure):  # type: ignore[no-untyped-def]
        axes = figure.add_axes((0.12, 0.14, 0.7, 0.8))
        drawn = {
            size: np.array([(100 * e, -bits) for e, bits in points if e >= 0])
            for size, points in lost.items()
        }
        ends = sorted(drawn, key=lambda size: drawn[size][-1, 1])
        low = min(points[:, 1].min() for points in drawn.values())
        places = spread_apart([drawn[k][-1, 1] for k in ends], [0.07] * len(ends), low - 0.1, 0.1)
        for (size, points), colour in zip(drawn.items(), (BLUE, GREEN, RED), strict=False):
            axes.plot(*points.T, marker="o", color=colour)
            axes.text(20.6, places[ends.index(size)], f"{size} people", va="center", color=colour)
        axes.set_xlabel("of the time with somebody else's label, %")
        axes.set_ylabel("bits of evidence beside the same turns alone")

    written(path, paint, (7.0, 4.5))


def memory(speech: Path, counts: Sequence[int]) -> None:
    """Print what people cost by their number: memory and processor of a run of five minutes."""
    (path, *_) = sorted((speech / "train-clean-5").rglob("*.opus"))
    with tempfile.TemporaryDirectory() as name:
        sound, rttm = Path(name) / "a.flac", Path(name) / "a.rttm"
        rate = soundfile.info(path).samplerate
        soundfile.write(sound, soundfile.read(path, 300 * rate)[0], rate)
        for count in counts:
            turns = (f"SPEAKER a 1 {5 * i} 5 <NA> <NA> L{i % count} <NA> <NA>" for i in range(60))
            rttm.write_text("\n".join(turns) + "\n")
            command = [sys.executable, "-m", "monitor", "replay", str(sound), "--rttm", str(rttm)]
            how = ["--features", ",".join(FEATURES), "--jsonl", "/dev/null", "--allow-overlap"]
            with subprocess.Popen([*command, *how], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:  # fmt: skip
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            print(f"{count} labels: {used.ru_maxrss / 1024:.0f} MB, "
                  f"{used.ru_utime + used.ru_stime:.1f} s of CPU, left with {process.returncode}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("speech", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--labels", help="memory by their number, such as 1,4,16,64")
    asked = parser.parse_args()
    if asked.labels:
        memory(asked.speech, [int(each) for each in asked.labels.split(",")])
    else:
        table(asked.speech, asked.seconds, asked.plot)
