"""Checks a path before a run is written there: is there a run already, and did it end?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from monitor.errors import UsageError

__all__ = ["spare", "standing"]

_LAST_BYTES = 1 << 20  # an end record is far shorter


def spare(output: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None]) -> None:
    """Refuse to write over what is about to be read.

    Raises:
        UsageError: the output is one of the inputs.
    """
    for name in inputs:
        path = Path(name) if name else None
        if path is not None and path.exists() and Path(output).exists() and path.samefile(output):
            raise UsageError(f"{output} is read by this run; write to another file")


def standing(path: str | os.PathLike[str]) -> str | None:
    r"""What a file holds that writing a run would destroy.

    Returns:
        ``"a finished run"``, ``"an unfinished run"``, ``"something else"``; None where there is
        nothing to lose: no such file, an empty one, a pipe or a device.

    Raises:
        OSError: it cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "run.jsonl")
        ...     for text in ('', 'dear diary', '{"type":"start"}\n{"type":"rea',
        ...                  '{"type":"start"}\n{"type":"end"}\n'):
        ...         _ = path.write_text(text)
        ...         print(standing(path))
        None
        something else
        an unfinished run
        a finished run
    """
    path = Path(path)
    if not path.is_file() or not path.stat().st_size:
        return None
    with path.open("rb") as file:
        first = file.readline(_LAST_BYTES)
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        last = file.read().rstrip().rpartition(b"\n")[2]
    if _kind(first) != "start":
        return "something else"
    return "a finished run" if _kind(last) == "end" else "an unfinished run"


def _kind(line: bytes) -> Any:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record.get("type") if isinstance(record, dict) else None
