"""Detection of people enrolled under two names: planted pairs found, and false reports."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

from benchmarks.page import Page, benchmark
from monitor import enrol
from monitor.corpus import find
from monitor.population.doubles import FEATURE, LEAST_SECONDS, find_doubles


@benchmark()
def doubles(page: Page, corpus: Path, *, seconds: float = 25.0, most: int = 160) -> None:
    """Is a person under two names found, without false reports on pairs of different people?

    Each session of a speaker is enrolled as a separate person.
    """
    found = find(corpus)
    sessions = [
        replace(recording, speaker=f"{recording.speaker}/{recording.session}")
        for recording in found.recordings[:most]
    ]
    owner = {session.speaker: session.speaker.split("/")[0] for session in sessions}
    renamed = replace(found, recordings=tuple(sessions))
    population = enrol(renamed, features=[FEATURE], seconds=seconds).population
    lengths = zip(population.names, population.template_seconds.tolist(), strict=True)
    names = [name for name, length in lengths if length >= LEAST_SECONDS]
    pairs = [owner[a] == owner[b] for a, b in combinations(names, 2)]
    reported = [owner[d.first] == owner[d.second] for d in find_doubles(population)]
    page.table(
        "pairs of | count | reported",
        [
            ["one person", str(sum(pairs)), str(sum(reported))],
            ["two people", str(len(pairs) - sum(pairs)), str(len(reported) - sum(reported))],
        ],
        under=f"{corpus.name}: {len(names)} templates of {len({owner[n] for n in names})} people",
    )
