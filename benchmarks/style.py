"""What `style` discloses of read text: the book, or who reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, alike, around, chapters, collected, corpus_of, units_of
from monitor.features.style import Style
from monitor.jobs import cores
from monitor.maths.rank_models import fit_many, mean_bits_of
from monitor.maths.ranks import rank_bounds, rank_histograms
from monitor.maths.statistics import limits, speaker_weights
from monitor.population.rank_model import RankModel
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.voices import SpeakerSpeech, collect
from monitor.types import AnyArray, FloatArray, IntArray

NEAR = 75
"""Chapters of one reader are 23 numbers apart at most or more than 400; of two readers, two of
cookery that are 60 apart share their words as one book does, and two 89 apart do not."""
CANDIDATES, SRD_SPEAKERS = 40, 11_696
SAME = "the same chapter"
BOOK = "another chapter of the book, the same reader"
OTHERS_BOOK = "another chapter of the book, another reader"
READER = "another book, the same reader"
JUDGES = "dev-clean"
"""The settings of `style` were chosen, and the network of phones was trained, on other readers."""
LENGTHS, TEMPLATE_SECONDS = (30.0, 60.0), 40.0
"""Of rank models: chapters of dev-clean are short, with longer templates fewer readers are left."""


class Chapter(NamedTuple):
    """One recording."""

    reader: str
    number: int


class RankBits(NamedTuple):
    """MeanD of ranks, its limits over resampled speakers, and stretched to as many as of SRD."""

    bits: float
    low: float
    high: float
    many: float

    def __str__(self) -> str:
        return around(self.bits, self.low, self.high)


def rank_bits(better: IntArray, tied: IntArray, owners: Sequence[str], candidates: int) -> RankBits:
    """Fit the rank model of similarity rank disclosure to ranks; every owner weighs the same."""
    names, index = np.unique(owners, return_inverse=True)
    each = alike(index)
    weights: FloatArray = np.vstack([each, speaker_weights(names.size)[:, index] * each])
    alpha, beta, binomial = fit_many(rank_histograms(better, tied, candidates, weights))
    bits = mean_bits_of(alpha, beta, binomial, candidates)
    many = mean_bits_of(alpha[:1], beta[:1], binomial[:1], SRD_SPEAKERS)
    return RankBits(float(bits[0]), *limits(bits[1:]), float(many[0]))


@benchmark()
def style(page: Page, speech: Path, *, frames: Path | None = None, jobs: int = cores()) -> None:
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
        "template | T | style | without words a second | words a second alone "
        "| among 11 696 | readers, tests",
        (line for length in LENGTHS for line in books(voices, judging, length)),
        keys=2,
    )
    if frames is not None:
        page.table(
            "template | features | T | MeanD without | with style | gain "
            "| local bits without, with | readers",
            rank_models(voices, frames, judging),
            keys=3,
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
    found: dict[str, list[RankBits]] = defaultdict(list)
    counts: dict[str, str] = {}
    tempo = np.array(["words a second" in name for name in Style().bins])
    for kept in (np.ones(tempo.size, np.bool_), ~tempo, tempo):
        scores = measure.score(measure.prepare(templates[:, kept]), tests[:, kept])
        trials = ranked(owners, [(c, s) for c, s, _ in windows], scores, d)
        for kind, rows in trials.items():
            better, tied = np.array([row[:2] for row in rows]).T
            readers = [row[2] for row in rows]
            found[kind].append(rank_bits(better, tied, readers, CANDIDATES))
            counts[kind] = f"{len(set(readers))}, {len(rows)}"
    for kind in (SAME, BOOK, OTHERS_BOOK, READER):
        many = f"{found[kind][0].many:.2f}"
        yield [kind, f"{length:g} s", *map(str, found[kind]), many, counts[kind]]


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


def rank_models(
    voices: Sequence[SpeakerSpeech], frames: Path, judging: set[str]
) -> Iterator[list[str]]:
    """Each set of features with and without style: within a book, and within a chapter."""
    others, specs = collected(frames, FEATURES)
    specs = {**specs, "style": voices[0].sessions[0]["style"].spec}
    by = {voice.name: voice for voice in voices}
    both = [joined(other, by[other.name]) for other in others]
    trained = dict.fromkeys(specs, {voice.name for voice in both} - judging)
    sets: tuple[tuple[str, ...], ...] = ((), ("f0",), ("voice",), FEATURES)
    how = CalibrationSettings(
        lengths=LENGTHS, template_lengths=(TEMPLATE_SECONDS,), trained=trained, prior=None,
        cohort=None, sets=[(*s, *more) for s in sets for more in ((), ("style",)) if s or more],
    )  # fmt: skip
    for name, session, people in (
        ("another chapter of the book", "cross", [one_books_chapters(voice) for voice in both]),
        ("the same chapter", "same", both),
    ):
        made = calibrate(people, specs, how)
        models = {m.features: m for m in made.rank_models if m.session == session}
        rows = {(row["feature"], row["T"]): row for row in made.rows if row["session"] == session}
        for features in sets:
            for t, length in enumerate(LENGTHS):
                model = models.get((*features, "style"))
                row = rows.get(("+".join((*features, "style")), length))
                if model is None or row is None:
                    continue
                after, kept = bits_of(model, t), f"{row['held_out_local_bits']:.2f}"
                before, gain = "", ""
                if features:
                    alone = bits_of(models[features], t)
                    before, gain = with_limits(alone), with_limits(after - alone)
                    bare = rows["+".join(features), length]["held_out_local_bits"]
                    kept = f"{bare:.2f}, {kept}"
                yield [
                    name, "+".join(features) or "style alone", f"{length:g} s", before,
                    with_limits(after), gain, kept, str(row["speakers"]),
                ]  # fmt: skip


def joined(one: SpeakerSpeech, other: SpeakerSpeech) -> SpeakerSpeech:
    """The features of both, as far as both heard each chapter."""
    sessions = []
    for place, name in enumerate(one.session_names):
        found = other.session_names.index(name)
        length = min(one.length(place), other.length(found))
        both = {**one.sessions[place], **other.sessions[found]}
        sessions.append({name: replace(each, length=length) for name, each in both.items()})
    return replace(one, sessions=tuple(sessions))


def one_books_chapters(voice: SpeakerSpeech) -> SpeakerSpeech:
    """All chapters of the book with most of them."""
    shelves: list[list[int]] = []
    named = [Chapter(voice.name, int(name)) for name in voice.session_names]
    for place, chapter in enumerate(named):
        own = [shelf for shelf in shelves if one_book(named[shelf[0]], chapter)]
        own[0].append(place) if own else shelves.append([place])
    kept = max(shelves, key=lambda shelf: (len(shelf), sum(map(voice.length, shelf))))
    return replace(
        voice,
        sessions=tuple(voice.sessions[place] for place in kept),
        speech=tuple(voice.speech[place] for place in kept),
        session_names=tuple(voice.session_names[place] for place in kept),
    )


def bits_of(model: RankModel, t: int) -> FloatArray:
    """MeanD of a model and of each of its resamples, which are the same readers' in every model."""
    fitted = (model.alpha[:, t, 0], model.beta[:, t, 0], model.binomial[:, t, 0].astype(np.bool_))
    return np.asarray(mean_bits_of(*fitted, model.candidates))


def with_limits(bits: FloatArray) -> str:
    return around(bits[0], *limits(bits[1:]))
