"""Readings as tables: CSV, Parquet and data frames, with a unit per column."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, cast, overload

from monitor.errors import UsageError
from monitor.events.declaration import Event, find_first, record_of, to_json
from monitor.events.reading import Reading
from monitor.events.run import RunEnd, RunStart
from monitor.events.schema import read_run
from monitor.files import atomic_write, write_csv_rows, writing
from monitor.safe_text import printable
from monitor.types import Record

if TYPE_CHECKING:
    import pandas

__all__ = ["Column", "Readings"]


Kind: TypeAlias = Literal["number", "integer", "boolean", "text"]
Row: TypeAlias = Mapping[str, object]
Part = TypeVar("Part")
_SECONDS = {"seconds", "speech", "usable", "lag"}
_BITS = {"ceiling", "plateau", "guides", "evidence_guides"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: name in the header. A dot selects part of a reading, as in ``f0.rank_bits``.
        kind: type of the cells. Any cell may be missing.
        meaning: one line of text.
    """

    name: str
    kind: Kind
    meaning: str = ""

    @property
    def unit(self) -> str:
        """``"bits"``, ``"s"``, or empty for fractions, ranks, counts and text."""
        if self.kind in ("boolean", "text"):
            return ""
        first, last = self.name.partition(".")[0], self.name.rpartition(".")[2]
        if "bits" in last.split("_") or first in _BITS or first.startswith("spread_"):
            return "bits"
        return "s" if last in _SECONDS or last.endswith("_seconds") else ""


SUFFIXES = (".csv", ".parquet")


def need(package: str) -> Any:
    """Import an optional package of the extra 'tables'."""
    try:
        return import_module(package)
    except ModuleNotFoundError:
        name = package.partition(".")[0]
        raise UsageError(
            f"this table needs {name}: pip install 'speaker-disclosure-monitor[tables]'"
        ) from None


def write(path: Path, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Write a table atomically, mode 0600. The suffix selects the format."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: use a name that ends in {' or '.join(SUFFIXES)}")
    to_file = write_csv if suffix == ".csv" else write_parquet
    if to_file is write_parquet:
        need("pyarrow.parquet")
    with writing(path), atomic_write(path) as file:
        to_file(file, columns, rows)


def write_csv(file: IO[bytes], columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Write UTF-8 with a header. Missing figures are empty, truth values ``true`` or ``false``."""
    text = io.TextIOWrapper(file, "utf-8", "replace", newline="", write_through=True)
    write_csv_rows(text, [[column.name for column in columns]])
    cells = ([row.get(column.name) for column in columns] for row in rows)
    write_csv_rows(text, ([str(c).lower() if isinstance(c, bool) else c for c in r] for r in cells))
    text.detach()


def write_parquet(file: IO[bytes], columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Write typed columns. Each field's metadata has its ``unit`` and ``meaning``."""
    arrow = need("pyarrow")
    fields = [
        arrow.field(
            column.name, _type(column), metadata={"unit": column.unit, "meaning": column.meaning}
        )
        for column in columns
    ]
    rows = list(rows)
    cells = [arrow.array(_cells(column, rows), _type(column)) for column in columns]
    need("pyarrow.parquet").write_table(
        arrow.Table.from_arrays(cells, schema=arrow.schema(fields)), file
    )


def read_parquet(path: Path, columns: Sequence[Column]) -> list[Record]:
    """Read the rows of a Parquet file that has these columns."""
    content = io.BytesIO(path.read_bytes())
    try:
        table = need("pyarrow.parquet").ParquetFile(content).read()
    except (OSError, need("pyarrow").ArrowException) as error:
        raise ValueError(f"no Parquet: {error}") from None
    if table.column_names != [column.name for column in columns]:
        raise ValueError("other columns")
    arrow = need("pyarrow")
    try:  # another program may have written text as a view, or whole numbers as floats
        table = table.cast(arrow.schema([(column.name, _type(column)) for column in columns]))
    except arrow.ArrowException:
        raise ValueError("columns of another type") from None
    rows: list[Record] = table.to_pylist()
    return rows


def _type(column: Column) -> Any:
    names = {"number": "float64", "integer": "int64", "boolean": "bool_", "text": "string"}
    return getattr(need("pyarrow"), names[column.kind])()


def data_frame(columns: Sequence[Column], rows: Iterable[Row]) -> pandas.DataFrame:
    """Make a data frame. Missing numbers are NaN, and other missing values are NA."""
    frames = need("pandas")
    types = {"number": "float64", "integer": "Int64", "boolean": "boolean", "text": "string"}
    rows = list(rows)
    frame = frames.DataFrame(
        {
            column.name: frames.Series(_cells(column, rows), dtype=types[column.kind])
            for column in columns
        }
    )
    frame.attrs["units"] = {column.name: column.unit for column in columns if column.unit}
    return frame


def _cells(column: Column, rows: Sequence[Row]) -> list[object]:
    values = (row.get(column.name) for row in rows)
    if column.kind == "number":
        return [None if value is None else float(cast(float, value)) for value in values]
    return list(values)


OF_THE_RUN = (
    Column("run", "text", "the file of the run"),
    Column("watch", "text", "the watched speaker; empty without one"),
)
"""First columns of readings from recorded runs."""

_KINDS: Mapping[str, Kind] = {"number": "number", "integer": "integer", "boolean": "boolean"}
_ENDS = {"_low": ", lower limit", "_high": ", upper limit"}


def crowd(people: float) -> str:
    """Format the size of a crowd as in the fields of alert rules."""
    plain, (digits, power) = f"{people:.0f}", f"{people:e}".split("e")
    short = f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    return short if len(short) < len(plain) else plain


def flat(reading: Reading) -> dict[str, object]:
    """Flatten a reading into one row."""
    apart = ("features", "among", "top", "bystanders")
    row = _flatten({name: value for name, value in to_json(reading).items() if name not in apart})
    for feature, figures in (reading.features or {}).items():
        row |= _flatten(to_json(figures), f"{feature}.")
    for entry in _named(reading.among, "people"):
        under = f"among.{crowd(entry.people)}."
        row |= _flatten(to_json(entry), under)
        del row[f"{under}people"], row[f"{under}favourite"]
        if entry.favourite is not None:
            best = f"{under}favourite"
            row[best], row[f"{best}_probability"] = entry.favourite
    row |= {f"posterior.{person}": probability for person, probability in reading.top or ()}
    others = _named(reading.bystanders, "name")
    row |= {f"bystander.{other.name}": other.probability for other in others}
    return row


def _flatten(record: Row, under: str = "") -> dict[str, object]:
    row: dict[str, object] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            row |= _flatten(value, f"{under}{name}.".replace("attackers.", ""))
        elif isinstance(value, list) and name != "favourite":
            row[under + name] = "+".join(map(str, value))
        else:
            row[under + name] = value
    return row


def columns_of(readings: Sequence[Reading], *, posterior: bool = False) -> tuple[Column, ...]:
    """Return the columns of a table of readings, in the order of docs/records.md.

    Most columns are always the same. The features, crowds and people of the run add others.
    """
    features = _unique(name for reading in readings for name in reading.features or ())
    crowds = sorted({c.people for reading in readings for c in _named(reading.among, "people")})
    top = _unique(person for reading in readings for person, _ in reading.top or ())
    sides = [reading.protected for reading in readings if reading.protected is not None]
    attackers = _unique(person for side in sides for person in side.attackers or ())
    others = _unique(b.name for reading in readings for b in _named(reading.bystanders, "name"))
    columns: list[Column] = []
    meaning = ""
    for key in record_of(Reading).keys:
        schema, meaning = key.schema, key.meaning or meaning  # limits share their figure's meaning
        only_where_used = ("label", "watch", "declared")
        if key.name in only_where_used and all(getattr(r, key.name) is None for r in readings):
            continue
        if key.name == "features":
            parts = schema["additionalProperties"]["properties"]
            columns += [c for name in features for c in _columns(meaning, parts, f"{name}.")]
        elif key.name == "among":
            parts = dict(schema["items"]["properties"])
            del parts["people"], parts["favourite"]
            for people in crowds:
                columns += _columns(meaning, parts, f"among.{crowd(people)}.")
                if posterior:
                    name = f"among.{crowd(people)}.favourite"
                    columns.append(Column(name, "text", meaning))
                    columns.append(Column(f"{name}_probability", "number", meaning))
        elif key.name in ("top", "bystanders"):
            under, names = ("posterior", top) if key.name == "top" else ("bystander", others)
            if posterior:
                columns += [Column(f"{under}.{name}", "number", meaning) for name in names]
        elif key.name == "protected":
            parts = dict(schema["properties"])
            of_attacker = parts.pop("attackers")["additionalProperties"]["properties"]
            if sides:
                columns += _columns(meaning, parts, "protected.")
            for attacker in attackers:
                columns += _columns(meaning, of_attacker, f"protected.{attacker}.")
        elif "properties" in schema:
            columns += _columns(meaning, schema["properties"], f"{key.name}.")
        else:
            columns += _columns(meaning, {key.name: schema}, "")
    return tuple(columns)


def _named(parts: Sequence[Part] | None, name: str) -> list[Part]:
    return [item for item in parts or () if getattr(item, name) is not None]


def _columns(meaning: str, parts: Record, under: str) -> Iterator[Column]:
    for name, schema in parts.items():
        end = next((text for end, text in _ENDS.items() if name.endswith(end)), "")
        kinds = schema.get("type", "string")  # an enumeration has no type
        first = kinds if isinstance(kinds, str) else kinds[0]
        yield Column(under + name, _KINDS.get(first, "text"), meaning + end)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


_OF_PERSON: Mapping[str, tuple[Kind, str]] = {
    "recording": ("text", "its name"),
    "label": ("text", "name of the voice in the turns"),
    "person": ("text", "the matched enrolled person; missing if not enrolled"),
    "probability": ("number", "probability of the match, if the others are matched correctly"),
    "enrolled": ("number", "probability that the voice is enrolled"),
    "watch": ("text", "the watched speaker, if any, to whom the bits refer"),
    "seconds": ("number", "seconds in which only this person speaks, by the turns"),
    "overlap_seconds": ("number", "seconds of their turns with other speakers"),
    "speech": ("number", "seconds of speech processed"),
    "bits": ("number", "the headline of the last reading"),
    "bits_low": ("number", "lower limit of a 95 % interval"),
    "bits_high": ("number", "upper limit of a 95 % interval"),
    "headline": ("text", "kind of the bits, evidence or closed-set"),
    "at_least": ("boolean", "the evidence was capped at the calibration's support"),
    "peak_bits": ("number", "the largest headline"),
    "purity": ("number", "fraction of the speech most similar to this label"),
    "changes": ("integer", "number of apparent changes of voice"),
    "alerts": ("integer", "number of alerts raised"),
    "first_alert_seconds": ("number", "time of the first alert"),
    "differs": ("text", "conditions unlike the templates', with spaces between"),
}


def write_people(path: Path, end: RunEnd) -> None:
    """Write one row per person from a run's end, as CSV or Parquet, mode 0600."""
    columns = [Column(name, *declaration) for name, declaration in _OF_PERSON.items()]
    recording = ", ".join(end.recordings or ())
    rows = [
        {**to_json(person), "recording": recording, "differs": " ".join(person.differs)}
        for person in end.people or ()
    ]
    write(path, columns, rows)


class Readings(Sequence[Reading]):
    """Readings as a table, with one row per reading and the columns of docs/tables.md.

    Args:
        readings: events of a `Monitor` or a `Run`. Events other than readings are omitted.

    Example:
        >>> from monitor import Monitor, Population
        >>> from monitor.population import demo_frames
        >>> monitor = Monitor(Population.reference(), ["f0"], step_seconds=60)
        >>> readings = Readings(monitor.stream(demo_frames()))
        >>> frame = readings.to_pandas()
        >>> frame.shape[0], round(float(frame["f0.usable"].iloc[0]))
        (10, 15)
        >>> frame.attrs["units"]["speech"], frame.attrs["units"]["f0.gain_bits"]
        ('s', 'bits')
    """

    def __init__(self, readings: Iterable[Event]) -> None:
        self._readings = [event for event in readings if isinstance(event, Reading)]
        self._runs: list[tuple[str, str | None]] = []  # file and watched speaker of each reading

    @classmethod
    def read(cls, *runs: str | os.PathLike[str]) -> Self:
        """Read and concatenate recorded runs. The columns ``run`` and ``watch`` identify each run.

        Raises:
            StoreError: a file is missing, or something other than a run.
        """
        readings = cls(())
        for run in runs:
            events = read_run(run)
            start = find_first(events, RunStart) or RunStart.from_record({})
            name = printable(Path(run).as_posix())
            run_readings = [event for event in events if isinstance(event, Reading)]
            readings._readings += run_readings
            readings._runs += [(name, r.watch or start.watch) for r in run_readings]
        return readings

    @overload
    def __getitem__(self, index: int) -> Reading: ...
    @overload
    def __getitem__(self, index: slice) -> Readings: ...
    def __getitem__(self, index: int | slice) -> Reading | Readings:
        if isinstance(index, int):
            return self._readings[index]
        selected = Readings(self._readings[index])
        selected._runs = self._runs[index]
        return selected

    def __len__(self) -> int:
        return len(self._readings)

    def columns(self, *, posterior: bool = False) -> tuple[Column, ...]:
        """Return the columns of the table, with unit and meaning.

        Args:
            posterior: whether to add a column ``posterior.NAME`` for each person named in a
                reading.
        """
        columns = columns_of(self._readings, posterior=posterior)
        if not self._runs:
            return columns
        names = {column.name for column in OF_THE_RUN}
        return (*OF_THE_RUN, *(column for column in columns if column.name not in names))

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield each row as cells by column name, without missing cells."""
        for index, reading in enumerate(self._readings):
            run, watch = self._runs[index] if self._runs else (None, reading.watch)
            yield {**flat(reading), "run": run, "watch": watch}

    def to_pandas(self, *, posterior: bool = False) -> pandas.DataFrame:
        """Make a data frame; ``attrs["units"]`` has units. Needs the extra 'tables'.

        Args:
            posterior: as in `columns`.
        """
        return data_frame(self.columns(posterior=posterior), self.rows())

    def write(self, path: str | os.PathLike[str], *, posterior: bool = False) -> None:
        """Write ``.csv``, or ``.parquet`` (extra 'tables'), atomically with mode 0600.

        Args:
            path: the file, which is replaced.
            posterior: as in `columns`.

        Raises:
            UsageError: the suffix is unsupported, or pyarrow is not installed.
            StoreError: the file cannot be written.
        """
        write(Path(path), self.columns(posterior=posterior), self.rows())
