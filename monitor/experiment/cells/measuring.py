"""One matrix of scores, measured: SRD's figures with their limits, and what tables need beside."""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.evaluation.evaluating import evaluate
from monitor.evaluation.report.report import Report, figure_json
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.experiment.cells.losses import loss_rows
from monitor.maths.fitting import fit
from monitor.maths.ranks import rank_histogram
from monitor.types import FloatArray

__all__ = ["MEAN", "measure"]

MEAN = "srd.mean_bits_model"
"""The figure that lengths are compared by: MeanD of the fitted law."""
_LAWS = ("LL", "CLL")


def measure(matrix: ScoreMatrix, replicates: int, seed: int, tables: bool) -> dict[str, Any]:
    """What is kept of one system in one cell, ready for JSON.

    Args:
        matrix: its trials.
        replicates: resamples of speakers behind the limits.
        seed: of the resamples.
        tables: the cell is that of the tables: its losses, speakers and equal error rate too.

    Returns:
        ``speakers`` (N), ``tested`` (S), ``trials``, ``figures`` by key, ``resampled`` and
        ``left_out`` (MeanD on each resample, and with each speaker or group of them left out),
        ``histogram`` (of ranks); and of tables ``losses``, ``speaker_bits`` (ascending) and
        ``one_speaker``.

    Raises:
        UsageError: a score is not finite.
    """
    only = ("srd", "verification") if tables else ("srd",)
    report = evaluate(matrix, only=only, replicates=replicates, seed=seed)
    figures = {key: figure_json(each) for key, each in report.figures.items()
               if not key.startswith(("srd.kl_", "srd.rank1_match_"))}  # fmt: skip
    mean = report.figures[MEAN]
    made: dict[str, Any] = {
        "speakers": matrix.population,
        "tested": len(matrix.tested),
        "trials": matrix.trials,
        "warnings": list(report.warnings),
        "figures": figures,
        "resampled": _listed(mean.replicates),
        "left_out": _listed(mean.left_out),
        "histogram": _listed(rank_histogram(matrix.better, matrix.tied, matrix.population)),
    }
    if tables:
        made["losses"] = loss_rows(matrix, replicates, seed)
        made |= _of_speakers(matrix, report)
    return made


def _of_speakers(matrix: ScoreMatrix, report: Report) -> dict[str, Any]:
    """MeanD of each speaker, without names, and the ranks of the median one."""
    bits = report.curves.speaker_bits
    if bits is None:
        return {"speaker_bits": [], "one_speaker": None}
    order = np.argsort(bits, kind="stable")
    middle = int(order[(len(order) - 1) // 2])
    mine = matrix.owner == middle
    histogram = rank_histogram(matrix.better[mine], matrix.tied[mine], matrix.population)
    laws = {loss: fit(histogram, loss) for loss in _LAWS}
    return {
        "speaker_bits": _listed(bits[order]),
        "one_speaker": {
            "mean_bits": float(bits[middle]),
            "trials": int(mine.sum()),
            "histogram": _listed(histogram),
            "laws": {
                loss: _listed(np.exp(law.log_pmf(matrix.population)))
                for loss, law in laws.items()
                if "LL instead of CLL" not in law.notes
            },
        },
    }


def _listed(values: FloatArray | None) -> list[float | None]:
    """Seven digits of each; what is not finite is None."""
    if values is None:
        return []
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in values.tolist()]
