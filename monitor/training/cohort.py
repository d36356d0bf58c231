"""A cohort of the people of a corpus: one short sketch of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from monitor.corpus.finding import find
from monitor.corpus.recordings import Corpus
from monitor.errors import UsageError
from monitor.kinds import FeatureSpec, comparable_features
from monitor.population.cohort import Cohort
from monitor.population.population import Population
from monitor.population.storing import store_kind
from monitor.population.templates import FeatureTemplates
from monitor.training.hearing import HearingOutcome, speakers_in_order
from monitor.training.listening import Listener, SpeechFrames
from monitor.types import TICKS_PER_SECOND, AnyArray
from monitor.workers import Jobs

__all__ = ["FEWEST", "cohort_from", "cohort_of"]

FEWEST = 10
"""People of a cohort."""


def cohort_from(
    path: Path, specs: Mapping[str, FeatureSpec], known: Collection[str], jobs: Jobs = 1
) -> tuple[Cohort, tuple[str, ...], tuple[str, ...]]:
    """A population's cohort, or one made of a corpus.

    Args:
        path: a population, or a corpus or frames.
        specs: of the features that are calibrated; all of them must be made alike.
        known: names of people who are enrolled or calibrate: they are left out. Of a
            population's cohort nobody is.
        jobs: processes that listen, or a cluster.

    Returns:
        the cohort; names of those left out; and one line for each file that was skipped.

    Raises:
        UsageError: a feature is missing or made by another network, or hardly anybody is left.
    """
    left: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    if path.is_file() and store_kind(path) == "population":
        found = Population.load(path).cohort
        if found is None:
            raise UsageError(f"{path} has no cohort; name a corpus of other people instead")
    else:
        corpus = find(path)
        left = tuple(sorted({each.speaker for each in corpus.recordings}.intersection(known)))
        others = tuple(each for each in corpus.recordings if each.speaker not in left)
        if len({each.speaker for each in others}) < FEWEST:
            raise UsageError(
                f"--cohort {path}: fewer than {FEWEST} people are neither enrolled nor calibrated; "
                "name a corpus of others"
            )
        corpus = replace(corpus, recordings=others)
        found, problems = cohort_of(corpus, features=list(specs), jobs=jobs)
    if lacking := sorted(specs.keys() - comparable_features(specs, found.specs)):
        raise UsageError(
            f"--cohort {path}: its {', '.join(lacking)} is missing or not made as that of the "
            "speakers; hear both with one version, or choose --features"
        )
    return found, left, problems


def cohort_of(
    corpus: Corpus, *, features: Sequence[str] | None = None, about: str = "", jobs: Jobs = 1
) -> tuple[Cohort, tuple[str, ...]]:
    """All that each speaker of a corpus said in one sketch, in the order of the speakers.

    Args:
        corpus: people who are nobody's template.
        features: names; None takes all that are ready for audio, and what a frames file holds.
        about: whose voices these are.
        jobs: processes that listen, or a cluster.

    Returns:
        counts in as few bytes as hold them, and means of embeddings in half precision (a cosine
        moves by less than 1e-4); and one line for each file that was skipped or has unusable parts.

    Raises:
        UsageError: there is no such feature.
        StoreError: nobody could be heard.
    """
    listener = Listener(features)
    problems = list(corpus.problems)
    seconds, rows, names = [], [], []
    with closing(speakers_in_order(corpus.recordings, listener, _summed, jobs=jobs)) as results:
        for recordings, each in results:
            problems += each.problems
            if each.ticks is not None:
                names.append(recordings[0].speaker)
                seconds.append(each.ticks / TICKS_PER_SECOND)
                rows.append(each.rows)
    made = {
        name: FeatureTemplates(
            spec, spec.kind.packed_background(np.stack([row[name] for row in rows]))
        )
        for name, spec in listener.specs.items()
    }
    return Cohort(np.array(seconds), made, about, tuple(names)), tuple(problems)


@dataclass(frozen=True, slots=True)
class _Summed:
    """What is left of a speaker's speech where it was heard.

    Attributes:
        rows: by feature, one sketch.
        ticks: of speech; None where nothing could be heard.
        problems: a line each.
    """

    rows: Mapping[str, AnyArray]
    ticks: int | None
    problems: tuple[str, ...]


def _summed(outcomes: Sequence[HearingOutcome], specs: Mapping[str, FeatureSpec]) -> _Summed:
    problems = tuple(o.problem for o in outcomes if o.problem)
    heard = [o.heard for o in outcomes if o.heard is not None]
    if not heard:
        return _Summed({}, None, problems)
    rows = {name: _sketched(heard, spec) for name, spec in specs.items()}
    return _Summed(rows, sum(each.speech_ticks for each in heard), problems)


def _sketched(heard: Sequence[SpeechFrames], spec: FeatureSpec) -> AnyArray:
    """Counts, or the mean of embeddings."""
    sketch = spec.sketch()
    for each in heard:
        sketch.learn_many(each.tracks[spec.name].values)
    return spec.kind.background_row(sketch)
