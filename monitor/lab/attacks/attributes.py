"""What else a protected voice tells: attributes of its speaker, learnt from background speakers.

VoxGuard section 3.2 and 4.3, see `monitor.lab.attributes`. The attacker's knowledge of the
anonymiser is that of `monitor.lab.attacks.attackers`: who protects what is enrolled protects what
is learnt from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from monitor.corpus.finding import read_speaker_attributes
from monitor.corpus.recordings import Corpus
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import make
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import (
    CLEAR,
    Amounts,
    AttackContext,
    HeardPiece,
    Piece,
    Reader,
    Readers,
    ThreatModel,
    readers_of,
    trials_of,
)
from monitor.lab.attributes import AskedAttribute, Excerpts, attribute, judged, log_odds, matched
from monitor.maths.statistics import REPLICATES
from monitor.safe_text import file_name
from monitor.sources.provenance import file_hash

LEARNT_SECONDS = 5.0  # of speech, of an excerpt of a background: its readers may say little
LEARNT_EXCERPTS = 4  # of each of them, at most
_LEARNT = Amounts(LEARNT_SECONDS, LEARNT_EXCERPTS, 0, 0)


@dataclass(frozen=True)
class Attributed:
    """Whose attributes are told, and by what.

    Attributes:
        learnt: background speakers that the attacker learns from; None where it learns from some of
            the judged and is judged on the others.
        amounts: speech seconds of an excerpt that is judged, and excerpts of each reader.
    """

    asked: tuple[AskedAttribute, ...]
    judged: Readers
    learnt: Readers | None
    amounts: Amounts

    @property
    def seconds(self) -> float:
        """Audio seconds that one attacker hears of one method."""
        apart = self.learnt or self.judged
        both = (*self.judged.pieces("trials"), *apart.pieces("trials"))
        return sum(piece.seconds for piece in both)


def attributed(
    corpus: Corpus,
    root: Path,
    background: Sequence[tuple[Corpus, Path]],
    asked: Sequence[str],
    amounts: Amounts,
    table: Path | None = None,
) -> Attributed:
    """Find the attributes of readers, before anything is heard.

    Raises:
        UsageError: an attribute is unknown, or all are alike.
        CorpusError: nobody says enough.
    """
    said = _said(root, [folder for _, folder in background], table)
    speakers = [name for each in (corpus, *(c for c, _ in background)) for name in each.speakers]
    wanted = tuple(attribute(one, said, speakers) for one in asked)
    amounts = replace(amounts, least_segments=0, most_segments=0)
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
            apart += readers_of(Corpus(others, ()), folder, _LEARNT, session="same").everybody
    learnt = Readers(tuple(apart), "same") if apart else None
    return Attributed(wanted, judged_ones, learnt, amounts)


def check_attributes(
    corpus: Corpus, root: Path, background: Sequence[Path], asked: Sequence[str], table: Path | None
) -> None:
    """See to it that attributes are known of the readers judged, before anything is heard.

    Raises:
        UsageError: one is unknown, or all are alike.
    """
    for one in asked:
        attribute(one, _said(root, background, table), corpus.speakers)


def _said(root: Path, background: Sequence[Path], table: Path | None) -> dict[str, dict[str, str]]:
    if table is not None and not table.is_file():
        raise UsageError(f"{file_name(table)} does not exist; check the name")
    said: dict[str, dict[str, str]] = {}
    for place in [table] if table else [root, *background]:
        for column, of in read_speaker_attributes(place).items():
            said.setdefault(column.lower(), {}).update(of)
    return said


def attribute_rows(
    bench: AttackContext,
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
        the attribute's name, and a row that goes into JSON; what cannot be told of so few readers
            is left out and noted.

    Raises:
        CorpusError: nobody could be heard.
    """
    heard_with = bench.heard_with(attacker, method)
    made = [(name, make((each,), bench.hearing.setup)[0].spec) for name, each in heard_with.items()]
    for name, spec in made:
        if not spec.kind.pointed:
            continue
        features = (heard_with[name],)
        pieces = which.judged.pieces("trials")
        heard = bench.hearing.extract(pieces, method, bench.seed, features)
        of = _excerpts(which.judged, heard, spec, which.amounts)
        used = method if attacker.protects else CLEAR
        apart = which.learnt or which.judged
        heard = bench.hearing.extract(apart.pieces("trials"), used, bench.attacker_seed, features)
        learnt = _excerpts(apart, heard, spec, which.amounts if apart is which.judged else _LEARNT)
        for asked in which.asked:
            others = [other.of for other in which.asked if other is not asked]
            for value in asked.values:
                has = {who: said == value for who, said in asked.of.items()}
                for version in ("relaxed", "strict") if others else ("relaxed",):
                    held = others if version == "strict" else None
                    try:
                        row = _row(learnt, of, has, held, bench.seed, replicates)
                    except UsageError as error:  # so few are no reason to lose all else
                        bench.notes.append(f"{value}, {version}, is not told: {error}")
                        continue
                    told = {
                        "method": method,
                        "attacker": attacker.name,
                        "feature": name,
                        "value": value,
                        "version": version,
                        "readers_apart": which.learnt is not None,
                        "seconds": which.amounts.seconds,
                    }
                    yield asked.name, told | row


def _row(
    learnt: Excerpts, of: Excerpts, has: Mapping[str, bool],
    others: Sequence[Mapping[str, str]] | None, seed: int, replicates: int,
) -> dict[str, Any]:  # fmt: skip
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
    readers: Readers, heard: Mapping[Piece, HeardPiece], spec: FeatureSpec, amounts: Amounts
) -> Excerpts:
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
