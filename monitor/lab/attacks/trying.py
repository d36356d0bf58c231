"""A whole test of anonymisers: readers, background, every method and every attacker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from monitor.anonymisers.registry import make
from monitor.anonymisers.utterance import Utterance
from monitor.corpus.finding import find
from monitor.corpus.recordings import Corpus
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, caveats, defaults, takes
from monitor.features.registry import make as make_features
from monitor.files import make_folder, not_written
from monitor.jobs import Jobs
from monitor.lab.adapting.adapted import (
    FINE_TUNING_STEPS,
    FineTuning,
    Length,
    SpeechDraws,
    check_torch,
)
from monitor.lab.attacks.attackers import (
    ATTACKERS,
    CLEAR,
    MEASURES,
    PARTS,
    Amounts,
    AttackContext,
    Background,
    Hearing,
    Reader,
    Readers,
    ThreatModel,
    attacker_named,
    hear_protected,
    readers_of,
)
from monitor.lab.attacks.attacking import attack, worth_trying
from monitor.lab.attacks.attributes import Attributed, attribute_rows, attributed, check_attributes
from monitor.lab.attacks.results import AttackResults, AttackRow, Settings, method_name
from monitor.lab.attacks.semi_informed import NETWORKS, check_background
from monitor.lab.evaluation.family import Figure
from monitor.lab.result_cache import ResultCache
from monitor.maths.statistics import REPLICATES
from monitor.phrases import plural
from monitor.sources.provenance import file_hash

_ANY_RATE = 16_000
MOST_READERS = 30
"""Of a background that models are learnt on, the corpora in turn: more weigh features no better."""
LEARNING = Amounts(trials=2)  # of each reader of a background, that models are learnt on


@dataclass(frozen=True)
class AttackConfig:
    """What is to be tried.

    Attributes:
        methods: of protection; ``none`` is tried first in any case.
        attackers: names; empty for all who can be tried with this background and installation.
        features: names; empty for `usual_features`.
        amounts: how much speech.
        segments: L, of the table of enrolments.
        session: ``"cross"``, ``"same"`` or None.
        seed: of all draws.
        jobs: processes that listen, or workers elsewhere.
        replicates: resamples of readers behind the limits.
        training, draws, fine_tuning: how long an attacker trains a network, on how much speech of
            each reader of the background, and how.
        attributes: of readers, to be told too, such as ``gender`` or ``age<16``.
        attribute_table: that says them; None for the manifests of the corpora.
        setup: from where features are made.
    """

    methods: tuple[str, ...] = (CLEAR,)
    attackers: tuple[str, ...] = ("ignorant", "lazy-informed")
    features: tuple[str, ...] = ()
    amounts: Amounts = field(default_factory=Amounts)
    segments: tuple[int, ...] = (1, 3, 30)
    session: str | None = None
    seed: int = 0
    jobs: Jobs = 1
    replicates: int = REPLICATES
    training: Length = field(default_factory=lambda: Length(steps=FINE_TUNING_STEPS))
    draws: SpeechDraws = field(default_factory=SpeechDraws)
    fine_tuning: FineTuning = field(default_factory=FineTuning)
    attributes: tuple[str, ...] = ()
    attribute_table: Path | None = None
    setup: FeatureSetup = AS_ENVIRONMENT


@dataclass(frozen=True)
class Preparation:
    """What is tried, on whom.

    Attributes:
        config: as asked, with every method once and ``none`` first.
        attributed: whose attributes are told; None where nobody asked.
    """

    corpus: str
    config: AttackConfig
    bench: AttackContext
    attackers: tuple[ThreatModel, ...]
    attributed: Attributed | None
    problems: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Audio seconds that are heard, or were kept; without what an attacker trains on."""
        bench = self.bench
        total = sum(each.piece.seconds for each in bench.wanted(self.tried))
        apart = bench.background.readers if bench.background else None
        known = sum(p.seconds for part in PARTS for p in apart.pieces(part)) if apart else 0.0
        judged = sum(p.seconds for part in PARTS for p in bench.judged.pieces(part))
        for attackers in self.tried.values():
            for attacker in attackers:  # who hears with features of its own
                if attacker.features is not None:
                    total += judged
                    if len(bench.features) > 1 or attacker.trains:
                        total += known * (2 if attacker.trains else 1)
        return total

    @property
    def tried(self) -> dict[str, list[ThreatModel]]:
        """By method, the attackers that are worth trying."""
        return {method: worth_trying(self.attackers, method) for method in self.config.methods}


def usual_features(setup: FeatureSetup = AS_ENVIRONMENT) -> tuple[str, ...]:
    """Those that are ready, and the pitch behind filters, where an anonymiser keeps it from ``f0``.

    Example:
        >>> usual_features()[:2]
        ('f0', 'f0_robust')
    """
    first, *others = defaults(setup=setup)
    return (first, "f0_robust", *others)


def prepare(
    corpus: Path,
    config: AttackConfig,
    *,
    folder: Path,
    background: Sequence[Path] = (),
    fresh: bool = False,
    progress: Callable[[str], object] = lambda _: None,
) -> Preparation:
    """Find out who can be judged, and see to it that everything asked for can be done.

    Args:
        corpus: recordings by reader and session; the readers who are judged.
        config: what is to be tried.
        folder: for what is kept to go on from; private.
        background: corpora of background speakers, that attackers learn from.
        fresh: forget what was kept.
        progress: called with each reader whose speech was looked for.

    Raises:
        UsageError: a method, an attacker or a feature makes no sense.
        CorpusError: there is too little speech.
        SourceError: a program does not work.
        StoreError: the folder cannot be written.
    """
    chosen = [attacker_named(name) for name in dict.fromkeys(config.attackers)]
    config = replace(config, methods=tuple(dict.fromkeys((CLEAR, *config.methods))))
    for method in config.methods:  # what makes no sense is refused before anything is heard
        make(method, Utterance(_ANY_RATE, "name", "speaker"))
    if not background and (lacking := [a.name for a in chosen if a.needs_background]):
        raise UsageError(f"{lacking[0]} needs speech of background speakers: give --background")
    if any(each.trains for each in chosen):
        check_torch()
    features = config.features or usual_features(config.setup)
    made = make_features(features, config.setup)
    if config.attributes and not any(each.spec.kind.pointed for each in made):
        raise UsageError("attributes are told by an embedding: add voice to --features")
    found = find(corpus)
    check_attributes(found, corpus, background, config.attributes, config.attribute_table)
    judged = readers_of(
        found, corpus, config.amounts, session=config.session, jobs=config.jobs, progress=progress
    )
    behind = _background(background, judged, config, progress) if background else None
    attackers, unable = _able(chosen, behind)
    problems = (*judged.problems, *(behind.problems if behind else ()), *unable)
    for method in config.methods:
        if method.startswith("command:"):  # find out that it works before hours are spent
            piece = judged.everybody[0].trials[0]
            end = min(piece.end_seconds, piece.start_seconds + 1.0)
            hear_protected(replace(piece, end_seconds=end), method, config.seed, [])
    which = None
    if config.attributes:
        corpora, asked = behind.corpora if behind else (), config.attributes
        which = attributed(found, corpus, corpora, asked, config.amounts, config.attribute_table)
    try:  # the folder is made, private, once nothing is left to refuse
        make_folder(folder)
    except OSError as error:
        raise not_written(folder, error) from error
    if fresh:
        ResultCache(folder / NETWORKS, fresh=True)
    hearing = Hearing(ResultCache(folder / "heard", fresh=fresh), config.jobs, config.setup)
    amounts, measures = config.amounts, tuple(MEASURES)
    bench = AttackContext(
        judged,
        behind,
        features,
        measures,
        amounts,
        hearing,
        config.seed,
        folder,
        config.training,
        config.draws,
        config.fine_tuning,
    )
    return Preparation(corpus.resolve().name, config, bench, attackers, which, problems)


def try_methods(
    prepared: Preparation,
    *,
    told: Callable[[str], object] = lambda _: None,
    heard: Callable[[float], None] = lambda _: None,
) -> AttackResults:
    """Try every attacker on every method.

    Args:
        prepared: by `prepare`.
        told: called with what begins.
        heard: called with seconds of audio that were heard.

    Raises:
        CorpusError: no method could be tried.
    """
    config = prepared.config

    def doing(what: str) -> None:
        told(what)
        heard(0.0)

    notes: list[str] = []
    hearing = replace(prepared.bench.hearing, progress=heard)
    bench = replace(prepared.bench, hearing=hearing, told=doing, notes=notes, clear_bits={})
    rows: list[AttackRow] = []
    measured: dict[str, Sequence[Figure]] = {}
    quiet = replace(bench, hearing=replace(bench.hearing, progress=lambda _: None))
    told_of: dict[str, list[Mapping[str, Any]]] = {}
    problems = list(prepared.problems)
    doing("all methods")
    bench.hearing.ahead(bench.wanted(prepared.tried), bench.features)
    for method, attackers in prepared.tried.items():
        try:
            for attacker in attackers:
                told(f"{method}, {attacker.name}")
                rows += attack(
                    bench, method, attacker, config.segments, replicates=config.replicates
                )
                if prepared.attributed is not None:
                    for name, row in attribute_rows(
                        quiet, method, attacker, prepared.attributed, replicates=config.replicates
                    ):
                        told_of.setdefault(name, []).append(row)
            measured[method] = _measured(quiet, method)
        except CorpusError as error:
            problems.append(f"{method_name(method)}: {error}")
    problems += [f"left out: {why}" for why in dict.fromkeys(bench.hearing.missing.values())]
    if {row.method for row in rows} <= {CLEAR} != set(config.methods):
        raise CorpusError(f"no method could be tried: {'; '.join(problems[-3:])}")
    notes += caveats(bench.features)
    if "words" in map(takes, bench.features):
        notes.append("what is said is the same by every method: no anonymiser of sound changes it")
    behind = bench.background
    settings = Settings(
        prepared.corpus,
        tuple(method for method in config.methods if any(r.method == method for r in rows)),
        tuple(each.name for each in prepared.attackers),
        bench.features,
        config.amounts.seconds,
        config.amounts.template_seconds,
        config.amounts.least_segments,
        config.segments,
        bench.judged.session,
        len(bench.judged),
        len(behind.readers) if behind and behind.readers else 0,
        config.seed,
    )
    return AttackResults(
        settings,
        tuple(rows),
        {method: tuple(figures) for method, figures in measured.items() if figures},
        told_of,
        notes=tuple(dict.fromkeys(notes)),
        clear_bits=dict(bench.clear_bits),
        problems=tuple(problems),
    )


def _able(
    chosen: Sequence[ThreatModel], background: Background | None
) -> tuple[tuple[ThreatModel, ...], list[str]]:
    """Those who were asked for; where nobody was, all who can be tried, and why others cannot."""
    able, unable = [], []
    for each in chosen or ATTACKERS.values():
        if each.needs_background and background is None:
            continue
        try:
            if each.trains and background is not None:
                check_background(background)
        except UsageError as error:
            if chosen:
                raise
            unable.append(f"{each.name} is not tried: {error}")
            continue
        able.append(each)
    return tuple(able), unable


def _measured(bench: AttackContext, method: str) -> list[Figure]:
    """What is measured beside privacy, on the trials as they are published."""
    if not bench.measures:
        return []
    heard = bench.trials(method, bench.features)
    figures: list[Figure] = []
    for name in bench.measures:
        noted = {
            reader.name: [heard[p].measured[name] for p in reader.trials if p in heard]
            for reader in bench.judged.everybody
        }
        figures += MEASURES[name]().figures(noted)
    return figures


def _background(
    folders: Sequence[Path],
    judged: Readers,
    config: AttackConfig,
    progress: Callable[[str], object],
) -> Background:
    """Readers apart: whoever is judged is left out, by name and by recording."""
    names = {reader.name for reader in judged.everybody}
    hashes = {file_hash(p.path) for part in PARTS for p in judged.pieces(part)}
    problems: list[str] = []
    corpora: list[tuple[Corpus, Path]] = []
    for folder in folders:
        found = find(folder)
        known = {r.speaker for r in found if r.speaker in names or file_hash(r.path) in hashes}
        if known:
            problems.append(
                f"{folder.name}: {plural(len(known), 'reader')} of the background are judged and "
                f"left out: {', '.join(sorted(known)[:5])}"
            )
        kept = tuple(r for r in found.recordings if r.speaker not in known)
        corpora.append((Corpus(kept, found.problems), folder))
    least = config.amounts.least_segments
    amounts = Amounts(config.amounts.seconds, LEARNING.trials, least, least)
    able: list[tuple[Reader, ...]] = []
    for corpus, folder in corpora:
        try:
            found_here = readers_of(corpus, folder, amounts, jobs=config.jobs, progress=progress)
            able.append(found_here.everybody)
        except CorpusError as error:
            problems.append(f"{folder.name}: {error}")
    in_turn = [reader for each in zip_longest(*able) for reader in each if reader is not None]
    readers = Readers(tuple(in_turn[:MOST_READERS]), "same") if in_turn else None
    return Background(tuple(corpora), readers, tuple(problems))
