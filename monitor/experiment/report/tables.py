"""SRD's Tables II and III of a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.cells.measuring import MEAN
from monitor.phrases import plural

__all__ = ["TableText", "lengths_table", "table2", "table3", "table_rows"]

TableText = tuple[list[str], list[list[str]]]
"""Head and rows, as plain text."""

_COUNTED = (
    ("MeanD (bits)", "srd.mean_bits"),
    ("MeanD, bias taken off (bits)", "srd.mean_bits_miller_madow"),
    ("IdR (%)", "srd.idr"),
    ("MaxD (bits)", "srd.maxd_bits"),
    ("StDD (bits)", "srd.stdd_bits"),
    ("Spread (%)", "srd.spread"),
)
_FITTED = (
    ("MeanD (bits)", "mean_bits"),
    ("IdR (%)", "idr"),
    ("MaxD (bits)", "maxd_bits"),
    ("StDD (bits)", "stdd_bits"),
    ("Spread (%)", "spread"),
)


def table2(cell: MeasuredCell) -> TableText:
    """Disclosure of the ranks counted and of the laws fitted to them, a column a system."""
    systems = list(cell.systems.values())
    rows = [
        ["Ranks counted", name, *(_figure(found["figures"][key], name) for found in systems)]
        for name, key in _COUNTED
    ]
    for loss in ("CLL", "LL"):
        for name, key in _FITTED:
            rows.append([f"Law by {loss}", name, *(_law(found, loss, key, name) for found in
                                                  systems)])  # fmt: skip
    rows += [
        ["No evidence", "MeanD (bits)", *(_figure(found["figures"]["srd.null_model_bits"], "")
                                         for found in systems)],
        ["Baseline", "EER (%)", *(_figure(found["figures"]["verification.eer_rocch"], "%")
                                  for found in systems)],
        ["Made of", "trials of tested speakers",
         *(f"{found['trials']}\n{plural(found['tested'], 'speaker')}" for found in systems)],
    ]  # fmt: skip
    return ["", f"N = {len(cell.panel.speakers)}", *cell.systems], _once(rows)


def table3(cell: MeasuredCell) -> TableText:
    """How well the law by each loss fits, a column a system; the best of each in marks."""
    rows = []
    for title, key in (
        ("KL divergence (bits)", "kl_bits"),
        ("Rank-1 match (bits)", "rank1_match_bits"),
        ("Cost on speakers left out, more than LL (bits a trial)", "left_out_bits"),
    ):
        best = {system: _best(found, key) for system, found in cell.systems.items()}
        for i, row in enumerate(next(iter(cell.systems.values()))["losses"]):
            cells = [
                _loss(found["losses"][i], key, row["loss"] == best[system])
                for system, found in cell.systems.items()
            ]
            rows.append([title, row["loss"], *cells])
    return ["Measure", "Loss", *cell.systems], _once(rows)


def table_rows(cells: Sequence[MeasuredCell]) -> Iterator[tuple[Any, ...]]:
    """Both tables as data: session, system, what, of what, value and limits."""
    for cell in cells:
        for system, found in cell.systems.items():
            for _, key in (*_COUNTED, ("", MEAN), ("", "srd.null_model_bits"),
                           ("", "verification.eer_rocch")):  # fmt: skip
                each = found["figures"].get(key, {})
                yield (cell.panel.session, system, "counted", key,
                       *(each.get(x) for x in ("value", "low", "high")))  # fmt: skip
            for row in found["losses"]:
                for _, key in _FITTED:
                    yield cell.panel.session, system, row["loss"], key, row[key], None, None
                for key in ("kl_bits", "rank1_match_bits"):
                    yield cell.panel.session, system, row["loss"], key, row[key], None, None
                yield (cell.panel.session, system, row["loss"], "left_out_bits",
                       row["left_out_bits"], row["left_out_low"], row["left_out_high"])  # fmt: skip


def lengths_table(cell: MeasuredCell, systems: Sequence[str]) -> list[str]:
    """A row for a cell of the sweep: T, D, and MeanD and IdR of each system that heard anything."""
    made = [f"{cell.test_seconds:g} s", f"{cell.template_seconds:g} s"]
    for system in systems:
        if system not in cell.systems:
            made += ["not heard", ""]
            continue
        found = cell.systems[system]
        mean, idr = found["figures"][MEAN], found["figures"]["srd.idr"]
        made.append(f"{mean['value']:.2f}{_limits(mean, 1.0, 2)}")
        made.append(f"{100 * idr['value']:.1f}{_limits(idr, 100.0, 1)}")
    return made


def _figure(figure: dict[str, Any], name: str) -> str:
    if figure["value"] is None:
        return "–\nfewer trials than ranks, or ties" if "bias" in name else "–"
    scale = 100.0 if "%" in name else 1.0
    return f"{scale * figure['value']:.2f}{_limits(figure, scale, 2)}"


def _limits(figure: dict[str, Any], scale: float, digits: int) -> str:
    if figure["low"] is None or figure["high"] is None:
        return ""
    low, high = (f"{scale * figure[end]:.{digits}f}" for end in ("low", "high"))
    return f"\n{low} to {high}"


def _law(found: dict[str, Any], loss: str, key: str, name: str) -> str:
    row = next(each for each in found["losses"] if each["loss"] == loss)
    if row["fitted"] != loss:
        return "–\nrefused"
    if loss == "LL" and key == "mean_bits":
        return _figure(found["figures"][MEAN], name)
    scale = 100.0 if "%" in name else 1.0
    return f"{scale * row[key]:.2f}"


def _best(found: dict[str, Any], key: str) -> str | None:
    known = [row for row in found["losses"] if row[key] is not None and row["fitted"] ==
             row["loss"]]  # fmt: skip
    return min(known, key=lambda row: row[key])["loss"] if known else None


def _loss(row: dict[str, Any], key: str, best: bool) -> str:
    if row["fitted"] != row["loss"]:
        return "–\nrefused"
    if row[key] is None:
        return "–"
    mark = " ←" if best else ""
    if key != "left_out_bits":
        return f"{_power(row[key])}{mark}"
    if row["loss"] == "LL":
        return f"0{mark}"
    made = f"{row[key]:+.4f}{mark}"
    if row["left_out_low"] is not None:  # too few speakers have none
        made += f"\n{row['left_out_low']:+.4f} to {row['left_out_high']:+.4f}"
    return made.replace("-", "\N{MINUS SIGN}")


def _once(rows: list[list[str]]) -> list[list[str]]:
    """The first name of a row only where it changes."""
    before = ["", *(row[0] for row in rows)]
    return [["" if row[0] == name else row[0], *row[1:]] for name, row in
            zip(before, rows, strict=False)]  # fmt: skip


def _power(value: float) -> str:
    """A small number as a paper prints it.

    Example:
        >>> _power(0.0166), _power(0.0)
        ('1.66×10⁻²', '0')
    """
    if value == 0:
        return "0"
    digits, exponent = f"{value:.2e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}×10{raised}"
