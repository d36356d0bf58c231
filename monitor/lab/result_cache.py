"""A folder of results, each named by a hash of all its inputs.

Interrupted work resumes from them. `result_key` makes the name from the inputs and the version of
the computation, a number beside its code. Raise the version when results change, so that old ones
are computed again. Results are trusted: the hash in a file detects damage, but not another author.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

from monitor.files import atomic_write, is_ours, make_folder, sweep, writing

_OURS = re.compile(r"[0-9a-f]{64}\.result")
_UNFINISHED = re.compile(r"\.([0-9a-f]{64}\.result)\.\w{8}\.unfinished")


class ResultCache:
    """Results as bytes, each in a private file (mode 0600) that is whole or absent.

    Several programs may share a folder: equal keys have equal results.
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self.folder = folder
        with writing(folder):
            make_folder(folder)
            for path in list(folder.iterdir()):
                if unfinished := _UNFINISHED.fullmatch(path.name):
                    sweep(folder / unfinished[1])  # left by a killed process
                elif fresh and _OURS.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    def read(self, key: str) -> bytes | None:
        """Return a result; None if it is missing, damaged or another user's."""
        try:
            with self._path(key).open("rb") as file:
                content = file.read() if is_ours(os.fstat(file.fileno())) else b""
        except OSError:
            return None
        mark, _, content = content.partition(b"\n")
        return content if mark == _mark(content) else None

    def write(self, key: str, content: bytes) -> None:
        """Write a result."""
        path = self._path(key)
        with writing(path), atomic_write(path) as file:
            file.write(_mark(content) + b"\n" + content)

    def forget(self, key: str) -> None:
        """Remove a result if it exists."""
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.result"


def result_key(depends_on: object) -> str:
    """Return the name of a result, which is a hash of its inputs as JSON.

    Example:
        >>> result_key({"T": 3.0, "D": 30.0}) == result_key({"D": 30.0, "T": 3.0})
        True
    """
    text = json.dumps(depends_on, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _mark(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
