"""What a corpus says about its speakers beside their names, such as their gender."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from pathlib import Path

from monitor.corpus.tables import table_of
from monitor.errors import UsageError
from monitor.evaluation.input.attributes import Attribute, read_attribute
from monitor.evaluation.input.files import fields, separator_of

__all__ = ["groups_of"]

_USUAL = ("gender", "sex")
_KALDI = "spk2gender"


def groups_of(
    corpus: Path, speakers: Collection[str], file: Path | None = None, column: str | None = None
) -> Attribute | None:
    """An attribute of the speakers of a corpus.

    Args:
        corpus: the folder or manifest.
        speakers: of whom it is wanted.
        file: a table or a Kaldi ``spk2gender`` that has it; None for the manifest, or for the
            ``spk2gender`` beside a ``wav.scp``.
        column: of the table; None for ``gender`` or ``sex``.

    Returns:
        what is said of these speakers; None where nothing is, and nobody has asked.

    Raises:
        UsageError: no such column, or a speaker with two values.
        StoreError: the file cannot be read.
    """
    table = file or table_of(corpus)
    if file is None and table is not None and table.name == "wav.scp":
        beside = table.parent / _KALDI
        table = beside if beside.is_file() else None
    if file is None and table is not None and table.name != _KALDI and column is None:
        column = _usual(table)
        table = table if column else None
    if table is None and column is not None:
        raise UsageError(f"no table of {corpus.name} says who is of which {column}: give --groups")
    if table is None:
        return None
    found = read_attribute(table, column)
    said = {unicodedata.normalize("NFC", name): value for name, value in found.of.items()}
    named = found.name or ("gender" if table.name == _KALDI else "group")
    return Attribute(found.label, named, {name: said[name] for name in speakers if name in said})


def _usual(table: Path) -> str | None:
    """The column of a manifest that says it."""
    with table.open(encoding="utf-8-sig") as lines:
        first = lines.readline()
    head = fields(first, separator_of(first))
    return next((name for name in head if name.lower() in _USUAL), None)
