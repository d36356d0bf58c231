"""What the choice of the stretch that says most does to likelihood ratios of other people.

    python -m benchmarks.stretches ../shared/speech ../shared/nonnative

Two people speak for 30 s each, and every further one, whose template joins the shipped reference,
is watched for: with the choice that `monitor.stream.reading_builder` makes and without. The ratio
of somebody who does not speak should be 1 on average, and reach 8 (3 bits) in at most an eighth of
the comparisons; the largest of several may do so more often. Non-native speakers whom the shipped
networks have not heard, by the rank models that ship; limits over resampled people who are watched.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.change import Reader, hear, joined, part
from monitor.corpus import find
from monitor.events.reading import Reading
from monitor.features.registry import make
from monitor.maths.statistics import limits, speaker_weights
from monitor.population.population import Population
from monitor.protocols import StreamInfo
from monitor.stream.monitor import Monitor
from monitor.training.enrolling import enrol
from monitor.types import TICKS_PER_SECOND, FloatArray, Frames
from recipes.voice.corpus import recordings
from tests.stream.streams import Listed

FEATURES = ("f0", "phones", "voice")
TURN_TICKS = 30 * TICKS_PER_SECOND
LEAST_SPEECH = 10.0


def main() -> None:
    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    for name in ("speech", "nonnative"):
        words.add_argument(name, type=Path)
    words.add_argument("--people", type=int, default=26)
    asked = words.parse_args()
    apart = [
        each.speaker
        for each in recordings(asked.speech, asked.nonnative)
        if each.role == "held out"
    ]
    everybody = find(asked.nonnative)
    chosen = [each for each in everybody if each.speaker in apart[: asked.people]]
    corpus = replace(everybody, recordings=tuple(chosen))
    base, templates = (
        Population.reference().only(FEATURES),
        enrol(corpus, features=FEATURES, seconds=30),
    )
    readers = [
        Reader(each.speaker, "", (each.path,), (hear(each.path, FEATURES),)) for each in corpus
    ]
    half = len(readers) // 2
    speakers, watched = readers[:half], readers[half:]
    pairs = [(a, b) for a, b in pairwise(speakers)]
    found: dict[str, list[list[tuple[float, float]]]] = {"ignore": [], "note": []}
    for person in watched:
        population = base.extended(templates.population.chosen([person.name]))
        for rule, rows in found.items():
            rows.append([heard(population, person.name, rule, *pair) for pair in pairs])
    print(f"{len(watched)} people watched for in {len(pairs)} streams of two others")
    print("choice | mean ratio at the end | share that ever reach 3 bits, after 10 s of speech")
    for rule, rows in found.items():
        last, most = np.moveaxis(np.array(rows), -1, 0)
        print(f"{rule} | {shown(2.0**last)} | {shown(most >= 3)}")


def heard(population: Population, name: str, rule: str, *pair: Reader) -> tuple[float, float]:
    """Bits of somebody at the end of a stream of two others, and the most there were."""
    pieces = [
        part(reader.frames[0], 0, TURN_TICKS, fresh=turn > 0) for turn, reader in enumerate(pair)
    ]
    monitor = Monitor(population, FEATURES, watch=name, on_change=rule)
    whole = joined(pieces, pair).frames
    spoken = Listed(runs(whole))
    spoken.stream_info = StreamInfo(
        audio=False, tracks={each.spec.name: each.spec for each in make(FEATURES)}
    )
    readings = [each for each in monitor.events(spoken) if isinstance(each, Reading)]
    bits = [each.evidence_bits for each in readings if each.speech >= LEAST_SPEECH]
    some = [each for each in bits if each is not None]
    return some[-1], max(some)


def runs(frames: Frames) -> list[Frames]:
    """The same in runs of a second."""
    ends = range(0, frames.speech.size, TICKS_PER_SECOND)
    return [part(frames, begin, begin + TICKS_PER_SECOND, fresh=False) for begin in ends]


def shown(of_people: FloatArray) -> str:
    """A mean over people and streams, with its limits over resampled people."""
    each = of_people.mean(axis=1)
    weights = speaker_weights(each.size, 1000)
    low, high = limits(weights @ each / weights.sum(axis=1))
    return f"{each.mean():.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
