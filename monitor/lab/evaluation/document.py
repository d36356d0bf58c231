"""Reports of one system or several as tables: a page, a terminal, CSV, JSON and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from monitor.files import write_text
from monitor.lab.evaluation.curves import pictures
from monitor.lab.evaluation.family import families, family_of
from monitor.lab.evaluation.report import (
    Report,
    by_family,
    fact_list,
    main_figures,
    main_keys,
    meaning,
    short_name,
    tie_rules,
    title_of,
)
from monitor.lab.evaluation.systems import Comparison, Grouped, Pair, compare, explain_pairs, p_text
from monitor.lab.report.model import (
    Block,
    Bullets,
    Cell,
    Columns,
    Definitions,
    Document,
    Heading,
    Paragraphs,
    Section,
    Table,
    format_limits,
    format_value,
)
from monitor.lab.report.renderers import render_csv, render_html, render_latex

_MAIN = "Main figures"
_PICTURES = 4  # pictures shown at first; the others are folded
_FOOT = (
    "Intervals are 95 %, over resampled speakers. This page contains no voice and no score. "
    "Notes may name a trial or a speaker."
)
_HEAD = (
    "system", "group", "figure", "key", "label", "value", "text", "low", "high", "unit", "ceiling",
    "floor", "speakers", "trials", "ties", "note",
)  # fmt: skip
_PAIRS_HEAD = ("system", "minus", "figure", "difference", "low", "high", "p", "paired")
_LIMITS_FOR = 3  # maximum systems side by side that leave room for limits


def save_page(
    reports: Sequence[Report],
    path: Path,
    groups: Sequence[Grouped] = (),
    pairs: Sequence[Pair] = (),
) -> None:
    """Write the HTML page of several systems to a file, atomically, mode 0600.

    Raises:
        UsageError: there is no report, or two systems have the same name.
        StoreError: the file cannot be written.
    """
    write_text(render_html(Evaluation(reports, groups, pairs).page()), path)


@dataclass(frozen=True)
class Evaluation:
    """Reports of all systems, their groups, and differences of pairs of systems."""

    reports: Sequence[Report]
    groups: Sequence[Grouped] = ()
    pairs: Sequence[Pair] = ()

    @cached_property
    def comparison(self) -> Comparison:
        """All systems compared with the first."""
        return compare(self.reports)

    def json(self, shown: Sequence[str] | None = None) -> str:
        """Format everything except replicates as JSON, with the figures `shown`, or all."""
        several = len(self.reports) > 1
        document = {
            "schema": 1,
            "systems": [report.to_json(shown) for report in self.reports],
            "groups": {grouped.name: grouped.to_json(shown) for grouped in self.groups},
            "comparison": self.comparison.to_json(shown) if several else None,
            "pairs": [pair.to_json() for pair in self.pairs],
        }
        return json.dumps(document, allow_nan=False, indent=1)

    def csv(self, shown: Sequence[str] | None = None) -> str:
        """Format one line per figure, for each system and its groups.

        Shares are 0 to 1. Numbers have all digits. Missing values are empty, infinite ones ``inf``.
        """
        rows: list[Sequence[Cell]] = []
        for report in self.reports:
            rows += _csv_rows(report, report.name, "", shown)
            for grouped in self.groups:
                if grouped.name == report.name:
                    for group in grouped.comparison.reports:
                        rows += _csv_rows(group, grouped.name, group.name, shown)
        return render_csv(Table.from_numbers(_HEAD, rows))

    def latex(self, shown: Sequence[str] | None = None) -> str:
        r"""Format a table for a paper, and one for the groups of each system (``booktabs``).

        The figures are those `shown`, or the main ones.
        """
        keys = main_keys(self.reports[0].figures) if shown is None else shown
        captions = "; ".join(
            ", ".join(fact_list(report)) if len(self.reports) == 1 else _name_facts(report, ", ")
            for report in self.reports
        )
        tables = [_latex_table(self.comparison, keys, captions)]
        for grouped in self.groups:
            caption = f"{grouped.name}, group by group. {grouped.notes[0]}"
            tables.append(_latex_table(grouped.comparison, keys, caption))
        return "% needs \\usepackage{booktabs}\n" + "\n".join(tables)

    def summary(self, shown: Sequence[str] | None = None, every: bool = False) -> Document:
        """Make the document for a terminal.

        It has the figures `shown`, by key, or the main ones. `every` adds all others.
        """
        have = [row.key for row in self.comparison.rows]
        tables = list(_choose_tables(have, shown, every))
        blocks = [figure_table(self.comparison, keys, title) for title, keys in tables]
        sections = [
            Section("", blocks[:1]),
            Section("", [Paragraphs(list(self._explain(shown)))]),
            *(Section("", [table]) for table in blocks[1:]),
        ]
        if shown is None and not every:
            more = f"All {len(have)} figures: --figures all. Descriptions: --figures help."
            sections.append(Section("", [Paragraphs([more])]))
        if self.pairs:
            keys = list(self.pairs[0].differences)
            sections.append(Section("", list(self._pair_tables(keys))))
            sections.append(Section("", [Paragraphs(self._explain_pairs())]))
        for grouped in self.groups:
            rows = [row.key for row in grouped.comparison.rows]
            sections.append(_group_section(grouped, _choose_tables(rows, shown, every)))
        facts = [_name_facts(report, ", ") for report in self.reports]
        return Document("", facts, sections, self._warnings())

    def _explain(self, shown: Sequence[str] | None) -> Iterator[str]:
        """Explain the table of the main figures, or of those shown."""
        several = len(self.reports) > 1
        if several:
            yield "\N{DEGREE SIGN} nearest to no evidence"
            yield from (*self.comparison.notes, "")
        if shown is None:
            for report in self.reports:
                texts = meaning(report)
                yield from ([f"{report.name}: {text}" for text in texts[:1]] if several else texts)
        systems_by_note: dict[str, list[str]] = {}
        for report in self.reports:
            for note in report.notes if shown is None else report.notes_on(shown):
                systems_by_note.setdefault(note, []).append(report.name)
        for note, names in systems_by_note.items():
            yield note if len(names) == len(self.reports) else f"{', '.join(names)}: {note}"

    def page(self) -> Document:
        """Make the page with meaning, pictures, all figures, and caveats.

        It contains figures and names of systems, but no scores. Notes may name a trial or a
        speaker. Raises UsageError if there is no report, or two systems have the same name.
        """
        names = self.comparison.names
        several = len(names) > 1
        have = [row.key for row in self.comparison.rows]
        families_here = by_family(have)
        legend = Paragraphs([_legend("the first system")], muted=True)
        notes: list[Block] = [Bullets(self.comparison.notes, "notes"), legend] if several else []
        keys = main_keys(have)
        curves = [report.curves for report in self.reports]
        drawings = [drawing for family in families() for drawing in family.drawings]
        panels = pictures(curves, drawings)
        sections = [
            self._meaning_section(),
            Section(_MAIN, [*notes, figure_table(self.comparison, keys)] if keys else []),
        ]
        if self.pairs:
            explained = Bullets(self._explain_pairs(), "notes")
            tables = self._pair_tables(main_figures())
            sections.append(Section("Differences of all pairs", [explained, *tables], folded=True))
        for grouped in self.groups:
            keys = main_keys(row.key for row in grouped.comparison.rows)
            sections.append(_group_section(grouped, [("", keys)]))
        every = [
            figure_table(self.comparison, keys, title_of(family))
            for family, keys in families_here.items()
        ]
        listed = filter(None, map(family_of, families_here))
        caveats = Definitions([(family.title, family.caveat) for family in listed])
        facts = [" · ".join(fact_list(report)) for report in self.reports]
        return Document(
            " · ".join(names) if several else f"Disclosure of {names[0]}",
            facts[:1]
            if len(set(facts)) == 1
            else [_name_facts(report, " · ") for report in self.reports],
            [
                *sections,
                Columns(panels[:_PICTURES]),
                Section("More curves", [Columns(panels[_PICTURES:])], folded=True),
                Section("All figures", every, folded=True),
                Section("Where each metric misleads", [caveats], folded=True),
            ],
            self._warnings(),
            _FOOT,
            self._headline(),
        )

    def _headline(self) -> str:
        """Format the finding: what one system discloses, or the most and the least of several."""
        if len(self.reports) == 1:
            return next(iter(meaning(self.reports[0])), "")
        for key in main_keys(row.key for row in self.comparison.rows):
            figures = [(r.figures[key], r.name) for r in self.reports if key in r.figures]
            if all(figure.value is not None for figure, _ in figures) and len(figures) > 1:
                ranked = sorted(figures, key=lambda pair: pair[0].value or 0.0)
                (lowest, private), (highest, exposed) = ranked[0], ranked[-1]
                if lowest.shown == highest.shown:
                    figure = f"{highest.label}: {highest.shown} {highest.shown_unit}"
                    return f"{figure} with every system."
                return (
                    f"{highest.label}: {highest.shown} {highest.shown_unit}".rstrip()
                    + f" with {exposed}, and {lowest.shown} with {private}."
                )
        return ""

    def _meaning_section(self) -> Section:
        several = len(self.reports) > 1
        shared = [note for note in self.reports[0].notes
                  if all(note in report.notes for report in self.reports)]  # fmt: skip
        meanings = []
        for report in self.reports:
            notes = Bullets([note for note in report.notes if note not in shared], "notes")
            name = report.name if several else ""
            meanings.append(Section(name, [Paragraphs(meaning(report)), notes]))
        return Section("What it means", [Columns(meanings), Bullets(shared, "notes")])

    def _warnings(self) -> list[str]:
        return [warning for report in self.reports for warning in report.warnings]

    @property
    def _replicates(self) -> int:
        return min(report.replicates for report in self.reports)

    def _explain_pairs(self) -> list[str]:
        return list(explain_pairs(self.pairs, self._replicates))

    def _pair_tables(self, keys: Iterable[str]) -> Iterator[Table]:
        """Yield a table of differences per figure with limits."""
        smallest = len(self.pairs) / max(self._replicates, 1)
        figures = {key: figure for report in self.reports for key, figure in report.figures.items()}
        for key in keys:
            have = [p for p in self.pairs if (d := p.differences.get(key)) and d.low is not None]
            if not have:
                continue
            rows = []
            for pair in have:
                difference = pair.differences[key]
                rows.append([
                    f"{pair.other} \N{MINUS SIGN} {pair.first}",
                    difference.shown, format_limits(difference),
                    p_text(pair.p[key], smallest), "*" * difference.significant,
                ])  # fmt: skip
            head = ("pair", "difference", "95 % interval", "p", "")
            unit = figures[key].shown_unit
            title = figures[key].label + f" ({unit})" * bool(unit)
            yield Table.from_numbers(head, rows, title=title)


def figure_table(comparison: Comparison, keys: Iterable[str], title: str = "") -> Table:
    """Tabulate value, limits and ceiling of one system, or a column per system.

    Limits are shown for at most three systems.
    """
    names = comparison.names
    by_key = {row.key: row for row in comparison.rows}
    shown = [by_key[key] for key in keys]
    heads = ("value", "95 % interval", "ceiling") if len(names) == 1 else names
    rows: list[list[Cell]] = []
    marks: dict[tuple[int, int], str] = {}
    for i, row in enumerate(shown):
        cells: Sequence[Cell] = row.figures
        if len(names) == 1:
            ceiling = row.first.ceiling
            maximum = "" if ceiling is None else format_value(ceiling, row.first.unit)
            cells = (row.first.shown, format_limits(row.first), maximum)
        elif len(names) > _LIMITS_FOR:
            cells = [figure and figure.shown for figure in row.figures]
        marks |= {(i, j): mark for j, mark in enumerate(row.marks, 1) if mark}
        rows.append([row.first.label, *cells, row.first.shown_unit, row.note(names)])
    columns = [
        Heading("Figure"),
        *(Heading(head, "number", j * (len(names) > 1)) for j, head in enumerate(heads, 1)),
        Heading("unit"),
        Heading("note", "note"),
    ]
    ties = tie_rules([row.first for row in shown])
    return Table(columns, rows, title, [ties] if ties else [], marks=marks, wide=len(names) > 4)


def _group_section(grouped: Grouped, tables: Iterable[tuple[str, Sequence[str]]]) -> Section:
    return Section(
        f"{grouped.name}, group by group",
        [
            Bullets(grouped.notes, "notes"),
            *(figure_table(grouped.comparison, keys, title) for title, keys in tables),
            Paragraphs([_legend(grouped.comparison.names[0])], muted=True),
        ],
        folded=True,
    )


def _choose_tables(
    have: Sequence[str], shown: Sequence[str] | None, every: bool
) -> Iterator[tuple[str, list[str]]]:
    """Yield title and keys of each table."""
    if shown is not None:
        yield "Figure", [key for key in shown if key in have]
        return
    yield _MAIN, main_keys(have)
    for key, members in by_family(have).items():
        family = family_of(key)
        if every or (family is not None and family.option):
            yield title_of(key), members


def _legend(first: str) -> str:
    return f"* differs from {first} · \N{DEGREE SIGN} nearest to no evidence"


def _name_facts(report: Report, between: str) -> str:
    return f"{report.name}: {between.join(fact_list(report))}"


def _csv_rows(
    report: Report, system: str, group: str, shown: Sequence[str] | None
) -> Iterator[list[Cell]]:
    for key in report.figures if shown is None else shown:
        if key in report.figures:
            figure = report.figures[key]
            yield [
                system, group, short_name(key), key, figure.label, figure.value, figure.text,
                figure.low, figure.high, figure.unit, figure.ceiling, figure.floor,
                report.speakers, report.trials_of(key), figure.ties, figure.note,
            ]  # fmt: skip


def pairs_csv(pairs: Sequence[Pair]) -> str:
    """Format one line per pair of systems and figure."""
    rows = [
        (pair.other, pair.first, short_name(key), difference.value, difference.low,
         difference.high, pair.p[key], "yes" if pair.paired else "no")
        for pair in pairs
        for key, difference in pair.differences.items()
    ]  # fmt: skip
    return render_csv(Table.from_numbers(_PAIRS_HEAD, rows))


def _latex_table(comparison: Comparison, keys: Sequence[str], caption: str) -> str:
    by_key = {row.key: row for row in comparison.rows}
    rows = [by_key[key] for key in keys if key in by_key]
    cells = [
        [row.first.label + f" ({row.first.unit})" * (row.first.unit in ("bits", "nats")),
         *row.figures]
        for row in rows
    ]  # fmt: skip
    marks = {(i, j): mark for i, row in enumerate(rows) for j, mark in enumerate(row.marks, 1)}
    table = Table.from_numbers(("Figure", *comparison.names), cells, marks=marks)
    return render_latex(table, caption)
