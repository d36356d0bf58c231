"""The figures of each group of speakers by itself, and their average."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.figure import Figure
from monitor.evaluation.report.comparing import Comparison, Row, compare
from monitor.evaluation.report.report import Report
from monitor.evaluation.scores.comparisons import Comparisons
from monitor.evaluation.scores.within_group import within
from monitor.phrases import plural

__all__ = ["AVERAGE", "Grouped", "by_group", "grouped"]

AVERAGE = "average"
"""What the column beside the groups is called."""


@dataclass(frozen=True)
class Grouped:
    """One system, group by group.

    Attributes:
        name: of the system.
        comparison: a report of each group and, last, their average.
        notes: which comparisons count, one sentence each.
    """

    name: str
    comparison: Comparison
    notes: tuple[str, ...]

    def to_json(self, shown: Sequence[str] | None = None) -> dict[str, Any]:
        """Everything but replicates and curves, ready for ``json.dumps(..., allow_nan=False)``."""
        reports = {each.name: each.to_json(shown) for each in self.comparison.reports}
        for made in reports.values():
            del made["curves"]
        return {
            "notes": list(self.notes),
            "groups": {name: made for name, made in reports.items() if name != AVERAGE},
            AVERAGE: reports[AVERAGE]["figures"],
            "comparison": self.comparison.to_json(shown),
        }


def by_group(
    every: Comparisons,
    group_of: Mapping[str, str],
    measure: Callable[[Comparisons], Report],
    label: str = "the file of groups",
) -> Grouped:
    """Measure each group by itself.

    Args:
        every: comparisons of all.
        group_of: by name of the speaker.
        measure: `evaluate` with the options of the whole.
        label: how messages call what the groups come from.

    Raises:
        UsageError: no speaker is in any group, or fewer than two groups can be measured.
    """
    unknown = [name for name in every.speakers if name not in group_of]
    if len(unknown) == len(every.speakers):
        raise UsageError(f"{label} knows none of the speakers of {every.name}: check the names")
    said, reports = [], []
    for group in sorted(set(group_of.values())):
        try:
            part = within(every, group_of, group)
        except UsageError as error:
            said.append(f"{group} is left out: {error}.")
            continue
        reports.append(replace(measure(part), name=group))
    if len(reports) < 2:
        raise UsageError(
            f"{label}: {plural(len(reports), 'group')} of {every.name} can be measured, two are "
            f"needed. {' '.join(said)}"
        )
    return grouped(every, reports, [*_which(every, reports, unknown, label), *said])


def _which(
    every: Comparisons, reports: Sequence[Report], unknown: Sequence[str], label: str
) -> list[str]:
    """Which comparisons count."""
    sizes, used = [], 0
    for report in reports:
        usage = report.usage
        assert usage is not None
        used += usage.target + usage.nontarget
        sizes.append(
            f"{report.name}: {usage.target:,} target and {usage.nontarget:,} non-target "
            f"comparisons with {plural(report.speakers, 'speaker')}"
        )
    left = every.usage.target + every.usage.nontarget - used
    said = [
        "Each group by itself: its trials against its own enrolled speakers, as VoicePrivacy "
        f"reports women and men. {'; '.join(sizes)}. {left:,} other comparisons count in no group."
    ]
    if unknown:
        said.append(
            f"{len(unknown)} of {plural(len(every.speakers), 'speaker')} are not in {label} "
            f"(first: {unknown[0]})."
        )
    if len({report.speakers for report in reports}) > 1:
        said.append(
            "The groups have different numbers of speakers N: bits, ranks and ceilings do not "
            "compare."
        )
    said.append("The average weighs every group alike.")
    return said


def grouped(every: Comparisons, reports: Sequence[Report], notes: Sequence[str]) -> Grouped:
    """Reports of groups side by side, with their average."""
    found = compare(reports)
    keys = [row.key for row in found.rows]
    average = {
        key: made for key in keys if (made := _average([r.figures.get(key) for r in reports]))
    }
    last = replace(
        reports[0], name=AVERAGE, trials=sum(r.trials for r in reports), figures=average, notes=(),
        warnings=(), usage=None,
    )  # fmt: skip
    rows = tuple(
        Row(
            row.key,
            (*row.figures, average.get(row.key)),
            (*row.differences, None),
            row.most_private,
        )
        for row in found.rows
    )
    beside = replace(
        found, reports=(*found.reports, last), paired=(*found.paired, False), rows=rows
    )
    return Grouped(every.name, beside, tuple(notes))


def _average(figures: Sequence[Figure | None]) -> Figure | None:
    """Of independent groups: their limits give that of the mean (Zou and Donner, 2008)."""
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
    return Figure(
        have[0].key, have[0].label, mean, have[0].unit, floor=_same(f.floor for f in have),
        ties=have[0].ties, low=low, high=high,
        note=have[0].note if len({each.note for each in have}) == 1 else "",
    )  # fmt: skip


def _same(values: Any) -> float | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None
