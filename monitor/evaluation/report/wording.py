"""What the figures of an evaluation mean, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from monitor.evaluation.figure import Figure
from monitor.evaluation.report.catalogue import is_bracket
from monitor.evaluation.report.report import Report
from monitor.phrases import plural

__all__ = [
    "CAVEATS",
    "TITLES",
    "fact_list",
    "facts",
    "format_limits",
    "format_value",
    "meaning",
    "tie_rules",
]

TITLES = {
    "srd": "Similarity rank disclosure (SRD)",
    "lid": "Local information disclosure (LID)",
    "longitudinal": "Several trials, one speaker (LID)",
    "zebra": "Expected and worst case (ZEBRA)",
    "verification": "Verification",
    "linkage": "Linking two recordings",
    "anonymity": "Ranks as anonymity (USC)",
    "among": "Among more people than were scored",
    "membership": "At few false positives (VoxGuard)",
    "accounting": "Accounting for a declared epsilon",
}
"""What a table calls each family, by the first part of its keys."""

CAVEATS = {
    "srd": "MeanD counted from a histogram is above zero even where nothing is disclosed; trust "
    "the figure of the model, and compare with the null band. A mean also hides the few speakers "
    "who are always found: see the figure for rank 1 and the spread over speakers. MaxD of a "
    "sparse histogram is noise: see the rank at which it stands.",
    "lid": "Row normalisation limits what a trial can disclose, however good the scores: read "
    "LID against its own ceiling. The two calibrations differ, and they are as good as the "
    "speakers that they were learnt on. LID is signed: a mean of zero can hide trials that "
    "disclose a lot beside trials that mislead.",
    "longitudinal": "The plain sum assumes that trials are independent; they are not, and it grows "
    "overconfident. Where sum and fitted temperature part, believe the latter.",
    "zebra": "The tag depends on how many trials there are: perfect separation of a few scores "
    "still reads B or C. Read it against the ceiling that the counts allow. It is an estimate of "
    "the worst case, not a bound.",
    "verification": "The equal error rate is the error at one point in the middle, where no "
    "attacker needs to work: two systems of one EER can differ a hundredfold in their sure hits. "
    "Its two rules differ on few or tied scores.",
    "linkage": "Linkability means three things in the literature. D_sys depends on its bins: few "
    "mated scores read 0 even if they separate perfectly, and chance reads above 0. pi_link "
    "depends on the number of people to choose from: name it with the figure.",
    "anonymity": "A mean rank is not k-anonymity: one speaker at rank 1 hides in an average of "
    "100. Look at P(rank ≤ k) and at the worst trial.",
    "among": "Far beyond the people who were scored nothing decides between the forms: quote the "
    "bracket and whether it is supported, never one form. Limits are over speakers as good and as "
    "bad as these; another crowd (relatives, one accent, one microphone) is no random one.",
    "membership": "A true positive rate at 1e-4 needs ten thousand non-mated scores at least, and "
    "with ties the rate that was realised is another. epsilon is a lower bound on what the "
    "mechanism leaks: a small one proves nothing.",
    "accounting": "The guides beside the curve are a scale, not a guarantee: bits of MeanD are "
    "not an epsilon. The accounting holds for the epsilon that was declared, if that is true.",
}
"""Where each family misleads."""


def facts(report: Report) -> str:
    """What was evaluated, in one line.

    Example:
        >>> from types import SimpleNamespace as Made
        >>> made = Made(trials=1, tested="a", speakers=4, ceiling_bits=2.0, draws=0, usage=None)
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
        plural(report.draws, "resample") if report.draws else "no limits",
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
    figures = report.figures
    paragraphs = []
    bits = _first(figures.get(key) for key in _MEAN_BITS)
    if bits is not None and bits.value is not None:
        paragraphs.append(_crowd(report, bits))
    rank1 = _value(figures.get("srd.idr"))
    if rank1 is not None:
        text = (
            f"In {_share(rank1)} of the trials the right person came first on the attacker's "
            f"list; guessing does that in {_share(1 / report.speakers)}."
        )
        worst = _value(figures.get("lid.max_bits"))
        if worst is not None:
            text += (
                f" The most telling trial gave the attacker {worst:.2f} of at most "
                f"{report.ceiling_bits:.2f} bits: a belief of {_share(_belief(report, worst))} in "
                "the right one."
            )
        paragraphs.append(text)
    paragraphs += _among(report)
    sure = _value(figures.get("membership.tpr_at_1e-3"))
    if sure is not None:
        paragraphs.append(
            "An attacker who allows one false alarm in a thousand recognises "
            f"{_share(sure)} of a wanted person's recordings; guessing would recognise 0.1 %."
        )
    return tuple(paragraphs)


def _among(report: Report) -> list[str]:
    """What becomes of the first place in the largest crowd that was asked for."""
    found = [key for key in report.figures if is_bracket(key) and ".idr_" in key]
    if not found or not (figure := report.figures[found[-1]]).text:
        return []
    low, high = figure.limits
    if low is None or high is None:
        return []
    told = f" That is more than {report.speakers:,} people can tell: where they part, nobody knows."
    return [
        f"Among {int(found[-1].rsplit('_', 1)[1]):,} people the right one would come first in "
        f"{_share(low)} to {_share(high)} of the trials, by four ways to go on from what was "
        f"measured.{told if figure.text == 'unsupported' else ''}"
    ]


_MEAN_BITS = ("srd.mean_bits_model", "srd.mean_bits")


def _first(figures: Iterable[Figure | None]) -> Figure | None:
    return next((each for each in figures if each is not None and each.value is not None), None)


def _value(figure: Figure | None) -> float | None:
    value = None if figure is None else figure.value
    return value if value is not None and math.isfinite(value) else None


def _crowd(report: Report, figure: Figure) -> str:
    bits = max(figure.value or 0.0, 0.0)
    people, left = report.speakers, report.speakers / 2.0**bits
    most = f"{report.ceiling_bits:.2f}"
    if _reversed(report, bits):
        return (
            f"Of {people:,} people whom an attacker considers, the right one comes later than by "
            f"chance: who takes low scores for alike learns {bits:.2f} bits of the {most} that "
            "single somebody out."
        )
    if _nothing(report, bits):
        return (
            f"Among {people:,} people, these scores tell an attacker nothing that can be measured "
            f"about who spoke: {bits:.2f} bits on average, of {most} that single somebody out."
        )
    text = (
        f"Of {people:,} people whom an attacker considers, it is on average as if only "
        f"{_count(left)} were left: a trial discloses {bits:.2f} bits of the {most} that single "
        "somebody out"
    )
    low, high = figure.limits
    if low is not None and high is not None:
        fewest, other = (_count(people / 2.0 ** max(each, 0.0)) for each in (high, low))
        text += f" (limits: {low:.2f} to {high:.2f} bits, {fewest} to {other} people)"
    return text + "."


def _reversed(report: Report, bits: float) -> bool:
    """Whether it is ranks behind those of chance that read more than no evidence."""
    chance = _value(report.figures.get("srd.null_chance"))
    band = report.figures.get("srd.null_model_bits")
    high = None if band is None else band.limits[1]
    return chance is not None and high is not None and chance > 0.5 and bits > high


def _nothing(report: Report, bits: float) -> bool:
    """Whether no evidence reads as much in more than one case of twenty."""
    chance = _value(report.figures.get("srd.null_chance"))
    return bits <= 0.002 * report.ceiling_bits if chance is None else chance > 0.05


def _belief(report: Report, bits: float) -> float:
    return min(1.0, float(2.0**bits) / report.speakers)


def _count(people: float) -> str:
    return f"{people:,.0f}" if people >= 9.95 else f"{people:.1f}".removesuffix(".0")


def _share(value: float) -> str:
    """A share for reading aloud.

    Example:
        >>> [_share(value) for value in (0.279, 0.01, 0.998, 0.00012, 0.0, 1.0)]
        ['28 %', '1 %', '99.8 %', '0.012 %', '0 %', '100 %']
    """
    percent = 100 * value
    if 0 < percent < 10 or 99 < percent < 100:
        digits = 2 if percent < 10 else 3
        return f"{percent:.{digits}g} %"
    return f"{percent:.0f} %"
