"""What an unfinished run of many recordings has done so far, so that the next one goes on."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path

from monitor.atomic import not_written
from monitor.errors import StoreError, UsageError
from monitor.locks import lock
from monitor.managed import Managed
from monitor.private_files import open_private
from monitor.safe_text import file_name
from monitor.version import __version__

__all__ = ["NAME", "Journal", "note"]

NAME = ".unfinished-protect"
"""The file, within the folder that is written."""


class Journal(Managed):
    """A private file (mode 0600) beside what is made, until all of it is made.

    It holds the seed, since a run that goes on must draw as the one before did; whoever has it can
    draw the same, so it goes when the work is done. One run at a time writes into a folder.

    Args:
        folder: that is written; it is made where it is not there.
        what: of which settings the work depends.
        seed: that was asked for; None draws one, or takes that of the run that is gone on with.

    Attributes:
        path: of the file.
        seed: what the run draws by.
        made: of each target, by its name within the folder: hashes of the source and the target.

    Raises:
        UsageError: an unfinished run of other settings has been there.
        StoreError: another run is at it, the folder cannot be written, or the file is damaged or
            another user's, who would know the seed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with Journal(Path(place), ("noise:10",), None) as first:
        ...         note(first.path, "a.wav", ("1", "2"))
        ...     with Journal(Path(place), ("noise:10",), None) as second:
        ...         second.finish()
        ...     second.made, second.seed == first.seed, list(Path(place).iterdir())
        ({'a.wav': ('1', '2')}, True, [])
    """

    def __init__(self, folder: Path, what: tuple[object, ...], seed: int | None) -> None:
        self.path = folder / NAME
        asked = hashlib.sha256(repr((__version__, what, seed)).encode("utf-8", "replace"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = open_private(self.path, os.O_RDWR | os.O_CREAT)
            self._file = os.fdopen(handle, "r+", encoding="utf-8")
        except OSError as error:
            raise not_written(self.path, error) from None
        try:
            self._take(asked.hexdigest(), seed)
        except BaseException:
            self._file.close()
            raise

    def _take(self, asked: str, seed: int | None) -> None:
        """Read what is there, or begin."""
        folder = file_name(self.path.parent)
        try:
            lock(self._file.fileno())
        except BlockingIOError:
            raise StoreError(f"another run is writing into {folder}; wait for it") from None
        try:
            text = self._file.read()
            whole = text[: text.rfind("\n") + 1]  # a kill may have torn the last line
            os.ftruncate(self._file.fileno(), len(whole.encode()))
            lines = [json.loads(line) for line in whole.splitlines()]
            self.made = {line["target"]: (line["source"], line["made"]) for line in lines[1:]}
            known = (lines[0]["asked"], int(lines[0]["seed"], 16)) if lines else None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StoreError(f"{folder}/{NAME} is damaged; remove it to begin anew") from None
        if known is None:
            self.seed = secrets.randbits(128) if seed is None else seed
            _append(self.path, {"asked": asked, "seed": f"{self.seed:x}"})
        elif known[0] != asked:
            raise UsageError(
                f"{folder} holds an unfinished run of other settings: finish it with those, or "
                f"remove {folder}/{NAME} to begin anew"
            )
        else:
            self.seed = known[1]

    def finish(self) -> None:
        """All is made: nothing is left to go on with."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let the next run at it."""
        self._file.close()


def note(journal: Path, target: str, hashes: tuple[str, str]) -> None:
    """Write down that one more is made; any process of the run may.

    Args:
        journal: the file of a `Journal` that is open.
        target: what was made, by its name within the folder.
        hashes: of the source and of the target.

    Raises:
        StoreError: it cannot be written.
    """
    _append(journal, {"target": target, "source": hashes[0], "made": hashes[1]})


def _append(journal: Path, line: dict[str, str]) -> None:
    """A line at one go, so that lines of several processes do not mix."""
    try:
        handle = open_private(journal, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, f"{json.dumps(line)}\n".encode())
        finally:
            os.close(handle)
    except OSError as error:
        raise not_written(journal, error) from None
