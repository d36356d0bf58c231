"""Damaged files for every reader: each is read, or refused in one printable line."""

from __future__ import annotations

import contextlib
import io
import resource
import signal
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from monitor.errors import MonitorError
from monitor.safe_text import is_printable
from tests.fuzz.readers import READERS, Reader

__all__ = ["Failure", "inputs_of", "try_one"]

ALARM_SECONDS = 60
"""Of processor time, for one small file: a hang, not a slow machine."""
MOST_KIBIBYTES = 300 * 1024


class Hang(BaseException):
    """Not an Exception: no reader may catch it."""


@dataclass(frozen=True)
class Failure:
    """What a reader did to a file that it should have read or refused."""

    reader: str
    seed: str
    what: str
    data: bytes


def inputs_of(total: int) -> dict[str, int]:
    """How many inputs each reader gets of so many in all.

    Example:
        >>> sum(inputs_of(2000).values()) in range(1950, 2050)
        True
    """
    parts = sum(reader.share for reader in READERS)
    return {each.name: max(1, round(total * each.share / parts)) for each in READERS}


def failures(reader: Reader, seed: int, count: int, folder: Path) -> Iterator[Failure | None]:
    """One input after the other: None where all is well."""
    sound = folder / "sound"
    sound.mkdir(parents=True)
    path = sound / reader.file
    reader.make(path)
    reader.use(path)  # the sound one itself
    reader.make(path) if not path.exists() else None
    whole = path.read_bytes()
    for number in range(count):
        name = f"{seed}:{reader.name}:{number}"
        data = reader.mutate(Random(name), whole, folder)
        path.write_bytes(data)
        what = try_one(reader, path)
        for beside in sound.glob(f"{path.name}-*"):  # a database's
            beside.unlink()
        yield None if what is None else Failure(reader.name, name, what, data)


def try_one(reader: Reader, path: Path) -> str | None:
    """Read one file; what was wrong with how it was read, or None."""
    before = _peak_kibibytes(afresh=True)
    previous = signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, ALARM_SECONDS)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("error")
            reader.use(path)
    except MonitorError as error:
        if not is_printable(str(error)) or not str(error):
            return f"the message is no printable line: {error!a}"
    except Hang:
        return "it hangs"
    except Exception:
        return traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    grown = _peak_kibibytes() - before
    if grown > MOST_KIBIBYTES:
        return f"it took {grown // 1024} MiB"
    return None


def _peak_kibibytes(*, afresh: bool = False) -> int:
    """The most memory that this process has had; ``afresh`` forgets what came before.

    A process that runs many tests has had more already, which would hide what one file takes.
    """
    if afresh:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not on Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(status.split("VmHWM:")[1].split()[0])


def _too_long(*_: Any) -> None:
    raise Hang
