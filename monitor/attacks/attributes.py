"""What else a protected voice tells: attributes of its speaker, learnt from readers apart.

VoxGuard section 3.2 and 4.3, see `monitor.attributes`. The attacker's knowledge of the protector is
that of `monitor.attacks.attackers`: who protects what is enrolled protects what is learnt from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from monitor.attacks.attackers import ThreatModel
from monitor.attacks.bench import Bench
from monitor.attacks.heard import HeardPiece
from monitor.attacks.hearing import CLEAR
from monitor.attacks.readers import Amounts, Piece, Reader, Readers, readers_of
from monitor.attacks.templates import trials_of
from monitor.attributes.attacker import Excerpts, log_odds
from monitor.attributes.judging import judged
from monitor.attributes.labels import AskedAttribute, attribute
from monitor.attributes.matching import matched
from monitor.corpus.recordings import Corpus
from monitor.corpus.tables import said_of_speakers
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import make
from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.maths.bootstrap import REPLICATES
from monitor.protocols import Feature
from monitor.sources.fingerprints import file_hash

__all__ = ["Attributed", "attribute_rows", "attributed"]

LEARNT_SECONDS = 5.0
"""Speech seconds of an excerpt of a background: its readers may say little."""
EXCERPTS = 10
"""Of one reader, at most."""


@dataclass(frozen=True)
class Attributed:
    """Whose attributes are told, and by what.

    Attributes:
        asked: the attributes, of the readers judged and of those learnt from.
        judged: readers whose attributes are to be told.
        learnt: readers apart that the attacker learns from; None where it learns from some of the
            judged and is judged on the others.
        seconds: speech seconds of an excerpt that is judged.
    """

    asked: tuple[AskedAttribute, ...]
    judged: Readers
    learnt: Readers | None
    seconds: float

    def pieces(self) -> list[Piece]:
        """Everything that is heard of the readers judged."""
        return self.judged.pieces("trials")


def attributed(
    corpus: Corpus,
    root: Path,
    background: Sequence[tuple[Corpus, Path]],
    asked: Sequence[str],
    *,
    seconds: float = 10.0,
    table: Path | None = None,
) -> Attributed:
    """Find the attributes of readers, before anything is heard.

    Args:
        corpus: whose readers are judged.
        root: its folder or manifest.
        background: corpora of readers apart, with the folder of each.
        asked: attributes, see `monitor.attributes.labels.attribute`.
        seconds: speech seconds of an excerpt.
        table: that says what is known of all readers; None for the manifest of each corpus.

    Raises:
        UsageError: an attribute is unknown, or all are alike.
        CorpusError: nobody says enough.
    """
    said: dict[str, dict[str, str]] = {}
    for place in [table] if table else [root, *(folder for _, folder in background)]:
        for column, of in said_of_speakers(place).items():
            said.setdefault(column.lower(), {}).update(of)
    speakers = [name for each in (corpus, *(c for c, _ in background)) for name in each.speakers]
    wanted = tuple(attribute(one, said, speakers) for one in asked)
    amounts = Amounts(seconds, EXCERPTS, 0, 0)
    judged_ones = readers_of(corpus, root, amounts, session="same")
    known = {file_hash(piece.path) for piece in judged_ones.pieces("trials")}
    apart: list[Reader] = []
    for each, folder in background:
        others = tuple(
            one
            for one in each.recordings
            if one.speaker not in corpus.speakers and file_hash(one.path) not in known
        )
        with suppress(CorpusError):  # nobody of it says enough
            apart += readers_of(
                Corpus(others, ()), folder, Amounts(LEARNT_SECONDS, EXCERPTS, 0, 0), session="same"
            ).everybody
    learnt = Readers(tuple(apart), "same") if apart else None
    return Attributed(wanted, judged_ones, learnt, seconds)


def attribute_rows(
    bench: Bench,
    method: str,
    attacker: ThreatModel,
    which: Attributed,
    *,
    replicates: int = REPLICATES,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What one attacker tells of the attributes under one method, one row for each value.

    An attribute of two values is told in both directions, since their rare errors differ. Relaxed:
    readers as they are. Strict: readers matched in the other attributes that were asked for; none
    is where there is no other.

    Returns:
        the attribute's name, and a row that goes into JSON.

    Raises:
        UsageError: too few readers with or without it, or no embedding is heard.
    """
    heard_with: Mapping[str, str | Feature] = dict(zip(bench.features, bench.features, strict=True))
    if attacker.features is not None:
        heard_with = attacker.features(bench, method)
    made = [(name, make((each,))[0].spec) for name, each in heard_with.items()]
    embeddings = {name: spec for name, spec in made if spec.kind is EMBEDDING}
    if not embeddings:
        raise UsageError("attributes are told by an embedding: add voice to --features")
    for name, spec in embeddings.items():
        features = (heard_with[name],)
        of = _excerpts(
            which.judged, bench.hearing.hear(which.pieces(), method, bench.seed, features),
            spec, which.seconds,
        )  # fmt: skip
        used = method if attacker.protects else CLEAR
        apart = which.learnt or which.judged
        pieces = apart.pieces("trials")
        learnt = _excerpts(
            apart, bench.hearing.hear(pieces, used, bench.attacker_seed, features),
            spec, which.seconds if which.learnt is None else LEARNT_SECONDS,
        )  # fmt: skip
        for asked in which.asked:
            others = [other.of for other in which.asked if other is not asked]
            for value in asked.values:
                has = {who: said == value for who, said in asked.of.items()}
                for version in ("relaxed", "strict") if others else ("relaxed",):
                    row = _row(learnt, of, has, others if version == "strict" else None,
                               bench.seed, replicates)  # fmt: skip
                    yield (
                        asked.name,
                        {
                            "method": method,
                            "attacker": attacker.name,
                            "feature": name,
                            "value": value,
                            "version": version,
                            "readers_apart": which.learnt is not None,
                            "seconds": which.seconds,
                            **row,
                        },
                    )


def _row(
    learnt: Excerpts,
    of: Excerpts,
    has: Mapping[str, bool],
    others: Sequence[Mapping[str, str]] | None,
    seed: int,
    replicates: int,
) -> dict[str, Any]:
    def known(excerpts: Excerpts) -> Excerpts:
        readers = sorted(set(excerpts.whose) & has.keys())
        if others is not None:
            readers = list(matched(readers, has, others, seed))
        return excerpts.of(frozenset(readers))

    learnt, of = known(learnt), known(of)
    found = asdict(
        judged(log_odds(learnt, of, has, seed), of.whose, has, replicates=replicates, seed=seed)
    )
    readers = set(learnt.whose)
    having = sum(has[who] for who in readers)
    return {"learnt_with": having, "learnt_without": len(readers) - having, **found}


def _excerpts(
    readers: Readers, heard: Mapping[Piece, HeardPiece], spec: FeatureSpec, seconds: float
) -> Excerpts:
    amounts = Amounts(seconds, EXCERPTS, 0, 0)
    rows, whose = [], []
    for reader in readers.everybody:
        trials = trials_of(reader, heard, {spec.name: spec}, amounts)
        if trials is None:
            continue
        there = trials[spec.name][np.any(trials[spec.name], axis=1)]
        rows.append(there)
        whose += len(there) * [reader.name]
    if not whose:
        raise CorpusError("nobody's embedding could be heard")
    return Excerpts(np.concatenate(rows), tuple(whose))
