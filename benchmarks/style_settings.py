"""How many little words `style` should count, and which rates: on readers who judge nothing else.

    python -m benchmarks.style_settings ../shared/speech

The readers of train-clean, by the transcripts beside their chapters: a template of the first 100 s
of the longest chapter, tests from what follows (one session, one book). Figures are MeanD in bits,
with 95 % interval over resampled readers. dev-clean and the nonnative speakers took no part.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.hear import chapters
from benchmarks.rank_bits import RankBits, rank_bits
from monitor.features import style
from monitor.features.style import Style
from monitor.maths.ranks import rank_bounds
from monitor.maths.scores import OF_COUNTS
from monitor.transcripts import read_transcript
from monitor.types import FloatArray, IntArray, Track, Words

CORPORA = ("train-clean-5", "train-clean-100")
TEMPLATE_SECONDS = 100
TEST_SECONDS = (30, 60, 120)
LIKELIHOOD = OF_COUNTS["log-likelihood"]


def main() -> None:
    parser = argparse.ArgumentParser(description="How many little words style should count.")
    parser.add_argument("speech", type=Path)
    spoken = longest(parser.parse_args().speech)
    print("| what is counted | bins |", " | ".join(f"{t} s" for t in TEST_SECONDS), "|")
    print("| --- | ---: |" + " ---: |" * len(TEST_SECONDS))
    usual = heard(spoken)
    named = np.array(Style().bins)
    listed = ~np.array([name.startswith("(") for name in named])
    rates = np.array([name.endswith("a second)") for name in named])
    other = np.array([name.startswith("(other") for name in named])
    again = named == "(other, said lately)"
    one = np.arange(named.size)
    show("style", usual, one)
    for most in (120, 80, 40, 20, 10):
        show(f"the {most} most frequent words", usual, frequent(usual, one, listed, most))
    show("no number of letters", usual, np.where(other & ~again, other.nonzero()[0][-1], one))
    show("no words said lately", usual, np.where(other, other.nonzero()[0][-1], one))
    show("no rate", usual, np.where(rates, -1, one))
    show("the rate alone", usual, np.where(rates, one, -1))
    for words in (4, 16, 32):
        style._RATE_WORDS = words
        show(f"a rate every {words} words", heard(spoken), one)


def longest(speech: Path) -> dict[str, Words]:
    """The words of each reader's longest chapter."""
    rows = sorted(chapters(speech, CORPORA), key=lambda row: float(row["seconds"]))
    paths = {row["speaker"]: (speech / row["path"]).with_suffix(".tsv") for row in rows}
    return {name: read_transcript(path).words() for name, path in paths.items()}


def heard(spoken: Mapping[str, Words]) -> dict[str, Track]:
    return {name: Style().process(words) for name, words in spoken.items()}


def frequent(tracks: Mapping[str, Track], one: IntArray, listed: IntArray, most: int) -> IntArray:
    """All but the most frequent words of the list in one bin."""
    counts = sum(np.bincount(track.values, minlength=one.size) for track in tracks.values())
    order = np.argsort(-np.where(listed, counts, -1), kind="stable")
    rare = listed.copy()
    rare[order[:most]] = False
    return np.where(rare, rare.nonzero()[0][0], one)


def show(what: str, tracks: Mapping[str, Track], into: IntArray) -> None:
    """A row: bits by seconds of test, with these bins brought together; -1 leaves them out."""
    bits = [f"{measured(tracks, into, seconds)}" for seconds in TEST_SECONDS]
    print(f"| {what} | {np.unique(into[into >= 0]).size} |", " | ".join(bits), "|", flush=True)


def measured(tracks: Mapping[str, Track], into: IntArray, seconds: int) -> RankBits:
    templates, tests, owners = [], [], []
    for name, track in tracks.items():
        last = int(track.ticks[-1]) // 100
        if last < TEMPLATE_SECONDS:
            continue
        templates.append(counts(track, into, 0, TEMPLATE_SECONDS))
        for begin in range(TEMPLATE_SECONDS, last - seconds + 1, seconds):
            tests.append(counts(track, into, begin, begin + seconds))
            owners.append((len(templates) - 1, name))
    scores = LIKELIHOOD.score(LIKELIHOOD.prepare(np.array(templates)), np.array(tests))
    better, tied = rank_bounds(scores, np.array([own for own, _ in owners]))
    return rank_bits(better, tied, [name for _, name in owners], len(templates))


def counts(track: Track, into: IntArray, begin: int, end: int) -> FloatArray:
    """What was said from one second to another, in the bins that are left."""
    assert track.spans is not None
    within = (track.spans[:, 0] >= 100 * begin) & (track.ticks <= 100 * end)
    kept = into[track.values[within]]
    return np.bincount(kept[kept >= 0], minlength=into.size)[np.unique(into[into >= 0])].astype(
        float
    )


if __name__ == "__main__":
    main()
