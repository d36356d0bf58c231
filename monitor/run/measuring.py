"""`measure` processes one recording in one call and returns all results."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from monitor.errors import UsageError
from monitor.events.declaration import Event
from monitor.events.phrases import ENROL, bits_now, limits_in_words, nobody_speaks
from monitor.events.reading import CrowdReading, Reading
from monitor.events.run import GapEvent, PersonEnd, RunEnd, RunStart
from monitor.events.schema import compact
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.kinds import FeatureSpec
from monitor.maths.condition import Condition
from monitor.phrases import CAVEAT, clock_time, plural
from monitor.population.population import Population
from monitor.protocols import Feature, Source
from monitor.run.parts import Protection
from monitor.run.run import Run, RunSettings
from monitor.safe_text import printable
from monitor.sources.base import samples_or_source
from monitor.sources.people import Diarised, PerChannel
from monitor.sources.registry import open_source
from monitor.stream.monitor import Monitor
from monitor.stream.plan import MonitorSettings
from monitor.tables import Readings
from monitor.transcripts.turns import Turn, Turns
from monitor.types import Notice, Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIRST = ("bits withheld", "no speech", "conditions differ", "poor sound", "enrolled too", "copy")
"""Notices that take precedence if there is room for one. They can reverse the figure's meaning."""


@dataclass(frozen=True, repr=False)
class Measurement:
    """Disclosure of one recording: the figures of its last reading, and all earlier readings.

    Figures are in bits, lengths in seconds. Most attributes are keys of records (docs/records.md).
    ``str()`` gives one or two sentences. A notebook shows the picture.

    Attributes:
        recording: the recording's label.
        watch: the watched speaker, or None.
        speakers: N, the number of enrolled people.
        among: figures for each crowd size, ``people``.
        lost: number of gaps with lost audio.
        notices: warnings about the figures.
        events: the events of the run (docs/records.md).
        people: one measurement per person, if the recording is split by person. The figures of the
            whole recording are then omitted.
        label: name of this voice in the turns or channels, if the recording is split by person.
        person, probability: the matching enrolled person or None, and the match's probability.
        enrolled: probability that the speaker is enrolled; None if unknown.
        overlap_seconds: excluded seconds, in which another person speaks too.
        purity: fraction of this label's speech that fits this label best
            (`monitor.stream.people.Person`).
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
    among: Sequence[CrowdReading] | None = None
    session: str = "cross"
    excluded_seconds: float | None = None
    conditions: Condition | None = None
    differs: Sequence[str] = ()
    withheld: str = ""
    lost: int = 0
    notices: tuple[Notice, ...] = ()
    events: Sequence[Event] = field(default=(), compare=False)
    people: tuple[Measurement, ...] = ()
    label: str | None = None
    person: str | None = None
    probability: float | None = None
    enrolled: float | None = None
    overlap_seconds: float | None = None
    purity: float | None = None

    @classmethod
    def from_events(cls, events: Sequence[Event], notices: Sequence[Notice]) -> Measurement:
        """Build a measurement from the events of a run, from start to end, and its notices."""
        start, end = events[0], events[-1]
        assert isinstance(start, RunStart)
        same: Record = {
            "recording": ", ".join(start.recordings),
            "watch": start.watch,
            "speakers": start.speakers,
            "ceiling": start.ceiling,
            "notices": tuple(notices),
            "events": tuple(events),
        }
        if isinstance(end, RunEnd) and end.people is not None:
            return cls(
                **same,
                seconds=end.seconds,
                speech=end.speech,
                overlap_seconds=end.overlap_seconds,
                lost=end.gaps,
                people=tuple(cls._from_person(row, events, notices) for row in end.people),
            )
        readings = [event for event in events if isinstance(event, Reading)]
        figures = {}
        if readings:
            names = {attribute.name for attribute in fields(cls)} & {
                attribute.name for attribute in fields(Reading)
            }
            figures = {name: getattr(readings[-1], name) for name in names - same.keys()}
        return cls(**same, **figures, lost=sum(isinstance(event, GapEvent) for event in events))

    @classmethod
    def _from_person(
        cls, row: PersonEnd, events: Sequence[Event], notices: Sequence[Notice]
    ) -> Measurement:
        """Build a person's measurement from a row of the end event and the person's events."""
        start = events[0]
        assert isinstance(start, RunStart)
        several = start.watched is not None
        own_events = [
            event
            for event in events
            if getattr(event, "label", None) == row.label
            and (not several or getattr(event, "watch", None) in (None, row.watch))
        ]
        watch, prefix = row.watch if several else start.watch, f"{printable(row.label)}: "
        own_start = replace(start, people=None, watched=None, watch=watch)
        own_notices = [notice for notice in notices if str(notice).startswith(prefix)]
        measurement = cls.from_events([own_start, *own_events], own_notices)
        names = ("label", "person", "probability", "enrolled", "overlap_seconds", "purity")
        return replace(measurement, **{name: getattr(row, name) for name in names})

    @property
    def readings(self) -> Readings:
        """All readings as a table: ``to_pandas()``, ``write("talk.csv")``."""
        return Readings(self.events)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        guides: bool = False,
    ) -> Any:
        """Draw bits against seconds of speech, like ``monitor show``.

        ``path`` ends in .png, .svg or .pdf. ``guides`` adds averages, the closed-set figure and the
        bounds of a declared epsilon.

        Returns:
            the matplotlib figure, which a notebook shows; None if a file was written.
        """
        from monitor.plots.curve import draw_run, plot_run

        if path is not None:
            return plot_run(self.events, Path(path), title=title, guides=guides)
        figure: Any = draw_run(self.events, title=title, guides=guides)
        figure._repr_png_ = partial(_to_bytes, figure, ".png")  # IPython's own needs pyplot
        return figure

    def __str__(self) -> str:
        if self.people:
            return "\n".join(map(str, self.people))
        name = printable(self.recording if self.label is None else self.label)
        if self.person is not None and self.probability is not None:
            name += f", {printable(self.person)} by {100 * self.probability:.0f} %"
        if not self.speech:
            return f"{name}: no speech in {clock_time(self.seconds)} of audio, and so no figure."
        last = self.readings[-1]
        limits = ""
        if self.bits is not None and self.bits_low is not None and self.bits_high is not None:
            cut = self.headline == "evidence" and self.at_least
            limits = f" {limits_in_words(self.bits_low, self.bits_high, cut=cut)}"
        whose = "the attacker's confidence" if self.watch is None else printable(self.watch)
        kind = "evidence" if self.headline == "evidence" else f"of the {self.speakers} enrolled"
        when = f"after {self.speech:.0f} s of speech."
        sentence = f"{name}: {bits_now(last)}{limits}, {whose} ({kind}), {when}"
        if nobody := nobody_speaks(last):
            sentence = f"{name}: {nobody}, {when} {ENROL}."
        return " ".join(filter(None, [sentence, self._care()]))

    def _care(self) -> str:
        """Format the warnings that limit the figure; empty without any."""
        warnings = [notice for notice in self.notices if notice.level != "info"]
        order = {kind: rank for rank, kind in enumerate(_FIRST)}
        warnings.sort(key=lambda notice: order.get(notice.kind, len(order)))
        parts = [printable(str(warnings[0]))] if warnings else []
        if self.differs and (not warnings or warnings[0].kind not in _FIRST):
            parts.insert(0, f"{CAVEAT} ({', '.join(self.differs)})")
        if warnings[1:]:
            parts.append(f"{plural(len(warnings) - 1, 'more notice')} in .notices")
        if self.lost:
            parts.append(f"{plural(self.lost, 'gap')} in the recording")
        text = "; ".join(caution.rstrip(".") for caution in parts)
        return f"Take care: {text}." if parts else ""

    def __repr__(self) -> str:
        return f"<Measurement {self}>"

    def _repr_html_(self) -> str:
        return f"<div><p>{escape(str(self))}</p>{self._repr_svg_() or ''}</div>"

    def _repr_svg_(self) -> str | None:
        if not self.readings:
            return None
        text = _to_bytes(self.plot(), ".svg").decode()
        return text[text.index("<svg") :]


def _to_bytes(figure: Figure, suffix: str) -> bytes:
    from monitor.plots.canvas import write_figure

    buffer = io.BytesIO()
    write_figure(figure, buffer, suffix)
    return buffer.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementSettings:
    """Readings, privacy and resources of a measurement.

    Attributes:
        among, channel: as in `monitor.MonitorSettings`.
        step_seconds, on_change, setup: as in `monitor.Monitor`.
        per_channel: whether each channel has one person (`monitor.sources.PerChannel`).
        protect, allow_overlap, jobs: as in `monitor.run.RunSettings`.
    """

    among: Sequence[float] | None = None
    step_seconds: float = 1.0
    channel: int | None = None
    on_change: str = "ignore"
    setup: FeatureSetup = AS_ENVIRONMENT
    per_channel: bool = False
    protect: str | Protection | None = None
    allow_overlap: bool = False
    jobs: int | None = 1


_DEFAULTS = MeasurementSettings()


def measure(
    recording: Source | str | os.PathLike[str] | ArrayLike | tuple[ArrayLike, float | str],
    *,
    rate: float | str | None = None,
    population: Population | str | os.PathLike[str] | None = None,
    watch: str | Sequence[str] | None = None,
    features: Sequence[str | Feature | FeatureSpec] | None = None,
    turns: Turns | Iterable[Turn] | str | os.PathLike[str] | None = None,
    settings: MeasurementSettings = _DEFAULTS,
) -> Measurement:
    """Measure one recording, as ``monitor replay`` does.

    Args:
        recording: a file or another name (`monitor.sources.open_source`), a source, or samples
            (`monitor.sources.Samples`). Pass samples with ``rate``, or as ``(samples, rate)``.
        rate: samples per second, if ``recording`` is an array of samples.
        population: the enrolled people, or their file; None for the shipped readers.
        watch: the enrolled speaker to watch. None measures the attacker's confidence. A recording
            that is split by person accepts several speakers.
        features: as in `Monitor.for_source`.
        turns: who speaks when, in a recording of several people (`monitor.sources.Diarised`).
        settings: rarer settings.

    Returns:
        the last reading's figures, with all readings, a picture and notices.

    Raises:
        MonitorError: the recording cannot be read, does not fit the population, or was enrolled
            (unless ``allow_overlap``).

    Example:
        >>> from monitor.population import demo_frames
        >>> measurement = measure(demo_frames(), features=["f0"])
        >>> measurement.headline, round(measurement.ceiling, 2), len(measurement.readings)
        ('closed-set', 5.64, 600)
    """
    if isinstance(recording, tuple) and rate is None and len(recording) == 2:
        recording, rate = recording
    if isinstance(recording, int | float):
        raise UsageError("samples come first: give (samples, rate)")
    audio = samples_or_source(recording, rate)
    if population is None:
        population = Population.reference()
    elif not isinstance(population, Population):
        population = Population.load(Path(population))
    if turns is not None and settings.per_channel:
        raise UsageError("turns and per_channel both separate people: give only one of them")
    if turns is not None or settings.per_channel:
        source = open_source(audio) if isinstance(audio, str | os.PathLike) else audio
        audio = PerChannel(source) if turns is None else Diarised(source, turns)
    names: Sequence[str | None] = [watch] if watch is None or isinstance(watch, str) else watch
    monitors = [
        partial(
            Monitor.for_source,
            population=population,
            features=features,
            watch=name,
            step_seconds=settings.step_seconds,
            on_change=settings.on_change,
            setup=settings.setup,
            settings=MonitorSettings(among=settings.among, channel=settings.channel),
        )
        for name in names or [None]
    ]
    run_settings = RunSettings(
        protect=settings.protect, allow_overlap=settings.allow_overlap, jobs=settings.jobs
    )
    with Run(audio, monitors, settings=run_settings) as run:
        return Measurement.from_events(compact(run), run.notices)
