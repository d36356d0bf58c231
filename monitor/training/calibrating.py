"""Learn rank models from a corpus (docs/method.md sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from monitor.corpus.recordings import Corpus
from monitor.errors import CalibrationError, StoreError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.jobs import cores, each_in_order, one_thread
from monitor.kinds import FeatureSpec, comparable_features
from monitor.maths.likelihood_ratios import PriorCoefficients
from monitor.maths.posterior_fit import SingleFeatureFits
from monitor.maths.rank_models import mean_bits_of
from monitor.maths.scores import Similarity
from monitor.maths.statistics import REPLICATES, limits, speaker_weights
from monitor.phrases import format_best_feature, plural
from monitor.population.cohort import Cohort, CohortScoring
from monitor.population.interpolation import LengthModel, at_template, same_session_bias
from monitor.population.population import Calibration, Population
from monitor.population.rank_model import (
    HORIZONS,
    EvidenceModel,
    Maxima,
    RankModel,
    RankModels,
    round_up,
)
from monitor.protocols import Feature
from monitor.stream.accumulator import FrameAccumulator
from monitor.stream.attacker import Attacker
from monitor.stream.reading import RunningTotals
from monitor.training.cells import Cell, CellComparisons, Plan, plans
from monitor.training.enrolling import Enrolment
from monitor.training.fitted import (
    ROW,
    ChosenComparisons,
    FittedCell,
    FittedEvidence,
    KnownModel,
    choose_worth,
    chosen,
    fit_cell,
    fit_evidence,
    held_out_nats,
    singles_of,
)
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, collect, units_of
from monitor.types import TICKS_PER_SECOND, BoolArray, FloatArray, Frames, IntArray, Track

_UNIT_TICKS = TICKS_PER_SECOND // UNITS_PER_SECOND


def stream_of(voice: SpeakerSpeech, features: Iterable[str], most_seconds: float) -> Frames:
    """A speaker as one stream, as the monitor would have heard it: the longest session first.

    Frames come with the tenth of a second of speech in which they were complete; a voice without
    speech decisions has no pauses.
    """
    order = sorted(range(len(voice.sessions)), key=lambda s: (-voice.length(s), s))
    most = round(most_seconds * TICKS_PER_SECOND)
    decisions = [
        voice.speech[s] if voice.speech else np.ones(voice.length(s) * _UNIT_TICKS, np.bool_)
        for s in order
    ]
    starts = np.cumsum([0] + [each.size for each in decisions])
    tracks = {}
    for name in features:
        parts = [voice.sessions[session][name] for session in order]
        ticks = []
        for part, speech, start in zip(parts, decisions, starts, strict=False):
            spoken = (part.units.astype(np.int64) + 1) * _UNIT_TICKS
            ticks.append(np.searchsorted(np.cumsum(speech), spoken) + 1 + start)
        placed = np.concatenate(ticks)
        values = np.concatenate([part.values for part in parts])
        early = parts[0].early
        if early is not None:  # later ones have whole frames before them
            spoken = (early.ticks.astype(np.int64) + 1) * _UNIT_TICKS
            at = np.searchsorted(np.cumsum(decisions[0]), spoken) + 1
            early = replace(early, ticks=at).some(at <= most)
        tracks[name] = Track(placed[placed <= most], values[placed <= most], early=early)
    return Frames(np.concatenate(decisions)[:most], tracks)


# ----------------------------------------------------------------------------- false alarm streams
# Every calibration speaker is heard as a stream that is watched as another one; the maxima of these
# streams, kept in the rank models, say how often a rule raises a false alarm.
#
# Source: docs/method.md section 11.

FIELDS = ("closed_set_bits", "gain_bits", "sum_bits", "rank_bits", "evidence_bits")
"""Of a reading; ``rank_bits`` of the one feature of a rank model of one."""
MOST_STREAMS = 100  # enough for one false alarm in a hundred streams
FEWEST_TEMPLATES = 3  # two are left to choose from when the speaker's own is taken out


class _Stream(NamedTuple):
    """One speaker's stream, no longer than the longest horizon, watched as somebody else."""

    speaker: str
    watch: str
    frames: Frames

    @property
    def seconds(self) -> float:
        """Of audio."""
        return self.frames.speech.size / TICKS_PER_SECOND


def with_maxima(
    population: Population,
    voices: Sequence[SpeakerSpeech],
    *,
    trained: Mapping[str, Collection[str]] | None = None,
    horizons: Sequence[float] = HORIZONS,
    wanted: Callable[[RankModel], bool] = lambda _: True,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Population:
    """The same population, whose rank models know how high other people's streams get.

    Each calibration speaker, or as many as `MOST_STREAMS`, is heard as one stream, at a reading a
    second, watched as somebody else who is drawn from the rest; the speaker's own template is no
    candidate: that is a stream of somebody whom the attacker does not know. Which rank model
    belongs to which kind of session does not show in it. Among fewer than three people nothing is
    worked out; of who ``trained`` a feature's network no stream counts with it.
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
    light = population.with_rank_models(RankModels(map(_light, population.rank_models)))
    places = [i for i, rank_model in enumerate(population.rank_models) if wanted(rank_model)]
    work = partial(_heard, light, places, tuple(horizons), trained or {})
    found: list[dict[int, FloatArray]] = []
    with closing(each_in_order(work, streams, jobs)) as results:
        for each in results:
            found.append(each)
            progress(len(found), len(streams))
    template_seconds = population.scoring().seconds
    rank_models = []
    for i, rank_model in enumerate(population.rank_models):
        mine = [(each[i], stream) for each, stream in zip(found, streams, strict=True) if i in each]
        if mine:
            values = np.stack([each for each, _ in mine], axis=1)
            some = np.flatnonzero((~np.isnan(values)).any(axis=(1, 2)))
            maxima = Maxima(
                tuple(FIELDS[f] for f in some),
                np.array(horizons, dtype=np.float64),
                round_up(values[some]),
                np.array([stream.seconds for _, stream in mine]),
                tuple(stream.speaker for _, stream in mine),
                template_seconds,
            )
            rank_model = replace(rank_model, maxima=maxima)
        rank_models.append(rank_model)
    return population.with_rank_models(RankModels(rank_models))


def _light(rank_model: RankModel) -> RankModel:
    """A rank model with one resample: nothing here asks for limits, which take most of the time."""
    names = ("alpha", "beta", "binomial", "weights", "floor")
    few = {name: getattr(rank_model, name)[:2] for name in names}
    evidence = rank_model.evidence
    if evidence is not None:
        evidence = replace(evidence, intercept=evidence.intercept[:2], slopes=evidence.slopes[:2])
    return replace(rank_model, **few, evidence=evidence, rows=(), maxima=None)


def _heard(
    population: Population,
    places: Collection[int],
    horizons: tuple[float, ...],
    trained: Mapping[str, Collection[str]],
    stream: _Stream,
) -> dict[int, FloatArray]:
    """By the place of a rank model, the maxima of a stream: shape (fields, horizons)."""
    if stream.speaker in population.names:
        population = population.without(stream.speaker)
    ticks, speech, heard = _moments(population, stream, horizons)
    known: dict[tuple[str, str, bytes], Any] = {}  # what the rank models share
    made = {}
    for i, rank_model in enumerate(population.rank_models):
        knows = any(stream.speaker in trained.get(name, ()) for name in rank_model.features)
        if i not in places or knows or not set(rank_model.features) <= set(stream.frames.tracks):
            continue
        try:
            attacker = Attacker(
                population, rank_model.features, stream.watch, session=rank_model.session
            )
        except StoreError:  # one of its features has no rank model of its own
            continue
        with one_thread():
            figures = attacker.figures(heard, speech, known)
        made[i] = _maxima(np.stack([figures[name] for name in FIELDS]), ticks, stream, horizons)
    return made


def _moments(
    population: Population, stream: _Stream, horizons: Sequence[float]
) -> tuple[IntArray, FloatArray, dict[str, RunningTotals]]:
    """Where something new was heard, at a reading a second: R ticks, T, and by feature.

    Of the stream, and of its beginning again up to the longest horizon within twice of it.
    """
    frames, own = stream.frames, stream.frames.speech.size
    reach = max((h for h in horizons if h <= 2 * stream.seconds), default=0.0)
    accumulator = FrameAccumulator({name: population.features[name].spec for name in frames.tracks})
    accumulator.add(frames)
    if (again := round(reach * TICKS_PER_SECOND) - own) > 0:
        tracks = {}
        for name, track in frames.tracks.items():
            first = track.ticks <= again
            tracks[name] = Track(track.ticks[first] + own, track.values[first])
        accumulator.add(Frames(frames.speech[:again], tracks))
    ticks = np.arange(TICKS_PER_SECOND, accumulator.arrived + 1, TICKS_PER_SECOND)
    if not ticks.size:
        return ticks, np.zeros(0), {}
    moments = accumulator.moments(ticks.tolist())
    # a pause says nothing new
    rows = [moments.speech, *(one.frames for one in moments.totals.values())]
    rows += [one.early_seconds for one in moments.totals.values() if one.early_seconds is not None]
    new = np.any([np.diff(row, prepend=-1) != 0 for row in rows], axis=0)
    heard = {name: one.select(new) for name, one in moments.totals.items()}
    return ticks[new], moments.speech[new] / TICKS_PER_SECOND, heard


def _maxima(
    figures: FloatArray, ticks: IntArray, stream: _Stream, horizons: Sequence[float]
) -> FloatArray:
    """Of figures (fields, R): (fields, horizons); NaN where none was, or not half of the audio."""
    made = np.full((len(FIELDS), len(horizons)), np.nan)
    for h, horizon in enumerate(horizons):
        if horizon <= 2 * stream.seconds:
            some = figures[:, ticks <= (horizon + 1e-9) * TICKS_PER_SECOND]
            made[:, h] = np.fmax.reduce(some, axis=1, initial=np.nan)
    return made


class Prior:
    """What a population's rank models say of the cells of a calibration (docs/method.md section 3).

    Args:
        population: whose rank models; the shipped one.
        replicates: resamples to give of each cell.
    """

    def __init__(
        self,
        population: Population,
        specs: Mapping[str, FeatureSpec],
        scorers: Mapping[str, Similarity],
        replicates: int,
        cohort: Cohort | None = None,
    ) -> None:
        self._cohort, self._rank_models = cohort, population.rank_models
        self._scorers, self._replicates = scorers, replicates
        self._alike = comparable_features(specs, population.specs)
        self._made: dict[tuple[tuple[str, ...], str, float], LengthModel] = {}

    def has(self, features: Sequence[str], session: str) -> bool:
        """Whether there is a rank model of these very features, scored alike."""
        rank_model = self._rank_models.find(tuple(features), session)
        mine = {name: self._scorers[name].name for name in features}
        return (
            rank_model is not None
            and self._alike.issuperset(features)
            and dict(zip(rank_model.features, rank_model.similarities, strict=True)) == mine
        )

    def at(
        self, features: tuple[str, ...], session: str, test: float, template: float, candidates: int
    ) -> KnownModel | None:
        """What it says of one cell, T and D in speech seconds; None where it has no such model."""
        rank_model = self._rank_models.find(features, session)
        if rank_model is None or not self.has(features, session):
            return None
        place = features, session, template
        if place not in self._made:
            additive = np.array([self._scorers[name].additive for name in rank_model.features])
            self._made[place] = at_template(rank_model, template, additive)
        point = self._made[place].at(test)
        resamples = rank_model.alpha.shape[0] - 1
        rows = np.append(0, 1 + np.arange(self._replicates) % resamples)
        order = [rank_model.features.index(name) for name in features]
        return KnownModel(
            point.pmf(candidates, rows, floor=False),
            point.weights[rows][:, order],
            point.floor[rows],
            evidence=self._evidence(rank_model, order, test, template),
        )

    def _evidence(
        self, rank_model: RankModel, order: Sequence[int], test: float, template: float
    ) -> FloatArray | None:
        """Its likelihood ratios at one cell, features in that order."""
        known, cohort = rank_model.evidence, self._cohort
        if known is None or cohort is None:
            return None
        marks = {n: cohort.compute_digest(n) for n in rank_model.features if n in cohort.features}
        if tuple(marks.get(name) for name in rank_model.features) != known.cohort:
            return None
        point = known.at_template(template).at(np.array([test]))
        rows = np.append(0, 1 + np.arange(self._replicates) % (known.intercept.shape[0] - 1))
        slopes = point.slopes[0][rows][:, list(order)]
        return np.column_stack([point.intercept[0, rows], slopes])


# ------------------------------------------------------------------------------------- calibrating

LENGTHS = (0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)  # T, speech seconds
TEMPLATE_LENGTHS = (10.0, 30.0, 60.0, 120.0, 300.0)  # D, speech seconds
FEWEST_SPEAKERS = 10
TRIALS = 20  # of each speaker in a cell; fewer where the speakers are thousands
_MOST_TRIALS = 30_000
_MOST_COMPARED = 1500  # streams of a cell where there are people beside: each meets all templates
_MOST_SETS = 3  # features of which every set gets a rank model; of more there would be too many
_PROBES = 6  # cells of a kind of session that say how far to trust the prior
_MANY = 1000  # speakers beside whom it hardly counts, whatever it is worth
_Place: TypeAlias = tuple[str, int, int, Plan]
_Worked: TypeAlias = tuple[list[FittedCell | None], dict[tuple[str, ...], FittedEvidence]]
"""The fits of a cell, one for each set of features, and by set the likelihood ratios of the longest
templates so far: its own, or those of shorter ones where it has none."""


def calibrate(
    voices: Enrolment | Corpus | Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec] | None = None,
    *,
    features: Sequence[str | Feature] | None = None,
    lengths: Sequence[float] = LENGTHS,
    template_lengths: Sequence[float] = TEMPLATE_LENGTHS,
    similarities: Mapping[str, str] | None = None,
    sets: Sequence[Sequence[str]] | None = None,
    trained: Mapping[str, Collection[str]] | None = None,
    beside: Sequence[SpeakerSpeech] = (),
    replicates: int = REPLICATES,
    trials: int = TRIALS,
    seed: int = 0,
    prior: Population | Literal["shipped"] | None = "shipped",
    cohort: Cohort | Literal["shipped"] | None = "shipped",
    alarms: Population | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> Calibration:
    """Fit a rank model for every feature, and for features together, on the grid of lengths.

    In a joint rank model a feature that brings nothing new at a length has no say there.

    Args:
        voices: what ``enrol`` gave: its corpus is heard again, with the same features, and the rank
            models know how high streams of others get among those enrolled. Or a corpus, which is
            heard here. Or calibration speech, from ``collect``, which says what of the corpus could
            not be used.
        specs: what the features' frames look like, from ``collect``; else None.
        features: of a corpus, names; None takes what ``collect`` does.
        lengths: T, speech seconds.
        template_lengths: D, speech seconds.
        similarities: by feature; the default of its kind where left out.
        sets: of features that get a rank model. None: of up to three features every set, of more
            each and all.
        trained: by feature, names of those on whose speech its network was trained. It knows their
            voices better than others', so no test of theirs counts in a rank model with that
            feature; their templates are candidates there like all others.
        beside: more people, of another corpus, heard with the same features. They count for
            likelihood ratios, compared with each other alone, and for no ranks; none is named.
        replicates: resamples of speakers kept with the rank model.
        trials: tests of each speaker in each cell.
        seed: of resamples and permutations.
        prior: whose rank models the fit starts from, where they are of the same features; they
            count as twenty speakers or more, so that their weight fades as own speakers grow. None:
            learn from these voices alone, which on few speakers can claim far too much.
        cohort: background speakers, none of them among the voices, for likelihood ratios of the
            features that both have, made by the same networks. None: no likelihood ratios.
        alarms: who is enrolled. The rank models then know how high the streams of other people get
            among them, which `Monitor.false_alarms` goes by: each of at most 100 of the voices is
            heard as somebody else (docs/alarms.md). None: those of an enrolment, else they do not.
        jobs: cells that are fitted at a time, each by a thread; None: one a core. The result does
            not depend on it.
        progress: called with cells done and cells in all.
        setup: from where features of a corpus are made; of an enrolment it is as it was.

    Returns:
        what `Population.calibrated` takes.

    Raises:
        CalibrationError: fewer than 10 speakers, or fewer who trained no network, or too little
            speech of theirs for any cell.
        UsageError: a length is no multiple of 0.1 s, a similarity or a feature is unknown, or
            ``specs`` and ``features`` do not go with what is given.
    """
    lengths, template_lengths = _grid(lengths), _grid(template_lengths)
    if isinstance(voices, Enrolment):
        alarms, features = alarms or voices.population, features or voices.features
        setup, voices = voices.setup, voices.corpus
    if isinstance(voices, Corpus):
        if specs is not None:
            raise UsageError("specs are those of voices: calibrate a corpus without, by features=")
        check_speakers(len(voices.speakers))
        voices, specs, _ = collect(voices, features=features, setup=setup)
    elif specs is None or features is not None:
        raise UsageError("voices come with their specs: calibrate(voices, specs), from collect")
    check_speakers(len(voices))
    chosen = dict(similarities or {})
    if strange := sorted(chosen.keys() - specs.keys()):
        raise UsageError(f"no similarity for {strange[0]!r}: calibrating {', '.join(specs)}")
    scorers = {name: spec.kind.similarity(chosen.get(name)) for name, spec in specs.items()}
    chosen_sets = _sets(sets, tuple(scorers))
    testers = _testers(voices, chosen_sets, trained or {})
    everybody = [*voices, *beside]
    corpora = np.repeat([0, 1], [len(voices), len(beside)])
    drawn = speaker_weights(len(everybody), replicates, seed)
    axes = [[list(scorers).index(name) for name in features] for features in chosen_sets]
    additive = np.array([scorer.additive for scorer in scorers.values()])
    weights = speaker_weights(len(voices), replicates, seed)
    shifts = int(np.clip(_MOST_TRIALS // len(voices), 1, trials))
    found: dict[tuple[tuple[str, ...], str], dict[tuple[int, int], FittedCell]] = {}
    heard_in: dict[tuple[tuple[str, ...], str], set[int]] = {}
    cells = list(plans(voices, lengths, template_lengths, shifts))
    wider = cells
    if beside:
        few = int(np.clip(_MOST_COMPARED // len(everybody), 1, shifts))
        wider = list(plans(everybody, lengths, template_lengths, few))
    if prior == "shipped":
        prior = Population.reference()
    if cohort == "shipped":
        cohort = Population.reference().cohort
    against = _against(cohort, specs, scorers)
    cohort = None if cohort is None else cohort.only(against)
    before = None if prior is None else Prior(prior, specs, scorers, replicates, cohort)

    def run(place: _Place) -> Cell:
        _, t, d, plan = place
        test, template = (round(x * UNITS_PER_SECOND) for x in (lengths[t], template_lengths[d]))
        return plan.run(scorers, test, template, cohort=against)

    def known(features: tuple[str, ...], place: _Place, candidates: int) -> KnownModel | None:
        session, t, d, _ = place
        if before is None:
            return None
        return before.at(features, session, lengths[t], template_lengths[d], candidates)

    def probe(place: _Place) -> list[Mapping[int, FloatArray]]:
        if before is None or len(voices) >= _MANY:
            return [{} for _ in chosen_sets]
        whole = run(place)
        tested = _Tested(whole)
        losses: list[Mapping[int, FloatArray]] = []
        for features, axis in zip(chosen_sets, axes, strict=True):
            told = known(features, place, whole.candidates)
            cell, singles = tested.on(testers[features])
            if told is None or np.unique(cell.behind_speaker).size < FEWEST_SPEAKERS:
                losses.append({})
            else:
                losses.append(held_out_nats(cell, axis, told, singles=singles))
        return losses

    def work(place: _Place, wide: _Place, shorter: Future[_Worked] | None) -> _Worked:
        """Fit a cell; ``shorter`` is the work on the next shorter templates, if there are any."""
        if not _enough(place):
            return [], {}
        whole, fits = run(place), []
        compared = run(wide).compared if beside else whole.compared
        shared: dict[bytes, ChosenComparisons | None] = {}
        tested = _Tested(whole)
        near = {} if shorter is None else dict(shorter.result()[1])
        for features, axis in zip(chosen_sets, axes, strict=True):
            told = known(features, place, whole.candidates)
            if told is not None:
                told = replace(told, worth=worths[features, place[0]])
            cell, singles = tested.on(testers[features])
            few = np.unique(cell.behind_speaker).size < FEWEST_SPEAKERS
            fit = None
            if not few:
                fit = fit_cell(cell, axis, weights, additive[axis], seed, told, singles)
            if fit is not None:
                ratios = None
                if against.keys() >= set(features) and compared is not None:
                    may = np.append(testers[features], np.ones(len(beside), np.bool_))
                    ratios = _ratios(
                        compared, axis, may, corpora, drawn, told, near.get(features), shared
                    )
                    if ratios is not None:
                        near[features] = ratios
                more = dict.fromkeys(ROW) if ratios is None else ratios.row
                fit = replace(fit, evidence=ratios, row=fit.row | more)
            fits.append(fit)
        return fits, near

    # numpy works outside the interpreter's lock, so that threads do; its products take one each
    with one_thread(), ThreadPoolExecutor(jobs or cores()) as pool, ExitStack() as stack:
        worths = {}
        for session in ("same", "cross"):
            some = [place for place in cells if place[0] == session and _enough(place)]
            probed = list(pool.map(probe, some[:: -(-len(some) // _PROBES)] if some else []))
            for features, losses in zip(chosen_sets, zip(*probed, strict=True), strict=False):
                worths[features, session] = choose_worth(losses)
        latest: dict[tuple[str, int], Future[_Worked]] = {}
        works = list[Future[_Worked]]()
        for place, wide in zip(cells, wider, strict=True):  # those of shorter templates come first
            key = place[0], place[1]
            works.append(pool.submit(work, place, wide, latest.get(key)))
            if _enough(place):
                latest[key] = works[-1]
        stack.callback(pool.shutdown, cancel_futures=True)
        for done, ((session, t, d, plan), each) in enumerate(zip(cells, works, strict=True)):
            for features, fitted in zip(chosen_sets, each.result()[0], strict=False):
                if fitted is not None:
                    found.setdefault((features, session), {})[t, d] = fitted
                    heard_in.setdefault((features, session), set()).update(
                        [*plan.candidates.tolist(), *plan.strays.tolist()]
                    )
            progress(done + 1, len(cells))
    if not found:
        raise CalibrationError(
            f"fewer than {FEWEST_SPEAKERS} speakers have a test of {lengths[0]:g} s and a template "
            f"of {template_lengths[0]:g} s of speech: add speech or ask for shorter lengths"
        )
    rank_models: list[RankModel] = []
    rows: list[Mapping[str, Any]] = []
    common = max(fit.row["candidates"] for fits in found.values() for fit in fits.values())
    for (features, session), fits in found.items():
        names = tuple(scorers[name].name for name in features)
        out = [v.name for v, may in zip(voices, testers[features], strict=True) if not may]
        marks = tuple(specs[name].network for name in features)
        rank_model = replace(
            _assemble(
                features,
                session,
                names,
                lengths,
                template_lengths,
                fits,
                replicates,
                common,
                cohort,
            ),
            left_out=tuple(out),
            networks=marks if any(marks) else (),
            learnt_from=tuple(voices[i].name for i in sorted(heard_in[features, session])),
        )
        rank_models.append(rank_model)
        rows.extend(rank_model.rows)
    if prior is not None and before is not None:
        for features in chosen_sets:
            if (features, "cross") not in found and before.has(features, "cross"):
                known_one = prior.rank_models.find(features, "cross")
                assert known_one is not None
                rank_models.append(replace(known_one, origin="shipped"))
    several = sum(len(voice.sessions) > 1 for voice in voices)
    made = Calibration(RankModels(rank_models), tuple(rows), several, cohort)
    if alarms is None:
        return made
    told = with_maxima(alarms.calibrated(made), voices, trained=trained, seed=seed)
    return replace(made, rank_models=told.rank_models)


def _sets(wanted: Sequence[Sequence[str]] | None, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The sets of features that get a rank model, each in the order of ``names``."""
    if wanted is None:
        sizes = range(1, len(names) + 1) if len(names) <= _MOST_SETS else (1, len(names))
        return [features for size in sizes for features in combinations(names, size)]
    if strange := sorted({name for each in wanted for name in each} - set(names)):
        raise UsageError(f"no rank model of {strange[0]!r}: calibrating {', '.join(names)}")
    return list(dict.fromkeys(tuple(name for name in names if name in each) for each in wanted))


def _testers(
    voices: Sequence[SpeakerSpeech],
    sets: Sequence[tuple[str, ...]],
    trained: Mapping[str, Collection[str]],
) -> dict[tuple[str, ...], BoolArray]:
    """Whose tests count, by set of features: shape (voices,) each."""
    made = {}
    for features in sets:
        trainers = {name for feature in features for name in trained.get(feature, ())}
        made[features] = np.array([voice.name not in trainers for voice in voices])
        if (left := int(made[features].sum())) < FEWEST_SPEAKERS:
            raise CalibrationError(
                f"only {left} of {len(voices)} speakers trained no network of "
                f"{'+'.join(features)}; at least {FEWEST_SPEAKERS} are needed to learn a rank model"
            )
    return made


class _Tested:
    """A cell with the tests of some voices alone, and what the features say there alone."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._made: dict[bytes, tuple[Cell, SingleFeatureFits]] = {}

    def on(self, voices: BoolArray) -> tuple[Cell, SingleFeatureFits]:
        """With the tests of these, shape (voices,); of the same voices the same."""
        if (key := voices.tobytes()) not in self._made:
            cell = self._cell.tested_on(voices)
            self._made[key] = cell, singles_of(cell)
        return self._made[key]


def _against(
    cohort: Cohort | None, specs: Mapping[str, FeatureSpec], scorers: Mapping[str, Similarity]
) -> dict[str, CohortScoring]:
    """The cohort, ready to be scored, of the features that are made as the voices' are."""
    if cohort is None:
        return {}
    both = comparable_features(specs, cohort.specs)
    made = {name: CohortScoring(cohort, name, scorers[name]) for name in specs if name in both}
    return {name: one for name, one in made.items() if len(one) >= FEWEST_SPEAKERS}


def _ratios(
    compared: CellComparisons,
    axis: Sequence[int],
    voices: BoolArray,
    corpora: IntArray,
    weights: FloatArray,
    told: KnownModel | None,
    shorter: FittedEvidence | None,
    shared: dict[bytes, ChosenComparisons | None],
) -> FittedEvidence | None:
    """Likelihood ratios of one cell; None where too few people were heard of every feature.

    Without a prior rank model the ridge draws slopes towards those of shorter templates, which more
    people have.
    """
    found = chosen(compared, axis, voices, corpora, shared)
    if found is None or np.unique(found.streams[found.own >= 0]).size < FEWEST_SPEAKERS:
        return None
    known = None
    if told is not None and told.evidence is not None:
        known = PriorCoefficients(told.evidence, told.worth)
    elif shorter is not None:
        known = PriorCoefficients(shorter.coefficients, 0.0)
    return fit_evidence(found, weights, known)


def _enough(place: _Place) -> bool:
    """Whether a cell has the speakers that a rank model needs."""
    return place[-1].mated.size >= FEWEST_SPEAKERS


def _grid(lengths: Sequence[float]) -> list[float]:
    """Lengths in order, each once."""
    for length in lengths:
        units_of(length)
    if not lengths:
        raise UsageError("a grid of lengths needs at least one")
    return sorted(set(lengths))


def _assemble(
    features: tuple[str, ...],
    session: str,
    similarities: tuple[str, ...],
    lengths: Sequence[float],
    template_lengths: Sequence[float],
    fits: Mapping[tuple[int, int], FittedCell],
    replicates: int,
    common: int,
    cohort: Cohort | None,
) -> RankModel:
    """Put fitted cells on the grid; lengths that nobody reached are dropped.

    Their rows say what the model gives among ``common`` candidates too: there, cells compare.
    """
    used_t = sorted({t for t, _ in fits})
    used_d = sorted({d for _, d in fits})
    grid = (replicates + 1, len(used_t), len(used_d))

    def arrange(pick: Callable[[FittedCell], FloatArray | float], *more: int) -> FloatArray:
        values = np.full((*grid, *more), np.nan)
        for (t, d), fitted in fits.items():
            values[:, used_t.index(t), used_d.index(d)] = pick(fitted)
        return values

    rows = []
    for (t, d), fitted in sorted(fits.items(), key=lambda item: (item[0][1], item[0][0])):
        bits = mean_bits_of(fitted.alpha, fitted.beta, fitted.binomial, common)
        low, high = limits(bits[1:])
        rows.append(
            {
                "feature": "+".join(features),
                "session": session,
                "T": lengths[t],
                "D": template_lengths[d],
                **fitted.row,
                "common_candidates": common,
                "common_bits": float(bits[0]),
                "common_bits_low": low,
                "common_bits_high": high,
            }
        )
    tests = np.asarray([lengths[t] for t in used_t])
    templates = np.asarray([template_lengths[d] for d in used_d])
    evidence = None
    if cohort is not None and any(fit.evidence for fit in fits.values()):

        def of(name: str) -> Callable[[FittedCell], FloatArray | float]:
            return lambda cell: np.nan if cell.evidence is None else getattr(cell.evidence, name)

        coefficients = arrange(of("coefficients"), 1 + len(features))
        evidence = EvidenceModel(
            tests,
            templates,
            coefficients[..., 0],
            coefficients[..., 1:],
            arrange(of("support"))[0],
            arrange(of("area"))[0],
            tuple(cohort.compute_digest(name) for name in features),
        )
    return RankModel(
        features,
        session,
        similarities,
        tests,
        templates,
        arrange(lambda cell: cell.alpha),
        arrange(lambda cell: cell.beta),
        arrange(lambda cell: cell.binomial.astype(float)) == 1.0,
        _calibrating_heard(arrange(lambda cell: cell.weights, len(features))),
        arrange(lambda cell: cell.floor),
        arrange(lambda cell: cell.open_set[None], 1 + len(features))[0],
        tuple(rows),
        max(int(row["speakers"]) for row in rows),
        max(int(row["candidates"]) for row in rows),
        float(rows[0]["prior_speakers"]),
        evidence=evidence,
    )


def _calibrating_heard(weights: FloatArray) -> FloatArray:
    """Lambda, shape (1 + B, nT, nD, F), where a feature had no frame yet: the next longer test's.

    So that it is right from the first frame on. One that no test was long enough for has no say.
    """
    reached = ~np.isnan(weights).all(axis=-1, keepdims=True)
    for t in range(weights.shape[1] - 2, -1, -1):
        missing = np.isnan(weights[:, t])
        weights[:, t][missing] = weights[:, t + 1][missing]
    return np.asarray(np.where(reached & np.isnan(weights), 0.0, weights))


def check_speakers(count: int) -> None:
    """Refuse so few speakers, before anything is heard.

    Raises:
        CalibrationError: fewer than `FEWEST_SPEAKERS`.
    """
    if count < FEWEST_SPEAKERS:
        raise CalibrationError(
            f"too few speakers ({count}) to learn a rank model; "
            f"at least {FEWEST_SPEAKERS} are needed: enrol more, or these beside the shipped "
            "readers (monitor enrol --speaker NAME --base reference)"
        )


_COMFORTABLE = 30  # speakers beside whom a prior of twenty is the smaller part


def advice(made: Calibration, specs: Mapping[str, FeatureSpec]) -> list[str]:
    """One line each: the prior's part, the want of a cross-session rank model, what favours."""

    def joined(rank_models: Iterable[RankModel]) -> str:
        return ", ".join(dict.fromkeys("+".join(each.features) for each in rank_models))

    learnt = [each for each in made.rank_models if each.origin == "own"]
    lines = []
    for session in dict.fromkeys(each.session for each in learnt):
        some = [each for each in learnt if each.session == session and each.prior_speakers]
        if not some:
            continue
        ends = (f"{100 * end(each.prior_share for each in some):.0f}" for end in (min, max))
        shares = " to ".join(dict.fromkeys(ends))
        taught = plural(max(each.speakers for each in some), "speaker")
        lines.append(
            f"the shipped readers' rank model is the prior: {shares} % of each {session}-session "
            f"rank model, beside {taught}; more of yours lower that"
        )
    if alone := [each for each in learnt if not each.prior_speakers]:
        lines.append(
            f"no prior for {joined(alone)}: these rank models rest on your "
            f"speakers alone, and on few of them they can claim far too much"
        )
    for out in dict.fromkeys(each.left_out for each in learnt if each.left_out):
        apart = [each for each in learnt if each.left_out == out]
        most = max(each.speakers for each in apart)
        lines.append(
            f"{joined(apart)}: no test of the {len(out)} who trained a network of it; "
            f"{plural(most, 'speaker')} taught its rank model"
        )
    if mute := [each for each in learnt if each.evidence is None]:
        lines.append(
            f"no likelihood ratios of {joined(mute)}: the cohort has nothing like it, or fewer "
            f"than {FEWEST_SPEAKERS} people were heard of it; give a cohort with --cohort"
        )
    crossed = {each.features for each in made.rank_models if each.session == "cross"}
    stand_in = any(each.origin == "shipped" for each in made.rank_models)
    if stand_in or any(each.features not in crossed for each in learnt):
        which = "shipped readers'" if stand_in else "same-session rank model"
        lines.append(
            f"speakers with two sessions or more: {made.several_sessions}. A cross-session "
            f"rank model needs {FEWEST_SPEAKERS}, better {_COMFORTABLE}; until then the {which} "
            "stands in"
        )
    lines += weaker_joints(made)
    largest = max(learnt, key=lambda each: len(each.features))
    told = same_session_bias(
        {name: specs[name] for name in largest.features},
        largest.candidates,
        float(largest.template_lengths[-1]),
    )
    lines.append(f"a same-session figure favours an attacker who comes another day, {told}")
    return lines


def weaker_joints(made: Calibration) -> list[str]:
    """The largest loss by which features together gave less than one of them, by session."""
    found: dict[str, tuple[float, str]] = {}
    cells: dict[tuple[str, float, float], dict[str, float]] = {}
    for row in made.rows:
        cells.setdefault((row["session"], row["T"], row["D"]), {})[row["feature"]] = float(
            row["common_bits"]
        )
    for (session, test, template), bits in cells.items():
        for name, together in bits.items():
            parts = name.split("+")
            alone = {part: bits[part] for part in parts if part in bits and len(parts) > 1}
            if told := format_best_feature(together, alone, name):
                loss = max(alone.values()) - together
                where = f"{told} ({session} session, T={test:g} D={template:g}"
                before = found.get(session, (0.0, ""))
                found[session] = max(before, (loss, where))
    return [f"{where}, where that is largest)" for _, where in found.values()]
