"""What `style` discloses on read text: the book, or who reads it?

    python -m benchmarks.style SPEECH [--frames FRAMES] [--nonnative NONNATIVE]

Each table stands below what it says. SPEECH has a transcript beside each chapter (`CHAPTER.tsv`);
times of words are spread over its utterances. With FRAMES, made by `benchmarks.hear` with the
features f0, phones and voice, rank models are learnt with style and without it. Templates and tests
are stretches of speech seconds of different chapters, but for `the same chapter`, where the test
begins after the template. Tests are those of readers on whom nothing was chosen.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.books import Chapter, content, one_book, print_check
from benchmarks.hear import CORPORA, chapters
from benchmarks.rank_bits import RankBits, rank_bits
from benchmarks.style_rank_models import judges, print_one_session, print_rank_models
from monitor.corpus import find
from monitor.features.style import Style
from monitor.jobs import cores
from monitor.maths.ranks import rank_bounds
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, collect
from monitor.transcripts import read_transcript
from monitor.types import AnyArray, BoolArray

LENGTHS = ((30.0, 60.0), (60.0, 60.0))
"""T and D, speech seconds."""
CANDIDATES = 40
SAME = "the same chapter"
BOOK = "another chapter of the book, the same reader"
OTHERS_BOOK = "another chapter of the book, another reader"
READER = "another book, the same reader"
KINDS = (SAME, BOOK, OTHERS_BOOK, READER)


def main() -> None:
    parser = argparse.ArgumentParser(description="What style discloses on read text.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("--frames", type=Path, help="of the other features, for joint rank models")
    parser.add_argument("--nonnative", type=Path, help="speakers of sentences, one session each")
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    if not (given.speech / "manifest.csv").is_file():
        parser.error(f"{given.speech} has no manifest.csv")
    rows = chapters(given.speech, CORPORA)
    said = {}
    for row in rows:
        transcript = read_transcript((given.speech / row["path"]).with_suffix(".tsv"))
        words = [word.text for word in transcript.timed_words]
        said[Chapter(row["speaker"], int(row["chapter"]))] = content(words)
    print("## Which chapters are of one book\n")
    print_check(said)
    places = [(given.speech / row["path"], row["speaker"], row["chapter"]) for row in rows]
    voices = heard(places, given.jobs)
    print("\n## The book, or who reads it\n")
    print_books(voices, judges(given.speech))
    if given.frames is not None:
        print("\n## Rank models with style and without it\n")
        print_rank_models(voices, given.frames)
    if given.nonnative is not None:
        with (given.nonnative / "manifest.csv").open(encoding="utf-8") as file:
            found = [(given.nonnative / r["path"], r["speaker"], "") for r in csv.DictReader(file)]
        print("\n## Sentences that were given to speakers\n")
        print_one_session(heard(found, given.jobs))


def heard(places: Sequence[tuple[Path, str, str]], jobs: int) -> list[SpeakerSpeech]:
    """Style, of recordings: where each lies, its speaker and its session."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder, "all.csv")
        lines = [f"{path.resolve()},{speaker},{session}" for path, speaker, session in places]
        manifest.write_text("\n".join(["path,speaker,session", *lines, ""]), encoding="utf-8")
        voices, _, problems = collect(find(manifest), features=["style"], jobs=jobs)
    for problem in problems:
        raise SystemExit(problem)
    return voices


def print_books(voices: Sequence[SpeakerSpeech], judging: Container[str]) -> None:
    """A line for each kind of pair of chapters and each pair of lengths."""
    sessions = {
        Chapter(voice.name, int(name)): session["style"]
        for voice in voices
        for name, session in zip(voice.session_names, voice.sessions, strict=True)
    }
    measure = next(iter(sessions.values())).spec.kind.similarity()
    print(
        "| template | T, D | style | without words a second | words a second alone "
        "| the rank model of style among 11 696 | readers, trials |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for length, template in LENGTHS:
        t, d = (round(x * UNITS_PER_SECOND) for x in (length, template))
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
        for kept in parts():
            scores = measure.score(measure.prepare(templates[:, kept]), tests[:, kept])
            trials = ranked(owners, [(c, s) for c, s, _ in windows], scores, d)
            for kind, rows in trials.items():
                better, tied = np.array([row[:2] for row in rows]).T
                found[kind].append(rank_bits(better, tied, [r[2] for r in rows], CANDIDATES))
        for kind in KINDS:
            of_all, words, tempo = found[kind]
            print(
                f"| {kind} | {length:g}, {template:g} s | {of_all} | {words} | {tempo} "
                f"| {of_all.many:.2f} | {of_all.speakers}, {of_all.trials} |"
            )


def parts() -> Iterator[BoolArray]:
    """Which bins: all, those of words, and those of how many there are a second."""
    names = Style().bins
    tempo = np.array(["words a second" in name for name in names])
    yield np.ones(len(names), np.bool_)
    yield ~tempo
    yield tempo


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


if __name__ == "__main__":
    main()
