"""What a browser may take away of a run: its records, a picture, a report; never a template."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any

from monitor.plots.canvas import written
from monitor.plots.curve import figure_of
from monitor.serve.report import run_report
from monitor.sinks.console import RunBuffer
from monitor.sinks.jsonl import line_of

MOST_KEPT_BYTES = 32 * 1024 * 1024
"""Of packed records: of a longer run those are given that pictures are drawn from."""
_CHUNK_BYTES = 64 * 1024


class KeptRun:
    r"""A sink that keeps a run in memory; one thread writes, others read.

    Example:
        >>> kept = KeptRun()
        >>> kept.write({"type": "reading", "seconds": 1.0})
        >>> b"".join(kept.lines())
        b'{"type":"reading","seconds":1.0}\n'
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thinned = RunBuffer()
        self._pack, self._packed = zlib.compressobj(6), bytearray()

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record."""
        line = line_of(record)
        with self._lock:
            self._thinned.write(record)
            if len(self._packed) <= MOST_KEPT_BYTES:
                self._packed += self._pack.compress(line)

    def close(self) -> None:
        """Nothing is left to do: it can be read on."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """Records to draw: readings are thinned evenly on a log axis."""
        with self._lock:
            return self._thinned.records

    def lines(self) -> Iterator[bytes]:
        """The JSON lines so far, in pieces: those that ``--jsonl`` writes."""
        with self._lock:
            whole = len(self._packed) <= MOST_KEPT_BYTES
            packed = bytes(self._packed) + self._pack.copy().flush() if whole else b""
        if not whole:
            yield from map(line_of, self.records)
            return
        unpack = zlib.decompressobj()
        while packed:
            yield unpack.decompress(packed, _CHUNK_BYTES)
            packed = unpack.unconsumed_tail


_DRAWING = threading.Lock()
"""The style of a picture is the process's."""


def _picture(kept: KeptRun) -> Iterator[bytes]:
    file = BytesIO()
    with _DRAWING:
        written(figure_of(kept.records), file, ".png")
    return iter([file.getvalue()])


def _report(kept: KeptRun) -> Iterator[bytes]:
    with _DRAWING:
        return iter([run_report(kept.records).encode()])


DOWNLOADS: Mapping[str, tuple[str, Callable[[KeptRun], Iterator[bytes]]]] = {
    "run.jsonl": ("application/x-ndjson", KeptRun.lines),
    "run.png": ("image/png", _picture),
    "run.html": ("text/html", _report),
}
"""By name: the media type, and what makes it."""
