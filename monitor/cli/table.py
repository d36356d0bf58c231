"""The calibration table, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["print_laws"]

_COLUMNS = (
    ("T s", "T", "g"),
    ("D s", "D", "g"),
    ("session", "session", ""),
    ("readers", "speakers", "d"),
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
    ("notes", "notes", ""),
)


def print_laws(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line a cell to stdout; wide, and never cut where stdout is no terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=250)
    for feature in dict.fromkeys(row["feature"] for row in rows):
        table = Table(
            title=f"{feature}: bits by length heard (T) and template length (D)", box=None
        )
        for title, _, style in _COLUMNS:
            table.add_column(title, justify="right" if style else "left", no_wrap=True)
        for row in rows:
            if row["feature"] == feature:
                table.add_row(*[_cell(row, key, style) for _, key, style in _COLUMNS])
        console.print(table)
    console.print(
        "MeanD: plug-in, Miller-Madow and of the beta-binomial model with 95 % limits over resampled "
        "speakers. null: what no evidence would read (speakers permuted). KL and rank-1: misfit of "
        "the model, bits. local: mean local bits on readers not used for fitting.",
        soft_wrap=True,
    )


def _cell(row: Mapping[str, Any], key: str | tuple[str, str], style: str) -> str:
    if isinstance(key, tuple):
        return "..".join(_cell(row, part, style) for part in key)
    value = row[key]
    if value is None:
        return "-"
    return ", ".join(value) if isinstance(value, list) else format(value, style)
