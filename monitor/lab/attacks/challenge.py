"""VoicePrivacy's evaluation of anonymisers: its lists of trials, by each attacker of `attack`.

Each utterance has one embedding of length 1, and a template is the mean of a speaker's utterances
(kit of 2026).
The ignorant attacker enrols original speech, and the lazy-informed one anonymised speech. The
semi-informed attacker also trains the network. With a background, scores are
also normalised if this lowers the EER of the background readers, in a section of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from monitor.corpus import Corpus, find
from monitor.corpus.trials import read_enrolment
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.features.registry import FeatureSetup, defaults
from monitor.features.registry import make as make_features
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import ATTACKERS, AttackContext, ThreatModel
from monitor.lab.attacks.readers import Piece, Reader, Readers
from monitor.lab.attacks.results import describe_exclusions, method_name
from monitor.lab.attacks.sides import (
    choose_normalisation,
    collect_cohort,
    describe_choice,
    get_cohort,
    make_halves,
    split_cohort,
)
from monitor.lab.attacks.speech import CLEAR, ExtractedPiece, join_speech
from monitor.lab.evaluation.listed import ListedTrials
from monitor.lab.evaluation.verification import eer
from monitor.lab.evaluation.voiceprivacy import EVALUATOR, TRAINED, ChallengeRow, format_rows
from monitor.lab.normalisation import score_normalised
from monitor.lab.scoring import average_by_speaker
from monitor.lab.utility import FAILURE, count_edits, split_words
from monitor.maths.scores import Similarity, unit_vectors
from monitor.protocols import Feature
from monitor.sources.file import File
from monitor.types import AnyArray, FloatArray, IntArray

CHALLENGE = {
    "ignorant": (EVALUATOR, "oa"),
    "lazy-informed": (EVALUATOR, "aa"),
    "semi-informed": (TRAINED, "aa"),
}
"""Section and sides (`ChallengeRow`) of the challenge's attackers."""
_HOUR = 3600.0


def choose_embedding(requested: Sequence[str], setup: FeatureSetup) -> tuple[str, ...]:
    """Return the single speaker embedding that recognises voices, like the challenge's network.

    Raises UsageError if the requested features are not one embedding.
    """
    embeddings = [
        feature.spec.name
        for feature in make_features(requested or defaults(setup=setup), setup)
        if feature.spec.kind.pointed
    ]
    if len(embeddings) != 1 or (requested and len(requested) > 1):
        raise UsageError("--voiceprivacy uses one speaker embedding: use --features voice")
    return tuple(requested) or (embeddings[0],)


def choose_listed(listed: ListedTrials, corpus: Corpus) -> Readers:
    """Return the speakers of the lists, with each listed utterance as a piece.

    Raises CorpusError if fewer than two speakers are enrolled.
    """
    lists = listed.lists
    enrolled_files = read_enrolment(listed.enrolment) or frozenset()
    enrolled = find(listed.enrolment) if listed.enrolment != listed.folder else corpus
    pieces: dict[str, tuple[list[Piece], list[Piece]]] = {}
    problems = [*corpus.problems]
    recordings = [
        *((0, r) for r in enrolled if r.session in enrolled_files and r.speaker in lists.speakers),
        *((1, r) for r in lists.trials(corpus, impostors=True)),
    ]
    for index, recording in recordings:
        try:
            end = File(recording.path).seconds or _HOUR
        except SourceError as error:
            problems.append(str(error))
            continue
        piece = Piece(recording.path, recording.session, recording.speaker, 0.0, end, whole=True)
        pieces.setdefault(recording.speaker, ([], []))[index].append(piece)
    if sum(bool(enrolment) for enrolment, _ in pieces.values()) < 2:
        raise CorpusError(f"{listed.enrolment.name} enrols fewer than two listed speakers")
    readers = (
        Reader(name, (tuple(enrolment),), (), tuple(trials))
        for name, (enrolment, trials) in pieces.items()
    )
    return Readers(tuple(readers), "cross", tuple(problems))


def try_lists(
    context: AttackContext,
    listed: ListedTrials,
    methods: Mapping[str, Sequence[ThreatModel]],
    *,
    on_progress: Callable[[str], object] = lambda _: None,
    on_seconds: Callable[[float], None] = lambda _: None,
) -> dict[str, str]:
    """Attack the lists of trials, protected by each method, as in the challenge.

    Returns the challenge's table of results by method, with the original speech in each. Raises
    CorpusError if no utterance could be protected.
    """
    replace(context.extractor, progress=on_seconds).prefetch(
        context.list_requests(methods), context.features
    )
    clear = list(_attack_lists(context, listed, CLEAR, ATTACKERS["ignorant"], (EVALUATOR, "oo")))
    clear_words = _measure_words(context, listed, CLEAR)
    tables = {}
    for method, attackers in methods.items():
        rows = list(clear)
        for attacker in attackers:
            if method == CLEAR:
                continue
            on_progress(f"{method}, {attacker.name}")
            rows += _attack_lists(context, listed, method, attacker, CHALLENGE[attacker.name])
        words = {} if method == CLEAR else _measure_words(context, listed, method)
        tables[method] = format_rows(rows, clear_words | words)
    return tables


def _measure_words(
    context: AttackContext, listed: ListedTrials, method: str
) -> dict[tuple[str, str], float]:
    """Return the word error of the trials relative to their transcripts, if it is measured."""
    words, edits, failures = 0, 0, list[str]()
    for piece, trial in context.extract_trials(method, context.features).items():
        reference = split_words(listed.texts.get(piece.name, ""))
        for counts in trial.measured.values():
            if FAILURE in counts or not reference:
                failures.append(f"{piece.name} ({counts.get(FAILURE, 'no text')})")
                continue
            words += len(reference)
            edits += count_edits(counts["recognised"], reference)
    if failures:
        context.notes.append(describe_exclusions(method, failures))
    return {(listed.dataset, "o" if method == CLEAR else "a"): edits / words} if words else {}


def _attack_lists(
    context: AttackContext, listed: ListedTrials, method: str, attacker: ThreatModel,
    section: tuple[str, str],
) -> Iterator[ChallengeRow]:  # fmt: skip
    feature = list(context.get_features(attacker, method).values())[-1]
    (extractor,) = make_features([feature], context.extractor.setup)
    enrolment, tested = (context.judged.pieces(role) for role in ("enrolment", "trials"))
    enrolled = context.extract_own(enrolment, attacker, method, [feature])
    published = context.extract_trials(method, [feature])
    spoken_by = {piece.name: piece.speaker for piece in (*enrolment, *tested)}
    templates = average_by_speaker(_embed(enrolment, enrolled, extractor.spec), spoken_by)
    trials = _embed(tested, published, extractor.spec)
    if len(templates) < 2 or not trials:
        raise CorpusError("too few utterances could be protected and extracted")
    means, tests = (np.stack(list(rows.values())) for rows in (templates, trials))
    for note in listed.notes(templates, trials):
        context.notes.append(f"{method_name(method)}, {attacker.name}: {note}")
    scores: dict[str, FloatArray] = {section[0]: tests @ unit_vectors(means).T}
    scores |= {
        f"{section[0]} {way}-norm": score_normalised(way, tests, means, cohort, similarity)
        for way, cohort, similarity in _normalise(context, method, attacker, extractor)
    }
    for network, matrix in scores.items():
        yield from listed.rows(
            network, section[1], matrix,
            {name: column for column, name in enumerate(templates)},
            {name: row for row, name in enumerate(trials)}, spoken_by,
        )  # fmt: skip


def _normalise(
    context: AttackContext, method: str, attacker: ThreatModel, extractor: Feature
) -> Iterator[tuple[str, tuple[AnyArray, AnyArray], Similarity]]:
    """Yield the normalisation with the lowest EER of background readers, and its cohort.

    Nothing is yielded if that is the EER without normalisation.
    """
    name, count = extractor.spec.name, context.amounts.least_segments
    cohort = collect_cohort(context, attacker, method, [extractor], {name: extractor.spec})
    if cohort is None:
        return
    similarity = extractor.spec.kind.similarity()
    held_back = split_cohort(cohort, make_halves(cohort.names))

    def judge(scores: FloatArray, target: IntArray) -> float:
        mated = target[:, None] == np.arange(scores.shape[1])
        return -100 * eer(scores[mated], scores[~mated], "nearest")

    way = choose_normalisation(held_back, name, similarity, count, judge)
    choice = describe_choice(attacker.name, name, way, len(cohort.names))
    context.notes.append(f"{method_name(method)}: {choice}")
    if way:
        yield way, get_cohort(cohort, name, count), similarity


def _embed(
    pieces: Sequence[Piece], extracted: Mapping[Piece, ExtractedPiece], spec: FeatureSpec
) -> dict[str, FloatArray]:
    """Return the embedding of each utterance with speech, of length 1, by its name."""
    vectors = {}
    for piece in pieces:
        session = join_speech([piece], extracted, {spec.name: spec})
        if session is not None and np.any(total := session[spec.name].whole()):
            vectors[piece.name] = unit_vectors(total)
    return vectors
