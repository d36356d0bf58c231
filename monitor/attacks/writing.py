"""Writes what an attack found into a folder: a page, pictures, and files for other programs."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from monitor.atomic import atomic_write, not_written
from monitor.attacks.page import page, pictured
from monitor.attacks.results import FIGURES, AttackResults, AttackRow
from monitor.attacks.wording import caveats, headline
from monitor.documents.shell import save_document
from monitor.errors import StoreError, UsageError
from monitor.evaluation.figure import Figure
from monitor.evaluation.report.report import figure_json
from monitor.plots.attacks import plot_attacks
from monitor.safe_text import file_name

__all__ = ["FILES", "KEPT", "check_folder", "results_csv", "results_json", "write_results"]

KEPT = "kept"
"""The folder, within that of the results, of what long work goes on from: private."""
FILES = ("index.html", "results.json", "results.csv", "bits.svg", "bits.png")
SCHEMA = 1


def check_folder(folder: Path) -> None:
    """Refuse to write among things that are not ours.

    Raises:
        UsageError: it is a file, or holds something else.
        StoreError: it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"-o {file_name(folder)} is a file; name a folder")
    place = next(each for each in (folder, *folder.resolve().parents) if each.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        why = "permission denied" if place.is_dir() else f"{file_name(place)} is no folder"
        raise StoreError(f"cannot write {file_name(folder)}: {why}; choose another place")
    others = [
        each.name
        for each in (folder.iterdir() if folder.exists() else ())
        if each.name not in (*FILES, KEPT) and not each.name.startswith(".")
    ]
    if others:
        raise UsageError(
            f"-o {file_name(folder)} holds something else ({sorted(others)[0]}); name an empty "
            "folder, or one that monitor attack made"
        )


def write_results(results: AttackResults, folder: Path) -> None:
    """Write all `FILES`, each private (mode 0600) and whole or not at all.

    Raises:
        StoreError: the folder cannot be written.
    """
    _write(folder / "results.json", results_json(results))
    _write(folder / "results.csv", results_csv(results))
    for name in ("bits.svg", "bits.png"):
        plot_attacks(folder / name, *pictured(results))
    save_document(page(results), folder / "index.html")


def results_json(results: AttackResults) -> str:
    """Everything as JSON: a figure is an object with value, limits, unit, ceiling and note."""
    made = {
        "schema": SCHEMA,
        "headline": headline(results),
        "settings": asdict(results.settings),
        "rows": [_row(row) for row in results.rows],
        "measured": {m: _figures({f.key: f for f in fs}) for m, fs in results.measured.items()},
        "attributes": {name: list(rows) for name, rows in results.attributes.items()},
        "notes": [*results.notes, *caveats(results)],
        "problems": list(results.problems),
    }
    return json.dumps(made, indent=1, allow_nan=False) + "\n"


def results_csv(results: AttackResults) -> str:
    """One line a row; of each figure value, lower and upper limit."""
    plain = [key for key in AttackRow.__slots__ if key != "figures"]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    parts = ("", ".low", ".high")
    table.writerow([*plain, *(f"{key}{part}" for key in FIGURES for part in parts)])
    for row in results.rows:
        numbers = [
            "" if value is None else repr(float(value))
            for key in FIGURES
            for value in _numbers(row.figures.get(key))
        ]
        table.writerow([*(getattr(row, key) for key in plain), *numbers])
    return text.getvalue()


def _numbers(figure: Figure | None) -> tuple[float | None, ...]:
    if figure is None:
        return None, None, None
    value = float("inf") if figure.text == "infinite" else figure.value
    return value, *figure.limits


def _row(row: AttackRow) -> dict[str, Any]:
    plain = {key: getattr(row, key) for key in AttackRow.__slots__ if key != "figures"}
    return {**plain, "figures": _figures(row.figures)}


def _figures(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {key: figure_json(figure) for key, figure in figures.items()}


def _write(path: Path, text: str) -> None:
    try:
        with atomic_write(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise not_written(path, error) from error
