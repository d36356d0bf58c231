"""Attackers that are tested on every candidate for a scrubbed recording."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.alerts.budgets import check_reach
from monitor.errors import StoreError, UsageError
from monitor.events.reading import Reading
from monitor.features.framing import join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.population.population import Population
from monitor.protocols import Source
from monitor.sources.base import Samples
from monitor.stream.monitor import Monitor
from monitor.types import FloatArray

CLEAR, PROTECTED = "clear", "protected"
WHOLE, LEFT, CHANGED = "whole file", "unchanged parts", "changed parts"
CUT, SILENCE = "cut", "silence"
_TRIES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSettings:
    """Attackers, changes and search of `scrub`."""

    features: Sequence[str] | None = None  # names; None for all calibrated ones
    silence: bool = False  # replace removed stretches with silence
    anonymiser: str | None = None  # method that protects stretches instead of removing them
    protected: Population | None = None  # population of protected speech
    seed: int | None = None  # seed of the method's draws; None for random
    tries: int = _TRIES  # stretches tested one by one, beside those found by halving
    setup: FeatureSetup = AS_ENVIRONMENT  # setup of the features

    def __post_init__(self) -> None:
        if self.protected is not None and self.anonymiser is None:
            raise UsageError("templates of protected speech need an anonymiser")

    @property
    def change(self) -> str:
        """Change to the removed parts: ``"cut"``, ``"silence"``, or an anonymiser's name."""
        method = self.anonymiser
        if method is None:
            return SILENCE if self.silence else CUT
        return "an anonymiser command" if method.startswith("command:") else method


@dataclass(frozen=True, slots=True)
class TriedAttacker:
    """A tested attacker."""

    hears: str  # part of the published sound
    templates: str  # kind of speech: clear, or protected by the same method
    features: tuple[str, ...]  # combined features

    @property
    def name(self) -> str:
        """Features, part and templates, for people."""
        return f"{'+'.join(self.features)}, {self.hears}, {self.templates} templates"


@dataclass(frozen=True, slots=True)
class DisclosureCurve:
    """An attacker's bits, second by second."""

    seconds: FloatArray  # shape (k,), of the readings
    bits: FloatArray
    short: bool = False  # capped by calibration at less than the budget, so true bits may exceed it

    @property
    def peak(self) -> float:
        """Maximum bits at any reading; infinite if unknown."""
        return math.inf if self.short else float(self.bits.max(initial=0.0))

    @property
    def peak_seconds(self) -> float:
        """Seconds to the reading with most bits."""
        return float(self.seconds[self.bits.argmax()]) if self.bits.size else 0.0

    def __str__(self) -> str:
        return f"{'at least ' if self.short else ''}{self.bits.max(initial=0.0):.1f} bits"


class TriedAttackers:
    """Attackers tested on a recording, with several features and templates."""

    def __init__(
        self,
        source: Source,
        population: Population,
        watch: str,
        budget: float,
        settings: ScrubSettings,
    ) -> None:
        first = Monitor.for_source(
            source, population, settings.features, watch, on_change="note", setup=settings.setup
        )
        attacker = first.attacker
        check_reach(budget, first.headline, attacker.support_bits, attacker.ceiling)
        first.fit_to(source)
        if first.session == "same":
            raise UsageError(
                f"another part of {source.label} is enrolled. The output hides that overlap, so "
                "its bits would be wrong. Enrol another recording."
            )
        if first.front_end.audio_features != first.features:
            raise UsageError(
                "a budget changes only sound: leave out features of words (--features)"
            )
        self.budget, self.first = budget, first
        self.monitors: dict[TriedAttacker, Monitor] = {}  # templates for new monitors
        sets = [first.features, *((name,) for name in first.features if len(first.features) > 1)]
        portions = {CLEAR: (WHOLE,) if settings.change == CUT else (WHOLE, LEFT),
                 PROTECTED: (WHOLE, CHANGED)}  # fmt: skip
        for templates, people in ((CLEAR, population), (PROTECTED, settings.protected)):
            if people is None:
                continue
            if {s.name for s in people.speakers} != {s.name for s in population.speakers}:
                raise UsageError("the protected population has other people than the clear one")
            for features in sets:
                try:
                    monitor = Monitor(
                        people, features, watch, session="cross", on_change="note",
                        setup=settings.setup,
                    )  # fmt: skip
                except (StoreError, UsageError):
                    if features == first.features:
                        raise
                    continue  # no rank model of this feature alone
                if monitor.headline == first.headline:
                    for portion in portions[templates]:
                        self.monitors[TriedAttacker(portion, templates, features)] = monitor

    def score_candidate(
        self, portion: str, samples: FloatArray, rate: int
    ) -> dict[TriedAttacker, DisclosureCurve]:
        """Measure the attackers' bits on this part, samples (n, channels)."""
        if not samples.size:
            return {}
        extractor = Monitor(self.first.plan.for_another_voice()).core.intake.create_block_reader()
        runs = [run for block in Samples(samples, rate) for run in extractor.process(block)]
        frames = join_runs([*runs, extractor.flush()])
        curves = {}
        for attacker, monitor in self.monitors.items():
            if attacker.hears == portion:
                events = Monitor(monitor.plan.for_another_voice()).listen([frames])
                readings = [e for e in events if isinstance(e, Reading) and e.bits is not None]
                seconds, bits = np.array([(r.seconds, r.bits) for r in readings]).reshape(-1, 2).T
                under = (b <= self.budget for b in bits)
                short = any(r.at_least and low for r, low in zip(readings, under, strict=True))
                curves[attacker] = DisclosureCurve(seconds, bits, short)
        return curves
