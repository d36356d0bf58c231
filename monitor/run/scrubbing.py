"""Scrubbing keeps parts of a recording within a budget of bits, and removes or protects the rest.

A recording is divided at its pauses. Every candidate is measured as it would be published. The
strongest of several attackers may never exceed the budget. Stretches are sorted by bits per second,
fewest first. Halving finds how many of these the budget allows. Then each of the others is tested
in addition. Evidence does not always grow with more speech, so a longer selection may exist.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

import numpy as np
import soundfile

from monitor.anonymisers.recording import FORMATS, ProtectedBlocks, sound_file
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.events.schema import compact
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.registry import FeatureSetup
from monitor.phrases import clock_time, plural
from monitor.plots.recording import ScrubCurves
from monitor.population.population import Population
from monitor.run.measuring import Measurement
from monitor.run.run import Run
from monitor.run.scrub_attackers import (
    CHANGED,
    CLEAR,
    CUT,
    LEFT,
    SILENCE,
    WHOLE,
    DisclosureCurve,
    ScrubSettings,
    TriedAttacker,
    TriedAttackers,
)
from monitor.run.stretches import SINGLES, CutStretch, choose_kept, divide_at_pauses
from monitor.safe_text import file_name
from monitor.sources.base import Samples, protection_tag
from monitor.sources.file import File
from monitor.stream.monitor import Monitor
from monitor.types import FloatArray

_NAMED = 6  # stretches that a report names
_FADE_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class ScrubbedRecording:
    """Outcome of `scrub`."""

    recording: str
    watch: str
    budget: float
    method: str  # ``"cut"``, ``"silence"``, or the method that protected
    headline: str
    stretches: tuple[CutStretch, ...]  # in order, over the whole recording
    before: Mapping[TriedAttacker, DisclosureCurve]  # bits of the original recording
    after: Mapping[TriedAttacker, DisclosureCurve]  # bits of the written file
    candidates: int  # number of measured candidates
    measured: Measurement  # an ordinary run over the written file

    @property
    def kept_seconds(self) -> float:
        """Seconds of unchanged speech."""
        return sum(stretch.speech for stretch in self.stretches if stretch.is_kept)

    @property
    def speech_seconds(self) -> float:
        """Seconds of speech in the recording."""
        return sum(stretch.speech for stretch in self.stretches)

    @staticmethod
    def strongest(
        curves: Mapping[TriedAttacker, DisclosureCurve],
    ) -> tuple[TriedAttacker, DisclosureCurve]:
        """Return the attacker with most bits, and the bits."""
        return max(curves.items(), key=lambda item: item[1].peak)

    @property
    def change(self) -> str:
        """Past participle of the change to the rest."""
        return {CUT: "cut", SILENCE: "silenced"}.get(self.method, f"protected by {self.method}")

    def describe(self) -> list[str]:
        """Format the changes and their effect, for people."""
        attacker, curve = self.strongest(self.before)
        over = curve.seconds[curve.bits > self.budget]
        when = f", over the budget from {clock_time(over[0])} on" if over.size else ""
        retained = [stretch for stretch in self.stretches if stretch.is_kept]
        places = ", ".join(
            f"{clock_time(s.start)} to {clock_time(s.end)}" for s in retained[:_NAMED]
        )
        more = f" and {len(retained) - _NAMED} more" if len(retained) > _NAMED else ""
        fraction = self.kept_seconds / self.speech_seconds
        return [
            f"{self.recording}: {curve} of {self.watch} ({self.headline}) to the strongest of "
            f"{plural(len(self.before), 'attacker')} ({attacker.name}){when}.",
            f"Kept: {plural(len(retained), 'stretch', 'stretches')} of {len(self.stretches)}, "
            f"{self.kept_seconds:.1f} of {self.speech_seconds:.1f} s of speech ({fraction:.0%})"
            + (f": {places}{more}." if retained else "."),
            f"The rest, {self.speech_seconds - self.kept_seconds:.1f} s, was {self.change}. "
            f"{plural(self.candidates, 'candidate was', 'candidates were')} tested.",
        ]

    def rows(self) -> list[tuple[str, ...]]:
        """Format the bits of each attacker before and after, the strongest after first."""
        return [
            (
                "+".join(attacker.features),
                attacker.hears,
                attacker.templates,
                str(self.before.get(attacker, "")),
                f"{curve} at {clock_time(curve.peak_seconds)}",
            )
            for attacker, curve in sorted(self.after.items(), key=lambda item: -item[1].peak)
        ]

    def notices(self, *, informed: bool) -> list[str]:
        """Return the limits of the figures, one line each."""
        notices = [
            "Stronger attackers may learn more. Other networks, more enrolled speech, words and "
            "people who know the voice were not tested."
        ]
        if self.method not in (CUT, SILENCE):
            notices.append(
                "Attackers with templates of protected speech were tested too. Ones who train on "
                "such speech, or combine the changed and unchanged parts, learn more."
                if informed
                else "No attacker with enrolled protected speech was tested. Such an attacker "
                "learns more (--protected-population)."
            )
        if self.method != CUT and any(stretch.is_kept for stretch in self.stretches):
            notices.append("Listeners can distinguish unchanged from changed stretches.")
        return notices

    def curves(self) -> ScrubCurves:
        """Return the curves that `monitor.plots.recording` draws."""
        changed = [(s.start, s.end) for s in self.stretches if not s.is_kept]
        seconds, bits = _compute_maxima(self.after, WHOLE)
        if self.method == CUT:
            retained = [stretch for stretch in self.stretches if stretch.is_kept]
            ends = np.cumsum([0.0] + [stretch.end - stretch.start for stretch in retained])
            index = np.clip(np.searchsorted(ends, seconds, side="left") - 1, 0, len(retained) - 1)
            shift = np.array([stretch.start for stretch in retained]) - ends[:-1]
            seconds = np.minimum(seconds, ends[-1]) + shift[index]
        attacker, curve = self.strongest(self.after)
        fraction = self.kept_seconds / self.speech_seconds
        title = (
            f"{self.recording}: {fraction:.0%} of the speech kept, the rest {self.change} (at most "
            f"{curve.peak:.1f} bits of {self.watch}, {attacker.name})"
        )
        return ScrubCurves(
            title, self.budget, _compute_maxima(self.before, WHOLE), (seconds, bits), changed,
            self.change, self.stretches[-1].end,
        )  # fmt: skip


def _compute_maxima(
    curves: Mapping[TriedAttacker, DisclosureCurve], portion: str
) -> tuple[FloatArray, FloatArray]:
    """Compute the most bits of any attacker at each reading of a part, (k,) and (k,)."""
    batch = [c for attacker, c in curves.items() if attacker.hears == portion and c.bits.size]
    seconds = np.unique(np.concatenate([curve.seconds for curve in batch]))
    bits = np.full(seconds.size, -np.inf)
    for curve in batch:
        at = np.searchsorted(seconds, curve.seconds)
        bits[at] = np.maximum(bits[at], curve.bits)
    return seconds, bits


@dataclass
class _Candidates:
    """Candidates for the published recording, by the kept stretches, with their bits."""

    samples: FloatArray  # samples, replacement: shape (n, channels), or None if the rest is cut
    replacement: FloatArray | None
    rate: int
    stretches: list[CutStretch]
    attackers: TriedAttackers
    form: tuple[str, str]  # format and subtype of the file
    curves: dict[tuple[frozenset[int], str], dict[TriedAttacker, DisclosureCurve]] = field(
        default_factory=dict
    )

    def encode(self, choice: frozenset[int]) -> FloatArray:
        """Return a candidate as read back from a file, shape (n, channels)."""
        file = io.BytesIO()
        audio_format, subtype = self.form
        soundfile.write(file, self.mix(choice), self.rate, format=audio_format, subtype=subtype)
        file.seek(0)
        return np.asarray(soundfile.read(file, dtype="float32", always_2d=True)[0])

    def mix(self, choice: frozenset[int]) -> FloatArray:
        """Return the samples of a candidate, shape (n, channels)."""
        if self.replacement is None:
            return self._select(choice, self.samples)
        gain = self._gain(choice)
        return gain[:, None] * self.samples + (1 - gain[:, None]) * self.replacement

    def _select(self, choice: frozenset[int], samples: FloatArray) -> FloatArray:
        """Return the chosen stretches of ``samples``, joined."""
        gain = self._gain(choice)
        return np.asarray(samples[gain > 0] * gain[gain > 0, None])

    @property
    def parts(self) -> list[str]:
        """Parts of a candidate that attackers use, in the order of measuring."""
        parts = {attacker.hears for attacker in self.attackers.monitors}
        return sorted(parts, key=(LEFT, WHOLE, CHANGED).index)

    def score(self, choice: frozenset[int], portion: str) -> dict[TriedAttacker, DisclosureCurve]:
        """Measure the attackers' bits on a part of a candidate; results are cached."""
        if (choice, portion) not in self.curves:
            if portion == WHOLE:
                sound = self.encode(choice)
            elif portion == LEFT:
                sound = self._select(choice, self.samples)
            else:
                assert self.replacement is not None
                complement = frozenset(range(len(self.stretches))) - choice
                sound = self._select(complement, self.replacement)
            self.curves[choice, portion] = self.attackers.score_candidate(portion, sound, self.rate)
        return self.curves[choice, portion]

    def score_all(self, choice: frozenset[int]) -> dict[TriedAttacker, DisclosureCurve]:
        curves: dict[TriedAttacker, DisclosureCurve] = {}
        for portion in self.parts:
            curves |= self.score(choice, portion)
        return curves

    def is_within_budget(self, choice: frozenset[int]) -> bool:
        curves = (curve for portion in self.parts for curve in self.score(choice, portion).values())
        return all(curve.peak <= self.attackers.budget for curve in curves)

    def order_by_density(self) -> list[int]:
        """Order stretches by bits per second of speech, fewest first."""

        def density(stretch: int) -> float:
            curves = self.score(frozenset({stretch}), self.parts[0]).values()
            last = max((float(c.bits[-1]) for c in curves if c.bits.size), default=0.0)
            return last / max(self.stretches[stretch].speech, 0.1)

        return sorted(range(len(self.stretches)), key=density)

    def _gain(self, choice: frozenset[int]) -> FloatArray:
        """Return 1 in unchanged parts and 0 elsewhere, with short ramps; shape (n,)."""
        gain = np.zeros(len(self.samples), np.float32)
        fade = max(1, round(_FADE_SECONDS * self.rate))
        for first, last in _runs(choice):
            a = round(self.stretches[first].start * self.rate)
            b = round(self.stretches[last].end * self.rate)
            b = len(gain) if last == len(self.stretches) - 1 else b
            gain[a:b] = 1
            ramp = np.arange(1, fade + 1, dtype=np.float32) / (fade + 1)
            ramp = ramp[: (b - a) // 2]
            if a > 0:
                gain[a : a + ramp.size] = ramp
            if b < len(gain):
                gain[b - ramp.size : b] = ramp[::-1]
        return gain


def _runs(choice: frozenset[int]) -> Iterator[tuple[int, int]]:
    for stretch in sorted(choice):
        if stretch - 1 not in choice:
            first = stretch
        if stretch + 1 not in choice:
            yield first, stretch


_DEFAULTS = ScrubSettings()
_Progress: TypeAlias = Callable[[str, float], None]


def scrub(
    recording: Path,
    output: Path,
    population: Population,
    watch: str,
    budget: float,
    settings: ScrubSettings = _DEFAULTS,
    *,
    progress: _Progress = lambda _label, _share: None,
) -> ScrubbedRecording:
    """Write a recording that keeps every tested attacker within the budget.

    ``output`` is private (mode 0600) and written atomically. In an ordinary run over it, all
    readings stay within the budget. So do the bits of the other tested attackers, who have other
    features or templates, or omit changed parts. ``progress`` is called with an activity and the
    fraction of all work.
    """
    form = FORMATS.get(output.suffix.lower())
    if form is None:
        raise UsageError(f"-o {file_name(output)} must end in .wav or .flac")
    if not budget > 0 or not math.isfinite(budget):
        raise UsageError(f"invalid budget {budget:g}: use more than 0 bits")
    source = File(recording)
    attackers = TriedAttackers(source, population, watch, budget, settings)
    candidates = _prepare_candidates(source, attackers, form, settings, progress)
    progress("measuring the original", 0.02)
    original = attackers.score_candidate(WHOLE, candidates.samples, source.rate)
    before = {attacker: c for attacker, c in original.items() if attacker.templates == CLEAR}
    if not any(len(curve.bits) for curve in before.values()):
        raise UsageError(f"this recording gives no figure for {watch}; see monitor replay")
    if settings.anonymiser is not None:
        _check_protection(candidates, settings.change, source.label)
    choice = _search(candidates, settings, source.label, progress)
    progress("checking the file", 0.97)
    after = candidates.score_all(choice)
    published = Samples(candidates.encode(choice), source.rate, output.name)
    measured = _measure_published(published, attackers.first, settings.setup)
    peak = max((reading.bits or 0.0 for reading in measured.readings), default=0.0)
    if peak > budget:
        raise MonitorError(f"an ordinary run over the file finds {peak:.2f} bits; please report it")
    samples = candidates.mix(choice)
    tag = protection_tag("scrubbed", f"{budget:g} bits, {settings.change}")
    with sound_file(output, source.rate, samples.shape[1], *candidates.form, tag) as write:
        write(samples)
    return ScrubbedRecording(
        source.label, watch, budget, settings.change, attackers.first.headline,
        tuple(replace(s, is_kept=i in choice) for i, s in enumerate(candidates.stretches)),
        before, after, len({candidate for candidate, _ in candidates.curves}), measured,
    )  # fmt: skip


def _prepare_candidates(
    source: File, attackers: TriedAttackers, form: str, settings: ScrubSettings, progress: _Progress
) -> _Candidates:
    """Read a recording, divide it, and make the replacement of removed stretches."""
    blocks = [np.asarray(block.samples, np.float32) for block in source.blocks()]
    if not blocks:
        raise SourceError(f"{source.label} contains no sound")
    samples = np.concatenate([block.reshape(len(block), -1) for block in blocks])
    extractor = Extractor([])
    runs = [extractor.process(block) for block in Samples(samples, source.rate)]
    speech = join_runs([*runs, extractor.flush()]).speech
    if not speech.any():
        raise SourceError(f"{source.label} contains no speech")
    replacement = None
    if settings.silence:
        replacement = np.zeros_like(samples)
    elif settings.anonymiser is not None:
        progress("anonymising", 0.0)
        protect = ProtectedBlocks(
            settings.anonymiser, (source.label,), speaker=attackers.first.watch, seed=settings.seed
        )
        replacement = np.concatenate([np.asarray(block.samples) for block in protect(source)])
    subtype = source.subtype
    if subtype not in ("PCM_16", "PCM_24") or not soundfile.check_format(form, subtype):
        subtype = "PCM_16"
    return _Candidates(
        samples, replacement, source.rate, divide_at_pauses(speech), attackers, (form, subtype)
    )


def _check_protection(candidates: _Candidates, method: str, recording: str) -> None:
    """Refuse a method that exceeds the budget even if it protects the whole recording."""
    nothing: frozenset[int] = frozenset()
    if candidates.is_within_budget(nothing):
        return
    attacker, curve = ScrubbedRecording.strongest(candidates.score_all(nothing))
    # bits capped by calibration may be more
    over = "all that calibration supports and perhaps more than" if curve.short else "more than"
    raise MonitorError(
        f"{method} cannot meet the budget. Even if {recording} is protected from end to end, it "
        f"gives {curve} at {clock_time(curve.peak_seconds)} ({attacker.name}), {over} the "
        f"{candidates.attackers.budget:g} allowed. Cut instead (without --method), or use another "
        "method."
    )


def _search(
    candidates: _Candidates, settings: ScrubSettings, recording: str, progress: _Progress
) -> frozenset[int]:
    """Choose the stretches to keep; MonitorError if none fits and nothing replaces them."""
    progress("measuring each stretch", 0.1)
    order = candidates.order_by_density()
    tries = settings.tries
    steps = math.ceil(math.log2(max(len(order), 2))) + (2 + SINGLES) * min(tries, len(order))
    done = count(1)

    def is_allowed(choice: frozenset[int]) -> bool:
        progress("searching", min(0.95, 0.2 + 0.75 * next(done) / steps))
        return bool(choice) and candidates.is_within_budget(choice)

    speech = [stretch.speech for stretch in candidates.stretches]
    choice = choose_kept(speech, order, is_allowed, tries)
    if not choice and settings.anonymiser is None:
        alone = (candidates.score(frozenset({i}), candidates.parts[0]).values() for i in order)
        strongest = [max(curves, key=lambda curve: curve.peak) for curves in alone]
        lowest = min(strongest, key=lambda curve: curve.peak)
        raise MonitorError(
            f"{'silencing' if settings.silence else 'cutting'} cannot meet the budget. No stretch "
            f"of {recording} stays under {candidates.attackers.budget:g} bits even alone (the "
            f"least gives {lowest}). Allow more, or protect it (--method)."
        )
    return choice


def _measure_published(published: Samples, first: Monitor, setup: FeatureSetup) -> Measurement:
    create = partial(
        Monitor.for_source, population=first.population, features=first.features,
        watch=first.watch, on_change="note", setup=setup,
    )  # fmt: skip
    with Run(published, create) as run:
        return Measurement.from_events(compact(run), run.notices)
