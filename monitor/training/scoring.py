"""Scores of a corpus against enrolled speakers: trials x speakers matrices for `evaluate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from monitor.corpus.recordings import Corpus
from monitor.errors import CorpusError
from monitor.evaluation import ScoreMatrix
from monitor.features.registry import superseded
from monitor.population.law import Laws
from monitor.population.population import Population
from monitor.sources.provenance import provenance_of
from monitor.stream.attacker import Attacker
from monitor.stream.overlap import session_of
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, collect, units_of
from monitor.types import AnyArray, FloatArray, IntArray

__all__ = ["CorpusScores", "Stretches", "largest", "score", "stretches"]


@dataclass(frozen=True, slots=True)
class CorpusScores:
    """Scores of a corpus: trials x speakers, and whose each trial is.

    Attributes:
        matrices: trials x speakers, one a feature and, of several features, ``"joint"``: their sum
            as the attacker weighs them. All have the same trials and speakers.
        session: ``"same"`` where a recording of the corpus had been enrolled, else ``"cross"``:
            which law weighed the features.
        problems: a line for everything that was left out.
    """

    matrices: Mapping[str, ScoreMatrix]
    session: str
    problems: tuple[str, ...]


def score(
    corpus: Corpus,
    population: Population,
    features: Sequence[str] | None = None,
    *,
    seconds: float = 10.0,
    laws: Laws | None = None,
    allow_overlap: bool = False,
    jobs: int = 1,
) -> CorpusScores:
    """Score every stretch of speech of a corpus against every enrolled speaker, as `Monitor` does.

    To evaluate an anonymiser, enrol the speakers from recordings of theirs, and score the
    anonymised ones. Each session is cut into consecutive trials of ``seconds`` speech seconds; a
    rest is left out, and so are speakers who are not enrolled.

    Args:
        corpus: recordings, or ready-made frames, by speaker and session.
        population: the templates, with laws unless ``laws`` are given.
        features: names; None takes all of which the population has laws and templates and the
            corpus frames.
        seconds: T, a multiple of 0.1.
        laws: laws to use instead of the population's own.
        allow_overlap: score recordings that were enrolled, too.
        jobs: processes that listen; the result does not depend on it.

    Raises:
        UsageError: a length or a feature that makes no sense.
        CorpusError: nobody enrolled says as much in the corpus.
        OverlapError: a recording was enrolled, and that is not allowed.
        StoreError: there is no law for these features.

    Example::

        from monitor.corpus import find
        found = score(find("anonymised/"), population, ["f0", "voice"], seconds=10)
        report = evaluate(found.matrices["voice"])
    """
    units_of(seconds)
    parts = (provenance_of(recording.path) for recording in corpus)
    session = session_of(population, parts, allow_overlap=allow_overlap)
    voices, specs, missing = collect(corpus, features=features, jobs=jobs)
    chosen = tuple(features or largest(population.laws if laws is None else laws, specs))
    attacker = Attacker(population, chosen, session=session, laws=laws)
    heard = stretches(voices, attacker.names, attacker.features, seconds)
    scores = attacker.scores(heard.totals, heard.seconds)
    matrices = {
        name: ScoreMatrix(each, heard.target, attacker.names, name, heard.names)
        for name, each in scores.items()
    }
    return CorpusScores(matrices, session, (*missing, *heard.problems))


@dataclass(frozen=True, slots=True)
class Stretches:
    """Consecutive stretches of speech of enrolled speakers: the trials of n of them.

    Attributes:
        totals: of each feature, shape (n, M).
        target: position of each one's speaker among those enrolled, shape (n,).
        names: of each.
        sessions: of each, the recording session that it is of.
        start_seconds: where it begins there, on the clock of speech: shape (n,).
        problems: a line for everybody who was left out.
        seconds: T of each, speech seconds, shape (n,).
    """

    totals: Mapping[str, AnyArray]
    target: IntArray
    names: tuple[str, ...]
    sessions: tuple[str, ...]
    start_seconds: FloatArray
    problems: tuple[str, ...]
    seconds: FloatArray


def stretches(
    voices: Sequence[SpeakerSpeech],
    enrolled: Sequence[str],
    features: Sequence[str],
    seconds: float | None,
) -> Stretches:
    """Cut each session into stretches of ``seconds`` speech seconds; a rest is left out.

    Args:
        voices: the speech.
        enrolled: who is compared with.
        features: to sum up.
        seconds: T; None takes each session as it is, however long.

    Raises:
        UsageError: a length that makes no sense.
        CorpusError: nobody enrolled says as much.
    """
    fixed = None if seconds is None else units_of(seconds)
    index = {name: i for i, name in enumerate(enrolled)}
    problems: list[str] = []
    totals: dict[str, list[AnyArray]] = {name: [] for name in features}
    target: list[int] = []
    names: list[str] = []
    sessions: list[str] = []
    starts: list[int] = []
    lengths: list[int] = []
    for voice in voices:
        if voice.name not in index:
            problems.append(f"{voice.name}: not among the speakers compared with, left out")
            continue
        before = len(target)
        for place, heard in enumerate(voice.sessions):
            units = fixed or max(voice.length(place), 1)
            count = voice.length(place) // units
            for name, found in totals.items():
                found += [heard[name].total(i * units, units) for i in range(count)]
            target += [index[voice.name]] * count
            names += [f"{voice.name} {place + 1} {i + 1}" for i in range(count)]
            sessions += [voice.session_name(place)] * count
            starts += [i * units for i in range(count)]
            lengths += [units] * count
        if len(target) == before:
            longest = max(map(voice.length, range(len(voice.sessions)))) / UNITS_PER_SECOND
            problems.append(
                f"{voice.name}: {longest:g} s of speech in the longest session, less than "
                f"T={seconds or 1 / UNITS_PER_SECOND:g}: no trial"
            )
    if not target:
        if problems and not any(voice.name in index for voice in voices):
            raise CorpusError(f"nobody who speaks there is enrolled: {problems[0]}")
        said = "anything" if seconds is None else f"as much as {seconds:g} s"
        raise CorpusError(f"nobody enrolled says {said} in one session")
    return Stretches(
        {name: np.stack(each) for name, each in totals.items()},
        np.array(target),
        tuple(names),
        tuple(sessions),
        np.array(starts) / UNITS_PER_SECOND,
        tuple(problems),
        np.array(lengths) / UNITS_PER_SECOND,
    )


def largest(laws: Laws, there: Iterable[str]) -> tuple[str, ...]:
    """The largest set of features that there is a law for and that was heard.

    Of two as large the one without what another feature does better; all features where no law is.
    """
    have = set(there)
    sets = [law.features for law in laws if have >= set(law.features)]

    def worth(names: Sequence[str]) -> tuple[int, int]:
        return len(names), -sum(superseded(name, have) for name in names)

    return max(sets, key=worth, default=tuple(there))
