"""Results of an attack as sentences, tables, a page and files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from monitor.errors import SchemaError, StoreError, UsageError
from monitor.events.declaration import declared, from_json, key, to_json
from monitor.events.keys import NUMBER, SESSION, TEXT, TEXTS, VALUE, list_of, misfit, object_of
from monitor.features.registry import takes
from monitor.files import held_by, write_text
from monitor.lab.attacks.attackers import ATTACKERS, BITS, get_attacker
from monitor.lab.attacks.attributes import AttributeRow
from monitor.lab.attacks.plot import MethodBits, attacks_svg, plot_attacks
from monitor.lab.attacks.speech import CLEAR
from monitor.lab.evaluation.srd import is_undertrained
from monitor.lab.evaluation.verification import EER, NEAREST
from monitor.lab.report.export import figure_json, render_csv
from monitor.lab.report.html import render_html
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
from monitor.maths.ranks import first_rank_bits
from monitor.phrases import IGNORANT, NO_MEASURE, attacker_in_words, format_best_feature, plural
from monitor.safe_text import file_name, printable, short_name
from monitor.types import Record

# ----------------------------------------------------------------------------------------- results

FIGURES = {
    BITS: "bits",
    "srd.null_model_bits": "bits of no evidence",
    "srd.idr": "first",
    "lid.alid_bits": "ALID",
    "lid.max_bits": "LIDmax",
    **EER,
    "linkage.d_sys": "D_sys",
    "anonymity.mean_rank_p50": "mean rank p50",
    "anonymity.mean_rank_p1": "mean rank p1",
    "membership.tpr_at_1e-2": "TPR at FPR 1e-2",
    "membership.realised_fpr_at_1e-2": "FPR reached for 1e-2",
    "membership.epsilon_nats_at_1e-2": "epsilon at 1e-2",
    "membership.epsilon_lower_nats_at_1e-2": "epsilon at least, at 1e-2",
    "membership.tpr_at_1e-3": "TPR at FPR 1e-3",
    "membership.realised_fpr_at_1e-3": "FPR reached for 1e-3",
}
"""Reported figures by key, with a short name for the column."""
_FIGURE = object_of(
    label=TEXT, value=VALUE, text=TEXT, low=VALUE, high=VALUE, unit=TEXT, ceiling=VALUE,
    floor=VALUE, ties=TEXT, note=TEXT,
)  # fmt: skip
_OBJECT = {"type": "object"}
_FIGURES = {
    **_OBJECT,
    "properties": {BITS: {**_FIGURE, "properties": {**_FIGURE["properties"], "value": NUMBER}}},
    "required": [BITS],
    "additionalProperties": _FIGURE,
}


def _encode_figures(figures: Mapping[str, Figure]) -> Record:
    return {key: figure_json(figure) for key, figure in figures.items()}


def _decode_figures(figures: Mapping[str, Record]) -> dict[str, Figure]:
    return {
        key: Figure(key, **{name: figure[name] for name in _FIGURE["properties"]})
        for key, figure in figures.items()
    }


@declared()
class AttackRow:
    """One attacker with one feature on one method."""

    method: str = key("", 'method of protection; "none" is the baseline')
    attacker: str = key()
    feature: str = key("", 'feature of the attacker; "joint" is the weighted score of all')
    segments: int = key("count", "L, segments per template")
    scoring: str = key("", '"average" or "max"')
    figures: Mapping[str, Figure] = key(
        _FIGURES, "those of `FIGURES`", encode=_encode_figures, decode=_decode_figures
    )
    speakers: int = key("count", "N, templates per trial", minimum=1)
    trials: int = key("count")
    complete: int = key("count", "readers with all L segments; the others have fewer")
    silent: int = key("count", "trials without any frame of the feature")
    rank_model: str = key("", "origin of a joint score's weights, otherwise empty", default="")

    @property
    def bits(self) -> float:
        """MeanD."""
        value = self.figures[BITS].value
        return 0.0 if value is None else value


@declared()
class Settings:
    """Settings of a test."""

    corpus: str = key()
    methods: tuple[str, ...] = key()
    attackers: tuple[str, ...] = key()
    features: tuple[str, ...] = key()
    seconds: float = key("seconds")
    template_seconds: float = key("seconds")
    main_segments: int = key("count", "segments of the template that all readers have")
    segments: tuple[int, ...] = key("count")
    session: str = key(SESSION, '"cross" or "same"')
    readers: int = key("count")
    background: int = key("count", "background readers for the attackers' models")
    seed: int = key("count")


@dataclass(frozen=True)
class AttackResults:
    """All results of a test."""

    settings: Settings
    rows: tuple[AttackRow, ...]
    measured: Mapping[str, Sequence[Figure]] = field(default_factory=dict)  # utility, by method
    attributes: Mapping[str, Sequence[AttributeRow]] = field(default_factory=dict)  # by name
    notes: tuple[str, ...] = ()  # caveats of the figures
    problems: tuple[str, ...] = ()  # unusable methods and recordings
    clear_bits: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def main(self, method: str) -> list[AttackRow]:
        """Return a method's rows for the template that all readers have, with average scoring."""
        selection = method, self.settings.main_segments, "average"
        return [row for row in self.rows if (row.method, row.segments, row.scoring) == selection]

    def strongest(self, method: str, attacker: str | None = None) -> AttackRow | None:
        """Return the strongest attack on a method, by one attacker or all; None if all failed."""
        rows = (r for r in self.rows if r.method == method and attacker in (None, r.attacker))
        return max(rows, key=lambda row: row.bits, default=None)

    @property
    def undertrained(self) -> tuple[str, ...]:
        """Methods for which the attacker's network is too weak even on unprotected speech.

        Its bits are below nine tenths of the shipped network's, so they do not measure the method.
        """
        return tuple(m for m, (trained, shipped) in self.clear_bits.items()
                     if is_undertrained(trained, shipped))  # fmt: skip

    def ranking(self) -> list[AttackRow]:
        """Return the strongest attack on each method, weakest protection first."""
        strongest = [self.strongest(method) for method in self.settings.methods]
        return sorted((row for row in strongest if row is not None), key=lambda r: -r.bits)


# ----------------------------------------------------------------------------------------- wording

_MANY_SILENT = 0.05
_FULL = 0.95  # fraction of log2 N, as in monitor.lab.experiment.findings
_ENOUGH = 10
_MOST_NAMED, _WORTH_BITS = 3, 0.3


def method_name(method: str) -> str:
    """Format a method for people; commands are shown without folders.

    Example:
        >>> method_name("command:/opt/mine --strong")
        '`mine --strong`'
    """
    kind, _, command = method.partition(":")
    if kind != "command":
        return method
    return f"`{' '.join(word.rpartition('/')[2] or word for word in command.split())}`"


def _format_bits(row: AttackRow) -> str:
    """Format bits with their interval, as in 2.31 bits (1.90 to 2.70)."""
    low, high = row.figures[BITS].limits
    between = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{row.bits:.2f} bits{between}"


def _format_attack(row: AttackRow) -> str:
    scored = ", max scoring" if row.scoring == "max" else ""
    return f"{row.attacker}, {row.feature}, {plural(row.segments, 'segment')} enrolled{scored}"


def format_headline(results: AttackResults) -> list[str]:
    """Return a sentence for each method, weakest protection first, then baseline and ceiling.

    Every figure is that of the strongest attack tried, over all attackers and features.
    """
    baseline, ranking = results.strongest(CLEAR), results.ranking()
    # without an attacker that knows of the protection, bits do not measure it
    informed = any(get_attacker(name).protects for name in results.settings.attackers)
    lines = []
    for row in ranking:
        if row.method == CLEAR and len(results.settings.methods) > 1:
            continue
        sentence = (
            f"{method_name(row.method)}: {_format_bits(row)} of {math.log2(row.speakers):.2f} "
        )
        if row.method == CLEAR or informed:
            sentence += (
                f"to the strongest attacker tried ({_format_attack(row)}){_format_chance(row)}."
            )
        else:
            sentence += f"to {attacker_in_words(IGNORANT)} ({_format_attack(row)}): "
            sentence += f"{NO_MEASURE}. Try other attackers."
        lines.append(sentence)
    if baseline is not None and len(results.settings.methods) > 1:
        lines.append(f"Unprotected: {_format_bits(baseline)} ({_format_attack(baseline)}).")
    if full := [row for row in ranking if row.bits >= _FULL * math.log2(row.speakers)]:
        names = ", ".join(
            "unprotected speech" if row.method == CLEAR else method_name(row.method) for row in full
        )
        readers = min(row.speakers for row in full)
        request = "ten readers or more" if readers < _ENOUGH else "more readers"
        lines.append(
            f"At the ceiling: {names}. {plural(readers, 'reader')} can show at most "
            f"{math.log2(readers):.2f} bits, so methods at the ceiling cannot be distinguished. "
            f"Test with {request}."
        )
    return lines


def _format_chance(row: AttackRow) -> str:
    """Return a warning if the bits could be chance, otherwise an empty string."""
    null = row.figures.get("srd.null_model_bits")
    if null is None or null.high is None or row.bits > null.high:
        return ""
    return f", which could be chance (up to {null.high:.2f} bits)"


def _list_weaker_joints(results: AttackResults) -> list[str]:
    """Return a line for each joint score that discloses less than one feature."""
    lines = []
    for method in results.settings.methods:
        rows = results.main(method)
        for attacker in dict.fromkeys(row.attacker for row in rows):
            bits = {row.feature: row.bits for row in rows if row.attacker == attacker}
            joint = bits.pop("joint", None)
            if joint is not None and (best := format_best_feature(joint, bits)):
                lines.append(f"{method_name(method)}, {attacker}: {best}.")
    return lines


def _is_alid_contradicted(row: AttackRow) -> bool:
    """Return whether ALID is below half of the bits of first ranks."""
    alid, first = row.figures.get("lid.alid_bits"), row.figures.get("srd.idr")
    if alid is None or first is None or alid.value is None or first.value is None:
        return False
    rank_bits = first_rank_bits(first.value, row.speakers)
    rank_bits = rank_bits if alid.ceiling is None else min(rank_bits, alid.ceiling)
    return first.value * row.speakers > 2 and rank_bits > _WORTH_BITS and alid.value < rank_bits / 2


def list_caveats(results: AttackResults) -> list[str]:
    """Return the caveats of the figures."""
    settings, rows = results.settings, results.rows
    sentences = []
    if settings.session == "same":
        sentences.append(
            "Template and trials are parts of one session. A voice is easier to recognise there "
            "than on another day."
        )
    untried = [name for name in ATTACKERS if name not in settings.attackers]
    if untried:
        sentences.append(f"Not tried: {', '.join(untried)}. A stronger attacker learns more.")
    if any(row.rank_model.startswith("shipped") for row in rows):
        sentences.append(
            "Some joint scores use weights from the shipped rank model of clear speech, for lack "
            "of a better one. An attacker with protected background speech has better weights."
        )
    sentences += [
        f"{method_name(method)}: semi-informed is undertrained. Its network gets {trained:.2f} "
        f"bits from unprotected speech, and the shipped one {shipped:.2f}. Train it longer "
        "(training-steps), or on more readers."
        for method, (trained, shipped) in results.clear_bits.items()
        if method in results.undertrained
    ]
    sentences += _list_weaker_joints(results)
    denied = [row for row in rows if _is_alid_contradicted(row)]
    if denied:
        attacks = [f"{method_name(r.method)}, {r.attacker}, {r.feature}" for r in denied]
        attacks = list(dict.fromkeys(attacks))
        names = "; ".join(attacks[:_MOST_NAMED]) + "; ..." * (len(attacks) > _MOST_NAMED)
        sentences.append(
            f"ALID contradicts the ranks ({names}). Its calibration across "
            f"{plural(settings.readers, 'reader')} does not fit these trials, because readers are "
            "few or some trials are outliers. Use the bits and the first ranks, or test more "
            "readers."
        )
    silent = {
        f"{row.feature} under {method_name(row.method)}"
        for row in rows
        if row.silent > _MANY_SILENT * row.trials
    }
    if silent:
        sentences.append(
            f"More than {100 * _MANY_SILENT:.0f} % of trials have no frames of "
            f"{', '.join(sorted(silent))}. An attacker with other features may learn more."
        )
    short = {row.segments for row in rows if row.complete < row.speakers}
    if short:
        counts = ", ".join(map(str, sorted(short)))
        sentences.append(
            f"Some readers have fewer than {counts} segments and are enrolled with all they have."
        )
    return [*sentences, *_describe_scope(settings, rows)]


def _describe_scope(settings: Settings, rows: Sequence[AttackRow]) -> Iterator[str]:
    ways = len({(r.attacker, r.feature, r.segments, r.scoring) for r in rows})
    yield (
        f"The strongest of {ways} attacks was chosen by its result, so its bits are slightly too "
        f"high. With {plural(settings.readers, 'reader')}, differences within the intervals are "
        "not significant."
    )
    words = "words" in map(takes, settings.features)
    yield (
        f"These attackers use the sound of a voice{' and its function words' if words else ''}, "
        f"for {settings.seconds:g} s. Not tried: {'topics' if words else 'words'}, other networks, "
        "other languages, more speech, and listeners who know the person. No figure here is a "
        "guarantee."
    )


# ------------------------------------------------------------------------------------------ report

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
    return Table.of([*head, "N", "trials"], rows, names=3, wide=True)


def tabulate_enrolment(results: AttackResults) -> Table:
    """Tabulate VoxGuard's Table 1 for each feature with max scoring.

    It has EER, epsilon and TPR at two FPRs, by number of enrolled segments.
    """
    available = {row.segments for row in results.rows}
    counts = [count for count in results.settings.segments if count in available]
    searched = {row.feature for row in results.rows if row.scoring == "max"}
    rows: dict[tuple[str, str, str, str], dict[int, AttackRow]] = {}
    for row in results.rows:
        if row.feature in searched and row.segments in counts:
            for scoring in ("average", "max"):
                way = row.method, row.attacker, row.feature, scoring
                by_segments = rows.setdefault(way, {})
                if scoring == row.scoring or row.segments == 1:  # one segment: both are the same
                    by_segments[row.segments] = row

    def format_point(row: AttackRow | None) -> str:
        figures = [None if row is None else row.figures.get(key) for key in _OPERATING_POINTS]
        values = [_format_value(figure).removesuffix(" %") for figure in figures]
        values = ["inf" if value == "infinite" else value for value in values]
        return "-" if row is None else " | ".join(values)

    return Table.of(
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
    return Table.of(head, lines, names=5, notes=notes, marks=marks, wide=True)


def tabulate_measures(results: AttackResults) -> Table:
    """Tabulate utility, one row per method; no rows if it was not measured."""
    labels = dict.fromkeys(f.label for figures in results.measured.values() for f in figures)
    rows: list[list[Cell]] = []
    for method in results.settings.methods if labels else ():
        by_label = {figure.label: figure for figure in results.measured.get(method, ())}
        strongest = results.strongest(method)
        bits = strongest.figures[BITS] if strongest else None
        rows.append([method_name(method), bits, *map(by_label.get, labels)])
    return Table.of(["method", "bits, strongest attacker", *labels], rows, wide=True)


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


# ------------------------------------------------------------------------------------------- files

KEPT = "kept"  # private folder inside the results folder, from which an attack resumes
FILES = ("index.html", "results.json", "results.csv", "bits.svg", "bits.png")
SCHEMA = 1
_MOST_BYTES = 1 << 28


def check_folder(folder: Path) -> None:
    """Raise UsageError if the folder contains other files than results."""
    others = [name for name in held_by(folder) if name not in (*FILES, KEPT)]
    if others:
        raise UsageError(
            f"invalid -o {file_name(folder)}, which contains {others[0]}: use an empty folder, or "
            "one of monitor attack"
        )


def write_results(results: AttackResults, folder: Path) -> None:
    """Write all `FILES`, each private (mode 0600) and whole or not at all."""
    write_text(results_json(results), folder / "results.json")
    write_text(results_csv(results), folder / "results.csv")
    for name in ("bits.svg", "bits.png"):
        plot_attacks(folder / name, *collect_bits(results))
    write_text(render_html(build_report(results)), folder / "index.html")


def results_json(results: AttackResults) -> str:
    """Return everything as JSON; each figure has value, interval, unit, ceiling and note."""
    contents = {
        "schema": SCHEMA,
        "headline": format_headline(results),
        "settings": to_json(results.settings),
        "rows": list(map(to_json, results.rows)),
        "measured": {
            method: _encode_figures({figure.key: figure for figure in figures})
            for method, figures in results.measured.items()
        },
        "attributes": {
            name: [row.encode() for row in rows] for name, rows in results.attributes.items()
        },
        "clear_bits": {method: list(bits) for method, bits in results.clear_bits.items()},
        "undertrained": list(results.undertrained),
        "notes": [*results.notes, *list_caveats(results)],
        "problems": list(results.problems),
    }
    return json.dumps(contents, indent=1, allow_nan=False) + "\n"


def results_csv(results: AttackResults) -> str:
    """Return one CSV line per row, with value, lower and upper limit of each figure."""
    plain = [column.name for column in fields(AttackRow) if column.name != "figures"]
    rows: list[list[Cell]] = []
    for row in results.rows:
        cells: list[Cell] = [getattr(row, name) for name in plain]
        for figure in map(row.figures.get, FIGURES):
            infinite = figure is not None and figure.text == "infinite"
            cells += [
                math.inf if infinite else figure,
                *(figure.limits if figure else (None, None)),
            ]
        rows.append(cells)
    suffixes = ("", ".low", ".high")
    return render_csv(
        Table.of([*plain, *(f"{key}{suffix}" for key in FIGURES for suffix in suffixes)], rows)
    )


def read_results(path: Path) -> AttackResults:
    """Read the results that `write_results` wrote, without the utility.

    Args:
        path: ``results.json``, or its folder.

    Raises:
        StoreError: if it is missing or has other contents.
        SchemaError: if a newer version wrote it.
    """
    file = path / "results.json" if path.is_dir() else path
    name = file_name(file)
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise StoreError(f"{name} is too large for results of monitor attack")
        contents = json.loads(file.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot open {name} ({error.strerror}): check the name") from None
    except (ValueError, RecursionError):
        contents = None
    if not isinstance(contents, dict) or not {"schema", "settings", "rows"} <= contents.keys():
        raise StoreError(f"{name} has no results of monitor attack")
    if not isinstance(contents["schema"], int) or contents["schema"] > SCHEMA:
        raise SchemaError(f"{name} was written by a newer version of the program: install that one")
    schema = object_of(
        settings=_OBJECT,
        rows={**list_of(_OBJECT), "minItems": 1},
        attributes={"type": "object", "additionalProperties": list_of(_OBJECT)},
        clear_bits={
            "type": "object",
            "additionalProperties": {**list_of(NUMBER), "minItems": 2, "maxItems": 2},
        },
        notes=TEXTS,
        problems=TEXTS,
    )
    try:
        if (problem := misfit(contents, schema)) is not None:
            raise ValueError(problem)
        results = AttackResults(
            from_json(Settings, contents["settings"]),
            tuple(from_json(AttackRow, row) for row in contents["rows"]),
            attributes={
                name: tuple(map(AttributeRow.decode, rows))
                for name, rows in contents["attributes"].items()
            },
            notes=tuple(contents["notes"]),
            problems=tuple(contents["problems"]),
            clear_bits={method: tuple(bits) for method, bits in contents["clear_bits"].items()},
        )
    except (KeyError, ValueError) as error:
        key = printable(str(error.args[0]).removesuffix(" makes no sense"))
        raise StoreError(f"{name} is damaged ({key or 'at its top'}): attack again") from None
    attackers = {*results.settings.attackers, *(row.attacker for row in results.rows)}
    if unknown := sorted(attackers - ATTACKERS.keys()):
        raise StoreError(
            f"{name} has an unknown attacker {printable(unknown[0])!r}: register it, or attack "
            "again"
        )
    caveats = set(list_caveats(results))
    return replace(results, notes=tuple(note for note in results.notes if note not in caveats))
