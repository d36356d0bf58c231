"""Several people in one recording, with one monitor per person."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter

import numpy as np

from monitor.errors import UsageError
from monitor.events.phrases import overlap_in_words
from monitor.events.reading import OpenChange, Reading
from monitor.events.run import (
    Change,
    GapEvent,
    NoticeEvent,
    PersonEnd,
    PersonStart,
    RunEnd,
    RunStart,
)
from monitor.maths.posterior import one_to_one
from monitor.phrases import format_names, plural
from monitor.safe_text import printable
from monitor.sources.base import SplitSource, Stretch
from monitor.stream.monitor import Monitor
from monitor.stream.speaker_changes import are_different_people
from monitor.stream.stream import Event
from monitor.stream.totals import FeatureTotals
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Gap, Notice, Record

LEAST_SECONDS = 1.0
"""Minimum seconds in which a person speaks alone. A person with less is not measured."""
STRETCH_SECONDS = 5.0
"""Seconds of speech in a stretch; the purity of a label is judged by stretches."""
_MOST_STRETCHES = 256
_ALL_STRETCHES = 2048
"""Maximum stretches of all voices together. More than eight voices keep fewer each."""
_LEAST_STRETCHES = 8
_MOST_PIECES = 4096
_HALF_SECONDS = 25.0
"""Minimum seconds of speech in each half of a label, to compare the voices of both halves."""
_MOST_COMPARED = 32


@dataclass(frozen=True, slots=True)
class Person:
    """Disclosure of one person in a recording.

    Attributes:
        label: name of the voice in the turns.
        person: the enrolled person who matches this voice; None without a match. No two voices
            match the same person.
        probability: probability that this match is right if all other matches are; None without
            speech.
        enrolled: probability that this person is enrolled at all; None if unknown.
        seconds: seconds of turns in which only this voice speaks; None if unknown, as for channels.
        overlap_seconds: excluded seconds of turns, in which another voice speaks too.
        watch: the watched speaker that ``reading`` is about; None if no speaker is watched.
        reading: the last reading; None without speech.
        purity: fraction of this label's speech that fits this label better than any other; None if
            unknown. It is judged in stretches of `STRETCH_SECONDS`.
        changes: number of apparent voice changes.
    """

    label: str
    person: str | None
    probability: float | None
    enrolled: float | None
    seconds: float | None
    overlap_seconds: float | None
    watch: str | None
    reading: Reading | None
    purity: float | None
    changes: int

    def row(self, alerts: Sequence[float]) -> PersonEnd:
        """Return this person's row of the ``end`` record; ``alerts`` has their seconds."""
        last = self.reading
        figures = ("bits", "bits_low", "bits_high", "headline", "at_least", "peak_bits")
        own_names = [field.name for field in fields(self) if field.name != "reading"]
        copied: Record = {
            **{name: getattr(self, name) for name in own_names},
            **{name: getattr(last, name, None) for name in figures},
        }
        return PersonEnd(
            **copied,
            speech=0.0 if last is None else last.speech,
            differs=() if last is None else last.differs,
            alerts=len(alerts),
            first_alert_seconds=alerts[0] if alerts else None,
        )


class MultiSpeakerMonitor:
    """Monitors of all voices in a recording, each measured as if it were alone.

    A voice's figures equal those of a recording of its joined stretches. Its times are those of the
    whole recording. Each voice gets its own copy of each of the ``monitors``, which watch different
    people. Features are computed once per voice, and all monitors share the prepared templates.

    Args:
        source: the recording, split by person.
        monitors: unused monitors, after `Monitor.fit_to` with this source. They serve as models for
            each voice's monitors.

    Raises:
        UsageError: two monitors watch the same person, or one of several monitors watches no one.

    Example:
        >>> from monitor import Population
        >>> from monitor.sources import PerChannel, Samples
        >>> call = PerChannel(Samples(np.zeros((32_000, 2)), 16_000))
        >>> people = MultiSpeakerMonitor(call, [Monitor(Population.reference(), ["f0"])])
        >>> [(event.label, event.seconds) for event in people.listen(call)]
        [('channel 1', 1.0), ('channel 2', 1.0), ('channel 1', 2.0), ('channel 2', 2.0)]
    """

    def __init__(self, source: SplitSource, monitors: Sequence[Monitor]) -> None:
        watched = [monitor.watch for monitor in monitors]
        if len(monitors) > 1 and (None in watched or len({*watched}) < len(watched)):
            raise UsageError("watch each person once")
        self._plans = [monitor.plan.for_another_voice() for monitor in monitors]
        self._source = source
        # the watched people; empty unless there are several
        self.watched = [name for name in watched if name is not None] if watched[1:] else []
        self._voices: dict[int, _Voice] = {}
        self.seconds = 0.0  # processed seconds of the recording
        self._earlier_notices = source.notices
        self._silent = [  # indices of voices with too little speech
            index
            for index, seconds in enumerate(source.alone_seconds())
            if seconds is not None and seconds < LEAST_SECONDS
        ]

    def notices(self) -> list[Notice]:
        """List notices on the turns, before the first block."""
        source, notices = self._source, [Notice("turns", line) for line in self._source.notices]
        if text := overlap_in_words(source.overlap_seconds):
            fields = {"overlap_seconds": source.overlap_seconds}
            notices.append(Notice("turns", text, level="info", fields=fields))
        if self._silent:
            names = [printable(source.people[index]) for index in self._silent]
            text = (
                f"{plural(len(names), 'label')} not measured, with less than "
                f"{LEAST_SECONDS:g} s alone: {format_names(names)}"
            )
            notices.append(Notice("turns", text, fields={"labels": names}))
        return notices

    def listen(self, source: SplitSource) -> Iterator[Event]:
        """Yield events, in time order within each block of the recording."""
        for item in source.split():
            if isinstance(item, Gap):
                yield GapEvent.from_gap(self.seconds, item, source.label)
                continue
            events: list[Event] = []
            by_person: dict[int, list[Stretch]] = {}
            for stretch in item:
                by_person.setdefault(stretch.person, []).append(stretch)
            for person, stretches in by_person.items():
                if person not in self._silent:
                    events += self._voice(person).take(stretches)
                last = stretches[-1]
                end = last.seconds + last.block.seconds
                self.seconds = max(self.seconds, end)
            yield from sorted(events, key=attrgetter("seconds"))
        ends = [event for voice in self._voices.values() for event in voice.end()]
        yield from sorted(ends, key=attrgetter("seconds"))

    def _voice(self, index: int) -> _Voice:
        if index not in self._voices:
            views = [Monitor(plan) for plan in self._plans]
            self._voices[index] = _Voice(self._source.people[index], self._source.label, views)
            maximum = max(_LEAST_STRETCHES, _ALL_STRETCHES // len(self._voices))
            for voice in self._voices.values():
                voice.stretches.limit(min(_MOST_STRETCHES, maximum))
        return self._voices[index]

    def list_people(self) -> list[Person]:
        """List all people, in the order of the source's labels, with the best matches."""
        voices, source = self._voices, self._source
        indices = [index for index, voice in sorted(voices.items()) if voice.last[0] is not None]
        matched = dict(zip(indices, self._match_voices(indices), strict=True))
        purities = self._compute_purities()
        alone, overlap = source.alone_seconds(), source.overlap_of()
        people = []
        for index, label in enumerate(source.people):
            name, probability = matched.get(index, (None, None))
            watch, last, changes = None, None, 0
            if index in voices:
                watch, last = voices[index].choose_reading(name)
                changes = voices[index].changes
            enrolled, purity = None if last is None else last.enrolled, purities.get(index)
            match = name, probability, enrolled, alone[index], overlap[index]
            people.append(Person(label, *match, watch, last, purity, changes))
        return people

    def _match_voices(self, indices: Sequence[int]) -> list[tuple[str | None, float]]:
        readings = [self._voices[index].last[0] for index in indices]
        lasts = [reading for reading in readings if reading is not None]
        if not lasts:
            return []
        prior, names = self._plans[0].attacker.enrolled_prior, lasts[0].names
        shares = [
            last.posterior * (prior if last.enrolled is None else last.enrolled) for last in lasts
        ]
        return [
            (None if person is None else names[person], probability)
            for person, probability in one_to_one(np.stack(shares))
        ]

    def _compute_purities(self) -> dict[int, float]:
        """Compute, by voice, the fraction of stretches that are most like its other stretches."""
        plan = self._plans[0]
        specs = plan.population.specs
        name = next((name for name in plan.features if specs[name].kind.discerning), None)
        if name is None:
            return {}
        samples = {index: v.stretches.list_totals(name) for index, v in self._voices.items()}
        indices = sorted(
            (index for index, rows in samples.items() if len(rows) > 1),
            key=lambda index: (-len(samples[index]), index),
        )[:_MOST_COMPARED]
        if len(indices) < 2:
            return {}
        sums = {index: samples[index].sum(axis=0) for index in indices}
        similarity = specs[name].kind.similarity()

        def is_nearest(index: int, row: AnyArray) -> bool:
            others = [sums[other] for other in indices if other != index]
            templates = similarity.prepare(np.stack([sums[index] - row, *others]))
            return int(np.argmax(similarity.score(templates, row))) == 0

        return {
            index: float(np.mean([is_nearest(index, row) for row in samples[index]]))
            for index in indices
        }

    def complete_start(self, start: RunStart) -> RunStart:
        """Add the voices and the watched people."""
        source = self._source
        people = map(PersonStart, source.people, source.alone_seconds())
        start = replace(start, people=tuple(people))
        if self.watched:
            start = replace(start, watch=None, watched=tuple(self.watched))
        return start

    def complete_end(
        self, end: RunEnd, people: Sequence[Person], raised: Mapping[str, Sequence[float]]
    ) -> RunEnd:
        """Add one row per person; ``raised`` has the seconds of alerts by label."""
        last = max((person.reading for person in people), key=_bits)
        return replace(
            end,
            seconds=self.seconds,
            speech=sum(0.0 if p.reading is None else p.reading.speech for p in people),
            bits=None if last is None else last.bits,
            peak_bits=None if last is None else last.peak_bits,
            top=(),
            people=tuple(person.row(raised.get(person.label, ())) for person in people),
            overlap_seconds=self._source.overlap_seconds,
            watch=None if self.watched else end.watch,
        )

    def list_end_notices(self) -> list[Notice]:
        """List notices on the voices at the end."""
        source = self._source
        notices = [
            Notice("turns", line) for line in source.notices if line not in self._earlier_notices
        ]
        voices = self._voices.values()
        silent = [printable(voice.label) for voice in voices if not voice.speech]
        if len(silent) == len(voices):
            return [*notices, Notice("no speech", f"{source.label}: no speech in it")]
        notices += [Notice("turns", f"{label}: no speech in its turns") for label in silent]
        for label in (voice.label for voice in voices if voice.two_voices):
            text = f"{printable(label)}: its first half and its second sound like two people"
            notices.append(Notice("turns", text, fields={"label": label}))
        return notices


class _Voice:
    """A voice with its features, its monitors and its clock."""

    def __init__(self, label: str, recording: str, views: Sequence[Monitor]) -> None:
        self.label, self._recording, self._views = label, recording, views
        self._reader = views[0].core.intake.create_block_reader()
        self._samples = 0
        self._pieces: deque[tuple[float, float]] = deque()
        self.last: list[Reading | None] = [None] * len(views)
        self.stretches = _Stretches(views[0].core.evidence.own_totals)
        self.changes = 0

    def take(self, stretches: Sequence[Stretch]) -> list[Event]:
        for stretch in stretches:
            begin = self._samples / stretch.block.rate
            if not self._pieces or abs(self._clock(begin) - stretch.seconds) > 1e-3:
                self._pieces.append((begin, stretch.seconds))
            self._samples += len(stretch.block.samples)
        samples = np.concatenate([stretch.block.samples for stretch in stretches])
        events = [
            event
            for frames in self._reader.process(Block(samples, stretches[0].block.rate))
            for index, view in enumerate(self._views)
            for event in self._place_events(index, view.core.push(frames))
        ]
        while len(self._pieces) > _MOST_PIECES:
            self._pieces.popleft()
        return events

    def end(self) -> list[Event]:
        if not self._reader.ticks:
            return []
        last = self._reader.flush()
        return [
            event
            for index, view in enumerate(self._views)
            for events in (view.core.push(last), view.core.end())
            for event in self._place_events(index, events)
        ]

    def choose_reading(self, person: str | None) -> tuple[str | None, Reading | None]:
        """Return the last reading of the matched person, otherwise the highest of the watched."""
        by_name = {
            view.watch: last for view, last in zip(self._views, self.last, strict=True) if last
        }
        if not by_name:
            return None, None
        if person not in by_name:
            person = max(by_name, key=lambda name: _bits(by_name[name]))
        return person, by_name[person]

    @property
    def speech(self) -> float:
        return self.stretches.latest.speech_seconds if self.last[0] is None else self.last[0].speech

    @property
    def two_voices(self) -> bool:
        halves = self.stretches.halves()
        if min(half.speech_seconds for half in halves) < _HALF_SECONDS:
            return False
        view = self._views[0]
        return are_different_people(
            {name: view.population.specs[name] for name in view.features}, *halves
        )

    def _clock(self, seconds: float) -> float:
        """Convert seconds of this voice to seconds of the recording."""
        begin, at = self._pieces[0]
        for piece in reversed(self._pieces):
            if piece[0] < seconds:
                begin, at = piece
                break
        return max(at + seconds - begin, 0.0)

    def _at(self, seconds: float) -> float:
        return round(self._clock(seconds) * TICKS_PER_SECOND) / TICKS_PER_SECOND

    def _place_events(self, index: int, events: Iterator[Event]) -> Iterator[Event]:
        """Yield events on the clock of the recording, with the label."""
        several = len(self._views) > 1
        for event in events:
            at = self._at(event.seconds)
            if isinstance(event, Reading):
                opened = event.change
                if opened is not None:
                    opened = OpenChange(self._at(opened.since_seconds), opened.features)
                watch = self._views[index].watch if several else None
                reading = replace(event, seconds=at, change=opened, label=self.label, watch=watch)
                self.last[index] = reading
                if not index:
                    self.stretches.advance(self._views[0].core.evidence.own_totals)
                yield reading
            elif index:  # only the first view reports changes, gaps and notices
                continue
            elif isinstance(event, Change):
                self.changes += not event.back
                since = self._at(event.since_seconds)
                action = self._views[0].on_change
                yield replace(
                    event, seconds=at, since_seconds=since, action=action, label=self.label
                )
            elif isinstance(event, NoticeEvent):
                text = f"{printable(self.label)}: {event.text}"
                yield replace(
                    event, seconds=at, text=text, recording=self._recording, label=self.label
                )
            else:
                yield replace(event, seconds=at, recording=self._recording, label=self.label)


def _bits(reading: Reading | None) -> float:
    return -np.inf if reading is None or reading.bits is None else reading.bits


class _Stretches:
    """Totals of a voice in stretches of speech; if there are too many, neighbours are joined."""

    def __init__(self, nothing: FeatureTotals) -> None:
        self.latest = nothing
        self._stretches: list[FeatureTotals] = []
        self._seconds, self._maximum = STRETCH_SECONDS, _MOST_STRETCHES

    def __len__(self) -> int:
        return len(self._stretches)

    def limit(self, maximum: int) -> None:
        self._maximum = maximum
        self._thin()

    def advance(self, now: FeatureTotals) -> None:
        """Add the speech since the last stretch; ``now`` has the totals of all speech so far."""
        if now.speech < self.latest.speech:  # it restarted at a change
            self.latest, self._stretches = now, []
        if (now.speech - self.latest.speech) / TICKS_PER_SECOND < self._seconds:
            return
        self._stretches.append(now - self.latest)
        self.latest = now
        self._thin()

    def _thin(self) -> None:
        while len(self._stretches) >= self._maximum:
            pairs = (self._stretches[at : at + 2] for at in range(0, len(self._stretches), 2))
            self._stretches = [first + other[0] if other else first for first, *other in pairs]
            self._seconds *= 2

    def list_totals(self, name: str) -> AnyArray:
        """Collect each stretch's totals of a feature, shape (k, M)."""
        return np.array(
            [stretch.totals[name] for stretch in self._stretches if stretch.frames[name]]
        )

    def halves(self) -> tuple[FeatureTotals, FeatureTotals]:
        half = len(self._stretches) // 2
        nothing = self.latest - self.latest
        first = sum(self._stretches[:half], start=nothing)
        return first, sum(self._stretches[half:], start=nothing)
