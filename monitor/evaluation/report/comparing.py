"""Compares several systems, and finds which differences are more than chance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.errors import UsageError
from monitor.evaluation.figure import Figure
from monitor.evaluation.report.differences import ERROR, Difference, between, paired
from monitor.evaluation.report.report import Report, figure_json
from monitor.phrases import plural, weaker_together

__all__ = ["Comparison", "Row", "compare"]

_MEAN = "srd.mean_bits_model"


@dataclass(frozen=True)
class Row:
    """One figure of every system.

    Attributes:
        key: of the figure.
        figures: one a system; None where a system has it not.
        differences: to the first system; None for the first.
        most_private: index of the system nearest to no evidence; None where no floor is known, or
            where several are.
    """

    key: str
    figures: tuple[Figure | None, ...]
    differences: tuple[Difference | None, ...]
    most_private: int | None

    @property
    def first(self) -> Figure:
        """That of the first system that has it: label, unit, note."""
        return next(figure for figure in self.figures if figure is not None)

    @property
    def differs(self) -> tuple[bool, ...]:
        """Which systems differ significantly from the first."""
        return tuple(each is not None and each.significant for each in self.differences)

    def note(self, names: Sequence[str]) -> str:
        """What is to be said of the figures; by name where it differs between the systems."""
        said: dict[str, list[str]] = {}
        for name, figure in zip(names, self.figures, strict=True):
            if figure is not None:
                said.setdefault(figure.note, []).append(name)
        if len(said) == 1:
            return self.first.note
        return " ".join(
            f"{', '.join(who)}: {note.rstrip('.')}." for note, who in said.items() if note
        )


@dataclass(frozen=True)
class Comparison:
    """A table of several systems; the first is the one that others are compared with.

    Attributes:
        reports: of the systems.
        paired: whether a system was tested on the same speakers as the first, so that both were
            resampled together.
        confidence: of the limits of each difference. Those of one row hold together in 95 % of
            cases (Bonferroni over the systems); rows are not corrected for each other.
        rows: in the order of the reports.
        notes: how to read it, one sentence each.
    """

    reports: tuple[Report, ...]
    paired: tuple[bool, ...]
    confidence: float
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the systems."""
        return tuple(report.name for report in self.reports)

    def to_json(self, shown: Collection[str] | None = None) -> dict[str, Any]:
        """The differences, ready for ``json.dumps(..., allow_nan=False)``.

        Args:
            shown: keys of figures, where not all are wanted.
        """
        return {
            "reference": self.names[0],
            "confidence": self.confidence,
            "paired": dict(zip(self.names, self.paired, strict=True)),
            "notes": list(self.notes),
            "differences": {
                row.key: {
                    name: {
                        **figure_json(Figure("", "", d.value, "", low=d.low, high=d.high)),
                        "significant": d.significant,
                    }
                    for name, d in zip(self.names, row.differences, strict=True)
                    if d is not None
                }
                for row in self.rows
                if shown is None or row.key in shown
            },
        }


def compare(reports: Sequence[Report]) -> Comparison:
    """Compare systems with the first of them.

    Systems that were tested on the same speakers, by name, were resampled together (equal seed and
    replicates), in whatever order their columns and rows stand: their difference is taken in every
    resample, and its limits are Student's with the spread of these. Spreads of systems with other
    speakers add up (Welch, 1947), and what they have in common is said. Figures without limits of
    their own are not compared: docs/coverage.md has how often equal systems are told apart.

    Args:
        reports: two or more, of different names.

    Returns:
        the table.

    Raises:
        UsageError: fewer than two reports, or two of one name.
    """
    if len(reports) < 2:
        raise UsageError("a comparison needs at least two systems")
    names = [report.name for report in reports]
    if len(set(names)) != len(names):
        raise UsageError("two systems have one name: give each its own")
    first, *others = reports
    alike = tuple(paired(first, each) for each in reports)
    error = ERROR / len(others)
    rows = []
    for key in dict.fromkeys(key for report in reports for key in report.figures):
        figures = tuple(report.figures.get(key) for report in reports)
        differences = (None, *(between(first, other, key, error) for other in others))
        rows.append(Row(key, figures, differences, _most_private(figures)))
    return Comparison(tuple(reports), alike, 1 - error, tuple(rows), _notes(reports, alike, error))


def _most_private(figures: Sequence[Figure | None]) -> int | None:
    far = [
        abs(figure.value - figure.floor)
        if figure is not None and figure.value is not None and figure.floor is not None
        else None
        for figure in figures
    ]
    known = [(distance, i) for i, distance in enumerate(far) if distance is not None]
    if len(known) < len(figures):
        return None
    least, index = min(known)
    return index if sum(distance == least for distance, _ in known) == 1 else None


def _notes(reports: Sequence[Report], paired: Sequence[bool], error: float) -> tuple[str, ...]:
    first = reports[0]
    notes = [
        f"* differs from {first.name}: the {100 * (1 - error):.4g} % limits of the difference "
        "leave zero out"
        + (f" (95 % for all {len(reports) - 1} together, Bonferroni)" if len(reports) > 2 else "")
        + "; rows are not corrected for each other, so that one in twenty that do not differ is "
        "marked by chance.",
        "Figures without limits, LID- and the mean rank of the most exposed are not compared so: "
        "few trials or speakers decide them.",
    ]
    for each, same in zip(reports[1:], paired[1:], strict=True):
        notes += _set_apart(first, each, same)
    if all(same and _numbered(each) for each, same in zip(reports, paired, strict=True)):
        notes.append("Speakers have no names: equal columns are taken for the same people.")
    if any(report.speakers != first.speakers for report in reports):
        notes.append(
            "The systems have different numbers of speakers N: bits, ranks and ceilings do not "
            "compare."
        )
    notes += _weaker_joints(reports)
    replicates = min(report.replicates for report in reports)
    if replicates and error / 2 * (replicates - 1) < 0.5:
        notes.append(
            f"{replicates} resamples are few for so many systems: give "
            f"{int(4 / error)} or more replicates."
        )
    if not replicates:
        notes.append("Nothing was resampled: no difference can be called significant.")
    return tuple(notes)


def _weaker_joints(reports: Sequence[Report]) -> list[str]:
    """That one feature discloses more than all of them together, of systems that differ in that."""
    bits = {
        tuple(report.name.split()): float(found.value)
        for report in reports
        if (found := report.figures.get(_MEAN)) is not None and found.value is not None
    }
    notes = []
    for words, together in bits.items():
        if "joint" not in words:
            continue
        at = words.index("joint")
        alone = {
            other[at]: value
            for other, value in bits.items()
            if other != words and (*other[:at], "joint", *other[at + 1 :]) == words
        }
        if told := weaker_together(together, alone, " ".join(words)):
            notes.append(f"{told}.")
    return notes


def _set_apart(first: Report, other: Report, paired: bool) -> list[str]:
    """How the speakers and trials of a system differ from those of the first."""
    here, there = set(first.tested), set(other.tested)
    if not paired:
        same = here & there
        whom = (
            "the same speakers, but with other resamples"
            if here == there
            else f"{len(same)} of the {plural(len(here), 'speaker')} of {first.name} and on "
            f"{plural(len(there - here), 'other')}"
        )
        return [
            f"{other.name}: tested on {whom}; the difference is of independent resamples. With the "
            "same speakers it would be of pairs."
        ]
    if first.heard and other.heard and first.heard != other.heard:
        both = len(first.heard & other.heard)
        return [
            f"{other.name}: {both} of its {plural(len(other.heard), 'trial')} are among the "
            f"{len(first.heard)} of {first.name}: speakers are compared in pairs, trials are not "
            "all the same."
        ]
    return []


def _numbered(report: Report) -> bool:
    """Whether speakers are no more than numbers of columns."""
    columns = set(map(str, range(report.speakers)))
    return set(report.tested) <= columns
