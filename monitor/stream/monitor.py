"""`Monitor` turns a stream of audio or frames into readings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike

from monitor.errors import StoreError, UsageError
from monitor.events.reading import Reading
from monitor.events.run import NoticeEvent
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.kinds import FeatureSpec
from monitor.population.false_alarms import FalseAlarms
from monitor.population.population import Population
from monitor.protocols import Feature, Source, StreamInfo
from monitor.sources.base import samples_or_source
from monitor.sources.registry import missing_members, open_source
from monitor.stream.choice import choose_features_of
from monitor.stream.front_end import FrontEnd
from monitor.stream.notices import log_notices, recording_notices, session_of, setup_notices
from monitor.stream.plan import DEFAULTS, MonitorSettings, Plan
from monitor.stream.stream import Event, Stream, StreamState, with_lag
from monitor.stream.totals import FeatureTotals
from monitor.types import AnyArray, Block, Frames, Item, Notice, Tracks, Words


class Monitor:
    """Measure, second by second, how many bits of identity one voice has disclosed.

    A monitor processes one stream, either from a source (`stream`) or block by block (`push`,
    `finish`). Call `reset` before another stream.

    Args:
        population: the N enrolled speakers, with rank models. A `Plan` replaces all arguments.
        features: names or custom features. Use a `FeatureSpec` for ready-made frames beside audio.
            None chooses all features that can be computed here and share a rank model.
        watch: the enrolled speaker to watch. ``bits`` are then the evidence, if the population is
            calibrated for it. Without a watched speaker they are the attacker's confidence, which
            assumes that an enrolled person speaks.
        step_seconds: audio seconds from one reading to the next, a multiple of 0.01.
        on_change: response when another person speaks, or the channel changes. ``"ignore"`` does
            not detect changes. ``"note"`` reports a change and continues. ``"reset"`` restarts the
            evidence and keeps the peak. ``"split"`` starts another stream, with its own peak.
        session: ``"same"`` if the templates come from another part of the same recording, otherwise
            ``"cross"``. It selects the rank model. None lets `fit_to` choose by the source's
            recordings; pushed blocks are then ``"cross"``.
        setup: files and networks of the features.
        settings: rarer settings.

    Attributes:
        plan (Plan): all choices made before the stream.
        skipped_features: unused features of the population, except superseded ones.
        noise: noise in the source's embeddings, such as ``"laplace:15"``; empty without noise.
        recordings (Recordings): recordings of the stream so far.
        conditions (StreamConditions): sound conditions of the stream so far.
        coverage (WordCoverage | None): fit of words to speech; None if the stream has no words.
        noticed (list[Notice]): notices about the stream so far, in order.

    Example:
        >>> import numpy as np
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
        population: Population | Plan,
        features: Sequence[str | Feature | FeatureSpec] | None = None,
        watch: str | None = None,
        *,
        step_seconds: float = 1.0,
        on_change: str = "ignore",
        session: str | None = None,
        setup: FeatureSetup = AS_ENVIRONMENT,
        settings: MonitorSettings = DEFAULTS,
    ) -> None:
        plan = population
        if not isinstance(plan, Plan):
            chosen = features, watch, step_seconds, on_change, session, setup, settings
            plan = Plan.create(plan, *chosen)
        self._labels: Sequence[str] = ("the stream",)
        self._begin(plan, plan.create_front_end())

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
        settings: MonitorSettings = DEFAULTS,
    ) -> Self:
        """Create a monitor for the contents of an opened source; other arguments as in `Monitor`.

        If ``features`` is None, ready-made frames give the largest set of features that has a rank
        model. Words beside audio are then used, too.
        """
        models = settings.get_rank_models(population)
        features, candidates = choose_features_of(source, population, features, models, setup)
        chosen = features, watch, step_seconds, on_change, None, setup, settings
        plan = Plan.create(population, *chosen)
        return cls(plan if candidates is None else plan.skipping(candidates))

    def _begin(self, plan: Plan, front_end: FrontEnd) -> None:
        self._stream = stream = plan.begin(front_end)
        self.plan, self.front_end, self.headline = plan, front_end, plan.headline
        self.population, self.watch, self.settings = plan.population, plan.watch, plan.settings
        self.attacker, self.features, self.session = plan.attacker, plan.features, plan.session
        self.step_seconds, self.on_change = plan.step_seconds, plan.on_change
        self.skipped_features, self.mismatched = plan.skipped_features, plan.mismatched
        self.bystanders, self.noticed = plan.bystanders, stream.noticed
        self.recordings, self.conditions = stream.observers.recordings, stream.observers.conditions
        self._logged = False
        self._held: list[Reading] = []  # readings that a snapshot completed
        self._expect(StreamInfo())

    def _expect(self, info: StreamInfo) -> None:
        self._stream.expect(info)
        self.noise, self.coverage = info.noise, self._stream.intake.coverage

    def prefer_closed_set(self) -> None:
        """Make the closed-set figure the headline, to compare with a monitor without evidence."""
        if self.phase != "opened":
            raise UsageError("prefer_closed_set comes before the first block of a stream")
        self._begin(replace(self.plan, closed_set=True), self.front_end)

    def false_alarms(
        self, field: str, rate: float = 0.05, horizon_seconds: float = 600.0
    ) -> FalseAlarms:
        """Return a threshold that other people's streams exceed at most at a given rate.

        `alerts.Conformal` uses this threshold. At most a fraction ``rate`` of other people's whole
        streams exceeds it. The threshold comes from calibration streams of ``horizon_seconds`` by
        people other than the watched speaker. UsageError if calibration does not cover this field,
        length or rate.
        """
        return self.plan.false_alarms(field, rate, horizon_seconds)

    def most_bits(self, field: str) -> float:
        """Return the largest possible value of a bits field of readings; infinity if unknown."""
        return self.plan.most_bits(field)

    def reset(self) -> None:
        """End the stream; the next block starts a new one."""
        self.front_end.reset()
        plan = replace(self.plan.for_session("cross"), carried=None, peak_bits=0.0)
        self._begin(plan, self.front_end)

    def fresh(
        self, population: Population | None = None, *, step_seconds: float | None = None
    ) -> Monitor:
        """Create an unused monitor with the same settings for the same voice.

        The new monitor names no bystanders. ``population`` has other templates of the same people,
        with rank models. With None, templates stay the same, and totals of earlier streams carry
        over.
        """
        plan = self.plan.again(population)
        return Monitor(replace(plan, step_seconds=step_seconds or self.step_seconds))

    def resume_from(self, totals: FeatureTotals, peak_bits: float = 0.0) -> None:
        """Start from the totals of earlier streams of the same voice, and their peak."""
        if self.phase != "opened":
            raise UsageError("resume_from comes before the first block of a stream")
        plan = replace(self.plan, carried=totals, peak_bits=peak_bits)
        self._begin(plan, self.front_end)

    def standing(self) -> Reading:
        """Return the reading so far, before the next one is due."""
        return self._stream.standing()

    @property
    def notices(self) -> list[Notice]:
        """Notices about the setup, the stream so far and, at its end, the recordings."""
        ended = recording_notices(self, self._labels) if self._stream.is_over else []
        return [*setup_notices(self), *self.noticed, *ended]

    def _log_setup(self) -> None:
        """Log the notices of the setup, once per stream, before its first block."""
        if not self._logged:
            self._logged = True
            log_notices(setup_notices(self))

    @property
    def core(self) -> Stream:
        """The stream itself, for the program's own use."""
        return self._stream

    @property
    def phase(self) -> str:
        """``"opened"``, ``"running"`` from the first block on, or ``"ended"`` after the last."""
        return self._stream.phase

    @property
    def ticks(self) -> int:
        """Ticks of the stream that have been processed."""
        return self._stream.evidence.tick

    @property
    def totals(self) -> FeatureTotals:
        """Totals of this voice, including the totals that the stream started with.

        With ``on_change="note"`` and a watched speaker, stretches of other voices are excluded, as
        in the last reading.
        """
        return self._stream.totals

    @property
    def own_totals(self) -> FeatureTotals:
        """Totals of this stream alone; since the last change if ``on_change`` is reset or split."""
        return self._stream.evidence.without_carried(self.totals)

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        """Refuse: a running stream holds detectors that cannot be copied."""
        raise UsageError(
            "a Monitor cannot be copied or pickled: it is in the middle of a stream. Make another "
            "one of the same population, and pass state() to its restore()"
        )

    def stream(
        self,
        source: Source | str | os.PathLike[str] | ArrayLike,
        *,
        rate: float | str | None = None,
        allow_overlap: bool = False,
    ) -> Iterator[Reading]:
        """Process a source to its end, with the rank model that `fit_to` chooses for it.

        Yields a reading every ``step_seconds`` of audio, and a last reading for the remainder.

        Args:
            source: a source, the name of one (`monitor.sources.open_source`), or samples
                (`monitor.sources.Samples`).
            rate: samples per second, if ``source`` is an array of samples.
            allow_overlap: accept enrolled audio. Its figures are far too high.
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
        """Yield the readings of ``stream``, with gaps, notices and changes between them."""
        audio = samples_or_source(source, rate)
        if isinstance(audio, str | os.PathLike):
            with open_source(audio) as opened:
                yield from self.events(opened, allow_overlap=allow_overlap)
            return
        if lack := missing_members(audio):
            raise UsageError(lack)
        self.fit_to(audio, allow_overlap=allow_overlap)
        self._log_setup()
        for event in _log_events(self.listen(audio)):
            yield with_lag(event, audio)
        log_notices(recording_notices(self, self._labels))

    def fit_to(self, source: Source, *, allow_overlap: bool = False) -> None:
        """Check that a source fits, and choose the rank model by its recordings.

        If the source is another part of an enrolled recording, the same-session rank model is
        chosen (docs/method.md section 4), unless ``session`` is fixed. OverlapError if the source
        is enrolled audio. UsageError if frames are incompatible, or the stream has begun under
        another rank model.
        """
        parts = [recording for recording in source.provenance() or () if recording.hashes]
        session = session_of(self.population, parts, allow_overlap=allow_overlap)
        if session == "same" and (plan := self.plan.for_session(session)) is not self.plan:
            if self.phase != "opened" or self.ticks:
                raise UsageError(
                    f"the stream has begun under the cross-session rank model, and {source.label} "
                    'was enrolled too: begin with Monitor(session="same")'
                )
            self._begin(plan, self.front_end)
        self.front_end.check(source)
        self._labels = source.labels
        self._expect(source.stream_info)

    def listen(self, source: Iterable[Item]) -> Iterator[Event]:
        """Yield the ``events`` of a source that `fit_to` accepted."""
        return self._stream.listen(source)

    def push(self, block: Block | Frames | Words | Tracks) -> list[Reading]:
        """Process a block of any length. Words and tracks must be pushed before their block.

        Returns the readings that are now due. SourceError or UsageError if the block is invalid,
        has another clock, or follows the end; the stream is then unchanged.
        """
        return self._collect(self._stream.alone(self._stream.push(block)))

    def finish(self) -> list[Reading]:
        """End the stream; return a last reading if audio followed the previous reading."""
        if self._stream.is_over:
            return []
        readings = self._collect(self._stream.alone(self._stream.end()))
        log_notices(recording_notices(self, self._labels))
        return readings

    def _collect(self, events: Iterator[Event]) -> list[Reading]:
        self._log_setup()
        completed, self._held = self._held, []
        return completed + [event for event in _log_events(events) if isinstance(event, Reading)]

    def snapshot(self) -> bytes:
        """Return the stream's state as bytes without audio; `resume` continues it elsewhere.

        The next `push` returns readings that became due. UsageError if the stream cannot move,
        because of custom features or words beside the audio.
        """
        from monitor.stream.snapshot import take_snapshot  # imports all features

        self._held = self._collect(self._stream.alone(self._stream.settle()))
        return take_snapshot(self.plan, self._stream)

    def resume(self, snapshot: bytes) -> float:
        """Continue a `snapshot`, in an unused monitor with the same settings.

        Returns the seconds of audio in the snapshot. Push the audio that follows. StoreError if the
        bytes are damaged, or of another version, population or settings.
        """
        from monitor.stream.snapshot import resume_snapshot

        try:
            return resume_snapshot(self.plan, self._stream, snapshot)
        except StoreError:  # a damaged one may have changed parts of the stream
            self._begin(self.plan, self.front_end)
            raise

    def state(self) -> tuple[StreamState, dict[str, AnyArray]]:
        """Return the state after the last reading, as plain values and arrays."""
        return self._stream.state()

    def restore(self, plain: StreamState, arrays: Mapping[str, AnyArray]) -> None:
        """Restore a ``state``. Then push the stream again, from its first sample."""
        info = self._stream.info
        self._begin(replace(self.plan, carried=None, peak_bits=0.0), self.front_end)
        self._expect(info)
        self._stream.restore(plain, arrays)


def _log_events(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        if isinstance(event, NoticeEvent):
            log_notices([event.notice])
        yield event
