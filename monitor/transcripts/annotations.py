"""Turns of annotations: a tier a person, as ELAN and Praat keep them; pympi reads the files."""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monitor.errors import SourceError
from monitor.phrases import plural
from monitor.safe_text import file_name, printable

SUFFIXES = (".eaf", ".textgrid")
_SILENCE = frozenset({"sil", "sp", "<sil>", "silent", "silence", "<p>", "<p:>", "#"})
"""What aligners write where nobody speaks."""
_ALIGNED = re.compile(r"\s+-\s+(words?|phones?)$", re.IGNORECASE)
_DAMAGE = (ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RuntimeError,
           StopIteration, struct.error, OSError, MemoryError)  # fmt: skip
_NAMED = 5
_MOST_BYTES = 5_000_000

Interval = tuple[float, float, str]


def read_intervals(path: Path) -> tuple[list[Interval], list[str]]:
    """Start, end and label of all that somebody says, in seconds; and notices, a line each.

    A tier is a person: of ELAN its participant, where it names one, else its name; tiers that
    depend on another and tiers of points are left out, and what an aligner adds to the name
    (``ann - words``). Of a file with one tier the texts are the labels.

    Raises:
        SourceError: it cannot be read, or the extra ``annotations`` is not installed.
    """
    name, kind = file_name(path), "ELAN" if path.suffix.lower() == ".eaf" else "Praat"
    try:
        import pympi
    except ImportError:
        raise SourceError(
            f"{name}: files of {kind} need the extra 'annotations': pip install pympi-ling"
        ) from None
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(2)
    except OSError as error:
        raise SourceError(f"cannot read the turns of {name}: {error.strerror}") from None
    if size > _MOST_BYTES:
        raise SourceError(f"{name} is too large to hold turns: {_MOST_BYTES // 10**6} MB at most")
    tiers: list[tuple[str, list[Interval]]] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a version of ELAN that it does not know
            tiers += _of_elan(pympi, path) if kind == "ELAN" else _of_praat(pympi, path, head)
    except UnicodeDecodeError:
        raise SourceError(
            f"{name} is no UTF-8 text: save it again as UTF-8 (Praat: Text writing preferences)"
        ) from None
    except Exception as error:  # pympi raises bare ones
        if type(error) is not Exception and not isinstance(error, _DAMAGE):
            raise
        raise SourceError(f"{name} is no file of {kind}, or is damaged") from None
    said = [
        (label, [(low, high, text) for low, high, text in rows if high > low and _says(text)])
        for label, rows in tiers
    ]
    said = [(label, rows) for label, rows in said if rows]
    if len(said) == 1 and len(tiers) == 1:
        return [(low, high, printable(text.strip())) for low, high, text in said[0][1]], []
    names = list(dict.fromkeys(label for label, _ in said))
    some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    told = [f"{name}: {plural(len(names), 'tier')} taken as people: {some}"] if names else []
    return [(low, high, label) for label, rows in said for low, high, _ in rows], told


def _says(text: str) -> bool:
    return bool(text.strip()) and text.strip().lower() not in _SILENCE


def _of_elan(pympi: Any, path: Path) -> Iterator[tuple[str, list[Interval]]]:
    found = pympi.Eaf(str(path), suppress_version_warning=True)
    for tier, (_, _, attributes, _) in found.tiers.items():
        if attributes.get("PARENT_REF"):
            continue
        rows = [
            (begin / 1000, end / 1000, str(text))
            for begin, end, text, *_ in found.get_annotation_data_for_tier(tier)
            if begin is not None and end is not None
        ]
        yield printable(attributes.get("PARTICIPANT") or tier), rows


def _of_praat(pympi: Any, path: Path, head: bytes) -> Iterator[tuple[str, list[Interval]]]:
    utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    found = pympi.TextGrid(str(path), codec="utf-16" if utf16 else "utf-8-sig")
    for tier in found.tiers:
        if tier.tier_type == "IntervalTier":
            rows = [(float(a), float(b), str(text)) for a, b, text in tier.intervals]
            yield printable(_ALIGNED.sub("", str(tier.name)).strip() or "tier"), rows
