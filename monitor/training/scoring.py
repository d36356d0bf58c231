"""Scores of a corpus against enrolled speakers: trials x speakers matrices for `evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from monitor.corpus.recordings import Corpus
from monitor.errors import CorpusError, UsageError
from monitor.evaluation import ScoreMatrix
from monitor.kinds import FeatureSpec
from monitor.population.law import Laws
from monitor.population.population import Population
from monitor.sources.provenance import provenance_of
from monitor.stream.attacker import Attacker
from monitor.stream.overlap import session_of
from monitor.training.voices import UNITS_PER_SECOND, collect
from monitor.types import AnyArray

__all__ = ["CorpusScores", "score"]


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
    units = round(seconds * UNITS_PER_SECOND)
    if units < 1 or abs(seconds * UNITS_PER_SECOND - units) > 1e-6:
        raise UsageError(f"seconds={seconds:g} must be a positive multiple of 0.1")
    parts = (provenance_of(recording.path) for recording in corpus)
    session = session_of(population, parts, allow_overlap=allow_overlap)
    voices, specs, missing = collect(corpus, features=features, jobs=jobs)
    chosen = tuple(features or _largest(population.laws if laws is None else laws, specs))
    attacker = Attacker(population, chosen, session=session, laws=laws)
    problems = list(missing)
    totals: dict[str, list[AnyArray]] = {name: [] for name in attacker.features}
    target: list[int] = []
    names: list[str] = []
    for voice in voices:
        if voice.name not in attacker.names:
            problems.append(f"{voice.name}: not among the speakers compared with, left out")
            continue
        for place, heard in enumerate(voice.sessions):
            count = voice.length(place) // units
            for name, found in totals.items():
                found += [heard[name].total(i * units, units) for i in range(count)]
            target += [attacker.names.index(voice.name)] * count
            names += [f"{voice.name} {place + 1} {i + 1}" for i in range(count)]
    if not target:
        raise CorpusError(f"nobody enrolled says as much as {seconds:g} s in one session")
    rows = {name: np.stack(each) for name, each in totals.items()}
    scores = attacker.scores(rows, np.full(len(target), units / UNITS_PER_SECOND))
    columns = np.array(target)
    matrices = {
        name: ScoreMatrix(each, columns, attacker.names, name, tuple(names))
        for name, each in scores.items()
    }
    return CorpusScores(matrices, session, tuple(problems))


def _largest(laws: Laws, there: Mapping[str, FeatureSpec]) -> Sequence[str]:
    """The largest set of features that there is a law for and that was heard."""
    sets = [law.features for law in laws if there.keys() >= set(law.features)]
    return max(sets, key=len, default=tuple(there))
