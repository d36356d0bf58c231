"""Keeps the part of a recording within a budget of bits; cuts, silences or protects the rest.

A recording is divided at its pauses. Every candidate is measured as it would be published. The
strongest of several attackers may never exceed the budget. Stretches that disclose least per second
come first. Halving finds how many of these the budget allows. Then each of the others is tried
beside them. Evidence grows almost always with more speech, but not always: a longer choice of other
stretches may exist.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice, pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import soundfile

from monitor.alerts.budgets import check_reach
from monitor.anonymisers.recording import FORMATS, ProtectedBlocks, sound_file
from monitor.errors import MonitorError, SourceError, StoreError, UsageError
from monitor.events.reading import Reading
from monitor.events.schema import compact
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.phrases import clock_time, plural
from monitor.plots.recording import ScrubCurves
from monitor.population.population import Population
from monitor.protocols import Source
from monitor.run.measuring import Measurement
from monitor.run.run import Run
from monitor.safe_text import file_name
from monitor.sources.base import Samples, protection_tag
from monitor.sources.file import File
from monitor.stream.monitor import Monitor
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray

# ---------------------------------------------------------------------------------------- stretches

_PAUSE_TICKS = 20
"""A pause in which may be cut."""
_LEAST_SPEECH, _MOST_SPEECH = 0.6, 3.0  # seconds of a stretch, where pauses allow it
_FADE_SECONDS = 0.005
_SINGLES = 2
"""Beginnings of a single stretch."""


@dataclass(frozen=True, slots=True)
class CutStretch:
    """A part of a recording from one pause to another."""

    start: float  # start, end: seconds, from the end of the previous one
    end: float
    speech: float  # seconds of speech in it
    is_kept: bool = True  # whether it is published as it was spoken


def divide_at_pauses(speech: BoolArray) -> list[CutStretch]:
    """Divide a recording, as its speech decisions (ticks,), in the middle of its pauses.

    Stretches of less than 0.6 s of speech are joined with the next. Those of more than three are
    divided at their longest shorter pause, or in the middle if they have none.

    Example:
        >>> speech = np.repeat([True, False, True, False, True], [200, 60, 30, 40, 150])
        >>> [(cut.start, cut.end, cut.speech) for cut in divide_at_pauses(speech)]
        [(0.0, 2.3, 2.0), (2.3, 4.8, 1.8)]
    """
    ticks = len(speech)
    counts = np.concatenate([[0], np.cumsum(speech)])

    def count_seconds(start: int, end: int) -> float:
        return float(counts[end] - counts[start]) / TICKS_PER_SECOND

    cuts = [0, *((a + b) // 2 for a, b in _pauses(speech, _PAUSE_TICKS)), ticks]
    joined = [0]
    for cut in cuts[1:-1]:
        enough = count_seconds(joined[-1], cut) >= _LEAST_SPEECH
        if enough and count_seconds(cut, ticks) >= _LEAST_SPEECH:
            joined.append(cut)
    stretches = []
    for start, end in zip(joined, [*joined[1:], ticks], strict=True):
        for a, b in pairwise(_divide(speech, start, end, count_seconds)):
            seconds = count_seconds(a, b)
            stretches.append(CutStretch(a / TICKS_PER_SECOND, b / TICKS_PER_SECOND, seconds))
    return stretches


def _pauses(speech: BoolArray, minimum: int) -> list[tuple[int, int]]:
    """Return runs without speech within the recording, of at least this many ticks."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], speech, [True]]).astype(int)))
    runs = [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return [(a, b) for a, b in runs if a > 0 and b < len(speech) and b - a >= minimum]


def _divide(
    speech: BoolArray, start: int, end: int, count_seconds: Callable[[int, int], float]
) -> list[int]:
    if count_seconds(start, end) <= _MOST_SPEECH:
        return [start, end]
    inside = [
        (b - a, start + (a + b) // 2)
        for a, b in _pauses(speech[start:end], 1)
        if min(count_seconds(start, start + a), count_seconds(start + b, end)) >= _LEAST_SPEECH
    ]
    spoken = np.cumsum(speech[start:end])
    middle = max(inside)[1] if inside else start + int(np.searchsorted(spoken, spoken[-1] / 2))
    first = _divide(speech, start, middle, count_seconds)
    return [*first[:-1], *_divide(speech, middle, end, count_seconds)]


# ------------------------------------------------------------------------------------------- search


def choose_kept(
    speech: Sequence[float],
    order: Sequence[int],
    is_allowed: Callable[[frozenset[int]], bool],
    tries: int,
) -> frozenset[int]:
    """Choose stretches with as much speech as is allowed; empty where not one is.

    There are several beginnings: the longest part of the order that is allowed, found by halving,
    and the longest stretches that are by themselves. Beside each, this many of the others are
    tested one by one, in order. The most speech wins.

    Example:
        >>> cost = [5, 1, 1, 3]
        >>> def is_allowed(choice):
        ...     return sum(cost[i] for i in choice) <= 5
        >>> sorted(choose_kept([4.0, 2.0, 2.0, 3.0], [1, 2, 0, 3], is_allowed, 9))
        [1, 2, 3]
    """
    if is_allowed(frozenset(order)):
        return frozenset(order)
    low, high = 0, len(order)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_allowed(frozenset(order[:middle])) else (low, middle)
    longest = sorted(order, key=lambda i: -speech[i])
    alone = (frozenset({i}) for i in longest[:tries] if is_allowed(frozenset({i})))
    best: frozenset[int] = frozenset()
    for choice in dict.fromkeys([frozenset(order[:low]), *islice(alone, _SINGLES)]):
        for stretch in [i for i in order if i not in choice][:tries]:
            if is_allowed(choice | {stretch}):
                choice |= {stretch}
        best = max(best, choice, key=lambda stretches: sum(speech[i] for i in stretches))
    return best


# ---------------------------------------------------------------------------------------- attackers

CLEAR, PROTECTED = "clear", "protected"
WHOLE, LEFT, CHANGED = "all of it", "what is left as it was", "what was changed"
CUT, SILENCE = "cut", "silence"
_TRIES = 24
_TOLD = 6  # stretches that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSettings:
    """Attackers, changes and search of `scrub`."""

    features: Sequence[str] | None = None  # names; None for all that can be
    silence: bool = False  # leave silence in the place of what is taken out
    anonymiser: str | None = None  # protect stretches by this method instead of taking them out
    protected: Population | None = None  # made of protected speech
    seed: int | None = None  # seed of the method's draws; None for random
    tries: int = _TRIES  # stretches that are tried one by one beside those that halving has found
    setup: FeatureSetup = AS_ENVIRONMENT  # from where features are made

    def __post_init__(self) -> None:
        if self.protected is not None and self.anonymiser is None:
            raise UsageError("templates of protected speech go with an anonymiser")

    @property
    def change(self) -> str:
        """Change to what is not kept: ``"cut"``, ``"silence"``, or the method that protects."""
        method = self.anonymiser
        if method is None:
            return SILENCE if self.silence else CUT
        return "an anonymiser command" if method.startswith("command:") else method


@dataclass(frozen=True, slots=True)
class TriedAttacker:
    """An attacker who is tried."""

    hears: str  # which part of what is published
    templates: str  # of clear speech, or of speech protected by the same method
    features: tuple[str, ...]  # that are weighed together

    @property
    def name(self) -> str:
        """Features, part and templates, for people."""
        return f"{'+'.join(self.features)}, {self.hears}, {self.templates} templates"


@dataclass(frozen=True, slots=True)
class DisclosureCurve:
    """Bits that an attacker has, second by second."""

    seconds: FloatArray  # shape (k,), of the readings
    bits: FloatArray
    short: bool = False  # cut to what calibration supports, under the budget: it may be more

    @property
    def peak(self) -> float:
        """Most bits at any reading; infinite where that is unknown."""
        return math.inf if self.short else float(self.bits.max(initial=0.0))

    @property
    def peak_seconds(self) -> float:
        """Seconds to the reading with most bits."""
        return float(self.seconds[self.bits.argmax()]) if self.bits.size else 0.0

    def __str__(self) -> str:
        return f"{'at least ' if self.short else ''}{self.bits.max(initial=0.0):.1f} bits"


class TriedAttackers:
    """Attackers who are tried on a recording, by features and by what they have enrolled."""

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
        check_reach(budget, first.headline, first.attacker)
        first.fit_to(source)
        if first.session == "same":
            raise UsageError(
                f"another part of {source.label} is enrolled. The output hides that overlap, so "
                "its bits would be wrong. Enrol another recording."
            )
        if first.front_end.audio_features != first.features:
            raise UsageError(
                "a budget changes sound alone: leave features of words out (--features)"
            )
        self.budget, self.first = budget, first
        self.monitors: dict[TriedAttacker, Monitor] = {}  # from which fresh ones are made
        sets = [first.features, *((name,) for name in first.features if len(first.features) > 1)]
        portions = {CLEAR: (WHOLE,) if settings.change == CUT else (WHOLE, LEFT),
                 PROTECTED: (WHOLE, CHANGED)}  # fmt: skip
        for templates, people in ((CLEAR, population), (PROTECTED, settings.protected)):
            if people is None:
                continue
            if {s.name for s in people.speakers} != {s.name for s in population.speakers}:
                raise UsageError("the protected population holds other people than the clear one")
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
        extractor = self.first.create_sibling().create_block_reader()
        runs = [run for block in Samples(samples, rate) for run in extractor.process(block)]
        frames = join_runs([*runs, extractor.flush()])
        curves = {}
        for attacker, monitor in self.monitors.items():
            if attacker.hears == portion:
                events = monitor.create_sibling().listen([frames])
                readings = [e for e in events if isinstance(e, Reading) and e.bits is not None]
                seconds, bits = np.array([(r.seconds, r.bits) for r in readings]).reshape(-1, 2).T
                under = (b <= self.budget for b in bits)
                short = any(r.at_least and low for r, low in zip(readings, under, strict=True))
                curves[attacker] = DisclosureCurve(seconds, bits, short)
        return curves


# ---------------------------------------------------------------------------------------- scrubbing


@dataclass(frozen=True, slots=True)
class ScrubbedRecording:
    """Outcome of `scrub`."""

    recording: str
    watch: str
    budget: float
    method: str  # ``"cut"``, ``"silence"``, or the method that protected
    headline: str
    stretches: tuple[CutStretch, ...]  # in order, over the whole recording
    before: Mapping[TriedAttacker, DisclosureCurve]  # of the recording as it was
    after: Mapping[TriedAttacker, DisclosureCurve]  # bits of each of the file that was written
    candidates: int  # number of measured candidates
    measured: Measurement  # the ordinary run over the file that was written

    @property
    def kept_seconds(self) -> float:
        """Seconds of speech that is published as it was spoken."""
        return sum(stretch.speech for stretch in self.stretches if stretch.is_kept)

    @property
    def speech_seconds(self) -> float:
        """Seconds of speech in the recording."""
        return sum(stretch.speech for stretch in self.stretches)

    @staticmethod
    def strongest(
        curves: Mapping[TriedAttacker, DisclosureCurve],
    ) -> tuple[TriedAttacker, DisclosureCurve]:
        """Return the attacker with most bits, and these."""
        return max(curves.items(), key=lambda item: item[1].peak)

    @property
    def change(self) -> str:
        """Change to the rest, as a participle."""
        return {CUT: "cut", SILENCE: "silenced"}.get(self.method, f"protected by {self.method}")

    def describe(self) -> list[str]:
        """Format what was done, and what it came to, for people."""
        attacker, curve = self.strongest(self.before)
        over = curve.seconds[curve.bits > self.budget]
        when = f", over the budget from {clock_time(over[0])} on" if over.size else ""
        retained = [stretch for stretch in self.stretches if stretch.is_kept]
        places = ", ".join(
            f"{clock_time(s.start)} to {clock_time(s.end)}" for s in retained[:_TOLD]
        )
        more = f" and {len(retained) - _TOLD} more" if len(retained) > _TOLD else ""
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
        """Return the limits of the figures, a line each."""
        notices = [
            "Stronger attackers may learn more. Other networks, more enrolled speech, words and "
            "people who know the voice were not tested."
        ]
        if self.method not in (CUT, SILENCE):
            notices.append(
                "Attackers with templates of protected speech were tested too. Ones who train on "
                "such speech, or combine the changed and unchanged parts, learn more."
                if informed
                else "No attacker with enrolled protected speech was tested. One learns more "
                "(--protected-population)."
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
    """Ways to publish a recording, by the stretches that are kept, and the bits of each."""

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
        """Return what a file gives back of a candidate, shape (n, channels)."""
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
        """Return some stretches alone, of one sound."""
        gain = self._gain(choice)
        return np.asarray(samples[gain > 0] * gain[gain > 0, None])

    @property
    def parts(self) -> list[str]:
        """Parts of a candidate that attackers use, the quickest to measure first."""
        parts = {attacker.hears for attacker in self.attackers.monitors}
        return sorted(parts, key=(LEFT, WHOLE, CHANGED).index)

    def score(self, choice: frozenset[int], portion: str) -> dict[TriedAttacker, DisclosureCurve]:
        """Measure the attackers' bits on this part of a candidate, once."""
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
        """Measure the bits of all attackers."""
        curves: dict[TriedAttacker, DisclosureCurve] = {}
        for portion in self.parts:
            curves |= self.score(choice, portion)
        return curves

    def is_within_budget(self, choice: frozenset[int]) -> bool:
        """Return whether no attacker has more than the budget."""
        curves = (curve for portion in self.parts for curve in self.score(choice, portion).values())
        return all(curve.peak <= self.attackers.budget for curve in curves)

    def order_by_density(self) -> list[int]:
        """Order stretches by the bits that each gives a second of speech, the least first."""

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

    ``output`` is private (mode 0600), and written completely or not at all. The figures of an
    ordinary run over it stay within the budget at every reading. So do those of attackers with
    other features or templates, or who leave out changed parts. ``progress`` is called with an
    activity and the fraction of all work.
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
        raise UsageError(f"no figure of {watch} can be given of this recording; see monitor replay")
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
    """Read a recording, divide it, and make what may stand for its stretches."""
    blocks = [np.asarray(block.samples, np.float32) for block in source.blocks()]
    if not blocks:
        raise SourceError(f"{source.label}: no sound is in it")
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
    """Refuse a method under which even the recording protected from end to end gives too much."""
    nothing: frozenset[int] = frozenset()
    if candidates.is_within_budget(nothing):
        return
    attacker, curve = ScrubbedRecording.strongest(candidates.score_all(nothing))
    # bits that calibration cuts may be more
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
    """Choose the stretches to keep; refuse where not one can be, and nothing stands for it."""
    progress("measuring each stretch", 0.1)
    order = candidates.order_by_density()
    tries = settings.tries
    steps = math.ceil(math.log2(max(len(order), 2))) + (2 + _SINGLES) * min(tries, len(order))
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
