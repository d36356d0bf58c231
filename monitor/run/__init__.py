"""A whole run: what is heard, what weighs it, and all that it is written to, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.run.measuring import Measurement, MeasurementSettings, measure
    from monitor.run.protection import Protection
    from monitor.run.run import LedgerFile, LogFile, Run, RunSettings

__all__ = [
    "LedgerFile",
    "LogFile",
    "Measurement",
    "MeasurementSettings",
    "Protection",
    "Run",
    "RunSettings",
    "measure",
]

_HOMES = {
    "measuring": "Measurement MeasurementSettings measure",
    "protection": "Protection",
    "run": "LedgerFile LogFile Run RunSettings",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
