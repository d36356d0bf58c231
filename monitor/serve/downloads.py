"""Downloads of a run as records, a picture or a report, but never a template."""

from __future__ import annotations

import base64
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import orjson

from monitor.events.declaration import Event, encode, find_first
from monitor.events.phrases import describe_event
from monitor.events.reading import Reading
from monitor.events.run import Alert, Change, GapEvent, LevelReached, NoticeEvent, RunEnd, RunStart
from monitor.events.schema import event_of
from monitor.phrases import clock_time
from monitor.plots.canvas import write_figure
from monitor.plots.columns import read_columns
from monitor.plots.curve import draw_run
from monitor.plots.wording import heading
from monitor.sinks.buffer import RunBuffer
from monitor.sinks.jsonl import line_of
from monitor.sinks.summary import PEOPLE_COLUMNS, people_rows, summary_notes, summary_rows
from monitor.version import __version__

MOST_KEPT_BYTES = 32 * 1024 * 1024
"""Maximum bytes of packed records. A longer run is reduced to the records behind its plots."""
_CHUNK_BYTES = 64 * 1024


class KeptRun:
    """A sink that keeps a run in memory; one thread writes, others read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pack, self._packed = zlib.compressobj(6), bytearray()
        self._thinned: RunBuffer | None = None  # replaces the packed records once they are too many

    def write(self, event: Event) -> None:
        """Take one event."""
        line = line_of(encode(event))
        with self._lock:
            if self._thinned is not None:
                self._thinned.write(event)
                return
            self._packed += self._pack.compress(line)
            if len(self._packed) > MOST_KEPT_BYTES:
                self._thinned = self._thin()
                self._packed.clear()

    def close(self) -> None:
        """Do nothing: the run remains readable."""

    @property
    def events(self) -> list[Event]:
        """Events to draw: readings are thinned evenly on a log axis."""
        with self._lock:
            return (self._thinned or self._thin()).events

    def lines(self) -> Iterator[bytes]:
        """Yield the JSON lines so far in pieces, as ``--jsonl`` writes them."""
        with self._lock:
            if self._thinned is None:
                pieces = self._unpack()
            else:
                pieces = (line_of(event.record()) for event in self._thinned.events)
        yield from pieces

    def _thin(self) -> RunBuffer:
        thinned, remainder = RunBuffer(), b""
        for piece in self._unpack():
            *lines, remainder = (remainder + piece).split(b"\n")
            for line in lines:
                if (event := event_of(orjson.loads(line))) is not None:
                    thinned.write(event)
        return thinned

    def _unpack(self) -> Iterator[bytes]:
        packed = bytes(self._packed) + self._pack.copy().flush()

        def pieces(packed: bytes) -> Iterator[bytes]:
            unpack = zlib.decompressobj()
            while packed:
                yield unpack.decompress(packed, _CHUNK_BYTES)
                packed = unpack.unconsumed_tail

        return pieces(packed)


DOWNLOADS: Mapping[str, tuple[str, Callable[[KeptRun], Iterable[bytes]]]] = {
    "run.jsonl": ("application/x-ndjson", KeptRun.lines),
    "run.png": ("image/png", lambda run: [_png(run.events)]),
    "run.html": ("text/html", lambda run: [run_report(run.events).encode(errors="replace")]),
}
"""Downloads by name: media type, and function that makes the content."""


# A run as a document: disclosed bits, curve, figures and events.


def run_report(events: Sequence[Event]) -> str:
    """Format a run as one HTML file, from its events in order; the run may not have ended."""
    from jinja2 import Environment, FileSystemLoader

    start = find_first(events, RunStart) or RunStart.from_record({})
    end, has_reading = find_first(events, RunEnd), find_first(events, Reading) is not None
    numbers: dict[str, object] = {}
    if end is not None and end.people is not None:
        rows: Sequence[Sequence[str]] = people_rows(events)
        numbers = {"heading": "Everybody", "head": PEOPLE_COLUMNS, "rows": rows}
    elif has_reading and start.people is None:
        rows = [row for row in summary_rows(events) if row[0] != "note"]
        numbers = {"heading": "In numbers", "rows": rows, "notes": summary_notes(events)}
    names = ", ".join(start.recordings or ["a run"])
    facts = [f"{names}, {start.time or ''}".removesuffix(", ")]
    if not has_reading:
        facts.append("The run contains no audio, so no bits were disclosed.")
    elif start.people is None:
        facts.append(f"{heading(read_columns(events))}.")
    if end is None:
        facts.append("The run had not ended.")
    notices = [*(start.notices or ())]
    notices += [event.text for event in events if isinstance(event, NoticeEvent)]
    notices += (end and end.notices) or ()
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    return pages.get_template("report.html.jinja").render(
        facts=facts,
        picture=base64.b64encode(_png(events)).decode() if has_reading else "",
        **numbers,
        log=[
            f"{clock_time(event.seconds)} {': '.join(filter(None, describe_event(event)))}"
            for event in events
            if isinstance(event, Alert | GapEvent | Change | LevelReached)
        ],
        notices=list(dict.fromkeys(notices)),
        version=__version__,
    )


def _png(events: Sequence[Event]) -> bytes:
    file = BytesIO()
    write_figure(draw_run(events), file, ".png")
    return file.getvalue()
