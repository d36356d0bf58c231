"""Findings of an audit of a corpus, recorded runs or an attack, and their sentences.

Singling out, linkability and inference are separated, as in the Article 29 Working Party's opinion
05/2014 (WP216). An audit reports what the tested attackers learn, and which were not tested. It
never states whether data are anonymous, which is a question of law.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from monitor import crowds
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.jobs import Jobs
from monitor.lab.attacks.attackers import BITS
from monitor.lab.attacks.attributes import AttributeRow
from monitor.lab.attacks.results import method_name
from monitor.lab.attacks.speech import CLEAR
from monitor.lab.audit.exposure import (
    EXPOSED,
    HEADLINE_PEOPLE,
    HEADLINE_SECONDS,
    LEAST_PEOPLE,
    LENGTHS,
    NOTHING_BITS,
    Exposures,
    LengthRow,
    Retention,
    find_retention,
    summarise_lengths,
)
from monitor.lab.evaluation.verification import EER, NEAREST
from monitor.lab.report.model import Figure, format_limits, format_value
from monitor.maths.statistics import REPLICATES
from monitor.phrases import ACCUMULATES, length_in_words, plural

SESSIONS = {"cross": "another session", "same": "the same session"}
CONDITION_NAMES = {
    "bandwidth_hz": ("band", "Hz"),
    "snr_db": ("speech above noise", "dB"),
    "reverberation_seconds": ("reverberation (RT60)", "s"),
    "clipping": ("clipped samples", "share"),
    "level_db": ("level", "dB"),
    "lost": ("lost samples", "share"),
}


@dataclass(frozen=True)
class AuditConfig:
    """Settings of an audit.

    Attributes:
        budget: bits that one person's speech may disclose.
        among: M, the size of the crowd that people are singled out from.
        lengths: T, the lengths of stretches.
        template_seconds: D; None for a minute, or for the length that half of the speakers have.
        features: names of features; None for all that are installed.
        attributes: columns of the speakers' table, or ``COLUMN<NUMBER``; None for the usual ones.
        attribute_table: table of attributes; None for the corpus' own.
        rank_model: file of rank models, with their cohort; None for the shipped ones.
        replicates, seed: number and seed of the resamples of speakers.
    """

    budget: float = 6.0
    among: int = 1_000_000
    lengths: tuple[float, ...] = LENGTHS
    template_seconds: float | None = None
    features: tuple[str, ...] | None = None
    attributes: tuple[str, ...] | None = None
    attribute_table: Path | None = None
    rank_model: Path | None = None
    replicates: int = REPLICATES
    seed: int = 0
    jobs: Jobs = 1
    setup: FeatureSetup = AS_ENVIRONMENT


DEFAULTS = AuditConfig()


@dataclass(frozen=True, slots=True)
class TestRow:
    """Result of one attacker in one test."""

    method: str  # method of protection; empty without protection
    attacker: str  # name of the attacker, or empty
    feature: str  # feature that recognises voices; ``"joint"`` for all of them
    # seconds, template_seconds: T and D, speech seconds
    seconds: float
    template_seconds: float
    session: str  # ``"cross"`` or ``"same"``
    speakers: int  # N, templates per trial
    # trials, tested: number of trials, and of their speakers
    trials: int
    tested: int
    figures: Mapping[str, Figure]  # figures by their key in ``monitor evaluate``

    @property
    def ceiling(self) -> float:
        """log2 N, bits."""
        return math.log2(self.speakers)

    @property
    def bits(self) -> float:
        """Bits for comparing attackers."""
        return self.get_value(BITS) or 0.0

    def get_value(self, key: str) -> float | None:
        """Return the value of a figure, or None if it is missing."""
        figure = self.figures.get(key)
        return None if figure is None else figure.value


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """One acoustic condition of the sessions: median, and 10th and 90th percentiles."""

    name: str
    sessions: int
    median: float
    p10: float
    p90: float


@dataclass(frozen=True, slots=True)
class SoundDifference:
    """Fraction of session pairs that sound different, of one and two speakers; None if no pairs."""

    same_speaker: float | None
    two_speakers: float | None


@dataclass(frozen=True)
class Audit:
    """Findings of an audit.

    Attributes:
        kind: ``"corpus"``, ``"runs"`` or ``"attack"``.
        facts: descriptions of the test by topic.
        exposures: bits of stretches of speech; None for an attack.
        rows: results by length of stretch, even for very few people.
        tests: tests of ranks and links.
        attributes: rows by name of the attribute.
        conditions: acoustic conditions of the sessions.
        apart: how much recordings alone separate speakers.
        not_tested: sentences on attackers and data that were not tested.
        notes: caveats of the figures.
        problems: unusable data.
        commands: commands that give the same figures.
        skipped: number of files skipped or partly unusable.
    """

    name: str
    kind: str
    facts: Mapping[str, str]
    config: AuditConfig
    exposures: Exposures | None = None
    rows: tuple[LengthRow, ...] = ()
    tests: tuple[TestRow, ...] = ()
    attributes: Mapping[str, Sequence[AttributeRow]] = field(default_factory=dict)
    conditions: tuple[ConditionRow, ...] = ()
    apart: SoundDifference | None = None
    not_tested: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    skipped: int = 0

    @property
    def least_people(self) -> int:
        """Minimum people for a figure, at most the number tested."""
        people = 0 if self.exposures is None else len(self.exposures.speakers)
        return min(LEAST_PEOPLE, people)

    @property
    def retention(self) -> Retention | None:
        """Longest speech that may be retained; None if no lengths were tested."""
        if not self.rows:
            return None
        return find_retention(self.rows, self.config.budget, self.least_people)

    @property
    def shown(self) -> tuple[LengthRow, ...]:
        """Rows of lengths that enough people reach to be reported."""
        return tuple(row for row in self.rows if row.speakers >= self.least_people)

    @property
    def _enough(self) -> Sequence[LengthRow]:
        """Rows of lengths that ten people reach, or all shown rows if no length has ten."""
        return [row for row in self.shown if row.speakers >= HEADLINE_PEOPLE] or self.shown

    @property
    def headline(self) -> LengthRow | None:
        """The length with the highest mean bits, by at least ten people if possible.

        Longer stretches are often few and of other people. Lengths under `HEADLINE_SECONDS` are too
        short to represent a recording. If no length discloses anything, it is the longest one,
        because a weak attacker's bits are closest to zero for the shortest.
        """
        rows = [row for row in self._enough if row.seconds >= HEADLINE_SECONDS] or self._enough
        return max(
            rows,
            key=lambda row: (row.bits if row.bits >= NOTHING_BITS else 0.0, row.seconds),
            default=None,
        )

    @property
    def snippet(self) -> LengthRow | None:
        """The shortest reported length of evidence: what a thief of one snippet learns."""
        if self.exposures is None or self.exposures.kind != "evidence":
            return None
        return min(self.shown, key=lambda row: row.seconds, default=None)

    @cached_property
    def same_people(self) -> tuple[LengthRow, ...]:
        """Comparable rows of lengths, for the people who reach all of them, with equal weights.

        They end at the longest length that ten people reach. With fewer people, they are all shown
        lengths.
        """
        rows = self._enough
        if self.exposures is None or not rows:
            return ()
        common = self.exposures.select_common([row.seconds for row in rows])
        if len(set(common.owner.tolist())) < self.least_people:
            return ()
        config = self.config
        return summarise_lengths(common.by_person(), replicates=config.replicates, seed=config.seed)


def hash_speaker(speaker: str, salt: str = "") -> str:
    """Return twelve hexadecimal digits as a pseudonym of a speaker.

    Anyone with the list of names and the salt can identify the speaker.

    Example:
        >>> hash_speaker("ann"), hash_speaker("ann", "x") != hash_speaker("ann")
        ('49915e0d7d4b', True)
    """
    return hashlib.sha256(f"{salt}{speaker}".encode()).hexdigest()[:12]


def format_plain_method(method: str) -> str:
    """Format a method as plain text, without Markdown."""
    return method_name(method).strip("`")


def summarise(audit: Audit) -> dict[str, list[str]]:
    """Return the findings as sentences, by area."""
    return {
        "singling out": list(_singling_out(audit)),
        "linkability": list(_linkability(audit)),
        "inference": list(_inference(audit)),
        "retention": list(_retention(audit)),
    }


def format_bits(figure: Figure, *, at_least: bool = False) -> str:
    """Format bits with their interval."""
    value = figure.value or 0.0
    ends = ""
    if figure.low is not None and figure.high is not None:
        ends = f" ({figure.low:.1f} to {figure.high:.1f})"
    return f"{'at least ' * at_least}{value:.1f} bits{ends}"


def format_matches(bits: float, among: int) -> str:
    """Format the number of people in a crowd who match at these bits.

    Example:
        >>> format_matches(11.3, 10**6), format_matches(25.0, 10**6), format_matches(-1.0, 10**6)
        ('about 400 of a million', 'one of a million', 'all of a million')
    """
    crowd = crowds.people(among)
    if bits <= 0:
        return f"all of {crowd}"
    if (count := among * 2.0**-bits) < crowds.NEARLY_ONE:
        return f"one of {crowd}"
    return f"about {crowds.rounded(count)} of {crowd}"


def _singling_out(audit: Audit) -> Iterator[str]:
    row, exposures = audit.headline, audit.exposures
    if row is not None and exposures is not None:
        text = (
            f"{plural(row.stretches, 'stretch', 'stretches')} of {length_in_words(row.seconds)} by "
            f"{plural(row.speakers, 'person', 'people')} "
            f"{'disclose' if row.stretches > 1 else 'discloses'} on average "
            f"{format_bits(row.mean_bits, at_least=row.at_least > 0.05)}"
        )
        if exposures.kind == "evidence":
            matches = format_matches(row.bits, audit.config.among)
            text += f" of evidence, so {matches} people would match as well. "
            if row.stretches >= round(1 / EXPOSED):
                text += f"The most exposed tenth disclose at least {row.exposed_bits:.1f} bits, "
                text += f"so at most {format_matches(row.exposed_bits, audit.config.among)} match."
        else:
            text += f" of {exposures.ceiling:.1f} among the enrolled."
        yield text.strip()
        if row.speakers < HEADLINE_PEOPLE:
            yield (
                f"Only {plural(row.speakers, 'person was', 'people were')} tested at that length. "
                "Others may disclose far more."
            )
        if (snippet := audit.snippet) is not None:
            prefix = "at least " * snippet.most_at_least
            yield (
                f"The most revealing stretch of {length_in_words(snippet.seconds)} discloses "
                f"{prefix}{snippet.most_bits:.1f} bits."
            )
    elif audit.rows:
        yield f"Evidence is not reported: fewer than {LEAST_PEOPLE} people reach any length."
    for best in select_strongest(audit):
        subject, attack = _format_method(best, audit), _format_attack(best)
        if audit.kind == "attack":
            yield (
                f"{subject}{best.seconds:g} s disclose {format_bits(best.figures[BITS])} of "
                f"{best.ceiling:.1f} among {best.speakers} readers ({attack})."
            )
        if best.get_value("srd.idr") is not None:
            yield (
                f"{subject}{best.seconds:g} s of speech rank the correct person of {best.speakers} "
                f"first in {format_interval(best.figures['srd.idr'])} of the trials "
                f"({attack}). Chance is {format_value(1 / best.speakers, 'share')}."
            )
        wide = best.figures.get(f"among.idr_{audit.config.among}")
        if wide and wide.text == "supported" and wide.low is not None and wide.high is not None:
            yield (
                f"Among {crowds.people(audit.config.among)} people the right one would rank first "
                f"in {format_value(wide.low, 'share')} to {format_value(wide.high, 'share')} of "
                "trials."
            )


def _linkability(audit: Audit) -> Iterator[str]:
    if audit.kind == "runs" and audit.exposures is not None:
        if (row := audit.headline) is not None:
            yield (
                f"At {row.seconds:g} s the voice was linked to the right one of "
                f"{audit.exposures.candidates} templates in "
                f"{round((row.first.value or 0.0) * row.stretches)} of "
                f"{plural(row.stretches, 'run')}."
            )
        return
    measured = [key for key in EER if any(key in test.figures for test in audit.tests)]
    key = next(iter(measured), NEAREST)  # earlier versions stored only the hull's EER
    for best in select_strongest(audit, key=key, smallest=True):
        eer = best.figures[key]
        system = best.get_value("linkage.d_sys")
        more = f", D_sys {format_value(system, '')}" if system else ""
        yield (
            f"{_format_method(best, audit)}{best.seconds:g} s are linked with a known recording "
            f"of the speaker with an {EER[key]} of {format_interval(eer)}{more} "
            f"({_format_attack(best)}). 50 % is chance."
        )
    if audit.kind != "corpus":
        return
    by_session = {s: [t for t in audit.tests if t.session == s] for s in SESSIONS}
    if not by_session["cross"]:
        yield "Links between recordings of different sessions were not tested."
    elif by_session["same"]:
        same, cross = (  # the strongest at the shortest length, so that both are comparable
            max(by_session[session], key=lambda test: (-test.seconds, test.bits))
            for session in ("same", "cross")
        )
        yield (
            f"{same.seconds:g} s disclose {same.bits:.1f} bits of {same.ceiling:.1f} within one "
            f"session, and {cross.bits:.1f} of {cross.ceiling:.1f} across sessions."
        )


def _inference(audit: Audit) -> Iterator[str]:
    for name, rows in audit.attributes.items():
        best: dict[str, AttributeRow] = {}
        for row in sorted(rows, key=lambda row: row.judgement.eer):
            best.setdefault(row.method, row)
        for method in dict.fromkeys(row.method for row in rows):
            row = best[method]
            error = row.judgement.error
            subject = f"{format_plain_method(method)}: "
            subject *= len(best) > 1 or method != CLEAR
            yield (
                f"{subject}{row.seconds:g} s disclose {name} ({row.value}) with an "
                f"{error.label} of {format_interval(error)}, by {row.feature}. 50 % is chance."
            )
    if not audit.attributes:
        yield "Attributes were not tested."


def _retention(audit: Audit) -> Iterator[str]:
    budget = f"{audit.config.budget:g} bits"
    retention = audit.retention
    if retention is None:
        yield from _retention_of_attack(audit, budget)
        return
    exposures = audit.exposures
    assert exposures is not None
    many = plural(len(exposures.speakers), "speaker")
    if exposures.kind != "evidence" and audit.config.budget > exposures.ceiling:
        yield (
            f"A budget of {budget} cannot be tested: {exposures.candidates} people can show at "
            f"most {exposures.ceiling:.1f} bits."
        )
        return
    if retention.reached is None and retention.under is None:
        yield f"Not reported, because fewer than {LEAST_PEOPLE} people reach any length."
        return
    if retention.reached is None:
        longest = (
            "the longest length tested"
            if audit.shown == audit.rows
            else f"the longest length of at least {audit.least_people} people"
        )
        yield (
            f"Up to {retention.under:g} s of one person's speech, {longest}, no stretch of {many} "
            f"disclosed {budget}. More speech was not tested."
        )
    elif retention.under is None:
        reason = (
            "calibration does not support more bits" if retention.may else "a stretch reached it"
        )
        yield (
            f"No tested length keeps all speakers under {budget}: at {retention.reached:g} s, the "
            f"shortest, {reason}."
        )
    else:
        may = "may have reached" if retention.may else "reached"
        yield (
            f"Under {budget}: at most {retention.under:g} s of one person's speech in all. At "
            f"{retention.reached:g} s a stretch of the {many} {may} it."
        )
    if retention.on_average is not None:
        row = next(row for row in audit.rows if row.seconds == retention.on_average)
        limit = "mean" if (row.bits) >= audit.config.budget else "upper limit of the mean"
        yield f"The {limit} reaches {budget} at {retention.on_average:g} s."
    yield (
        f"{ACCUMULATES} The length covers all retained speech of one person. People outside this "
        "test may be more exposed."
    )


def _retention_of_attack(audit: Audit, budget: str) -> Iterator[str]:
    for best in select_strongest(audit):
        figure = best.figures[BITS]
        method = _format_method(best, audit)
        if best.ceiling < audit.config.budget:
            yield (
                f"{method}{budget} for {best.seconds:g} s cannot be tested: {best.speakers} "
                f"readers can show at most {best.ceiling:.1f} bits. The result is "
                f"{format_bits(figure)}."
            )
            continue
        high = max(figure.value or 0.0, figure.high or 0.0)
        under = "stay under" if high < audit.config.budget else "may exceed"
        yield (
            f"{method}{best.seconds:g} s {under} {budget} on average, with {format_bits(figure)} "
            "to the strongest attacker tried. Individual readers may disclose more."
        )


def select_strongest(audit: Audit, key: str = BITS, *, smallest: bool = False) -> list[TestRow]:
    """Return the strongest test of each method, across sessions if possible.

    The strongest test has the largest figure of this key, or the ``smallest``.
    """
    strongest = []
    for method in dict.fromkeys(test.method for test in audit.tests):
        tests = [t for t in audit.tests if t.method == method and t.get_value(key) is not None]
        tests = [t for t in tests if t.session == "cross"] or tests
        if tests:
            sign = -1.0 if smallest else 1.0
            strongest.append(max(tests, key=lambda t: sign * (t.get_value(key) or 0.0)))
    return strongest


def _format_method(test: TestRow, audit: Audit) -> str:
    return f"{format_plain_method(test.method)}: " if audit.kind == "attack" else ""


def _format_attack(test: TestRow) -> str:
    attacker = f"{test.attacker}, " if test.attacker else ""
    return f"{attacker}{test.feature}, {SESSIONS[test.session]}"


def format_interval(figure: Figure) -> str:
    """Format a figure with its interval."""
    limits = format_limits(figure)
    text = format_value(figure.value, figure.unit, figure.text)
    return f"{text} ({limits})" if limits else text
