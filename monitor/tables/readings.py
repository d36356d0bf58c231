"""The readings of a stream, or of several runs, as one table: `Readings`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from monitor.records.schema import read_run
from monitor.safe_text import printable
from monitor.tables.columns import Column
from monitor.tables.files import data_frame, write
from monitor.tables.flat import OF_THE_RUN, columns_of, flat

if TYPE_CHECKING:
    import pandas

    from monitor.protocols import Recordable

__all__ = ["Readings"]


class Readings(Sequence[Mapping[str, Any]]):
    """Readings as a table: a row each, a column a figure, as docs/corpora.md lists them.

    Args:
        readings: what a `Monitor` gives, or records, such as those of a `Run`; records of other
            types are left out.

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

    def __init__(self, readings: Iterable[Recordable | Mapping[str, Any]]) -> None:
        records = (r if isinstance(r, Mapping) else r.record() for r in readings)
        self._records = [each for each in records if each["type"] == "reading"]

    @classmethod
    def read(cls, *runs: str | os.PathLike[str]) -> Self:
        """Those of recorded runs, one after the other; ``run`` and ``watch`` say of which.

        Raises:
            StoreError: a file is missing, or something other than a run.
        """
        found: list[Mapping[str, Any]] = []
        for run in runs:
            start, *records = read_run(run)
            whose = {"run": printable(Path(run).as_posix()), "watch": start.get("watch")}
            found += [{**whose, **each} for each in records]
        return cls(found)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Readings: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Readings:
        found = self._records[index]
        return Readings(found) if isinstance(found, list) else found

    def __len__(self) -> int:
        return len(self._records)

    def columns(self, *, posterior: bool = False) -> tuple[Column, ...]:
        """The columns of the table, with unit and meaning.

        Args:
            posterior: with those of everybody whom a reading names (``posterior.NAME``).
        """
        own = columns_of(self._records, posterior=posterior)
        return (*OF_THE_RUN, *own) if any("run" in each for each in self._records) else own

    def rows(self) -> Iterator[dict[str, Any]]:
        """Cells by the name of their column; what a reading does not have is missing."""
        return map(flat, self._records)

    def to_pandas(self, *, posterior: bool = False) -> pandas.DataFrame:
        """A data frame; ``attrs["units"]`` has the unit of every figure. Needs the extra 'tables'.

        Args:
            posterior: as of `columns`.

        Raises:
            UsageError: pandas is not installed.
        """
        return data_frame(self.columns(posterior=posterior), self.rows())

    def write(self, path: str | os.PathLike[str], *, posterior: bool = False) -> None:
        """Write a file: ``.csv``, or ``.parquet`` (extra 'tables'); whole or not at all, mode 0600.

        Args:
            path: the file; what was there is replaced.
            posterior: as of `columns`.

        Raises:
            UsageError: the suffix is another, or pyarrow is not installed.
            StoreError: it cannot be written.
        """
        write(Path(path), self.columns(posterior=posterior), self.rows())
