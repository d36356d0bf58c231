"""Figures as rows and columns: CSV, Parquet and data frames, with the unit of every column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.tables.columns import Column
    from monitor.tables.readings import Readings

__all__ = ["Column", "Readings"]

_HOMES = {"Column": "columns", "Readings": "readings"}
__getattr__, __dir__ = lazily(__name__, _HOMES)
