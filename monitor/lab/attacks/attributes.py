"""Attributes that a protected voice discloses, learnt from background speakers.

VoxGuard section 3.2 and 4.3, see `monitor.lab.attributes`. The attacker's knowledge of the
anonymiser is that of `monitor.lab.attacks.attackers`: who protects what is enrolled protects what
is learnt from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from monitor.corpus import Corpus, read_speaker_attributes
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import make
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.context import AttackContext, ThreatModel, collect_trials
from monitor.lab.attacks.extraction import CLEAR, ExtractedPiece
from monitor.lab.attacks.readers import Amounts, Piece, Reader, Readers, choose_readers
from monitor.lab.attributes import (
    AttributeRow,
    Excerpts,
    SpeakerAttribute,
    find_attribute,
    judge_value,
)
from monitor.maths.statistics import REPLICATES
from monitor.safe_text import file_name
from monitor.sources.base import file_hash

LEARNT_SECONDS = 5.0  # of speech, of an excerpt of a background: its readers may say little
LEARNT_EXCERPTS = 4  # of each of them, at most
_LEARNT = Amounts(LEARNT_SECONDS, LEARNT_EXCERPTS, 0, 0)


@dataclass(frozen=True)
class AttributeTest:
    """Attributes to infer, the readers judged and those learnt from.

    Attributes:
        learnt: background speakers that the attacker learns from; None where it learns from some of
            the judged and is judged on the others.
        amounts: speech seconds of an excerpt that is judged, and excerpts of each reader.
    """

    asked: tuple[SpeakerAttribute, ...]
    judged: Readers
    learnt: Readers | None
    amounts: Amounts

    @property
    def seconds(self) -> float:
        """Audio seconds that one attacker extracts of one method."""
        apart = self.learnt or self.judged
        both = (*self.judged.pieces("trials"), *apart.pieces("trials"))
        return sum(piece.seconds for piece in both)


def prepare_attributes(
    corpus: Corpus,
    root: Path,
    background: Sequence[tuple[Corpus, Path]],
    names: Sequence[str],
    amounts: Amounts,
    table: Path | None = None,
) -> AttributeTest:
    """Find the attributes of readers, before anything is extracted.

    Raises:
        UsageError: an attribute is unknown, or all are alike.
        CorpusError: nobody says enough.
    """
    attributes = _read_attributes(root, [folder for _, folder in background], table)
    speakers = [
        name
        for corpus_here in (corpus, *(c for c, _ in background))
        for name in corpus_here.speakers
    ]
    requests = tuple(find_attribute(recording, attributes, speakers) for recording in names)
    amounts = replace(amounts, least_segments=0, most_segments=0)
    judged = choose_readers(corpus, root, amounts, session="same")
    hashes = {file_hash(piece.path) for piece in judged.pieces("trials")}
    readers: list[Reader] = []
    for corpus_here, folder in background:
        others = tuple(
            recording
            for recording in corpus_here.recordings
            if recording.speaker not in corpus.speakers and file_hash(recording.path) not in hashes
        )
        with suppress(CorpusError):  # nobody of it says enough
            readers += choose_readers(Corpus(others, ()), folder, _LEARNT, session="same").everybody
    learnt = Readers(tuple(readers), "same") if readers else None
    return AttributeTest(requests, judged, learnt, amounts)


def check_attributes(
    corpus: Corpus, root: Path, background: Sequence[Path], names: Sequence[str], table: Path | None
) -> None:
    """Check that attributes are known of the judged readers, before anything is extracted.

    Raises:
        UsageError: one is unknown, or all are alike.
    """
    for name in names:
        find_attribute(name, _read_attributes(root, background, table), corpus.speakers)


def _read_attributes(
    root: Path, background: Sequence[Path], table: Path | None
) -> dict[str, dict[str, str]]:
    if table is not None and not table.is_file():
        raise UsageError(f"{file_name(table)} does not exist; check the name")
    attributes: dict[str, dict[str, str]] = {}
    for path in [table] if table else [root, *background]:
        for column, by_speaker in read_speaker_attributes(path).items():
            attributes.setdefault(column.lower(), {}).update(by_speaker)
    return attributes


def judge_attributes(
    context: AttackContext,
    method: str,
    attacker: ThreatModel,
    test: AttributeTest,
    *,
    replicates: int = REPLICATES,
) -> Iterator[tuple[str, AttributeRow]]:
    """Judge what one attacker infers under one method: a row for each value.

    An attribute of two values is told in both directions, since their rare errors differ. Relaxed:
    readers as they are. Strict: readers matched in the other attributes that were asked for; none
    is where there is no other.

    Returns:
        the attribute's name, and a row; values with too few readers are left out and noted.

    Raises:
        CorpusError: nobody could be heard.
    """
    features_by_name = context.get_features(attacker, method)
    specs = [
        (name, make((feature,), context.extractor.setup)[0].spec)
        for name, feature in features_by_name.items()
    ]
    for name, spec in specs:
        if not spec.kind.pointed:
            continue
        features = (features_by_name[name],)
        pieces = test.judged.pieces("trials")
        extracted = context.extractor.extract(pieces, method, context.seed, features)
        excerpts = _collect_excerpts(test.judged, extracted, spec, test.amounts)
        method_used = method if attacker.protects else CLEAR
        readers = test.learnt or test.judged
        extracted = context.extractor.extract(
            readers.pieces("trials"), method_used, context.attacker_seed, features
        )
        training = _collect_excerpts(
            readers, extracted, spec, test.amounts if readers is test.judged else _LEARNT
        )
        for attribute in test.asked:
            groups = [other.of for other in test.asked if other is not attribute]
            for value in attribute.values:
                has_value = {who: group == value for who, group in attribute.of.items()}
                for version in ("relaxed", "strict") if groups else ("relaxed",):
                    try:
                        judgement = judge_value(
                            training, excerpts, has_value,
                            others=groups if version == "strict" else None,
                            replicates=replicates, seed=context.seed,
                        )  # fmt: skip
                    except UsageError as error:  # so few are no reason to lose all else
                        context.notes.append(f"{value}, {version}, is not told: {error}")
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
        raise CorpusError("nobody's embedding could be heard")
    return Excerpts(np.concatenate(rows), tuple(speakers))
