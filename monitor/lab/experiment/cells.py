"""One cell of an experiment: the scores at one length of test and template, and their figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NotRequired, TypedDict

import numpy as np

from monitor.files import finite
from monitor.jobs import each_in_order
from monitor.lab.durations import measure_evaluation
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.resampling import leaving_out, resamples
from monitor.lab.evaluation.srd import loss_fits
from monitor.lab.experiment.material import ExperimentSettings, Material, Panel, exclude_speakers
from monitor.lab.report.renderers import figure_json
from monitor.lab.result_cache import ResultCache, result_key
from monitor.maths import posterior_fit as logit
from monitor.maths.posterior import weighted_evidence
from monitor.maths.posterior_fit import smallest_floor
from monitor.maths.rank_models import LOSSES, fit
from monitor.maths.ranks import rank_histogram, rank_statistics, score_gaps
from monitor.maths.statistics import Estimate
from monitor.types import BoolArray, FloatArray, Record

# The weights are those of the conditional logit (docs/method.md section 5). Each cell fits them by
# cross-validation, so that no speaker's tests determine the weights of their own scores.
FEWEST_SPEAKERS = 10  # minimum speakers for a joint score, as for a rank model
_FOLDS = 8
_MOST_SCORES = 1_000_000


def join_features(matrices: Mapping[str, ScoreMatrix]) -> ScoreMatrix | None:
    """Combine the scores of features for the same trials and speakers.

    Return None for fewer than two features with scores, or fewer than ten tested speakers.
    """
    shared = next(iter(matrices.values()))
    if len(matrices) < 2 or len(shared.tested) < FEWEST_SPEAKERS:
        return None
    scores = np.stack([np.asarray(m.scores, np.float64) for m in matrices.values()], axis=1)
    # a test that is too short for a window has no score
    scores = scores[:, (scores != scores[..., :1]).any(axis=(0, 2))]
    if not scores.shape[1]:
        return None
    fold = (np.arange(len(shared.tested)) % _FOLDS)[shared.owner]
    joint = np.empty(shared.scores.shape)
    for number in range(_FOLDS):
        weights = _fit_weights(scores, shared, fold != number)
        rows = fold == number
        joint[rows] = weighted_evidence(scores[rows], np.tile(weights, (int(rows.sum()), 1)))
    return ScoreMatrix(joint, shared.target, shared.speakers, "joint", shared.trial_names)


def _fit_weights(scores: FloatArray, matrix: ScoreMatrix, rows: BoolArray) -> FloatArray:
    """Fit lambda of each feature to some of the trials, or to an even subset of many trials."""
    trials_used = np.flatnonzero(rows)
    trials_used = trials_used[:: -(-trials_used.size * scores[0].size // _MOST_SCORES)]
    target = np.broadcast_to(matrix.target[trials_used, None], (trials_used.size, scores.shape[1]))
    _, speaker = np.unique(matrix.owner[trials_used], return_inverse=True)
    trials = logit.Trials(score_gaps(scores[trials_used], target), speaker)
    return logit.fit(trials, logit.prior_of(trials)).weights


# SRD's two measures judge a model on the ranks that it was fitted to. There the likelihood always
# wins by Kullback-Leibler divergence. So each model is also fitted to nine tenths of the speakers.
# Its cost is the bits per trial of the other speakers' ranks, beyond the likelihood's rank model.
_LOSSES_FOLDS = 10


class LossRecord(TypedDict):
    """One loss, with its fitted rank model and the quality of the fit."""

    loss: str
    fitted: str  # LL if CLL is not possible
    alpha: float
    beta: float
    binomial: bool
    notes: list[str]
    kl_bits: float | None
    rank1_match_bits: float | None  # None if rank 1 never occurred
    rank1: float  # its probability in the rank model
    mean_bits: float  # from here on SRD's Table II
    idr: float
    maxd_bits: float
    stdd_bits: float
    spread: float
    left_out_bits: float | None  # cost on held-out speakers minus LL's; None for under three
    left_out_low: float | None
    left_out_high: float | None


def measure_losses(matrix: ScoreMatrix, replicates: int, seed: int) -> list[LossRecord]:
    """Measure each loss, with intervals over resamples of speakers."""
    histogram = rank_histogram(matrix.better, matrix.tied, matrix.population)
    more = _cost_left_out(matrix)
    rows: list[LossRecord] = []
    for rank_model in loss_fits(histogram):
        gamma = np.exp(rank_model.log_pmf(matrix.population))
        statistics = rank_statistics(gamma)
        value = low = high = None
        if more is not None:
            costs, without = more[rank_model.loss], leaving_out(matrix.people)
            draws = resamples(matrix, replicates, seed) @ costs / costs.size
            left_out = without @ costs / without.sum(axis=1)
            value = float(costs.mean())
            low, high = Estimate(value, draws, left_out, costs.size, matrix.trials).t_limits()
        rows.append(
            {
                "loss": rank_model.loss,
                "fitted": "LL" if "LL instead of CLL" in rank_model.notes else rank_model.loss,
                "alpha": rank_model.alpha,
                "beta": rank_model.beta,
                "binomial": rank_model.binomial,
                "notes": list(rank_model.notes),
                "kl_bits": finite(rank_model.kl_bits),
                "rank1_match_bits": finite(rank_model.rank1_match_bits),
                "rank1": float(gamma[0]),
                "mean_bits": rank_model.mean_bits,
                "idr": statistics.identification_rate,
                "maxd_bits": statistics.max_bits,
                "stdd_bits": statistics.std_bits,
                "spread": statistics.spread,
                "left_out_bits": value,
                "left_out_low": low,
                "left_out_high": high,
            }
        )
    return rows


def _cost_left_out(matrix: ScoreMatrix) -> dict[str, FloatArray] | None:
    """Return by loss each speaker's bits per trial beyond LL's, under models of others, (S,)."""
    count = len(matrix.tested)
    if count < 3:
        return None
    fold = np.arange(count) % min(count, _LOSSES_FOLDS)
    floor = smallest_floor(count)
    bits = {loss: np.empty(count) for loss in LOSSES}
    for number in range(fold.max() + 1):
        rows = fold[matrix.owner] == number
        training = rank_histogram(matrix.better[~rows], matrix.tied[~rows], matrix.population)
        better, tied, owner = matrix.better[rows], matrix.tied[rows], matrix.owner[rows]
        trials = np.maximum(np.bincount(owner, minlength=count), 1)
        for loss in LOSSES:
            gamma = np.exp(fit(training, loss).log_pmf(matrix.population))
            gamma = (1.0 - floor) * gamma + floor / matrix.population  # no rank is impossible
            # tied ranks get the mean of their log probabilities
            sums = np.cumsum(np.append(0.0, np.log2(gamma)))
            cost = -(sums[better + tied] - sums[better]) / tied
            mean = np.bincount(owner, cost, minlength=count) / trials
            bits[loss][fold == number] = mean[fold == number]
    return {loss: bits[loss] - bits["LL"] for loss in LOSSES}


MEAN = "srd.mean_bits_model"  # the figure that compares lengths: MeanD of the fitted rank model


class SpeakerRecord(TypedDict):
    """Ranks of one speaker, and the fitted rank models by loss."""

    mean_bits: float
    trials: int
    histogram: list[float]
    rank_models: dict[str, list[float]]


class SystemRecord(TypedDict):
    """One system in one cell, with further fields in a cell of the tables."""

    speakers: int
    tested: int
    trials: int
    warnings: list[str]
    figures: dict[str, Record]
    resampled: list[float | None]  # MeanD on each resample
    left_out: list[float | None]  # MeanD without each speaker, or group of speakers
    histogram: list[float]  # of ranks
    losses: NotRequired[list[LossRecord]]
    speaker_bits: NotRequired[list[float]]  # MeanD of each, ascending, without names
    one_speaker: NotRequired[SpeakerRecord | None]  # the median speaker


def measure(matrix: ScoreMatrix, replicates: int, seed: int, tables: bool) -> SystemRecord:
    """Measure one system in one cell; raise UsageError if a score is not finite."""
    only = ("srd", "verification") if tables else ("srd",)
    report = evaluate(matrix, settings=EvaluationSettings(replicates, seed, only=only))
    mean = report.figures[MEAN]
    histogram = rank_histogram(matrix.better, matrix.tied, matrix.population)
    measured: SystemRecord = {
        "speakers": matrix.population,
        "tested": len(matrix.tested),
        "trials": matrix.trials,
        "warnings": list(report.warnings),
        "figures": {key: figure_json(figure) for key, figure in report.figures.items()
                    if not key.startswith(("srd.kl_", "srd.rank1_match_"))},
        "resampled": [*map(finite, _round_values(mean.replicates))],
        "left_out": [*map(finite, _round_values(mean.left_out))],
        "histogram": _round_values(histogram),
    }  # fmt: skip
    if tables:
        bits = report.curves.speaker_bits
        measured["losses"] = measure_losses(matrix, replicates, seed)
        measured["speaker_bits"] = _round_values(None if bits is None else np.sort(bits))
        measured["one_speaker"] = None if bits is None else _measure_median(matrix, bits)
    return measured


def _measure_median(matrix: ScoreMatrix, bits: FloatArray) -> SpeakerRecord:
    middle = int(np.argsort(bits, kind="stable")[(len(bits) - 1) // 2])
    rows = matrix.owner == middle
    histogram = rank_histogram(matrix.better[rows], matrix.tied[rows], matrix.population)
    rank_models = {loss: fit(histogram, loss) for loss in ("LL", "CLL")}
    return {
        "mean_bits": float(bits[middle]),
        "trials": int(rows.sum()),
        "histogram": _round_values(histogram),
        "rank_models": {
            loss: _round_values(np.exp(rank_model.log_pmf(matrix.population)))
            for loss, rank_model in rank_models.items()
            if "LL instead of CLL" not in rank_model.notes
        },
    }


def _round_values(values: FloatArray | None) -> list[float]:
    return [] if values is None else [float(f"{value:.7g}") for value in values.tolist()]


_VERSION = 1  # version of `measure`, its scores and its figures: raise it when results change


@dataclass(frozen=True)
class MeasuredCell:
    """A cell with one length of test and template; it has no systems until it is measured.

    The cache key is a hash of all its inputs.
    """

    panel: Panel
    test_seconds: float
    template_seconds: float
    systems: Mapping[str, SystemRecord] = field(default_factory=dict)
    key: str = ""


def make_orders(
    panels: Sequence[Panel], material: Material, settings: ExperimentSettings
) -> list[MeasuredCell]:
    """Return every cell of the panels, not yet measured."""
    orders = []
    for panel in panels:
        inputs = {
            "version": _VERSION,
            "content": material.content(panel),
            "panel": [panel.purpose, panel.session, panel.speakers, panel.tested],
            "resamples": [settings.replicates, settings.seed],
            "trained": {f: sorted(names) for f, names in settings.trained.items()},
        }
        for test, template in panel.cells:
            key = result_key({**inputs, "T": test, "D": template})
            orders.append(MeasuredCell(panel, test, template, key=key))
    return orders


def predict_measuring(panels: Sequence[Panel], systems: int, settings: ExperimentSettings) -> float:
    """Predict a core's seconds to measure all cells, by evaluating random scores."""
    total = 0.0
    for panel in panels:
        only = ("srd", "verification") if panel.purpose == "tables" else ("srd",)
        sample = EvaluationSettings(settings.replicates, settings.seed, only=only)
        trials = settings.trials * len(panel.tested)
        seconds = measure_evaluation(len(panel.speakers), trials, sample)
        total += len(panel.cells) * (systems + (systems > 1)) * seconds
    return total


def make_cells(
    orders: Sequence[MeasuredCell],
    material: Material,
    settings: ExperimentSettings,
    cache: ResultCache,
    jobs: int = 1,
    progress: Callable[[MeasuredCell], object] = lambda _: None,
) -> list[MeasuredCell]:
    """Measure cells that are not cached, and read the others; each is cached at once.

    Raises MonitorError if a worker process was killed, and StoreError if the cache cannot be
    written.
    """
    contents = {order.key: cache.read(order.key) for order in orders}
    systems: dict[str, dict[str, SystemRecord]] = {
        key: json.loads(content) for key, content in contents.items() if content is not None
    }
    missing = {order.key: order for order in orders if order.key not in systems}
    for order in orders:
        if order.key in systems:
            progress(order)

    def arrived(result: tuple[str, dict[str, SystemRecord]]) -> None:
        key, measured = result
        cache.write(key, json.dumps(measured, allow_nan=False).encode())
        systems[key] = measured
        progress(missing[key])

    work = partial(_measure_cell, material, settings)
    with closing(each_in_order(work, list(missing.values()), jobs, arrived=arrived)) as finished:
        for _ in finished:
            pass
    return [replace(order, systems=systems[order.key]) for order in orders]


def _measure_cell(
    material: Material, settings: ExperimentSettings, order: MeasuredCell
) -> tuple[str, dict[str, SystemRecord]]:
    matrices = material.matrices(order.panel, order.test_seconds, order.template_seconds)
    return order.key, {
        name: measure(matrix, settings.replicates, settings.seed, order.panel.purpose == "tables")
        for name, matrix in _select_systems(matrices, material, settings)
    }


def _select_systems(
    matrices: Mapping[str, ScoreMatrix], material: Material, settings: ExperimentSettings
) -> Iterator[tuple[str, ScoreMatrix]]:
    """Yield each system with frames, and the joint, without trials of their training speakers."""
    features = tuple(matrices)
    for name, matrix in matrices.items():
        selected = exclude_speakers(matrix, settings.get_trainers(name, features))
        if selected is not None and np.any(selected.scores):  # without a frame, all are zero
            yield name, selected
    if not material.joins:
        return
    trainers = settings.get_trainers("joint", features)
    selections = {name: exclude_speakers(matrix, trainers) for name, matrix in matrices.items()}
    present = {name: matrix for name, matrix in selections.items() if matrix is not None}
    joint = join_features(present) if present else None
    if joint is not None:
        yield "joint", joint
