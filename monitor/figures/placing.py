"""Files that appear whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from monitor.errors import StoreError

__all__ = ["placed"]


@contextlib.contextmanager
def placed(path: Path) -> Iterator[Path]:
    """Somewhere to write a file to, which then takes its place at once, or not at all.

    Raises:
        StoreError: the place cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with placed(Path(folder) / "a.txt") as part:
        ...         _ = part.write_text("whole")
        ...     [file.name for file in Path(folder).iterdir()]
        ['a.txt']
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise StoreError(
            f"cannot write {path.name}: {error.strerror or error}; choose another place"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
