"""Separability of enrolled people by their templates, with known identities."""

from __future__ import annotations

import csv
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.page import Page, benchmark
from benchmarks.readers import create_corpus, read
from monitor.networks.layers import RATE
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.templates import SLICE_SECONDS
from monitor.stream.separability import Verdict, compare_people
from monitor.training.enrolling import enrol
from monitor.types import IntArray

_MOST_CHAPTERS = 3
_KINDS = "different people", "one, two chapters", "one, halves of a chapter"


@benchmark()
def separability(
    page: Page, speech: Path,
    *, seconds: tuple[float, ...] = (5.0, 10.0, 30.0, 60.0), audio: float = 85.0, jobs: int = 1,
    corpora: tuple[str, ...] = ("dev-clean", "train-clean-5", "train-clean-100", "speechocean762"),
) -> None:  # fmt: skip
    """Can two enrolled people be told apart, and is one person with two names detected?"""
    chapters = _enrol_chapters(speech, corpora, audio, jobs)

    def rows() -> Iterator[list[str]]:
        for length in seconds:
            for halves in (False, True):
                counts = _judge(chapters, round(length / SLICE_SECONDS), halves=halves)
                for kind in _KINDS if halves else _KINDS[:2]:
                    found = [counts[kind, verdict] for verdict in
                             (Verdict.APART, Verdict.UNKNOWN, Verdict.INSEPARABLE)]  # fmt: skip
                    if total := sum(found):
                        shares = (f"{count / total:.1%}" for count in found)
                        what = "halves" if halves else "chapters"
                        yield [f"{length:g} s", what, kind, str(total), *shares]

    page.table("speech | of | pairs | count | told apart | not known | inseparable", rows(), keys=3)


def _enrol_chapters(speech: Path, corpora: tuple[str, ...], audio: float, jobs: int) -> Population:
    """Enrol the beginning of each chapter as a separate person, ``READER/CHAPTER``."""
    files: list[tuple[Path, str, str]] = []
    count = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for row in csv.DictReader((speech / "manifest.csv").open(newline="")):
            name = row["speaker"]
            if row["corpus"] in corpora and float(row["seconds"]) >= 80:
                count[name] += 1
                if count[name] <= _MOST_CHAPTERS:
                    path = Path(folder) / f"{len(files)}.wav"
                    soundfile.write(path, read(speech / row["path"], audio), RATE)
                    files.append((path, f"{name}/{row.get('chapter', 'all')}", "1"))
        return enrol(create_corpus(files), jobs=jobs).population


def _judge(chapters: Population, size: int, *, halves: bool) -> Counter[tuple[str, Verdict]]:
    """Count the verdicts of all pairs of parts with ``size`` slices, by kind of pair."""
    parts: list[tuple[str, IntArray]] = []
    for number, name in enumerate(chapters.names):
        rows = np.arange(*chapters.offsets[number : number + 2])
        if len(rows) >= size * (1 + halves):
            parts.append((f"{name}/a", rows[:size]))
            parts += [(f"{name}/b", rows[-size:])] if halves else []
    counts = Counter[tuple[str, Verdict]]()
    if len(parts) < 2:
        return counts
    every = np.concatenate([rows for _, rows in parts])
    sounds = dict(zip(chapters.names, (each.sound for each in chapters.speakers), strict=True))
    people = Population(
        [Speaker(name, sound=sounds[name.rpartition("/")[0]]) for name, _ in parts],
        np.arange(len(parts) + 1) * size,
        {
            name: FeatureTemplates(templates.spec, templates.slices[every])
            for name, templates in chapters.features.items()
        },
    )
    verdicts = {
        (one.name, other.name): other.verdict
        for one in compare_people(people)
        for other in one.nearest
    }
    for one, two in combinations(people.names, 2):
        (reader, chapter, _), (other, its_chapter, _) = one.split("/"), two.split("/")
        kind = _KINDS[0 if reader != other else 1 + (chapter == its_chapter)]
        counts[kind, verdicts.get((one, two), Verdict.APART)] += 1
    return counts
