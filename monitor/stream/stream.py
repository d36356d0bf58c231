"""`Stream` counts, assesses and reports the items of one stream in order."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Protocol, TypeAlias

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import Change, GapEvent, NoticeEvent
from monitor.features.channel import CONDITION
from monitor.protocols import LiveSource, StreamInfo
from monitor.stream.accumulator import AccumulatorState
from monitor.stream.assessment import Assessment
from monitor.stream.attacker import Question
from monitor.stream.choice import find_pitch
from monitor.stream.conditions import StreamConditions
from monitor.stream.copies import CopyFinder
from monitor.stream.evidence import Evidence
from monitor.stream.intake import Intake, WordCoverage
from monitor.stream.reading_builder import ReadingBuilder, answer
from monitor.stream.repeat_gate import RECALLED_TICKS, Decision, RepeatFinder, RepeatGate
from monitor.stream.second_voice import SecondVoice
from monitor.stream.segments import SpeakerSegments
from monitor.stream.speaker_changes import Recordings, SpeakerChanges
from monitor.stream.totals import FeatureTotals, Moments
from monitor.types import (
    TICKS_PER_SECOND,
    AnyArray,
    Block,
    Frames,
    Gap,
    Item,
    Notice,
    Tracks,
    Words,
)

Event: TypeAlias = "Reading | GapEvent | NoticeEvent | Change"
Answers: TypeAlias = "list[list[Assessment]]"
Steps: TypeAlias = "Generator[Event | list[Question], Answers | None, None]"
"""Yields events, and lists of questions. Send the answers after each list."""
_RUNNING = "this Monitor is in the middle of a stream: make another one, or end it by reset()"
_ENDED = "this Monitor has ended its stream: make another one, or reset() it"
MOST_NOTICES = 100
"""Maximum notices of a stream; later ones are dropped, so that the end of a run can repeat all."""


def answered(steps: Steps) -> Iterator[Event]:
    """Yield the events of steps, answering their questions."""
    answers: Answers | None = None
    with suppress(StopIteration):
        while True:
            step = steps.send(answers)
            if isinstance(step, list):
                answers = answer(step)
            else:
                answers = None
                yield step


def with_lag(event: Event, source: object) -> Event:
    """Return an event of a source, with its delay if it is a reading of a live source."""
    if isinstance(event, Reading) and isinstance(source, LiveSource):
        return replace(event, lag=source.behind_seconds(event.seconds))
    return event


class StreamState(AccumulatorState):
    """Plain values of a `Stream`, in a checkpoint."""

    read: int
    peak: float
    stream: int
    losses: int
    noticed: list[dict[str, Any]]
    observers: dict[str, Any]


class Stream:
    """Measurement of one stream, which takes items and yields events in order of time."""

    def __init__(
        self,
        intake: Intake,
        evidence: Evidence,
        builder: ReadingBuilder,
        observers: Observers,
        step_ticks: int,
    ) -> None:
        self.intake, self.evidence = intake, evidence
        self.builder, self.observers, self._step_ticks = builder, observers, step_ticks
        self._pitch = find_pitch(evidence.sketches)
        self._read = 0  # tick of the last reading
        self._order = EventOrder()
        self.info = StreamInfo()  # contents of its source (`expect`)
        self.noticed: list[Notice] = []  # notices so far, in order
        self.is_over = self._of_source = False
        self._in_use = Lock()

    @property
    def phase(self) -> str:
        """``"opened"``, ``"running"`` from the first block on, or ``"ended"`` after the last."""
        if self.is_over:
            return "ended"
        return "running" if self._of_source or self.intake.has_begun else "opened"

    @property
    def is_of_stretches(self) -> bool:
        """True if the last reading is of the watched voice's stretches alone."""
        second = self.observers.second
        return second is not None and second.is_chosen

    @property
    def most_revealing(self) -> tuple[float, float] | None:
        """Bits of the most revealing 1.5 s of speech and their end in seconds, or None."""
        second = self.observers.second
        if second is None or second.now.most is None:
            return None
        bits, tick = second.now.most
        return bits, tick / TICKS_PER_SECOND

    def expect(self, info: StreamInfo) -> None:
        """Prepare for a source before its first item."""
        self.info = info
        self.intake.coverage = WordCoverage() if info.words else None
        if info.noise:  # each noisy frame would seem to be another voice
            self.observers.changes.rest()

    def listen(self, source: Iterable[Item]) -> Iterator[Event]:
        """Yield the events of a source's items and of its end; UsageError in a begun stream."""
        if self.phase != "opened":
            raise UsageError(_ENDED if self.is_over else _RUNNING)
        self._of_source = True
        try:
            for item in source:
                yield from self.push(item)
            yield from self.end()
        finally:  # after an early exit, `push` may continue the stream
            self._of_source = False

    def alone(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield events of this stream; UsageError in a second thread, or while reading a source."""
        if self.is_over or self._of_source:
            raise UsageError(_ENDED if self.is_over else _RUNNING)
        if not self._in_use.acquire(blocking=False):
            raise UsageError(
                "another thread pushes to this Monitor: give each a Monitor of its own"
            )
        try:
            yield from events
        finally:
            self._in_use.release()

    def push(self, item: Item) -> Iterator[Event]:
        """Yield the events of one more item."""
        if isinstance(item, Gap):
            yield from self.lose(self.intake.arrived, item)
            return
        for frames in self.take_in(item):
            yield from self.advance(frames)

    def lose(self, tick: int, gap: Gap) -> Iterator[Event]:
        """Yield the events that are due after a loss of audio at a tick."""
        self._order.add(tick, gap)
        yield from self._pop_events()

    def take_in(self, item: Block | Frames | Words | Tracks) -> Iterator[Frames]:
        """Return the frames that one more item completes, run by run, for `advance`."""
        self.intake.due = self._read + self._step_ticks
        return self.intake.process(item)

    def settle(self) -> Iterator[Event]:
        """Yield the events of collected short blocks, before a snapshot."""
        for frames in self.intake.complete_collected():
            yield from self.advance(frames)

    def end(self) -> Iterator[Event]:
        """Yield the events of the end of the stream."""
        for frames in self.intake.finish():
            yield from self.advance(frames)
        evidence, recordings = self.evidence, self.observers.recordings
        self._settle_repeats()
        for tick, notice in self.observers.copies.finish(evidence.arrived):
            self._order.add(tick, replace(notice, recording=recordings.number))
        yield from self._pop_events(last=True)
        self.is_over = True
        if evidence.tick > self._read:  # a last reading, with late frames
            moments = evidence.moments([evidence.tick], everything=True)
            evidence.tidy(everything=True)
            yield from answered(self._assess(moments))

    def advance(self, frames: Frames) -> Iterator[Event]:
        """Yield the events of a further run of ticks, in order."""
        return answered(self.steps(frames))

    def steps(self, frames: Frames) -> Steps:
        """Process a block; yield its events, and the questions that it needs answered."""
        evidence, start = self.evidence, self.evidence.arrived
        self._observe(frames)
        self._announce(frames, start)
        yield from self._pop_events()
        while evidence.waiting:
            self._apply_corrections()
            due = (evidence.tick + evidence.learnable - self._read) // self._step_ticks
            if due:
                last = self._read + self._step_ticks * min(due, self.builder.together)
                ticks = range(self._read + self._step_ticks, last + 1, self._step_ticks)
                yield from self._assess(evidence.moments(list(ticks)))
            else:
                moments = evidence.moments([evidence.tick + evidence.learnable])
                self._learn(moments, 0)
                yield from self._pop_events()
        evidence.tidy()

    def _observe(self, frames: Frames) -> None:
        """Add the frames of further ticks that count, and pass them to the observers."""
        evidence, observers = self.evidence, self.observers
        arrived = evidence.arrived + frames.speech.size
        counted = self._let_in(frames, observers.repeats.update(frames, arrived))
        observers.conditions.add(counted.tracks.get(CONDITION))
        if observers.second is not None:
            windows = observers.gate.select_new_windows(frames.tracks)
            observers.second.add(counted, windows)
        # the totals contain all of the previous recording
        observers.recordings.begin_recording(frames.recording, lambda: self.evidence.own_totals)
        observers.recordings.add_speech(int(np.count_nonzero(frames.speech)))

    def _announce(self, frames: Frames, start: int) -> None:
        """Queue the losses and notices of further ticks, the first of them after ``start``."""
        recording, order = frames.recording, self._order
        for tick, notice in self.observers.copies.update(frames, self.evidence.arrived):
            order.add(tick, replace(notice, recording=recording))
        for tick, gap in frames.gaps:
            order.add(max(tick, start), gap)
        for tick, notice in frames.notices:
            order.add(max(tick, start), replace(notice, recording=recording))

    def _let_in(
        self, frames: Frames, decisions: Sequence[Decision], *, last: bool = False
    ) -> Frames:
        """Add frames to the sums unless they repeat earlier audio; return the added ones."""
        gate = self.observers.gate
        counted, corrections = gate.process(frames, frames.recording, decisions, last=last)
        self.evidence.add(counted)
        self.evidence.correct(corrections)
        for tick, notice in gate.pop_notices():
            self._order.add(tick, replace(notice, recording=frames.recording))
        return counted

    def _settle_repeats(self) -> None:
        decision = self.observers.repeats.finish(self.evidence.arrived)
        number = self.observers.recordings.number
        self._let_in(Frames(np.empty(0, np.bool_), {}, recording=number), [decision], last=True)
        self._apply_corrections()

    def _apply_corrections(self) -> None:
        """Correct the sums for audio that turned out to repeat earlier audio."""
        for correction in self.evidence.pop_corrections():
            self.evidence.apply(correction)
            if (change := correction.frames.get(CONDITION)) is not None:
                self.observers.conditions.correct(change.values, change.counts)

    def _assess(self, moments: Moments) -> Steps:
        observers, builder, segments = self.observers, self.builder, self.observers.segments
        sounds = observers.conditions.look_ahead(moments.ticks)
        watched = None
        if observers.second is not None:
            mixtures = observers.second.look_ahead(moments.ticks)
            watched = observers.second.select(mixtures, self.evidence.carried)
        request = builder.ask(moments, segments, sounds, watched)
        answers = yield request.questions
        assert answers is not None
        for r, assessed in enumerate(builder.complete(request, answers)):
            self._learn(moments, r)
            self._compare_voicing(moments, r)
            yield from self._pop_events()
            change = observers.changes.find_change(self.evidence.tick)
            if change is not None:
                yield change
                if segments is not None:
                    end = self.evidence.past.find(round(change.since_seconds * TICKS_PER_SECOND))
                    segments.change(end, partial(builder.choose_best, condition=sounds[r]))
                    watched = None if watched is None else watched.only(r)
                    (assessed,) = builder.assess(moments.only(r), segments, [sounds[r]], watched)
            is_cut = change is not None and segments is not None
            is_afresh = change is not None and observers.changes.begins_afresh
            reading = self._read_out(assessed)
            if is_afresh:  # before the yield, at which a run may be stopped and resumed
                self.begin_afresh()
            yield reading
            if is_afresh or is_cut:  # the remaining answers are no longer valid
                return

    def _learn(self, moments: Moments, r: int) -> None:
        """Add everything up to moment r to the sums, and advance the observers."""
        self.observers.changes.follow(moments, r)
        self.evidence.learn(moments, r)
        for observer in (self.observers.conditions, self.observers.second):
            for tick, notice in () if observer is None else observer.advance(self.evidence.tick):
                self._note(tick, notice)

    def _compare_voicing(self, moments: Moments, r: int) -> None:
        """Compare the share of this voice's speech that has pitch with the templates'."""
        if (name := self._pitch) is None:
            return
        seconds, speech = float(moments.totals[name].usable_seconds[r]), int(moments.speech[r])
        if (carried := self.evidence.carried) is not None:
            seconds -= carried.usable[name] / TICKS_PER_SECOND
            speech -= carried.speech
        if (notice := self.observers.conditions.compare_voicing(speech, seconds)) is not None:
            self._note(moments.ticks[r], notice)

    def _note(self, tick: int, notice: Notice) -> None:
        """Queue a notice that a replay of the stream would not add again."""
        placed = replace(notice, recording=self.observers.recordings.number)
        self._order.add(tick, placed, again=False)

    def _read_out(self, assessed: Assessment) -> Reading:
        self._read = self.evidence.tick
        self.evidence.mark()
        if self.observers.segments is not None:
            self.observers.segments.chosen = 0 if assessed.is_of_stretches else assessed.chosen
        if self.observers.second is not None:
            self.observers.second.is_chosen = assessed.is_of_stretches
        return self._build(self.builder, assessed)

    def _build(self, builder: ReadingBuilder, assessed: Assessment) -> Reading:
        observers = self.observers
        return builder.reading(
            self.evidence.tick,
            assessed,
            observers.changes.open,
            observers.recordings.number,
            observers.conditions,
        )

    def begin_afresh(self) -> None:
        """Begin another voice in the same stream."""
        self.evidence.forget()
        self.observers.conditions.begin_afresh()
        if self.observers.second is not None:
            self.observers.second.begin_afresh(self.evidence.tick)
        if self.observers.changes.on_change == "split":  # another stream, with its own peak
            self.builder.stream += 1
            self.builder.peak = 0.0

    def _pop_events(self, *, last: bool = False) -> Iterator[GapEvent | NoticeEvent]:
        for event in self._order.pop_due(self.evidence.tick, last=last):
            if isinstance(event, NoticeEvent):
                self.noticed.append(event.notice)
            yield event

    def standing(self) -> Reading:
        """Return the reading so far, before the next one is due."""
        builder = copy(self.builder)  # a copy, because only due readings change the peak
        moments = self.evidence.moments([self.evidence.tick])
        watched = None
        if (second := self.observers.second) is not None:
            watched = second.select([second.now], self.evidence.carried)
        sounds = [self.observers.conditions.now]
        (assessed,) = builder.assess(moments, conditions=sounds, watched=watched)
        return self._build(builder, assessed)

    @property
    def skipped_ticks(self) -> int:
        """Ticks at the beginning that a resumed stream can skip."""
        return max(0, self.evidence.tick - RECALLED_TICKS)

    @property
    def totals(self) -> FeatureTotals:
        """Totals of this voice, with those that the stream began with."""
        totals, segments = self.evidence.totals, self.observers.segments
        second, carried = self.observers.second, self.evidence.carried
        if second is not None and (watched := second.own_totals) is not None:
            return watched if carried is None else carried + watched
        return totals if segments is None else segments.get_totals(totals)

    def state(self) -> tuple[StreamState, dict[str, AnyArray]]:
        """Return everything needed to resume after the last reading: plain values and arrays."""
        sums, arrays = self.evidence.state()
        observers, more = self.observers.state()
        plain: StreamState = {
            **sums,
            "read": self._read,
            "peak": self.builder.peak,
            "stream": self.builder.stream,
            "losses": self._order.count,
            "noticed": [asdict(notice) for notice in self.noticed],
            "observers": observers,
        }
        return plain, arrays | more

    def restore(self, plain: StreamState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state`` into a new stream. Then push the items again, from the first one."""
        evidence, segments = self.evidence, self.observers.segments
        evidence.restore(plain, arrays)
        if segments is not None and evidence.carried is not None:
            segments.before = evidence.carried
        self.observers.restore(plain["observers"], arrays)
        self._read, self.builder.peak = int(plain["read"]), float(plain["peak"])
        if not 0 <= evidence.tick - self._read <= self._step_ticks:
            raise StoreError("the checkpoint does not fit: it was not taken at a reading")
        self.builder.stream = int(plain["stream"])
        self._order.emitted_count = int(plain["losses"])
        self.noticed += [Notice(**fields) for fields in plain["noticed"]]
        self.intake.skip = self.skipped_ticks


class EventOrder:
    """Queue that emits every loss and notice once, in order, for any cutting of the stream."""

    def __init__(self) -> None:
        self.emitted_count = 0  # events emitted before the stop that the stream is resumed from
        self._passed = self._notices = 0
        self._waiting: list[tuple[int, Gap | Notice, bool]] = []

    @property
    def count(self) -> int:
        """Number of repeatable events so far, including those before a stop."""
        return max(self._passed, self.emitted_count)

    def add(self, tick: int, event: Gap | Notice, *, again: bool = True) -> None:
        """Add an event, to be emitted once this many ticks have been processed.

        ``again`` is true if a replay of the stream adds it again.
        """
        if isinstance(event, Notice):
            self._notices += 1
            if self._notices > MOST_NOTICES:
                return
        self._waiting.append((tick, event, again))
        self._waiting.sort(key=lambda waiting: waiting[0])

    def pop_due(self, tick: int, *, last: bool = False) -> Iterator[GapEvent | NoticeEvent]:
        """Yield the events due by this tick, or all of them if ``last``."""
        while self._waiting and (last or self._waiting[0][0] <= tick):
            at, event, again = self._waiting.pop(0)
            self._passed += again
            if again and self._passed <= self.emitted_count:
                continue
            seconds = min(at, tick) / TICKS_PER_SECOND
            if isinstance(event, Notice):
                yield NoticeEvent.from_notice(seconds, event)
            else:
                yield GapEvent.from_gap(seconds, event)


class Observer(Protocol):
    """An observer of a stream, which is saved and restored with it."""

    def state(self) -> tuple[Mapping[str, Any], dict[str, AnyArray]]:
        """Return the state that a replay would not restore, as plain values and arrays."""

    def restore(self, plain: Any, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state`` into an unused observer."""


@dataclass
class Observers:
    """The observers of one stream."""

    copies: CopyFinder  # detector of copies of enrolled recordings
    # repeats, gate: detector of audio that repeats earlier audio, and the gate that excludes it
    repeats: RepeatFinder
    gate: RepeatGate
    conditions: StreamConditions  # sound conditions
    recordings: Recordings  # recordings of the stream
    changes: SpeakerChanges  # detector of changes of speaker or channel
    # segments between changes; None if all speech is weighed as one voice
    segments: SpeakerSegments | None
    # search for another voice that takes turns; None without a search
    second: SecondVoice | None = None

    def _kept(self) -> dict[str, Observer]:
        observers: dict[str, Observer | None] = {
            "conditions": self.conditions,
            "recordings": self.recordings,
            "changes": self.changes,
            "segments": self.segments,
            "second": self.second,
        }
        return {name: observer for name, observer in observers.items() if observer is not None}

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Return the states of all observers by name, as plain values and arrays."""
        states = {name: observer.state() for name, observer in self._kept().items()}
        arrays = {
            f"{name}/{key}": array
            for name, (_, observer_arrays) in states.items()
            for key, array in observer_arrays.items()
        }
        return {name: plain for name, (plain, _) in states.items()}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state`` into unused observers."""
        for name, observer in self._kept().items():
            observer.restore(plain[name], select_arrays(f"{name}/", arrays))


def select_arrays(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Select arrays by the start of their names; the keys are the rest of the names."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
