"""One cell: who scores what at one length of test and template, and what that discloses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from monitor.files import finite
from monitor.jobs import each_in_order
from monitor.lab.evaluation.comparisons import ScoreMatrix, leaving_out, resamples
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.report.report import Report
from monitor.lab.evaluation.srd import LossFit, loss_fits
from monitor.lab.experiment.material import Material
from monitor.lab.experiment.settings import ExperimentSettings, Panel, exclude_speakers
from monitor.lab.report.export import figure_json
from monitor.lab.result_cache import ResultCache, result_key
from monitor.maths import posterior_fit as logit
from monitor.maths.posterior import weighted_evidence
from monitor.maths.posterior_fit import smallest_floor
from monitor.maths.rank_models import LOSSES, fit
from monitor.maths.ranks import RankStatistics, rank_histogram, rank_statistics, score_gaps
from monitor.maths.statistics import Estimate
from monitor.types import BoolArray, FloatArray

# ------------------------------------------------------------------------------------------- joint
# The weights are those of the conditional logit (docs/method.md section 5), learnt in each cell on
# other people than those whom they are used on: nobody's tests weigh the features for themselves.

FEWEST_SPEAKERS = 10
"""With fewer to learn from there is no joint score, as there is no rank model."""
_FOLDS = 8
_MOST_SCORES = 1_000_000


def join_features(matrices: Mapping[str, ScoreMatrix]) -> ScoreMatrix | None:
    """Join features' scores, of the same trials and speakers.

    None of fewer than two features that have a score, or of fewer than ten tested speakers.
    """
    shared = next(iter(matrices.values()))
    if len(matrices) < 2 or len(shared.tested) < FEWEST_SPEAKERS:
        return None
    scores = np.stack([np.asarray(m.scores, np.float64) for m in matrices.values()], axis=1)
    has_score = (scores != scores[..., :1]).any(
        axis=(0, 2)
    )  # a test too short for a window has none
    if has_score.sum() == 0:
        return None
    scores = scores[:, has_score]
    fold = np.arange(len(shared.tested)) % _FOLDS
    place = fold[shared.owner]
    joint = np.empty(shared.scores.shape)
    for number in range(_FOLDS):
        weights = _fit_weights(scores, shared, place != number)
        rows = place == number
        joint[rows] = weighted_evidence(scores[rows], np.tile(weights, (int(rows.sum()), 1)))
    return ScoreMatrix(joint, shared.target, shared.speakers, "joint", shared.trial_names)


def _fit_weights(scores: FloatArray, matrix: ScoreMatrix, rows: BoolArray) -> FloatArray:
    """Fit lambda of each feature to some of the trials, an even part where they are many."""
    trials_used = np.flatnonzero(rows)
    trials_used = trials_used[:: -(-trials_used.size * scores[0].size // _MOST_SCORES)]
    target = np.broadcast_to(matrix.target[trials_used, None], (trials_used.size, scores.shape[1]))
    _, speaker = np.unique(matrix.owner[trials_used], return_inverse=True)
    trials = logit.Trials(score_gaps(scores[trials_used], target), speaker)
    return logit.fit(trials, logit.prior_of(trials)).weights


# ------------------------------------------------------------------------------------------ losses
# How well the rank model fits by each of SRD's five losses: Table III, and on speakers left out.
#
# SRD's two measures judge a model on the ranks that it was fitted to, where the likelihood cannot
# lose by Kullback-Leibler divergence. So each model is also fitted on nine tenths of the speakers
# and asked what the ranks of the others cost, in bits a trial more than by the likelihood's rank
# model.

_LOSSES_FOLDS = 10


def measure_losses(matrix: ScoreMatrix, replicates: int, seed: int) -> list[dict[str, Any]]:
    """Measure each loss, ready for JSON, with limits over resamples of speakers.

    It has ``loss``, ``fitted`` (LL where CLL makes no sense), ``alpha``, ``beta``, ``binomial``,
    ``notes``, ``kl_bits``, ``rank1_match_bits`` (None where rank 1 was never seen), ``rank1`` (its
    probability by the rank model), the rank model's statistics, and ``left_out_bits``, ``..._low``,
    ``..._high``: what it costs more than LL on speakers left out, None of fewer than three.
    """
    histogram = rank_histogram(matrix.better, matrix.tied, matrix.population)
    more = _cost_left_out(matrix)
    rows = []
    for rank_model in loss_fits(histogram):
        gamma = np.exp(rank_model.log_pmf(matrix.population))
        row = {
            "loss": rank_model.loss,
            "fitted": "LL" if "LL instead of CLL" in rank_model.notes else rank_model.loss,
            "alpha": rank_model.alpha,
            "beta": rank_model.beta,
            "binomial": rank_model.binomial,
            "notes": list(rank_model.notes),
            "kl_bits": finite(rank_model.kl_bits),
            "rank1_match_bits": finite(rank_model.rank1_match_bits),
            "rank1": float(gamma[0]),
            **compute_statistics(rank_model, matrix.population),
        }
        low = high = value = None
        if more is not None:
            value, low, high = _estimate_mean(more[rank_model.loss], matrix, replicates, seed)
        rows.append(row | {"left_out_bits": value, "left_out_low": low, "left_out_high": high})
    return rows


def compute_statistics(rank_model: LossFit, speakers: int) -> dict[str, float]:
    """Compute the statistics of SRD's Table II, of a rank model."""
    statistics: RankStatistics = rank_statistics(np.exp(rank_model.log_pmf(speakers)))
    return {
        "mean_bits": rank_model.mean_bits,
        "idr": statistics.identification_rate,
        "maxd_bits": statistics.max_bits,
        "stdd_bits": statistics.std_bits,
        "spread": statistics.spread,
    }


def _cost_left_out(matrix: ScoreMatrix) -> dict[str, FloatArray] | None:
    """Return by loss bits of each speaker's trials under others' models, less those by LL: (S,)."""
    count = len(matrix.tested)
    if count < 3:
        return None
    fold = np.arange(count) % min(count, _LOSSES_FOLDS)
    floor = smallest_floor(count)
    bits = {loss: np.empty(count) for loss in LOSSES}
    for number in range(fold.max() + 1):
        rows = fold[matrix.owner] == number
        rest = rank_histogram(matrix.better[~rows], matrix.tied[~rows], matrix.population)
        for loss in LOSSES:
            gamma = np.exp(fit(rest, loss).log_pmf(matrix.population))
            gamma = (1.0 - floor) * gamma + floor / matrix.population  # no rank is impossible
            # of tied ranks the mean of their logarithms
            sums = np.cumsum(np.append(0.0, np.log2(gamma)))
            better, tied, owner = matrix.better[rows], matrix.tied[rows], matrix.owner[rows]
            cost = -(sums[better + tied] - sums[better]) / tied
            total = np.bincount(owner, cost, minlength=count)
            trials = np.bincount(owner, minlength=count)
            bits[loss][fold == number] = (total / np.maximum(trials, 1))[fold == number]
    return {loss: bits[loss] - bits["LL"] for loss in LOSSES}


def _estimate_mean(
    values: FloatArray, matrix: ScoreMatrix, replicates: int, seed: int
) -> tuple[float, float, float]:
    """Return the mean over speakers with its 95 % interval."""
    without = leaving_out(matrix.people)
    estimate = Estimate(
        float(values.mean()),
        resamples(matrix, replicates, seed) @ values / values.size,
        without @ values / without.sum(axis=1),
        values.size,
        matrix.trials,
    )
    return (estimate.value, *estimate.t_limits())


# --------------------------------------------------------------------------------------- measuring
# One matrix of scores, measured: SRD's figures with their limits, and what tables need beside.

MEAN = "srd.mean_bits_model"
"""The figure that lengths are compared by: MeanD of the fitted rank model."""


def measure(matrix: ScoreMatrix, replicates: int, seed: int, tables: bool) -> dict[str, Any]:
    """Measure one system in one cell, ready for JSON.

    ``speakers`` (N), ``tested`` (S), ``trials``, ``figures`` by key, ``resampled`` and ``left_out``
    (MeanD on each resample, and with each speaker or group of them left out), ``histogram`` (of
    ranks); and of the cell of the tables ``losses``, ``speaker_bits`` (ascending) and
    ``one_speaker``. UsageError where a score is not finite.
    """
    only = ("srd", "verification") if tables else ("srd",)
    report = evaluate(matrix, settings=EvaluationSettings(replicates, seed, only=only))
    figures = {key: figure_json(figure) for key, figure in report.figures.items()
               if not key.startswith(("srd.kl_", "srd.rank1_match_"))}  # fmt: skip
    mean = report.figures[MEAN]
    measured: dict[str, Any] = {
        "speakers": matrix.population,
        "tested": len(matrix.tested),
        "trials": matrix.trials,
        "warnings": list(report.warnings),
        "figures": figures,
        "resampled": _round_values(mean.replicates),
        "left_out": _round_values(mean.left_out),
        "histogram": _round_values(rank_histogram(matrix.better, matrix.tied, matrix.population)),
    }
    if tables:
        measured["losses"] = measure_losses(matrix, replicates, seed)
        measured |= _measure_speakers(matrix, report)
    return measured


def _measure_speakers(matrix: ScoreMatrix, report: Report) -> dict[str, Any]:
    """Measure MeanD of each speaker, without names, and the ranks of the median one."""
    bits = report.curves.speaker_bits
    if bits is None:
        return {"speaker_bits": [], "one_speaker": None}
    order = np.argsort(bits, kind="stable")
    middle = int(order[(len(order) - 1) // 2])
    rows = matrix.owner == middle
    histogram = rank_histogram(matrix.better[rows], matrix.tied[rows], matrix.population)
    rank_models = {loss: fit(histogram, loss) for loss in ("LL", "CLL")}
    return {
        "speaker_bits": _round_values(bits[order]),
        "one_speaker": {
            "mean_bits": float(bits[middle]),
            "trials": int(rows.sum()),
            "histogram": _round_values(histogram),
            "rank_models": {
                loss: _round_values(np.exp(rank_model.log_pmf(matrix.population)))
                for loss, rank_model in rank_models.items()
                if "LL instead of CLL" not in rank_model.notes
            },
        },
    }


def _round_values(values: FloatArray | None) -> list[float | None]:
    """Round to seven digits; what is not finite is None."""
    if values is None:
        return []
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in values.tolist()]


# ------------------------------------------------------------------------------------------ making
# All cells of an experiment, each made once: by several processes, and kept.

_VERSION = 1
"""Version of `measure`, its scores and its figures: raise it when results change."""


@dataclass(frozen=True)
class CellOrder:
    """A cell to be made, of a test and a template of so much speech, and the key of its cache."""

    panel: Panel
    test_seconds: float
    template_seconds: float
    key: str


@dataclass(frozen=True)
class MeasuredCell:
    """A cell that was made, with what `measure` says of each system."""

    panel: Panel
    test_seconds: float
    template_seconds: float
    systems: dict[str, dict[str, Any]]


def make_orders(
    panels: Sequence[Panel], material: Material, settings: ExperimentSettings
) -> list[CellOrder]:
    """Return every cell of the panels, with a hash of all that it depends on."""
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
            orders.append(CellOrder(panel, test, template, key))
    return orders


def make_cells(
    orders: Sequence[CellOrder],
    material: Material,
    settings: ExperimentSettings,
    cache: ResultCache,
    jobs: int = 1,
    progress: Callable[[CellOrder], object] = lambda _: None,
) -> list[MeasuredCell]:
    """Measure cells that are not cached, and read the others; each is cached at once.

    `progress` is called with each cell that is done.

    Raises:
        MonitorError: a process was ended from outside.
        StoreError: the cache cannot be written.
    """
    systems_by_key = {order.key: _read_cell(cache, order.key) for order in orders}
    missing = list(
        {order.key: order for order in orders if systems_by_key[order.key] is None}.values()
    )
    for order in orders:
        if systems_by_key[order.key] is not None:
            progress(order)
    todo = {order.key: order for order in missing}

    def arrived(result: tuple[str, dict[str, Any]]) -> None:
        key, systems = result
        cache.write(key, json.dumps(systems, allow_nan=False).encode())
        systems_by_key[key] = systems
        progress(todo[key])

    work = partial(_make, material, settings)
    with closing(each_in_order(work, missing, jobs, arrived=arrived)) as finished:
        for _ in finished:
            pass
    return [
        MeasuredCell(
            cell_order.panel,
            cell_order.test_seconds,
            cell_order.template_seconds,
            systems_by_key[cell_order.key] or {},
        )
        for cell_order in orders
    ]


def _make(
    material: Material, settings: ExperimentSettings, order: CellOrder
) -> tuple[str, dict[str, Any]]:
    """Measure one cell; return it with its key."""
    matrices = material.matrices(order.panel, order.test_seconds, order.template_seconds)
    systems = {
        name: measure(matrix, settings.replicates, settings.seed, order.panel.purpose == "tables")
        for name, matrix in _select_systems(matrices, material, settings)
    }
    return order.key, systems


def _select_systems(
    matrices: dict[str, ScoreMatrix], material: Material, settings: ExperimentSettings
) -> Iterator[tuple[str, ScoreMatrix]]:
    """Yield each system with trials of those who trained none of its networks, and the joint.

    A system is left out of cells in which it heard nothing yet, such as an embedding of 3 s windows
    in tests of 1 s: there it has no scores, which are not scores that tell nothing.
    """
    features = tuple(matrices)
    for name, matrix in matrices.items():
        selected = exclude_speakers(matrix, settings.get_trainers(name, features))
        if selected is not None and np.any(selected.scores):  # without a frame, all are zero
            yield name, selected
    if not material.joins:
        return
    trainers = settings.get_trainers("joint", features)
    parts = {name: exclude_speakers(matrix, trainers) for name, matrix in matrices.items()}
    present = {name: matrix for name, matrix in parts.items() if matrix is not None}
    joint = join_features(present) if present else None
    if joint is not None:
        yield "joint", joint


def _read_cell(cache: ResultCache, key: str) -> dict[str, Any] | None:
    content = cache.read(key)
    return None if content is None else dict(json.loads(content))
