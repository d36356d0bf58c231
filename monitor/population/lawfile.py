"""Laws in a file of their own, to be used with any population of the same features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitor.errors import StoreError
from monitor.population.cohort import Cohort, pack_cohort, unpack_cohort
from monitor.population.law import Laws
from monitor.population.storing import read_store, write_store
from monitor.safe_text import printable
from monitor.types import AnyArray

__all__ = ["load_laws", "save_laws"]


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


def load_laws(path: Path) -> tuple[Laws, Cohort | None]:
    """Read what ``save_laws`` wrote: laws, and the cohort of their evidence if it came with them.

    Raises:
        StoreError: it is no such file, incomplete or damaged.
        SchemaError: a newer version wrote it.
    """
    header, arrays = read_store(path, "law")
    laws, note = _unpacked(path, header, arrays), header.get("cohort")
    if note is None:
        return laws, None
    try:
        return laws, unpack_cohort(path, str(note["sha256"]), header, arrays)
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path}: is incomplete ({printable(error)}); make it again") from error


def _unpacked(path: Path, header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Laws:
    try:
        return Laws.unpack(header["laws"], arrays)
    except (KeyError, TypeError, ValueError, AttributeError, StoreError) as error:
        raise StoreError(f"{path}: is incomplete ({printable(error)}); make it again") from error
