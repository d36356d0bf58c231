"""Keeps results in a folder, each named by a hash of all that it depends on.

Long work that was interrupted goes on from them. A name is made by `result_key` of what went in,
with the `code_mark` of the code that worked on it: whatever changes, the result is made anew. What
lies there is trusted: the hash beside a result tells damage, not who wrote it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from monitor.files import atomic_write, is_ours, make_folder, not_written, sweep

_SUFFIX = ".result"
_OURS = re.compile(rf"[0-9a-f]{{64}}\{_SUFFIX}")
_PART = re.compile(rf"\.([0-9a-f]{{64}}\{_SUFFIX})\.\w{{8}}\.unfinished")


class ResultCache:
    """Results as bytes, each in a private file (mode 0600) that is whole or absent.

    Several programs may use one folder at once: who makes a result last has made the same.

    Raises:
        StoreError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache, key = ResultCache(Path(folder)), result_key({"seconds": 3.0})
        ...     before = cache.read(key)
        ...     cache.write(key, b"1.5")
        ...     before, cache.read(key), ResultCache(Path(folder), fresh=True).read(key)
        (None, b'1.5', None)
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self.folder = folder
        try:
            make_folder(folder)
            for path in list(folder.iterdir()):
                if part := _PART.fullmatch(path.name):
                    sweep(folder / part[1])  # of somebody who was killed
                elif fresh and _OURS.fullmatch(path.name):
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise not_written(folder, error) from error

    def read(self, key: str) -> bytes | None:
        """What was kept; None where nothing was, it is damaged, or another user put it there."""
        try:
            with self._path(key).open("rb") as file:
                found = file.read() if is_ours(os.fstat(file.fileno())) else b""
        except OSError:
            return None
        mark, _, content = found.partition(b"\n")
        return content if mark == _mark(content) else None

    def write(self, key: str, content: bytes) -> None:
        """Keep a result."""
        path = self._path(key)
        try:
            with atomic_write(path) as file:
                file.write(_mark(content) + b"\n" + content)
        except OSError as error:
            raise not_written(path, error) from error

    def forget(self, key: str) -> None:
        """Remove what was kept, if anything was."""
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"


def result_key(depends_on: Any) -> str:
    """The name of a result: a hash of what it depends on, as JSON.

    Raises:
        TypeError: something else is among them.
        ValueError: a number is not finite.

    Example:
        >>> result_key({"T": 3.0, "D": 30.0}) == result_key({"D": 30.0, "T": 3.0})
        True
    """
    text = json.dumps(depends_on, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def code_mark(*names: str) -> str:
    """A hash of the source of some modules and packages, all below them included.

    Example:
        >>> code_mark("monitor.maths") == code_mark("monitor.documents")
        False
        >>> code_mark("monitor.kinds") == code_mark("monitor.types")
        False
    """
    made = hashlib.sha256()
    for name in names:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        first = Path(spec.origin)
        sources = {name: first}
        if spec.submodule_search_locations is not None:
            below = first.parent.rglob("*.py")
            sources = {f"{name}.{p.relative_to(first.parent).as_posix()}": p for p in below}
        for place, path in sorted(sources.items()):
            file = path.read_bytes()
            made.update(f"{place} {len(file)}\n".encode() + file)
    return made.hexdigest()


def _mark(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
