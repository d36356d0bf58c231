"""The streaming monitor: audio or frames in, readings out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Self, TypeAlias

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.features.channel import CONDITION
from monitor.features.framing import columns_of
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, superseded, takes
from monitor.kinds import FeatureSpec
from monitor.population.false_alarms import FalseAlarms, false_alarms
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.protocols import Feature, Source
from monitor.records.keys import HEADLINES
from monitor.sources.base import Samples
from monitor.sources.registry import missing_members, open_source
from monitor.stream.accumulator import FeatureTotals, FrameAccumulator, Moments
from monitor.stream.attacker import Attacker, choose_features
from monitor.stream.copies import CopyFinder, RepeatFinder
from monitor.stream.front_end import BesideClock, BlocksToTicks, FrontEnd, WordCoverage
from monitor.stream.notices import (
    EventOrder,
    GapEvent,
    NoticeEvent,
    log_notices,
    recording_notices,
    session_of,
    setup_notices,
)
from monitor.stream.reading import Change, Reading, bystanders_of
from monitor.stream.reading_builder import ReadingBuilder, SpeakerSegments, StreamConditions
from monitor.stream.speaker_changes import (
    ON_CHANGE,
    CopiedTurns,
    SpeakerTurns,
    change_detector,
    unlike,
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
class MonitorSettings:
    """What a `Monitor` was asked for, named as there; UsageError where it makes no sense."""

    step_seconds: float = 1.0
    channel: int | None = None
    on_change: str = "ignore"
    top: int = 5
    among: Sequence[float] | None = None
    enrolled_prior: float = 0.5
    bystanders: float | None = None

    def __post_init__(self) -> None:
        step = self.step_seconds
        if (
            not math.isfinite(step * TICKS_PER_SECOND)
            or self.step_ticks < 1
            or abs(step * TICKS_PER_SECOND - self.step_ticks) > 1e-6
        ):
            raise UsageError(f"step_seconds={step:g} must be a positive multiple of 0.01")
        if self.channel is not None and self.channel < 1:
            raise UsageError(
                f"channel={self.channel} must be 1 or more: channels are counted from 1"
            )
        if self.top < 1:
            raise UsageError(f"top={self.top} must be 1 or more")
        if self.on_change not in ON_CHANGE:
            raise UsageError(f"on_change={self.on_change!r} must be one of {', '.join(ON_CHANGE)}")

    @property
    def step_ticks(self) -> int:
        """Ticks from one reading to the next."""
        return round(self.step_seconds * TICKS_PER_SECOND)

    def record(self) -> dict[str, Any]:
        """As JSON-able values: a run is resumed with the same alone."""
        return {
            # a run that was begun before there were these is resumed without them
            "among": None if self.among is None else list(self.among),
            "bystanders": self.bystanders,
            "enrolled_prior": None if self.enrolled_prior == 0.5 else self.enrolled_prior,
            "step": self.step_seconds,
            "channel": self.channel,
            "on_change": self.on_change,
            "top": self.top,
        }


LEAST_SECONDS = 25.0
"""Of speech, on both sides: with less, nothing is said of whether two voices are one."""


class Recordings:
    """The recordings that a stream is made of: who falls silent in which, and who does not fit.

    Args:
        unlike: whether two voices sound like two people; None where that is not asked.

    Attributes:
        number: of the recording that is being heard.
        silent: those before it in which nobody spoke.
        strange: those before it that sound like another person than all before them.
    """

    def __init__(self, unlike: Callable[[FeatureTotals, FeatureTotals], bool] | None) -> None:
        self._unlike = unlike
        self.number = 0
        self.silent: list[int] = []
        self.strange: list[int] = []
        self._speech = 0  # ticks of this one
        self._begun = self._judged = 0
        self._start: FeatureTotals | None = None  # of this one: all that was heard before it
        self._voice: FeatureTotals | None = None  # what the earlier ones brought, but the strange

    def add_speech(self, speech: int) -> None:
        """Take note of so many further ticks of speech."""
        self._speech += speech

    def turn(self, number: int, heard: Callable[[], FeatureTotals]) -> None:
        """The next recording begins, on top of what was heard so far; nothing where it goes on."""
        if self._begun and number == self.number:
            return
        if self._begun:
            self.silent += self.silent_now
            if self._begun > self._judged:  # not one that was over when the run was stopped
                self._judged = self._begun
                self._add(heard())
        self.number, self._speech = number, 0
        self._begun += 1

    @property
    def silent_now(self) -> list[int]:
        """The recording that is being heard, if nobody has spoken in it."""
        return [] if self._speech else [self.number]

    def strange_now(self, heard: FeatureTotals) -> list[int]:
        """It again, if it sounds like somebody else, by all that was heard by now."""
        if self._unlike is None or self._voice is None:
            return []
        mine = self._mine(heard)
        short = min(mine.speech, self._voice.speech) < LEAST_SECONDS * TICKS_PER_SECOND
        return [] if short or not self._unlike(self._voice, mine) else [self.number]

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What hearing the stream again would not bring back: plain values and arrays."""
        plain: dict[str, Any] = {"judged": self._judged, "strange": self.strange}
        arrays: dict[str, AnyArray] = {}
        for part, heard in (("start", self._start), ("voice", self._voice)):
            if heard is not None:
                plain[part], more = heard.state(part)
                arrays |= more
        return plain, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``, fresh."""
        self._judged, self.strange = int(plain["judged"]), list(plain["strange"])
        self._start, self._voice = (
            FeatureTotals.restored(part, plain[part], arrays) if part in plain else None
            for part in ("start", "voice")
        )

    def _add(self, now: FeatureTotals) -> None:
        """The recording is over: it is strange, or more of the voice."""
        if self._unlike is None:
            return
        strange, mine = self.strange_now(now), self._mine(now)
        self.strange += strange
        if not strange:
            self._voice = mine if self._voice is None else self._voice + mine
        self._start = now

    def _mine(self, now: FeatureTotals) -> FeatureTotals:
        return now if self._start is None else now - self._start


_FIRST_SECONDS = 2.0
_TWO_CLOCKS = (
    "a stream is of audio or of ready-made frames, not of both, as each keeps the clock: give "
    "frames beside audio as Tracks (sources.SideInputSource)"
)
_RUNNING = "this Monitor is in the middle of a stream: make another one, or end it by reset()"
_ENDED = "this Monitor has heard its stream to the end: make another one, or reset() it"
Event: TypeAlias = "Reading | GapEvent | NoticeEvent | Change"


class Monitor:
    """Follows one voice and says, second by second, how many bits of identity it has disclosed.

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
        session: of the rank model: ``"same"`` where the templates come from another part of this
            very recording, else ``"cross"``. None goes by what a source is made of (`fit_to`), and
            is ``"cross"`` for what is pushed.
        rank_models: rank models to use instead of the population's own.
        template_seconds: D to cut all templates to; None for their common length, or the watched
            speaker's where that is shorter.
        channel: the channel to hear, counted from 1; None mixes all of them.
        on_change: what to do when another person, or channel, takes over: ``"ignore"`` (do not
            look), ``"note"`` (say so and carry on), ``"reset"`` (begin the evidence afresh; the
            peak stays) or ``"split"`` (what follows is another stream, with its own peak).
        top: how many of the most probable speakers a reading names.
        among: sizes of crowds in which to say what the voice is worth, each at least N; None for
            the N enrolled and a million.
        enrolled_prior: probability, before anything is heard, that one of the N speaks.
        bystanders: name everybody enrolled, but who is watched, whose probability in the largest of
            these crowds lies above this level; None names nobody.
        setup: from where features are made.

    Attributes:
        settings: what was asked for.
        session (str): which rank model is asked for, ``"cross"`` or ``"same"``.
        skipped_features: features of the population that cannot be computed of this stream.
        noise: what the source says was added to its embeddings; empty where nothing was.
        recordings (Recordings): of the stream so far.
        conditions (StreamConditions): of the stream so far.
        coverage (WordCoverage | None): where words come.
        noticed (list[Notice]): the notices that arose on the stream so far, in order.
        front_end: what makes frames of audio, and refuses frames that do not fit the templates.

    Example:
        >>> from monitor import Monitor, Population
        >>> from monitor.types import Frames, Track
        >>> monitor = Monitor(Population.reference())
        >>> voice = Track(np.arange(1, 101), np.full(100, 40))  # one second, one steady pitch
        >>> reading, = monitor.push(Frames(np.ones(100, dtype=bool), {"f0": voice}))
        >>> reading.seconds, reading.speech, 0 <= reading.bits <= reading.ceiling
        (1.0, 1.0, True)
    """

    def __init__(
        self,
        population: Population,
        features: Sequence[str | Feature | FeatureSpec] | None = None,
        watch: str | None = None,
        *,
        step_seconds: float = 1.0,
        session: str | None = None,
        rank_models: RankModels | None = None,
        template_seconds: float | None = None,
        channel: int | None = None,
        on_change: str = "ignore",
        top: int = 5,
        among: Sequence[float] | None = None,
        enrolled_prior: float = 0.5,
        bystanders: float | None = None,
        setup: FeatureSetup = AS_ENVIRONMENT,
    ) -> None:
        settings = MonitorSettings(
            step_seconds, channel, on_change, top, among, enrolled_prior, bystanders
        )
        self.settings = settings
        self.population = population
        self.on_change = on_change
        self.skipped_features: tuple[str, ...] = ()
        self.noise = ""
        self._labels: tuple[str, ...] = ("the stream",)
        if features is None:
            features = choose_features(
                population.rank_models if rank_models is None else rank_models, setup=setup
            )
            rest = [name for name in population.features if name not in features]
            self.skipped_features = tuple(name for name in rest if not superseded(name, features))
        self._attacker_in = partial(
            Attacker,
            population,
            [_name_of(each) for each in features],
            watch,
            rank_models=rank_models,
            template_seconds=template_seconds,
            top=top,
            among=among,
            enrolled_prior=enrolled_prior,
        )
        self._leaves_out = True  # what repeats itself
        self._own_rank_models, self._template_seconds = rank_models, template_seconds
        self._told: CopiedTurns | None = None
        self._closed_set = False
        self._rank_models = population.rank_models if rank_models is None else rank_models
        self.watch = watch
        self._by_source = session is None
        self._weigh_in(session or "cross")
        own = [each for each in features if not isinstance(each, str)]
        self.front_end = FrontEnd(population, self.features, own, setup)
        self._own_features = own
        self._words_come = False
        self._every = settings.step_ticks
        self.step_seconds = self._every / TICKS_PER_SECOND
        self._begin()

    @classmethod
    def for_source(
        cls,
        source: Source,
        population: Population,
        features: Sequence[str | Feature | FeatureSpec] | None = None,
        watch: str | None = None,
        **settings: Any,
    ) -> Self:
        """A monitor of what an opened source brings; ``settings`` as of `Monitor`.

        Where ``features`` is None, of ready-made frames the largest set of what they hold is taken,
        and words beside audio are heard too.

        Raises:
            MonitorError: as `Monitor`; or there is no rank model for what the source brings.
        """
        stream_info, rank_models = source.stream_info, settings.get("rank_models")
        used = population.rank_models if rank_models is None else rank_models
        words = [
            name for name in population.features if stream_info.words and takes(name) == "words"
        ]
        there: Sequence[str] = ()
        if not features and not stream_info.audio:
            there = [name for name in population.features if name in {*stream_info.tracks, *words}]
        if there:
            features = choose_features(used, there)
        elif stream_info.words and features is None:
            features = choose_features(
                used, words=True, setup=settings.get("setup", AS_ENVIRONMENT)
            )
        made = cls(population, features, watch, **settings)
        if there or stream_info.words:
            rest = [name for name in there or population.features if name not in made.features]
            made.skipped_features = tuple(
                name for name in rest if not superseded(name, made.features)
            )
        return made

    def _weigh_in(self, session: str) -> None:
        """Take the rank model of that kind of session, and what hangs on it."""
        self.session = session
        self.attacker = self._attacker_in(session=session)
        self.features = self.attacker.features
        level = self.settings.bystanders
        self.bystanders = None
        if level is not None:
            self.bystanders = bystanders_of(self.attacker, self.watch, level)
        shipped = self.attacker.rank_model.origin == "shipped"
        self.mismatched = self.population.mismatched or self._own_rank_models is not None or shipped

    @property
    def headline(self) -> str:
        """What the bits of a reading are: ``"evidence"`` or ``"closed-set"``."""
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
        """The threshold that at most a share q of other people's whole streams exceeds.

        For `alerts.Conformal`: by how high streams of others got in calibration in
        ``horizon_seconds``, under the rank model in use, the watched speaker not among them.
        ``field`` is a reading's.

        Raises:
            UsageError: the rank models do not know it of that field, of so long a stream, or of as
                many speakers as the share needs.

        Example::

            quote = monitor.false_alarms("bits", share=0.05, horizon_seconds=600)
            alert = alerts.Conformal(quote)
        """
        return false_alarms(
            self._rank_models,
            self.features,
            self.attacker.session,
            field,
            share,
            horizon_seconds,
            watch=self.watch,
            headline=self.headline,
            most_bits=self.attacker.most_bits(
                HEADLINES[self.headline] if field == "bits" else field
            ),
        )

    def reset(self) -> None:
        """Forget the stream; the next block starts a new one."""
        self.noise = ""
        self._words_come = False
        self.front_end.reset()
        if self._by_source and self.session != "cross":
            self._weigh_in("cross")
        self._begin()

    def _begin(self) -> None:
        specs = {name: self.population.features[name].spec for name in self.features}
        follow = self.on_change != "ignore"
        self._accumulator = FrameAccumulator(specs, ("channel",) if follow else ())
        self._read = 0  # tick of the last reading
        self._maker = ReadingBuilder(
            self.attacker, self.watch is not None, self.headline, self.bystanders
        )
        detector = None
        if follow and self._told is None and not self.noise:
            detector = change_detector(
                self.population, self.attacker, self.on_change, self.front_end.followed()
            )
        self._turns = self._told or SpeakerTurns(detector, self.on_change)
        self._order = EventOrder()
        self.noticed: list[Notice] = []
        self._over = self._logged = self._of_source = False
        self._in_use = Lock()
        self._hearing: BlocksToTicks | None = None
        self._copies = CopyFinder(self.population, self.watch)
        self._repeats = RepeatFinder(self._leaves_out)
        self._beside = BesideClock(self.front_end)
        self.coverage = WordCoverage() if self._words_come else None
        self._stretches: SpeakerSegments | None = None
        if self.on_change == "note" and self.attacker.watched:
            self._stretches = SpeakerSegments(self._accumulator.heard)
        # where the evidence begins afresh nothing adds up over recordings
        self.recordings = Recordings(None if self._turns.afresh else partial(unlike, specs))
        self.conditions = StreamConditions(
            self.population.conditions(self.watch), lambda now: self.attacker.matching_bits(now)
        )

    def _begin_again(self) -> None:
        """Begin with what the stream was to begin with."""
        carried, peak = self._accumulator.carried, self._maker.peak
        self._begin()
        if carried is not None:
            self.begin_with(carried, peak)

    def twin(self, population: Population | None = None) -> tuple[Monitor, CopiedTurns]:
        """A fresh monitor with the same settings for the same voice in another guise.

        It looks for no changes of speaker: they are told, by the second value, and it names no
        bystanders. ``population`` has other templates of the same people, with rank models; None
        for the same.
        """
        own = population is None
        settings = asdict(self.settings) | {"bystanders": None}
        made = Monitor(
            population or self.population,
            self.features,
            self.watch,
            session=self.session,
            rank_models=self._own_rank_models if own else None,
            template_seconds=self._template_seconds,
            setup=self.front_end.setup,
            **settings,
        )
        made._told = told = CopiedTurns(self.on_change)
        made._begin()
        return made, told

    def another(self) -> Monitor:
        """A fresh monitor of another voice in the same recording, with all that was prepared.

        Raises:
            UsageError: features are objects of one's own, which cannot hear two voices.
        """
        if not self.front_end.by_name:
            raise UsageError("features of one's own hear one voice: name features that are known")
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.front_end = FrontEnd(
            self.population, self.features, self._own_features, self.front_end.setup
        )
        made._begin()
        made._copies = self._copies.another()
        return made

    def begin_with(self, heard: FeatureTotals, peak_bits: float = 0.0) -> None:
        """Start from the sums of earlier streams of the same voice: T and the bits go on there.

        Raises:
            UsageError: the stream has begun.
            StoreError: they are of other features.
        """
        if self._begun:
            raise UsageError("begin_with comes before the first block of a stream")
        self._accumulator.begin_with(heard)
        if self._stretches is not None:
            self._stretches.before = heard
        self._maker.peak = peak_bits

    def standing(self) -> Reading:
        """What was heard so far comes to, before the next reading: of earlier streams at first."""
        moments = self._accumulator.moments([self._accumulator.tick])
        (assessed,) = self._maker.assess(moments, conditions=[self.conditions.now])
        peak = self._maker.peak
        reading = self._maker.reading(
            self._accumulator.tick,
            assessed,
            self._turns.open,
            self.recordings.number,
            self.conditions,
        )
        self._maker.peak = peak
        return reading

    @property
    def notices(self) -> list[Notice]:
        """What a person should know beside the figures: each `Notice` says it in a sentence.

        First what is known of templates, features and rank model, then what was noticed on the
        stream, in order, and once it is over what is to be said of its recordings. They go to the
        log named ``monitor`` as well, as the stream comes to them.
        """
        ended = recording_notices(self, self._labels) if self._over else []
        return [*setup_notices(self), *self.noticed, *ended]

    def _log_setup(self) -> None:
        """Once a stream, before its first block."""
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
        pushed = self._accumulator.arrived or self._hearing is not None or self._beside.begun
        return self._of_source or bool(pushed)

    def count_repeats(self) -> None:
        """Count audio that was heard before in this stream: a protected side hears it as well."""
        self._leaves_out = self._repeats.leaves_out = False

    @property
    def repeated_seconds(self) -> float:
        """Speech that repeats what was heard before in this stream, and was left out so far."""
        return self._repeats.seconds

    @property
    def ticks(self) -> int:
        """Ticks of the stream that were learnt."""
        return self._accumulator.tick

    @property
    def heard(self) -> FeatureTotals:
        """What was heard of this voice, with what the stream began with.

        Of a watched speaker, what the last reading is of: stretches that are another voice's are
        left out (``on_change="note"``).
        """
        heard = self._accumulator.heard
        return heard if self._stretches is None else self._stretches.weighed(heard)

    @property
    def own_heard(self) -> FeatureTotals:
        """What this stream alone brought; with ``on_change`` reset or split, since the change."""
        return self._beyond_carried(self.heard)

    @property
    def all_heard(self) -> FeatureTotals:
        """As ``own_heard``, of whomever: nothing is left out."""
        return self._beyond_carried(self._accumulator.heard)

    def _beyond_carried(self, heard: FeatureTotals) -> FeatureTotals:
        before = self._accumulator.carried
        return heard if before is None else heard - before

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        """Refuse: a running stream holds detectors that cannot be copied."""
        raise UsageError(
            "a Monitor cannot be copied or pickled: it is in the middle of a stream; make another "
            "one of the same population, and hand over state() to its restore()"
        )

    def stream(
        self,
        source: Source | str | os.PathLike[str] | AnyArray,
        *,
        rate: int | None = None,
        allow_overlap: bool = False,
    ) -> Iterator[Reading]:
        """Hear a source to its end, by the rank model that `fit_to` finds for it.

        Args:
            source: what to hear, the name of one (`monitor.sources.open_source`), or samples
                (`monitor.sources.Samples`).
            rate: samples per second, of an array of samples.
            allow_overlap: hear audio that was enrolled, too; its figures are far too high.

        Yields:
            a reading every ``step_seconds`` of audio, and one at the end for the rest.

        Raises:
            MonitorError: at the first reading, as `fit_to`; or the source cannot be heard.
        """
        for event in self.events(source, rate=rate, allow_overlap=allow_overlap):
            if isinstance(event, Reading):
                yield event

    def events(
        self,
        source: Source | str | os.PathLike[str] | AnyArray,
        *,
        rate: int | None = None,
        allow_overlap: bool = False,
    ) -> Iterator[Event]:
        """As ``stream``, with the losses, notices and changes between the readings."""
        if isinstance(source, np.ndarray):
            if rate is None:
                raise UsageError("an array of samples needs its rate: stream(samples, rate=16_000)")
            source = Samples(source, rate)
        elif rate is not None:
            raise UsageError("rate= is that of an array of samples; a source knows its own")
        if isinstance(source, str | os.PathLike):
            with open_source(source) as opened:
                yield from self.events(opened, allow_overlap=allow_overlap)
            return
        if lack := missing_members(source):
            raise UsageError(lack)
        self.fit_to(source, allow_overlap=allow_overlap)
        self._log_setup()
        yield from _logged(self.listen(source))
        log_notices(recording_notices(self, self._labels))

    def fit_to(self, source: Source, *, allow_overlap: bool = False) -> None:
        """Refuse a source that does not fit, and choose the rank model by what it is made of.

        Audio that was enrolled is refused; for another part of an enrolled recording the
        same-session rank model is taken (docs/method.md section 4), unless the monitor was made for
        one kind of session. In frames with noise no change of speaker is looked for.

        Raises:
            OverlapError: audio that is to be heard was enrolled, and that is not allowed.
            UsageError: it brings frames, and not those of the population; or it needs another rank
                model than the stream began with.
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
            self._weigh_in(session)
            self._begin_again()
        self.front_end.check(source)
        self._labels = source.labels
        self._words_come = source.stream_info.words
        self.coverage = WordCoverage() if self._words_come else None
        self.noise = source.stream_info.noise
        if self.noise:  # no two frames fit each other: each would seem to be another voice
            self._turns.rest()

    def listen(self, source: Iterable[Item]) -> Iterator[Event]:
        """As ``events``, of a source that `fit_to` was asked about."""
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
        """As `listen`, of one more item; None ends the stream."""
        return self._end() if item is None else self._push(item)

    def push(self, block: Block | Frames | Words | Tracks) -> list[Reading]:
        """Hear one more block, of any length, or what lies beside it: in time, before it.

        Returns:
            the readings that fell due: none, one or many.

        Raises:
            SourceError: the block makes no sense; the stream stays as it was.
            UsageError: the same of frames that do not fit, or that would keep the clock beside
                audio; or the stream is over, or is that of a source.
        """
        return self._pushed(lambda: self._push(block))

    def finish(self) -> list[Reading]:
        """The stream is over: the reading for what came after the last one, if anything did."""
        if self._over:
            return []
        readings = self._pushed(self._end)
        log_notices(recording_notices(self, self._labels))
        return readings

    def _pushed(self, events: Callable[[], Iterator[Event]]) -> list[Reading]:
        """The readings among what a push brings; one thread at a time, and no source meanwhile."""
        if self._over or self._of_source:
            raise UsageError(_ENDED if self._over else _RUNNING)
        if not self._in_use.acquire(blocking=False):
            raise UsageError(
                "another thread pushes to this Monitor: give each a Monitor of its own"
            )
        try:
            self._log_setup()
            return [event for event in _logged(events()) if isinstance(event, Reading)]
        finally:
            self._in_use.release()

    def _push(self, block: Item) -> Iterator[Event]:
        if isinstance(block, Gap):
            place = self._accumulator.arrived if self._hearing is None else self._hearing.ticks
            self._order.add(place, block)
            yield from self._happened()
        elif isinstance(block, Frames):
            if self._hearing is not None:
                raise UsageError(_TWO_CLOCKS)
            yield from self._turn(block.recording)
            yield from self._advance(block, block.recording)
        elif isinstance(block, Words | Tracks):
            self._beside.check(block)
            if self._hearing is not None and (last := self._hearing.turn(block.recording)):
                yield from self._advance(last, self.recordings.number)
            yield from self._turn(block.recording)
            if self.coverage is not None and isinstance(block, Words):
                self.coverage.add_words(block)
            yield from self._advance(self._beside.process(block), block.recording)
        else:
            for part in self._first_apart(block):
                *ended, frames = self._front().process(part)
                for last in ended:
                    yield from self._advance(last, self.recordings.number)
                yield from self._turn(block.recording)
                yield from self._advance(frames, block.recording)

    def _first_apart(self, block: Block) -> Iterator[Block]:
        """Split a stream's first block, so that its first reading need not wait for all of it."""
        if self._hearing is None:
            columns_of(block, None)  # a SourceError where it is none
            first = round(_FIRST_SECONDS * block.rate)
            if len(block.samples) > first:
                yield replace(block, samples=block.samples[:first])
                block = replace(block, samples=block.samples[first:])
        yield block

    def _turn(self, recording: int) -> Iterator[Event]:
        """The clock has come to this recording: what lies beside it counts from here."""
        last = self._beside.turn(recording, self._accumulator.arrived)
        if last is not None:
            yield from self._advance(last, self.recordings.number)

    def _front(self) -> BlocksToTicks:
        if self._hearing is None:
            if self._accumulator.arrived:
                raise UsageError(_TWO_CLOCKS)
            self._hearing = self.ears()
        return self._hearing

    def ears(self) -> BlocksToTicks:
        """What makes the frames of audio that it learns, fresh."""
        return BlocksToTicks(
            self.front_end.make(),
            self.settings.channel,
            self._accumulator.tick,
            levels=self._turns.looks,
            conditions=True,
            landmarks=True,
        )

    def _end(self) -> Iterator[Event]:
        if self._hearing is not None:
            yield from self._advance(self._hearing.flush(), self.recordings.number)
        if (last := self._beside.flush()) is not None:
            yield from self._advance(last, self.recordings.number)
        for tick, notice in self._copies.finish(self._accumulator.arrived):
            self._order.add(tick, replace(notice, recording=self.recordings.number))
        yield from self._happened(last=True)
        self._over = True
        accumulator = self._accumulator
        if accumulator.tick > self._read:  # with what came after its tick, at the very end
            moments = accumulator.moments([accumulator.tick], everything=True)
            accumulator.tidy(everything=True)
            yield from self._readings(moments)

    def _advance(self, frames: Frames, recording: int) -> Iterator[Event]:
        accumulator, start = self._accumulator, self._accumulator.arrived
        arrived = start + len(frames.speech)
        for tick, notice in self._repeats.update(frames, arrived, recording):
            self._order.add(tick, replace(notice, recording=recording))
        accumulator.add(self._repeats.counted(frames, start))
        self.conditions.add(frames.tracks.get(CONDITION))
        # all of the recording before it has been learnt
        self.recordings.turn(recording, lambda: self.all_heard)
        for tick, notice in self._copies.update(frames, accumulator.arrived):
            self._order.add(tick, replace(notice, recording=recording))
        self.recordings.add_speech(int(np.count_nonzero(frames.speech)))
        if self.coverage is not None:
            self.coverage.add_speech(recording, frames.speech)
        for tick, gap in frames.gaps:
            self._order.add(max(tick, start), gap)
        for tick, notice in frames.notices:
            self._order.add(max(tick, start), replace(notice, recording=recording))
        yield from self._happened()
        while accumulator.waiting:
            due = (accumulator.tick + accumulator.waiting - self._read) // self._every
            if due:
                last = self._read + self._every * min(due, self._maker.together)
                ticks = list(range(self._read + self._every, last + 1, self._every))
                yield from self._readings(accumulator.moments(ticks))
            else:
                moments = accumulator.moments([accumulator.tick + accumulator.waiting])
                self._turns.follow(moments, 0)
                accumulator.learn(moments, 0)
                self._learn_conditions()
                yield from self._happened()
        accumulator.tidy()

    def _readings(self, moments: Moments) -> Iterator[Event]:
        """Work out these readings together, then give and learn them one by one."""
        stretches = self._stretches
        sounds = self.conditions.ahead(moments.ticks)
        for r, assessed in enumerate(self._maker.assess(moments, stretches, sounds)):
            self._turns.follow(moments, r)
            self._accumulator.learn(moments, r)
            self._learn_conditions()
            yield from self._happened()
            change = self._turns.changed(self._accumulator.tick)
            anew = change is not None and stretches is not None
            if change is not None:
                yield change
                if stretches is not None:
                    since = round(change.since_seconds * TICKS_PER_SECOND)
                    stretches.change(since, partial(self._maker.best, condition=sounds[r]))
                    (assessed,) = self._maker.assess(moments.only(r), stretches, [sounds[r]])
            self._read = self._accumulator.tick
            if stretches is not None:
                stretches.mark(self._read, lambda: self._accumulator.heard)
                stretches.chosen = assessed.chosen
            reading = self._maker.reading(
                self._read, assessed, self._turns.open, self.recordings.number, self.conditions
            )
            afresh = change is not None and self._turns.afresh
            if afresh:  # before the reading, after which a run may be stopped and resumed
                self._begin_afresh()
            yield reading
            if afresh or anew:  # what was looked ahead to will not be so
                return

    def _happened(self, *, last: bool = False) -> Iterator[GapEvent | NoticeEvent]:
        for event in self._order.due(self._accumulator.tick, last=last):
            if isinstance(event, NoticeEvent):
                self.noticed.append(event.notice)
            yield event

    def _learn_conditions(self) -> None:
        """What the sound is like by now, and whether the templates sound so."""
        for tick, notice in self.conditions.advance(self._accumulator.tick):
            placed = replace(notice, recording=self.recordings.number)
            self._order.add(tick, placed, again=False)

    def _begin_afresh(self) -> None:
        self._accumulator.forget()
        self.conditions.begin_afresh()
        if self.on_change == "split":
            self._maker.begin_another_stream()

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Everything needed to go on after the last reading: plain values and arrays."""
        plain, arrays = self._accumulator.state()
        own: dict[str, Any] = {
            "read": self._read,
            "peak": self._maker.peak,
            "stream": self._maker.stream,
            "losses": self._order.count,
            "noticed": [asdict(notice) for notice in self.noticed],
        }
        turns, more = self._turns.state()
        arrays |= {f"change/{name}": array for name, array in more.items()}
        parts: dict[str, StreamConditions | Recordings | SpeakerSegments] = {
            "conditions": self.conditions,
            "recordings": self.recordings,
        }
        if self._stretches is not None:
            parts["stretches"] = self._stretches
        for part, each in parts.items():
            own[part], more = each.state()
            arrays |= {f"{part}/{name}": array for name, array in more.items()}
        return {**plain, **own, **turns}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Take up a ``state``; the stream must then be fed from its first sample again."""
        self._begin()
        self._accumulator.restore(plain, arrays)
        self._turns.restore(plain, _under("change/", arrays))
        if self._stretches is not None:
            self._stretches.before = self._accumulator.carried or self._stretches.before
            self._stretches.restore(plain["stretches"], _under("stretches/", arrays))
        self.recordings.restore(plain["recordings"], _under("recordings/", arrays))
        sums = _under("conditions/", arrays)
        self.conditions.restore(int(plain["tick"]), plain["conditions"], sums)
        self._read, self._maker.peak = int(plain["read"]), float(plain["peak"])
        if not 0 <= self._accumulator.tick - self._read <= self._every:
            raise StoreError("the checkpoint does not fit: it was not taken at a reading")
        self._maker.stream = int(plain["stream"])
        self._order.given = int(plain["losses"])
        self.noticed = [Notice(**each) for each in plain["noticed"]]


def _logged(events: Iterable[Event]) -> Iterator[Event]:
    """The same events; notices among them go to the log."""
    for event in events:
        if isinstance(event, NoticeEvent):
            log_notices([event.notice])
        yield event


def _name_of(feature: str | Feature | FeatureSpec) -> str:
    if isinstance(feature, str):
        return feature
    return feature.name if isinstance(feature, FeatureSpec) else feature.spec.name


def _under(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
