"""Compares several systems, pairs of them, and groups of speakers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import attrgetter

import numpy as np

from monitor.errors import UsageError
from monitor.files import finite
from monitor.lab.evaluation.comparisons import Comparisons, within
from monitor.lab.evaluation.family import rule_of
from monitor.lab.evaluation.report import Report
from monitor.lab.report.model import Figure, OneLine
from monitor.lab.report.renderers import figure_json
from monitor.maths.statistics import Estimate, difference_reach
from monitor.phrases import format_best_feature, plural

ERROR = 0.05  # error rate of the intervals in a row of differences
_ROUNDING = 1e-9


def paired(first: Report, other: Report) -> bool:
    """Return whether two systems were tested on the same speakers and resampled together."""
    setting = attrgetter("tested", "replicates", "seed")
    return bool(setting(first) == setting(other))


def compute_difference(first: Report, other: Report, key: str, error: float = ERROR) -> Figure:
    """Compute a figure of one system minus that of the first, with an interval at this error.

    The value is None if either figure is missing. There is no interval if either has none, or is
    missing in too many resamples.
    """
    base, compared = first.figures.get(key), other.figures.get(key)
    unknown = Figure(key, "", None, "" if base is None else base.unit)
    if base is None or compared is None or base.value is None or compared.value is None:
        return unknown
    value = compared.value - base.value
    if np.isnan(value):  # both infinite
        return unknown
    difference = replace(unknown, value=value)
    a, b = _estimate(base, len(first.tested)), _estimate(compared, len(other.tested))
    if a is None or b is None:
        return difference
    if paired(first, other) and a.left_out.shape == b.left_out.shape:
        draws, left_out = b.replicates - a.replicates, b.left_out - a.left_out
        gap = replace(b, value=value, replicates=draws, left_out=left_out)
        if not gap.exists:
            return difference
        reach = gap.reach(error / 2)
    else:
        reach = difference_reach(a, b, error / 2)
    if reach > _ROUNDING * max(abs(base.value), abs(compared.value)):
        return replace(difference, low=value - reach, high=value + reach)
    # neither varies, like shares of 0 and 1: combine their own intervals
    (low, high), (other_low, other_high) = base.limits, compared.limits
    if low is None or high is None or other_low is None or other_high is None:
        return difference
    return replace(difference, low=other_low - high, high=other_high - low)


def _estimate(figure: Figure, speakers: int) -> Estimate | None:
    """Return the estimate of a figure; None if it has no valid interval."""
    if figure.replicates is None or figure.left_out is None or figure.value is None:
        return None
    rule = rule_of(figure.key)
    if None in figure.limits or (rule is not None and rule.few_decide):
        return None
    estimate = Estimate(figure.value, figure.replicates, figure.left_out, speakers, speakers)
    return estimate if estimate.exists else None


@dataclass(frozen=True, repr=False)
class Row(OneLine):
    """One figure of every system, None if a system lacks it, and its differences to the first.

    The most private is the index of the system nearest to no evidence; None if no floor is known,
    or if several systems are nearest.
    """

    key: str
    figures: tuple[Figure | None, ...]
    differences: tuple[Figure | None, ...]
    most_private: int | None

    @property
    def first(self) -> Figure:
        """Figure of the first system that has it: label, unit, note."""
        return next(filter(None, self.figures))

    @property
    def differs(self) -> tuple[bool, ...]:
        """True for systems that differ significantly from the first."""
        return tuple(d is not None and d.significant for d in self.differences)

    @property
    def marks(self) -> tuple[str, ...]:
        """``*`` for systems that differ from the first, ``°`` for the most private."""
        return tuple(
            "\N{DEGREE SIGN}" * (i == self.most_private) + "*" * differs
            for i, differs in enumerate(self.differs)
        )

    def note(self, names: Sequence[str]) -> str:
        """Describe the figures in sentences, with names of systems if their notes differ."""
        by_note: dict[str, list[str]] = {}
        for name, figure in zip(names, self.figures, strict=True):
            if figure is not None:
                by_note.setdefault(figure.note, []).append(name)
        if len(by_note) == 1:
            note = self.first.note.strip()
            return note and note[:1].upper() + note[1:].removesuffix(".") + "."
        return " ".join(
            f"{', '.join(who)}: {note.rstrip('.')}." for note, who in by_note.items() if note
        )


@dataclass(frozen=True, repr=False)
class Comparison(OneLine):
    """A table of several systems, which compares the others with the first."""

    reports: tuple[Report, ...]
    # whether a system was tested on the same speakers as the first, and resampled with it
    paired: tuple[bool, ...]
    # confidence of each difference's interval. Those of one row hold together in 95 % of cases
    # (Bonferroni over the systems); rows are not corrected for each other.
    confidence: float
    rows: tuple[Row, ...]  # in the order of the reports
    notes: tuple[str, ...]  # how to read it, one sentence each

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(report.name for report in self.reports)

    def to_json(self, shown: Collection[str] | None = None) -> dict[str, object]:
        """Convert differences of some figures or all for ``json.dumps(allow_nan=False)``."""
        return {
            "reference": self.names[0],
            "confidence": self.confidence,
            "paired": dict(zip(self.names, self.paired, strict=True)),
            "notes": list(self.notes),
            "differences": {
                row.key: {
                    name: {**figure_json(replace(d, unit="")), "significant": d.significant}
                    for name, d in zip(self.names, row.differences, strict=True)
                    if d is not None
                }
                for row in self.rows
                if shown is None or row.key in shown
            },
        }


def compare(reports: Sequence[Report]) -> Comparison:
    """Compare systems with the first one. A single system gets figures without differences.

    Systems with the same speakers, seed and replicates are compared in every resample, with Student
    limits. For other systems, variances are added (Welch, 1947). Figures without limits are not
    compared. False positive rates: benchmarks/results/coverage.md.

    Raises:
        UsageError: if there is no report, or two have the same name.
    """
    if not reports:
        raise UsageError("a comparison needs a system")
    names = [report.name for report in reports]
    if len(set(names)) != len(names):
        raise UsageError("two systems have the same name: use different names")
    first, *others = reports
    pairings = tuple(paired(first, system) for system in reports)
    error = ERROR / max(len(others), 1)
    rows = []
    for key in dict.fromkeys(key for report in reports for key in report.figures):
        figures = tuple(report.figures.get(key) for report in reports)
        differences = (None, *(compute_difference(first, other, key, error) for other in others))
        rows.append(Row(key, figures, differences, _most_private(figures) if others else None))
    notes = tuple(_notes(reports, pairings, error)) if others else ()
    return Comparison(tuple(reports), pairings, 1 - error, tuple(rows), notes)


def _most_private(figures: Sequence[Figure | None]) -> int | None:
    distances = [
        (abs(figure.value - figure.floor), i)
        for i, figure in enumerate(figures)
        if figure is not None and figure.value is not None and figure.floor is not None
    ]
    if len(distances) < len(figures):
        return None
    nearest, index = min(distances)
    return index if sum(distance == nearest for distance, _ in distances) == 1 else None


def _notes(reports: Sequence[Report], paired: Sequence[bool], error: float) -> Iterator[str]:
    first = reports[0]
    together = f" (95 % for all {len(reports) - 1} together, Bonferroni)" * (len(reports) > 2)
    yield (
        f"* differs from {first.name}: the {100 * (1 - error):.4g} % interval of the difference "
        f"excludes zero{together}. Rows are not corrected for each other, so chance marks one in "
        "twenty equal figures."
    )
    yield (
        "Figures without intervals, LID- and the mean rank of the most exposed are not compared, "
        "because few trials or speakers decide them."
    )
    for system, same in zip(reports[1:], paired[1:], strict=True):
        yield from _describe_speakers(first, system, same)
    numbered = [set(system.tested) <= set(map(str, range(system.speakers))) for system in reports]
    if all(paired) and all(numbered):
        yield "Speakers have no names, so the same column counts as the same person."
    if any(report.speakers != first.speakers for report in reports):
        yield f"The systems {_SIZES}"
    yield from _weaker_joints(reports)
    replicates = min(report.replicates for report in reports)
    if not replicates:
        yield "Nothing was resampled, so no difference can be called significant."
    elif error / 2 * (replicates - 1) < 0.5:
        yield (
            f"{replicates} resamples are too few for {len(reports)} systems: use at least "
            f"{int(4 / error)}."
        )


_SIZES = "have different numbers of speakers N: do not compare bits, ranks and ceilings."


def _weaker_joints(reports: Sequence[Report]) -> Iterator[str]:
    """Name systems with a feature that discloses more than all features together."""
    bits = {
        tuple(report.name.split()): float(mean.value)
        for report in reports
        if (mean := report.figures.get("srd.mean_bits_model")) and mean.value is not None
    }
    for words, together in bits.items():
        if "joint" not in words:
            continue
        at = words.index("joint")
        alone = {
            other[at]: value
            for other, value in bits.items()
            if other != words and (*other[:at], "joint", *other[at + 1 :]) == words
        }
        if weaker := format_best_feature(together, alone, " ".join(words)):
            yield f"{weaker}."


def _describe_speakers(first: Report, other: Report, paired: bool) -> Iterator[str]:
    """Describe how the speakers and trials of a system differ from those of the first."""
    first_people, other_people = set(first.tested), set(other.tested)
    if not paired:
        whom = (
            "the same speakers, but with other resamples"
            if first_people == other_people
            else f"{len(first_people & other_people)} of the "
            f"{plural(len(first_people), 'speaker')} of {first.name} and on "
            f"{plural(len(other_people - first_people), 'other')}"
        )
        yield (
            f"{other.name} was tested on {whom}. Its difference uses independent resamples, not "
            "pairs."
        )
    elif first.named_trials and other.named_trials and first.named_trials != other.named_trials:
        both = len(first.named_trials & other.named_trials)
        yield (
            f"{other.name} shares {both} of its {plural(len(other.named_trials), 'trial')} with "
            f"the {len(first.named_trials)} of {first.name}. Speakers are compared in pairs, but "
            "trials differ."
        )


_STEPS = 24


@dataclass(frozen=True, repr=False)
class Pair(OneLine):
    """Difference between one system and the first.

    Limits hold for all pairs of a figure together in 95 % of cases (Bonferroni). So p is multiplied
    by the number of pairs; None without limits.
    """

    first: str
    other: str
    paired: bool
    differences: Mapping[str, Figure]
    p: Mapping[str, float | None]

    def to_json(self) -> dict[str, object]:
        """Return the pair for ``json.dumps(..., allow_nan=False)``."""
        differences = {
            key: {
                **{end: finite(getattr(difference, end)) for end in ("value", "low", "high")},
                "p": self.p[key],
                "significant": difference.significant,
            }
            for key, difference in self.differences.items()
        }
        names = {"first": self.first, "other": self.other, "paired": self.paired}
        return {**names, "differences": differences}


def all_pairs(reports: Sequence[Report], keys: Sequence[str] | None = None) -> tuple[Pair, ...]:
    """Compare every system with every other by some figures or all; names must differ.

    Pairs are in the order of the reports. Fewer than two reports have none.
    """
    couples = list(combinations(reports, 2))
    have = dict.fromkeys(key for report in reports for key in report.figures)
    compared = [key for key in (have if keys is None else keys) if key in have]
    pairs = []
    for a, b in couples:
        differences = {key: compute_difference(a, b, key, ERROR / len(couples)) for key in compared}
        alone = {key: p_value(a, b, key) for key in compared}
        p = {key: None if p is None else min(1.0, len(couples) * p) for key, p in alone.items()}
        pairs.append(Pair(a.name, b.name, paired(a, b), differences, p))
    return tuple(pairs)


def p_value(first: Report, other: Report, key: str) -> float | None:
    """Compute the smallest error at which the interval of a difference excludes zero.

    The resolution is one in the number of resamples. None without limits.
    """
    smallest = 1 / max(min(first.replicates, other.replicates), 1)
    widest = compute_difference(first, other, key, smallest)
    if widest.low is None or widest.significant:
        return None if widest.low is None else smallest
    low, high = smallest, 1.0
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        if compute_difference(first, other, key, middle).significant:
            high = middle
        else:
            low = middle
    return high


def p_text(p: float | None, smallest: float) -> str:
    """Format a p-value, and mark the smallest that resamples can resolve.

    Example:
        >>> p_text(0.0312, 0.015), p_text(0.015, 0.015), p_text(None, 0.015)
        ('0.031', '≤ 0.015', '')
    """
    if p is None:
        return ""
    return f"{p:.2g}" if p > smallest * (1 + 1e-9) else f"\N{LESS-THAN OR EQUAL TO} {p:.2g}"


def explain_pairs(pairs: Sequence[Pair], replicates: int) -> Iterator[str]:
    """Explain how to read differences, one sentence each."""
    count = len(pairs)
    together = (
        f"intervals hold for all {count} pairs of a figure together in 95 % of cases, and p is "
        f"multiplied by {count} (Bonferroni)"
        if count > 1
        else "intervals are 95 %"
    )
    yield (
        f"Differences of pairs (rates in percentage points): {together}. Figures are not "
        "corrected for each other."
    )
    if not replicates:
        yield "Nothing was resampled, so there are no intervals and p-values."
    elif count / replicates > ERROR:
        yield (
            f"{replicates} resamples cannot resolve p below {count / replicates:.2g} for {count} "
            f"pairs: use at least {int(4 * count / ERROR)}."
        )


AVERAGE = "average"  # title of the column beside the groups


@dataclass(frozen=True, repr=False)
class Grouped(OneLine):
    """Reports of one system's groups, with their average last, and notes on the comparisons."""

    name: str
    comparison: Comparison
    notes: tuple[str, ...]

    def to_json(self, shown: Sequence[str] | None = None) -> dict[str, object]:
        """Return all except replicates and curves, for ``json.dumps(..., allow_nan=False)``."""
        *groups, average = self.comparison.reports
        encoded = {report.name: dict(report.to_json(shown)) for report in groups}
        for record in encoded.values():
            del record["curves"]
        return {
            "notes": list(self.notes),
            "groups": encoded,
            AVERAGE: average.to_json(shown)["figures"],
            "comparison": self.comparison.to_json(shown),
        }


def by_group(
    every: Comparisons,
    group_of: Mapping[str, str],
    measure: Callable[[Comparisons], Report],
    label: str = "the file of groups",
) -> Grouped:
    """Measure each group of named speakers separately, in the same way as the whole.

    `label` names the source of the groups in messages. Raises UsageError if no speaker is in any
    group, or fewer than two groups can be measured.
    """
    unknown = [name for name in every.speakers if name not in group_of]
    if len(unknown) == len(every.speakers):
        raise UsageError(f"{label} lists none of the speakers of {every.name}: check the names")
    skipped, reports = [], []
    for group in sorted(set(group_of.values())):
        try:
            members = within(every, group_of, group)
        except UsageError as error:
            skipped.append(f"{group} is omitted: {error}.")
            continue
        reports.append(replace(measure(members), name=group))
    if len(reports) < 2:
        raise UsageError(
            f"{label}: {plural(len(reports), 'group')} of {every.name} can be measured, and two "
            f"are needed. {' '.join(skipped)}"
        )
    notes = (*_describe_counts(every, reports, unknown, label), *skipped)
    return Grouped(every.name, _add_average(compare(reports)), notes)


def _describe_counts(
    every: Comparisons, reports: Sequence[Report], unknown: Sequence[str], label: str
) -> Iterator[str]:
    sizes, remaining = [], every.usage.target + every.usage.nontarget
    for report in reports:
        usage = report.usage
        assert usage is not None
        remaining -= usage.target + usage.nontarget
        sizes.append(
            f"{report.name}: {usage.target:,} target and {usage.nontarget:,} non-target "
            f"comparisons with {plural(report.speakers, 'speaker')}"
        )
    yield (
        "Each group's trials are compared with its own enrolled speakers, as VoicePrivacy does "
        f"for women and men. {'; '.join(sizes)}. The other {remaining:,} comparisons are in no "
        "group."
    )
    if unknown:
        yield (
            f"{len(unknown)} of {plural(len(every.speakers), 'speaker')} are not in {label} "
            f"(first: {unknown[0]})."
        )
    if len({report.speakers for report in reports}) > 1:
        yield f"The groups {_SIZES}"
    yield (
        "The average weighs groups equally. Bounds, and figures that one trial decides, have no "
        "average."
    )


def _add_average(comparison: Comparison) -> Comparison:
    """Put the average beside groups, as a last column."""
    rows, means = [], {}
    for row in comparison.rows:
        rule = rule_of(row.key)  # bounds and figures of one trial have no average
        mean = None if rule is None or rule.method == "none" else _average(row.figures)
        if mean is not None:
            means[row.key] = mean
        figures, differences = (*row.figures, mean), (*row.differences, None)
        rows.append(replace(row, figures=figures, differences=differences))
    reports, paired = comparison.reports, (*comparison.paired, False)
    last = replace(
        reports[0], name=AVERAGE, trials=sum(r.trials for r in reports), figures=means, notes=(),
        warnings=(), usage=None,
    )  # fmt: skip
    return replace(comparison, reports=(*reports, last), paired=paired, rows=tuple(rows))


def _average(figures: Sequence[Figure | None]) -> Figure | None:
    """Average independent groups, with an interval from theirs (Zou and Donner, 2008)."""
    have = [figure for figure in figures if figure is not None]
    values = [figure.value for figure in have if figure.value is not None]
    if len(values) < len(figures) or not np.isfinite(values).all():
        return None
    mean = float(np.mean(values))
    ends = [figure.limits for figure in have]
    low = high = None
    if all(a is not None and b is not None for a, b in ends):
        reach = np.array([[v - a, b - v] for v, (a, b) in zip(values, ends, strict=True)])  # type: ignore[operator]
        below, above = np.sqrt((np.maximum(reach, 0.0) ** 2).sum(axis=0)) / len(values)
        low, high = mean - float(below), mean + float(above)
    sample = have[0]
    floors, notes = {figure.floor for figure in have}, {figure.note for figure in have}
    return Figure(
        sample.key, sample.label, mean, sample.unit,
        floor=sample.floor if len(floors) == 1 else None,
        ties=sample.ties, note=sample.note if len(notes) == 1 else "", low=low, high=high,
    )  # fmt: skip
