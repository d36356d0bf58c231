"""`calibrate` fits rank models to a corpus (docs/method.md sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import combinations
from os import PathLike
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from monitor.corpus import Corpus, find
from monitor.errors import CalibrationError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup
from monitor.jobs import cores, one_thread
from monitor.kinds import FeatureSpec, comparable_features
from monitor.maths.likelihood_ratios import PriorCoefficients
from monitor.maths.posterior_fit import SingleFeatureFits
from monitor.maths.rank_models import mean_bits_of
from monitor.maths.scores import Similarity
from monitor.maths.statistics import REPLICATES, limits, speaker_weights
from monitor.phrases import format_best_feature, plural
from monitor.population.cohort import Cohort, CohortScoring
from monitor.population.evidence_model import EvidenceModel
from monitor.population.interpolation import same_session_bias
from monitor.population.population import Calibration, Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.protocols import Feature
from monitor.training.enrolling import Enrolment
from monitor.training.evidence import ROW, ComparisonChooser, FittedEvidence, fit_evidence
from monitor.training.fitted import FittedCell, fit_cell
from monitor.training.grid import Cell, GridCell, plans, singles_of
from monitor.training.prior import Prior, PriorModel, choose_worth, held_out_nats
from monitor.training.stream_maxima import with_maxima
from monitor.training.voices import SpeakerSpeech, collect, units_of
from monitor.types import BoolArray, FloatArray

LENGTHS = (0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)  # T, speech seconds
TEMPLATE_LENGTHS = (10.0, 30.0, 60.0, 120.0, 300.0)  # D, speech seconds
FEWEST_SPEAKERS = 10
TRIALS = 20  # of each speaker in a cell; fewer where the speakers are thousands
_MOST_TRIALS = 30_000
_MOST_COMPARED = 1500  # streams of a cell with other voices; each is scored by all templates
_MOST_SETS = 3  # with at most this many features, every set of features gets a rank model
_PROBES = 6  # at most, cells per kind of session that decide the weight of the prior
_MANY = 1000  # speakers; the weight of the prior is then negligible and is not chosen
_FeatureSet: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSettings:
    """Lengths, fits and background speakers of a calibration.

    Attributes:
        lengths: stream lengths T in speech seconds, multiples of 0.1.
        template_lengths: template lengths D in speech seconds, multiples of 0.1.
        similarities: similarity by feature. Other features use the default of their kind.
        sets: sets of features that get a rank model. None makes all sets if there are at most three
            features, otherwise each feature and all together.
        trained: speakers in the training data of a feature's network, by feature. Their trials do
            not count in rank models with this feature. Their templates remain candidates.
        other_voices: further speakers from another corpus, with the same features. They are
            compared only with each other, for likelihood ratios and not for ranks. The result does
            not name them.
        replicates: resamples of speakers, for intervals.
        trials: trials of each speaker in each cell.
        seed: seed of resamples and permutations.
        prior: population with prior rank models. They count as at least twenty speakers, and matter
            less with more speakers of your own. None uses your voices alone, which can overstate
            disclosure greatly if they are few.
        cohort: background speakers for likelihood ratios, made by the same networks, and none of
            them among the voices. Only features of the cohort get likelihood ratios. None: no
            likelihood ratios.
    """

    lengths: Sequence[float] = LENGTHS
    template_lengths: Sequence[float] = TEMPLATE_LENGTHS
    similarities: Mapping[str, str] = field(default_factory=dict)
    sets: Sequence[Sequence[str]] | None = None
    trained: Mapping[str, Collection[str]] = field(default_factory=dict)
    other_voices: Sequence[SpeakerSpeech] = ()
    replicates: int = REPLICATES
    trials: int = TRIALS
    seed: int = 0
    prior: Population | Literal["shipped"] | None = "shipped"
    cohort: Cohort | Literal["shipped"] | None = "shipped"

    def __post_init__(self) -> None:
        for grid in ("lengths", "template_lengths"):
            seconds = getattr(self, grid)
            for length in seconds:
                units_of(length)
            if not seconds:
                raise UsageError("a grid needs at least one length")
            object.__setattr__(self, grid, sorted(set(seconds)))


def calibrate(
    voices: Enrolment | Corpus | Sequence[SpeakerSpeech] | str | PathLike[str],
    specs: Mapping[str, FeatureSpec] | None = None,
    settings: CalibrationSettings | None = None,
    *,
    features: Sequence[str | Feature] | None = None,
    setup: FeatureSetup = AS_ENVIRONMENT,
    alarms: Population | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Calibration:
    """Fit rank models for single features and for sets of features, on a grid of lengths.

    Args:
        voices: the result of `enrol`, a corpus, the path of a corpus, or calibration speech from
            `collect`. The corpus of an enrolment is extracted again with the same features, and the
            rank models include impostors' maxima among the enrolled.
        specs: specs of the features' frames, only for speech from `collect`.
        settings: None for the default settings.
        features: features to extract from a corpus, as in `collect`.
        setup: files and networks of a corpus's features. An enrolment keeps its own.
        alarms: enrolled people among whom to measure the maxima of other people's streams, for
            `Monitor.false_alarms` (docs/alarms.md). None uses the people of an enrolment; without
            an enrolment, there are no maxima.
        jobs: number of threads; None for one per core. The result does not depend on it.
        progress: called with the numbers of finished cells and of all cells.

    Returns:
        the rank models, for `Population.calibrated`. After an enrolment, ``population`` is the
            calibrated population.

    Raises:
        CalibrationError: there are fewer than 10 speakers outside the networks' training data, or
            they have too little speech for any cell.
    """
    settings = settings or CalibrationSettings()
    if isinstance(voices, Enrolment):
        alarms, features = alarms or voices.population, features or voices.features
        setup, voices = voices.setup, voices.corpus
    elif isinstance(voices, str | PathLike):
        voices = find(voices)
    if isinstance(voices, Corpus):
        if specs is not None:
            raise UsageError("specs belong to voices: for a corpus, use features=")
        check_speakers(len(voices.speakers))
        voices, specs, _ = collect(voices, features=features, setup=setup)
    elif specs is None or features is not None:
        raise UsageError("voices need their specs: use calibrate(voices, specs), both from collect")
    check_speakers(len(voices))
    calibration = _Calibrator(voices, specs, settings).calibrate(jobs, progress)
    if alarms is None:
        return calibration
    population = with_maxima(
        alarms.calibrated(calibration), voices, trained=settings.trained, seed=settings.seed
    )
    return replace(calibration, rank_models=population.rank_models, population=population)


class _CellFits(NamedTuple):
    rank_models: list[FittedCell | None]  # by set of features
    ratios: dict[_FeatureSet, FittedEvidence]  # from the longest templates so far with a fit


class _Calibrator:
    def __init__(
        self,
        voices: Sequence[SpeakerSpeech],
        specs: Mapping[str, FeatureSpec],
        settings: CalibrationSettings,
    ) -> None:
        similarities = settings.similarities
        if unknown := sorted(similarities.keys() - specs.keys()):
            raise UsageError(f"no similarity for {unknown[0]!r}: use {', '.join(specs)}")
        self._voices, self._specs, self._settings = voices, specs, settings
        self._scorers = {n: s.kind.similarity(similarities.get(n)) for n, s in specs.items()}
        self._sets = _sets(settings.sets, tuple(specs))
        self._testers = _testers(voices, self._sets, settings.trained)
        names = list(specs)
        self._axes = {features: [names.index(name) for name in features] for features in self._sets}
        self._additive = np.array([scorer.additive for scorer in self._scorers.values()])

        everybody = [*voices, *settings.other_voices]
        self._corpora = np.repeat([0, 1], [len(voices), len(settings.other_voices)])
        self._weights, self._all_weights = (
            speaker_weights(len(people), settings.replicates, settings.seed)
            for people in (voices, everybody)
        )
        grid = settings.lengths, settings.template_lengths
        shifts = int(np.clip(_MOST_TRIALS // len(voices), 1, settings.trials))
        self._cells = self._wide_cells = list(plans(voices, *grid, shifts))
        if settings.other_voices:
            shifts = int(np.clip(_MOST_COMPARED // len(everybody), 1, shifts))
            self._wide_cells = list(plans(everybody, *grid, shifts))

        prior, cohort = settings.prior, settings.cohort
        prior = Population.reference() if prior == "shipped" else prior
        cohort = Population.reference().cohort if cohort == "shipped" else cohort
        self._backgrounds = _backgrounds(cohort, specs, self._scorers)
        self._cohort = None if cohort is None else cohort.only(self._backgrounds)
        self._prior = None
        if prior is not None:
            self._prior = Prior(prior, specs, self._scorers, settings.replicates, self._cohort)

    def calibrate(self, jobs: int | None, progress: Callable[[int, int], None]) -> Calibration:
        fits: dict[tuple[_FeatureSet, str], dict[tuple[int, int], FittedCell]] = {}
        sources: dict[tuple[_FeatureSet, str], set[int]] = {}
        for done, (cell, cell_fits) in enumerate(self._fit_all(jobs), 1):
            for features, fit in zip(self._sets, cell_fits.rank_models, strict=False):
                if fit is not None:
                    key = features, cell.session
                    fits.setdefault(key, {})[cell.length, cell.template_length] = fit
                    people = [*cell.plan.candidates.tolist(), *cell.plan.strays.tolist()]
                    sources.setdefault(key, set()).update(people)
            progress(done, len(self._cells))
        if not fits:
            lengths, templates = self._settings.lengths, self._settings.template_lengths
            raise CalibrationError(
                f"fewer than {FEWEST_SPEAKERS} speakers have speech for a test of {lengths[0]:g} "
                f"s and a template of {templates[0]:g} s: add speech or ask for shorter lengths"
            )
        common = max(fit.candidates for cells in fits.values() for fit in cells.values())
        models = [self._assemble(*key, fits[key], common, sorted(sources[key])) for key in fits]
        rows = tuple(row for model in models for row in model.rows)
        for features in self._sets:
            if self._prior is not None and (features, "cross") not in fits:
                stand_in = self._prior.find(features, "cross")
                if stand_in is not None:
                    models.append(replace(stand_in, origin="shipped"))
        several_sessions = sum(len(voice.sessions) > 1 for voice in self._voices)
        return Calibration(RankModels(models), rows, several_sessions, self._cohort)

    def _fit_all(self, jobs: int | None) -> Iterator[tuple[GridCell, _CellFits]]:
        """Fit the cells in threads, since numpy releases the interpreter's lock; keep the order."""
        with one_thread(), ThreadPoolExecutor(jobs or cores()) as pool, ExitStack() as stack:
            worths = self._choose_worths(pool)
            latest: dict[tuple[str, int], Future[_CellFits]] = {}
            futures = list[Future[_CellFits]]()
            for cell, wide in zip(self._cells, self._wide_cells, strict=True):  # shorter D first
                key = cell.session, cell.length
                futures.append(pool.submit(self._fit, cell, wide, worths, latest.get(key)))
                if _is_fitted(cell):
                    latest[key] = futures[-1]
            stack.callback(pool.shutdown, cancel_futures=True)
            for cell, future in zip(self._cells, futures, strict=True):
                yield cell, future.result()

    def _lengths_of(self, cell: GridCell) -> tuple[float, float]:
        settings = self._settings
        return settings.lengths[cell.length], settings.template_lengths[cell.template_length]

    def _score(self, cell: GridCell) -> Cell:
        units = map(units_of, self._lengths_of(cell))
        return cell.plan.run(self._scorers, *units, cohort=self._backgrounds)

    def _prior_at(
        self, features: _FeatureSet, cell: GridCell, candidates: int
    ) -> PriorModel | None:
        if self._prior is None:
            return None
        return self._prior.select_cell(features, cell.session, *self._lengths_of(cell), candidates)

    def _choose_worths(self, pool: ThreadPoolExecutor) -> dict[tuple[_FeatureSet, str], float]:
        worths = {}
        for session in ("same", "cross"):
            cells = [cell for cell in self._cells if cell.session == session and _is_fitted(cell)]
            probes = list(pool.map(self._probe, cells[:: max(1, -(-len(cells) // _PROBES))]))
            for features, losses in zip(self._sets, zip(*probes, strict=True), strict=False):
                worths[features, session] = choose_worth(losses)
        return worths

    def _probe(self, cell: GridCell) -> list[Mapping[int, FloatArray]]:
        """Compute the losses of left-out speakers for each set of features (`held_out_nats`)."""
        if self._prior is None or len(self._voices) >= _MANY:
            return [{} for _ in self._sets]
        scored = self._score(cell)
        tests = cache(partial(_select_tests, scored))
        losses: list[Mapping[int, FloatArray]] = []
        for features in self._sets:
            prior = self._prior_at(features, cell, scored.candidates)
            tested, singles = tests(self._testers[features].tobytes())
            if prior is None or np.unique(tested.gap_speaker).size < FEWEST_SPEAKERS:
                losses.append({})
            else:
                losses.append(held_out_nats(tested, self._axes[features], prior, singles=singles))
        return losses

    def _fit(
        self,
        cell: GridCell,
        wide: GridCell,
        worths: Mapping[tuple[_FeatureSet, str], float],
        shorter: Future[_CellFits] | None,
    ) -> _CellFits:
        """Fit a cell; ``shorter`` is the fit of the same T with the next shorter templates."""
        if not _is_fitted(cell):
            return _CellFits([], {})
        scored = self._score(cell)
        comparisons = scored.compared if wide is cell else self._score(wide).compared
        chooser = None if comparisons is None else ComparisonChooser(comparisons, self._corpora)
        tests = cache(partial(_select_tests, scored))
        fits = _CellFits([], {} if shorter is None else dict(shorter.result().ratios))
        for features in self._sets:
            axis = self._axes[features]
            prior = self._prior_at(features, cell, scored.candidates)
            if prior is not None:
                prior = replace(prior, worth=worths[features, cell.session])
            tested, singles = tests(self._testers[features].tobytes())
            fit = None
            if np.unique(tested.gap_speaker).size >= FEWEST_SPEAKERS:
                fit = fit_cell(
                    tested, axis, self._weights, self._additive[axis], self._settings.seed, prior,
                    singles,
                )  # fmt: skip
            if fit is not None:
                ratios = None
                if chooser is not None and self._backgrounds.keys() >= set(features):
                    ratios = self._fit_ratios(chooser, features, prior, fits.ratios.get(features))
                if ratios is not None:
                    fits.ratios[features] = ratios
                columns = dict.fromkeys(ROW) if ratios is None else ratios.row
                fit = replace(fit, evidence=ratios, row=fit.row | columns)
            fits.rank_models.append(fit)
        return fits

    def _fit_ratios(
        self,
        chooser: ComparisonChooser,
        features: _FeatureSet,
        prior_model: PriorModel | None,
        shorter: FittedEvidence | None,
    ) -> FittedEvidence | None:
        """Fit likelihood ratios of one cell; None where too few people have every feature."""
        others = np.ones(len(self._settings.other_voices), np.bool_)
        voices = np.append(self._testers[features], others)
        comparisons = chooser.choose(self._axes[features], voices)
        if comparisons is None or (
            np.unique(comparisons.streams[comparisons.own_column >= 0]).size < FEWEST_SPEAKERS
        ):
            return None
        prior = None
        if prior_model is not None and prior_model.evidence is not None:
            prior = PriorCoefficients(prior_model.evidence, prior_model.worth)
        elif shorter is not None:
            # shrink slopes towards those of shorter templates, which more people have
            prior = PriorCoefficients(shorter.coefficients, 0.0)
        return fit_evidence(comparisons, self._all_weights, prior)

    def _assemble(
        self,
        features: _FeatureSet,
        session: str,
        fits: Mapping[tuple[int, int], FittedCell],
        common: int,
        sources: Sequence[int],
    ) -> RankModel:
        """Put fitted cells on the grid; table rows also give bits among ``common`` candidates."""
        ts, ds = (sorted(set(places)) for places in zip(*fits, strict=True))
        lengths = np.asarray([self._settings.lengths[t] for t in ts])
        template_lengths = np.asarray([self._settings.template_lengths[d] for d in ds])

        def arrange(pick: Callable[[FittedCell], FloatArray | float], *shape: int) -> FloatArray:
            """Return a figure, shape (1 + B, nT, nD, ...); NaN where there is no fit."""
            figures = np.full((1 + self._settings.replicates, len(ts), len(ds), *shape), np.nan)
            for (t, d), fit in fits.items():
                figures[:, ts.index(t), ds.index(d)] = pick(fit)
            return figures

        def arrange_ratios(name: str, *shape: int) -> FloatArray:
            return arrange(
                lambda fit: np.nan if fit.evidence is None else getattr(fit.evidence, name), *shape
            )

        evidence = None
        if self._cohort is not None and any(fit.evidence for fit in fits.values()):
            coefficients = arrange_ratios("coefficients", 1 + len(features))
            evidence = EvidenceModel(
                lengths, template_lengths, coefficients[..., 0], coefficients[..., 1:],
                arrange_ratios("support")[0], arrange_ratios("area")[0],
                tuple(self._cohort.compute_digest(name) for name in features),
            )  # fmt: skip
        testers = zip(self._voices, self._testers[features], strict=True)
        networks = tuple(self._specs[name].network for name in features)
        return RankModel(
            features,
            session,
            tuple(self._scorers[name].name for name in features),
            lengths,
            template_lengths,
            arrange(lambda fit: fit.alpha),
            arrange(lambda fit: fit.beta),
            arrange(lambda fit: fit.binomial.astype(float)) == 1.0,
            _weights_from_first_frame(arrange(lambda fit: fit.weights, len(features))),
            arrange(lambda fit: fit.floor),
            arrange(lambda fit: fit.open_set[None], 1 + len(features))[0],
            self._table_rows(features, session, fits, common),
            max(fit.speakers for fit in fits.values()),
            max(fit.candidates for fit in fits.values()),
            next(iter(fits.values())).prior_speakers,
            evidence=evidence,
            left_out=tuple(voice.name for voice, counts in testers if not counts),
            networks=networks if any(networks) else (),
            learnt_from=tuple(self._voices[i].name for i in sources),
        )

    def _table_rows(
        self,
        features: _FeatureSet,
        session: str,
        fits: Mapping[tuple[int, int], FittedCell],
        common: int,
    ) -> tuple[Mapping[str, object], ...]:
        rows = []
        for (t, d), fit in sorted(fits.items(), key=lambda item: (item[0][1], item[0][0])):
            bits = mean_bits_of(fit.alpha, fit.beta, fit.binomial, common)
            low, high = limits(bits[1:])
            rows.append(
                {
                    "feature": "+".join(features),
                    "session": session,
                    "T": self._settings.lengths[t],
                    "D": self._settings.template_lengths[d],
                    **fit.row,
                    "common_candidates": common,
                    "common_bits": float(bits[0]),
                    "common_bits_low": low,
                    "common_bits_high": high,
                }
            )
        return tuple(rows)


def _sets(sets: Sequence[Sequence[str]] | None, names: tuple[str, ...]) -> list[_FeatureSet]:
    """Return the sets of features that get a rank model, each in the order of ``names``."""
    if sets is None:
        sizes = range(1, len(names) + 1) if len(names) <= _MOST_SETS else (1, len(names))
        return [features for size in sizes for features in combinations(names, size)]
    if unknown := sorted(set().union(*sets) - set(names)):
        raise UsageError(f"no rank model of {unknown[0]!r}: use {', '.join(names)}")
    return list(dict.fromkeys(tuple(n for n in names if n in features) for features in sets))


def _testers(
    voices: Sequence[SpeakerSpeech],
    sets: Sequence[_FeatureSet],
    trained: Mapping[str, Collection[str]],
) -> dict[_FeatureSet, BoolArray]:
    """Return a mask of the voices with tests that count, shape (voices,), by set of features."""
    testers = {}
    for features in sets:
        trainers = {name for feature in features for name in trained.get(feature, ())}
        testers[features] = np.array([voice.name not in trainers for voice in voices])
        if (remaining := int(testers[features].sum())) < FEWEST_SPEAKERS:
            raise CalibrationError(
                f"only {remaining} of {len(voices)} speakers are not in the training data of "
                f"{'+'.join(features)}; at least {FEWEST_SPEAKERS} are needed to fit a rank model"
            )
    return testers


def _select_tests(cell: Cell, voices: bytes) -> tuple[Cell, SingleFeatureFits]:
    """Select the tests of ``voices``, a mask as bytes, and fit each feature alone."""
    tested = cell.tested_on(np.frombuffer(voices, np.bool_))
    return tested, singles_of(tested)


def _backgrounds(
    cohort: Cohort | None, specs: Mapping[str, FeatureSpec], scorers: Mapping[str, Similarity]
) -> dict[str, CohortScoring]:
    """Prepare the cohort's scores, by feature, if the voices' features are comparable."""
    if cohort is None:
        return {}
    shared = comparable_features(specs, cohort.specs)
    scorings = {n: CohortScoring(cohort, n, scorers[n]) for n in specs if n in shared}
    return {name: scoring for name, scoring in scorings.items() if len(scoring) >= FEWEST_SPEAKERS}


def _is_fitted(cell: GridCell) -> bool:
    return cell.plan.mated.size >= FEWEST_SPEAKERS


def _weights_from_first_frame(weights: FloatArray) -> FloatArray:
    """Fill lambda, shape (1 + B, nT, nD, F), where it is NaN, from the next longer T."""
    # a cell with a fit gets 0 if all longer T lack the weight
    reached = ~np.isnan(weights).all(axis=-1, keepdims=True)
    for t in range(weights.shape[1] - 2, -1, -1):
        missing = np.isnan(weights[:, t])
        weights[:, t][missing] = weights[:, t + 1][missing]
    return np.asarray(np.where(reached & np.isnan(weights), 0.0, weights))


def check_speakers(count: int) -> None:
    """Raise CalibrationError for too few speakers, before extraction."""
    if count < FEWEST_SPEAKERS:
        raise CalibrationError(
            f"too few speakers ({count}) to fit a rank model, which needs at least "
            f"{FEWEST_SPEAKERS}. Enrol more, or enrol these beside the shipped readers (monitor "
            "enrol --speaker NAME --base reference)."
        )


_COMFORTABLE = 30  # speakers who outweigh a prior worth twenty


def advice(calibration: Calibration, specs: Mapping[str, FeatureSpec]) -> list[str]:
    """Return one line for each limitation of the rank models."""

    def joined(rank_models: Iterable[RankModel]) -> str:
        return ", ".join(dict.fromkeys("+".join(model.features) for model in rank_models))

    learnt = [model for model in calibration.rank_models if model.origin == "own"]
    lines = []
    for session in dict.fromkeys(model.session for model in learnt):
        batch = [model for model in learnt if model.session == session and model.prior_speakers]
        if not batch:
            continue
        ends = (f"{100 * end(model.prior_share for model in batch):.0f}" for end in (min, max))
        taught = plural(max(model.speakers for model in batch), "speaker")
        shares = " to ".join(dict.fromkeys(ends))
        lines.append(
            f"The shipped readers' rank model is the prior, with a weight of {shares} % in each "
            f"{session}-session rank model beside {taught}. More speakers lower it."
        )
    if without_prior := [model for model in learnt if not model.prior_speakers]:
        lines.append(
            f"no prior for {joined(without_prior)}: these rank models use your speakers alone. "
            "With few speakers they can claim far too much."
        )
    for out in dict.fromkeys(model.left_out for model in learnt if model.left_out):
        same_trainers = [model for model in learnt if model.left_out == out]
        maximum = max(model.speakers for model in same_trainers)
        lines.append(
            f"{joined(same_trainers)}: the {len(out)} speakers who trained its network have no "
            f"tests. Its rank model is fitted to {plural(maximum, 'speaker')}."
        )
    if silent := [model for model in learnt if model.evidence is None]:
        lines.append(
            f"no likelihood ratios of {joined(silent)}. The cohort lacks the feature, or fewer "
            f"than {FEWEST_SPEAKERS} people have it. Name another cohort with --cohort."
        )
    crossed = {model.features for model in calibration.rank_models if model.session == "cross"}
    stand_in = any(model.origin == "shipped" for model in calibration.rank_models)
    if stand_in or any(model.features not in crossed for model in learnt):
        which = "shipped readers'" if stand_in else "same-session rank model"
        lines.append(
            f"speakers with two sessions or more: {calibration.several_sessions}. A cross-session "
            f"rank model needs {FEWEST_SPEAKERS}, better {_COMFORTABLE}. Until then the {which} "
            "is used."
        )
    lines += weaker_joints(calibration)
    largest = max(learnt, key=lambda model: len(model.features))
    bias = same_session_bias(
        {name: specs[name] for name in largest.features},
        largest.candidates,
        float(largest.template_lengths[-1]),
    )
    lines.append(
        f"same-session figures are too high for an attacker with templates from another day, {bias}"
    )
    return lines


def weaker_joints(calibration: Calibration) -> list[str]:
    """Describe, per kind of session, the largest loss of joint features against the best one."""
    largest: dict[str, tuple[float, str]] = {}
    cells: dict[tuple[str, float, float], dict[str, float]] = {}
    for row in calibration.rows:
        cells.setdefault((row["session"], row["T"], row["D"]), {})[row["feature"]] = float(
            row["common_bits"]
        )
    for (session, test, template), bits in cells.items():
        for name, together in bits.items():
            parts = name.split("+")
            single_bits = {
                feature: bits[feature] for feature in parts if feature in bits and len(parts) > 1
            }
            if sentence := format_best_feature(together, single_bits, name):
                loss = max(single_bits.values()) - together
                description = f"{sentence} ({session} session, T={test:g} D={template:g}"
                before = largest.get(session, (0.0, ""))
                largest[session] = max(before, (loss, description))
    return [f"{description}, where that is largest)" for _, description in largest.values()]
