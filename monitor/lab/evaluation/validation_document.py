"""The document of a forensic validation: printable HTML, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.counts import cost_bits
from monitor.lab.evaluation.curves import Line
from monitor.lab.evaluation.validation import (
    MEASURES,
    Criterion,
    Validation,
    ValidationPart,
    ValidationStatement,
)
from monitor.lab.evaluation.verbal import (
    SOURCE,
    VerbalRow,
    degrees_of_support,
    describe_degree,
    ratio_range,
    verbal_rows,
)
from monitor.lab.evaluation.verification import det_curve, paint_det
from monitor.lab.evaluation.zebra import ece_profile
from monitor.lab.report.model import (
    Block,
    Bullets,
    Cell,
    Columns,
    Definitions,
    Document,
    Figure,
    Heading,
    Paragraphs,
    Picture,
    Section,
    Table,
    format_limits,
    format_value,
)
from monitor.lab.report.renderers import (
    curve_json,
    figure_json,
    render_csv,
    render_html,
    save_with_figures,
)
from monitor.maths.ratio_checks import calibrated_by_pav
from monitor.phrases import plural
from monitor.plots.canvas import COLOURS, MUTED, inline_svg, legend_above, percents
from monitor.types import FloatArray, Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA = 1
NOT_STATED = "not stated"
_NATS = float(np.log(10.0))
_TENS = float(np.log10(2.0))
_POINTS = 300
_FARTHEST = 15.0  # maximum decades that are drawn on either side
_SAME, _DIFFERENT = COLOURS[0], COLOURS[1]
_HEAD = (
    "system", "by", "part", "measure", "label", "characteristic", "value", "low", "high", "unit",
    "criterion", "met", "speakers", "same", "different", "pairs", "note",
)  # fmt: skip
_SHOWN = ("cllr", "min_cllr", "cllr_cal", "eer", "devpav")
"""Measures in the tables of parts, besides the bounds."""
_SOURCES = (
    "Cllr, and its parts min Cllr and Cllr cal: N. Brümmer and J. du Preez, Computer Speech and "
    "Language 20 (2006).",
    "ECE plot: D. Ramos and J. Gonzalez-Rodriguez, Forensic Science International 230 (2013).",
    "devPAV: P. Vergeer, Y. van Schaik and M. Sjerps, Forensic Science International 321 (2021).",
    "ELUB: P. Vergeer et al., Science & Justice 56 (2016).",
    "Invariance bounds: I. Alberink, J. Leegwater, J. Malmborg, A. Nordgaard, M. Sjerps and L. van "
    "der Ham (2025).",
    "Characteristics and criteria: D. Meuwly, D. Ramos and R. Haraksim, A guideline for the "
    "validation of likelihood ratio methods used for forensic evidence evaluation, Forensic "
    "Science International 276 (2017).",
    "Consensus 2021: G. S. Morrison et al., Consensus on validation of forensic voice comparison, "
    "Science & Justice 61 (2021).",
    "ENFSI 2015: Methodological guidelines for best practice in forensic semiautomatic and "
    "automatic speaker recognition; Guideline for evaluative reporting in forensic science.",
    "ISO 21043-4:2025, Forensic sciences, Part 4: Interpretation.",
    SOURCE,
)


def save_validation(
    validations: Sequence[Validation],
    path: Path,
    statement: ValidationStatement | None = None,
    sources: Mapping[str, str] | None = None,
) -> tuple[Path, Path]:
    """Write the document, and a CSV and a JSON file with the same name, mode 0600.

    Args:
        validations: one per system.
        path: the document, ``.html``.
        statement: the examiner's statements. Empty ones appear as "not stated".
        sources: SHA-256 of each input file, by its name.

    Returns:
        paths of the CSV and the JSON file.

    Raises:
        StoreError: a file cannot be written.
    """
    stated = statement or ValidationStatement()
    page = render_html(validation_page(validations, stated, sources))
    csv, plain = validation_csv(validations, stated), validation_json(validations, stated, sources)
    return save_with_figures(page, csv, plain, path)


def validation_csv(validations: Iterable[Validation], statement: ValidationStatement) -> str:
    """Format one line per measure, with empty cells for missing values."""
    rows: list[list[Cell]] = []
    for validation in validations:
        parts = [("", validation.total)]
        parts += [(by, subset) for by, members in validation.parts.items() for subset in members]
        for (by, subset), key in product(parts, MEASURES):
            label, unit, characteristic, _ = MEASURES[key]
            figure = subset.figures[key]
            required = () if by else _criteria_of(key, statement.criteria)
            rows.append([
                validation.name, by, subset.name, key, label, characteristic,
                figure.value, figure.low, figure.high, unit,
                "; ".join(map(str, required)), _verdict(figure, required), subset.speakers,
                subset.same, subset.different, subset.pairs,
                "; ".join(filter(None, (figure.note, *reservations(figure, required)))),
            ])  # fmt: skip
    return render_csv(Table.from_numbers(_HEAD, rows))


def _criteria_of(key: str, criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    return tuple(criterion for criterion in criteria if criterion.name == key)


def _verdict(figure: Figure, criteria: Sequence[Criterion]) -> str:
    met = [criterion.met(figure.value) for criterion in criteria]
    if not met:
        return ""
    return "not decided" if None in met else "yes" if all(met) else "no"


def reservations(figure: Figure, criteria: Sequence[Criterion]) -> list[str]:
    """Describe criteria that the value meets but its interval does not."""
    return [
        f"{criterion} is met, but the interval reaches {format_value(end, figure.unit)}"
        for criterion in criteria
        if (end := criterion.worst_end(figure)) is not None
    ]


def validation_json(
    validations: Sequence[Validation],
    statement: ValidationStatement,
    sources: Mapping[str, str] | None = None,
) -> Record:
    """Return the content of the document, for ``json.dumps(..., allow_nan=False)``."""
    return {
        "schema": SCHEMA,
        "kind": "validation",
        "statement": {
            **{field: getattr(statement, field) or None
               for field in ("h1", "h2", "population", "case")},
            "criteria": list(map(str, statement.criteria)),
        },
        "sources": dict(sources or {}),
        "systems": [
            {
                "name": validation.name,
                "facts": dict(validation.facts or {}),
                "trials": validation.trials,
                "calibration": validation.calibration,
                "notes": list(validation.notes),
                "draws": validation.replicates,
                "seed": validation.seed,
                **_part_json(validation.total, statement.criteria),
                "verbal_scale": [
                    {"support": describe_degree(row.degree), "ratios": ratio_range(row.degree),
                     "same": row.same, "different": row.different, "within_bounds": row.within}
                    for row in rows_in_words(validation)
                ],
                "parts": {
                    by: {subset.name: _part_json(subset) for subset in parts}
                    for by, parts in validation.parts.items()
                },
                "curves": {
                    name: {"x": curve_json(line.x), "y": curve_json(line.y)}
                    for name, line in curves(validation).items()
                },
            }
            for validation in validations
        ],
    }  # fmt: skip


def _part_json(subset: ValidationPart, criteria: Sequence[Criterion] = ()) -> dict[str, object]:
    return {
        **{count: getattr(subset, count) for count in ("speakers", "same", "different", "pairs")},
        "figures": {
            key: figure_json(figure) | {
                "criteria": {str(rule): rule.met(figure.value) for rule in required},
                "reservations": reservations(figure, required),
            }
            for key, figure in subset.figures.items()
            for required in (_criteria_of(key, criteria),)
        },
    }  # fmt: skip


def rows_in_words(validation: Validation) -> Sequence[VerbalRow]:
    """Count comparisons by degree of support, within the bounds of the data."""
    mated, others = validation.mated / _TENS, validation.others / _TENS
    return verbal_rows(mated, others, validation.total.supported_bits)


def bounds_in_words(validation: Validation) -> str:
    """Format the strongest words that the data support, in both directions."""
    bounds = validation.total.supported_bits
    weakest, strongest = (describe_degree(degree) for degree in degrees_of_support(bounds).tolist())
    low, high = (f"{2.0 ** abs(bits):,.3g}" for bits in bounds)
    return (
        f"In words (ENFSI 2015): at most {strongest} (LR {high}), at most {weakest} (LR "
        f"1/{low}). The data support no larger ratios. A ratio beyond a bound gets the bound's "
        "term."
    )


def _verbal_scale(validation: Validation) -> Section:
    rows: list[list[Cell]] = [
        [
            describe_degree(row.degree),
            ratio_range(row.degree),
            *(
                (format_value(row.same, "share"), format_value(row.different, "share"))
                if row.within
                else ("beyond the bound", "beyond the bound")
            ),
        ]
        for row in rows_in_words(validation)
    ]
    heads = ["Support", "LR", "same-speaker comparisons", "different-speaker comparisons"]
    note = (
        "The words grade the evidence, not the hypotheses: what a court should believe also "
        "depends on everything else that it knows."
    )
    return Section(
        f"{validation.name}, in words",
        [Paragraphs([bounds_in_words(validation)]), Table.from_numbers(heads, rows, notes=[note])],
    )


def curves(validation: Validation) -> dict[str, Line]:
    """Compute the curves to draw, with some hundred points each; x is log10 LR unless noted.

    ``tippett_same`` is the share of same-speaker ratios up to x, ``tippett_different`` that of
    different-speaker ratios from x on. ``pav`` has finite calibrated ratios. ``ece``,
    ``ece_calibrated`` and ``ece_nothing`` are by log10 prior odds, and ``det`` by false alarms.
    """
    mated, others = validation.mated, validation.others
    low = max(min(mated[0], others[0]), -_FARTHEST)
    high = min(max(mated[-1], others[-1]), _FARTHEST)
    x = np.linspace(min(low, -0.5), max(high, 0.5), _POINTS)
    upto = np.searchsorted(mated, x, side="right") / mated.size
    beyond = 1 - np.searchsorted(others, x, side="left") / others.size
    levels, calibrated = calibrated_by_pav(mated / np.log10(2.0), others / np.log10(2.0))
    levels, calibrated = levels * np.log10(2.0), calibrated * np.log10(2.0)
    if levels.size > _POINTS:
        spaced = np.unique(np.searchsorted(levels, np.linspace(levels[0], levels[-1], _POINTS)))
        steps = np.flatnonzero(calibrated[1:] != calibrated[:-1])
        steps = np.concatenate([[0], np.repeat(steps, 2) + np.tile([0, 1], steps.size)])
        keep = np.unique(np.concatenate([spaced, steps[:: max(1, steps.size // _POINTS)]]))
        levels, calibrated = levels[keep], calibrated[keep]
    odds = np.linspace(-3.0, 3.0, 61)
    profile = ece_profile(mated, others, odds * _NATS)
    accepts, rejects = det_curve(mated, others)
    thin = slice(None, None, max(1, accepts.size // _POINTS))
    return {
        "tippett_same": Line(x, upto),
        "tippett_different": Line(x, beyond),
        "pav": Line(levels, calibrated),
        "ece": Line(odds, _cross_entropy(mated * _NATS, others * _NATS, odds * _NATS)),
        "ece_calibrated": Line(odds, profile.calibrated),
        "ece_nothing": Line(odds, profile.default),
        "det": Line(np.append(accepts[thin], 0.0), np.append(rejects[thin], 1.0)),
    }


def _cross_entropy(mated: FloatArray, others: FloatArray, odds: FloatArray) -> FloatArray:
    """Compute the empirical cross-entropy of unchanged ratios, bits; at even odds it is Cllr."""
    costs = []
    for log_odds in odds.tolist():
        prior = 1 / (1 + np.exp(-log_odds))
        mated_cost = float(cost_bits(-(mated + log_odds)) / mated.size)
        other_cost = float(cost_bits(others + log_odds) / others.size)
        costs.append(prior * mated_cost + (1 - prior) * other_cost)
    return np.array(costs)


def _pictures(validation: Validation, number: int) -> Columns:
    lines = curves(validation)

    def plot(axes: Axes, *named: tuple[str, str, str, str]) -> None:
        for name, colour, style, label in named:
            axes.plot(lines[name].x, lines[name].y, color=colour, linestyle=style, label=label)
        axes.axvline(0, color=MUTED, linewidth=0.9)

    def tippett(axes: Axes) -> None:
        plot(
            axes,
            ("tippett_same", _SAME, "-", "same speaker, up to this LR"),
            ("tippett_different", _DIFFERENT, "--", "different speakers, from this LR on"),
        )
        axes.set_ylim(0, 1.02)
        percents(axes.yaxis)
        axes.set(xlabel="log10 LR", ylabel="share of comparisons")
        legend_above(axes, columns=1)

    def ece(axes: Axes) -> None:
        plot(
            axes,
            ("ece_nothing", MUTED, ":", "no evidence"),
            ("ece", _DIFFERENT, "-", "these LRs"),
            ("ece_calibrated", _SAME, "--", "after PAV"),
        )
        axes.set(xlim=(-3, 3), ylim=(0, float(np.clip(1.1 * lines["ece"].y.max(), 1.1, 2.5))))
        axes.set(xlabel="log10 of the prior odds", ylabel="empirical cross-entropy, bits")
        legend_above(axes, columns=3)

    drawings = (
        ("tippett", "Tippett plot", tippett, "Rising: same-speaker LRs up to x. Falling: "
         "different-speaker LRs from x on. LRs on the wrong side of 0 mislead."),
        ("lrs", "Histograms of LRs",
         partial(_paint_histogram, validation=validation, ends=lines["tippett_same"].x),
         "Each kind is scaled separately."),
        ("pav", "PAV plot", partial(_paint_pav, line=lines["pav"], ends=lines["tippett_same"].x),
         "Each LR after the best monotone calibration; LRs on the line are calibrated. "
         "Triangles: LRs of only one kind of comparison."),
        ("ece", "ECE plot", ece, "LRs help at prior odds where the solid line is below the "
                                 "dotted one. At 0, the solid line is Cllr, and the dashed one "
                                 "min Cllr."),
        ("det", "DET curve", partial(paint_det, lines=[(_SAME, lines["det"])]),
         "Misses against false alarms at every threshold."),
    )  # fmt: skip
    return Columns([
        Picture(title, inline_svg(paint, f"v{number}-{name}", title), caption)
        for name, title, paint, caption in drawings
    ])  # fmt: skip


def _paint_pav(axes: Axes, line: Line, ends: FloatArray) -> None:
    finite = np.isfinite(line.y)
    left, right = ends[[0, -1]]
    values = [-1.0, 1.0, *line.y[finite].tolist()]
    low, high = 1.15 * min(values), 1.15 * max(values)
    axes.plot([left, right], [left, right], color=MUTED, linestyle=":", label="calibrated")
    axes.plot(line.x[finite], line.y[finite], ".", markersize=3.5, color=_SAME, label="PAV")
    near = (line.x >= left) & (line.x <= right)
    for edge, mark, end in ((high, "^", np.inf), (low, "v", -np.inf)):
        x = line.x[near & (line.y == end)]
        axes.plot(
            x, np.full(x.size, edge), mark, color=_DIFFERENT, markersize=2.5, clip_on=False,
            label="one kind alone" if mark == "^" else None,
        )  # fmt: skip
    axes.set(xlim=(left, right), ylim=(low, high))
    axes.set(xlabel="log10 LR of the system", ylabel="log10 LR after PAV")
    legend_above(axes, columns=3)


def _paint_histogram(axes: Axes, validation: Validation, ends: FloatArray) -> None:
    edges = np.linspace(ends[0], ends[-1], 49)
    for values, colour, label in (
        (validation.mated, _SAME, f"{validation.total.same:,} of one speaker"),
        (validation.others, _DIFFERENT, f"{validation.total.different:,} of two"),
    ):
        shares = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / values.size
        axes.stairs(shares, edges, color=colour, fill=True, alpha=0.3)
        axes.stairs(shares, edges, color=colour, linewidth=1.1, label=label)
    axes.axvline(0, color=MUTED, linewidth=0.9)
    percents(axes.yaxis)
    axes.set(xlabel="log10 LR", ylabel="share of its kind")
    legend_above(axes, columns=2)


def validation_page(
    validations: Sequence[Validation],
    statement: ValidationStatement,
    sources: Mapping[str, str] | None = None,
) -> Document:
    """Make the document."""
    if not validations:
        raise UsageError("a validation needs a system")
    names = [validation.name for validation in validations]
    title = f"Validation of {names[0]}" if len(names) == 1 else "Validation of likelihood ratios"
    first = validations[0]
    resampled = "No intervals: nothing was resampled."
    if first.replicates:
        resampled = (
            f"Intervals: 95 %, {first.replicates} resamples of speakers (seed {first.seed})."
        )
    stated = [(name, text or NOT_STATED) for name, _, text in _list_statements(statement)]
    sections: list[Section | Columns] = [Section("What is validated", [Definitions(stated)])]
    if len(validations) > 1:
        rows = [(system.name, system.total) for system in sorted(validations, key=_by_length)]
        sections.append(Section("Systems side by side", [_part_table("system", rows)]))
        sections += _draw_lengths(validations)
    for number, validation in enumerate(validations):
        blocks = _describe_system(validation)
        table = matrix(validation, statement.criteria)
        undecided = [] if statement.criteria else [
            Paragraphs([f"Criteria: {NOT_STATED}. Nothing is decided."])
        ]  # fmt: skip
        sections.append(Section(validation.name, [*blocks, table, *undecided]))
        sections += [_verbal_scale(validation), _pictures(validation, number)]
        for by, parts in validation.parts.items():
            part_table = _part_table(by, [(subset.name, subset) for subset in parts])
            sections.append(Section(f"{validation.name}, by {by}", [part_table]))
    sections.append(Section("Requirements of guidelines", [_guidelines(validations, statement)]))
    sections.append(_methods(sources or {}))
    facts = [
        "Forensic validation of likelihood ratios of voices. It holds only for the speakers "
        "and conditions below.",
        " · ".join([", ".join(names), resampled]) if len(names) > 1 else resampled,
    ]
    return Document(title, facts, sections)


def validation_summary(
    validations: Sequence[Validation], statement: ValidationStatement
) -> Document:
    """Make the document for a terminal: measures of each system, and whether criteria are met."""
    sections = [
        Section(
            f"{validation.name}: {validation.calibration}",
            [
                Bullets([*validation.notes, bounds_in_words(validation)]),
                matrix(validation, statement.criteria, brief=True),
            ],
        )
        for validation in validations
    ]
    missing = [option for _, option, text in _list_statements(statement) if not text]
    if missing:
        text = f"Marked as not stated in the document: {', '.join(missing)}."
        sections.append(Section("", [Paragraphs([text])]))
    return Document("", [], sections)


def _list_statements(statement: ValidationStatement) -> list[tuple[str, str, str]]:
    return [
        ("Proposition H1", "h1", statement.h1),
        ("Proposition H2", "h2", statement.h2),
        ("Relevant population", "relevant-population", statement.population),
        ("Conditions of the case", "case", statement.case),
        ("Criteria, decided before", "--criteria", "; ".join(map(str, statement.criteria))),
    ]


def _by_length(validation: Validation) -> tuple[tuple[str, ...], float]:
    """Split a system's facts into the length of its trials (NaN if unknown) and all others."""
    facts = dict(validation.facts or {})
    seconds = facts.pop("T", "").removesuffix(" s")
    other = (f"D {value}" if key == "D" else value for key, value in facts.items())
    return tuple(other), float(seconds) if seconds else float("nan")


def _draw_lengths(validations: Sequence[Validation]) -> list[Columns]:
    """Draw Cllr by the length of trials, if systems differ in it."""
    lines: dict[tuple[str, ...], list[tuple[float, ValidationPart]]] = {}
    for validation in sorted(validations, key=_by_length):
        sort, seconds = _by_length(validation)
        lines.setdefault(sort, []).append((seconds, validation.total))
    lines = {sort: points for sort, points in lines.items() if len(points) > 1 and points[0][0] > 0}
    if not lines:
        return []

    def paint(axes: Axes) -> None:
        axes.set_xscale("log")
        for colour, (sort, measured) in zip(COLOURS * len(lines), lines.items(), strict=False):
            x = [seconds for seconds, _ in measured]
            for key, style, name in (("cllr", "o-", ", ".join(sort)), ("min_cllr", "o:", None)):
                y = [subset[key] or 0.0 for _, subset in measured]
                axes.plot(x, y, style, color=colour, markersize=3.5, label=name)
        ticks = sorted({seconds for measured in lines.values() for seconds, _ in measured})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="T: seconds of speech in a trial", ylabel="Cllr, and dotted min Cllr, bits")
        legend_above(axes, columns=2)

    svg = inline_svg(paint, "lengths", "Cllr by length")
    return [Columns([Picture("By length", svg, "Each length by itself.")])]


def _part_table(name: str, parts: Iterable[tuple[str, ValidationPart]]) -> Table:
    """Tabulate the main measures of groups, conditions or systems."""
    rows: list[list[Cell]] = [
        [
            part_name,
            f"{subset.same:,}\n/ {subset.different:,}",
            *(subset.figures[key] for key in _SHOWN),
            _between(subset, "elub"),
            _between(subset, "invariance"),
        ]
        for part_name, subset in parts
    ]
    heads = [*(MEASURES[key][0] for key in _SHOWN), "ELUB", "invariance bounds"]
    note = (
        "Same-speaker and different-speaker comparisons; Cllr in bits, devPAV and bounds in "
        "log10 LR."
    )
    return Table.from_numbers([name, "same / different", *heads], rows, notes=[note])


def _between(subset: ValidationPart, bounds: str) -> str:
    return f"{subset[f'{bounds}_low']:.2f} to {subset[f'{bounds}_high']:.2f}"


def _describe_system(validation: Validation) -> list[Block]:
    total = validation.total
    facts = ", ".join(f"{key} {value}" for key, value in (validation.facts or {}).items())
    trials = (
        f"{plural(validation.trials, 'trial')} of {plural(total.speakers, 'speaker')}: "
        f"{total.same:,} same-speaker and {total.different:,} different-speaker comparisons, the "
        f"latter of {plural(total.pairs, 'pair')} of people." + (f" {facts}." if facts else "")
    )
    notes = [f"{figure.label}: {figure.note}" for figure in total.figures.values() if figure.note]
    bullets = Bullets([*validation.notes, *notes], "notes")
    return [Paragraphs([trials, validation.calibration]), bullets]


def matrix(validation: Validation, criteria: Sequence[Criterion], brief: bool = False) -> Table:
    """Tabulate measures with limits, criteria and whether they are met; `brief` for terminals."""
    rows, doubts = [], []
    for key, (label, unit, characteristic, _) in MEASURES.items():
        figure = validation.total.figures[key]
        required = _criteria_of(key, criteria)
        doubts += reservations(figure, required)
        met = [
            f"{criterion.sign}{criterion.bound:g} {_MET[criterion.met(figure.value)]}"
            + "*" * (criterion.worst_end(figure) is not None)
            for criterion in required
        ]
        of = [] if brief else [characteristic]
        value = format_value(figure.value, unit)
        rows.append([label, *of, value, format_limits(figure), "\n".join(met), figure.shown_unit])
    columns = [Heading("Measure"), *[Heading("of")] * (not brief), Heading("value", "number")]
    columns += [Heading("95 % interval", "number"), Heading("criterion"), Heading("unit")]
    notes = [f"* {doubt}: more speakers would decide." for doubt in doubts]
    return Table(columns, rows, notes=notes)


_MET = {True: "met", False: "not met", None: "not decided"}


def _guidelines(validations: Sequence[Validation], statement: ValidationStatement) -> Table:
    """Tabulate requirements of guidelines, their source, and how they are met."""

    def of_each(describe: Callable[[Validation], str]) -> str:
        if len(validations) == 1:
            return describe(validations[0])
        texts = (f"{system.name}: {describe(system).rstrip('.')}" for system in validations)
        return "; ".join(dict.fromkeys(texts))

    def stated(*texts: object) -> str:
        return "stated above" if all(texts) else NOT_STATED

    def bits(key: str) -> str:
        label = MEASURES[key][0]
        return of_each(lambda system: f"{label} {format_value(system.total[key], 'bits')} bits")

    whom = (statement.population, statement.case)
    rows = [
        ("Data of the relevant population, under the conditions of the case",
         "Consensus 2021; ENFSI 2015", " ".join(whom) if all(whom) else NOT_STATED),
        ("Two propositions, stated before", "ISO 21043-4; ENFSI 2015",
         stated(statement.h1, statement.h2)),
        ("Criteria, decided before the results are seen", "Meuwly et al. 2017",
         stated(statement.criteria)),
        ("No speaker tested who was trained or calibrated on", "Consensus 2021",
         of_each(attrgetter("calibration"))),
        ("Likelihood ratios as the output, well calibrated", "Consensus 2021; ISO 21043-4",
         bits("cllr_cal")),
        ("Accuracy as Cllr, and a Tippett plot", "Consensus 2021; ENFSI 2015", bits("cllr")),
        ("No ratio beyond what the data support", "Vergeer et al. 2016",
         of_each(lambda validation: f"log10 LR from {_between(validation.total, 'elub')} (ELUB)")),
    ]  # fmt: skip
    return Table([Heading("Asked for"), Heading("By"), Heading("Here")], rows)


def _methods(sources: Mapping[str, str]) -> Section:
    meanings = Definitions([(label, meaning) for label, _, _, meaning in MEASURES.values()])
    files = [(name, f"SHA-256 {digest}") for name, digest in sources.items()]
    return Section(
        "Measures and sources",
        [
            meanings,
            Section("Sources", [Bullets(_SOURCES)]),
            Section("Files", [Definitions(files)] if files else []),
            Section("Examiner", [Definitions([("Name, date, signature", "")])]),
        ],
    )
