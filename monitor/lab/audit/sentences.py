"""The sentences of an audit, by area. Each figure is that of the strongest attacker tried."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from monitor import crowds
from monitor.lab.attacks.context import BITS
from monitor.lab.attacks.extraction import CLEAR
from monitor.lab.attacks.results import method_name
from monitor.lab.attributes import AttributeRow
from monitor.lab.audit.audit import SESSIONS, Audit, TestRow
from monitor.lab.audit.exposure import (
    EXPOSED,
    HEADLINE_PEOPLE,
    LEAST_PEOPLE,
    LengthRow,
)
from monitor.lab.evaluation.family import Figure
from monitor.lab.evaluation.report.report import format_limits, format_value
from monitor.phrases import length_in_words, plural


def format_plain_method(method: str) -> str:
    """Format a method for people who read no Markdown."""
    return method_name(method).strip("`")


def summarise(audit: Audit) -> dict[str, list[str]]:
    """Return the findings as sentences, by area."""
    return {
        "singling out": list(_singling_out(audit)),
        "linkability": list(_linkability(audit)),
        "inference": list(_inference(audit)),
        "retention": list(_retention(audit)),
    }


def format_bits(figure: Figure, *, least: bool = False) -> str:
    """Format bits with their limits."""
    value = figure.value or 0.0
    ends = ""
    if figure.low is not None and figure.high is not None:
        ends = f" ({figure.low:.1f} to {figure.high:.1f})"
    return f"{'at least ' * least}{value:.1f} bits{ends}"


def format_matches(bits: float, among: int) -> str:
    """Format how many people of a crowd match at so many bits.

    Example:
        >>> format_matches(11.3, 10**6), format_matches(25.0, 10**6), format_matches(-1.0, 10**6)
        ('about 400 of a million', 'one of a million', 'all of a million')
    """
    crowd = crowds.people(among)
    if bits <= 0:
        return f"all of {crowd}"
    count = among * 2.0**-bits
    return f"one of {crowd}" if count < crowds.NEARLY_ONE else (
        f"about {crowds.rounded(count)} of {crowd}"
    )  # fmt: skip


def _singling_out(audit: Audit) -> Iterator[str]:
    row = audit.headline
    if row is not None and audit.exposures is not None:
        kind = audit.exposures.kind
        text = f"{_format_count(row)} "
        text += "disclose" if row.stretches > 1 else "discloses"
        text += f" on average {format_bits(row.mean, least=row.clipped > 0.05)}"
        if kind == "evidence":
            matches = format_matches(row.mean.value or 0.0, audit.among)
            text += f" of evidence: {matches} people would fit as well. "
            if row.stretches >= round(1 / EXPOSED):
                text += f"The most exposed tenth disclose {row.exposed:.1f} bits or more: "
                text += f"{format_matches(row.exposed, audit.among)} or fewer."
        else:
            text += f" of {math.log2(audit.exposures.candidates):.1f} among the enrolled."
        yield text.strip()
        if row.speakers < HEADLINE_PEOPLE:
            yield (
                f"Only {plural(row.speakers, 'person was', 'people were')} tested at that length: "
                "others may disclose far more."
            )
    elif audit.rows:
        yield f"Nothing is said of evidence: fewer than {LEAST_PEOPLE} people reach any length."
    for best in _select_strongest(audit):
        subject, attack = _format_method(best, audit), _format_attack(best)
        if audit.kind == "attack":
            yield (
                f"{subject}{best.seconds:g} s disclose {format_bits(best.figures[BITS])} of "
                f"{math.log2(best.speakers):.1f} among {best.speakers} readers ({attack})."
            )
        first = best.figures.get("srd.idr")
        if first is not None and first.value is not None:
            yield (
                f"{subject}{best.seconds:g} s of speech put the right person of "
                f"{best.speakers} first in {format_interval(first)} of the trials "
                f"({attack}); chance is {format_value(1 / best.speakers, 'share')}."
            )
        wide = best.figures.get(f"among.idr_{audit.among}")
        if wide and wide.text == "supported" and wide.low is not None and wide.high is not None:
            yield (
                f"Among {crowds.people(audit.among)} people the right one would come first in "
                f"{format_value(wide.low, 'share')} to {format_value(wide.high, 'share')}."
            )


def _format_count(row: LengthRow) -> str:
    """Say what a row is of: how many stretches, and by how many people.

    Example:
        >>> from types import SimpleNamespace
        >>> _format_count(SimpleNamespace(stretches=109, speakers=13, seconds=3.0))
        '109 stretches of 3 seconds by 13 people'
    """
    people = plural(row.speakers, "person", "people")
    stretches = plural(row.stretches, "stretch", "stretches")
    return f"{stretches} of {length_in_words(row.seconds)} by {people}"


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
    for best in _select_strongest(audit, key="verification.eer_rocch", least=True):
        eer = best.figures["verification.eer_rocch"]
        system = best.figures.get("linkage.d_sys")
        more = f", D_sys {format_value(system.value, '')}" if system and system.value else ""
        yield (
            f"{_format_method(best, audit)}{best.seconds:g} s are linked with a known recording "
            f"of the speaker with an equal error rate of {format_interval(eer)}{more} "
            f"({_format_attack(best)}); 50 % would be no link."
        )
    same = _select_shortest_best([t for t in audit.tests if t.session == "same"])
    cross = _select_shortest_best([t for t in audit.tests if t.session == "cross"])
    if audit.kind == "corpus" and cross is None:
        yield "Whether recordings of different sessions can be linked was not tested."
    elif audit.kind == "corpus" and same is not None and cross is not None:
        yield (
            f"{same.seconds:g} s within one session tell {same.bits:.1f} bits of "
            f"{math.log2(same.speakers):.1f}, across sessions {cross.bits:.1f} of "
            f"{math.log2(cross.speakers):.1f}."
        )


def _inference(audit: Audit) -> Iterator[str]:
    for name, rows in audit.attributes.items():
        best: dict[str, AttributeRow] = {}
        for row in sorted(rows, key=lambda row: row.judgement.eer):
            best.setdefault(row.method, row)
        for method in dict.fromkeys(row.method for row in rows):
            row = best[method]
            subject = f"{format_plain_method(method)}: "
            subject *= len(best) > 1 or method != CLEAR
            yield (
                f"{subject}{row.seconds:g} s tell {name} ({row.value}) with an equal error "
                f"rate of {format_interval(row.judgement.error)}, by {row.feature}; 50 % would be "
                "a guess."
            )
    if not audit.attributes:
        yield "What else a voice tells of its speaker was not tested."


def _retention(audit: Audit) -> Iterator[str]:
    budget = f"{audit.budget:g} bits"
    retention = audit.retention
    if retention is None:
        yield from _retention_of_attack(audit, budget)
        return
    assert audit.exposures is not None
    many = plural(len(audit.exposures.speakers), "speaker")
    if audit.exposures.kind != "evidence" and audit.budget > math.log2(audit.exposures.candidates):
        yield (
            f"Whether {budget} are kept cannot be told: among {audit.exposures.candidates} people "
            f"no more than {math.log2(audit.exposures.candidates):.1f} bits can be shown."
        )
        return
    if retention.reached is None and retention.under is None:
        yield f"Nothing is said: fewer than {LEAST_PEOPLE} people reach any length."
        return
    if retention.reached is None:
        longest = (
            "the longest that was tested"
            if audit.shown == audit.rows
            else f"the longest that {audit.least_people} people or more reach"
        )
        yield (
            f"Up to {retention.under:g} s of speech of one person, {longest}, no "
            f"stretch of {many} disclosed {budget}. Nothing is known of more speech."
        )
    elif retention.under is None:
        reason = (
            "calibration can say no more there" if retention.may else "a stretch disclosed as much"
        )
        yield (
            f"No length that was tested keeps everybody under {budget}: at "
            f"{retention.reached:g} s, the shortest, {reason}."
        )
    else:
        may = "may have disclosed" if retention.may else "disclosed"
        yield (
            f"Under {budget}: no more than {retention.under:g} s of speech of one person in all. "
            f"At {retention.reached:g} s a stretch of the {many} {may} as much."
        )
    if retention.on_average is not None:
        row = next(row for row in audit.rows if row.seconds == retention.on_average)
        limit = "mean" if (row.mean.value or 0.0) >= audit.budget else "upper limit of the mean"
        yield f"The {limit} reaches {budget} at {retention.on_average:g} s."
    yield (
        "Bits of one person add up over recordings: the length is that of all speech that is kept "
        "of a person, and of who was tested here; others may be more exposed."
    )


def _retention_of_attack(audit: Audit, budget: str) -> Iterator[str]:
    for best in _select_strongest(audit):
        figure = best.figures[BITS]
        most = math.log2(best.speakers)
        whose = _format_method(best, audit)
        if most < audit.budget:
            yield (
                f"{whose}whether {best.seconds:g} s keep under {budget} cannot be told: among "
                f"{best.speakers} readers no more than {most:.1f} bits can be shown. "
                f"{format_bits(figure)} were."
            )
            continue
        high = max(figure.value or 0.0, figure.high or 0.0)
        under = "stay under" if high < audit.budget else "do not surely stay under"
        yield (
            f"{whose}{best.seconds:g} s {under} {budget} on average: {format_bits(figure)} to the "
            "strongest attacker tried. Single readers may disclose more."
        )


def _select_strongest(audit: Audit, key: str = BITS, *, least: bool = False) -> list[TestRow]:
    """Return the strongest test of each method; across sessions where there is one."""
    strongest = []
    for method in audit.methods:
        tests = [t for t in audit.tests if t.method == method and _has_value(t, key)]
        tests = [t for t in tests if t.session == "cross"] or tests
        if tests:
            sign = -1.0 if least else 1.0
            strongest.append(max(tests, key=lambda t: sign * (t.figures[key].value or 0.0)))
    return strongest


def _has_value(test: TestRow, key: str) -> bool:
    figure = test.figures.get(key)
    return figure is not None and figure.value is not None


def _select_shortest_best(tests: Sequence[TestRow]) -> TestRow | None:
    """Return the strongest at the shortest length, so that kinds of session compare."""
    if not tests:
        return None
    shortest = min(t.seconds for t in tests)
    return max((t for t in tests if t.seconds == shortest), key=lambda t: t.bits)


def _format_method(test: TestRow, audit: Audit) -> str:
    return f"{format_plain_method(test.method)}: " if audit.kind == "attack" else ""


def _format_attack(test: TestRow) -> str:
    attacker = f"{test.attacker}, " if test.attacker else ""
    return f"{attacker}{test.feature}, {SESSIONS[test.session]}"


def format_interval(figure: Figure) -> str:
    """Format a figure with its limits."""
    limits = format_limits(figure)
    text = format_value(figure.value, figure.unit, figure.text)
    return f"{text} ({limits})" if limits else text
