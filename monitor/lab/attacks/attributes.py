"""Attribute privacy: whether a voice discloses its speaker's gender, age group or accent.

VoxGuard sections 3.2 and 4.3: an attacker trains on the embeddings of some readers and is judged on
others. An attacker that protects enrolled speech also protects its training speech.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import expit

from monitor.corpus.recordings import Corpus
from monitor.corpus.tables import read_speaker_attributes
from monitor.errors import CorpusError, UsageError
from monitor.events.declaration import declared, from_json, key, to_json
from monitor.features.registry import make
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import AttackContext, ThreatModel
from monitor.lab.attacks.readers import Amounts, Piece, Reader, Readers, choose_readers
from monitor.lab.attacks.speech import ExtractedPiece, collect_trials
from monitor.lab.evaluation.input.groups import Attribute
from monitor.lab.evaluation.membership import OperatingPoint, allowed_alarms, operating_point
from monitor.lab.evaluation.verification import EER, HULL, NEAREST, eer
from monitor.lab.report.model import Figure
from monitor.maths.composition import DELTA, epsilon_nats
from monitor.maths.logistic import fit_ridge
from monitor.maths.scores import unit_vectors
from monitor.maths.statistics import REPLICATES, Estimate, speaker_weights
from monitor.phrases import plural
from monitor.safe_text import file_name, fold_name, printable
from monitor.sources.base import hash_of_whole
from monitor.types import FloatArray, IntArray, Record

_MOST = 20
_LEARNT = Amounts(5.0, 4, 0, 0)
"""Seconds and number of a background reader's excerpts, few because readers may speak little."""


def find_attribute(
    request: str, tables: Mapping[str, Mapping[str, str]], speakers: Iterable[str]
) -> Attribute:
    """Return an attribute of speakers, from tables by column and speaker.

    The request is a column, or ``COLUMN<NUMBER``, which makes two groups of numbers.

    Example:
        >>> tables = {"age": {"ann": "7", "bob": "33"}}
        >>> attribute = find_attribute("age<16", tables, ["ann", "bob", "cid"])
        >>> dict(attribute.of), attribute.values
        ({'ann': 'age<16', 'bob': 'age>=16'}, ('age<16', 'age>=16'))
    """
    parts = re.fullmatch(r"\s*(.+?)\s*<\s*([-+.\d]+)\s*", request)
    column = parts.group(1) if parts else request.strip()
    by_column = {name.lower(): values for name, values in tables.items()}
    if column.lower() not in by_column:
        known_columns = f" (columns: {printable(', '.join(tables))})" if tables else ""
        raise UsageError(
            f"the {printable(column)} of these speakers is unknown: add a column "
            f"{printable(column)} to manifest.csv{known_columns}"
        )
    by_speaker = by_column[column.lower()]
    spellings = dict[str, str]()  # F and f are one value
    values = {who: spellings.setdefault(fold_name(by_speaker[who]), by_speaker[who])
              for who in speakers if who in by_speaker}  # fmt: skip
    try:
        if parts:
            edge = float(parts.group(2))
            below, above = f"{column}<{edge:g}", f"{column}>={edge:g}"
            values = {who: below if float(value) < edge else above for who, value in values.items()}
    except ValueError:
        raise UsageError(
            f"invalid attribute {printable(request)}: column {printable(column)} has other values "
            "than numbers"
        ) from None
    attribute = Attribute("", request.strip(), values)  # may be from several files
    if len(attribute.values) > _MOST:
        raise UsageError(
            f"{printable(column)} has {plural(len(attribute.values), 'value')}, more than {_MOST}; "
            f"use two groups of numbers, such as {printable(column)}<16"
        )
    if len(attribute.values) < 2:
        raise UsageError(
            f"{printable(request)}: all {plural(len(values), 'speaker')} with a known value have "
            "the same one"
        )
    return attribute


def match_speakers(
    speakers: Iterable[str],
    has: Mapping[str, bool],
    others: Sequence[Mapping[str, str]],
    seed: int = 0,
) -> tuple[str, ...]:
    """Return as many speakers with the attribute as without, for each value of the others.

    Definition 2 of VoxGuard changes one attribute and fixes the others. A person cannot be recorded
    at another gender or age. Instead, a random choice of speakers makes both groups equally large
    for each combination of the other attributes. Speakers with an unknown attribute are excluded.

    Example:
        >>> has = {"a": True, "b": True, "c": False, "d": False, "e": False}
        >>> age = {"a": "old", "b": "young", "c": "old", "d": "old", "e": "old"}
        >>> len(match_speakers("abcde", has, [age]))
        2
    """
    cells: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    for who in sorted(speakers):
        if who in has and all(who in other for other in others):
            cell = cells.setdefault(tuple(other[who] for other in others), ([], []))
            cell[has[who]].append(who)
    generator = np.random.default_rng(seed)
    matches: list[str] = []
    for _, groups in sorted(cells.items()):
        count = min(map(len, groups))
        for group in groups:
            matches += [group[i] for i in generator.permutation(len(group))[:count]]
    return tuple(sorted(matches))


_FOLDS = 5
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
_FEWEST = 2  # minimum training speakers on either side


@dataclass(frozen=True)
class Excerpts:
    """Stretches of speech, as an attacker's embeddings."""

    vectors: FloatArray  # shape (n, d); only their directions matter
    whose: tuple[str, ...]  # n names of speakers

    def select_speakers(self, speakers: frozenset[str]) -> Excerpts:
        """Select the excerpts of some speakers."""
        indices = [i for i, who in enumerate(self.whose) if who in speakers]
        return Excerpts(self.vectors[indices], tuple(self.whose[i] for i in indices))


def compute_log_odds(
    learnt: Excerpts, judged: Excerpts, has: Mapping[str, bool], seed: int = 0
) -> FloatArray:
    """Return the attribute's log odds in each excerpt, by regressions on other readers.

    A regression never judges its own training readers. If both sets have the same readers, they are
    split into five folds, and each fold is judged by a regression on the others. All readers have
    equal weight, and so have both groups. Readers missing from ``has`` are not used for training.
    Returns the natural logarithm of the odds, shape (n,).
    """
    readers = sorted(set(judged.whose))
    shared = not set(learnt.whose).isdisjoint(readers)
    fold_of = _deal_folds(readers, has, _FOLDS if shared else 1, seed)
    folds = np.array([fold_of[who] for who in judged.whose])
    odds = np.empty(len(judged.whose))
    unit = unit_vectors(judged.vectors)
    for fold in sorted(set(fold_of.values())):
        left_out = {who for who in readers if fold_of[who] == fold}
        training_speakers = frozenset(w for w in learnt.whose if w in has and w not in left_out)
        bias, slopes = _fit(learnt.select_speakers(training_speakers), has, seed)
        odds[folds == fold] = bias + unit[folds == fold] @ slopes
    return odds


def _fit(learnt: Excerpts, has: Mapping[str, bool], seed: int) -> tuple[float, FloatArray]:
    """Fit a logistic regression with equal weights of readers in a group, and of groups."""
    readers, reader = np.unique(np.asarray(learnt.whose), return_inverse=True)
    label = np.array([has[who] for who in learnt.whose], bool)
    having = sum(has[who] for who in readers.tolist())
    counts = {"with": having, "without": len(readers) - having}
    for which, count in counts.items():
        if count < _FEWEST:
            raise UsageError(
                f"{plural(count, 'training reader')} {which} the attribute, at least {_FEWEST} "
                "needed"
            )
    weight = 1.0 / np.bincount(reader)[reader]
    for group in (label, ~label):
        weight[group] /= weight[group].sum()
    vectors = unit_vectors(learnt.vectors)
    fold_of = _deal_folds(readers.tolist(), has, min(_FOLDS, *counts.values()), seed + 1)
    fold = np.array([fold_of[who] for who in learnt.whose])

    def compute_loss(ridge: float) -> float:
        total = 0.0
        for number in np.unique(fold):
            out = fold == number
            bias, slopes = fit_ridge(vectors[~out], label[~out], weight[~out], ridge)
            odds = bias + vectors[out] @ slopes
            right = expit(np.where(label[out], odds, -odds))
            total -= float(weight[out] @ np.log(np.maximum(right, 1e-300)))
        return total

    return fit_ridge(vectors, label, weight, min(_RIDGES, key=compute_loss))


def _deal_folds(
    readers: list[str], has: Mapping[str, bool], folds: int, seed: int
) -> dict[str, int]:
    """Return the fold of each reader, with balanced groups in each fold."""
    generator = np.random.default_rng(seed)
    mixed = [readers[i] for i in generator.permutation(len(readers))]
    mixed.sort(key=lambda who: has.get(who, False))
    return {who: i % folds for i, who in enumerate(mixed)}


_RATES = (1e-2, 1e-3)  # false positive rates of the reported figures


@declared()
class AtRate:
    """Disclosure at one allowed false positive rate, with 95 % intervals."""

    asked: float = key("probability", "allowed rate")
    realised: float = key("probability", "rate reached, at most the allowed one")
    realised_high: float = key("probability", "upper limit of that rate among other readers")
    tpr: float = key(
        "probability", "fraction of the excerpts with the attribute above the threshold"
    )
    tpr_low: float = key("probability")
    tpr_high: float = key("probability")
    epsilon_nats: float | None = key("number", "VoxGuard equation 5, at least 0; null if infinite")
    epsilon_low_nats: float = key("number", "lower limit of the mechanism's epsilon")
    note: str = key("", "limitation of the figures, usually empty")

    @property
    def accepted(self) -> Figure:
        """True positive rate, with its interval."""
        return Figure("", "", self.tpr, "share", low=self.tpr_low, high=self.tpr_high)


@declared()
class AttributeJudgement:
    """Accuracy with which readers with an attribute are separated from others."""

    readers_with: int = key("count", "judged readers")
    readers_without: int = key("count")
    excerpts_with: int = key("count", "excerpts of their speech")
    excerpts_without: int = key("count")
    eer: float = key("probability", "equal error rate at the nearest threshold")
    eer_low: float = key("probability")
    eer_high: float = key("probability")
    at: tuple[AtRate, ...] = key(
        "", "for each of the rates", minItems=1,
        decode=lambda rates: tuple(from_json(AtRate, rate) for rate in rates),
    )  # fmt: skip
    eer_rocch: float | None = key(
        "probability", "equal error rate on the convex hull; if missing, `eer` has it",
        required=False, default=None,
    )  # fmt: skip

    @property
    def error(self) -> Figure:
        """Equal error rate, with its interval and the label of its rule.

        Results of an earlier version only have the rate on the hull.
        """
        rule = HULL if self.eer_rocch is None else NEAREST
        return Figure(rule, EER[rule], self.eer, "share", low=self.eer_low, high=self.eer_high)


@declared()
class AttributeRow:
    """Accuracy of one attacker on one value of an attribute."""

    method: str = key("", "method of protection")
    attacker: str = key()
    feature: str = key()
    value: str = key()
    version: str = key("", '"relaxed", or "strict": readers are matched in other attributes')
    readers_apart: bool = key("", "whether the training readers differ from the judged ones")
    seconds: float = key("seconds", "length of an excerpt")
    learnt_with: int = key("count", "training readers")
    learnt_without: int = key("count")
    judgement: AttributeJudgement

    def encode(self) -> Record:
        """Return the row for JSON, with the keys of the judgement at the same level."""
        return to_json(self) | to_json(self.judgement)

    @classmethod
    def decode(cls, row: Record) -> AttributeRow:
        """Return a row from the output of `encode`."""
        return replace(from_json(cls, row), judgement=from_json(AttributeJudgement, row))


def judge_attribute(
    scores: FloatArray,
    whose: Sequence[str],
    has: Mapping[str, bool],
    *,
    rates: tuple[float, ...] = _RATES,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> AttributeJudgement:
    """Judge scores, shape (n,), that are higher if an excerpt's reader probably has an attribute.

    A threshold is strict, and the non-mated scores determine it (as in
    `monitor.lab.evaluation.membership`). Excerpts of one reader are alike, so intervals come from
    resampled readers, separately for each group. Intervals of rates keep the threshold fixed, since
    a few readers cannot show how it varies. The bound on epsilon is Clopper and Pearson's,
    one-sided at 0.025 for each rate. Its number of independent trials accounts for the correlation
    within readers (`monitor.maths.statistics.share_limits`).
    """
    readers, reader = np.unique(np.asarray(whose), return_inverse=True)
    having = np.array([has[who] for who in readers.tolist()], bool)
    counts = int(having.sum()), int((~having).sum())
    if min(counts) < 2:
        raise UsageError(
            f"{plural(counts[0], 'reader')} with the attribute and {counts[1]} without it: a "
            "judgement needs two of each"
        )
    has_it = having[reader]
    mated, owner = np.asarray(scores[has_it], np.float64), reader[has_it]
    other, other_owner = np.asarray(scores[~has_it], np.float64), reader[~has_it]
    drawn_weights = np.zeros((replicates, having.size))  # both groups keep their size
    for offset, group in enumerate((having, ~having)):
        drawn_weights[:, group] = speaker_weights(int(group.sum()), replicates, seed + offset)
    weights = np.concatenate([drawn_weights, 1.0 - np.eye(readers.size)])
    rate, trials = eer(mated, other), min(mated.size, other.size)
    samples = np.array(
        [
            eer(np.repeat(mated, n[owner]), np.repeat(other, n[other_owner]))
            for n in weights.astype(np.int64)
        ]
    )
    error = Estimate(rate, samples[:replicates], samples[replicates:], min(counts), trials)
    at = []
    for allowed in rates:
        point = operating_point(mated, other, allowed)
        tpr_limits = _compute_share_limits(mated, owner, point.threshold, weights, replicates)
        _, mistaken = _compute_share_limits(
            other, other_owner, point.threshold, weights, replicates
        )
        loss = float(epsilon_nats(point.tpr, point.fpr))
        # each rate at the limit that disfavours the attacker
        ratios = (tpr_limits[0] - DELTA) / mistaken, (1 - mistaken - DELTA) / (1 - tpr_limits[0])
        at.append(
            AtRate(
                allowed, point.fpr, mistaken, point.tpr, *tpr_limits,
                max(loss, 0.0) if np.isfinite(loss) else None,
                float(np.log(max(1.0, *ratios))),
                _note(allowed, point, counts[1]),
            )
        )  # fmt: skip
    return AttributeJudgement(
        *counts, mated.size, other.size, rate, *error.share_limits(0.0, 1.0), tuple(at),
        eer(mated, other, "rocch"),
    )  # fmt: skip


def judge_value(
    training: Excerpts, judged: Excerpts, has: Mapping[str, bool], *,
    others: Sequence[Mapping[str, str]] | None = None, replicates: int = REPLICATES, seed: int = 0,
) -> tuple[int, int, AttributeJudgement]:  # fmt: skip
    """Train on the value of an attribute in some excerpts and judge it on others.

    Readers without an entry in ``has`` are excluded. If ``others`` has other attributes by reader,
    the readers are matched in them (`match_speakers`). Returns the numbers of training readers with
    and without the value, and the judgement. Raises UsageError if fewer than two readers have it,
    or fewer than two lack it.
    """

    def select(excerpts: Excerpts) -> Excerpts:
        readers = sorted(set(excerpts.whose) & has.keys())
        if others is not None:
            readers = list(match_speakers(readers, has, others, seed))
        return excerpts.select_speakers(frozenset(readers))

    training, judged = select(training), select(judged)
    odds = compute_log_odds(training, judged, has, seed)
    judgement = judge_attribute(odds, judged.whose, has, replicates=replicates, seed=seed)
    labels = [has[who] for who in set(training.whose)]
    return sum(labels), len(labels) - sum(labels), judgement


def _compute_share_limits(
    scores: FloatArray, owner: IntArray, threshold: float, weights: FloatArray, replicates: int
) -> tuple[float, float]:
    """Return the interval of the fraction of scores above a threshold, over readers."""
    people = weights.shape[1]
    above = np.bincount(owner, scores > threshold, minlength=people)
    total = np.bincount(owner, minlength=people)
    fraction = float(above.sum() / total.sum())
    samples = (weights @ above) / (weights @ total)
    left_out = samples[replicates:][total > 0]
    units = int((total > 0).sum())
    estimate = Estimate(fraction, samples[:replicates], left_out, units, int(total.sum()))
    return estimate.share_limits(0.0, 1.0)


def _note(allowed: float, point: OperatingPoint, readers: int) -> str:
    if not allowed_alarms(allowed, point.non_mated):
        return (
            f"{plural(point.non_mated, 'excerpt')} without the attribute cannot resolve a false "
            f"positive rate of {allowed:g}: these figures are at zero false positives"
        )
    if readers * allowed < 1:
        return (
            f"{point.non_mated} excerpts of {readers} readers cannot resolve a false positive rate "
            f"of {allowed:g} among readers"
        )
    return ""


@dataclass(frozen=True)
class AttributeTest:
    """Attributes to infer, with the judged readers and the training readers."""

    attributes: tuple[Attribute, ...]
    judged: Readers
    learnt: Readers | None  # background readers; None for cross-validation on the judged ones
    amounts: Amounts  # of the judged excerpts


def prepare_attributes(
    corpus: Corpus,
    root: Path,
    background: Sequence[tuple[Corpus, Path]],
    names: Sequence[str],
    amounts: Amounts,
    table: Path | None = None,
) -> AttributeTest:
    """Find the attributes of readers, before anything is extracted."""
    attributes = read_attributes(((corpus, root), *background), table)
    corpora = (corpus, *(others for others, _ in background))
    speakers = [name for group in corpora for name in group.speakers]
    requests = tuple(find_attribute(name, attributes, speakers) for name in names)
    amounts = replace(amounts, least_segments=0, most_segments=0)
    judged = choose_readers(corpus, root, amounts, session="same")
    hashes = {hash_of_whole(piece.path) for piece in judged.pieces("trials")}
    readers: list[Reader] = []
    names_so_far = set(corpus.speakers)
    for others, folder in background:
        apart = tuple(
            recording
            for recording in others
            if recording.speaker not in names_so_far and hash_of_whole(recording.path) not in hashes
        )
        with suppress(CorpusError):  # no reader has enough speech
            readers += choose_readers(Corpus(apart, ()), folder, _LEARNT, session="same").everybody
        names_so_far.update(others.speakers)
    learnt = Readers(tuple(readers), "same") if readers else None
    return AttributeTest(requests, judged, learnt, amounts)


def check_attributes(
    corpus: Corpus, root: Path, background: Sequence[Path], names: Sequence[str], table: Path | None
) -> None:
    """Check that the judged readers' attributes are known, before anything is extracted."""
    corpora = ((corpus, root), *((None, folder) for folder in background))
    attributes = read_attributes(corpora, table) if names else {}
    for name in names:
        find_attribute(name, attributes, corpus.speakers)


def read_attributes(
    corpora: Sequence[tuple[Corpus | None, Path]], table: Path | None
) -> dict[str, dict[str, str]]:
    """Read attributes of the speakers of corpora, or from a table, by column and speaker.

    If corpora name different people the same, the first one applies.
    """
    if table is not None and not table.is_file():
        raise UsageError(f"{file_name(table)} does not exist; check the name")
    attributes: dict[str, dict[str, str]] = {}
    described = set[str]()
    for corpus, path in [(None, table)] if table else corpora:
        stated = (corpus.attributes if corpus is not None else {}) or read_speaker_attributes(path)
        for column, by_speaker in stated.items():
            others = {who: value for who, value in by_speaker.items() if who not in described}
            attributes.setdefault(column.lower(), {}).update(others)
        described.update(*stated.values(), corpus.speakers if corpus is not None else ())
    return attributes


def judge_attributes(
    context: AttackContext,
    method: str,
    attacker: ThreatModel,
    test: AttributeTest,
    *,
    replicates: int = REPLICATES,
) -> Iterator[tuple[str, AttributeRow]]:
    """Judge what one attacker infers under one method, with one row for each value.

    An attribute of two values is judged in both directions, since their rare errors differ. The
    relaxed version uses all readers. The strict one matches readers in the other requested
    attributes. Values with too few readers are excluded and noted.
    """
    for name, feature in context.get_features(attacker, method).items():
        spec = make((feature,), context.extractor.setup)[0].spec
        if not spec.kind.pointed:
            continue
        readers, amounts = test.judged, test.amounts
        pieces = readers.pieces("trials")
        extracted = context.extractor.extract(pieces, method, context.seed, (feature,))
        excerpts = _collect_excerpts(readers, extracted, spec, amounts)
        if test.learnt is not None:
            readers, amounts = test.learnt, _LEARNT
        extracted = context.extract_own(readers.pieces("trials"), attacker, method, (feature,))
        training = _collect_excerpts(readers, extracted, spec, amounts)
        for attribute in test.attributes:
            groups = [other.of for other in test.attributes if other is not attribute]
            for value in attribute.values:
                has_value = {who: group == value for who, group in attribute.of.items()}
                for version in ("relaxed", "strict") if groups else ("relaxed",):
                    try:
                        judgement = judge_value(
                            training, excerpts, has_value,
                            others=groups if version == "strict" else None,
                            replicates=replicates, seed=context.seed,
                        )  # fmt: skip
                    except UsageError as error:  # too few readers: keep the other values
                        context.notes.append(f"{value}, {version}, was not judged: {error}")
                        continue
                    yield attribute.name, AttributeRow(
                        method, attacker.name, name, value, version, test.learnt is not None,
                        test.amounts.seconds, *judgement,
                    )  # fmt: skip


def _collect_excerpts(
    readers: Readers, extracted: Mapping[Piece, ExtractedPiece], spec: FeatureSpec, amounts: Amounts
) -> Excerpts:
    rows, speakers = [], []
    for reader in readers.everybody:
        trials = collect_trials(reader, extracted, {spec.name: spec}, amounts)
        if trials is None:
            continue
        vectors = trials[spec.name][np.any(trials[spec.name], axis=1)]
        rows.append(vectors)
        speakers += len(vectors) * [reader.name]
    if not speakers:
        raise CorpusError("no reader has an embedding")
    return Excerpts(np.concatenate(rows), tuple(speakers))
