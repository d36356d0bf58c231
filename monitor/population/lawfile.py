"""Laws in a file of their own, to be used with any population of the same features."""

from __future__ import annotations

from pathlib import Path

from monitor.errors import StoreError
from monitor.phrases import printable
from monitor.population.law import Laws
from monitor.population.storing import read_store, write_store

__all__ = ["load_laws", "save_laws"]


def save_laws(path: Path, laws: Laws) -> None:
    """Write laws, without templates: npz without pickle, mode 0600, atomically."""
    header, arrays = laws.pack()
    write_store(path, "law", {"laws": header}, arrays)


def load_laws(path: Path) -> Laws:
    """Read what ``save_laws`` wrote; StoreError or SchemaError where that is impossible."""
    header, arrays = read_store(path, "law")
    try:
        return Laws.unpack(header["laws"], arrays)
    except (KeyError, TypeError, ValueError, AttributeError, StoreError) as error:
        raise StoreError(f"{path}: is incomplete ({printable(error)}); make it again") from error
