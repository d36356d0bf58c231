"""Speech that an attacker compares, and the background speakers relative to whom it scores.

Judged readers come first. In the control attack, outsiders' trials are compared with the judged
templates. Each half of the background readers is judged relative to the other half, which
decides how scores are normalised. So nothing is decided on the judged readers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from monitor.errors import CorpusError
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import (
    AttackContext,
    FittedMap,
    ThreatModel,
    measure_apartness,
    shuffle,
)
from monitor.lab.attacks.readers import Piece, Readers
from monitor.lab.attacks.speech import AttackSpeech, ExtractedPiece, collect_speech, collect_trials
from monitor.lab.normalisation import score_normalised
from monitor.maths.scores import Similarity
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS
from monitor.types import AnyArray, FloatArray, IntArray

METHODS = ("z", "t", "s")
"""Ways of normalisation. The cohort is too small for the adaptive one to differ."""


@dataclass(frozen=True, slots=True)
class Side:
    """Speech to compare, and the same of background speakers, if there are enough."""

    speech: AttackSpeech
    cohort: AttackSpeech | None = None

    def score(
        self, feature: str, similarity: Similarity, count: int, method: str = ""
    ) -> FloatArray:
        """Score trials against the sums of every reader's first segments, shape (n, N).

        A method is one of `METHODS`.
        """
        if not method or self.cohort is None:
            return self.speech.score(feature, similarity, count)
        templates = self.speech.sum_segments(feature, count)
        return score_normalised(
            method, self.speech.trials[feature], templates,
            get_cohort(self.cohort, feature, count), similarity,
        )  # fmt: skip


def get_cohort(speech: AttackSpeech, feature: str, count: int) -> tuple[AnyArray, AnyArray]:
    """Return the trials and templates with frames, shape (k, M) each."""
    both = speech.trials[feature], speech.sum_segments(feature, count)
    trials, templates = (rows[np.any(rows, axis=1)] for rows in both)
    return trials, templates


def collect_sides(
    context: AttackContext, attacker: ThreatModel, method: str,
    features: Sequence[str | Feature], specs: Mapping[str, FeatureSpec],
) -> tuple[list[Side], list[Side]]:  # fmt: skip
    """Return the speech to compare, with outsiders' trials if any, and the held-back sides.

    An outsider's trials never use a map that was fitted to this outsider, like those of the judged
    readers.
    """
    published = context.extract_trials(method, features)
    judged = _collect(context, attacker, method, features, specs, context.judged, published)
    readers, extracted = context.extract_outsiders(attacker, method, features)
    trials = {
        reader.name: speech
        for reader in readers
        if (speech := collect_trials(reader, extracted, specs, context.amounts)) is not None
    }
    cohort = collect_cohort(context, attacker, method, features, specs)
    if attacker.fits:
        maps = attacker.fits(context, method, specs)
    else:
        maps = [FittedMap(lambda speech: speech), *make_halves(trials)]
    sides = [Side(maps[0].apply(judged), cohort and maps[0].apply(cohort))]
    held_back = split_cohort(cohort, maps[1:])
    number = {name: i for i, name in enumerate(trials)}
    for i, fitted in enumerate(maps[1:] or maps):
        names = [name for name in trials if name not in fitted.readers]
        if names and len(trials) > 1:
            outsiders = {number[name]: trials[name] for name in names}
            others = held_back[i].cohort if held_back else None
            sides.append(Side(fitted.apply(judged.with_trials(outsiders)), others))
    return sides, held_back


def make_halves(readers: Collection[str]) -> list[FittedMap]:
    """Return maps that change nothing, for each half of the readers; none for too few readers."""
    if len(readers) < FEWEST_SPEAKERS:
        return []
    order = shuffle(readers)
    return [FittedMap(lambda speech: speech, frozenset(order[i::2])) for i in (0, 1)]


def _collect(
    context: AttackContext, attacker: ThreatModel, method: str,
    features: Sequence[str | Feature], specs: Mapping[str, FeatureSpec],
    readers: Readers, published: Mapping[Piece, ExtractedPiece],
) -> AttackSpeech:  # fmt: skip
    """Collect the speech of readers, enrolled as the attacker does it."""
    pieces = readers.pieces("enrolment")
    enrolments = [context.extract_own(pieces, attacker, method, features)]
    enrolments += [
        context.extract_own(pieces, attacker, method, tuple(specs), draw)
        for draw in range(1, attacker.draws)
    ]
    first, *others = (
        collect_speech(readers, context.amounts, specs, enrolment, published)
        for enrolment in enrolments
    )
    return reduce(AttackSpeech.add_segments, others, first)


def collect_cohort(
    context: AttackContext, attacker: ThreatModel, method: str,
    features: Sequence[str | Feature], specs: Mapping[str, FeatureSpec],
) -> AttackSpeech | None:  # fmt: skip
    """Collect the embeddings of background readers; None if there are too few."""
    embeddings = {name: spec for name, spec in specs.items() if spec.kind.pointed}
    readers, published = context.extract_outsiders(attacker, method, features)
    if not embeddings or len(readers) < FEWEST_SPEAKERS:
        return None
    try:
        return _collect(
            context, attacker, method, features, embeddings, Readers(readers, "same"), published
        )
    except CorpusError:  # the method leaves too little speech
        return None


def split_cohort(cohort: AttackSpeech | None, maps: Sequence[FittedMap]) -> list[Side]:
    """Return each half of a cohort, to be judged relative to the readers of a map."""
    if cohort is None:
        return []
    parts = [(cohort.select({*cohort.names} - fitted.readers), cohort.select(fitted.readers))
             for fitted in maps]  # fmt: skip
    if any(len(speech.names) < 2 for pair in parts for speech in pair):
        return []
    return [Side(*map(fitted.apply, pair)) for fitted, pair in zip(maps, parts, strict=True)]


def choose_normalisation(
    held_back: Sequence[Side], feature: str, similarity: Similarity, count: int,
    judge: Callable[[FloatArray, IntArray], float] = measure_apartness,
) -> str:  # fmt: skip
    """Return the method that wins on held-back readers, or an empty string.

    The judge gets scores, shape (n, N), and the column of each trial's reader. Higher is better.
    """
    cohorts = [get_cohort(side.cohort, feature, count) for side in held_back if side.cohort]
    if not cohorts or min(len(rows) for pair in cohorts for rows in pair) < 2:
        return ""

    def rank_key(method: str) -> float:
        scores = [side.score(feature, similarity, count, method) for side in held_back]
        values = [judge(of, side.speech.target) for of, side in zip(scores, held_back, strict=True)]
        return round(sum(values), 2)

    return max(("", *METHODS), key=rank_key)


def describe_choice(attacker: str, feature: str, choice: str, readers: int) -> str:
    """Describe for people which normalisation won."""
    won = f"{choice}-norm wins" if choice else "none wins"
    return f"score normalisation of {attacker}, {feature}: {won} on {readers} background readers"
