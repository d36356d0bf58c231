"""Which of the five losses fits best (SRD Table III): as counted, and on speakers left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.findings.answer import FEW, UNDECIDED, CorpusAnswer, Verdict
from monitor.experiment.findings.contrasts import Contrast
from monitor.phrases import plural

__all__ = ["best_losses"]

SMALL = 0.01
"""Bits a trial that do not matter."""


def best_losses(cells: Sequence[MeasuredCell]) -> list[CorpusAnswer]:
    """An answer for each system of the tables."""
    return [
        _of(cell, system, found)
        for cell in cells
        if cell.panel.purpose == "tables"
        for system, found in cell.systems.items()
    ]


def _of(cell: MeasuredCell, system: str, found: dict[str, Any]) -> CorpusAnswer:
    rows: list[dict[str, Any]] = found["losses"]
    judged = {row["loss"]: _judged(row) for row in rows if row["fitted"] != "LL"}
    worse, better, same, open_ = (
        [loss for loss, how in judged.items() if how == wanted]
        for wanted in ("worse", "better", "same", "open")
    )
    few = found["tested"] < FEW
    verdict: Verdict = "undecided"
    perfect = "perfect" in rows[0]["notes"]
    if not few and perfect:
        verdict = "full"
    elif not few and better:
        verdict = "no"
    elif not few and judged and not open_:
        verdict = "yes"
    parts = ["every trial has rank 1, so that all losses agree"] if perfect else []
    parts += [f"nearest to the ranks counted is {_least(rows, 'kl_bits')} by divergence and "
             f"{_least(rows, 'rank1_match_bits')} at rank 1"]  # fmt: skip
    if worse:
        parts.append(f"on speakers left out {_each(rows, worse)} cost more than LL")
    if better:
        parts.append(f"on speakers left out {_each(rows, better)} cost less than LL")
    if same:
        parts.append(f"{', '.join(same)} cost the same there, to {SMALL:g} bits a trial")
    bounded = {row["loss"] for row in rows if row["left_out_low"] is not None}
    if told := [loss for loss in open_ if loss in bounded]:
        parts.append(f"{_each(rows, told)} cannot be told from LL there")
    if rows[-1]["fitted"] == "LL":
        parts.append("CLL is refused (rank 1 never seen, or fewer trials than ranks)")
    parts += _at_rank_one(rows, found)
    if few:
        parts.append(UNDECIDED)
    basis = f"N = {found['speakers']}, {found['tested']} tested, {plural(found['trials'], 'trial')}"
    return CorpusAnswer(
        "loss", system, cell.panel.session, verdict, f"{'; '.join(parts)} ({basis}).",
        {"worse": worse, "better": better, "same": same, "open": open_,
         **{name: found[name] for name in ("speakers", "tested", "trials")}},
    )  # fmt: skip


def _judged(row: dict[str, Any]) -> str:
    """Whether a law costs more than that by LL on speakers left out."""
    low, high = row["left_out_low"], row["left_out_high"]
    if low is None:
        return "open"
    if low > -SMALL and high < SMALL:
        return "same"
    return "worse" if low > 0 else "better" if high < 0 else "open"


def _least(rows: Sequence[dict[str, Any]], key: str) -> str:
    known = [row for row in rows if row[key] is not None]
    return min(known, key=lambda row: row[key])["fitted"] if known else "none"


def _each(rows: Sequence[dict[str, Any]], losses: Sequence[str]) -> str:
    found = {row["loss"]: row for row in rows}
    return " and ".join(f"{loss} ({_limits(found[loss])} bits a trial)" for loss in losses)


def _limits(row: dict[str, Any]) -> str:
    each = Contrast(row["left_out_bits"], row["left_out_low"], row["left_out_high"])
    value, low, high = (f"{x:+.3f}".replace("-", "\N{MINUS SIGN}") for x in
                        (each.value, each.low, each.high))  # fmt: skip
    return f"{value}, {low} to {high}"


def _at_rank_one(rows: Sequence[dict[str, Any]], found: dict[str, Any]) -> list[str]:
    """Which laws say of rank 1 what the limits of IdR exclude."""
    idr = found["figures"]["srd.idr"]
    if idr["low"] is None:
        return []
    off = [row["loss"] for row in rows if not idr["low"] <= row["rank1"] <= idr["high"]]
    said = f"{', '.join(off)} say of it what these exclude" if off else "all laws lie within"
    return [
        f"first ranks are {100 * idr['value']:.1f} % ({100 * idr['low']:.1f} to "
        f"{100 * idr['high']:.1f}), {said}"
    ]
