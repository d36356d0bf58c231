"""Whether two recordings sound like one person: how surely, on real readers."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.change import hear
from benchmarks.page import Page, benchmark
from monitor.population.population import Population
from monitor.stream.accumulator import FeatureTotals
from monitor.stream.speaker_changes import LEAST_LIKENESS, score_likeness, select_cohort
from monitor.types import TICKS_PER_SECOND, AnyArray, Frames

CHAPTERS = 3
READERS = Population.reference()


@benchmark()
def recordings(
    page: Page,
    speech: Path,
    *,
    features: tuple[str, ...] = ("f0",),
    seconds: tuple[float, ...] = (30.0, 60.0),
) -> None:
    """Do two recordings sound like one person?

    Two chapters of one reader are a same pair, the first chapters of two readers a different one.
    The readers are in two halves by turns: one same pair in twenty of the first is below a
    threshold; the shipped one is judged on the second, against the shipped readers but the two.
    """
    chapters, sex = several_chapters(speech)
    heard = {
        reader: [hear(path, features, max(seconds)) for path in paths]
        for reader, paths in chapters.items()
    }
    choose, judge = (sorted(heard)[side::2] for side in (0, 1))

    def rows() -> Iterator[list[str]]:
        for names in (each for each in LEAST_LIKENESS if set(each) <= set(features)):
            for length in seconds:
                voices = {
                    reader: [voice(frames, names, length) for frames in all_of]
                    for reader, all_of in heard.items()
                }
                chosen, _, _ = pairs(voices, choose, names, sex)
                low, least = np.quantile(chosen, 0.05), LEAST_LIKENESS[names]
                page.note(f"one in twenty below {low:.2f}; the threshold that ships is {least}")
                counts = (
                    f"{np.sum(found < least)} of {found.size}"
                    for found in pairs(voices, judge, names, sex)
                )
                yield ["+".join(names), f"{length:g} s", *counts]

    page.table(
        "features | beginnings | one reader taken for two "
        "| two readers separated, other sex | same sex",
        rows(),
        keys=2,
    )


def several_chapters(speech: Path) -> tuple[dict[str, list[Path]], dict[str, str]]:
    """The chapters of every reader who has two at least, and their sex."""
    found: dict[str, list[Path]] = defaultdict(list)
    sex = {}
    with (speech / "manifest.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            sex[row["speaker"]] = row["gender"]
            if row["corpus"] in ("dev-clean", "train-clean-100"):
                found[row["speaker"]].append(speech / row["path"])
    return {reader: paths[:CHAPTERS] for reader, paths in found.items() if len(paths) > 1}, sex


def voice(frames: Frames, names: Sequence[str], seconds: float) -> FeatureTotals:
    """What the first seconds brought."""
    ticks = round(seconds * TICKS_PER_SECOND)
    totals, counts = {}, {}
    for name in names:
        track, templates = frames.tracks[name], READERS.features[name]
        sketch = templates.spec.sketch()
        sketch.learn_many(track.values[track.ticks <= ticks])
        totals[name], counts[name] = sketch.total, sketch.frames
    return FeatureTotals(int(frames.speech[:ticks].sum()), totals, counts, counts)


def pairs(
    voices: Mapping[str, Sequence[FeatureTotals]],
    names: Sequence[str],
    features: Sequence[str],
    sex: Mapping[str, str],
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The figures of same pairs, and of different ones of two sexes and of one."""

    def figure(one: FeatureTotals, other: FeatureTotals, *who: str) -> float:
        kept = np.array([name not in who for name in READERS.names])
        parts = []
        for feature in features:
            like = [
                select_cohort(READERS, feature, each.speech_seconds)[kept] for each in (one, other)
            ]
            kind = READERS.specs[feature].kind
            parts.append(score_likeness(kind, one.totals[feature], other.totals[feature], *like))
        return float(np.mean(parts))

    same = [figure(a, b, who) for who in names for a, b in combinations(voices[who], 2)]
    different: dict[bool, list[float]] = {True: [], False: []}
    for a, b in combinations(names, 2):
        different[sex[a] == sex[b]].append(figure(voices[a][0], voices[b][0], a, b))
    return np.array(same), np.array(different[False]), np.array(different[True])
