"""An alert rings the terminal's bell."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

__all__ = ["Bell"]


class Bell:
    """A sink that rings once for every alert or warning raised, where stderr is a terminal.

    Args:
        terminal: where to; stderr by default.
    """

    def __init__(self, terminal: TextIO | None = None) -> None:
        self._terminal = terminal or sys.stderr

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record of the run."""
        if record["type"] == "alert" and record["state"] == "raised" and self._terminal.isatty():
            self._terminal.write("\a")
            self._terminal.flush()

    def settle(self) -> list[str]:
        """A bell does not fail."""
        return []

    def close(self) -> None:
        """Nothing is left to do."""
