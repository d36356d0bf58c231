"""Whether two recordings sound like one person: how surely, with which features, on real readers.

    python -m benchmarks.recordings ../shared/speech --features f0,phones --seconds 30,60
    python -m benchmarks.recordings ../shared/speech --features voice --seconds 30

The beginnings of up to three chapters of every reader who has several are heard.
Two chapters of one reader are a same pair, the first chapters of two readers a
different one. The readers are in two halves by turns: a threshold is shown that one same pair in
twenty of the first half is below, and the shipped one is judged on the second. The cohort is the
shipped population without the two readers.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from pathlib import Path

import numpy as np

from monitor.features.extractor import Extractor
from monitor.features.framing import join_frames
from monitor.features.registry import make
from monitor.population.population import Population
from monitor.sources.file import File
from monitor.stream.accumulator import FeatureTotals
from monitor.stream.speaker_changes import LEAST_LIKENESS, score_likeness, select_cohort
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Frames

CHAPTERS = 3
READERS = Population.reference()


def main() -> None:
    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    words.add_argument("speech", type=Path)
    words.add_argument("--features", default="f0")
    words.add_argument("--seconds", default="30,60")
    given = words.parse_args()
    names, lengths = given.features.split(","), [float(s) for s in given.seconds.split(",")]
    chapters, sex = several_chapters(given.speech)
    heard = {
        reader: [hear(path, names, max(lengths)) for path in paths]
        for reader, paths in chapters.items()
    }
    halves = [sorted(heard)[side::2] for side in (0, 1)]
    for features in (each for each in LEAST_LIKENESS if set(each) <= set(names)):
        for seconds in lengths:
            voices = {
                reader: [voice(frames, features, seconds) for frames in all_of]
                for reader, all_of in heard.items()
            }
            chosen, _, _ = pairs(voices, halves[0], features, sex)
            same, other, alike_sex = pairs(voices, halves[1], features, sex)
            least = LEAST_LIKENESS[features]
            row = {
                "features": "+".join(features),
                "seconds": seconds,
                "one in twenty": round(float(np.quantile(chosen, 0.05)), 2),
                "shipped": least,
                "one taken for two": f"{np.sum(same < least)} of {same.size}",
                "two told apart, other sex": f"{np.sum(other < least)} of {other.size}",
                "same sex": f"{np.sum(alike_sex < least)} of {alike_sex.size}",
            }
            print(json.dumps(row), flush=True)


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


def hear(path: Path, names: Sequence[str], seconds: float) -> Frames:
    extractor = Extractor(make(names))
    blocks = (item for item in File(path, end_seconds=seconds) if isinstance(item, Block))
    heard = [extractor.process(block) for block in blocks]
    return reduce(join_frames, [*heard, extractor.flush()])


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


if __name__ == "__main__":
    main()
