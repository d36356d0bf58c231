"""Private JSON lines that a run adds to as it goes, so that one that is stopped can go on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson

__all__ = ["add_row"]


def add_row(path: Path, row: Mapping[str, Any]) -> None:
    """Write one row more; a file that this makes has mode 0600."""
    with open(path, "ab", opener=partial(os.open, mode=0o600)) as file:
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
