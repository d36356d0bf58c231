"""How many seconds does an anonymiser buy before so many bits are out? Real readers, two attackers.

    monitor hear ../shared/speech/dev-clean -o CLEAR --features f0,phones,voice
    monitor protect ../shared/speech/dev-clean -o safe/ --method mcadams:0.8 --seed 1
    monitor hear safe/ -o SAFE --features f0,phones,voice
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.disclosure_delay CLEAR SAFE [--seconds 60]

Readers with two chapters are enrolled from the first (templates of 45 s), clear and protected, and
watched in the last, which is heard for a minute. Rank models, too, are learnt on clear and on
protected speech, without a prior, and never on the readers whom they judge: on the others of four
folds. Ignorant: templates and rank model of clear speech. Stronger: of that one and of one who
enrolled protected speech and learnt a rank model on it, whoever has more bits, as `monitor replay
--protect --protected-population` shows them. Readings are those of that command, from frames.

Prints, for each figure and level: the share of chapters that reached it within the time, clear and
protected, and the disclosure delay on average within it, with 95 % interval over readers.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from monitor import Monitor, Population
from monitor.alerts.crossings import Crossings
from monitor.corpus.finding import find
from monitor.corpus.recordings import Corpus
from monitor.maths.statistics import Crossing, disclosure_delay
from monitor.sources.frames import FramesFile
from monitor.stream.reading import ProtectedReading, Reading
from monitor.stream.records import start_record
from monitor.training.calibrating import calibrate
from monitor.training.enrolling import enrol
from monitor.training.voices import collect

FOLDS = 4
TEMPLATE_SECONDS = 45.0
LENGTHS = (1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
REPLICATES = 20
"""Of the rank models: they make limits of readings, of which nothing is asked here."""
FEATURES = ("f0", "phones", "voice")


def main() -> None:
    words = argparse.ArgumentParser(description="Seconds that an anonymiser buys.")
    words.add_argument("clear", type=Path)
    words.add_argument("safe", type=Path)
    words.add_argument("--seconds", type=float, default=60.0)
    asked = words.parse_args()
    found: dict[tuple[str, float], list[tuple[str, Crossing, Crossing]]] = defaultdict(list)
    clear, safe = (several(find(folder)) for folder in (asked.clear, asked.safe))
    names = clear.speakers
    sides = [Side(each) for each in (clear, safe)]
    for fold in range(FOLDS):
        judged = names[fold::FOLDS]
        populations = [side.population(judged) for side in sides]
        print(f"fold {fold + 1} of {FOLDS}", file=sys.stderr, flush=True)
        for name in judged:
            for attackers, table in watched(name, clear, safe, populations, asked.seconds):
                for row in table:
                    pair = (Crossing(**row["clear"]), Crossing(**row["protected"]))
                    found[attackers, row["bits"]].append((name, *pair))
    print(f"{len(names)} readers, {asked.seconds:g} s of a chapter each")
    for (attackers, bits), rows in sorted(found.items()):
        print(line(attackers, bits, rows, asked.seconds), flush=True)


def several(corpus: Corpus) -> Corpus:
    """The readers of two chapters or more."""
    kept = [each for each in corpus.recordings if len(corpus.sessions(each.speaker)) > 1]
    return Corpus(tuple(kept), ())


@dataclass(frozen=True)
class Side:
    """One side's speech: clear, or protected."""

    corpus: Corpus

    def population(self, judged: tuple[str, ...]) -> Population:
        """Everybody enrolled, with rank models learnt on those who are not judged."""
        first = [
            each
            for each in self.corpus.recordings
            if each.session == next(iter(self.corpus.sessions(each.speaker)))
        ]
        people = enrol(Corpus(tuple(first), ()), features=FEATURES, seconds=TEMPLATE_SECONDS)
        others = [each for each in self.corpus.recordings if each.speaker not in judged]
        voices, specs, _ = collect(Corpus(tuple(others), ()), features=FEATURES)
        rank_model = calibrate(
            voices,
            specs,
            lengths=LENGTHS,
            template_lengths=[TEMPLATE_SECONDS],
            replicates=REPLICATES,
            prior=None,
        )
        return people.population.calibrated(rank_model)


def watched(
    name: str, clear: Corpus, safe: Corpus, populations: list[Population], seconds: float
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The tables of one reader, for the ignorant attacker and for the stronger of both."""
    here, there = (list(each.sessions(name).values())[-1][0] for each in (clear, safe))
    monitor = Monitor(populations[0], FEATURES, watch=name)
    ignorant, informed = monitor.twin()[0], monitor.twin(populations[1])[0]
    start = start_record(monitor, [here.name])
    tables = {"ignorant": Crossings(start), "stronger": Crossings(start)}
    sides = (
        each.stream(FramesFile(path))
        for each, path in ((monitor, here), (ignorant, there), (informed, there))
    )
    for reading, one, two in zip(*sides, strict=False):  # a last reading may lie a tick apart
        if reading.seconds > seconds:
            break
        both: dict[str, dict[str, Reading]] = {
            "ignorant": {"ignorant": one},
            "stronger": {"ignorant": one, "lazy-informed": two},
        }
        for attackers, table in tables.items():
            protected = ProtectedReading(both[attackers], reading.headline)
            table.update(replace(reading, protected=protected).record())
    yield from ((attackers, table.table) for attackers, table in tables.items())


def line(
    attackers: str,
    bits: float,
    rows: list[tuple[str, Crossing, Crossing]],
    seconds: float,
) -> str:
    """The delay, over the readers."""
    names, clear, safe = zip(*rows, strict=True)
    # evidence that was cut to what calibration supports is known up to there alone
    longest = [max(side).seconds for side in (clear, safe) if not max(side).crossed]
    horizon = min([seconds, *longest])
    found = disclosure_delay(clear, safe, horizon, names)
    limits = "" if found.low is None else f" [{found.low:.1f}, {found.high:.1f}]"
    return (
        f"{attackers:9} {bits:4g} bits: {len(rows):3} chapters, reached by "
        f"{horizon:.0f} s: clear {found.clear_share:.0%}, protected {found.protected_share:.0%}; "
        f"delay {found.seconds:.1f} s{limits}"
    )


if __name__ == "__main__":
    main()
