"""Downloads of a run: its records, a picture, a report; never a template."""

from __future__ import annotations

import base64
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson

from monitor import phrases
from monitor.plots.canvas import write_figure
from monitor.plots.curve import draw_run, heading, read_columns
from monitor.sinks.console import RunBuffer
from monitor.sinks.jsonl import line_of
from monitor.sinks.summary import (
    PEOPLE_COLUMNS,
    describe_event,
    people_rows,
    summary_notes,
    summary_rows,
)
from monitor.version import __version__

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
        self._pack, self._packed = zlib.compressobj(6), bytearray()
        self._thinned: RunBuffer | None = None  # once the packed ones are too many

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record."""
        line = line_of(record)
        with self._lock:
            if self._thinned is not None:
                self._thinned.write(record)
                return
            self._packed += self._pack.compress(line)
            if len(self._packed) > MOST_KEPT_BYTES:
                self._thinned = self._thin()
                self._packed.clear()

    def close(self) -> None:
        """Nothing is left to do: it can be read on."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """Records to draw: readings are thinned evenly on a log axis."""
        with self._lock:
            return (self._thinned or self._thin()).records

    def lines(self) -> Iterator[bytes]:
        """Yield the JSON lines so far, in pieces: those that ``--jsonl`` writes."""
        with self._lock:
            pieces = map(line_of, self._thinned.records) if self._thinned else self._unpack()
        yield from pieces

    def _thin(self) -> RunBuffer:
        """Choose the packed records that are drawn."""
        thinned, rest = RunBuffer(), b""
        for piece in self._unpack():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                thinned.write(orjson.loads(line))
        return thinned

    def _unpack(self) -> Iterator[bytes]:
        """Unpack the records of this moment."""
        packed = bytes(self._packed) + self._pack.copy().flush()

        def pieces(packed: bytes) -> Iterator[bytes]:
            unpack = zlib.decompressobj()
            while packed:
                yield unpack.decompress(packed, _CHUNK_BYTES)
                packed = unpack.unconsumed_tail

        return pieces(packed)


_DRAWING = threading.Lock()
"""The style of a picture is the process's."""


def _picture(run: KeptRun) -> Iterator[bytes]:
    with _DRAWING:
        return iter([_png(run.records)])


def _report(run: KeptRun) -> Iterator[bytes]:
    with _DRAWING:
        return iter([run_report(run.records).encode(errors="replace")])


DOWNLOADS: Mapping[str, tuple[str, Callable[[KeptRun], Iterator[bytes]]]] = {
    "run.jsonl": ("application/x-ndjson", KeptRun.lines),
    "run.png": ("image/png", _picture),
    "run.html": ("text/html", _report),
}
"""By name: the media type, and what makes it."""


# ------------------------------------------------------------------------------------------- report
# A run as a document: what was given away, its curve, its figures and what happened.

_EVENTS = ("alert", "gap", "change", "crossing")


def run_report(records: Sequence[Mapping[str, Any]]) -> str:
    """Format one HTML file of a run, of its records in order; it may not have ended.

    Example:
        >>> start = {"type": "start", "recordings": ["a.wav"], "speakers": 50, "watch": "ann"}
        >>> "a.wav" in run_report([start])
        True
    """
    from jinja2 import Environment, FileSystemLoader

    start = next((r for r in records if r["type"] == "start"), {})
    end = next((r for r in records if r["type"] == "end"), {})
    recordings = any(r["type"] == "reading" for r in records)
    names = ", ".join(map(str, start.get("recordings") or ["a run"]))
    numbers: dict[str, object] = {}
    if "people" in end:
        rows: Sequence[Sequence[str]] = people_rows(records)
        numbers = {"heading": "Everybody", "head": PEOPLE_COLUMNS, "rows": rows}
    elif recordings and "people" not in start:
        rows = [row for row in summary_rows(records) if row[0] != "note"]
        numbers = {"heading": "In numbers", "rows": rows, "notes": summary_notes(records)}
    facts = [f"{names}, {start.get('time', '')}".removesuffix(", ")]
    if not recordings:
        facts.append("Nothing was heard: no bits disclosed.")
    elif "people" not in start:
        facts.append(f"{heading(read_columns(records))}.")
    if not end:
        facts.append("The run had not ended.")
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    return pages.get_template("report.html.jinja").render(
        facts=facts,
        picture=base64.b64encode(_png(records)).decode() if recordings else "",
        **numbers,
        log=[
            f"{phrases.clock_time(r['seconds'])} {': '.join(filter(None, describe_event(r)))}"
            for r in records
            if r["type"] in _EVENTS
        ],
        notices=list(dict.fromkeys(_notices(records))),
        version=__version__,
    )


def _png(records: Sequence[Mapping[str, Any]]) -> bytes:
    file = BytesIO()
    write_figure(draw_run(records), file, ".png")
    return file.getvalue()


def _notices(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for record in records:
        yield from map(str, record.get("notices") or ())
        if record["type"] == "notice":
            yield str(record["text"])
