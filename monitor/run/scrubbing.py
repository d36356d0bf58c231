"""Keeps as much of a recording as a budget of bits allows: the rest is cut, silenced or protected.

What is given away grows with the speech that is left, and with which speech that is. A recording is
divided at its pauses. Every candidate is heard as it would be published, and the strongest of
several attackers may at no second have more than the budget. Which stretches are left is searched
for: those that tell least of the speaker, by the second, come first; as many of these as the budget
allows are found by halving, and then each of the others is tried beside them. Evidence is not
additive, and grows almost always with more speech, but not always: what is found cannot be
lengthened by any one stretch that was tried, and a longer one of other stretches may exist.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from monitor.anonymisers.recording import sound_file
from monitor.errors import MonitorError, SourceError, StoreError, UsageError
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.phrases import clock_time, plural
from monitor.plots.scrubbed import ScrubCurves
from monitor.population.population import Population
from monitor.protocols import Source
from monitor.run.measuring import Measurement
from monitor.run.run import Run
from monitor.safe_text import file_name
from monitor.sources.base import Samples
from monitor.sources.file import File
from monitor.sources.provenance import protection_tag
from monitor.stream.monitor import Monitor
from monitor.stream.reading import Reading
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
    """A part of a recording from one pause to another.

    Attributes:
        start, end: seconds; each begins where the one before it ends.
        speech: seconds of speech in it.
        kept: whether it is published as it was spoken.
    """

    start: float
    end: float
    speech: float
    kept: bool = True


def stretches_of(speech: BoolArray) -> list[CutStretch]:
    """Divide a recording in the middle of its pauses.

    Stretches of less than 0.6 s of speech are joined with what follows, and those of more than
    three are divided at their longest shorter pause, or in the middle where they have none.

    Args:
        speech: shape (ticks,), decisions of the voice activity detector.

    Example:
        >>> spoken = np.repeat([True, False, True, False, True], [200, 60, 30, 40, 150])
        >>> [(each.start, each.end, each.speech) for each in stretches_of(spoken)]
        [(0.0, 2.3, 2.0), (2.3, 4.8, 1.8)]
    """
    ticks = len(speech)
    spoken = np.concatenate([[0], np.cumsum(speech)])

    def said(start: int, end: int) -> float:
        return float(spoken[end] - spoken[start]) / TICKS_PER_SECOND

    cuts = [0, *((a + b) // 2 for a, b in _pauses(speech, _PAUSE_TICKS)), ticks]
    joined = [0]
    for cut in cuts[1:-1]:
        enough = said(joined[-1], cut) >= _LEAST_SPEECH
        if enough and said(cut, ticks) >= _LEAST_SPEECH:
            joined.append(cut)
    found: list[CutStretch] = []
    for start, end in zip(joined, [*joined[1:], ticks], strict=True):
        places = _divided(speech, start, end, said)
        for a, b in pairwise(places):
            found.append(CutStretch(a / TICKS_PER_SECOND, b / TICKS_PER_SECOND, said(a, b)))
    return found


def _pauses(speech: BoolArray, least: int) -> list[tuple[int, int]]:
    """Runs of no speech within the recording, of so many ticks or more."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], speech, [True]]).astype(int)))
    runs = [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return [(a, b) for a, b in runs if a > 0 and b < len(speech) and b - a >= least]


def _divided(
    speech: BoolArray, start: int, end: int, said: Callable[[int, int], float]
) -> list[int]:
    """Where a stretch begins, is divided and ends."""
    if said(start, end) <= _MOST_SPEECH:
        return [start, end]
    inside = [
        (b - a, start + (a + b) // 2)
        for a, b in _pauses(speech[start:end], 1)
        if min(said(start, start + a), said(start + b, end)) >= _LEAST_SPEECH
    ]
    place = max(inside)[1] if inside else start + _middle(speech[start:end])
    return [*_divided(speech, start, place, said)[:-1], *_divided(speech, place, end, said)]


def _middle(speech: BoolArray) -> int:
    half = np.cumsum(speech)
    return int(np.searchsorted(half, half[-1] / 2))


# ------------------------------------------------------------------------------------------- search


def most_kept(
    speech: Sequence[float],
    order: Sequence[int],
    fits: Callable[[frozenset[int]], bool],
    tries: int,
) -> frozenset[int]:
    """Stretches with as much speech as fits; empty where not one does.

    There are several beginnings: the longest part of the order that fits, found by halving (which
    takes for granted that less of it fits, too), and the longest stretches that fit by themselves.
    Beside each the others are tried one by one, in order, and whoever ends with most speech wins.

    Args:
        speech: seconds of each stretch.
        order: the stretches, those first that are to be kept rather.
        fits: whether what is kept may be published.
        tries: how many others are tried beside each beginning, at most.

    Example:
        >>> cost = [5, 1, 1, 3]
        >>> def fits(kept):
        ...     return sum(cost[i] for i in kept) <= 5
        >>> sorted(most_kept([4.0, 2.0, 2.0, 3.0], [1, 2, 0, 3], fits, 9))
        [1, 2, 3]
    """
    if fits(frozenset(order)):
        return frozenset(order)
    low, high = 0, len(order)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(frozenset(order[:middle])) else (low, middle)
    longest = sorted(order, key=lambda i: -speech[i])
    alone = (frozenset({i}) for i in longest[:tries] if fits(frozenset({i})))
    best: frozenset[int] = frozenset()
    for kept in {frozenset(order[:low]): 0, **dict.fromkeys(islice(alone, _SINGLES), 0)}:
        for each in [i for i in order if i not in kept][:tries]:
            if fits(kept | {each}):
                kept |= {each}
        best = max(best, kept, key=lambda found: sum(speech[i] for i in found))
    return best


# ---------------------------------------------------------------------------------------- attackers

CLEAR, PROTECTED = "clear", "protected"
WHOLE, LEFT, CHANGED = "all of it", "what is left as it was", "what was changed"


@dataclass(frozen=True, slots=True)
class TriedAttacker:
    """Somebody who was tried.

    Attributes:
        hears: which part of what is published.
        templates: of clear speech, or of speech protected by the same method.
        features: that are weighed together.
    """

    hears: str
    templates: str
    features: tuple[str, ...]

    @property
    def name(self) -> str:
        """For people."""
        return f"{'+'.join(self.features)}, {self.hears}, {self.templates} templates"


@dataclass(frozen=True, slots=True)
class Heard:
    """What an attacker had, second by second.

    Attributes:
        seconds, bits: shape (k,), of the readings.
        short: whether the figure was once cut to what calibration supports, and the budget lies
            above that: then it may in truth be more.
    """

    seconds: FloatArray
    bits: FloatArray
    short: bool = False

    @property
    def peak(self) -> float:
        """The most bits at any reading; infinite where that is not known."""
        return math.inf if self.short else float(self.bits.max(initial=0.0))

    @property
    def at(self) -> float:
        """When that was."""
        return float(self.seconds[self.bits.argmax()]) if self.bits.size else 0.0


class TriedAttackers:
    """Everybody who is tried on a recording, by features and by what they have enrolled.

    Args:
        source: the recording; what is enrolled of it is refused.
        population: templates of clear speech.
        watch: who speaks.
        protected: templates of protected speech of the same people; None: nobody has them.
        budget: in bits.

    Attributes:
        monitors: of each, from which fresh ones are made.

    Raises:
        MonitorError: the populations do not fit the recording or each other.
    """

    def __init__(
        self,
        source: Source,
        population: Population,
        watch: str,
        budget: float,
        *,
        features: Sequence[str] | None = None,
        protected: Population | None = None,
        cut: bool = True,
        setup: FeatureSetup = AS_ENVIRONMENT,
    ) -> None:
        settings: dict[str, Any] = {"on_change": "note", "setup": setup}
        first = Monitor.for_source(source, population, features, watch, **settings)
        first.fit_to(source)
        if first.session == "same":
            raise UsageError(
                f"another part of {source.label} is enrolled: in what is written nobody could know "
                "that, and figures would be wrong; enrol another recording"
            )
        if not first.front_end.audio_features == first.features:
            raise UsageError("scrub changes sound alone: leave features of words out (--features)")
        self.budget, self.first = budget, first
        self.monitors: dict[TriedAttacker, Monitor] = {}
        sets = [first.features, *((name,) for name in first.features if len(first.features) > 1)]
        for templates, people in ((CLEAR, population), (PROTECTED, protected)):
            if people is None:
                continue
            if templates == PROTECTED and {s.name for s in people.speakers} != {
                s.name for s in population.speakers
            }:
                raise UsageError("the protected population holds other people than the clear one")
            for each in sets:
                try:
                    made = Monitor(people, each, watch, session="cross", **settings)
                except (StoreError, UsageError):
                    if each == first.features:
                        raise
                    continue  # no rank model of this feature alone
                if made.headline != first.headline:
                    continue
                parts = (WHOLE,) if cut else (WHOLE, LEFT)
                for part in parts if templates == CLEAR else (WHOLE, CHANGED):
                    self.monitors[TriedAttacker(part, templates, each)] = made

    def hear(self, parts: Mapping[str, tuple[FloatArray, int]]) -> dict[TriedAttacker, Heard]:
        """What each of them has of a candidate.

        Args:
            parts: by what is heard, samples of shape (n, channels) and their rate.
        """
        frames = {part: self._frames(*sound) for part, sound in parts.items() if sound[0].size}
        return {
            who: _heard(monitor.create_sibling(), frames[who.hears], self.budget)
            for who, monitor in self.monitors.items()
            if who.hears in frames
        }

    def _frames(self, samples: FloatArray, rate: int) -> Any:
        ears = self.first.create_sibling().create_block_reader()
        runs = []
        for block in Samples(samples, rate):
            runs += ears.process(block)
        return join_runs([*runs, ears.flush()])


def _heard(monitor: Monitor, frames: Any, budget: float) -> Heard:
    readings = [event for event in monitor.listen([frames]) if isinstance(event, Reading)]
    records = [reading.record() for reading in readings]
    known = [r for r in records if r["bits"] is not None]
    return Heard(
        np.array([r["seconds"] for r in known], float),
        np.array([r["bits"] for r in known], float),
        any(bool(r["at_least"]) and float(r["bits"] or 0.0) <= budget for r in known),
    )


# ---------------------------------------------------------------------------------------- scrubbing

CUT, SILENCE = "cut", "silence"
_TRIES = 24
_TOLD = 6  # stretches that are named


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What became of a recording.

    Attributes:
        how: ``"cut"``, ``"silence"``, or the method that protected.
        stretches: in order, over the whole recording.
        before: what each attacker had of the recording as it was.
        after: what each has of the file that was written.
        candidates: how many ways were heard.
        measured: the ordinary run over the file that was written.
    """

    recording: str
    watch: str
    budget: float
    how: str
    headline: str
    stretches: tuple[CutStretch, ...]
    before: Mapping[TriedAttacker, Heard]
    after: Mapping[TriedAttacker, Heard]
    candidates: int
    measured: Measurement

    @property
    def kept_seconds(self) -> float:
        """Of speech that is published as it was spoken."""
        return sum(each.speech for each in self.stretches if each.kept)

    @property
    def speech_seconds(self) -> float:
        """Of speech in the recording."""
        return sum(each.speech for each in self.stretches)

    @staticmethod
    def strongest(heard: Mapping[TriedAttacker, Heard]) -> tuple[TriedAttacker, Heard]:
        """Who had most, and what that was."""
        return max(heard.items(), key=lambda item: item[1].peak)

    @property
    def labels(self) -> str:
        """The stretches as a label track of Audacity, on the clock of the recording."""
        return "".join(
            f"{each.start:.3f}\t{each.end:.3f}\t{'kept' if each.kept else self.how}\n"
            for each in self.stretches
        )

    @property
    def change(self) -> str:
        """What was done to the rest, as a participle."""
        return {CUT: "cut", SILENCE: "silenced"}.get(self.how, f"protected by {self.how}")

    def in_words(self) -> list[str]:
        """What was done, and what it came to."""
        who, had = self.strongest(self.before)
        crossed = had.seconds[had.bits > self.budget]
        when = f", over the budget from {clock_time(crossed[0])} on" if crossed.size else ""
        kept = [each for each in self.stretches if each.kept]
        places = ", ".join(f"{clock_time(s.start)} to {clock_time(s.end)}" for s in kept[:_TOLD])
        more = f" and {len(kept) - _TOLD} more" if len(kept) > _TOLD else ""
        share = self.kept_seconds / self.speech_seconds
        return [
            f"{self.recording}: {_bits(had)} of {self.watch} ({self.headline}) to the strongest of "
            f"{plural(len(self.before), 'attacker')} ({who.name}){when}.",
            f"Kept: {plural(len(kept), 'stretch', 'stretches')} of {len(self.stretches)}, "
            f"{self.kept_seconds:.1f} of {self.speech_seconds:.1f} s of speech ({share:.0%})"
            + (f": {places}{more}." if kept else "."),
            f"The rest, {self.speech_seconds - self.kept_seconds:.1f} s, was {self.change}; "
            f"{plural(self.candidates, 'candidate was', 'candidates were')} heard.",
        ]

    def rows(self) -> list[tuple[str, ...]]:
        """Of each attacker what it had and has, the strongest of the file first."""
        found = sorted(self.after.items(), key=lambda item: -item[1].peak)
        return [
            (
                "+".join(who.features),
                who.hears,
                who.templates,
                _bits(self.before[who]) if who in self.before else "",
                f"{_bits(heard)} at {clock_time(heard.at)}",
            )
            for who, heard in found
        ]

    def notices(self, *, informed: bool) -> list[str]:
        """What a person should know beside the figures."""
        told = [
            "no stronger attacker is kept out: other networks, more enrolled speech, what is said, "
            "and people who know the voice were not tried"
        ]
        if self.how not in (CUT, SILENCE):
            told.append(
                "tried with templates of protected speech, too; an attacker who trains on such "
                "speech, or adds up what was changed and what was left, learns more"
                if informed
                else "no attacker who has enrolled protected speech was tried, and one who has "
                "learns more (--protected-population)"
            )
        if self.how != CUT and any(each.kept for each in self.stretches):
            told.append("anybody hears which stretches were left as they were")
        return told

    def curves(self) -> ScrubCurves:
        """What `monitor.plots.scrubbed` draws."""
        changed = [(each.start, each.end) for each in self.stretches if not each.kept]
        seconds, bits = _strongest_by_then(self.after, WHOLE)
        if self.how == CUT:
            kept = [each for each in self.stretches if each.kept]
            ends = np.cumsum([0.0] + [each.end - each.start for each in kept])
            place = np.clip(np.searchsorted(ends, seconds, side="left") - 1, 0, len(kept) - 1)
            shift = np.array([s.start for s in kept]) - ends[:-1]
            seconds = np.minimum(seconds, ends[-1]) + shift[place]
        who, heard = self.strongest(self.after)
        share = self.kept_seconds / self.speech_seconds
        title = (
            f"{self.recording}: {share:.0%} of the speech kept, the rest {self.change}; at most "
            f"{heard.peak:.1f} bits of {self.watch} ({who.name})"
        )
        return ScrubCurves(
            title, self.budget, _strongest_by_then(self.before, WHOLE), (seconds, bits), changed,
            self.change, self.stretches[-1].end,
        )  # fmt: skip


def _strongest_by_then(
    heard: Mapping[TriedAttacker, Heard], part: str
) -> tuple[FloatArray, FloatArray]:
    """The most bits of any attacker at each reading of a part, (k,) and (k,)."""
    some = [each for who, each in heard.items() if who.hears == part and each.bits.size]
    seconds = np.unique(np.concatenate([each.seconds for each in some]))
    bits = np.full(seconds.size, -np.inf)
    for each in some:
        at = np.searchsorted(seconds, each.seconds)
        bits[at] = np.maximum(bits[at], each.bits)
    return seconds, bits


@dataclass
class _Work:
    """One recording on its way: its sound, what stands for a stretch, and what was heard so far."""

    samples: FloatArray
    other: FloatArray | None
    rate: int
    stretches: list[CutStretch]
    attackers: TriedAttackers
    form: tuple[str, str]
    known: dict[tuple[frozenset[int], str], dict[TriedAttacker, Heard]] = field(
        default_factory=dict
    )

    def sound(self, kept: frozenset[int]) -> FloatArray:
        """What would be published, as a file gives it back, shape (n, channels)."""
        return _as_read(self.made(kept), self.rate, self.form)

    def made(self, kept: frozenset[int]) -> FloatArray:
        """What would be written."""
        gain = self._gain(kept)
        if self.other is None:
            return self.samples[gain > 0] * gain[gain > 0, None]
        return gain[:, None] * self.samples + (1 - gain[:, None]) * self.other

    def only(self, chosen: frozenset[int], of: FloatArray) -> FloatArray:
        """Some stretches alone, of one sound."""
        gain = self._gain(chosen)
        return np.asarray(of[gain > 0] * gain[gain > 0, None])

    @property
    def parts(self) -> tuple[str, ...]:
        """What attackers hear of a candidate, the quickest to hear first."""
        some = dict.fromkeys(who.hears for who in self.attackers.monitors)
        return tuple(sorted(some, key=(LEFT, WHOLE, CHANGED).index))

    def hear(self, kept: frozenset[int], part: str) -> dict[TriedAttacker, Heard]:
        """What the attackers who hear this part of a candidate have; it is heard once."""
        if (kept, part) not in self.known:
            if part == WHOLE:
                sound = self.sound(kept)
            elif part == LEFT:
                sound = self.only(kept, self.samples)
            else:
                assert self.other is not None
                rest = frozenset(range(len(self.stretches))) - kept
                sound = self.only(rest, self.other)
            self.known[kept, part] = self.attackers.hear({part: (sound, self.rate)})
        return self.known[kept, part]

    def all(self, kept: frozenset[int]) -> dict[TriedAttacker, Heard]:
        """What all attackers have."""
        return {who: heard for part in self.parts for who, heard in self.hear(kept, part).items()}

    def fits(self, kept: frozenset[int]) -> bool:
        """Whether nobody has more than the budget."""
        budget = self.attackers.budget
        return all(
            each.peak <= budget for part in self.parts for each in self.hear(kept, part).values()
        )

    def _gain(self, kept: frozenset[int]) -> FloatArray:
        """1 where the recording is as it was, 0 where it is not, with short ramps; shape (n,)."""
        gain = np.zeros(len(self.samples), np.float32)
        fade = max(1, round(_FADE_SECONDS * self.rate))
        for first, last in _runs(kept):
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


def _runs(kept: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Neighbours among them, as first and last."""
    for place in sorted(kept):
        if place - 1 not in kept:
            first = place
        if place + 1 not in kept:
            yield first, place


def scrub(
    recording: Path,
    output: Path,
    population: Population,
    watch: str,
    budget: float,
    *,
    features: Sequence[str] | None = None,
    silence: bool = False,
    anonymiser: str | None = None,
    protected: Population | None = None,
    seed: int | None = None,
    tries: int = _TRIES,
    setup: FeatureSetup = AS_ENVIRONMENT,
    progress: Callable[[str, float], None] = lambda _label, _share: None,
) -> Scrubbed:
    """Write a recording of which no attacker that was tried has more bits than the budget.

    What is claimed of the file is what an ordinary run over it (`monitor.run.Run`) says, at every
    reading, and what attackers with other features or templates have, or who leave out what was
    changed.

    Args:
        recording: a file of audio.
        output: ends in ``.wav`` or ``.flac``; private (mode 0600), whole or not at all.
        population: the enrolled, among them who speaks.
        watch: who speaks.
        budget: bits, above 0.
        features: names; None for all that can be.
        silence: leave silence in the place of what is taken out.
        anonymiser: protect stretches by this method instead of taking them out.
        protected: templates of the same people made of protected speech: an attacker who knows the
            method is then tried too.
        seed: of what the method draws; None draws anew.
        tries: stretches that are tried one by one beside those that halving has found.
        setup: from where features are made.
        progress: called with what is done, and the share of all work.

    Raises:
        MonitorError: nothing of it can be published under this budget, and why; or it cannot be
            heard, protected or written. Nothing is written then.
    """
    from monitor.anonymisers.recording import FORMATS

    form = FORMATS.get(output.suffix.lower())
    if form is None:
        raise UsageError(f"-o {file_name(output)} must end in .wav or .flac")
    if not budget > 0 or not math.isfinite(budget):
        raise UsageError(f"a budget of {budget:g} bits is none: give more than 0")
    if protected is not None and anonymiser is None:
        raise UsageError("templates of protected speech go with an anonymiser")
    source = File(recording)
    cut = anonymiser is None and not silence
    attackers = TriedAttackers(
        source, population, watch, budget, features=features, protected=protected, cut=cut,
        setup=setup,
    )  # fmt: skip
    samples = _read(source)
    spoken = _speech(samples, source.rate)
    if not spoken.any():
        raise SourceError(f"{source.label}: nobody speaks in it")
    other = None
    if silence:
        other = np.zeros_like(samples)
    elif anonymiser is not None:
        progress("anonymising", 0.0)
        other = _anonymised(anonymiser, source, watch, seed)
    subtype = source.subtype
    kept_as_is = subtype in ("PCM_16", "PCM_24") and soundfile.check_format(form, subtype)
    work = _Work(
        samples, other, source.rate, stretches_of(spoken), attackers,
        (form, subtype if kept_as_is else "PCM_16"),
    )  # fmt: skip
    progress("hearing it as it is", 0.02)
    before = {
        who: heard
        for who, heard in attackers.hear({WHOLE: (samples, source.rate)}).items()
        if who.templates == CLEAR
    }
    _check_support(attackers, before, watch)
    nothing: frozenset[int] = frozenset()
    if anonymiser is not None and not work.fits(nothing):
        who, heard = Scrubbed.strongest(work.all(nothing))
        # bits that calibration cuts may be more
        over = "all that calibration supports, so maybe over" if heard.short else "over"
        raise MonitorError(
            f"cannot be done with {_method_name(anonymiser)}: protected from end to end, "
            f"{source.label} still gives {_bits(heard)} at {clock_time(heard.at)} ({who.name}), "
            f"{over} the budget of {budget:g}; cut instead (without --anonymiser), or take another "
            "method"
        )
    progress("hearing each stretch", 0.1)
    order = _by_density(work)
    most = math.ceil(math.log2(max(len(order), 2))) + (2 + _SINGLES) * min(tries, len(order))
    done = 0

    def fits(kept: frozenset[int]) -> bool:
        nonlocal done
        done += 1
        progress("searching", min(0.95, 0.2 + 0.75 * done / most))
        return bool(kept) and work.fits(kept)

    kept = most_kept([s.speech for s in work.stretches], order, fits, tries)
    if not kept and anonymiser is None:
        least = min((_strongest(work, frozenset({i})) for i in order), key=lambda h: h.peak)
        raise MonitorError(
            f"cannot be done by {SILENCE if silence else 'cutting'}: no stretch of {source.label} "
            f"stays under {budget:g} bits even alone (the least gives {_bits(least)}); allow more, "
            "or protect it (--anonymiser)"
        )
    stretches = tuple(replace(s, kept=i in kept) for i, s in enumerate(work.stretches))
    progress("checking the file", 0.97)
    how = _method_name(anonymiser) if anonymiser else SILENCE if silence else CUT
    after = work.all(kept)
    published = Samples(work.sound(kept), source.rate, output.name)
    measured = _ordinary(published, population, watch, attackers.first, setup)
    peak = max((r["bits"] or 0.0 for r in measured.records if r["type"] == "reading"), default=0.0)
    if peak > budget:
        raise MonitorError(f"an ordinary run over the file finds {peak:.2f} bits; please report it")
    samples = work.made(kept)
    tag = protection_tag("scrubbed", f"{budget:g} bits, {how}")
    with sound_file(output, source.rate, samples.shape[1], *work.form, tag) as write:
        write(samples)
    return Scrubbed(
        source.label, watch, budget, how, attackers.first.headline, stretches, before, after,
        len({each for each, _ in work.known}), measured,
    )  # fmt: skip


def _strongest(work: _Work, kept: frozenset[int]) -> Heard:
    return max(work.hear(kept, work.parts[0]).values(), key=lambda heard: heard.peak)


def _bits(heard: Heard) -> str:
    return f"{'at least ' if heard.short else ''}{heard.bits.max(initial=0.0):.1f} bits"


def _check_support(
    attackers: TriedAttackers, before: Mapping[TriedAttacker, Heard], watch: str
) -> None:
    budget = attackers.budget
    if not any(len(each.bits) for each in before.values()):
        raise UsageError(f"no figure of {watch} can be given of this recording; see monitor replay")
    support = attackers.first.attacker.support_bits
    if attackers.first.headline == "evidence" and support is not None and budget >= support:
        raise UsageError(
            f"a budget of {budget:g} bits cannot be checked: this population's calibration "
            f"supports no more than {support:.1f}; give less"
        )
    ceiling = math.log2(len(attackers.first.population.speakers))
    if attackers.first.headline != "evidence" and budget >= ceiling:
        raise UsageError(
            f"a budget of {budget:g} bits cannot be exceeded: without a rank model of evidence the "
            f"figure ends at log2 N, {ceiling:.1f} bits; calibrate with a cohort, or give less"
        )


def _by_density(work: _Work) -> list[int]:
    """Stretches by how much each tells by itself for each second of speech, the least first."""

    def density(place: int) -> float:
        heard = work.hear(frozenset({place}), work.parts[0])
        last = max((float(each.bits[-1]) for each in heard.values() if each.bits.size), default=0.0)
        return last / max(work.stretches[place].speech, 0.1)

    return sorted(range(len(work.stretches)), key=density)


def _read(source: File) -> FloatArray:
    parts = []
    for block in source.blocks():
        samples = np.asarray(block.samples, np.float32)
        parts.append(samples.reshape(len(samples), -1))
    if not parts:
        raise SourceError(f"{source.label}: no sound is in it")
    return np.concatenate(parts)


def _speech(samples: FloatArray, rate: int) -> BoolArray:
    extractor = Extractor([])
    runs = [extractor.process(block) for block in Samples(samples, rate)]
    return join_runs([*runs, extractor.flush()]).speech


def _anonymised(method: str, source: File, watch: str, seed: int | None) -> FloatArray:
    from monitor.anonymisers.blocks import ProtectedBlocks

    protect = ProtectedBlocks(method, (source.label,), speaker=watch, seed=seed)
    return np.concatenate([np.asarray(block.samples) for block in protect(source)])


def _method_name(method: str) -> str:
    return "an anonymiser command" if method.startswith("command:") else method


def _as_read(samples: FloatArray, rate: int, form: tuple[str, str]) -> FloatArray:
    """What comes back of samples that were written."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form[0], subtype=form[1])
    file.seek(0)
    found, _ = soundfile.read(file, dtype="float32", always_2d=True)
    return np.asarray(found)


def _ordinary(
    published: Samples, population: Population, watch: str, like: Monitor, setup: FeatureSetup
) -> Measurement:
    """What is to be written, as `monitor replay` hears it."""

    def made(source: Source) -> Monitor:
        return Monitor.for_source(
            source, population, like.features, watch, on_change="note", setup=setup
        )

    with Run(published, made) as run:
        return Measurement.of([event.record() for event in run], run.notices)
