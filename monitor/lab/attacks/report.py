"""The report on an attack: tables, plot of the bits with intervals, page and files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from monitor.errors import UsageError
from monitor.files import list_open_files, write_text
from monitor.lab.attacks.attackers import ATTACKERS, BITS
from monitor.lab.attacks.attributes import AttributeRow
from monitor.lab.attacks.results import (
    FIGURES,
    AttackResults,
    AttackRow,
    format_headline,
    list_caveats,
    method_name,
    results_csv,
    results_json,
)
from monitor.lab.attacks.speech import CLEAR
from monitor.lab.evaluation.verification import NEAREST
from monitor.lab.report.model import (
    Block,
    Bullets,
    Cell,
    Columns,
    Document,
    Figure,
    Paragraphs,
    Picture,
    Section,
    Table,
    format_cell,
    format_value,
)
from monitor.lab.report.renderers import render_html
from monitor.phrases import plural
from monitor.plots.canvas import BLACK, PAGE, PRINT, Palette, draw, inline_svg, legend_above
from monitor.safe_text import file_name, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


_COLUMNS = (
    BITS,
    "srd.idr",
    "lid.alid_bits",
    NEAREST,
    "anonymity.mean_rank_p50",
    "anonymity.mean_rank_p1",
    "membership.tpr_at_1e-2",
)
_OPERATING_POINTS = (
    NEAREST,
    "membership.epsilon_nats_at_1e-2",
    "membership.tpr_at_1e-2",
    "membership.tpr_at_1e-3",
)
_NAMES = ("method", "attacker", "feature")
_LONGEST_NAME = 20
_FOOT = (
    "Intervals are 95 %, over resampled readers. This page contains no voice, score or template."
)
_TABLE_1 = (
    "As in VoxGuard's Table 1. Each cell: EER (%) | epsilon (nats) | TPR (%) at FPR 1e-2 | TPR (%) "
    "at FPR 1e-3. A segment is 6 s of speech. Average scoring compares with the mean of all "
    "segments, max scoring with the nearest one."
)
_ATTRIBUTES = (
    "As in VoxGuard's section 3.2, this is a logistic regression on embeddings. It is trained on "
    "background speakers, or cross-validated on the judged ones. In the strict version readers "
    "are matched in the other attributes, but their words differ. Epsilon is in nats, with a lower "
    "limit from Clopper and Pearson's intervals over readers."
)


def _format_value(figure: Figure | None) -> str:
    return format_cell(figure).partition("\n")[0]


def tabulate_main(results: AttackResults) -> Table:
    """Tabulate methods, attackers and features, for the template that all readers have."""
    head = [*_NAMES, *(FIGURES[key] for key in _COLUMNS), "epsilon, at least", "FPR reached"]
    rows: list[list[Cell]] = []
    for row in (row for method in results.settings.methods for row in results.main(method)):
        epsilon, lower_limit, reached = (
            row.figures.get(f"membership.{name}_at_1e-2")
            for name in ("epsilon_nats", "epsilon_lower_nats", "realised_fpr")
        )
        bound = f"{_format_value(epsilon)}\n\N{GREATER-THAN OR EQUAL TO} {format_cell(lower_limit)}"
        cells = [*map(row.figures.get, _COLUMNS), bound, reached, row.speakers, row.trials]
        rows.append([method_name(row.method), row.attacker, row.feature, *cells])
    return Table.from_numbers([*head, "N", "trials"], rows, names=3, wide=True)


def tabulate_enrolment(results: AttackResults) -> Table:
    """Tabulate VoxGuard's Table 1 for each feature scored in more than one way.

    It has EER, epsilon and TPR at two FPRs, by number of enrolled segments.
    """
    available = {row.segments for row in results.rows}
    counts = [count for count in results.settings.segments if count in available]
    scorings: dict[str, set[tuple[int, str]]] = {}
    for row in results.rows:
        scorings.setdefault(row.feature, set()).add((row.segments, row.scoring))
    rows: dict[tuple[str, str, str, str], dict[int, AttackRow]] = {}
    for row in results.rows:
        if len(scorings[row.feature]) > 1 and row.segments in counts:
            for scoring in sorted({scoring for _, scoring in scorings[row.feature]}):
                way = row.method, row.attacker, row.feature, scoring
                by_segments = rows.setdefault(way, {})
                if scoring == row.scoring or row.segments == 1:  # one segment: both are the same
                    by_segments[row.segments] = row

    def format_point(row: AttackRow | None) -> str:
        figures = [None if row is None else row.figures.get(key) for key in _OPERATING_POINTS]
        values = [_format_value(figure).removesuffix(" %") for figure in figures]
        values = ["inf" if value == "infinite" else value for value in values]
        return "-" if row is None else " | ".join(values)

    return Table.from_numbers(
        [*_NAMES, "scoring", *(f"L = {count}" for count in counts)],
        [
            [method_name(method), *names, *(format_point(by_segments.get(c)) for c in counts)]
            for (method, *names), by_segments in rows.items()
        ],
        names=4,
        wide=True,
    )


def tabulate_attributes(rows: Sequence[AttributeRow]) -> Table:
    """Tabulate how well attackers infer one attribute."""
    head = [*_NAMES, "value", "version", rows[0].judgement.error.label]
    for rate in rows[0].judgement.at:
        name = np.format_float_scientific(rate.asked, trim="-", exp_digits=1)
        head += [f"TPR at FPR {name}", "epsilon, at least", "FPR reached"]
    lines: list[list[Cell]] = []
    marks = {}
    for i, row in enumerate(rows):
        judgement = row.judgement
        line: list[Cell] = [method_name(row.method), row.attacker, row.feature, row.value]
        line += [row.version, judgement.error]
        for rate in judgement.at:
            if rate.note:
                marks[i, len(line)] = "*"
            epsilon = math.inf if rate.epsilon_nats is None else rate.epsilon_nats
            line += [
                rate.accepted,
                f"{format_value(epsilon, 'nats')}\n\N{GREATER-THAN OR EQUAL TO} "
                f"{format_value(rate.epsilon_low_nats, 'nats')}",
                f"{format_value(rate.realised, 'share')}\n"
                f"\N{LESS-THAN OR EQUAL TO} {format_value(rate.realised_high, 'share')}",
            ]
        line += [
            f"{judgement.readers_with} / {judgement.readers_without}",
            f"{judgement.excerpts_with} / {judgement.excerpts_without}",
            f"{row.learnt_with} / {row.learnt_without}",
        ]
        lines.append(line)
    head += ["readers with / without", "excerpts", "training readers"]
    notes = ["*: too few excerpts or readers for this rate."]
    return Table.from_numbers(head, lines, names=5, notes=notes, marks=marks, wide=True)


def tabulate_measures(results: AttackResults) -> Table:
    """Tabulate utility, one row per method; no rows if it was not measured."""
    labels = dict.fromkeys(f.label for figures in results.measured.values() for f in figures)
    rows: list[list[Cell]] = []
    for method in results.settings.methods if labels else ():
        by_label = {figure.label: figure for figure in results.measured.get(method, ())}
        strongest = results.strongest(method)
        bits = strongest.figures[BITS] if strongest else None
        rows.append([method_name(method), bits, *map(by_label.get, labels)])
    return Table.from_numbers(["method", "bits, strongest attacker", *labels], rows, wide=True)


def build_report(results: AttackResults) -> Document:
    """Return the page of results, headline first."""
    settings = results.settings
    methods = [method for method in settings.methods if method != CLEAR]
    background = plural(settings.background, "reader")
    trained = f" Models: fitted to {background} outside the test." if settings.background else ""
    attackers = [f"{n}: {ATTACKERS[n].knows}." for n in settings.attackers if n in ATTACKERS]
    picture = Picture(
        "Bits by method and attacker",
        attacks_svg(*collect_bits(results)),
        "Bits of each attacker's best feature. 0 is no disclosure, and the dashed line is full "
        "disclosure. Judge a method by its rightmost mark.",
    )
    return Document(
        f"Attacks on {', '.join(map(method_name, methods)) or 'unprotected speech'}",
        [
            f"{settings.corpus}: {plural(settings.readers, 'reader')}, trials of "
            f"{settings.seconds:g} s of speech, templates of {settings.template_seconds:g} s "
            f"({'another session' if settings.session == 'cross' else 'the same session'}).",
            f"Attackers: {', '.join(settings.attackers)}. Features: "
            f"{', '.join(settings.features)}.{trained}",
        ],
        [
            Section("Remaining bits", [Paragraphs(format_headline(results))]),
            Columns([picture, Section("Attackers", [Bullets(attackers)])]),
            *_build_tables(results),
            Section("Limitations", [Bullets([*results.notes, *list_caveats(results)])]),
            Section("Excluded", [Bullets(results.problems)] if results.problems else []),
        ],
        foot=_FOOT,
    )


def _build_tables(results: AttackResults) -> Iterator[Section]:
    settings = results.settings
    use, enrolment = tabulate_measures(results), tabulate_enrolment(results)
    if use.rows:
        yield Section("Remaining utility", [use])
    explained = (
        f"All readers have the template length used here, {settings.template_seconds:g} s. Bits: "
        "mean disclosure of a fitted rank model (MeanD). First: fraction of trials in which the "
        "right reader came first. Mean rank: USC's linkability if enrolled speech is protected, "
        "its singling out if it is clear. It is given for the median reader and the most exposed "
        "1 %. TPR, and epsilon (nats) with its lower limit, are at FPR 1e-2."
    )
    joint = dict.fromkeys(
        f"Rank model of the joint score for {method_name(row.method)}, {row.attacker}: "
        f"{row.rank_model}."
        for row in results.rows
        if row.rank_model
    )
    every: list[Block] = [Paragraphs([explained]), tabulate_main(results), Bullets(list(joint))]
    yield Section("Every attacker and feature", every)
    if enrolment.rows:
        counts = ", ".join(map(str, settings.segments))
        title = f"Enrolment of {counts} segments, average and max scoring"
        yield Section(title, [Paragraphs([_TABLE_1]), enrolment])
    for name, rows in results.attributes.items():
        yield Section(f"Attribute {name}", [Paragraphs([_ATTRIBUTES]), tabulate_attributes(rows)])


def collect_bits(results: AttackResults) -> tuple[list[MethodBits], tuple[str, ...], float]:
    """Return the contents of a picture: methods with bits, names of attackers, log2 N."""
    attackers = results.settings.attackers
    methods = []
    for method in results.settings.methods:
        rows = (results.strongest(method, attacker) for attacker in attackers)
        bits = [None if row is None else (row.bits, *row.figures[BITS].limits) for row in rows]
        methods.append(MethodBits(short_name(method_name(method).strip("`"), _LONGEST_NAME), bits))
    return methods, attackers, math.log2(max(row.speakers for row in results.rows))


def write_results(results: AttackResults, folder: Path) -> None:
    """Write all `FILES`, each private (mode 0600) and whole or not at all."""
    write_text(results_json(results), folder / "results.json")
    write_text(results_csv(results), folder / "results.csv")
    for name in ("bits.svg", "bits.png"):
        plot_attacks(folder / name, *collect_bits(results))
    write_text(render_html(build_report(results)), folder / "index.html")


_MARKS = ("o", "s", "D", "^", "v")
_ROW_INCHES, _FOOT_INCHES = 0.3, 1.5
_MUCH = 0.75  # fraction of all bits that a method should not leave


@dataclass(frozen=True, slots=True)
class MethodBits:
    """Bits that each attacker gets through one method."""

    name: str
    bits: Sequence[tuple[float, float | None, float | None] | None]


def plot_attacks(
    path: Path, methods: Sequence[MethodBits], attackers: Sequence[str], ceiling: float
) -> None:
    """Write the picture as .png, .svg or .pdf, with `format_finding` as its title."""
    inches = (6.2, _FOOT_INCHES + _ROW_INCHES * len(methods))

    def paint(figure: Canvas) -> None:
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        _paint(axes, methods, attackers, ceiling, PRINT)
        title = format_finding(methods, ceiling)
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, weight="bold", color=BLACK)

    draw(path, paint, inches)


def format_finding(methods: Sequence[MethodBits], ceiling: float) -> str:
    """Format how many methods leave most bits to their strongest attacker.

    Example:
        >>> some = [MethodBits("none", [(4, 3, 4), (4, 3, 4)]),
        ...         MethodBits("mcadams", [(1, 0, 2), (3.5, 3, 4)])]
        >>> format_finding(some, 4.0)
        '1 of 1 methods leaves an attacker more than 3 of 4 bits'
    """
    protected = [method for method in methods if method.name != CLEAR] or methods
    reached = [[bits[0] for bits in method.bits if bits is not None] for method in protected]
    tried = max(map(len, reached), default=0)
    # if other methods have several attackers, leave out those with one
    strongest = [max(bits) for bits in reached if len(bits) > 1 or len(bits) == tried > 0]
    many = sum(bits > _MUCH * ceiling for bits in strongest)
    leave = "leaves" if many == 1 else "leave"
    threshold = f"{_MUCH * ceiling:.2g} of {ceiling:.2g} bits"
    return f"{many} of {len(strongest)} methods {leave} an attacker more than {threshold}"


def attacks_svg(methods: Sequence[MethodBits], attackers: Sequence[str], ceiling: float) -> str:
    """Format the picture as an ``<svg>`` element for a page."""

    def paint(axes: Axes) -> None:
        _paint(axes, methods, attackers, ceiling, PAGE)

    return inline_svg(paint, "attacks", "bits by method of protection and attacker")


def _paint(
    axes: Axes,
    methods: Sequence[MethodBits],
    attackers: Sequence[str],
    ceiling: float,
    palette: Palette,
) -> None:
    """Draw one row per method; only the strongest attacker's mark is filled and has an interval."""
    for y, method in enumerate(methods):
        bits = [(point, index) for index, point in enumerate(method.bits) if point is not None]
        strongest = max((value for (value, _, _), _ in bits), default=0.0)
        for (value, low, high), index in bits:
            colour = palette.colours[index % len(palette.colours)]
            is_strongest = value == strongest
            if is_strongest and low is not None and high is not None:
                axes.plot([low, high], [y, y], color=colour, linewidth=1.6)
            axes.plot(value, y, _MARKS[index % len(_MARKS)], color=colour, markersize=6, zorder=3,
                      fillstyle="full" if is_strongest else "none")  # fmt: skip
    for index, attacker in enumerate(attackers):
        colour = palette.colours[index % len(palette.colours)]
        axes.plot([], [], _MARKS[index % len(_MARKS)], color=colour, label=attacker)
    axes.axvline(ceiling, color=palette.muted, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(methods)), [method.name for method in methods])
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(len(methods) - 0.5, -0.5), xlim=(0, ceiling * 1.03))
    axes.grid(axis="y", color=palette.line, linewidth=0.6)
    axes.grid(axis="x", visible=False)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        f"bits disclosed on average (dashed: all, {ceiling:.1f}).\n"
        "Filled: the strongest attacker, with 95 % interval"
    )
    legend_above(axes)


KEPT = "kept"  # private folder inside the results folder, from which an attack resumes
FILES = ("index.html", "results.json", "results.csv", "bits.svg", "bits.png")
TABLES = "voiceprivacy.txt"  # of an attack with --voiceprivacy


def check_folder(folder: Path) -> None:
    """Raise UsageError if the folder contains other files than results."""
    others = [name for name in list_open_files(folder) if name not in (*FILES, TABLES, KEPT)]
    if others:
        raise UsageError(
            f"invalid -o {file_name(folder)}, which contains {others[0]}: use an empty folder, or "
            "one of monitor attack"
        )
