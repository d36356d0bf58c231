"""Figures of systems as Markdown: what is kept, as USC's Table 1; ranks, as its Table 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.anonymity.figures import BITS, ROLES

__all__ = ["kept_table", "limited", "rank_table"]

_KEPT = {
    "similarity": ("SIM", 2),
    "phone_error": ("phone error", 2),
    "pitch_rank_correlation": ("pitch, Spearman", 2),
    "pitch_correlation": ("pitch, Pearson", 2),
}
_FIRST = "anonymity.share_rank_at_most_1"
_RANKS = {
    "rank p50": ("one", "anonymity.mean_rank_p50"),
    "rank p1": ("one", "anonymity.mean_rank_p1"),
    "P(rank ≤ 1)": ("one", _FIRST),
    "P(rank ≤ 5)": ("one", "anonymity.share_rank_at_most_5"),
    "MeanD, bits": ("one", BITS),
    "P(rank ≤ 1), all enrolled": ("all", _FIRST),
    "MeanD, all enrolled": ("all", BITS),
}
"""Columns: of one reference drawn for each test, or of all of them; and which figure."""


def kept_table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """What is left of voice, words and melody, by system."""
    lines = _head("system", "bits a second", *(label for label, _ in _KEPT.values()))
    for system, row in rows.items():
        figures = [limited(row[key], digits) for key, (_, digits) in _KEPT.items()]
        lines.append(_line(system, limited(row["bits_per_second"], 0), *figures))
    return "\n".join(lines)


def rank_table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Ranks by system and roles: of one reference of everybody drawn for each test, and of all."""
    lines = _head("system", "queries, references", *_RANKS)
    for system, row in rows.items():
        for name in ROLES:
            if name in row:
                both = row[name]
                roles = both["one"]["roles"].replace(" queries against ", ", ")
                figures = [
                    limited(both[how][key], 2) if key in both[how] else ""
                    for how, key in _RANKS.values()
                ]
                lines.append(_line(system, roles.removesuffix(" references"), *figures))
    both = next(iter(rows.values()))["linkability"]
    floors = [
        f"{both[how][key]['floor'] or 0:.2f}" if key in both[how] else ""
        for how, key in _RANKS.values()
    ]
    tests = f"N = {both['one']['N']}, {both['one']['tests']} tests; {both['all']['tests']} of all"
    return "\n".join([*lines, _line("nothing known", "", *floors), "", tests])


def limited(figure: Mapping[str, Any], digits: int) -> str:
    """A figure with its limits; empty where there is none.

    Example:
        >>> limited({"value": 0.5, "low": 0.25, "high": 0.75}, 2)
        '0.50 [0.25, 0.75]'
    """
    if figure["value"] is None:
        return ""
    if figure["low"] is None:
        return f"{figure['value']:.{digits}f}"
    value, low, high = (f"{figure[key]:.{digits}f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _head(*names: str) -> list[str]:
    return [_line(*names), "| " + " | ".join(["---"] * len(names)) + " |"]


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
