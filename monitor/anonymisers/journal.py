"""Journal of an unfinished run over many recordings."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from pathlib import Path

from monitor.errors import StoreError, UsageError
from monitor.files import lock, make_folder, open_private, writing
from monitor.lazy import Managed
from monitor.safe_text import file_name
from monitor.version import __version__

NAME = ".unfinished-protect"  # in the output folder


class Journal(Managed):
    """Record of an unfinished run of many recordings, in a private file in the output folder.

    It contains the seed, because a resumed run must draw the same random numbers. An attacker with
    the seed could draw them too, so the file is removed at the end. Only one run at a time writes
    into a folder. ``made`` maps each target's name in the folder to the hashes of source and
    target.

    Raises:
        UsageError: if the folder has an unfinished run with other settings.
        StoreError: if another run is active, the folder is not writable, the file is damaged, or
            it belongs to another user, who would know the seed.
    """

    def __init__(self, folder: Path, what: tuple[object, ...], seed: int | None) -> None:
        self.path = folder / NAME
        settings = hashlib.sha256(repr((__version__, what, seed)).encode("utf-8", "replace"))
        with writing(self.path):
            make_folder(folder)
            handle = open_private(self.path, os.O_RDWR | os.O_CREAT)
            self._file = os.fdopen(handle, "r+", encoding="utf-8")
        try:
            self._begin(settings.hexdigest(), seed)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, settings: str, seed: int | None) -> None:
        folder = file_name(self.path.parent)
        try:
            lock(self._file.fileno())
        except BlockingIOError:
            raise StoreError(f"another run is writing into {folder}; wait for it") from None
        try:
            text = self._file.read()
            complete = text[: text.rfind("\n") + 1]  # a kill may have torn the last line
            os.ftruncate(self._file.fileno(), len(complete.encode()))
            lines = [json.loads(line) for line in complete.splitlines()]
            self.made = {line["target"]: (line["source"], line["made"]) for line in lines[1:]}
            header = (lines[0]["asked"], int(lines[0]["seed"], 16)) if lines else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise StoreError(f"{folder}/{NAME} is damaged; remove it to start over") from None
        if header is None:
            self.seed = secrets.randbits(128) if seed is None else seed
            _append(self.path, {"asked": settings, "seed": f"{self.seed:x}"})
        elif header[0] != settings:
            raise UsageError(
                f"{folder} contains an unfinished run with other settings: finish it with those, "
                f"or remove {folder}/{NAME} to start over"
            )
        else:
            self.seed = header[1]

    def finish(self) -> None:
        """Remove the journal of a complete run."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Unlock the folder for the next run."""
        self._file.close()


def note(journal: Path, target: str, hashes: tuple[str, str]) -> None:
    """Record a finished target with the hashes of source and target, from any process."""
    _append(journal, {"target": target, "source": hashes[0], "made": hashes[1]})


def _append(journal: Path, line: dict[str, str]) -> None:
    """Append a line in one write, so that lines of several processes do not mix."""
    text = f"{json.dumps(line)}\n".encode()
    with writing(journal):
        handle = open_private(journal, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, text) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)
