"""The tables of an attack, as text: by attacker and feature, and VoxGuard's Table 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from monitor.attacks.results import BITS, FIGURES, AttackResults, AttackRow
from monitor.attacks.wording import method_name
from monitor.evaluation.figure import Figure
from monitor.evaluation.report.wording import format_limits, format_value

__all__ = [
    "MAIN_HEAD",
    "attribute_table",
    "cell",
    "enrolment_table",
    "main_table",
    "measured_table",
    "told_attributes",
]

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


def cell(figure: Figure | None) -> str:
    """A value, and its limits in a second line."""
    if figure is None:
        return "-"
    value, limits = format_value(figure.value, figure.unit, figure.text), format_limits(figure)
    return f"{value}\n{limits}" if limits else value


def main_table(results: AttackResults) -> list[list[str]]:
    """One line for each method, attacker and feature, at the template that everybody has."""
    lines = []
    for method in results.settings.methods:
        for row in results.main(method):
            cells = [cell(row.figures.get(key)) for key in _COLUMNS]
            last = cell(row.figures.get("membership.realised_fpr_at_1e-2"))
            lines.append(
                [method_name(method), row.attacker, row.feature, *cells, _epsilon(row), last,
                 str(row.speakers), str(row.trials)]
            )  # fmt: skip
    return lines


def _epsilon(row: AttackRow) -> str:
    """Epsilon at FPR 1e-2, and its lower bound in a second line."""
    value, least = (
        row.figures.get(f"membership.epsilon_{name}_at_1e-2") for name in ("nats", "lower_nats")
    )
    return f"{cell(value).partition(chr(10))[0]}\n\N{GREATER-THAN OR EQUAL TO} {cell(least)}"


def enrolment_table(results: AttackResults) -> tuple[list[str], list[list[str]]]:
    """EER, epsilon and TPR at two FPRs by segments enrolled: VoxGuard's Table 1, of each feature.

    Returns:
        the head, and the lines; of features that can be scored by the nearest segment.
    """
    counts = [count for count in results.settings.segments if _having(results, count)]
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
        found = {
            row.segments: row
            for row in results.rows
            if (row.method, row.attacker, row.feature) == (method, attacker, feature)
            and (row.scoring == scoring or row.segments == 1)
        }
        cells = [_operating(found[count]) if count in found else "-" for count in counts]
        lines.append([method_name(method), attacker, feature, scoring, *cells])
    return head, lines


def _having(results: AttackResults, count: int) -> bool:
    return any(row.segments == count for row in results.rows)


def _operating(row: AttackRow) -> str:
    """``EER | epsilon | TPR at FPR 1e-2 | TPR at FPR 1e-3``."""
    said = []
    for key in _CELL:
        figure = row.figures.get(key)
        text = "-" if figure is None else format_value(figure.value, figure.unit, figure.text)
        said.append("inf" if text == "infinite" else text.removesuffix(" %"))
    return " | ".join(said)


def attribute_table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """What attackers tell of one attribute, from `monitor.attacks.attributes.attribute_rows`."""
    head = ["method", "attacker", "feature", "told", "version", "EER"]
    rates = [at["asked"] for at in rows[0]["at"]]
    for rate in rates:
        name = np.format_float_scientific(rate, trim="-", exp_digits=1)
        head += [f"TPR at FPR {name}", "epsilon, at least", "FPR reached"]
    lines = []
    for row in rows:
        line = [method_name(row["method"]), *(str(row[key]) for key in head[1:3])]
        line += [row["value"], row["version"]]
        line.append(_share(row["eer"], row["eer_low"], row["eer_high"]))
        for at in row["at"]:
            value = at["epsilon_nats"]
            line += [
                ("* " if at["note"] else "") + _share(at["tpr"], at["tpr_low"], at["tpr_high"]),
                f"{'inf' if value is None else format_value(value, 'nats')}\n"
                f"\N{GREATER-THAN OR EQUAL TO} {format_value(at['epsilon_low_nats'], 'nats')}",
                f"{format_value(at['realised'], 'share')}\n"
                f"\N{LESS-THAN OR EQUAL TO} {format_value(at['realised_high'], 'share')}",
            ]
        lines.append([*line, *(_counted(row, what) for what in ("readers", "excerpts", "learnt"))])
    counted = ("readers with / without", "excerpts", "readers learnt from")
    return [*head, *counted], lines


def told_attributes(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The same for a terminal, at the highest of the rates."""
    rate = f"at FPR {rows[0]['at'][0]['asked']:g}"
    head = ["method", "attacker", "feature", "told", "version", "EER", rate, "limits", "readers"]
    lines = []
    for row in rows:
        at = row["at"][0]
        eer, tpr, low, high = (
            format_value(value, "share")
            for value in (row["eer"], at["tpr"], at["tpr_low"], at["tpr_high"])
        )
        lines.append(
            [
                *(method_name(row["method"]), row["attacker"], row["feature"], row["value"]),
                *(row["version"], eer, tpr + ("*" if at["note"] else ""), f"{low} to {high}"),
                _counted(row, "readers"),
            ]
        )
    return head, lines


def _counted(row: Mapping[str, Any], what: str) -> str:
    return f"{row[f'{what}_with']} / {row[f'{what}_without']}"


def _share(value: float, low: float, high: float) -> str:
    return cell(Figure("share", "share", value, "share", low=low, high=high))


def measured_table(results: AttackResults) -> tuple[list[str], list[list[str]]]:
    """What was measured beside privacy, one line a method; empty where nothing was."""
    labels = dict.fromkeys(f.label for figures in results.measured.values() for f in figures)
    lines = []
    for method in results.settings.methods:
        by_label = {figure.label: figure for figure in results.measured.get(method, ())}
        strongest = results.strongest(method)
        bits = cell(strongest.figures[BITS]) if strongest else "-"
        cells = (cell(by_label.get(label)) for label in labels)
        lines.append([method_name(method), bits, *cells])
    return ["method", "bits, strongest attacker", *labels], lines if labels else []
