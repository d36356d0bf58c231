"""One stream on its way: what was heard of it, and the order in which a block counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NotRequired, TypeAlias

import numpy as np

from monitor.errors import StoreError
from monitor.events.reading import Reading
from monitor.events.run import Change, GapEvent, NoticeEvent
from monitor.features.channel import CONDITION
from monitor.protocols import StreamInfo
from monitor.stream.accumulator import AccumulatorState, FeatureTotals, FrameAccumulator, Moments
from monitor.stream.choice import find_pitch
from monitor.stream.copies import CopyFinder
from monitor.stream.event_order import EventOrder
from monitor.stream.forking import Forking
from monitor.stream.intake import Intake
from monitor.stream.reading_builder import (
    ConditionsState,
    MomentAssessment,
    ReadingBuilder,
    SegmentsState,
    SpeakerSegments,
    StreamConditions,
)
from monitor.stream.repeats import RECALLED_TICKS, Decision, RepeatFinder, RepeatGate
from monitor.stream.speaker_changes import (
    Recordings,
    RecordingsState,
    SpeakerChanges,
    SpeakerChangesState,
)
from monitor.stream.word_coverage import WordCoverage
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Frames, Gap, Item, Notice

Event: TypeAlias = "Reading | GapEvent | NoticeEvent | Change"
_NEVER = 1 << 40  # ticks


class StreamState(AccumulatorState, SpeakerChangesState):
    """Plain values of a `Stream`, in a checkpoint."""

    read: int
    peak: float
    stream: int
    losses: int
    noticed: list[dict[str, Any]]
    conditions: ConditionsState
    recordings: RecordingsState
    stretches: NotRequired[SegmentsState]


@dataclass
class Observers(Forking):
    """All that looks at a stream beside its sums.

    Attributes:
        copies: of enrolled recordings.
        finder, gate: of audio that the stream has had before, and what lets the rest count.
        conditions: its sound.
        recordings: those that it consists of.
        changes: of speaker or channel.
        segments: between them; None where all is weighed as one voice.
    """

    copies: CopyFinder
    finder: RepeatFinder
    gate: RepeatGate
    conditions: StreamConditions
    recordings: Recordings
    changes: SpeakerChanges
    segments: SpeakerSegments | None


class Stream(Forking):
    """A stream that is measured: items in, events out, each in its time.

    Args:
        intake: its way in.
        accumulator: its sums.
        builder: of its readings.
        observers: what looks at it besides.
        step_ticks: from one reading to the next.

    Attributes:
        info: what its source says it brings (`expect`).
        noticed: notices so far, in order.
        is_over: whether it has ended.
    """

    def __init__(
        self,
        intake: Intake,
        accumulator: FrameAccumulator,
        builder: ReadingBuilder,
        observers: Observers,
        step_ticks: int,
    ) -> None:
        self.intake, self.builder, self.observers = intake, builder, observers
        self._accumulator, self._step_ticks = accumulator, step_ticks
        self._pitch = find_pitch(accumulator.sketches)
        self._read = 0  # tick of the last reading
        self._order = EventOrder()
        self.info = StreamInfo()
        self.noticed: list[Notice] = []
        self.is_over = False

    def expect(self, info: StreamInfo) -> None:
        """Prepare for a source before its first item."""
        self.info = info
        self.intake.coverage = WordCoverage() if info.words else None
        if info.noise:  # no two frames fit each other: each would seem to be another voice
            self.observers.changes.rest()

    def push(self, item: Item) -> Iterator[Event]:
        """Yield what one more item brings."""
        if isinstance(item, Gap):
            self._order.add(self.intake.arrived, item)
            yield from self._pop_events()
            return
        for frames in self.intake.process(item):
            yield from self._advance(frames)

    def end(self) -> Iterator[Event]:
        """Yield what the end of the stream brings."""
        for frames in self.intake.finish():
            yield from self._advance(frames)
        accumulator, recordings = self._accumulator, self.observers.recordings
        self._settle_repeats()
        for tick, notice in self.observers.copies.finish(accumulator.arrived):
            self._order.add(tick, replace(notice, recording=recordings.number))
        yield from self._pop_events(last=True)
        self.is_over = True
        if accumulator.tick > self._read:  # with what came after its tick, at the very end
            moments = accumulator.moments([accumulator.tick], everything=True)
            accumulator.tidy(everything=True)
            yield from self._assess(moments)

    def _advance(self, frames: Frames) -> Iterator[Event]:
        """Yield what a further run of ticks brings, in order: this is one block's way."""
        accumulator, start = self._accumulator, self._accumulator.arrived
        self._observe(frames)
        self._announce(frames, start)
        yield from self._pop_events()
        while accumulator.waiting:
            self._apply_corrections()
            due = (accumulator.tick + accumulator.learnable - self._read) // self._step_ticks
            if due:
                last = self._read + self._step_ticks * min(due, self.builder.together)
                ticks = range(self._read + self._step_ticks, last + 1, self._step_ticks)
                yield from self._assess(accumulator.moments(list(ticks)))
            else:
                moments = accumulator.moments([accumulator.tick + accumulator.learnable])
                self._learn(moments, 0)
                yield from self._pop_events()
        accumulator.tidy()

    def _observe(self, frames: Frames) -> None:
        """Take in what counts of further ticks, and show them to all that look at the stream."""
        accumulator, observers = self._accumulator, self.observers
        arrived = accumulator.arrived + frames.speech.size
        counted = self._let_in(frames, observers.finder.update(frames, arrived))
        observers.conditions.add(counted.tracks.get(CONDITION))
        # all of the recording before it has been learnt
        observers.recordings.begin_recording(frames.recording, lambda: self.all_totals)
        observers.recordings.add_speech(int(np.count_nonzero(frames.speech)))

    def _announce(self, frames: Frames, start: int) -> None:
        """Put the losses and notices of further ticks, the first after ``start``, into order."""
        recording, order = frames.recording, self._order
        for tick, notice in self.observers.copies.update(frames, self._accumulator.arrived):
            order.add(tick, replace(notice, recording=recording))
        for tick, gap in frames.gaps:
            order.add(max(tick, start), gap)
        for tick, notice in frames.notices:
            order.add(max(tick, start), replace(notice, recording=recording))

    def _let_in(
        self, frames: Frames, decisions: Sequence[Decision], *, last: bool = False
    ) -> Frames:
        """Add to the sums, and return, what the stream has not had before."""
        gate = self.observers.gate
        counted, corrections = gate.process(frames, frames.recording, decisions, last=last)
        self._accumulator.add(counted)
        self._accumulator.correct(corrections)
        for tick, notice in gate.pop_notices():
            self._order.add(tick, replace(notice, recording=frames.recording))
        return counted

    def _settle_repeats(self) -> None:
        """Settle at the end of the stream what repeats."""
        decision = self.observers.finder.finish(self._accumulator.arrived)
        number = self.observers.recordings.number
        self._let_in(Frames(np.empty(0, np.bool_), {}, recording=number), [decision], last=True)
        self._apply_corrections()

    def _apply_corrections(self) -> None:
        """Correct what was counted, and turned out to repeat what the stream had before."""
        observers = self.observers
        for correction in self._accumulator.pop_corrections():
            self._accumulator.apply(correction)
            if (change := correction.frames.get(CONDITION)) is not None:
                observers.conditions.correct(change.values, change.counts)
            if observers.segments is not None:
                observers.segments.unmark(correction.since)

    def _assess(self, moments: Moments) -> Iterator[Event]:
        """Assess these moments together, then learn and yield them one by one."""
        observers, builder, segments = self.observers, self.builder, self.observers.segments
        sounds = observers.conditions.look_ahead(moments.ticks)
        for r, assessed in enumerate(builder.assess(moments, segments, sounds)):
            self._learn(moments, r)
            self._compare_voicing(moments, r)
            yield from self._pop_events()
            change = observers.changes.find_change(self._accumulator.tick)
            if change is not None:
                yield change
                if segments is not None:
                    since = round(change.since_seconds * TICKS_PER_SECOND)
                    segments.change(since, partial(builder.choose_best, condition=sounds[r]))
                    (assessed,) = builder.assess(moments.only(r), segments, [sounds[r]])
            is_cut = change is not None and segments is not None
            is_afresh = change is not None and observers.changes.begins_afresh
            reading = self._read_out(assessed)
            if is_afresh:  # before the reading, after which a run may be stopped and resumed
                self.begin_afresh()
            yield reading
            if is_afresh or is_cut:  # what was looked ahead to will not be so
                return

    def _learn(self, moments: Moments, r: int) -> None:
        """Learn everything up to moment r, and compare its sound with the templates'."""
        self.observers.changes.follow(moments, r)
        self._accumulator.learn(moments, r)
        for tick, notice in self.observers.conditions.advance(self._accumulator.tick):
            self._note(tick, notice)

    def _compare_voicing(self, moments: Moments, r: int) -> None:
        """Compare the share of this voice's speech that has pitch with the templates'."""
        if (name := self._pitch) is None:
            return
        seconds, speech = float(moments.totals[name].usable_seconds[r]), int(moments.speech[r])
        if (carried := self._accumulator.carried) is not None:
            seconds -= carried.usable[name] / TICKS_PER_SECOND
            speech -= carried.speech
        if (notice := self.observers.conditions.compare_voicing(speech, seconds)) is not None:
            self._note(moments.ticks[r], notice)

    def _note(self, tick: int, notice: Notice) -> None:
        """Put a notice into order that a replay of the stream would not bring again."""
        placed = replace(notice, recording=self.observers.recordings.number)
        self._order.add(tick, placed, again=False)

    def _read_out(self, assessed: MomentAssessment) -> Reading:
        """Make the reading of the moment that was learnt last."""
        self._read = self._accumulator.tick
        if (segments := self.observers.segments) is not None:
            segments.mark(self._read, lambda: self._accumulator.totals)
            segments.chosen = assessed.chosen
        return self._build(self.builder, assessed)

    def _build(self, builder: ReadingBuilder, assessed: MomentAssessment) -> Reading:
        observers = self.observers
        return builder.reading(
            self._accumulator.tick,
            assessed,
            observers.changes.open,
            observers.recordings.number,
            observers.conditions,
        )

    def begin_afresh(self) -> None:
        """Forget the voice so far; the stream goes on."""
        self._accumulator.forget()
        self.observers.conditions.begin_afresh()
        if self.observers.changes.begins_another:
            self.builder.begin_another_stream()

    def _pop_events(self, *, last: bool = False) -> Iterator[GapEvent | NoticeEvent]:
        for event in self._order.pop_due(self._accumulator.tick, last=last):
            if isinstance(event, NoticeEvent):
                self.noticed.append(event.notice)
            yield event

    def standing(self) -> Reading:
        """Return the reading so far, before the next one is due."""
        builder = self.builder.fork()  # the peak is of readings that are due
        moments = self._accumulator.moments([self._accumulator.tick])
        (assessed,) = builder.assess(moments, conditions=[self.observers.conditions.now])
        return self._build(builder, assessed)

    def foresee_end(self, rest: Block | Frames) -> list[Reading]:
        """Return the readings that may come if the stream ended now, or after some silence."""
        readings: list[Reading] = []
        for further in ((), (rest,)):
            fork = self.fork()
            fork._step_ticks, fork._read = _NEVER, self._read - 1  # only the last reading is due
            for block in further:
                for _ in fork.push(block):
                    pass
                readings.append(fork.standing())
            readings += [event for event in fork.end() if isinstance(event, Reading)]
        return readings

    @property
    def ticks(self) -> int:
        """Ticks of the stream that were learnt."""
        return self._accumulator.tick

    @property
    def skipped_ticks(self) -> int:
        """Ticks at the beginning that a resumed stream can skip."""
        return max(0, self._accumulator.tick - RECALLED_TICKS)

    @property
    def totals(self) -> FeatureTotals:
        """Totals of this voice, with those that the stream began with."""
        totals, segments = self._accumulator.totals, self.observers.segments
        return totals if segments is None else segments.get_totals(totals)

    @property
    def own_totals(self) -> FeatureTotals:
        """Totals of this voice in this stream alone."""
        return self._subtract_carried(self.totals)

    @property
    def all_totals(self) -> FeatureTotals:
        """Totals of this stream alone, whoever spoke."""
        return self._subtract_carried(self._accumulator.totals)

    def _subtract_carried(self, totals: FeatureTotals) -> FeatureTotals:
        carried = self._accumulator.carried
        return totals if carried is None else totals - carried

    def state(self) -> tuple[StreamState, dict[str, AnyArray]]:
        """Return everything needed to go on after the last reading: plain values and arrays."""
        observers = self.observers
        totals, arrays = self._accumulator.state()
        changes, change_arrays = observers.changes.state()
        conditions, condition_arrays = observers.conditions.state()
        recordings, recording_arrays = observers.recordings.state()
        plain: StreamState = {
            **totals,
            **changes,  # type: ignore[typeddict-item]  # stretches come below
            "read": self._read,
            "peak": self.builder.peak,
            "stream": self.builder.stream,
            "losses": self._order.count,
            "noticed": [asdict(notice) for notice in self.noticed],
            "conditions": conditions,
            "recordings": recordings,
        }
        groups = {
            "change": change_arrays,
            "conditions": condition_arrays,
            "recordings": recording_arrays,
        }
        if observers.segments is not None:
            plain["stretches"], groups["stretches"] = observers.segments.state()
        for group, more in groups.items():
            arrays |= {f"{group}/{name}": array for name, array in more.items()}
        return plain, arrays

    def restore(self, plain: StreamState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``, fresh; the stream must then be fed from its first sample again."""
        observers, accumulator = self.observers, self._accumulator
        accumulator.restore(plain, arrays)
        observers.changes.restore(plain, select_arrays("change/", arrays))
        if (segments := observers.segments) is not None:
            segments.before = accumulator.carried or segments.before
            segments.restore(plain["stretches"], select_arrays("stretches/", arrays))
        observers.recordings.restore(plain["recordings"], select_arrays("recordings/", arrays))
        sums = select_arrays("conditions/", arrays)
        observers.conditions.restore(int(plain["tick"]), plain["conditions"], sums)
        self._read, self.builder.peak = int(plain["read"]), float(plain["peak"])
        if not 0 <= accumulator.tick - self._read <= self._step_ticks:
            raise StoreError("the checkpoint does not fit: it was not taken at a reading")
        self.builder.stream = int(plain["stream"])
        self._order.emitted_count = int(plain["losses"])
        self.noticed += [Notice(**fields) for fields in plain["noticed"]]
        self.intake.skip = self.skipped_ticks


def select_arrays(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Select arrays whose names begin so, by the rest of their names."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
