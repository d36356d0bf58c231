"""The figures of membership inference: TPR, realised FPR and epsilon at each rate."""

from __future__ import annotations

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.membership.operating import (
    OperatingPoint,
    Rates,
    allowed_alarms,
    mirrored_points,
    operating_points,
)
from monitor.maths.privacyloss import DELTA, epsilon_lower_nats, epsilon_nats
from monitor.protocols import ScoredComparisons
from monitor.types import FloatArray

__all__ = ["RATES", "figures"]

RATES = (1e-2, 1e-3, 1e-4)
"""False positive rates that VoxGuard reports at."""

_BOUND = "It bounds the mechanism's epsilon from below and promises nothing."
_COUNTED = "Scores count as independent; those of one speaker are not."


def figures(
    scores: ScoredComparisons,
    weights: FloatArray | None = None,
    *,
    rates: tuple[float, ...] = RATES,
    delta: float = DELTA,
) -> tuple[Figure, ...]:
    """TPR at low FPR and the epsilon that it rules out.

    Args:
        scores: a matrix, or comparisons of any kind.
        weights: shape (B, S), from `pooled_resamples`. The threshold moves with each resample.
        rates: false positive rates to report at.
        delta: of the (epsilon, delta)-privacy in question.

    Returns:
        for each rate, such as 1e-2: ``membership.tpr_at_1e-2``, ``.realised_fpr_at_1e-2``,
        ``.epsilon_nats_at_1e-2``, ``.epsilon_lower_nats_at_1e-2``,
        ``.epsilon_lower_mirrored_nats_at_1e-2``, ``.half_trials_tpr_at_1e-2`` and
        ``.half_trials_epsilon_nats_at_1e-2``.

    Example:
        >>> from monitor.evaluation.scores.matrix import ScoreMatrix
        >>> scores = np.random.default_rng(0).normal(size=(40, 10))
        >>> found = figures(ScoreMatrix(scores, np.arange(40) % 10), rates=(1e-2,))
        >>> found[0].key, found[1].key, round(found[1].value, 4)
        ('membership.tpr_at_1e-2', 'membership.realised_fpr_at_1e-2', 0.0083)
    """
    found: list[Figure] = []
    points = operating_points(scores, rates, weights)
    mirrored = mirrored_points(scores, rates)
    for rate, (point, replicates, half), other in zip(rates, points, mirrored, strict=True):
        at = _At(rate, point)
        found += (
            *_rates(at, rate, point, replicates),
            *_epsilon(at, point, replicates),
            *_lower(at, point, other, delta),
            *_halves(at, half),
        )
    return tuple(found)


class _At:
    """Makes the figures of one rate."""

    def __init__(self, rate: float, point: OperatingPoint) -> None:
        self.rate = np.format_float_scientific(rate, trim="-", exp_digits=1)  # 1e-2
        self.reach = (
            ""
            if allowed_alarms(rate, point.non_mated)
            else f"{point.non_mated} non-mated scores cannot show a rate of {self.rate}: this is "
            "where none is accepted by mistake. "
        )

    def figure(
        self,
        key: str,
        label: str,
        value: float | None,
        unit: str,
        note: str = "",
        *,
        replicates: FloatArray | None = None,
        ceiling: float | None = None,
        floor: float = 0.0,
        text: str = "",
    ) -> Figure:
        return Figure(
            f"membership.{key}_at_{self.rate}",
            f"{label}{' for' if label.startswith('FPR') else ' at FPR'} {self.rate}",
            value,
            unit,
            replicates=replicates,
            ceiling=ceiling,
            floor=floor,
            ties="strict",
            note=(self.reach + note).strip(),
            text=text,
        )


def _rates(
    at: _At, rate: float, point: OperatingPoint, replicates: Rates | None
) -> tuple[Figure, Figure]:
    tied = point.false_alarms < allowed_alarms(rate, point.non_mated)
    note = "Equal scores keep it below the rate asked for." if tied else ""
    tpr = replicates.tpr if replicates else None
    return (
        at.figure("tpr", "TPR", point.tpr, "share", replicates=tpr, ceiling=1.0, floor=point.fpr),
        at.figure("realised_fpr", "FPR reached", point.fpr, "share", note, ceiling=rate),
    )


def _epsilon(at: _At, point: OperatingPoint, replicates: Rates | None) -> tuple[Figure]:
    loss = float(epsilon_nats(point.tpr, point.fpr))
    finite = bool(np.isfinite(loss))
    endless = "Infinite: nobody was accepted by mistake, or nobody missed. See the lower bound."
    return (
        at.figure(
            "epsilon_nats",
            "ε̂",
            max(loss, 0.0) if finite else None,
            "nats",
            _BOUND if finite else endless,
            replicates=replicates.epsilon_nats if replicates else None,
            text="" if finite else "infinite",
        ),
    )


def _lower(
    at: _At, point: OperatingPoint, mirrored: OperatingPoint, delta: float
) -> tuple[Figure, Figure]:
    """Of what scores higher than a threshold, and of what scores lower than another."""
    how = f"Clopper-Pearson, 95 %, δ {delta:g}."
    most = epsilon_lower_nats(point.mated, point.mated, 0, point.non_mated, delta=delta)
    bound, other = (
        epsilon_lower_nats(each.hits, each.mated, each.false_alarms, each.non_mated, delta=delta)
        for each in (point, mirrored)
    )
    return (
        at.figure(
            "epsilon_lower_nats",
            "ε lower bound",
            bound,
            "nats",
            f"{how} {_BOUND} {_COUNTED}",
            ceiling=most,
        ),
        at.figure(
            "epsilon_lower_mirrored_nats",
            "mirrored ε bound",
            other,
            "nats",
            "For the attacker who takes low scores for alike, at the same rate: above 0 where "
            f"mated scores lie lower than chance. {how} {_COUNTED}",
            ceiling=most,
        ),
    )


def _halves(at: _At, half: Rates | None) -> tuple[Figure, Figure]:
    nothing = np.array([np.nan])
    tpr, fpr, loss = (half.tpr, half.fpr, half.epsilon_nats) if half else (nothing,) * 3
    note = _COUNTED if half else "Half of the trials is none."
    mean, spread = _spread(tpr)
    loss_mean, loss_spread = _spread(loss)
    return (
        at.figure(
            "half_trials_tpr",
            "TPR, half the trials,",
            mean,
            "share",
            f"{note}{spread}",
            ceiling=1.0,
            floor=float(np.nan_to_num(fpr.mean())),
        ),
        at.figure(
            "half_trials_epsilon_nats",
            "ε̂, half the trials,",
            loss_mean,
            "nats",
            f"{note} Infinite resamples are left out.{loss_spread}",
        ),
    )


def _spread(replicates: FloatArray) -> tuple[float | None, str]:
    """Mean over the replicates in which there is a value, and where 95 % of them lie, in words."""
    seen = replicates[~np.isnan(replicates)]
    if not seen.size:
        return None, ""
    # interpolated, as these words always were: a spread, and no limits (monitor.maths.quantiles)
    low, high = np.percentile(seen, (2.5, 97.5)).tolist()
    return float(seen.mean()), f" 95 % of the resamples lie between {low:.3g} and {high:.3g}."
