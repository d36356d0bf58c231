"""Maxima of streams with another person watched, for the rate of false alarms.

They are stored in the rank models (docs/method.md section 11).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from monitor.errors import StoreError
from monitor.jobs import each_in_order, one_thread
from monitor.population.population import Population
from monitor.population.rank_model import HORIZONS, Maxima, RankModel, RankModels, round_up
from monitor.stream.accumulator import FrameAccumulator
from monitor.stream.attacker import Attacker
from monitor.stream.totals import RunningTotals
from monitor.training.voices import UNIT_TICKS, SpeakerSpeech
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, Frames, IntArray, Track


def stream_of(voice: SpeakerSpeech, features: Iterable[str], most_seconds: float) -> Frames:
    """Join a speaker's sessions, longest first; without speech decisions there are no pauses."""
    order = sorted(range(len(voice.sessions)), key=lambda s: (-voice.length(s), s))
    maximum = round(most_seconds * TICKS_PER_SECOND)
    decisions = [
        voice.speech[s] if voice.speech else np.ones(voice.length(s) * UNIT_TICKS, np.bool_)
        for s in order
    ]
    starts = np.cumsum([0] + [decision.size for decision in decisions])
    tracks = {}
    for name in features:
        sessions = [voice.sessions[session][name] for session in order]
        placed = np.concatenate(
            [
                _place(frames.units, speech) + start
                for frames, speech, start in zip(sessions, decisions, starts, strict=False)
            ]
        )
        values = np.concatenate([frames.values for frames in sessions])
        early = sessions[0].early
        if early is not None:  # later sessions follow whole frames
            at = _place(early.ticks, decisions[0])
            early = replace(early, ticks=at).select(at <= maximum)
        tracks[name] = Track(placed[placed <= maximum], values[placed <= maximum], early=early)
    return Frames(np.concatenate(decisions)[:maximum], tracks)


def _place(units: IntArray, speech: BoolArray) -> IntArray:
    """Return the ticks at which these tenths of a second of speech were complete."""
    spoken = (units.astype(np.int64) + 1) * UNIT_TICKS
    return np.asarray(np.searchsorted(np.cumsum(speech), spoken) + 1)


FIELDS = ("closed_set_bits", "gain_bits", "sum_bits", "rank_bits", "evidence_bits")
"""Fields of a reading; ``rank_bits`` only for a rank model of one feature."""
MOST_STREAMS = 100  # enough for one false alarm in a hundred streams
FEWEST_TEMPLATES = 3  # two are left to choose from when the speaker's own is taken out


class _Stream(NamedTuple):
    """One speaker's stream with another person watched, at most as long as the longest horizon."""

    speaker: str
    watch: str
    frames: Frames

    @property
    def seconds(self) -> float:
        return self.frames.speech.size / TICKS_PER_SECOND


def with_maxima(
    population: Population,
    voices: Sequence[SpeakerSpeech],
    *,
    trained: Mapping[str, Collection[str]] | None = None,
    horizons: Sequence[float] = HORIZONS,
    is_measured: Callable[[RankModel], bool] = lambda _: True,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Population:
    """Add the maxima of other people's streams to the rank models.

    Each calibration speaker, up to `MOST_STREAMS`, provides one stream with one reading per second.
    The watched person is drawn from the others. The speaker's own template is not a candidate.
    Speakers who ``trained`` a feature's network do not count for rank models with this feature.
    """
    generator = np.random.default_rng(seed)
    members = population.scoring().members
    names = [name for name, has in zip(population.names, members, strict=True) if has]
    if len(names) < FEWEST_TEMPLATES:
        return population
    order = sorted(generator.permutation(len(voices))[:MOST_STREAMS].tolist())
    streams = []
    for voice in (voices[i] for i in order):
        others = [name for name in names if name != voice.name]
        features = [name for name in population.features if name in voice.sessions[0]]
        watch = others[int(generator.integers(len(others)))]
        streams.append(_Stream(voice.name, watch, stream_of(voice, features, max(horizons))))
    _ = population.cohort  # read it once, not in every process
    light = population.with_rank_models(RankModels(map(_lighten, population.rank_models)))
    indices = [i for i, rank_model in enumerate(population.rank_models) if is_measured(rank_model)]
    work = partial(_compute_stream_maxima, light, indices, tuple(horizons), trained or {})
    maxima_by_stream: list[dict[int, FloatArray]] = []
    with closing(each_in_order(work, streams, jobs)) as results:
        for stream_maxima in results:
            maxima_by_stream.append(stream_maxima)
            progress(len(maxima_by_stream), len(streams))
    template_seconds = population.scoring().seconds
    rank_models = []
    for i, rank_model in enumerate(population.rank_models):
        measured = [
            (stream_maxima[i], stream)
            for stream_maxima, stream in zip(maxima_by_stream, streams, strict=True)
            if i in stream_maxima
        ]
        if measured:
            values = np.stack([stream_maxima for stream_maxima, _ in measured], axis=1)
            fields = np.flatnonzero((~np.isnan(values)).any(axis=(1, 2)))
            maxima = Maxima(
                tuple(FIELDS[f] for f in fields),
                np.array(horizons, dtype=np.float64),
                round_up(values[fields]),
                np.array([stream.seconds for _, stream in measured]),
                tuple(stream.speaker for _, stream in measured),
                template_seconds,
            )
            rank_model = replace(rank_model, maxima=maxima)
        rank_models.append(rank_model)
    return population.with_rank_models(RankModels(rank_models))


def _lighten(rank_model: RankModel) -> RankModel:
    """Keep one resample, because confidence intervals are slow and not needed here."""
    names = ("alpha", "beta", "binomial", "weights", "floor")
    arrays = {name: getattr(rank_model, name)[:2] for name in names}
    evidence = rank_model.evidence
    if evidence is not None:
        evidence = replace(evidence, intercept=evidence.intercept[:2], slopes=evidence.slopes[:2])
    return replace(rank_model, **arrays, evidence=evidence, rows=(), maxima=None)


def _compute_stream_maxima(
    population: Population,
    indices: Collection[int],
    horizons: tuple[float, ...],
    trained: Mapping[str, Collection[str]],
    stream: _Stream,
) -> dict[int, FloatArray]:
    """Compute the maxima of a stream by rank model: index to shape (fields, horizons)."""
    if stream.speaker in population.names:
        population = population.without(stream.speaker)
    ticks, speech, totals = _find_moments(population, stream, horizons)
    cache: dict[tuple[str, str, bytes], Any] = {}  # results that rank models share
    maxima = {}
    for i, rank_model in enumerate(population.rank_models):
        features = rank_model.features
        is_trained = any(stream.speaker in trained.get(name, ()) for name in features)
        if i not in indices or is_trained or not set(features) <= set(stream.frames.tracks):
            continue
        try:
            attacker = Attacker(population, features, stream.watch, session=rank_model.session)
        except StoreError:  # one of its features has no rank model of its own
            continue
        with one_thread():
            figures = attacker.figures(totals, speech, cache)
        rows = np.stack([figures[name] for name in FIELDS])
        maxima[i] = np.full((len(FIELDS), len(horizons)), np.nan)
        for h, horizon in enumerate(horizons):
            if horizon <= 2 * stream.seconds:  # NaN for longer horizons
                within = rows[:, ticks <= (horizon + 1e-9) * TICKS_PER_SECOND]
                maxima[i][:, h] = np.fmax.reduce(within, axis=1, initial=np.nan)
    return maxima


def _find_moments(
    population: Population, stream: _Stream, horizons: Sequence[float]
) -> tuple[IntArray, FloatArray, dict[str, RunningTotals]]:
    # the stream is repeated up to the longest horizon that is at most twice its length
    frames, ticks_heard = stream.frames, stream.frames.speech.size
    reach = max((h for h in horizons if h <= 2 * stream.seconds), default=0.0)
    accumulator = FrameAccumulator({name: population.features[name].spec for name in frames.tracks})
    accumulator.check(frames)
    accumulator.add(frames)
    if (again := round(reach * TICKS_PER_SECOND) - ticks_heard) > 0:
        tracks = {}
        for name, track in frames.tracks.items():
            first = track.ticks <= again
            tracks[name] = Track(track.ticks[first] + ticks_heard, track.values[first])
        accumulator.add(Frames(frames.speech[:again], tracks))
    ticks = np.arange(TICKS_PER_SECOND, accumulator.arrived + 1, TICKS_PER_SECOND)
    if not ticks.size:
        return ticks, np.zeros(0), {}
    moments = accumulator.moments(ticks.tolist())
    # leave out seconds that add no frames or speech
    by_feature = list(moments.totals.values())
    rows = [moments.speech, *(total.frames for total in by_feature)]
    rows += [total.early_seconds for total in by_feature if total.early_seconds is not None]
    new = np.any([np.diff(row, prepend=-1) != 0 for row in rows], axis=0)
    totals = {name: total.select(new) for name, total in moments.totals.items()}
    return ticks[new], moments.speech[new] / TICKS_PER_SECOND, totals
