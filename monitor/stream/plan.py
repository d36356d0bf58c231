"""`Plan` holds all choices made before the first block of a stream."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from monitor.errors import UsageError
from monitor.events.keys import HEADLINES
from monitor.features.registry import FeatureSetup, superseded
from monitor.kinds import EMBEDDING, SPEAKER_PREFIX, FeatureSpec
from monitor.population.false_alarms import FalseAlarms, false_alarms
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.protocols import Feature
from monitor.safe_text import spelled
from monitor.stream.attacker import Attacker
from monitor.stream.attacker_model import AttackerSettings
from monitor.stream.choice import choose_features, find_pitch
from monitor.stream.conditions import StreamConditions
from monitor.stream.copies import CopyFinder, EnrolledLandmarks
from monitor.stream.evidence import Evidence
from monitor.stream.front_end import FrontEnd
from monitor.stream.intake import Intake
from monitor.stream.posterior import Bystanders
from monitor.stream.reading_builder import ReadingBuilder
from monitor.stream.repeat_gate import RepeatFinder, RepeatGate
from monitor.stream.second_voice import SecondVoice
from monitor.stream.segments import SpeakerSegments
from monitor.stream.speaker_changes import (
    ON_CHANGE,
    CopiedChanges,
    Recordings,
    SpeakerChanges,
    are_different_people,
    create_change_detector,
)
from monitor.stream.stream import Observers, Stream
from monitor.stream.totals import FeatureTotals
from monitor.types import TICKS_PER_SECOND


@dataclass(frozen=True, slots=True)
class MonitorSettings(AttackerSettings):
    """Rarer settings of a `Monitor`; UsageError if invalid.

    Attributes:
        top: number of most probable speakers that a reading names.
        among: crowd sizes for which a reading reports bits, each at least N. None is N and a
            million.
        enrolled_prior: probability, before any speech, that one of the N speaks.
        channel: the channel to process, counted from 1; None mixes all of them.
        bystanders: minimum probability at which to name an enrolled person other than the watched
            speaker, in the largest crowd of ``among``. None names no one.
        template_seconds: common length D to which all templates are cut. None chooses it as in
            `Population.scoring`.
        rank_models: replacement for the population's rank models.
        second_voice: whether to search for another voice that takes turns with the watched one. The
            search needs evidence and an embedding. With your own network, it makes a monitor about
            three times slower. None searches, except with your own network.
    """

    channel: int | None = None
    bystanders: float | None = None
    template_seconds: float | None = None
    rank_models: RankModels | None = None
    second_voice: bool | None = None

    def __post_init__(self) -> None:
        AttackerSettings.__post_init__(self)
        if self.channel is not None and self.channel < 1:
            raise UsageError(
                f"channel={self.channel} must be 1 or more: channels are counted from 1"
            )

    def get_rank_models(self, population: Population) -> RankModels:
        """Return the rank models to use with this population."""
        return population.rank_models if self.rank_models is None else self.rank_models


DEFAULTS = MonitorSettings()


@dataclass(frozen=True, eq=False)
class Plan:
    """Choices made before a stream, and the totals of earlier streams.

    `dataclasses.replace` makes a plan for another stream, which shares the attacker and its
    prepared templates.
    """

    # population, watch, step_seconds, on_change, setup, settings: as in `Monitor`
    population: Population
    attacker: Attacker
    landmarks: EnrolledLandmarks  # landmarks of the enrolled recordings
    watch: str | None
    step_seconds: float
    on_change: str
    session: str  # requested session of the rank model, ``"same"`` or ``"cross"``
    by_source: bool  # whether the source may change ``session``
    setup: FeatureSetup
    settings: MonitorSettings
    own_features: tuple[Feature | FeatureSpec, ...] = ()
    # unused features of the population, except superseded ones
    skipped_features: tuple[str, ...] = ()
    # whether the headline is the closed-set figure even if there is evidence
    closed_set: bool = False
    # carried, peak_bits: totals and peak of earlier streams of the same voice
    carried: FeatureTotals | None = None
    peak_bits: float = 0.0
    # speaker changes from another monitor of the same voice, which replace detection
    copied_changes: CopiedChanges | None = None

    @classmethod
    def create(
        cls,
        population: Population,
        features: Sequence[str | Feature | FeatureSpec] | None,
        watch: str | None,
        step_seconds: float,
        on_change: str,
        session: str | None,
        setup: FeatureSetup,
        settings: MonitorSettings,
    ) -> Plan:
        """Choose features and attacker; arguments as in `Monitor`."""
        _count_step_ticks(step_seconds)
        if on_change not in ON_CHANGE:
            raise UsageError(f"on_change={on_change!r} must be one of {', '.join(ON_CHANGE)}")
        watch = watch and spelled(watch)
        candidates: Iterable[str] = ()
        if features is None:
            features = choose_features(settings.get_rank_models(population), setup=setup)
            candidates = population.features
        kind = session or "cross"
        names = [_get_name(feature) for feature in features]
        attacker = _create_attacker(population, names, watch, kind, settings)
        custom = tuple(feature for feature in features if not isinstance(feature, str))
        landmarks = EnrolledLandmarks(population, watch)
        chosen = watch, step_seconds, on_change, kind, session is None, setup, settings, custom
        return cls(population, attacker, landmarks, *chosen).skipping(candidates)

    def skipping(self, candidates: Iterable[str]) -> Plan:
        """Record unused candidates, except those that a feature in use supersedes."""
        unused = [name for name in candidates if name not in self.features]
        skipped = tuple(name for name in unused if not superseded(name, self.features))
        return replace(self, skipped_features=skipped)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in the order of the rank model."""
        return self.attacker.features

    @property
    def rank_models(self) -> RankModels:
        """All rank models to choose from."""
        return self.settings.get_rank_models(self.population)

    @cached_property
    def bystanders(self) -> Bystanders | None:
        """Finder of bystanders; None unless requested. UsageError without evidence."""
        level = self.settings.bystanders
        return None if level is None else self.attacker.create_bystanders(level)

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Hashes of population and rank model. Equal hashes give equal figures."""
        models = self.attacker.rank_model, self.attacker.evidence_model
        return {"population": self.population.fingerprint(), "rank_model": _hash_models(*models)}

    @property
    def mismatched(self) -> bool:
        """True if the rank model was calibrated on other people than the enrolled ones."""
        has_own_models = self.settings.rank_models is not None
        return (
            self.population.mismatched
            or has_own_models
            or self.attacker.rank_model.origin == "shipped"
        )

    @property
    def headline(self) -> str:
        """The figure in a reading's ``bits``: ``"evidence"`` or ``"closed-set"``."""
        evidence = self.watch is not None and self.attacker.support_bits is not None
        return "evidence" if evidence and not self.closed_set else "closed-set"

    def configuration(self) -> dict[str, object]:
        """Return the settings as JSON values. A run can only be resumed with equal settings."""
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

    def most_bits(self, field: str) -> float:
        """Return the largest possible value of a bits field of readings; infinity if unknown."""
        name = field.removesuffix("_low")
        return self.attacker.most_bits(HEADLINES[self.headline] if name == "bits" else name)

    def false_alarms(self, field: str, rate: float, horizon_seconds: float) -> FalseAlarms:
        """Return a threshold, as `Monitor.false_alarms` does."""
        alarms = false_alarms(
            self.rank_models,
            self.features,
            self.attacker.session,
            field,
            rate,
            horizon_seconds,
            watch=self.watch,
            headline=self.headline,
        )
        return replace(alarms, most_bits=self.most_bits(field))

    def for_session(self, session: str) -> Plan:
        """Return the plan for this session if the source may choose, otherwise the same plan."""
        if not self.by_source or session == self.session:
            return self
        attacker = _create_attacker(
            self.population, self.features, self.watch, session, self.settings
        )
        return replace(self, session=session, attacker=attacker)

    def for_another_voice(self) -> Plan:
        """Return a plan for another voice in the same recording; UsageError for custom features."""
        if self.own_features:
            raise UsageError("custom features support one voice only: name built-in features")
        return replace(self, carried=None, peak_bits=0.0)

    def again(self, population: Population | None = None) -> Plan:
        """Return a plan for another stream of the same voice, without bystanders.

        ``population`` has other templates of the same people; None keeps these.
        """
        settings = replace(self.settings, bystanders=None)
        if population is None:
            again = replace(self, settings=settings, by_source=False, peak_bits=0.0)
            return replace(again, own_features=(), skipped_features=(), copied_changes=None)
        settings = replace(settings, rank_models=None)
        arguments = self.watch, self.step_seconds, self.on_change, self.session, self.setup
        plan = Plan.create(population, self.features, *arguments, settings)
        return replace(plan, closed_set=self.closed_set)

    def create_front_end(self) -> FrontEnd:
        """Create the features; UsageError if a feature does not fit the templates."""
        return FrontEnd(self.population, self.features, self.own_features, self.setup)

    def begin(self, front_end: FrontEnd) -> Stream:
        """Begin a stream with its own features, made by `create_front_end`."""
        specs = {name: self.population.features[name].spec for name in self.features}
        follows = self.on_change != "ignore"
        evidence = Evidence(specs, ("channel",) if follows else ())
        if self.carried is not None:
            evidence.resume_from(self.carried)
        segments = None
        if self.on_change == "note" and self.attacker.watched:
            segments = SpeakerSegments(evidence.totals)
        changes = self._create_changes(front_end)
        audio_specs = {
            name: spec for name, spec in specs.items() if front_end.takes(name) == "audio"
        }
        pitch = find_pitch(self.features)
        observers = Observers(
            CopyFinder(self.landmarks),
            RepeatFinder(),
            RepeatGate(audio_specs, front_end.embed_part),
            StreamConditions(
                self.population.conditions(self.watch),
                self.attacker.matching_bits,
                self.population.voiced_shares(pitch, self.watch) if pitch else (),
            ),
            # recordings are not compared if the evidence restarts at a change
            Recordings(None if changes.begins_afresh else partial(are_different_people, specs)),
            changes,
            segments,
            self._create_second_voice(front_end, audio_specs),
        )
        builder = ReadingBuilder(
            self.attacker, self.watch is not None, self.headline, self.bystanders, self.peak_bits
        )
        intake = Intake(front_end, specs, self.settings.channel, levels=changes.is_active)
        step_ticks = _count_step_ticks(self.step_seconds)
        return Stream(intake, evidence, builder, observers, step_ticks)

    def _create_second_voice(
        self, front_end: FrontEnd, audio_specs: Mapping[str, FeatureSpec]
    ) -> SecondVoice | None:
        """Create the search for another voice; None without evidence or an embedding."""
        embedded = [name for name, spec in audio_specs.items() if spec.kind is EMBEDDING]
        if self.headline != "evidence" or len(embedded) != 1:
            return None
        wanted = self.settings.second_voice
        if not (not embedded[0].startswith(SPEAKER_PREFIX) if wanted is None else wanted):
            return None
        specs = {name: self.population.features[name].spec for name in self.features}
        embed = partial(front_end.embed_part, embedded[0])
        return SecondVoice(self.attacker, specs, embedded[0], embed)

    def _create_changes(self, front_end: FrontEnd) -> SpeakerChanges:
        if self.copied_changes is not None:
            return self.copied_changes
        detector = None
        if self.on_change != "ignore":
            follow = front_end.get_change_sensitivities()
            detector = create_change_detector(
                self.population, self.attacker, self.on_change, follow
            )
        return SpeakerChanges(detector, self.on_change)


def _create_attacker(
    population: Population,
    features: Sequence[str],
    watch: str | None,
    session: str,
    settings: MonitorSettings,
) -> Attacker:
    return Attacker(
        population,
        features,
        watch,
        session=session,
        rank_models=settings.rank_models,
        template_seconds=settings.template_seconds,
        settings=settings,
    )


def _hash_models(rank_model: RankModel, evidence_model: RankModel | None) -> str:
    digest = hashlib.sha256(
        repr((rank_model.features, rank_model.session, rank_model.similarities)).encode()
    )
    for name in ("lengths", "template_lengths", "alpha", "beta", "binomial", "weights", "floor"):
        digest.update(getattr(rank_model, name).tobytes())
    others = [] if evidence_model is None or evidence_model is rank_model else [evidence_model]
    for evidence in (model.evidence for model in (rank_model, *others)):
        if evidence is not None:
            for name in ("intercept", "slopes", "support"):
                digest.update(getattr(evidence, name).tobytes())
    return digest.hexdigest()[:16]


def _count_step_ticks(step_seconds: float) -> int:
    """Return the ticks between readings; UsageError if they are not a whole number."""
    ticks = step_seconds * TICKS_PER_SECOND
    if not (math.isfinite(ticks) and round(ticks) >= 1 and abs(ticks - round(ticks)) <= 1e-6):
        raise UsageError(f"step_seconds={step_seconds:g} must be a positive multiple of 0.01")
    return round(ticks)


def _get_name(feature: str | Feature | FeatureSpec) -> str:
    if isinstance(feature, str):
        return feature
    return feature.name if isinstance(feature, FeatureSpec) else feature.spec.name
