"""Pure mathematics: functions and values, arrays in, arrays out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.maths import identification

__all__ = ["identification"]

__getattr__, __dir__ = lazily(__name__, {}, __all__)
