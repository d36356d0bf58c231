"""Laws in a file of their own, to be used with any population of the same features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from monitor.errors import StoreError
from monitor.phrases import printable
from monitor.population.cohort import COHORT, Cohort, load_cohort, pack_cohort
from monitor.population.law import Laws
from monitor.population.storing import read_store, write_store

__all__ = ["cohort_of_laws", "load_laws", "save_laws"]


def save_laws(path: Path, laws: Laws, cohort: Cohort | None = None) -> None:
    """Write laws, without templates: npz without pickle, mode 0600, atomically.

    Args:
        path: of the file.
        laws: any.
        cohort: that their evidence was learnt against; it means nothing without.
    """
    packed, arrays = laws.pack()
    header: dict[str, Any] = {"laws": packed}
    if cohort is not None:
        header["cohort"], more = pack_cohort(cohort)
        arrays |= more
    write_store(path, "law", header, arrays)


def load_laws(path: Path) -> Laws:
    """Read what ``save_laws`` wrote; StoreError or SchemaError where that is impossible."""
    header, arrays = read_store(path, "law", without=(COHORT,))
    try:
        return Laws.unpack(header["laws"], arrays)
    except (KeyError, TypeError, ValueError, AttributeError, StoreError) as error:
        raise StoreError(f"{path}: is incomplete ({printable(error)}); make it again") from error


def cohort_of_laws(path: Path) -> Cohort | None:
    """The cohort that laws in a file were learnt against, if it came with them.

    Raises:
        StoreError, SchemaError: it cannot be read.
    """
    header, _ = read_store(path, "law", without=("law/", COHORT))
    note = header.get("cohort")
    if note is None:
        return None
    try:
        return load_cohort(path, str(note["sha256"]), "law")
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path}: is incomplete ({printable(error)}); make it again") from error
