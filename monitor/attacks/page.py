"""The page of an attack: what was tested, the worst case first, tables, what it does not say."""

from __future__ import annotations

import math

from monitor.attacks.attackers import ATTACKERS
from monitor.attacks.hearing import CLEAR
from monitor.attacks.results import BITS, AttackResults, AttackRow
from monitor.attacks.tables import (
    MAIN_HEAD,
    attribute_table,
    enrolment_table,
    main_table,
    measured_table,
)
from monitor.attacks.wording import caveats, headline, method_name
from monitor.documents.shell import document, paragraphs, picture, section
from monitor.documents.tables import bullet_list, table
from monitor.phrases import plural
from monitor.plots.attacks import MethodBits, attacks_svg
from monitor.plots.series import short_name

__all__ = ["page", "pictured"]

_LONGEST_NAME = 20
_FOOT = (
    "Limits are 95 %, over resampled readers. This page holds no voice, no score and no template."
)

_TOLD = (
    "As in VoxGuard's section 3.2: a logistic regression on embeddings, learnt from readers apart, "
    "or from some of the judged and tried on the others. Strict: of readers matched in the other "
    "attributes; what they say cannot be held fixed. Epsilon: nats, and what it is at least by "
    "Clopper and Pearson's limits over readers. An asterisk: too few excerpts or readers to tell "
    "of that rate."
)


def page(results: AttackResults) -> str:
    """The page as HTML; it stands alone."""
    settings = results.settings
    methods = [method for method in settings.methods if method != CLEAR]
    tested = ", ".join(map(method_name, methods)) or "unprotected speech"
    facts = [
        f"{settings.corpus}: {plural(settings.readers, 'reader')}, trials of "
        f"{settings.seconds:g} s of speech, templates of {settings.template_seconds:g} s "
        f"({'another session' if settings.session == 'cross' else 'the same session'}).",
        f"Attackers: {', '.join(settings.attackers)}; they hear {', '.join(settings.features)}"
        f"{_learnt(settings.background)}.",
    ]  # fmt: skip
    parts = [
        section("What is left for an attacker", paragraphs(*headline(results))),
        f'<div class="pictures">{"".join(_beside(results))}</div>',
        *_use(results),
        section(
            "Every attacker and feature",
            paragraphs(
                f"At the template that everybody has, {settings.template_seconds:g} s. Bits: mean "
                "disclosure of a fitted rank law (MeanD). First: share of trials in which the "
                "right reader came first. Mean rank: USC's linkability where enrolled speech is "
                "protected, its singling out where it is clear; of the median reader and of the "
                "most exposed 1 %. TPR, and epsilon (nats) with what it is at least, at FPR 1e-2."
            ),
            table(MAIN_HEAD, main_table(results), names=3, wide=True),
            bullet_list(_laws(results)),
        ),
    ]
    head, lines = enrolment_table(results)
    if lines:
        counts = ", ".join(map(str, settings.segments))
        parts.append(
            section(
                f"Enrolment of {counts} segments, average and max scoring",
                paragraphs(
                    "As in VoxGuard's Table 1. Each cell: EER (%) | epsilon (nats) | TPR (%) at "
                    "FPR 1e-2 | TPR (%) at FPR 1e-3. A segment is 6 s of speech; average scoring "
                    "compares with the mean of all, max scoring with the nearest."
                ),
                table(head, lines, names=4, wide=True),
            )
        )
    for name, rows in results.attributes.items():
        if rows:
            head, lines = attribute_table(rows)
            made = table(head, lines, names=5, wide=True)
            parts.append(section(f"Told of a reader: {name}", paragraphs(_TOLD), made))
    parts.append(
        section("What this does not say", bullet_list([*results.notes, *caveats(results)]))
    )
    if results.problems:
        parts.append(section("What could not be used", bullet_list(results.problems)))
    return document(f"Attacks on {tested}", facts, parts, _FOOT)


def _beside(results: AttackResults) -> list[str]:
    """The picture, and beside it who attacks."""
    shown = picture(
        "Bits by method and attacker",
        attacks_svg(*pictured(results)),
        "Of each attacker what it learnt by the best of its ways. 0 is no disclosure; the dashed "
        "line is everything. A method is as good as its rightmost mark.",
    )
    return [shown, section("Who attacks", bullet_list(_attackers(results)))]


def _use(results: AttackResults) -> list[str]:
    """What is left of use, where it was measured."""
    head, lines = measured_table(results)
    return [section("What is left of use", table(head, lines, wide=True))] if lines else []


def _learnt(readers: int) -> str:
    return f", and learnt from {plural(readers, 'reader')} apart" if readers else ""


def pictured(results: AttackResults) -> tuple[list[MethodBits], tuple[str, ...], float]:
    """What a picture of all this shows: methods with bits, names of attackers, log2 N."""
    attackers = results.settings.attackers
    ceiling = math.log2(max(row.speakers for row in results.rows))
    methods = [
        MethodBits(
            short_name(method_name(method).strip("`"), _LONGEST_NAME),
            [_bits(results.strongest(method, attacker)) for attacker in attackers],
        )
        for method in results.settings.methods
    ]
    return methods, attackers, ceiling


def _bits(row: AttackRow | None) -> tuple[float, float, float] | None:
    if row is None:
        return None
    low, high = row.figures[BITS].limits
    return row.bits, row.bits if low is None else low, row.bits if high is None else high


def _attackers(results: AttackResults) -> list[str]:
    tried = results.settings.attackers
    return [f"{name}: {ATTACKERS[name].knows}." for name in tried if name in ATTACKERS]


def _laws(results: AttackResults) -> list[str]:
    """Where the weights of joint scores come from, each once."""
    said = dict.fromkeys(
        f"Joint score of {method_name(row.method)}, {row.attacker}: {row.law}."
        for row in results.rows
        if row.law
    )
    return list(said)
