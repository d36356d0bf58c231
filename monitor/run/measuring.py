"""One recording in one call: `measure` hears it as a whole run, and keeps what came of it."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.errors import UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.kinds import FeatureSpec
from monitor.phrases import CAVEAT, clock_time, plural
from monitor.population.population import Population
from monitor.protocols import Feature, Source
from monitor.run.protection import Protection
from monitor.run.run import Run
from monitor.safe_text import printable
from monitor.sinks.summary import bits_now, limits_in_words
from monitor.sources.base import Samples
from monitor.stream.monitor import Monitor
from monitor.tables import Readings
from monitor.types import AnyArray, Notice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIRST = ("bits withheld", "no speech", "conditions differ", "poor sound", "enrolled too", "copy")
"""Notices that come first where there is room for one: they can turn the figure's meaning."""


@dataclass(frozen=True, repr=False)
class Measurement:
    """What one recording disclosed: the figures of its last reading, and the way there.

    Figures are in bits, lengths in seconds, each as its key in docs/records.md says. Its ``str`` is
    a sentence or two; a notebook shows the picture.

    Attributes:
        recording: what was heard, by its label.
        watch: the speaker who was followed; None where nobody was.
        speakers: N, the people it was compared with.
        among: what it means in each crowd (docs/records.md), M as ``people``.
        lost: gaps of the recording that could not be heard.
        notices: what a person should know beside the figures.
        records: the run, as docs/records.md has it; its JSON lines hold the same.
    """

    recording: str
    watch: str | None
    speakers: int
    seconds: float = 0.0
    speech: float = 0.0
    bits: float | None = None
    bits_low: float | None = None
    bits_high: float | None = None
    headline: str = "closed-set"
    closed_set_bits: float | None = None
    closed_set_bits_low: float | None = None
    closed_set_bits_high: float | None = None
    evidence_bits: float | None = None
    evidence_bits_low: float | None = None
    evidence_bits_high: float | None = None
    expected_bits: float | None = None
    peak_bits: float | None = None
    ceiling: float | None = None
    support_bits: float | None = None
    at_least: bool | None = None
    spread_low: float | None = None
    spread_high: float | None = None
    among: Sequence[Mapping[str, Any]] | None = None
    session: str = "cross"
    excluded_seconds: float | None = None
    conditions: Mapping[str, Any] | None = None
    differs: Sequence[str] = ()
    withheld: str = ""
    lost: int = 0
    notices: tuple[Notice, ...] = ()
    records: Sequence[Mapping[str, Any]] = field(default=(), compare=False)

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]], notices: Sequence[Notice]) -> Measurement:
        """Of a run that is over, by all its records, from ``start`` to ``end``, and its notices."""
        start = records[0]
        readings = [record for record in records if record["type"] == "reading"]
        last = readings[-1] if readings else {}
        own = {each.name for each in fields(cls)} - {"recording", "notices", "records"}
        figures = {"ceiling": start["ceiling"]} | {n: last[n] for n in own & last.keys()}
        return cls(
            recording=", ".join(start["recordings"]),
            watch=start["watch"],
            speakers=start["speakers"],
            lost=sum(record["type"] == "gap" for record in records),
            notices=tuple(notices),
            records=tuple(records),
            **figures,
        )

    @property
    def readings(self) -> Readings:
        """All readings as a table: ``to_pandas()``, ``write("talk.csv")``."""
        return Readings(self.records)

    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Any:
        """The picture of ``monitor plot``, bits against speech; ``path`` is .png, .svg or .pdf.

        Returns:
            the matplotlib figure; None where it was written.

        Raises:
            UsageError: the suffix is another.
            StoreError: it cannot be written, or matplotlib has no place for its cache.
        """
        from monitor.plots.curve import figure_of, plot_run

        if path is None:
            return figure_of(self.records, title=title)
        return plot_run(self.records, Path(path), title=title)

    def __str__(self) -> str:
        name = printable(self.recording)
        if not self.speech:
            return f"{name}: no speech in {clock_time(self.seconds)} of audio, and so no figure."
        last = self.readings[-1]
        limits = ""
        if self.bits is not None and self.bits_low is not None and self.bits_high is not None:
            cut = self.headline == "evidence" and self.at_least
            limits = f" {limits_in_words(self.bits_low, self.bits_high, cut=cut)}"
        whose = "the attacker's confidence" if self.watch is None else printable(self.watch)
        kind = "evidence" if self.headline == "evidence" else f"of the {self.speakers} enrolled"
        said = f"{name}: {bits_now(last)}{limits}, {whose} ({kind}), after {self.speech:.0f} s of "
        said += "speech."
        return " ".join(filter(None, [said, self._care()]))

    def _care(self) -> str:
        """What forbids to take comfort in the figure, in a sentence; empty where nothing does."""
        told = [notice for notice in self.notices if notice.level != "info"]
        order = {kind: place for place, kind in enumerate(_FIRST)}
        told.sort(key=lambda notice: order.get(notice.kind, len(order)))
        parts = [printable(str(told[0]))] if told else []
        if self.differs and (not told or told[0].kind not in _FIRST):
            parts.insert(0, f"{CAVEAT} ({', '.join(self.differs)})")
        if told[1:]:
            parts.append(f"{plural(len(told) - 1, 'more notice')} in .notices")
        if self.lost:
            parts.append(f"{plural(self.lost, 'gap')} in the recording")
        return f"Take care: {'; '.join(parts)}." if parts else ""

    def __repr__(self) -> str:
        return f"<Measurement {self}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentences over the picture."""
        return f"<div><p>{escape(str(self))}</p>{self._repr_svg_() or ''}</div>"

    def _repr_svg_(self) -> str | None:
        """The picture as SVG; None where nothing was heard, of which there is none."""
        if not self.readings:
            return None
        from monitor.plots.canvas import written

        figure: Figure = self.plot()
        made = io.BytesIO()
        written(figure, made, ".svg")
        text = made.getvalue().decode()
        return text[text.index("<svg") :]


def measure(
    recording: Source | str | os.PathLike[str] | AnyArray | tuple[AnyArray, int],
    *,
    rate: int | None = None,
    population: Population | str | os.PathLike[str] | None = None,
    watch: str | None = None,
    features: Sequence[str | Feature | FeatureSpec] | None = None,
    among: Sequence[float] | None = None,
    step_seconds: float = 1.0,
    channel: int | None = None,
    on_change: str = "ignore",
    protect: str | Protection | None = None,
    allow_overlap: bool = False,
    jobs: int | None = 1,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> Measurement:
    """Hear one recording to its end, as ``monitor replay`` does.

    Args:
        recording: a file or another name (`monitor.sources.open_source`), a source, or samples of
            shape (n,) or (n, channels): with ``rate``, or as ``(samples, rate)``.
        rate: samples per second, of an array of samples.
        population: the people to tell the voice from, or their file; None: the shipped readers.
        watch: the enrolled speaker to follow; None asks how sure an attacker would be of anybody.
        features: as of `Monitor`; None takes what ready-made frames hold.
        among: as of `Monitor`.
        step_seconds: as of `Monitor`.
        channel: as of `Monitor`.
        on_change: as of `Monitor`.
        protect: as of `Run`.
        allow_overlap: as of `Run`.
        jobs: as of `Run`.
        setup: as of `Monitor`.

    Returns:
        the figures of the last reading, the table of all, the picture, and what to know of them.

    Raises:
        MonitorError: it cannot be heard, does not fit the population, or was enrolled itself
            (`OverlapError`).

    Example:
        >>> from monitor.population import demo_frames
        >>> found = measure(demo_frames(), features=["f0"], step_seconds=10)
        >>> found.headline, round(found.ceiling, 2), len(found.readings)
        ('closed-set', 5.64, 60)
    """
    if isinstance(recording, tuple):
        recording, rate = recording
    if isinstance(recording, np.ndarray):
        if rate is None:
            raise UsageError("an array of samples needs its rate: measure(samples, rate=16_000)")
        recording = Samples(recording, rate)
    elif rate is not None:
        raise UsageError("rate= is that of an array of samples; a recording knows its own")
    people = population
    if people is None:
        people = Population.reference()
    elif not isinstance(people, Population):
        people = Population.load(Path(people))

    def made(source: Source) -> Monitor:
        return Monitor.for_source(
            source,
            people,
            features,
            watch,
            among=among,
            step_seconds=step_seconds,
            channel=channel,
            on_change=on_change,
            setup=setup,
        )

    with Run(recording, made, protect=protect, allow_overlap=allow_overlap, jobs=jobs) as run:
        records = [event.record() for event in run]
        return Measurement.of(records, run.notices)
