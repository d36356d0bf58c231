"""Results of an attack: sentences, tables, a page and files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from monitor.documents import (
    bullet_list,
    document,
    paragraphs,
    picture,
    section,
    table,
)
from monitor.errors import SchemaError, StoreError, UsageError
from monitor.events.keys import (
    COUNT,
    NUMBER,
    PROBABILITY,
    SECONDS,
    SESSION,
    TEXT,
    TEXTS,
    VALUE,
    list_of,
    misfit,
    object_of,
)
from monitor.features.registry import takes
from monitor.files import csv_number, csv_text, held_by, write_text
from monitor.lab.attacks.attackers import ATTACKERS, get_attacker
from monitor.lab.attacks.context import BITS
from monitor.lab.attacks.extraction import CLEAR
from monitor.lab.attributes import AttributeRow
from monitor.lab.evaluation.srd import is_undertrained
from monitor.lab.plots.attacks import MethodBits, attacks_svg, plot_attacks
from monitor.lab.report.export import figure_json
from monitor.lab.report.model import Figure, format_limits, format_value
from monitor.maths.ranks import first_rank_bits
from monitor.phrases import IGNORANT, NO_MEASURE, attacker_in_words, format_best_feature, plural
from monitor.safe_text import file_name, printable, short_name

# ----------------------------------------------------------------------------------------- results

FIGURES = {
    BITS: "bits",
    "srd.null_model_bits": "bits of no evidence",
    "srd.idr": "first",
    "lid.alid_bits": "ALID",
    "lid.max_bits": "LIDmax",
    "verification.eer_rocch": "EER",
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
"""What is kept of each report, with the short name of its column."""


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One attacker with one feature on one method.

    Attributes:
        method: of protection; ``"none"`` is the baseline.
        feature: what the attacker hears; ``"joint"`` is all of them, weighed.
        segments: L, of which a template is made.
        scoring: ``"average"`` or ``"max"``.
        figures: by key, those of `FIGURES`.
        speakers: N, whom each trial was compared with.
        trials: how many.
        complete: readers who have all L segments; the others have fewer.
        silent: trials in which nothing of the feature could be heard.
        rank_model: what weighed a joint score, in words; empty otherwise.
    """

    method: str
    attacker: str
    feature: str
    segments: int
    scoring: str
    figures: Mapping[str, Figure]
    speakers: int
    trials: int
    complete: int
    silent: int
    rank_model: str = ""

    @property
    def bits(self) -> float:
        """MeanD."""
        value = self.figures[BITS].value
        return 0.0 if value is None else value


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a test.

    Attributes:
        session: ``"cross"`` or ``"same"``.
    """

    corpus: str
    methods: tuple[str, ...]
    attackers: tuple[str, ...]
    features: tuple[str, ...]
    seconds: float
    template_seconds: float
    main_segments: int
    segments: tuple[int, ...]
    session: str
    readers: int
    background: int
    seed: int


@dataclass(frozen=True)
class AttackResults:
    """All results of a test.

    Attributes:
        settings: what was asked for.
        rows: every way to attack.
        measured: by method, what was measured beside privacy.
        attributes: rows of inferred attributes, by name.
        notes: what a reader of the figures has to know.
        problems: what could not be used.
        clear_bits: as the context has it.
    """

    settings: Settings
    rows: tuple[AttackRow, ...]
    measured: Mapping[str, Sequence[Figure]] = field(default_factory=dict)
    attributes: Mapping[str, Sequence[AttributeRow]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    clear_bits: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def main(self, method: str) -> list[AttackRow]:
        """Return a method's rows with the template that everybody has, average scoring."""
        selection = method, self.settings.main_segments, "average"
        return [row for row in self.rows if (row.method, row.segments, row.scoring) == selection]

    def strongest(self, method: str, attacker: str | None = None) -> AttackRow | None:
        """Return the strongest attack of an attacker, or of anybody; None where none worked."""
        rows = (r for r in self.rows if r.method == method and attacker in (None, r.attacker))
        return max(rows, key=lambda row: row.bits, default=None)

    @property
    def undertrained(self) -> tuple[str, ...]:
        """Methods whose attacker's network tells too little even of unprotected speech.

        Less than nine tenths of what the shipped one tells: its figure is no measure of the method.
        """
        return tuple(m for m, (own, shipped) in self.clear_bits.items()
                     if is_undertrained(own, shipped))  # fmt: skip

    def ranking(self) -> list[AttackRow]:
        """Return the strongest attack on each method, the weakest protection first."""
        strongest = [self.strongest(method) for method in self.settings.methods]
        return sorted((row for row in strongest if row is not None), key=lambda r: -r.bits)


# ----------------------------------------------------------------------------------------- wording

_MANY_SILENT = 0.05
_FULL = 0.95  # of log2 N; as the experiments' (monitor.lab.experiment.findings)
_ENOUGH = 10
_MOST_NAMED, _WORTH_BITS = 3, 0.3


def method_name(method: str) -> str:
    """Format a method for people; of a command the programs without folders.

    Example:
        >>> method_name("command:/opt/mine --strong")
        '`mine --strong`'
    """
    kind, _, command = method.partition(":")
    if kind != "command":
        return method
    return f"`{' '.join(word.rpartition('/')[2] or word for word in command.split())}`"


def format_bits(row: AttackRow) -> str:
    """Format bits with their limits, as in 2.31 bits (1.90 to 2.70)."""
    low, high = row.figures[BITS].limits
    between = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{row.bits:.2f} bits{between}"


def format_attack(row: AttackRow) -> str:
    """Format how a row attacks."""
    scored = ", max scoring" if row.scoring == "max" else ""
    return f"{row.attacker}, {row.feature}, {plural(row.segments, 'segment')} enrolled{scored}"


def format_headline(results: AttackResults) -> list[str]:
    """Return a sentence for each method, the weakest protection first; the baseline; the ceiling.

    Every figure is that of the strongest attack that was tried, whatever it took.
    """
    baseline, ranking = results.strongest(CLEAR), results.ranking()
    # what nobody who knows of the protection tried is no measure of it
    informed = any(get_attacker(name).protects for name in results.settings.attackers)
    lines = []
    for row in ranking:
        if row.method == CLEAR and len(results.settings.methods) > 1:
            continue
        sentence = (
            f"{method_name(row.method)}: {format_bits(row)} of {math.log2(row.speakers):.2f} "
        )
        if row.method == CLEAR or informed:
            sentence += (
                f"to the strongest attacker tried ({format_attack(row)}){_format_chance(row)}."
            )
        else:
            sentence += f"to {attacker_in_words(IGNORANT)} ({format_attack(row)}): "
            sentence += f"{NO_MEASURE}; try others."
        lines.append(sentence)
    if baseline is not None and len(results.settings.methods) > 1:
        lines.append(f"Unprotected: {format_bits(baseline)} ({format_attack(baseline)}).")
    if full := [row for row in ranking if row.bits >= _FULL * math.log2(row.speakers)]:
        names = ", ".join(
            "unprotected speech" if row.method == CLEAR else method_name(row.method) for row in full
        )
        readers = min(row.speakers for row in full)
        request = "ten readers or more" if readers < _ENOUGH else "more readers"
        lines.append(
            f"At the ceiling: {names}. Among {plural(readers, 'reader')} no more than "
            f"{math.log2(readers):.2f} bits can be shown, and methods that stand there cannot be "
            f"told apart; test with {request}."
        )
    return lines


def _format_chance(row: AttackRow) -> str:
    """Say so where the bits could be chance."""
    null = row.figures.get("srd.null_model_bits")
    if null is None or null.high is None or row.bits > null.high:
        return ""
    return f": no more than chance reads ({null.high:.2f} bits)"


def _list_weaker_joints(results: AttackResults) -> list[str]:
    """Return lines where the joint score discloses less than one feature."""
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
    """Return what a reader of the figures needs to know."""
    settings, rows = results.settings, results.rows
    sentences = []
    if settings.session == "same":
        sentences.append(
            "Template and trials are parts of one session: a voice is easier to recognise so than "
            "on another day."
        )
    untried = [name for name in ATTACKERS if name not in settings.attackers]
    if untried:
        sentences.append(
            f"Not tried: {', '.join(untried)}. A stronger attacker than those tried learns more."
        )
    if any(row.rank_model.startswith("shipped") for row in rows):
        sentences.append(
            "Where nothing better could be learnt joint scores are weighed by the shipped rank "
            "model of clear speech: an attacker with a background of protected speech weighs them "
            "better."
        )
    sentences += [
        f"{method_name(method)}: semi-informed is undertrained: of unprotected speech its network "
        f"tells {own:.2f} bits where the shipped one tells {shipped:.2f}; train it longer "
        "(--training-steps), or on more readers."
        for method, (own, shipped) in results.clear_bits.items()
        if method in results.undertrained
    ]
    sentences += _list_weaker_joints(results)
    denied = [row for row in rows if _is_alid_contradicted(row)]
    if denied:
        attacks = [f"{method_name(r.method)}, {r.attacker}, {r.feature}" for r in denied]
        attacks = list(dict.fromkeys(attacks))
        names = "; ".join(attacks[:_MOST_NAMED]) + "; ..." * (len(attacks) > _MOST_NAMED)
        sentences.append(
            f"ALID contradicts the ranks ({names}): its calibration, across "
            f"{plural(settings.readers, 'reader')}, does not fit these trials: readers are few, or "
            "some trials are outliers. Go by the bits and the first ranks, or test more readers."
        )
    silent = {
        f"{row.feature} under {method_name(row.method)}"
        for row in rows
        if row.silent > _MANY_SILENT * row.trials
    }
    if silent:
        sentences.append(
            f"In more than {100 * _MANY_SILENT:.0f} % of trials nothing was extracted of "
            f"{', '.join(sorted(silent))}: an attacker with other features may learn more."
        )
    short = {row.segments for row in rows if row.complete < row.speakers}
    if short:
        counts = ", ".join(map(str, sorted(short)))
        sentences.append(
            f"Not all readers have {counts} segments; they are enrolled with what they have."
        )
    return [*sentences, *_describe_scope(settings, rows)]


def _describe_scope(settings: Settings, rows: Sequence[AttackRow]) -> Iterator[str]:
    ways = len({(r.attacker, r.feature, r.segments, r.scoring) for r in rows})
    yield (
        f"The strongest of {ways} ways to attack was chosen after it was seen, which by itself "
        f"reads a little high; with {plural(settings.readers, 'reader')} a difference within the "
        "limits is none."
    )
    words = "words" in map(takes, settings.features)
    yield (
        f"These attackers hear how a voice sounds{', and its little words' if words else ''}, for "
        f"{settings.seconds:g} s. {'What is talked about' if words else 'Words'}, other networks, "
        "other languages, more speech, and listeners who know the person were not tried: no figure "
        "here is a promise."
    )


# ------------------------------------------------------------------------------------------ tables

_COLUMNS = (
    BITS,
    "srd.idr",
    "lid.alid_bits",
    "verification.eer_rocch",
    "anonymity.mean_rank_p50",
    "anonymity.mean_rank_p1",
    "membership.tpr_at_1e-2",
)
MAIN_HEAD = (
    *("method", "attacker", "feature"),
    *(FIGURES[key] for key in _COLUMNS),
    *("epsilon, at least", "FPR reached", "N", "trials"),
)
_CELL = (
    "verification.eer_rocch",
    "membership.epsilon_nats_at_1e-2",
    "membership.tpr_at_1e-2",
    "membership.tpr_at_1e-3",
)


def format_cell(figure: Figure | None) -> str:
    """Format a figure, its limits in a second line."""
    if figure is None:
        return "-"
    value, limits = format_value(figure.value, figure.unit, figure.text), format_limits(figure)
    return f"{value}\n{limits}" if limits else value


def tabulate_main(results: AttackResults) -> list[list[str]]:
    """Tabulate methods, attackers and features, at the template that everybody has."""
    lines = []
    for method in results.settings.methods:
        for row in results.main(method):
            cells = [format_cell(row.figures.get(key)) for key in _COLUMNS]
            value, least, reached = (
                format_cell(row.figures.get(f"membership.{name}_at_1e-2"))
                for name in ("epsilon_nats", "epsilon_lower_nats", "realised_fpr")
            )
            epsilon = f"{value.partition(chr(10))[0]}\n\N{GREATER-THAN OR EQUAL TO} {least}"
            counts = str(row.speakers), str(row.trials)
            names = method_name(method), row.attacker, row.feature
            lines.append([*names, *cells, epsilon, reached, *counts])
    return lines


def tabulate_enrolment(results: AttackResults) -> tuple[list[str], list[list[str]]]:
    """Tabulate VoxGuard's Table 1 for each feature that the nearest segment can score.

    EER, epsilon and TPR at two FPRs, by segments enrolled.
    """
    available = {row.segments for row in results.rows}
    counts = [count for count in results.settings.segments if count in available]
    searched = {row.feature for row in results.rows if row.scoring == "max"}
    head = ["method", "attacker", "feature", "scoring", *(f"L = {count}" for count in counts)]
    lines = []
    ways = dict.fromkeys(
        (row.method, row.attacker, row.feature, scoring)
        for row in results.rows
        if row.feature in searched and row.segments in counts
        for scoring in ("average", "max")
    )
    for method, attacker, feature, scoring in ways:
        row_by_segments = {
            row.segments: row
            for row in results.rows
            if (row.method, row.attacker, row.feature) == (method, attacker, feature)
            and (row.scoring == scoring or row.segments == 1)
        }
        cells = [
            _format_operating_point(row_by_segments[count]) if count in row_by_segments else "-"
            for count in counts
        ]
        lines.append([method_name(method), attacker, feature, scoring, *cells])
    return head, lines


def _format_operating_point(row: AttackRow) -> str:
    """Format ``EER | epsilon | TPR at FPR 1e-2 | TPR at FPR 1e-3``."""
    parts = []
    for key in _CELL:
        figure = row.figures.get(key)
        text = "-" if figure is None else format_value(figure.value, figure.unit, figure.text)
        parts.append("inf" if text == "infinite" else text.removesuffix(" %"))
    return " | ".join(parts)


def tabulate_attributes(rows: Sequence[AttributeRow]) -> tuple[list[str], list[list[str]]]:
    """Tabulate what attackers infer of one attribute."""
    head = ["method", "attacker", "feature", "told", "version", "EER"]
    for rate in rows[0].judgement.at:
        name = np.format_float_scientific(rate.asked, trim="-", exp_digits=1)
        head += [f"TPR at FPR {name}", "epsilon, at least", "FPR reached"]
    lines = []
    for row in rows:
        judgement = row.judgement
        line = [*_name_attribute(row), format_cell(judgement.error)]
        for rate in judgement.at:
            epsilon = (
                "inf" if rate.epsilon_nats is None else format_value(rate.epsilon_nats, "nats")
            )
            line += [
                "* " * bool(rate.note) + format_cell(rate.accepted),
                f"{epsilon}\n\N{GREATER-THAN OR EQUAL TO} "
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
    return [*head, "readers with / without", "excerpts", "readers learnt from"], lines


def summarise_attributes(rows: Sequence[AttributeRow]) -> tuple[list[str], list[list[str]]]:
    """Tabulate the same for a terminal, at the highest of the rates."""
    rate = f"at FPR {rows[0].judgement.at[0].asked:g}"
    head = ["method", "attacker", "feature", "told", "version", "EER", rate, "limits", "readers"]
    lines = []
    for row in rows:
        judgement, at = row.judgement, row.judgement.at[0]
        figures = (judgement.eer, at.tpr, at.tpr_low, at.tpr_high)
        eer, tpr, low, high = (format_value(figure, "share") for figure in figures)
        readers = f"{judgement.readers_with} / {judgement.readers_without}"
        tpr += "*" * bool(at.note)
        lines.append([*_name_attribute(row), eer, tpr, f"{low} to {high}", readers])
    return head, lines


def _name_attribute(row: AttributeRow) -> list[str]:
    return [method_name(row.method), row.attacker, row.feature, row.value, row.version]


def tabulate_measures(results: AttackResults) -> tuple[list[str], list[list[str]]]:
    """Tabulate utility, one line a method; empty where none was measured."""
    labels = dict.fromkeys(f.label for figures in results.measured.values() for f in figures)
    lines = []
    for method in results.settings.methods:
        by_label = {figure.label: figure for figure in results.measured.get(method, ())}
        strongest = results.strongest(method)
        bits = format_cell(strongest.figures[BITS]) if strongest else "-"
        cells = (format_cell(by_label.get(label)) for label in labels)
        lines.append([method_name(method), bits, *cells])
    return ["method", "bits, strongest attacker", *labels], lines if labels else []


# -------------------------------------------------------------------------------------------- page

_LONGEST_NAME = 20
_FOOT = (
    "Limits are 95 %, over resampled readers. This page holds no voice, no score and no template."
)

_TOLD = (
    "As in VoxGuard's section 3.2: a logistic regression on embeddings, learnt from background "
    "speakers, or from some of the judged and tried on the others. Strict: of readers matched in "
    "the other attributes; what they say cannot be held fixed. Epsilon: nats, and what it is at "
    "least by Clopper and Pearson's limits over readers. An asterisk: too few excerpts or readers "
    "to tell of that rate."
)


def render_page(results: AttackResults) -> str:
    """Return the page as HTML; it stands alone."""
    settings = results.settings
    methods = [method for method in settings.methods if method != CLEAR]
    tested = ", ".join(map(method_name, methods)) or "unprotected speech"
    background = plural(settings.background, "reader")
    learnt = f", and learnt from {background} apart" if settings.background else ""
    facts = [
        f"{settings.corpus}: {plural(settings.readers, 'reader')}, trials of "
        f"{settings.seconds:g} s of speech, templates of {settings.template_seconds:g} s "
        f"({'another session' if settings.session == 'cross' else 'the same session'}).",
        f"Attackers: {', '.join(settings.attackers)}; they hear {', '.join(settings.features)}"
        f"{learnt}.",
    ]  # fmt: skip
    figure = picture(
        "Bits by method and attacker",
        attacks_svg(*collect_bits(results)),
        "Of each attacker what it learnt by the best of its ways. 0 is no disclosure; the dashed "
        "line is everything. A method is as good as its rightmost mark.",
    )
    attackers = [f"{n}: {ATTACKERS[n].knows}." for n in settings.attackers if n in ATTACKERS]
    who = section("Who attacks", bullet_list(attackers))
    head, lines = tabulate_measures(results)
    use = [section("What is left of use", table(head, lines, wide=True))] if lines else []
    parts = [
        section("What is left for an attacker", paragraphs(*format_headline(results))),
        f'<div class="pictures">{figure}{who}</div>',
        *use,
        _render_rows(results),
    ]
    head, lines = tabulate_enrolment(results)
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
            head, lines = tabulate_attributes(rows)
            rendered = table(head, lines, names=5, wide=True)
            parts.append(section(f"Told of a reader: {name}", paragraphs(_TOLD), rendered))
    parts.append(
        section("What this does not say", bullet_list([*results.notes, *list_caveats(results)]))
    )
    if results.problems:
        parts.append(section("What could not be used", bullet_list(results.problems)))
    return document(f"Attacks on {tested}", facts, parts, _FOOT)


def _render_rows(results: AttackResults) -> str:
    joint = dict.fromkeys(
        f"Joint score of {method_name(row.method)}, {row.attacker}: {row.rank_model}."
        for row in results.rows
        if row.rank_model
    )
    return section(
        "Every attacker and feature",
        paragraphs(
            f"At the template that everybody has, {results.settings.template_seconds:g} s. Bits: "
            "mean disclosure of a fitted rank model (MeanD). First: share of trials in which the "
            "right reader came first. Mean rank: USC's linkability where enrolled speech is "
            "protected, its singling out where it is clear; of the median reader and of the "
            "most exposed 1 %. TPR, and epsilon (nats) with what it is at least, at FPR 1e-2."
        ),
        table(MAIN_HEAD, tabulate_main(results), names=3, wide=True),
        bullet_list(list(joint)),
    )


def collect_bits(results: AttackResults) -> tuple[list[MethodBits], tuple[str, ...], float]:
    """Return what a picture shows: methods with bits, names of attackers, log2 N."""
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


# ----------------------------------------------------------------------------------------- writing

KEPT = "kept"  # the private folder, within that of the results, of what long work goes on from
FILES = ("index.html", "results.json", "results.csv", "bits.svg", "bits.png")
SCHEMA = 1
_MOST_BYTES = 1 << 28


def check_folder(folder: Path) -> None:
    """Refuse to write among things that are not ours."""
    others = [name for name in held_by(folder) if name not in (*FILES, KEPT)]
    if others:
        raise UsageError(
            f"-o {file_name(folder)} holds something else ({others[0]}); name an empty "
            "folder, or one that monitor attack made"
        )


def write_results(results: AttackResults, folder: Path) -> None:
    """Write all `FILES`, each private (mode 0600) and whole or not at all.

    Raises:
        StoreError: the folder cannot be written.
    """
    write_text(results_json(results), folder / "results.json")
    write_text(results_csv(results), folder / "results.csv")
    for name in ("bits.svg", "bits.png"):
        plot_attacks(folder / name, *collect_bits(results))
    write_text(render_page(results), folder / "index.html")


def results_json(results: AttackResults) -> str:
    """Return everything as JSON: a figure has value, limits, unit, ceiling and note."""
    contents = {
        "schema": SCHEMA,
        "headline": format_headline(results),
        "settings": asdict(results.settings),
        "rows": [
            {key: getattr(row, key) for key in AttackRow.__slots__ if key != "figures"}
            | {"figures": _figures(row.figures)}
            for row in results.rows
        ],
        "measured": {m: _figures({f.key: f for f in fs}) for m, fs in results.measured.items()},
        "attributes": {
            name: [row.encode() for row in rows] for name, rows in results.attributes.items()
        },
        "clear_bits": {method: list(bits) for method, bits in results.clear_bits.items()},
        "undertrained": list(results.undertrained),
        "notes": [*results.notes, *list_caveats(results)],
        "problems": list(results.problems),
    }
    return json.dumps(contents, indent=1, allow_nan=False) + "\n"


_FIGURE = object_of(
    label=TEXT, value=VALUE, text=TEXT, low=VALUE, high=VALUE, unit=TEXT, ceiling=VALUE,
    floor=VALUE, ties=TEXT, note=TEXT,
)  # fmt: skip
_ROW_SCHEMA = object_of(
    ["rank_model"], method=TEXT, attacker=TEXT, feature=TEXT, segments=COUNT, scoring=TEXT,
    speakers={**COUNT, "minimum": 1}, trials=COUNT, complete=COUNT, silent=COUNT, rank_model=TEXT,
    figures={
        "type": "object",
        "properties": {
            BITS: {**_FIGURE, "properties": {**_FIGURE["properties"], "value": NUMBER}}
        },
        "required": [BITS],
        "additionalProperties": _FIGURE,
    },
)  # fmt: skip
_RATE = object_of(
    asked=PROBABILITY, realised=PROBABILITY, realised_high=PROBABILITY, tpr=PROBABILITY,
    tpr_low=PROBABILITY, tpr_high=PROBABILITY, epsilon_nats=VALUE, epsilon_low_nats=NUMBER,
    note=TEXT,
)  # fmt: skip
_TOLD_SCHEMA = object_of(
    method=TEXT, attacker=TEXT, feature=TEXT, value=TEXT, version=TEXT, seconds=SECONDS,
    learnt_with=COUNT, learnt_without=COUNT, readers_with=COUNT, readers_without=COUNT,
    excerpts_with=COUNT, excerpts_without=COUNT, eer={"type": "number", "minimum": 0, "maximum": 1},
    eer_low=PROBABILITY, eer_high=PROBABILITY, at={**list_of(_RATE), "minItems": 1},
)  # fmt: skip
_RESULTS_SCHEMA = object_of(
    settings=object_of(
        corpus=TEXT, methods=TEXTS, attackers=TEXTS, features=TEXTS, seconds=SECONDS,
        template_seconds=SECONDS, main_segments=COUNT, segments=list_of(COUNT), session=SESSION,
        readers=COUNT, background=COUNT, seed=COUNT,
    ),
    rows={**list_of(_ROW_SCHEMA), "minItems": 1},
    attributes={"type": "object", "additionalProperties": list_of(_TOLD_SCHEMA)},
    clear_bits={
        "type": "object",
        "additionalProperties": {**list_of(NUMBER), "minItems": 2, "maxItems": 2},
    },
    notes=TEXTS,
    problems=TEXTS,
)  # fmt: skip


def read_results(path: Path) -> AttackResults:
    """Read back what `write_results` wrote, without what was measured beside privacy.

    Args:
        path: of ``results.json``, or of the folder that holds it.

    Raises:
        StoreError: it is missing, or something else.
        SchemaError: a newer version wrote it.
    """
    file = path / "results.json" if path.is_dir() else path
    name = file_name(file)
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise StoreError(f"{name} is too large for results of monitor attack")
        contents = json.loads(file.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot open {name}: {error.strerror}; check the name") from None
    except (ValueError, RecursionError):
        contents = None
    if not isinstance(contents, dict) or not {"schema", "settings", "rows"} <= contents.keys():
        raise StoreError(f"{name} has no results of monitor attack")
    if not isinstance(contents["schema"], int) or contents["schema"] > SCHEMA:
        raise SchemaError(f"{name} was written by a newer version of the program: install that one")
    problem = misfit(contents, _RESULTS_SCHEMA)
    if problem is not None or (problem := find_missing_key(contents, _RESULTS_SCHEMA)) is not None:
        raise StoreError(f"{name} is damaged ({printable(problem) or 'at its top'}): attack again")
    settings = contents["settings"]
    attackers = {*settings["attackers"], *(row["attacker"] for row in contents["rows"])}
    if unknown := sorted(attackers - ATTACKERS.keys()):
        raise StoreError(
            f"{name} has an attacker {printable(unknown[0])!r}, who is not known here: register "
            "that attacker, or attack again"
        )
    lists = {key: tuple(settings[key]) for key in ("methods", "attackers", "features", "segments")}
    results = AttackResults(
        Settings(**{note.name: settings[note.name] for note in fields(Settings)} | lists),
        tuple(_read_row(row) for row in contents["rows"]),
        attributes={
            name: tuple(map(AttributeRow.decode, rows))
            for name, rows in contents["attributes"].items()
        },
        problems=tuple(contents["problems"]),
        clear_bits={
            method: (own, theirs) for method, (own, theirs) in contents["clear_bits"].items()
        },
    )
    caveats = set(list_caveats(results))
    return replace(results, notes=tuple(note for note in contents["notes"] if note not in caveats))


def find_missing_key(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Return the first required key that is missing, or None."""
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for key in schema.get("required", ()):
            if key not in value:
                return str(key)
        inside = (
            find_missing_key(part, properties.get(key, others)) for key, part in value.items()
        )
    elif isinstance(value, list):
        inside = (find_missing_key(part, schema.get("items", {})) for part in value)
    else:
        return None
    return next((part for part in inside if part is not None), None)


def _read_row(row: Mapping[str, Any]) -> AttackRow:
    values = {key: row.get(key, "") for key in AttackRow.__slots__ if key != "figures"}
    parts = _FIGURE["properties"]
    figures = {
        key: Figure(key, **{part: figure[part] for part in parts})
        for key, figure in row["figures"].items()
    }
    return AttackRow(**values, figures=figures)


def results_csv(results: AttackResults) -> str:
    """Return one line a row; of each figure value, lower and upper limit."""
    plain = [key for key in AttackRow.__slots__ if key != "figures"]
    parts = ("", ".low", ".high")
    rows: list[list[object]] = []
    for row in results.rows:
        numbers: list[float | None] = []
        for figure in map(row.figures.get, FIGURES):
            if figure is None:
                numbers += [None, None, None]
            else:
                value = float("inf") if figure.text == "infinite" else figure.value
                numbers += [value, *figure.limits]
        rows.append([*(getattr(row, key) for key in plain), *map(csv_number, numbers)])
    return csv_text([*plain, *(f"{key}{part}" for key in FIGURES for part in parts)], rows)


def _figures(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {key: figure_json(figure) for key, figure in figures.items()}
