"""Disclosure of stretches of speech, by their length.

For a corpus, each speaker is enrolled from one session and tested on the others, as in
`monitor.Monitor`. For recorded runs, the bits come from their readings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from monitor.errors import CorpusError, StoreError
from monitor.events.declaration import Event, find_first
from monitor.events.reading import Reading
from monitor.events.run import Change, RunStart
from monitor.kinds import FeatureSpec
from monitor.lab.evaluation.resampling import leaving_out
from monitor.lab.report.model import Figure
from monitor.lab.scoring import largest, stretches
from monitor.maths.condition import condition_of
from monitor.maths.statistics import REPLICATES, Estimate, speaker_weights
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.people import Speaker, sound_of
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.population.templates import SLICE_SECONDS
from monitor.stream.attacker import Attacker
from monitor.stream.totals import RunningTotals
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, units_of
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray

LENGTHS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
"""T, the lengths of stretches in speech seconds."""
TRIALS = 20  # maximum stretches per speaker and length, spread over the speech
MOST_TESTED = 100  # maximum speakers to watch, at even intervals among all of them
EXPOSED = 0.1  # fraction of the stretches that counts as most exposed
LEAST_PEOPLE = 5  # minimum people for a figure, unless fewer were tested in all
HEADLINE_PEOPLE = 10  # minimum people for the length in the report's first sentence, if possible
HEADLINE_SECONDS = 3.0  # minimum length in the report's first sentence, if possible
NOTHING_BITS = 0.5  # mean evidence below this, also negative, counts as no disclosure
_SLICE_UNITS = round(SLICE_SECONDS * UNITS_PER_SECOND)
_Stretch: TypeAlias = tuple[int, float, float, float, float, bool, bool]
"""Owner, T, bits with limits, whether bits are a lower bound, whether the owner ranked first."""


@dataclass(frozen=True)
class Exposures:
    """Bits of identity that n stretches of speech disclose."""

    speakers: tuple[str, ...]  # names of the tested speakers
    # index of each stretch's speaker among them, shape (n,) like the following arrays
    owner: IntArray
    seconds: FloatArray  # T, speech seconds
    bits: FloatArray  # evidence bits, or closed-set bits if there is no evidence
    # low, high: their limits, from calibration
    low: FloatArray
    high: FloatArray
    at_least: BoolArray  # whether calibration does not support more bits
    first: BoolArray  # whether the speaker ranked first
    kind: str  # ``"evidence"`` or ``"closed-set"``
    candidates: int  # N, templates per stretch
    session: str  # ``"cross"`` if templates are from another session, otherwise ``"same"``
    template_seconds: float | None = None  # D; None if it differs between runs
    reason: str = ""  # reason for missing evidence, otherwise empty

    @property
    def ceiling(self) -> float:
        """log2 N, bits."""
        return math.log2(self.candidates)

    @property
    def lengths(self) -> tuple[float, ...]:
        """Lengths T of the stretches, ascending."""
        return tuple(np.unique(self.seconds).tolist())

    def select_length(self, seconds: float) -> Exposures:
        """Select the stretches of one length."""
        return self._select(np.isclose(self.seconds, seconds))

    def _select(self, which: BoolArray) -> Exposures:
        arrays = ("owner", "seconds", "bits", "low", "high", "at_least", "first")
        return replace(self, **{name: getattr(self, name)[which] for name in arrays})

    def select_common(self, lengths: Sequence[float]) -> Exposures:
        """Return the stretches of these lengths, at least one, by speakers who have all of them."""
        common = reduce(np.intersect1d, (self.select_length(seconds).owner for seconds in lengths))
        return self._select(np.isin(self.owner, common) & np.isin(self.seconds, list(lengths)))

    def by_person(self) -> Exposures:
        """Average the stretches of each person at each length."""
        pairs, group = np.unique(np.stack([self.owner, self.seconds]), axis=1, return_inverse=True)
        group, counts = group.ravel(), np.bincount(group.ravel())

        def mean(values: AnyArray) -> FloatArray:
            return np.bincount(group, np.asarray(values, float)) / counts

        return replace(
            self, owner=pairs[0].astype(np.intp), seconds=pairs[1], bits=mean(self.bits),
            low=mean(self.low), high=mean(self.high), at_least=mean(self.at_least) > 0,
            first=mean(self.first) > 0,
        )  # fmt: skip

    @cached_property
    def by_speaker(self) -> dict[str, float]:
        """Mean bits of each speaker with a stretch, most exposed first."""
        bits = {
            self.speakers[i]: float(self.bits[self.owner == i].mean())
            for i in np.unique(self.owner).tolist()
        }
        return dict(sorted(bits.items(), key=lambda item: (-item[1], item[0])))


def _make_exposures(
    names: Sequence[str], stretches: Sequence[_Stretch], kind: str, candidates: int, session: str,
    template_seconds: float | None, reason: str = "",
) -> Exposures:  # fmt: skip
    owner, seconds, bits, low, high, at_least, first = map(np.array, zip(*stretches, strict=True))
    return Exposures(
        tuple(names), owner, seconds, bits, low, high, at_least, first, kind, candidates, session,
        template_seconds, reason,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LengthRow:
    """Disclosure of stretches of one length."""

    seconds: float
    speakers: int
    stretches: int
    mean_bits: Figure  # mean, with an interval over speakers
    exposed_bits: float  # lower limit of the most exposed tenth of the stretches
    most_bits: float  # bits of the most disclosing stretch
    most_at_least: bool  # whether calibration does not support more than ``most_bits``
    first: Figure  # fraction of stretches with their speaker ranked first, with an interval
    # fraction of stretches at or above the budget, with an interval; None without a budget
    beyond_budget: Figure | None
    undecided: float  # fraction of stretches that are below the budget but only have a lower bound
    at_least: float  # fraction of stretches with only a lower bound

    @property
    def bits(self) -> float:
        """Mean bits."""
        return self.mean_bits.value or 0.0


def summarise_lengths(
    exposures: Exposures, budget: float | None = None, replicates: int = REPLICATES, seed: int = 0
) -> tuple[LengthRow, ...]:
    """Summarise each length, with intervals over resampled speakers.

    The interval of a single speaker is that of calibration.
    """
    return tuple(
        _summarise(exposures.select_length(seconds), seconds, budget, replicates, seed)
        for seconds in exposures.lengths
    )


def _summarise(
    exposures: Exposures, seconds: float, budget: float | None, replicates: int, seed: int
) -> LengthRow:
    names, owner = np.unique(exposures.owner, return_inverse=True)
    counts = np.bincount(owner).astype(np.float64)
    weights = np.zeros((0, counts.size))
    if counts.size > 1 and replicates:
        people = [exposures.speakers[i] for i in names.tolist()]
        resamples = speaker_weights(counts.size, replicates, seed)
        weights = np.concatenate([resamples, leaving_out(people)])

    def estimate(values: FloatArray) -> Estimate:
        sums = np.bincount(owner, values)
        samples = weights @ sums / np.maximum(weights @ counts, 1e-9)
        value = float(sums.sum() / counts.sum())
        return Estimate(value, samples[:replicates], samples[replicates:], counts.size, owner.size)

    def fraction(key: str, label: str, which: BoolArray) -> Figure:
        estimated = estimate(which.astype(np.float64))
        low, high = estimated.share_limits(0.0, 1.0) if weights.size else (None, None)
        return Figure(key, label, estimated.value, "share", low=low, high=high)

    mean = estimate(exposures.bits)
    low, high = float(exposures.low.mean()), float(exposures.high.mean())
    if weights.size:
        low, high = mean.t_limits()
    below = None if budget is None else exposures.bits < budget
    return LengthRow(
        seconds,
        counts.size,
        owner.size,
        Figure("bits.mean", "bits", mean.value, "bits", low=low, high=high),
        float(np.quantile(exposures.bits, 1 - EXPOSED, method="higher")),
        float(exposures.bits.max()),
        bool(exposures.at_least[exposures.bits >= exposures.bits.max()].any()),
        fraction("first", "first", exposures.first),
        None if below is None else fraction("bits.beyond", "at the budget", ~below),
        0.0 if below is None else float((below & exposures.at_least).mean()),
        float(exposures.at_least.mean()),
    )


@dataclass(frozen=True, slots=True)
class Retention:
    """Longest speech of one person under a budget, among the tested lengths."""

    # longest length up to which no stretch reached it; None if one did at the shortest
    under: float | None
    # shortest length at which a stretch reached it, or calibration does not rule this out; None if
    # there is no such length
    reached: float | None
    # shortest length at which the mean over stretches, or its upper limit, reached it; None if
    # there is no such length
    on_average: float | None
    may: bool = False  # whether `reached` only means that calibration does not rule it out


def find_retention(rows: Sequence[LengthRow], budget: float, least_people: int = 1) -> Retention:
    """Find the retention in the rows of `summarise_lengths`.

    Evidence accumulates across one person's recordings, so no length beyond one that reached the
    budget counts as safe. A single person's stretch is enough to reach it. A length counts as under
    the budget, and a mean counts, only with `least_people` or more.
    """
    under = reached = average = None
    may = False
    for row in rows:
        has_reached = row.beyond_budget is not None and (row.beyond_budget.value or 0.0) > 0
        if reached is None and (has_reached or row.undecided):
            reached, may = row.seconds, not has_reached
        if reached is None and row.speakers >= least_people:
            under = row.seconds
        upper = max(row.bits, row.mean_bits.high or 0.0)
        if average is None and upper >= budget and row.speakers >= least_people:
            average = row.seconds
    return Retention(under, reached, average, may)


@dataclass(frozen=True)
class EnrolledPart:
    """All speakers enrolled from one session, without rank models, and their remaining speech."""

    population: Population
    remaining: tuple[SpeakerSpeech, ...]
    session: str
    template_seconds: float


def enrol_part(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    template_seconds: float,
    least_seconds: float = LENGTHS[0],
) -> EnrolledPart:
    """Make a template of every speaker, of D rounded down to 5 s, and return the remaining speech.

    The shortest sufficient session is enrolled, so that the others have much speech. If fewer than
    `LEAST_PEOPLE` have another session with `least_seconds`, the longest session is split, template
    first. Raises CorpusError if fewer than `LEAST_PEOPLE` have a template, or speech beside it.
    """
    count = int(template_seconds // SLICE_SECONDS)
    if count < 1:
        raise CorpusError(f"a template needs at least {SLICE_SECONDS:g} s of speech")
    units, minimum = count * _SLICE_UNITS, units_of(least_seconds)
    chosen = {}
    for voice in voices:
        if long := [i for i in range(len(voice.sessions)) if voice.length(i) >= units]:
            chosen[voice.name] = min(long, key=voice.length)
    others = [_drop_session(voice, chosen[voice.name]) for voice in voices if voice.name in chosen]
    others = [v for v in others if any(v.length(i) >= minimum for i in range(len(v.sessions)))]
    session = "cross"
    if len(others) < LEAST_PEOPLE:
        session = "same"
        start = units + max((s.span for v in voices for s in v.sessions[0].values()), default=0)
        longest = {v.name: max(range(len(v.sessions)), key=v.length) for v in voices}
        chosen = {v.name: longest[v.name] for v in voices if v.length(longest[v.name]) >= units}
        others = [_cut_session(v, longest[v.name], start) for v in voices
                  if v.length(longest[v.name]) >= start + minimum]  # fmt: skip
    if len(others) < LEAST_PEOPLE:
        raise CorpusError(
            f"fewer than {LEAST_PEOPLE} speakers have {count * SLICE_SECONDS:g} s of speech for a "
            f"template and {least_seconds:g} s for a test: add speech, or use a shorter --template"
        )
    people = [voice for voice in voices if voice.name in chosen]
    slices: dict[str, list[AnyArray]] = {name: [] for name in specs}
    speakers = []
    for voice in people:
        index = chosen[voice.name]
        for name, spec in specs.items():
            frames = voice.sessions[index][name]
            # as in enrolment, a frame belongs to the slice in which it was complete
            ends = np.searchsorted(frames.units, np.arange(count + 1) * _SLICE_UNITS)
            slices[name] += [spec.kind.total(frames.values[a:b], spec.size)
                             for a, b in pairwise(ends)]  # fmt: skip
        speaker = Speaker(voice.name)
        if voice.sounds and (counts := voice.sounds[index]) is not None:
            speaker = replace(speaker, sound=sound_of(condition_of(counts), template_seconds))
        speakers.append(speaker)
    templates = {
        name: FeatureTemplates(spec, spec.kind.packed(np.stack(slices[name])))
        for name, spec in specs.items()
    }
    population = Population(speakers, np.arange(len(people) + 1) * count, templates)
    return EnrolledPart(population, tuple(others), session, count * SLICE_SECONDS)


def _drop_session(voice: SpeakerSpeech, index: int) -> SpeakerSpeech:
    parts = ("sessions", "speech", "session_names", "sounds")
    values = {field: getattr(voice, field) for field in parts}
    return replace(voice, **{field: v[:index] + v[index + 1 :] for field, v in values.items()})


def _cut_session(voice: SpeakerSpeech, index: int, start: int) -> SpeakerSpeech:
    """Return one session of a voice, without the units of speech before ``start``."""
    session = {}
    for name, frames in voice.sessions[index].items():
        keep = frames.units >= start
        if frames.begins is not None:
            keep &= frames.begins >= start
        early = frames.early
        if early is not None:  # keep those of windows that begin after the cut
            early = early.select(early.ticks + 1 - early.seconds * UNITS_PER_SECOND >= start)
            early = replace(early, ticks=early.ticks - start)
        session[name] = replace(
            frames,
            values=frames.values[keep],
            units=frames.units[keep] - start,
            length=frames.length - start,
            begins=None if frames.begins is None else frames.begins[keep] - start,
            early=early,
            starts={unit - start: at for unit, at in frames.starts.items() if unit >= start},
        )
    sounds = (voice.sounds[index],) if voice.sounds else ()
    return SpeakerSpeech(voice.name, (session,), (), (voice.session_name(index),), sounds)


def measure_corpus(
    enrolled: EnrolledPart,
    rank_models: RankModels,
    cohort: Cohort | None,
    lengths: Sequence[float] = LENGTHS,
    *,
    trials: int = TRIALS,
    progress: Callable[[str], object] = lambda _: None,
) -> Exposures:
    """Measure stretches of T seconds of all speakers, as in runs that watch the speaker.

    Figures are evidence if the rank models and the cohort support it, otherwise closed-set bits.
    Raises StoreError if there is no rank model of these features, and CorpusError if no speaker has
    speech for the shortest length.
    """
    if cohort is None:
        rank_models = RankModels(replace(rank_model, evidence=None) for rank_model in rank_models)
    population = enrolled.population.with_rank_models(rank_models, cohort)
    features = largest(population.rank_models, population.features)
    count = len(enrolled.remaining)
    indices = np.linspace(0, count - 1, min(count, MOST_TESTED)).round().astype(int)
    tested = [enrolled.remaining[i] for i in indices]
    exposed: list[_Stretch] = []
    kinds, reason, speakers = set[str](), "", 0
    for owner, voice in enumerate(tested):
        attacker = Attacker(
            population, features, voice.name, session=enrolled.session,
            template_seconds=enrolled.template_seconds,
        )  # fmt: skip
        reason, speakers = attacker.withheld or attacker.no_evidence_reason, attacker.speakers
        for kind, stretch in _expose(attacker, owner, voice, lengths, trials):
            kinds.add(kind)
            exposed.append(stretch)
        progress(voice.name)
    if not exposed:
        raise CorpusError(f"no speaker has {min(lengths):g} s of speech beside the template")
    if len(kinds) > 1:
        raise StoreError("only some stretches have evidence: calibrate again")
    names = [voice.name for voice in tested]
    return _make_exposures(
        names, exposed, kinds.pop(), speakers, enrolled.session, enrolled.template_seconds, reason
    )


def _expose(
    attacker: Attacker, owner: int, voice: SpeakerSpeech, lengths: Sequence[float], trials: int
) -> Iterator[tuple[str, _Stretch]]:
    """Yield kind and result of each stretch of the watched voice."""
    conditions = {
        voice.session_name(i): None if counts is None else condition_of(counts)
        for i, counts in enumerate(voice.sounds or (None,) * len(voice.sessions))
    }
    for seconds in lengths:
        try:
            cut = stretches([voice], attacker.names, attacker.features, seconds)
        except CorpusError:  # this voice has less speech
            continue
        count = len(cut.target)
        sample = np.unique(np.linspace(0, count - 1, min(trials, count)).round()).astype(int)
        running = {}
        for name, totals in cut.totals.items():
            rows = totals[sample]
            frames = np.abs(rows).sum(axis=1).round().astype(np.int64)
            running[name] = RunningTotals(rows, frames, frames.astype(np.float64))
        sounds = [conditions[cut.sessions[i]] for i in sample]
        for moment in attacker.assess_each(running, np.full(sample.size, seconds), sounds):
            bits = moment.evidence or moment.local
            assert bits is not None  # a speaker is watched
            kind = "closed-set" if moment.evidence is None else "evidence"
            best = moment.top[0][0] == voice.name
            yield kind, (owner, seconds, *bits, bool(moment.at_least), best)


def measure_runs(
    runs: Iterable[tuple[str, Sequence[Event]]], lengths: Sequence[float] = LENGTHS
) -> Exposures:
    """Measure recorded runs of watched speakers, one stretch per run and length.

    ``runs`` has names and events. A stretch ends at the run's first reading with this much speech
    of the watched speaker, excluding speech in which another voice was detected. Raises StoreError
    if a run has no watched speaker, or there are no readings.
    """
    names: list[str] = []
    exposed: list[_Stretch] = []
    kinds, sessions, candidates, depths = set(), set(), set(), set()
    for run, events in runs:
        start = find_first(events, RunStart) or RunStart.from_record({})
        if start.people:
            raise StoreError(f"{run} has several people: audit each by itself")
        watch = start.watch
        if not watch:
            raise StoreError(f"{run} has no watched speaker: measure again with --watch NAME")
        if watch not in names:
            names.append(watch)
        before = 0.0 if start.carried is None else start.carried.speech
        readings = [(speech, reading) for speech, reading in _select_readings(events) if speech]
        for seconds in lengths:
            first = next((reading for speech, reading in readings if speech >= seconds), None)
            if seconds <= before or first is None or first.bits is None:
                continue
            kinds.add(first.headline or start.headline or "closed-set")
            sessions.add(first.session or "cross")
            best, bits = bool(first.top) and first.top[0][0] == watch, first.bits
            low = bits if first.bits_low is None else first.bits_low
            high = bits if first.bits_high is None else first.bits_high
            clipped = bool(first.at_least)
            exposed.append((names.index(watch), seconds, bits, low, high, clipped, best))
        candidates.add(start.speakers or 0)
        depths.add(start.template_seconds)
    if not exposed:
        raise StoreError("no run has a reading with bits: measure more speech")
    if len(kinds) > 1:
        raise StoreError("only some runs have evidence: audit them separately")
    depth = depths.pop() if len(depths) == 1 else None
    return _make_exposures(
        names, exposed, kinds.pop(), min(candidates), "cross" if sessions == {"cross"} else "same",
        None if depth is None else float(depth),
    )  # fmt: skip


def list_other_voices(events: Iterable[Event]) -> list[Change]:
    """Return the changes to another voice or channel in a run."""
    return [event for event in events if isinstance(event, Change) and not event.back]


def _select_readings(events: Sequence[Event]) -> Iterator[tuple[float, Reading]]:
    """Select readings of the watched speaker, with their speech seconds.

    Another voice spoils readings until its detection, or all later ones if the evidence restarts.
    """
    spoilt = [
        (change.since_seconds, change.seconds if change.action == "note" else np.inf)
        for change in list_other_voices(events)
    ]
    for event in events:
        if not isinstance(event, Reading) or not event.speech:
            continue
        if not any(since < event.seconds < until for since, until in spoilt):
            yield event.speech - (event.excluded_seconds or 0.0), event
