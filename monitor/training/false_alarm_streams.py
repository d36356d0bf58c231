"""How high the figures of a stream rise when somebody else than the watched speaker speaks.

Every calibration speaker is heard as a stream that is watched as another one; the maxima of these
streams, kept in the laws, say how often a rule raises a false alarm.

Source: docs/method.md section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from monitor.alerts.fields import figure
from monitor.errors import StoreError
from monitor.population.law import Laws, RankLaw
from monitor.population.maxima import HORIZONS, Maxima, rounded_up
from monitor.population.population import Population
from monitor.stream.monitor import Monitor
from monitor.training.streams import stream_of
from monitor.training.voices import SpeakerSpeech
from monitor.types import TICKS_PER_SECOND, FloatArray, Frames, Track
from monitor.workers import each_in_order

__all__ = ["FIELDS", "MOST_STREAMS", "with_maxima"]

FIELDS = ("closed_set_bits", "gain_bits", "sum_bits", "rank_bits", "evidence_bits")
"""Of a reading; ``rank_bits`` of the one feature of a law of one."""
MOST_STREAMS = 100
"""Speakers of whom a stream is heard: enough for one false alarm in a hundred streams."""

FEWEST_TEMPLATES = 3
"""Two are left to choose from when the speaker's own is taken out."""


@dataclass(frozen=True, slots=True)
class _Stream:
    """One speaker's stream, and whom it is watched as.

    Attributes:
        speaker: whose it is.
        watch: another one's template.
        frames: of all features, no longer than the longest horizon.
    """

    speaker: str
    watch: str
    frames: Frames


def with_maxima(
    population: Population,
    voices: Sequence[SpeakerSpeech],
    *,
    trained: Mapping[str, Collection[str]] | None = None,
    horizons: Sequence[float] = HORIZONS,
    wanted: Callable[[RankLaw], bool] = lambda _: True,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Population:
    """The same population, whose laws know how high other people's streams get.

    Each calibration speaker is heard as one stream, at a reading a second, watched as somebody else
    who is drawn from the rest; the speaker's own template is no candidate. That is a stream of
    somebody whom the attacker does not know. Which law belongs to which kind of session does not
    show in it: a stranger's stream is of no session that anybody was enrolled from.

    Args:
        population: with laws; among fewer than three people nothing is worked out.
        voices: calibration speech, from ``collect``; of more than 100 speakers as many are drawn.
        trained: by feature, who trained its network: no stream of theirs counts with it.
        horizons: audio seconds.
        wanted: which laws shall know it; the others stay as they are.
        seed: of who is watched.
        jobs: processes.
        progress: called with speakers done and in all.
    """
    generator = np.random.default_rng(seed)
    members = population.scoring().members
    names = [name for name, has in zip(population.names, members, strict=True) if has]
    if len(names) < FEWEST_TEMPLATES:
        return population
    chosen = sorted(generator.permutation(len(voices))[:MOST_STREAMS].tolist())
    streams = []
    for voice in (voices[i] for i in chosen):
        rest = [name for name in names if name != voice.name]
        kept = [name for name in population.features if name in voice.sessions[0]]
        watch = rest[int(generator.integers(len(rest)))]
        streams.append(_Stream(voice.name, watch, stream_of(voice, kept, max(horizons))))
    _ = population.cohort  # read once, not by every process
    light = population.with_laws(Laws(map(_light, population.laws)))
    places = [i for i, law in enumerate(population.laws) if wanted(law)]
    work = partial(_heard, light, places, tuple(horizons), trained or {})
    found: list[dict[int, FloatArray]] = []
    with closing(each_in_order(work, streams, jobs)) as results:
        for each in results:
            found.append(each)
            progress(len(found), len(streams))
    template_seconds = population.scoring().seconds
    laws = []
    for i, law in enumerate(population.laws):
        mine = [i in each for each in found]
        if any(mine):
            values = np.stack([each[i] for each in compress(found, mine)], axis=1)
            some = np.flatnonzero((~np.isnan(values)).any(axis=(1, 2)))
            maxima = Maxima(
                tuple(FIELDS[f] for f in some),
                np.array(horizons, dtype=np.float64),
                rounded_up(values[some]),
                np.array([_seconds(each.frames) for each in compress(streams, mine)]),
                tuple(each.speaker for each in compress(streams, mine)),
                template_seconds,
            )
            law = replace(law, maxima=maxima)
        laws.append(law)
    return population.with_laws(Laws(laws))


def _light(law: RankLaw) -> RankLaw:
    """A law with one resample: nothing here asks for limits, which take most of the time."""
    names = ("alpha", "beta", "binomial", "weights", "floor")
    few = {name: getattr(law, name)[:2] for name in names}
    evidence = law.evidence
    if evidence is not None:
        evidence = replace(evidence, intercept=evidence.intercept[:2], slopes=evidence.slopes[:2])
    return replace(law, **few, evidence=evidence, rows=(), maxima=None)


def _heard(
    population: Population,
    places: Collection[int],
    horizons: tuple[float, ...],
    trained: Mapping[str, Collection[str]],
    stream: _Stream,
) -> dict[int, FloatArray]:
    """By the place of a law, the maxima of a stream: shape (fields, horizons)."""
    if stream.speaker in population.names:
        population = population.without(stream.speaker)
    made = {}
    for i, law in enumerate(population.laws):
        knows = any(stream.speaker in trained.get(name, ()) for name in law.features)
        if i not in places or knows or not set(law.features) <= set(stream.frames.tracks):
            continue
        try:
            monitor = Monitor(population, law.features, stream.watch, session=law.session)
        except StoreError:  # one of its features has no law of its own
            continue
        made[i] = _maxima(_readings(monitor, stream.frames, horizons), law, stream, horizons)
    return made


def _readings(
    monitor: Monitor, frames: Frames, horizons: Sequence[float]
) -> Iterator[Mapping[str, Any]]:
    """Of the stream up to the longest horizon that is at most twice as long."""
    own = frames.speech.size
    reach = max((h for h in horizons if h <= 2 * _seconds(frames)), default=0.0)
    again = max(0, round(reach * TICKS_PER_SECOND) - own)
    for part in (frames, *([_part(frames, own, again)] if again else [])):
        for reading in monitor.push(part):
            yield reading.record()


def _part(frames: Frames, start: int, ticks: int) -> Frames:
    """The first ticks of it once more, after ``start`` ticks of the stream."""
    tracks = {
        name: Track(track.ticks[first] + start, track.values[first])
        for name, track in frames.tracks.items()
        if (first := track.ticks <= ticks) is not None
    }
    return Frames(frames.speech[:ticks], tracks)


def _maxima(
    readings: Iterator[Mapping[str, Any]],
    law: RankLaw,
    stream: _Stream,
    horizons: Sequence[float],
) -> FloatArray:
    """Shape (fields, horizons); NaN where there was no figure, or not half of the audio."""
    wanted = [f"{law.features[0]}.rank_bits" if name == "rank_bits" else name for name in FIELDS]
    if len(law.features) > 1:
        wanted[FIELDS.index("rank_bits")] = ""
    rows = [
        [r["seconds"], *(figure(name, r) if name else None for name in wanted)] for r in readings
    ]
    table = np.array(rows, dtype=np.float64)
    made = np.full((len(FIELDS), len(horizons)), np.nan)
    for h, horizon in enumerate(horizons):
        if horizon <= 2 * _seconds(stream.frames):
            some = table[table[:, 0] <= horizon + 1e-9, 1:]
            made[:, h] = np.fmax.reduce(some, axis=0, initial=np.nan)
    return made


def _seconds(frames: Frames) -> float:
    return frames.speech.size / TICKS_PER_SECOND
