"""What `style` discloses of read text: the book, or who reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import alike, around, chapters, corpus_of, units_of
from monitor.jobs import cores
from monitor.maths.rank_models import fit_many, mean_bits_of
from monitor.maths.ranks import rank_bounds, rank_histograms
from monitor.maths.statistics import limits, speaker_weights
from monitor.training.voices import SpeakerSpeech, collect
from monitor.types import AnyArray, FloatArray, IntArray

NEAR = 75
"""Chapters of one reader are 23 numbers apart at most or more than 400; of two readers, two of
cookery that are 60 apart share their words as one book does, and two 89 apart do not."""
CANDIDATES, LENGTHS = 40, (30.0, 60.0)
SAME = "the same chapter"
BOOK = "another chapter of the book, the same reader"
OTHERS_BOOK = "another chapter of the book, another reader"
READER = "another book, the same reader"
JUDGES = "dev-clean"
"""The settings of `style` were chosen, and the network of phones was trained, on other readers."""


class Chapter(NamedTuple):
    """One recording."""

    reader: str
    number: int


def rank_bits(better: IntArray, tied: IntArray, owners: Sequence[str]) -> str:
    """MeanD of the rank model fitted to ranks, with limits; every owner weighs the same."""
    names, index = np.unique(owners, return_inverse=True)
    each = alike(index)
    weights: FloatArray = np.vstack([each, speaker_weights(names.size)[:, index] * each])
    model = fit_many(rank_histograms(better, tied, CANDIDATES, weights))
    bits = mean_bits_of(*model, CANDIDATES)
    return around(float(bits[0]), *limits(bits[1:]))


@benchmark()
def style(page: Page, speech: Path, *, jobs: int = cores()) -> None:
    """What does `style` disclose on read text: the book, or who reads it?

    SPEECH has a transcript beside each chapter; times of words are spread over its utterances.
    """
    rows = chapters(speech)
    corpus = corpus_of((speech / row["path"], row["speaker"], row["chapter"]) for row in rows)
    voices, _, problems = collect(corpus, features=["style"], jobs=jobs)
    if problems:
        raise SystemExit(problems[0])
    judging = {folder.name for folder in (speech / JUDGES).iterdir()}
    page.table(
        "template | T | style | readers, tests",
        (line for length in LENGTHS for line in books(voices, judging, length)),
        keys=2,
    )


def books(voices: Sequence[SpeakerSpeech], judging: set[str], length: float) -> Iterator[list[str]]:
    """A line for each kind of pair of chapters."""
    sessions = {
        Chapter(voice.name, int(name)): session["style"]
        for voice in voices
        for name, session in zip(voice.session_names, voice.sessions, strict=True)
    }
    measure = next(iter(sessions.values())).spec.kind.similarity()
    t, d = units_of(length, 60.0)
    owners = [chapter for chapter, each in sessions.items() if each.length >= d]
    templates = np.array([sessions[chapter].total(0, d) for chapter in owners])
    windows = [
        (chapter, start, each.total(start, t))
        for chapter, each in sessions.items()
        if chapter.reader in judging
        for start in range(0, each.length - t + 1, t)
    ]
    tests = np.array([total for _, _, total in windows])
    scores = measure.score(measure.prepare(templates), tests)
    trials = ranked(owners, [(c, s) for c, s, _ in windows], scores, d)
    for kind in (SAME, BOOK, OTHERS_BOOK, READER):
        better, tied, readers = zip(*trials[kind], strict=True)
        told = rank_bits(np.array(better), np.array(tied), readers)
        yield [kind, f"{length:g} s", told, f"{len(set(readers))}, {len(readers)}"]


def ranked(
    owners: Sequence[Chapter], windows: Sequence[tuple[Chapter, int]], scores: AnyArray, d: int
) -> Mapping[str, list[tuple[int, int, str]]]:
    """By kind of pair: how many impostors score higher than the template, or as high, and who read.

    An impostor read neither of the two, nor in the book; one chapter of each, always as many.
    """
    readers = sorted({owner.reader for owner in owners})
    order = np.random.default_rng(0).permutation(len(readers))
    first = {owner.reader: place for place, owner in reversed(list(enumerate(owners)))}
    impostors = [first[readers[each]] for each in order]
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for row, (test, start) in enumerate(windows):
        for place, owner in enumerate(owners):
            kind = kind_of(owner, test)
            if kind is None or (kind == SAME and start < d):
                continue
            others = [s for s in impostors if kind_of(owners[s], test) is None]
            others = [s for s in others if kind_of(owners[s], owner) is None][: CANDIDATES - 1]
            if len(others) < CANDIDATES - 1:
                raise SystemExit(f"fewer than {CANDIDATES} candidates: {len(others)} others")
            better, tied = rank_bounds(scores[row, [place, *others]], 0)
            found[kind].append((int(better), int(tied), test.reader))
    return found


def kind_of(owner: Chapter, test: Chapter) -> str | None:
    """How a template's chapter stands to a test's; None where nothing joins them."""
    if owner == test:
        return SAME
    if owner.reader == test.reader:
        return BOOK if one_book(owner, test) else READER
    return OTHERS_BOOK if one_book(owner, test) else None


def one_book(one: Chapter, other: Chapter) -> bool:
    """Whether two chapters are of one book, by their numbers at LibriVox."""
    return abs(one.number - other.number) < NEAR
