"""The calibration table, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor.cli.console import made_console

__all__ = ["print_laws"]

_COLUMNS = (
    ("T s", "T", "g"),
    ("D s", "D", "g"),
    ("session", "session", ""),
    ("speakers", "speakers", "d"),
    ("N", "candidates", "d"),
    ("trials", "trials", "d"),
    ("alpha", "alpha", ".3g"),
    ("beta", "beta", ".3g"),
    ("MeanD raw", "mean_bits_raw", ".2f"),
    ("M-M", "mean_bits_miller_madow", ".2f"),
    ("model", "mean_bits_model", ".2f"),
    ("limits", ("mean_bits_low", "mean_bits_high"), ".2f"),
    ("null", ("null_low", "null_high"), ".2f"),
    ("IdR", "identification_rate", ".2f"),
    ("StDD", "std_bits", ".2f"),
    ("MaxD", "max_bits", ".2f"),
    ("@rank", "max_rank", "d"),
    ("Spread", "spread", ".2f"),
    ("KL", "kl_bits", ".3f"),
    ("rank-1", "rank1_match_bits", ".2f"),
    ("local", "held_out_local_bits", ".2f"),
    ("ECE", "calibration_error", ".2f"),
    ("strangers", "open_set_area", ".2f"),
    ("evidence", "evidence_bits", ".1f"),
    ("support", "support_bits", ".1f"),
    ("Cllr", "evidence_cllr", ".2f"),
    ("least", "evidence_min_cllr", ".2f"),
    ("LR of others", ("others_mean_ratio_low", "others_mean_ratio_high"), ".2f"),
    ("enrolled", "enrolled_area", ".2f"),
    ("notes", "notes", ""),
)


_FIRST_TO_GO = (
    *("LR of others", "least", "Cllr", "enrolled"),
    *("@rank", "MaxD", "Spread", "rank-1", "KL", "StDD", "alpha", "beta", "M-M", "MeanD raw"),
    *("strangers", "support", "evidence", "trials", "ECE", "IdR", "N", "speakers"),
)
"""Columns that a narrow terminal does without, in this order."""
_PIPED = 100
"""Columns of text where there is no terminal to ask."""
_LEGEND = {
    "T s": "speech seconds of the test",
    "D s": "of the template",
    "alpha": "of the rank law, with beta",
    "MeanD raw": "mean bits by the plain histogram of ranks",
    "M-M": "with Miller and Madow's correction",
    "model": "mean bits of a rank (MeanD) by the rank law, with 95 % limits",
    "null": "the same without evidence but the prior's",
    "IdR": "share ranked first",
    "StDD": "spread of single ranks' bits",
    "MaxD": "the largest, at @rank",
    "Spread": "share of ranks likelier than chance",
    "KL": "misfit of the law",
    "rank-1": "at the first rank",
    "local": "mean bits for speakers not fitted on",
    "ECE": "error of the best guess's probability",
    "strangers": "how well they are told (0.5: chance)",
    "evidence": "mean log2 likelihood ratio of the speaker, whatever the crowd",
    "support": "the most that so many people can show",
    "Cllr": "cost of the ratios (1: useless)",
    "least": "what recalibration would leave of it",
    "LR of others": "mean ratio of other people (1 is allowed), 95 % limits",
    "enrolled": "strangers again, by the sum of all ratios",
}
"""What a column says."""


def print_laws(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line a cell to stdout, as many columns as the terminal has room for."""
    from rich.table import Table

    console = made_console(_PIPED)
    texts = {title: [_cell(row, key, style) for row in rows] for title, key, style in _COLUMNS}
    widths = {title: max(map(len, [title, *cells])) + 2 for title, cells in texts.items()}
    left_out = []
    for title in _FIRST_TO_GO:
        if sum(widths.values()) > console.width:
            left_out.append(title)
            del widths[title]
    for feature in dict.fromkeys(row["feature"] for row in rows):
        console.print(
            f"{feature}: bits by speech seconds heard (T) and enrolled (D)", soft_wrap=True
        )
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for title, _, style in _COLUMNS:
            if title in widths:
                table.add_column(title, justify="right" if style else "left", no_wrap=True)
        for i, row in enumerate(rows):
            if row["feature"] == feature:
                table.add_row(*[texts[title][i] for title in widths])
        console.print(table)
        console.print()
    console.print(
        ". ".join(f"{title}: {words}" for title, words in _LEGEND.items() if title in widths) + "."
    )
    if left_out:
        console.print(f"Left out for want of width: {', '.join(left_out)}; --json has everything.")


def _cell(row: Mapping[str, Any], key: str | tuple[str, str], style: str) -> str:
    if isinstance(key, tuple):
        return "..".join(_cell(row, part, style) for part in key)
    value = row[key]
    if value is None:
        return "-"
    return ", ".join(value) if isinstance(value, list) else format(value, style)
