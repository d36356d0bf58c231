"""A whole run: what is heard, what weighs it, and all that it is written to, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.run.measuring import Measurement, measure
    from monitor.run.protection import Protection
    from monitor.run.run import LedgerFile, LogFile, Run

__all__ = ["LedgerFile", "LogFile", "Measurement", "Protection", "Run", "measure"]

_HOMES = {
    "measuring": "Measurement measure",
    "protection": "Protection",
    "run": "LedgerFile LogFile Run",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
