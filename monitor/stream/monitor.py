"""The streaming monitor: audio or frames in, readings out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, NotRequired, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from monitor.errors import StoreError, UsageError
from monitor.events.keys import HEADLINES
from monitor.events.reading import Reading
from monitor.events.run import Change, GapEvent, NoticeEvent
from monitor.features.channel import CONDITION
from monitor.features.framing import columns_of
from monitor.features.registry import (
    AS_ENVIRONMENT,
    FeatureSetup,
    get_least_share,
    superseded,
    takes,
)
from monitor.kinds import FeatureSpec
from monitor.population.false_alarms import FalseAlarms, false_alarms
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.protocols import Feature, Source
from monitor.safe_text import spelled
from monitor.sources.base import samples_or_source
from monitor.sources.registry import missing_members, open_source
from monitor.stream.accumulator import AccumulatorState, FeatureTotals, FrameAccumulator, Moments
from monitor.stream.attacker import Attacker, AttackerSettings
from monitor.stream.choice import choose_features
from monitor.stream.copies import CopyFinder
from monitor.stream.front_end import BesideClock, BlocksToTicks, FrontEnd, WordCoverage
from monitor.stream.notices import (
    EventOrder,
    log_notices,
    recording_notices,
    session_of,
    setup_notices,
)
from monitor.stream.posterior import Bystanders
from monitor.stream.reading_builder import (
    ConditionsState,
    ReadingBuilder,
    SegmentsState,
    SpeakerSegments,
    StreamConditions,
)
from monitor.stream.repeats import RECALLED_TICKS, RepeatFinder, RepeatGate
from monitor.stream.speaker_changes import (
    ON_CHANGE,
    CopiedChanges,
    Recordings,
    RecordingsState,
    SpeakerChanges,
    SpeakerChangesState,
    are_different_people,
    create_change_detector,
)
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


@dataclass(frozen=True, slots=True)
class MonitorSettings(AttackerSettings):
    """Rarer settings of a `Monitor`; UsageError where they make no sense.

    Attributes:
        top: how many of the most probable speakers a reading names.
        among: sizes of crowds in which to give the evidence, each at least N; None for the N
            enrolled and a million.
        enrolled_prior: probability, before any speech, that one of the N speaks.
        channel: the channel to process, counted from 1; None mixes all of them.
        bystanders: name everybody enrolled, but the watched speaker, whose probability in the
            largest of these crowds lies above this level; None names nobody.
        template_seconds: D to cut all templates to; None for their common length, or the watched
            speaker's where that is shorter.
        rank_models: rank models to use instead of the population's own.
    """

    channel: int | None = None
    bystanders: float | None = None
    template_seconds: float | None = None
    rank_models: RankModels | None = None

    def __post_init__(self) -> None:
        AttackerSettings.__post_init__(self)
        if self.channel is not None and self.channel < 1:
            raise UsageError(
                f"channel={self.channel} must be 1 or more: channels are counted from 1"
            )

    def get_rank_models(self, population: Population) -> RankModels:
        """Return the rank models to use with this population."""
        return population.rank_models if self.rank_models is None else self.rank_models


_DEFAULTS = MonitorSettings()


def _count_step_ticks(step_seconds: float) -> int:
    """Return ticks from one reading to the next; UsageError where they are no whole number."""
    ticks = step_seconds * TICKS_PER_SECOND
    if not (math.isfinite(ticks) and round(ticks) >= 1 and abs(ticks - round(ticks)) <= 1e-6):
        raise UsageError(f"step_seconds={step_seconds:g} must be a positive multiple of 0.01")
    return round(ticks)


_FIRST_SECONDS = 2.0
_TWO_CLOCKS = (
    "a stream is of audio or of ready-made frames, not of both, as each keeps the clock: give "
    "frames beside audio as Tracks (sources.SideInputSource)"
)
_RUNNING = "this Monitor is in the middle of a stream: make another one, or end it by reset()"
_ENDED = "this Monitor has heard its stream to the end: make another one, or reset() it"
Event: TypeAlias = "Reading | GapEvent | NoticeEvent | Change"


class MonitorState(AccumulatorState, SpeakerChangesState):
    """Plain values of a `Monitor`, in a checkpoint."""

    read: int
    peak: float
    stream: int
    losses: int
    noticed: list[dict[str, Any]]
    conditions: ConditionsState
    recordings: RecordingsState
    stretches: NotRequired[SegmentsState]


class Monitor:
    """Monitor of one voice: how many bits of identity it has disclosed, second by second.

    One stream is heard by one monitor, from a source (`stream`) or as it comes (`push`, `finish`);
    after `reset` it hears another.

    Args:
        population: the N enrolled speakers, with rank models.
        features: names, or features of your own, or a `FeatureSpec` for one whose frames come
            ready-made beside audio; None takes every feature that the population has a rank model
            for and that can be computed here, together.
        watch: the enrolled speaker to follow: then the headline is the evidence, where there is a
            rank model of it. Without one it is the attacker's confidence, which assumes that the
            speaker is enrolled.
        step_seconds: audio seconds from one reading to the next, a multiple of 0.01.
        on_change: what to do when another person, or channel, takes over: ``"ignore"`` (do not
            look), ``"note"`` (report it and go on), ``"reset"`` (begin the evidence afresh; the
            peak stays) or ``"split"`` (what follows is another stream, with its own peak).
        session: of the rank model: ``"same"`` where the templates come from another part of this
            very recording, else ``"cross"``. None goes by what a source is made of (`fit_to`), and
            is ``"cross"`` for what is pushed.
        setup: from where features are made.
        settings: rarer ones.

    Attributes:
        skipped_features: features of the population that cannot be computed of this stream.
        noise: what the source says was added to its embeddings; empty where nothing was.
        recordings (Recordings): of the stream so far.
        conditions (StreamConditions): of the stream so far.
        coverage (WordCoverage | None): where words come.
        noticed (list[Notice]): the notices that arose on the stream so far, in order.

    Example:
        >>> from monitor import Monitor, Population
        >>> from monitor.types import Frames, Track
        >>> monitor = Monitor(Population.reference())
        >>> voice = Track(np.arange(1, 301), np.full(300, 40))  # three seconds, one steady pitch
        >>> *early, reading = monitor.push(Frames(np.ones(300, dtype=bool), {"f0": voice}))
        >>> [waiting.bits for waiting in early]  # too little speech for the embedding
        [None, None]
        >>> reading.seconds, reading.speech, 0 <= reading.bits <= reading.ceiling
        (3.0, 3.0, True)
    """

    def __init__(
        self,
        population: Population,
        features: Sequence[str | Feature | FeatureSpec] | None = None,
        watch: str | None = None,
        *,
        step_seconds: float = 1.0,
        on_change: str = "ignore",
        session: str | None = None,
        setup: FeatureSetup = AS_ENVIRONMENT,
        settings: MonitorSettings = _DEFAULTS,
    ) -> None:
        self._every = _count_step_ticks(step_seconds)
        if on_change not in ON_CHANGE:
            raise UsageError(f"on_change={on_change!r} must be one of {', '.join(ON_CHANGE)}")
        self.step_seconds, self.on_change, self.settings = step_seconds, on_change, settings
        watch = watch and spelled(watch)
        self.population, self.watch = population, watch
        self.noise = ""
        self._labels: tuple[str, ...] = ("the stream",)
        self._rank_models = settings.get_rank_models(population)
        candidates: Iterable[str] = ()
        if features is None:
            features = choose_features(self._rank_models, setup=setup)
            candidates = population.features
        self._attacker_in = partial(
            Attacker,
            population,
            [_get_name(feature) for feature in features],
            watch,
            rank_models=settings.rank_models,
            template_seconds=settings.template_seconds,
            settings=settings,
        )
        self._copied_changes: CopiedChanges | None = None
        self._closed_set = self._words_come = False
        self._by_source = session is None
        self._choose_attacker(session or "cross")
        self.skipped_features = self._list_skipped(candidates)
        self._own_features = [feature for feature in features if not isinstance(feature, str)]
        self.front_end = FrontEnd(population, self.features, self._own_features, setup)
        self._begin()

    @classmethod
    def for_source(
        cls,
        source: Source,
        population: Population,
        features: Sequence[str | Feature | FeatureSpec] | None = None,
        watch: str | None = None,
        *,
        step_seconds: float = 1.0,
        on_change: str = "ignore",
        setup: FeatureSetup = AS_ENVIRONMENT,
        settings: MonitorSettings = _DEFAULTS,
    ) -> Self:
        """Create a monitor of what an opened source brings; the rest as of `Monitor`.

        Where ``features`` is None, of ready-made frames the largest set of what they hold is taken,
        and words beside audio are processed too.
        """
        info, models = source.stream_info, settings.get_rank_models(population)
        available: list[str] = []
        if not features and not info.audio:
            available = [
                name
                for name in population.features
                if name in info.tracks or (info.words and takes(name) == "words")
            ]
        if available:
            features = choose_features(models, available)
        elif info.words and features is None:
            features = choose_features(models, words=True, setup=setup)
        monitor = cls(
            population,
            features,
            watch,
            step_seconds=step_seconds,
            on_change=on_change,
            setup=setup,
            settings=settings,
        )
        if available or info.words:
            monitor.skipped_features = monitor._list_skipped(available or population.features)
        return monitor

    def configuration(self) -> dict[str, object]:
        """Return JSON-able settings; a run is resumed only with equal ones."""
        settings = self.settings
        return {
            "among": None if settings.among is None else list(settings.among),
            "bystanders": settings.bystanders,
            "enrolled_prior": None if settings.enrolled_prior == 0.5 else settings.enrolled_prior,
            "step": self.step_seconds,
            "channel": settings.channel,
            "on_change": self.on_change,
            "top": settings.top,
        }

    def _list_skipped(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """List those candidates that are not used and no feature in use does better."""
        rest = [name for name in candidates if name not in self.features]
        return tuple(name for name in rest if not superseded(name, self.features))

    def _choose_attacker(self, session: str) -> None:
        """Choose the rank model of that kind of session, and what depends on it."""
        self.session = session
        self.attacker = self._attacker_in(session=session)
        self.features = self.attacker.features
        level = self.settings.bystanders
        self.bystanders: Bystanders | None = None
        if level is not None:
            self.bystanders = self.attacker.create_bystanders(level)
        shipped = self.attacker.rank_model.origin == "shipped"
        own = self.settings.rank_models is not None
        self.mismatched = self.population.mismatched or own or shipped

    @property
    def headline(self) -> str:
        """The figure in a reading's ``bits``: ``"evidence"`` or ``"closed-set"``."""
        evidence = self.watch is not None and self.attacker.support_bits is not None
        return "evidence" if evidence and not self._closed_set else "closed-set"

    def prefer_closed_set(self) -> None:
        """Make the closed-set figure the headline, to compare with a monitor without evidence."""
        if self._begun:
            raise UsageError("prefer_closed_set comes before the first block of a stream")
        self._closed_set = True
        self._begin_again()

    def false_alarms(
        self, field: str, share: float = 0.05, horizon_seconds: float = 600.0
    ) -> FalseAlarms:
        """Return the threshold that at most a share q of other people's whole streams exceeds.

        For `alerts.Conformal`: by how high streams of others got in calibration in
        ``horizon_seconds``, under the rank model in use, the watched speaker not among them.
        UsageError where calibration does not know it of that field, length or share.
        """
        alarms = false_alarms(
            self._rank_models,
            self.features,
            self.attacker.session,
            field,
            share,
            horizon_seconds,
            watch=self.watch,
            headline=self.headline,
        )
        return replace(alarms, most_bits=self.most_bits(field))

    def most_bits(self, field: str) -> float:
        """Return a bound on a field of readings, or on its lower limit; infinity where unknown."""
        name = field.removesuffix("_low")
        return self.attacker.most_bits(HEADLINES[self.headline] if name == "bits" else name)

    def reset(self) -> None:
        """End the stream; the next block starts a new one."""
        self.noise = ""
        self._words_come = False
        self.front_end.reset()
        if self._by_source and self.session != "cross":
            self._choose_attacker("cross")
        self._begin()

    def _begin(self) -> None:
        specs = {name: self.population.features[name].spec for name in self.features}
        follow = self.on_change != "ignore"
        self._accumulator = FrameAccumulator(specs, ("channel",) if follow else ())
        self._read = 0  # tick of the last reading
        self._builder = ReadingBuilder(
            self.attacker, self.watch is not None, self.headline, self.bystanders
        )
        detector = None
        if follow and self._copied_changes is None and not self.noise:
            detector = create_change_detector(
                self.population,
                self.attacker,
                self.on_change,
                self.front_end.get_change_sensitivities(),
            )
        self._changes = self._copied_changes or SpeakerChanges(detector, self.on_change)
        self._order = EventOrder()
        self.noticed: list[Notice] = []
        self._over = self._logged = self._of_source = False
        self._in_use = Lock()
        self._block_reader: BlocksToTicks | None = None
        self._copies = CopyFinder(self.population, self.watch)
        heard = {n: spec for n, spec in specs.items() if self.front_end.takes(n) == "audio"}
        self._repeats = RepeatFinder()
        self._gate = RepeatGate(heard, self.front_end.embed_part)
        self._beside = BesideClock(self.front_end)
        self.coverage = WordCoverage() if self._words_come else None
        self._segments: SpeakerSegments | None = None
        if self.on_change == "note" and self.attacker.watched:
            self._segments = SpeakerSegments(self._accumulator.totals)
        # where the evidence begins afresh nothing adds up over recordings
        self.recordings = Recordings(
            None if self._changes.begins_afresh else partial(are_different_people, specs)
        )
        self.conditions = StreamConditions(
            self.population.conditions(self.watch),
            lambda now: self.attacker.matching_bits(now),
            self.population.voiced_shares(self._pitch, self.watch) if self._pitch else (),
        )

    def _begin_again(self) -> None:
        """Begin again, with the same earlier totals."""
        carried, peak = self._accumulator.carried, self._builder.peak
        self._begin()
        if carried is not None:
            self.begin_with(carried, peak)

    def fresh(
        self, population: Population | None = None, *, step_seconds: float | None = None
    ) -> Monitor:
        """Create a monitor with the same settings for the same voice, which has heard nothing yet.

        It goes on from the same earlier streams, and names no bystanders. ``population`` has other
        templates of the same people, with rank models; None for the same.
        """
        rank_models = self.settings.rank_models if population is None else None
        monitor = Monitor(
            population or self.population,
            self.features,
            self.watch,
            step_seconds=step_seconds or self.step_seconds,
            on_change=self.on_change,
            session=self.session,
            setup=self.front_end.setup,
            settings=replace(self.settings, bystanders=None, rank_models=rank_models),
        )
        if population is None and self._accumulator.carried is not None:
            monitor.begin_with(self._accumulator.carried)
        if self._closed_set:
            monitor.prefer_closed_set()
        return monitor

    def twin(self, population: Population | None = None) -> tuple[Monitor, CopiedChanges]:
        """Create a `fresh` monitor for the same voice in another guise.

        Changes of speaker are copied to it, by the second value.
        """
        monitor = self.fresh(population)
        monitor._copied_changes = changes = CopiedChanges(self.on_change)
        monitor._begin_again()
        return monitor, changes

    def create_sibling(self) -> Monitor:
        """Create a monitor of another voice in the same recording, sharing what was prepared."""
        if not self.front_end.by_name:
            raise UsageError("features of one's own hear one voice: name features that are known")
        sibling = object.__new__(type(self))
        sibling.__dict__.update(self.__dict__)
        sibling.front_end = FrontEnd(
            self.population, self.features, self._own_features, self.front_end.setup
        )
        sibling._begin()
        sibling._copies = self._copies.create_sibling()
        return sibling

    def begin_with(self, totals: FeatureTotals, peak_bits: float = 0.0) -> None:
        """Start from the totals of earlier streams of the same voice, and their peak."""
        if self._begun:
            raise UsageError("begin_with comes before the first block of a stream")
        self._accumulator.begin_with(totals)
        if self._segments is not None:
            self._segments.before = totals
        self._builder.peak = peak_bits

    def standing(self) -> Reading:
        """Return the reading so far, before the next one is due."""
        moments = self._accumulator.moments([self._accumulator.tick])
        (assessed,) = self._builder.assess(moments, conditions=[self.conditions.now])
        peak = self._builder.peak
        reading = self._builder.reading(
            self._accumulator.tick,
            assessed,
            self._changes.open,
            self.recordings.number,
            self.conditions,
        )
        self._builder.peak = peak
        return reading

    def foresee_end(self, rest: Block) -> list[Reading]:
        """Return the readings that may come if the stream ended now, or after some silence.

        The speech that waits counts as well. Nothing changes.

        Args:
            rest: a moment of silence. After speech it counts as speech, as it would: voice activity
                goes on for a moment.
        """
        readings: list[Reading] = []
        shared = self.population, self.attacker, self._rank_models, self.settings, self._in_use
        for further in ((), (rest,)):
            copy = object.__new__(type(self))
            memo: dict[int, object] = {id(part): part for part in shared}
            # of what is known by its past nothing more is looked for
            memo |= {
                id(self): copy,
                id(self._copies): self._copies.create_sibling(),
                id(self._repeats): RepeatFinder(),
            }
            copy.__dict__.update(deepcopy(self.__dict__, memo))
            copy._every, copy._read = 1 << 40, self._read - 1  # no reading is due but the last
            for block in further:
                list(copy._push(block))
                readings.append(copy.standing())
            readings += [event for event in copy._end() if isinstance(event, Reading)]
        return readings

    @property
    def notices(self) -> list[Notice]:
        """Notices for people: of the setup, of the stream so far, at its end of recordings."""
        ended = recording_notices(self, self._labels) if self._over else []
        return [*setup_notices(self), *self.noticed, *ended]

    def _log_setup(self) -> None:
        """Log the notices of the setup, once a stream, before its first block."""
        if not self._logged:
            self._logged = True
            log_notices(setup_notices(self))

    @property
    def phase(self) -> str:
        """``"opened"``; ``"running"`` from the first block on; ``"ended"`` after the last."""
        if self._over:
            return "ended"
        return "running" if self._begun else "opened"

    @property
    def _begun(self) -> bool:
        pushed = self._accumulator.arrived or self._block_reader is not None or self._beside.begun
        return self._of_source or bool(pushed)

    @property
    def repeated_seconds(self) -> float:
        """Speech that repeats what was heard before in this stream, and was left out so far."""
        return self._gate.seconds

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
        """Totals of this voice, with those that the stream began with.

        Of a watched speaker, what the last reading is of: stretches that are another voice's are
        left out (``on_change="note"``).
        """
        totals = self._accumulator.totals
        return totals if self._segments is None else self._segments.get_totals(totals)

    @property
    def own_totals(self) -> FeatureTotals:
        """Totals of this stream alone; with ``on_change`` reset or split, since the change."""
        return self._subtract_carried(self.totals)

    @property
    def all_totals(self) -> FeatureTotals:
        """Totals of this stream alone, whoever spoke."""
        return self._subtract_carried(self._accumulator.totals)

    def _subtract_carried(self, totals: FeatureTotals) -> FeatureTotals:
        carried = self._accumulator.carried
        return totals if carried is None else totals - carried

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        """Refuse: a running stream holds detectors that cannot be copied."""
        raise UsageError(
            "a Monitor cannot be copied or pickled: it is in the middle of a stream; make another "
            "one of the same population, and hand over state() to its restore()"
        )

    def stream(
        self,
        source: Source | str | os.PathLike[str] | ArrayLike,
        *,
        rate: float | str | None = None,
        allow_overlap: bool = False,
    ) -> Iterator[Reading]:
        """Process a source to its end, by the rank model that `fit_to` finds for it.

        Yields a reading every ``step_seconds`` of audio, and one at the end for the rest.

        Args:
            source: a source, the name of one (`monitor.sources.open_source`), or samples
                (`monitor.sources.Samples`).
            rate: samples per second, of an array of samples.
            allow_overlap: measure audio that was enrolled, too; its figures are far too high.
        """
        for event in self.events(source, rate=rate, allow_overlap=allow_overlap):
            if isinstance(event, Reading):
                yield event

    def events(
        self,
        source: Source | str | os.PathLike[str] | ArrayLike,
        *,
        rate: float | str | None = None,
        allow_overlap: bool = False,
    ) -> Iterator[Event]:
        """Yield losses, notices and changes too, between the readings of ``stream``."""
        given = samples_or_source(source, rate)
        if isinstance(given, str | os.PathLike):
            with open_source(given) as opened:
                yield from self.events(opened, allow_overlap=allow_overlap)
            return
        if lack := missing_members(given):
            raise UsageError(lack)
        self.fit_to(given, allow_overlap=allow_overlap)
        self._log_setup()
        yield from _log_events(self.listen(given))
        log_notices(recording_notices(self, self._labels))

    def fit_to(self, source: Source, *, allow_overlap: bool = False) -> None:
        """Refuse a source that does not fit, and choose the rank model by what it is made of.

        OverlapError for audio that was enrolled; UsageError for frames of others, or where the
        stream has begun under another rank model. For another part of an enrolled recording the
        same-session rank model is taken (docs/method.md section 4), unless the monitor is of one
        kind of session.
        """
        parts = [part for part in source.provenance() or () if part.hashes]
        session = session_of(self.population, parts, allow_overlap=allow_overlap)
        if self._by_source and session == "same" != self.session:
            if self._begun or self._accumulator.tick:
                raise UsageError(
                    f"the stream has begun under the cross-session rank model, and {source.label} "
                    f"was "
                    'enrolled too: begin with Monitor(session="same")'
                )
            self._choose_attacker(session)
            self._begin_again()
        self.front_end.check(source)
        self._labels = source.labels
        self._words_come = source.stream_info.words
        self.coverage = WordCoverage() if self._words_come else None
        self.noise = source.stream_info.noise
        if self.noise:  # no two frames fit each other: each would seem to be another voice
            self._changes.rest()

    def listen(self, source: Iterable[Item]) -> Iterator[Event]:
        """Yield the ``events`` of a source that `fit_to` was asked about."""
        if self.phase != "opened":
            raise UsageError(_ENDED if self._over else _RUNNING)
        self._of_source = True
        try:
            for block in source:
                yield from self._push(block)
            yield from self._end()
        finally:  # one that is left in the middle may be gone on with by `push`
            self._of_source = False

    def take(self, item: Item | None) -> Iterator[Event]:
        """Process one more item, as `listen`; None ends the stream."""
        return self._end() if item is None else self._push(item)

    def push(self, block: Block | Frames | Words | Tracks) -> list[Reading]:
        """Process one more block, of any length, or what lies beside it: in time, before it.

        Returns the readings that fell due. SourceError or UsageError, and the stream as it was,
        where the block makes no sense, keeps another clock, or comes after the end.
        """
        return self._collect_readings(lambda: self._push(block))

    def finish(self) -> list[Reading]:
        """End the stream: return the reading for what came after the last one, if anything did."""
        if self._over:
            return []
        readings = self._collect_readings(self._end)
        log_notices(recording_notices(self, self._labels))
        return readings

    def _collect_readings(self, events: Callable[[], Iterator[Event]]) -> list[Reading]:
        """Return the readings of a push; one thread at a time, and no source meanwhile."""
        if self._over or self._of_source:
            raise UsageError(_ENDED if self._over else _RUNNING)
        if not self._in_use.acquire(blocking=False):
            raise UsageError(
                "another thread pushes to this Monitor: give each a Monitor of its own"
            )
        try:
            self._log_setup()
            return [event for event in _log_events(events()) if isinstance(event, Reading)]
        finally:
            self._in_use.release()

    def _push(self, block: Item) -> Iterator[Event]:
        if isinstance(block, Gap):
            place = (
                self._accumulator.arrived
                if self._block_reader is None
                else self._block_reader.ticks
            )
            self._order.add(place, block)
            yield from self._pop_events()
        elif isinstance(block, Frames):
            if self._block_reader is not None:
                raise UsageError(_TWO_CLOCKS)
            yield from self._begin_recording(block.recording)
            yield from self._advance(block, block.recording)
        elif isinstance(block, Words | Tracks):
            self._beside.check(block)
            if self._block_reader is not None and (
                last := self._block_reader.complete_before(block.recording)
            ):
                yield from self._advance(last, self.recordings.number)
            yield from self._begin_recording(block.recording)
            if self.coverage is not None and isinstance(block, Words):
                self.coverage.add_words(block)
            yield from self._advance(self._beside.process(block), block.recording)
        else:
            for part in self._split_first(block):
                if self._block_reader is None:
                    if self._accumulator.arrived:
                        raise UsageError(_TWO_CLOCKS)
                    self._block_reader = self.create_block_reader()
                *ended, frames = self._block_reader.process(part)
                for last in ended:
                    yield from self._advance(last, self.recordings.number)
                yield from self._begin_recording(block.recording)
                yield from self._advance(frames, block.recording)

    def _split_first(self, block: Block) -> Iterator[Block]:
        """Split a stream's first block, so that its first reading need not wait for all of it."""
        if self._block_reader is None:
            columns_of(block, None)  # a SourceError where it is none
            first = round(_FIRST_SECONDS * block.rate)
            if len(block.samples) > first:
                yield replace(block, samples=block.samples[:first])
                block = replace(block, samples=block.samples[first:])
        yield block

    def _begin_recording(self, recording: int) -> Iterator[Event]:
        """Begin a recording: what lies beside it counts from here."""
        last = self._beside.begin_recording(recording, self._accumulator.arrived)
        if last is not None:
            yield from self._advance(last, self.recordings.number)

    def create_block_reader(self) -> BlocksToTicks:
        """Create what computes frames of the stream's audio."""
        return BlocksToTicks(
            self.front_end.make(),
            self.settings.channel,
            self.skipped_ticks,
            levels=self._changes.is_active,
            conditions=True,
            landmarks=True,
        )

    def _end(self) -> Iterator[Event]:
        if self._block_reader is not None:
            yield from self._advance(self._block_reader.flush(), self.recordings.number)
        if (last := self._beside.flush()) is not None:
            yield from self._advance(last, self.recordings.number)
        accumulator = self._accumulator
        self._settle_repeats()
        for tick, notice in self._copies.finish(accumulator.arrived):
            self._order.add(tick, replace(notice, recording=self.recordings.number))
        yield from self._pop_events(last=True)
        self._over = True
        if accumulator.tick > self._read:  # with what came after its tick, at the very end
            moments = accumulator.moments([accumulator.tick], everything=True)
            accumulator.tidy(everything=True)
            yield from self._assess_moments(moments)

    def _advance(self, frames: Frames, recording: int) -> Iterator[Event]:
        accumulator, start = self._accumulator, self._accumulator.arrived
        accumulator.check(frames)
        decisions = self._repeats.update(frames, start + len(frames.speech))
        counted, corrections = self._gate.process(frames, recording, decisions)
        accumulator.add(counted)
        accumulator.correct(corrections)
        for tick, notice in self._gate.pop_notices():
            self._order.add(tick, replace(notice, recording=recording))
        self.conditions.add(counted.tracks.get(CONDITION))
        # all of the recording before it has been learnt
        self.recordings.begin_recording(recording, lambda: self.all_totals)
        for tick, notice in self._copies.update(frames, accumulator.arrived):
            self._order.add(tick, replace(notice, recording=recording))
        self.recordings.add_speech(int(np.count_nonzero(frames.speech)))
        if self.coverage is not None:
            self.coverage.add_speech(recording, frames.speech)
        for tick, gap in frames.gaps:
            self._order.add(max(tick, start), gap)
        for tick, notice in frames.notices:
            self._order.add(max(tick, start), replace(notice, recording=recording))
        yield from self._pop_events()
        while accumulator.waiting:
            self._apply_corrections()
            due = (accumulator.tick + accumulator.learnable - self._read) // self._every
            if due:
                last = self._read + self._every * min(due, self._builder.together)
                ticks = list(range(self._read + self._every, last + 1, self._every))
                yield from self._assess_moments(accumulator.moments(ticks))
            else:
                moments = accumulator.moments([accumulator.tick + accumulator.learnable])
                self._changes.follow(moments, 0)
                accumulator.learn(moments, 0)
                self._learn_conditions()
                yield from self._pop_events()
        accumulator.tidy()

    def _apply_corrections(self) -> None:
        """Correct what was counted, and turned out to repeat what the stream had before."""
        for correction in self._accumulator.pop_corrections():
            self._accumulator.apply(correction)
            if (change := correction.frames.get(CONDITION)) is not None:
                self.conditions.correct(change.values, change.counts)
            if self._segments is not None:
                self._segments.unmark(correction.since)

    def _settle_repeats(self) -> None:
        """Settle at the end of the stream what repeats."""
        accumulator = self._accumulator
        nothing = Frames(np.empty(0, np.bool_), {})
        decision = self._repeats.finish(accumulator.arrived)
        number = self.recordings.number
        counted, corrections = self._gate.process(nothing, number, [decision], last=True)
        accumulator.add(counted)
        accumulator.correct(corrections)
        for tick, notice in self._gate.pop_notices():
            self._order.add(tick, replace(notice, recording=number))
        self._apply_corrections()

    def _assess_moments(self, moments: Moments) -> Iterator[Event]:
        """Assess these moments together, then yield and learn them one by one."""
        segments = self._segments
        sounds = self.conditions.look_ahead(moments.ticks)
        for r, assessed in enumerate(self._builder.assess(moments, segments, sounds)):
            self._changes.follow(moments, r)
            self._accumulator.learn(moments, r)
            self._learn_conditions()
            self._compare_voicing(moments, r)
            yield from self._pop_events()
            change = self._changes.find_change(self._accumulator.tick)
            anew = change is not None and segments is not None
            if change is not None:
                yield change
                if segments is not None:
                    since = round(change.since_seconds * TICKS_PER_SECOND)
                    segments.change(since, partial(self._builder.choose_best, condition=sounds[r]))
                    (assessed,) = self._builder.assess(moments.only(r), segments, [sounds[r]])
            self._read = self._accumulator.tick
            if segments is not None:
                segments.mark(self._read, lambda: self._accumulator.totals)
                segments.chosen = assessed.chosen
            reading = self._builder.reading(
                self._read, assessed, self._changes.open, self.recordings.number, self.conditions
            )
            afresh = change is not None and self._changes.begins_afresh
            if afresh:  # before the reading, after which a run may be stopped and resumed
                self._begin_afresh()
            yield reading
            if afresh or anew:  # what was looked ahead to will not be so
                return

    def _pop_events(self, *, last: bool = False) -> Iterator[GapEvent | NoticeEvent]:
        for event in self._order.pop_due(self._accumulator.tick, last=last):
            if isinstance(event, NoticeEvent):
                self.noticed.append(event.notice)
            yield event

    def _learn_conditions(self) -> None:
        """Update the sound of the stream, and compare it with the templates'."""
        for tick, notice in self.conditions.advance(self._accumulator.tick):
            placed = replace(notice, recording=self.recordings.number)
            self._order.add(tick, placed, again=False)

    @property
    def _pitch(self) -> str | None:
        """The feature in use that is found in voiced speech alone; None without."""
        return next((name for name in self.features if get_least_share(name)), None)

    def _compare_voicing(self, moments: Moments, r: int) -> None:
        """Compare the share of this voice's speech that has pitch with the templates'."""
        if (name := self._pitch) is None:
            return
        seconds, speech = float(moments.totals[name].usable_seconds[r]), int(moments.speech[r])
        if (carried := self._accumulator.carried) is not None:
            seconds -= carried.usable[name] / TICKS_PER_SECOND
            speech -= carried.speech
        if (notice := self.conditions.compare_voicing(speech, seconds)) is not None:
            placed = replace(notice, recording=self.recordings.number)
            self._order.add(moments.ticks[r], placed, again=False)

    def _begin_afresh(self) -> None:
        self._accumulator.forget()
        self.conditions.begin_afresh()
        if self.on_change == "split":
            self._builder.begin_another_stream()

    def state(self) -> tuple[MonitorState, dict[str, AnyArray]]:
        """Return everything needed to go on after the last reading: plain values and arrays."""
        totals, arrays = self._accumulator.state()
        changes, change_arrays = self._changes.state()
        conditions, condition_arrays = self.conditions.state()
        recordings, recording_arrays = self.recordings.state()
        plain: MonitorState = {
            **totals,
            **changes,  # type: ignore[typeddict-item]  # stretches come below
            "read": self._read,
            "peak": self._builder.peak,
            "stream": self._builder.stream,
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
        if self._segments is not None:
            plain["stretches"], groups["stretches"] = self._segments.state()
        for group, more in groups.items():
            arrays |= {f"{group}/{name}": array for name, array in more.items()}
        return plain, arrays

    def restore(self, plain: MonitorState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``; the stream must then be fed from its first sample again."""
        self._begin()
        self._accumulator.restore(plain, arrays)
        self._changes.restore(plain, select_arrays("change/", arrays))
        if self._segments is not None:
            self._segments.before = self._accumulator.carried or self._segments.before
            self._segments.restore(plain["stretches"], select_arrays("stretches/", arrays))
        self.recordings.restore(plain["recordings"], select_arrays("recordings/", arrays))
        sums = select_arrays("conditions/", arrays)
        self.conditions.restore(int(plain["tick"]), plain["conditions"], sums)
        self._read, self._builder.peak = int(plain["read"]), float(plain["peak"])
        if not 0 <= self._accumulator.tick - self._read <= self._every:
            raise StoreError("the checkpoint does not fit: it was not taken at a reading")
        self._builder.stream = int(plain["stream"])
        self._order.emitted_count = int(plain["losses"])
        self.noticed = [Notice(**fields) for fields in plain["noticed"]]


def _log_events(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the same events; log the notices among them."""
    for event in events:
        if isinstance(event, NoticeEvent):
            log_notices([event.notice])
        yield event


def _get_name(feature: str | Feature | FeatureSpec) -> str:
    if isinstance(feature, str):
        return feature
    return feature.name if isinstance(feature, FeatureSpec) else feature.spec.name


def select_arrays(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Select arrays whose names begin so, by the rest of their names."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
