"""Runs of many recordings in several processes, with one table of results."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import stat
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from monitor.alerts.crossings import as_text, from_text
from monitor.corpus.folders import recordings_below
from monitor.corpus.recordings import natural
from monitor.errors import MonitorError, SourceError, StoreError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import Alert
from monitor.files import csv_text, lock, open_private, plain_cell, writing
from monitor.jobs import Jobs, absolute, each_in_order
from monitor.lazy import Managed
from monitor.maths.statistics import Crossing, disclosure_delay
from monitor.phrases import attacker_in_words, level_in_words, plural
from monitor.run import FAILED, status_of, status_of_error
from monitor.safe_text import escaped, printable
from monitor.sources.base import file_hash
from monitor.tables import Column, Kind, need, read_parquet, write

if TYPE_CHECKING:
    from monitor.run.run import Run


FEWEST = 2
_MOST_SHORTER = 0.25
"""Maximum fraction of recordings that end before the time over which delays are averaged."""


def average_delays(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Average disclosure delays over the summary, one line per level, and name the attackers.

    Delays are averaged over a time that three in four recordings reach. Recordings count as
    independent. Recordings of one speaker do not show how speakers vary.
    """
    measured = [row for row in rows if row.get("crossings")]
    if len(measured) < FEWEST:
        return []
    crossings_by_level: dict[float, list[tuple[Crossing, Crossing]]] = {}
    for row in measured:
        for level, sides in from_text(row["crossings"]).items():
            crossings_by_level.setdefault(level, []).append(sides)
    common_seconds = float(np.quantile([float(row["seconds"]) for row in measured], _MOST_SHORTER))
    lines = []
    for bits, pairs in crossings_by_level.items():
        clear, protected = zip(*pairs, strict=True)
        # beyond it, a side without a crossing is unknown
        horizons = [max(side).seconds for side in (clear, protected) if not max(side).crossed]
        horizon = min([common_seconds, *horizons])
        if horizon > 0:
            lines.append(_line(bits, clear, protected, horizon))
    if not lines:
        return []
    attackers = sorted({row["protected_by"] for row in measured} - {""}, reverse=True)
    strongest = " or ".join(map(attacker_in_words, attackers))
    head = f"disclosure delay over {plural(len(measured), 'recording')}, from {strongest}:"
    return [head, *lines]


def _line(bits: float, clear: Sequence[Crossing], safe: Sequence[Crossing], horizon: float) -> str:
    delay = disclosure_delay(clear, safe, horizon)
    limits = "" if delay.low is None else f" ({delay.low:.1f} to {delay.high:.1f})"
    return (
        f"  {level_in_words(bits)}: {delay.seconds:.1f} s{limits} of the first {horizon:.0f} s, "
        f"reached by then in {delay.clear_share:.0%} clear and "
        f"{delay.protected_share:.0%} protected"
    )


OpenRun: TypeAlias = "Callable[[Path], Run]"
"""Function that returns a new run of a recording; picklable for several processes."""

_FIGURES = (
    *("bits", "bits_low", "bits_high", "headline", "at_least", "peak_bits"),
    *("evidence_bits", "evidence_bits_low", "evidence_bits_high"),
    *("closed_set_bits", "closed_set_bits_low", "closed_set_bits_high"),
)
_PROTECTED = ("bits", "bits_low", "bits_high", "at_least")


@dataclass(frozen=True, slots=True)
class RecordingOutcome:
    """Outcome of one recording: figures of its last reading (docs/records.md), or None."""

    seconds: float | None = None
    speech: float | None = None
    bits: float | None = None
    bits_low: float | None = None
    bits_high: float | None = None
    headline: str = ""
    at_least: bool | None = None
    peak_bits: float | None = None
    evidence_bits: float | None = None
    evidence_bits_low: float | None = None
    evidence_bits_high: float | None = None
    closed_set_bits: float | None = None
    closed_set_bits_low: float | None = None
    closed_set_bits_high: float | None = None
    first_alert_seconds: float | None = None  # seconds of audio to the first alert
    alerts: int = 0
    gaps: int = 0
    changes: int = 0
    exit_status: int = 0  # that of `monitor replay` of this recording alone
    undecided: str = ""  # alerts that the recording is too short to decide; otherwise empty
    error: str = ""  # reason for an early end; otherwise empty
    session: str = ""
    enrolled_too: bool | None = None  # another part of the recording was enrolled
    protected_bits: float | None = None  # of the strongest attacker tried
    protected_bits_low: float | None = None
    protected_bits_high: float | None = None
    protected_at_least: bool | None = None
    protected_by: str = ""
    crossings: str = ""  # times of both sides by level (`monitor.alerts.crossings.as_text`)
    bandwidth_hz: float | None = None
    snr_db: float | None = None
    reverberation_seconds: float | None = None
    clipping: float | None = None
    level_db: float | None = None
    lost: float | None = None
    differs: str = ""  # bad or mismatched conditions, separated by spaces
    notices: str = ""  # of this recording, separated by semicolons
    watch: str = ""  # the watched speaker; empty without one
    enrolled: float | None = None  # probability that an enrolled person speaks
    incomplete: str = ""  # shortfalls of the run, separated by semicolons


def process_one(path: Path, open_run: OpenRun) -> RecordingOutcome:
    """Process a recording to its end. The outcome contains any error."""
    figures: dict[str, object] = {"seconds": 0.0, "speech": 0.0}
    first_alert: float | None = None
    try:
        with open_run(path) as run:
            for event in run:
                match event:
                    case Reading():
                        figures = _figures_of(event)
                    case Alert(state="raised", level="alert") if first_alert is None:
                        first_alert = event.seconds
    except MonitorError as error:
        return RecordingOutcome(exit_status=status_of_error(error), error=_outcome_line(str(error)))
    except Exception as error:  # one of thousands must not end the others
        problem = f"unexpected {type(error).__name__}: {error}"
        return RecordingOutcome(exit_status=FAILED, error=_outcome_line(problem))
    outcome = RecordingOutcome(
        first_alert_seconds=first_alert,
        alerts=run.totals.alerts,
        gaps=run.totals.gaps,
        changes=run.totals.changes,
        exit_status=status_of(run),
        undecided="; ".join(run.totals.undecided),
        error=_outcome_line("; ".join(run.totals.failures)),
        session=run.start.rank_model_session,
        enrolled_too=run.monitor.session == "same",
        crossings=as_text(run.end.disclosure_delay or ()),
        notices=_outcome_line("; ".join(_list_notices(run))),
        watch=run.start.watch or "",
        incomplete="; ".join(run.shortfalls),
    )
    return replace(outcome, **figures)  # type: ignore[arg-type]


def _figures_of(reading: Reading) -> dict[str, object]:
    side, sound = reading.protected, reading.conditions
    return {
        **{name: getattr(reading, name) for name in ("seconds", "speech", "enrolled", *_FIGURES)},
        **{f"protected_{name}": getattr(side, name, None) for name in _PROTECTED},
        "protected_by": (side and side.by) or "",
        **({} if sound is None else sound.record()),
        "differs": " ".join(reading.differs),
    }


def _list_notices(run: Run) -> list[str]:
    of_recording = ("no speech", "another person", "protected recording", "evidence against")
    noticed = [n for n in run.notices if n.seconds is not None or n.kind in of_recording]
    lost = [f"audio was lost: {reason}" for reason in run.totals.lost]
    name = f"{run.source.label}: "
    return [line.replace(name, "") for line in (*lost, *map(str, noticed))]


def _outcome_line(text: str) -> str:
    return printable(re.sub(r"\s*\n\s*", " ", text.strip()))


_KINDS: Mapping[object, Kind] = {
    "float | None": "number",
    "bool | None": "boolean",
    "int": "integer",
    "str": "text",
}
_TYPED = (
    Column("recording", "text"),
    *(Column(field.name, _KINDS[field.type]) for field in fields(RecordingOutcome)),
    Column("fingerprint", "text"),
    Column("settings", "text"),
)
COLUMNS = tuple(column.name for column in _TYPED)
"""Columns of the file: the recording, its results, and their settings."""


class SummaryFile(Managed):
    """Opened and locked summary of many recordings, CSV or Parquet, with one line each.

    Each line is written to disk at once (`append`). An incomplete last line is dropped when the
    file is opened again. `finish` sorts the lines in natural order. The file is private (mode
    0600). A Parquet file cannot grow, so until `finish`, its lines are written to
    ``NAME.parquet.unfinished.csv`` beside it. ``settings`` is a hash of everything except the
    recording that a line depends on.
    """

    def __init__(
        self, path: Path, settings: str, *, resume: bool = False, replace: bool = False
    ) -> None:
        self.path, self.settings = path, settings
        self.rows: dict[str, Mapping[str, str]] = {}  # by name of the recording
        self._ours = False  # whether this object has the lock
        self._parquet = path.suffix.lower() == ".parquet"
        self._lines = path
        if self._parquet:
            need("pyarrow.parquet")
            self._lines = path.with_name(f"{path.name}.unfinished.csv")
        with writing(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._handle = open_private(self._lines, flags)
            try:
                self._begin(resume=resume, replace=replace)
            except BaseException:
                self.close()
                raise

    def _begin(self, *, resume: bool, replace: bool) -> None:
        if not stat.S_ISREG(os.fstat(self._handle).st_mode):
            raise UsageError(
                f"{self.path} is not a regular file: name one ending in .csv or .parquet"
            )
        try:
            lock(self._handle)
        except BlockingIOError:
            raise StoreError(
                f"another run is writing to {self.path}: wait for its end, or name another file"
            ) from None
        self._ours = True
        content = b"" if replace else self._lines.read_bytes()
        is_finished = not content and not replace and self._parquet and self.path.exists()
        if (content or is_finished) and not resume:
            raise UsageError(
                f"{self.path} is not empty: continue an unfinished summary with --resume, name "
                "another file, or overwrite it with --replace"
            )
        complete = content[: content.rfind(b"\n") + 1]
        if complete:
            self._read(complete)
        elif content and not _summary_file_line(COLUMNS).startswith(content):
            raise self._is_something_else()
        elif is_finished:
            self._read_parquet()
        os.ftruncate(self._handle, len(complete))
        if not complete:
            self._write([COLUMNS, *(row.values() for row in self.rows.values())])

    def _read(self, text: bytes) -> None:
        try:
            rows = list(csv.reader(io.StringIO(text.decode(), newline=""), strict=True))
        except (ValueError, csv.Error):
            raise self._is_something_else() from None
        if tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
            raise self._is_something_else()
        for row in rows[1:]:
            self._count(dict(zip(COLUMNS, map(plain_cell, row), strict=True)))

    def _read_parquet(self) -> None:
        try:
            rows = read_parquet(self.path, _TYPED)
        except ValueError:
            raise self._is_something_else() from None
        for row in rows:
            self._count({name: _cell(value) for name, value in row.items()})

    def _count(self, row: Mapping[str, str]) -> None:
        try:
            values = {column.name: _value(column, row[column.name]) for column in _TYPED}
        except ValueError:
            raise self._is_something_else() from None
        if values["exit_status"] is None:
            raise self._is_something_else()
        if row["settings"] != self.settings:
            raise UsageError(
                f"{self.path} was made with other options, people or rank models: give the same, "
                f"name another file, or overwrite it (--replace)"
            )
        self.rows[row["recording"]] = row

    def _is_something_else(self) -> UsageError:
        return UsageError(f"{self.path} is not a summary of recordings: name another file")

    def append(self, row: Mapping[str, str]) -> None:
        """Write the line of a recording, from `format_row`, and flush it to disk."""
        with writing(self.path):
            self._write([row.values()])
        self.rows[row["recording"]] = row

    def _write(self, rows: Iterable[Iterable[object]]) -> None:
        lines = b"".join(map(_summary_file_line, rows))
        if os.write(self._handle, lines) < len(lines):
            raise StoreError(f"cannot write {self.path.name}: the disk is full. Make room.")
        os.fsync(self._handle)

    def finish(self) -> None:
        """Sort the lines in natural order, and keep the last line of each recording."""
        rows = [self.rows[name] for name in sorted(self.rows, key=natural)]
        if not self._parquet:
            write(self.path, _TYPED, rows)
            return
        write(self.path, _TYPED, [{c.name: _value(c, row[c.name]) for c in _TYPED} for row in rows])
        self._lines.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; may be called twice."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            if self._ours and self._parquet and not os.fstat(handle).st_size:  # created but unused
                self._lines.unlink(missing_ok=True)
            os.close(handle)


def format_row(
    recording: str, outcome: RecordingOutcome, fingerprint: str, settings: str
) -> dict[str, str]:
    """Format the cells of a recording by column."""
    cells = [recording, *map(_cell, asdict(outcome).values()), fingerprint, settings]
    return dict(zip(COLUMNS, cells, strict=True))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _value(column: Column, cell: str) -> object:
    if cell == "":
        return None
    if column.kind == "boolean":
        return cell == "true"
    if column.kind == "text":
        return cell
    return float(cell) if column.kind == "number" else int(cell)


def _summary_file_line(values: Iterable[object]) -> bytes:
    return csv_text([*values], []).encode()


FindSideFiles: TypeAlias = Callable[[Path], Sequence[Path]]
"""Function that returns the further files that a recording's run reads."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """Line of the summary: the recording, and cells as text by column."""

    path: Path
    cells: dict[str, str]

    @property
    def status(self) -> int:
        """Exit status of the recording's run."""
        return int(self.cells["exit_status"])


def find_recordings(names: Sequence[str]) -> list[Path]:
    """Find all recordings in files and folders, each once, in natural order."""
    recordings: dict[str, Path] = {}
    for name in names:
        path = Path(name)
        if not path.exists():
            raise UsageError(f"{name} does not exist: give --each files and folders")
        below = recordings_below(path) if path.is_dir() else [path]
        if not below:
            raise UsageError(f"no recording in {name}")
        for recording in below:
            recordings.setdefault(os.path.realpath(recording), recording)
    return sorted(recordings.values(), key=lambda path: natural(path.as_posix()))


def split_by_summary(
    recordings: Sequence[Path], summary: SummaryFile, side_files: FindSideFiles = lambda _: ()
) -> tuple[list[SummaryRow], list[Path]]:
    """Return the rows of recordings in a summary, by name and content, and the other recordings."""
    rows, remaining = [], []
    for path in recordings:
        row = summary.rows.get(escape_path(path))
        fingerprint = "" if row is None else _fingerprint(path, side_files)
        if row is not None and fingerprint and row["fingerprint"] == fingerprint:
            rows.append(SummaryRow(path, dict(row)))
        else:
            remaining.append(path)
    return rows, remaining


def process_each(
    recordings: Sequence[Path],
    open_run: OpenRun,
    summary: SummaryFile,
    jobs: Jobs = 1,
    *,
    reads: Sequence[Path] = (),
    side_files: FindSideFiles = lambda _: (),
    alike: Callable[[], object] = lambda: None,
) -> Generator[SummaryRow, None, None]:
    """Process every recording and write its line. A failed recording's line has the error.

    Lines are written at once, so a kill loses only the recordings in progress. At the end, the
    summary is sorted. It does not depend on ``jobs``. ``reads`` are files that every run needs, and
    ``side_files`` returns the files of one run.
    """
    work = partial(_measure, open_run, summary.settings, side_files)
    tasks = [(escape_path(path), absolute(path)) for path in recordings]
    outcomes = each_in_order(
        work,
        tasks,
        jobs,
        reads=lambda task: [task[1], *side_files(task[1]), *reads],
        alike=alike,
        arrived=summary.append,
    )
    with closing(outcomes) as rows:
        for path, row in zip(recordings, rows, strict=True):
            yield SummaryRow(path, row)
    summary.finish()


def escape_path(path: Path) -> str:
    r"""Return a recording's name in the summary: its path, on one line, and unique.

    Example:
        >>> escape_path(Path("talks/a\nb.wav"))
        'talks/a\\nb.wav'
    """
    return escaped(path.as_posix())


def _measure(
    open_run: OpenRun, settings: str, side_files: FindSideFiles, task: tuple[str, Path]
) -> dict[str, str]:
    """Make the line of a recording; callable in any process that can read the file."""
    name, path = task
    fingerprint = _fingerprint(path, side_files)
    return format_row(name, process_one(path, open_run), fingerprint, settings)


def _fingerprint(path: Path, side_files: FindSideFiles) -> str:
    """Hash a recording and its side files; empty if they cannot be read."""
    try:
        hashes = [file_hash(file) for file in (path, *side_files(path))]
    except SourceError:
        return ""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
