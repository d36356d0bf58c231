"""Formats figures and says in words what a report means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from monitor.evaluation.families import families
from monitor.evaluation.figure import Figure
from monitor.evaluation.report.report import Report
from monitor.phrases import plural

__all__ = [
    "fact_list",
    "facts",
    "format_limits",
    "format_value",
    "meaning",
    "tie_rules",
]


def facts(report: Report) -> str:
    """What was evaluated, in one line.

    Example:
        >>> from types import SimpleNamespace as Made
        >>> made = Made(trials=1, tested="a", speakers=4, ceiling_bits=2, replicates=0, usage=None)
        >>> facts(made)
        '1 trial of 1 speaker, N = 4, ceiling 2.00 bits, no limits'
    """
    return ", ".join(fact_list(report))


def fact_list(report: Report) -> tuple[str, ...]:
    """`facts`, one by one."""
    strange = 0 if report.usage is None else report.usage.impostor_trials
    heard = f"{plural(report.trials - strange, 'trial')} of {plural(len(report.tested), 'speaker')}"
    return (
        heard + (f" and {strange:,} without a target" if strange else ""),
        f"N = {report.speakers:,}",
        f"ceiling {report.ceiling_bits:.2f} bits",
        plural(report.replicates, "resample") if report.replicates else "no limits",
    )


_LONG = 1e6
"""Bits and nats from here on stand as powers of ten: Cllr of scores that are no log-likelihoods."""


def format_value(value: float | None, unit: str, text: str = "") -> str:
    """A number as its unit wants it; ``text`` where there is one.

    Example:
        >>> [format_value(*each) for each in [(2.3456, "bits"), (0.279, "share"), (28.94, "rank")]]
        ['2.346', '27.9 %', '28.9']
        >>> [format_value(value, "nats") for value in (None, float("inf"), 1e9)]
        ['-', 'inf', '1e+09']
        >>> [format_value(value, "") for value in (0.671, 0.82, 0)]
        ['0.671', '0.820', '0']
        >>> [format_value(value, "share") for value in (0.000557, 2.7e-34)]
        ['0.056 %', '0.0 %']
    """
    if text:
        return text
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if unit == "share":
        percent = 100 * value
        return f"{percent:.2g} %" if 5e-4 <= abs(percent) < 0.1 else f"{percent:.1f} %"
    if unit == "rank":
        return f"{value:,.1f}"
    if unit == "count":
        return f"{value:,.0f}"
    if unit in ("bits", "nats", "log10") and abs(value) < _LONG:
        written = f"{value:.3f}"
        return written.removeprefix("-") if float(written) == 0 else written
    if unit in ("bits", "nats", "log10"):
        return f"{value:.0e}"  # short, so that its limits have room
    return f"{value:#.3g}" if 1e-3 <= abs(value) < 1 else f"{value:.3g}"  # as its limits beside it


def format_limits(figure: Figure) -> str:
    """Its 95 % limits, or nothing.

    Example:
        >>> format_limits(Figure("a.b", "B", 0.5, "share", low=0.1, high=0.7))
        '10.0 to 70.0 %'
    """
    low, high = (format_value(limit, figure.unit) for limit in figure.limits)
    if "-" in (low, high):
        return ""
    return f"{low.removesuffix(' %') if high.endswith(' %') else low} to {high}"


def tie_rules(figures: Sequence[Figure]) -> str:
    """How equal scores were treated in these figures, in one sentence; empty where they play none.

    Example:
        >>> tie_rules([Figure("a.b", "B", 1.0, "", ties="mid"), Figure("a.c", "C", 1.0, "")])
        'Equal scores: mid (B).'
        >>> tie_rules([Figure("a.b", "B", 1.0, "", ties="mid")])
        'Equal scores: mid.'
    """
    rules: dict[str, list[str]] = {}
    for figure in figures:
        if figure.ties:
            rules.setdefault(figure.ties, []).append(figure.label)
    if not rules:
        return ""
    if len(rules) == 1 and all(figure.ties for figure in figures):
        return f"Equal scores: {next(iter(rules))}."
    most = max(rules, key=lambda rule: len(rules[rule]))
    parts = [
        f"{rule} ({'; '.join(labels)})" if rule != most or len(rules) == 1 else f"{rule} otherwise"
        for rule, labels in sorted(rules.items(), key=lambda item: item[0] == most)
    ]
    return f"Equal scores: {', '.join(parts)}."


def meaning(report: Report) -> tuple[str, ...]:
    """What the report comes to, for people who know none of the metrics; a paragraph each."""
    return tuple(
        paragraph
        for family in families()
        if family.meaning is not None
        for paragraph in family.meaning(report.figures, report.speakers)
    )
