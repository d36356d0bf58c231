"""Membership inference: true positives at low false positive rates, and their epsilon.

Measures: TPR at false positive rates of 1e-2, 1e-3 and 1e-4. Each also gives the epsilon of
differential privacy that it rules out, in nats, with a Clopper-Pearson lower bound.

Source: "VoxGuard: Evaluating user and attribute privacy in speech via Membership Inference
Attacks", section 4 and equation (5) (docs/method.md section 8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from monitor.arrays import real_numbers
from monitor.errors import UsageError
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
    finite_value,
    share_aloud,
)
from monitor.lab.report.model import Figure
from monitor.maths.composition import DELTA, epsilon_lower_nats, epsilon_nats
from monitor.maths.statistics import REPLICATES
from monitor.protocols import ScoredComparisons
from monitor.types import FloatArray, IntArray

_SPARE = 200
_ROUNDING = 1e-9


# An error rate at a low false acceptance depends on few non-mated scores.
@dataclass(frozen=True, slots=True)
class UpperTail:
    """The highest of `total` scores, descending; all others are below the last.

    Arrays of shape (K,) have each score's speaker and its multiplicity for that speaker.
    """

    values: FloatArray
    speaker: IntArray
    counts: IntArray
    total: int

    def first_of(self, values: FloatArray) -> IntArray:
        """Find the first entry that is not strictly above each value."""
        return np.searchsorted(-self.values, -np.asarray(values), side="left")


class TopScores:
    """Collector of at least the ``keep`` highest scores of S speakers, in twice that memory.

    All scores equal to the last one are counted.
    """

    def __init__(self, keep: int, speakers: int = 1) -> None:
        self._keep = max(1, keep)
        self._cut = -np.inf
        self._at_cut = np.zeros(speakers, dtype=np.intp)
        self._values: list[FloatArray] = []
        self._speaker: list[IntArray] = []
        self._held = self._total = 0

    def add(self, scores: FloatArray, speaker: IntArray) -> None:
        """Add scores, shape (rows, n), with the speaker of each row."""
        self._total += scores.size
        above = scores > self._cut
        if self._cut > -np.inf:
            tied = (scores == self._cut).sum(axis=1)
            self._at_cut += np.bincount(speaker, tied, self._at_cut.size).astype(np.intp)
        self._values.append(scores[above])
        self._speaker.append(np.repeat(speaker, above.sum(axis=1)))
        self._held += self._values[-1].size
        if self._held > 2 * self._keep:
            self._trim()

    def _trim(self) -> None:
        values, speaker = np.concatenate(self._values), np.concatenate(self._speaker)
        if values.size > self._keep:
            index = values.size - self._keep
            self._cut = float(np.partition(values, index)[index])
            above = values > self._cut
            self._at_cut = np.bincount(speaker[values == self._cut], minlength=self._at_cut.size)
            values, speaker = values[above], speaker[above]
        self._values, self._speaker, self._held = [values], [speaker], values.size

    def tail(self) -> UpperTail:
        """Return the collected tail."""
        self._trim()
        values, speaker = self._values[0], self._speaker[0]
        order = np.argsort(-values, kind="stable")
        tied = np.flatnonzero(self._at_cut)
        return UpperTail(
            np.concatenate([values[order], np.full(tied.size, self._cut)]),
            np.concatenate([speaker[order], tied]),
            np.concatenate([np.ones(values.size, dtype=np.intp), self._at_cut[tied]]),
            self._total,
        )


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Hits and false alarms of an attacker who accepts scores strictly above a threshold."""

    threshold: float
    hits: int
    mated: int
    false_alarms: int
    non_mated: int

    @property
    def tpr(self) -> float:
        """True positive rate."""
        return self.hits / self.mated

    @property
    def fpr(self) -> float:
        """Realised false positive rate: at most the requested one, and lower if scores tie."""
        return self.false_alarms / self.non_mated


@dataclass(frozen=True, slots=True)
class Rates:
    """Both realised rates on each of B resamples, each with a threshold of its own: shape (B,)."""

    tpr: FloatArray
    fpr: FloatArray

    @property
    def epsilon_nats(self) -> FloatArray:
        """VoxGuard eq. (5), at least 0, shape (B,); NaN where it is infinite."""
        loss = epsilon_nats(self.tpr, self.fpr)
        return np.where(np.isfinite(loss), np.maximum(loss, 0.0), np.nan)


def operating_point(mated: FloatArray, non_mated: FloatArray, fpr: float) -> OperatingPoint:
    """Compute the threshold that accepts at most a fraction of the non-mated scores.

    The threshold is the ``floor(fpr n) + 1``-th highest non-mated score. Only higher scores are
    accepted.

    Args:
        mated: scores of the same speaker, any shape.
        non_mated: scores of different speakers, any shape.
        fpr: maximum false positive rate, in (0, 1).

    Example:
        >>> point = operating_point(np.array([0.9, 0.6]), np.arange(10) / 10, 0.2)
        >>> point.threshold, point.tpr, point.fpr
        (0.7, 0.5, 0.2)
    """
    mated = real_numbers(mated, "mated scores")
    tail = _tail_of(real_numbers(non_mated, "non-mated scores"), fpr)
    return _point(_descending(mated), tail, fpr)


def operating_points(
    scores: ScoredComparisons, rates: tuple[float, ...], weights: FloatArray | None = None
) -> tuple[tuple[OperatingPoint, Rates | None, Rates | None], ...]:
    """Compute operating points at several rates in one pass over all scores.

    Returns the point of each rate, both rates on each resample, and `half_trials`. The rates are
    None without weights (B, S) from `pooled_resamples`. `half_trials` is None with a single score
    of a kind.
    """
    total = int(scores.non_mated_counts.sum())
    keep = 2 * max(allowed_alarms(rate, total) for rate in rates) + _SPARE
    tail = _tail(scores, keep)
    resampled_rates: list[Rates] | None = None
    while (
        weights is not None
        and (resampled_rates := _resampled(scores, tail, weights, rates)) is None
    ):
        keep = 4 * keep + 1  # some resample has few high scores: collect more
        tail = _tail(scores, keep)
    mated = _descending(scores.mated)
    halves = min(mated.size, total) >= 2
    return tuple(
        (
            _point(mated, tail, rate),
            resampled_rates[index] if resampled_rates else None,
            half_trials(mated, tail, rate) if halves else None,
        )
        for index, rate in enumerate(rates)
    )


def allowed_alarms(fpr: float, total: int) -> int:
    """Return ``floor(fpr n)``, corrected for rounding of products such as 0.29 x 100."""
    if not 0 < fpr < 1:
        raise UsageError(f"invalid false positive rate {fpr:g}: use a number between 0 and 1")
    return min(int(np.floor(fpr * total + _ROUNDING)), total - 1)


def _resampled(
    scores: ScoredComparisons, tail: UpperTail, weights: FloatArray, rates: tuple[float, ...]
) -> list[Rates] | None:
    """Compute the rates on each resample; None if the tail is too short for one."""
    order = np.argsort(-scores.mated, kind="stable")
    mated, owner = scores.mated[order], scores.owner[order]
    realised = np.empty((len(rates), 2, len(weights)))
    for draw, weight in enumerate(weights):
        hits = np.append(0.0, np.cumsum(weight[owner]))
        alarms = np.append(0.0, np.cumsum(weight[tail.speaker] * tail.counts))
        total = float(weight @ scores.non_mated_counts)
        allowed = np.minimum(np.floor(np.multiply(rates, total) + _ROUNDING), total - 1)
        index = np.searchsorted(alarms[1:], allowed, side="right")
        if index.max() == tail.values.size:
            return None
        threshold = tail.values[index]
        realised[:, 0, draw] = hits[_above(mated, threshold)] / hits[-1]
        realised[:, 1, draw] = alarms[tail.first_of(threshold)] / total
    return [Rates(tpr, fpr) for tpr, fpr in realised]


def half_trials(
    mated: FloatArray, tail: UpperTail, fpr: float, replicates: int = REPLICATES, seed: int = 0
) -> Rates:
    """Resample half of the mated scores, descending, and of the others, as VoxGuard does.

    Scores are drawn with replacement, as if they were independent, which those of one speaker are
    not. Resampling speakers is correct. No resample is made: its threshold, and the number of
    scores above it, are drawn from their exact distributions.
    """
    half, half_mated = tail.total // 2, mated.size // 2
    generator = np.random.default_rng(seed)
    allowed = allowed_alarms(fpr, half)
    # Of `half` uniform places the threshold is the (allowed + 1)-th, the earlier ones are uniform.
    upto = generator.beta(allowed + 1, half - allowed, replicates) * tail.total
    running = _running(tail)
    index = np.minimum(_place(running, upto), tail.values.size - 1)
    threshold = tail.values[index]
    above = running[tail.first_of(threshold)]
    alarms = generator.binomial(allowed, np.minimum(above / upto, 1.0))
    hits = generator.binomial(half_mated, _above(mated, threshold) / mated.size)
    return Rates(hits / half_mated, alarms / half)


def _point(mated: FloatArray, tail: UpperTail, fpr: float) -> OperatingPoint:
    running = _running(tail)
    threshold = tail.values[_place(running, np.array([allowed_alarms(fpr, tail.total)]))]
    hits = int(_above(mated, threshold)[0])
    alarms = int(running[tail.first_of(threshold)][0])
    return OperatingPoint(float(threshold[0]), hits, mated.size, alarms, tail.total)


def _running(tail: UpperTail) -> IntArray:
    """Count scores before each entry of the tail, and in all of it: (K + 1,)."""
    return np.concatenate([[0], np.cumsum(tail.counts)])


def _place(running: IntArray, rank: IntArray | FloatArray) -> IntArray:
    """Find the entry that contains the score with ``rank`` scores before it."""
    return np.searchsorted(running[1:], rank, side="right")


def _above(descending: FloatArray, threshold: FloatArray) -> IntArray:
    return np.searchsorted(-descending, -threshold, side="left")


def _tail(scores: ScoredComparisons, keep: int, sign: float = 1.0) -> UpperTail:
    highest = TopScores(keep, len(scores.non_mated_counts))
    for owner, block in scores.non_mated_blocks():
        highest.add(sign * block, owner)
    return highest.tail()


def _tail_of(non_mated: FloatArray, fpr: float) -> UpperTail:
    scores = np.asarray(non_mated).reshape(1, -1)
    if scores.size == 0 or np.isnan(scores).any():
        raise UsageError(
            "invalid scores: a false positive rate needs finite scores of different speakers"
        )
    highest = TopScores(2 * allowed_alarms(fpr, scores.size) + _SPARE)
    highest.add(scores, np.zeros(1, dtype=np.intp))
    return highest.tail()


def _descending(mated: FloatArray) -> FloatArray:
    if np.size(mated) == 0 or np.isnan(mated).any():
        raise UsageError(
            "invalid scores: a true positive rate needs finite scores of the same speakers"
        )
    return np.sort(np.asarray(mated, dtype=np.float64), axis=None)[::-1]


RATES = (1e-2, 1e-3, 1e-4)  # false positive rates that VoxGuard reports at

_BOUND = "This is a lower bound on the mechanism's epsilon, not a guarantee."
_COUNTED = "Scores are treated as independent, which those of one speaker are not."
_ENDLESS = "Infinite: no false positive, or no miss. See the lower bound."


def figures(
    scores: ScoredComparisons,
    weights: FloatArray | None = None,
    *,
    rates: tuple[float, ...] = RATES,
    delta: float = DELTA,
) -> tuple[Figure, ...]:
    """Compute TPR at low FPR and the epsilon that it rules out, in seven figures per rate.

    Each resample (weights (B, S), from `pooled_resamples`) has its own threshold. ``delta`` is that
    of (epsilon, delta)-privacy.
    """
    points = operating_points(scores, rates, weights)
    # for the attacker who treats low scores as matches
    total = int(scores.non_mated_counts.sum())
    tail = _tail(scores, 2 * max(allowed_alarms(rate, total) for rate in rates) + _SPARE, -1.0)
    low = _descending(-scores.mated)
    entries: list[Figure] = []
    for rate, (point, replicates, half) in zip(rates, points, strict=True):
        entries += _at_rate(rate, point, replicates, half, _point(low, tail, rate), delta)
    return tuple(entries)


def _at_rate(
    rate: float, point: OperatingPoint, replicates: Rates | None, half: Rates | None,
    mirrored: OperatingPoint, delta: float,
) -> Iterator[Figure]:  # fmt: skip
    written = np.format_float_scientific(rate, trim="-", exp_digits=1)  # 1e-2
    allowed = allowed_alarms(rate, point.non_mated)
    reach = (
        ""
        if allowed
        else f"{point.non_mated} non-mated scores cannot resolve a rate of {written}, so this is "
        "without any false positive. "
    )

    def figure(name: str, value: float | None, note: str = "", **options: Any) -> Figure:
        entry = FAMILY.entry(f"membership.{name}_at_{written}")
        assert entry is not None
        label = f"{entry.label} {written}"
        note = (reach + note).strip()
        return FAMILY.figure(f"{name}_at_{written}", value, note=note, label=label, **options)

    rates, losses = (replicates.tpr, replicates.epsilon_nats) if replicates else (None, None)
    yield figure("tpr", point.tpr, replicates=rates, floor=point.fpr)
    tied = "Equal scores keep it below the requested rate." * (point.false_alarms < allowed)
    yield figure("realised_fpr", point.fpr, tied, ceiling=rate)
    loss = float(epsilon_nats(point.tpr, point.fpr))
    if np.isfinite(loss):
        yield figure("epsilon_nats", max(loss, 0.0), _BOUND, replicates=losses)
    else:
        yield figure("epsilon_nats", None, _ENDLESS, replicates=losses, text="infinite")
    method = f"Clopper-Pearson, 95 %, δ {delta:g}."
    ceiling = epsilon_lower_nats(point.mated, point.mated, 0, point.non_mated, delta=delta)
    bound, mirrored_bound = (
        epsilon_lower_nats(
            counts.hits, counts.mated, counts.false_alarms, counts.non_mated, delta=delta
        )
        for counts in (point, mirrored)
    )
    yield figure("epsilon_lower_nats", bound, f"{method} {_BOUND} {_COUNTED}", ceiling=ceiling)
    yield figure(
        "epsilon_lower_mirrored_nats", mirrored_bound,
        "For an attacker who treats low scores as matches, at the same rate. It is above 0 if "
        f"mated scores are lower than non-mated ones. {method} {_COUNTED}", ceiling=ceiling,
    )  # fmt: skip
    nothing = np.array([np.nan])
    tpr, fpr, losses = (half.tpr, half.fpr, half.epsilon_nats) if half else (nothing,) * 3
    note = _COUNTED if half else "Too few trials to halve."
    mean, spread = _spread(tpr)
    floor = float(np.nan_to_num(fpr.mean()))
    yield figure("half_trials_tpr", mean, f"{note}{spread}", floor=floor)
    mean, spread = _spread(losses)
    explanation = f"{note} Infinite resamples are excluded.{spread}"
    yield figure("half_trials_epsilon_nats", mean, explanation)


def _spread(replicates: FloatArray) -> tuple[float | None, str]:
    """Return the mean of the replicates with a value, and a sentence on their central 95 %."""
    seen = replicates[~np.isnan(replicates)]
    if not seen.size:
        return None, ""
    # interpolated, because this is a spread, not an interval (monitor.maths.statistics)
    low, high = np.percentile(seen, (2.5, 97.5)).tolist()
    return float(seen.mean()), f" 95 % of the resamples are between {low:.3g} and {high:.3g}."


def _compute(context: EvaluationContext) -> FamilyResult:
    return FamilyResult(figures(context.pool, context.pool_weights, delta=context.settings.delta))


def _meaning(figures_by_key: Mapping[str, Figure], _speakers: int) -> Iterator[str]:
    rate = finite_value(figures_by_key.get("membership.tpr_at_1e-3"))
    if rate is not None:
        yield (
            "An attacker who allows one false alarm in a thousand recognises "
            f"{share_aloud(rate)} of a wanted person's recordings; guessing would recognise 0.1 %."
        )


_OF_TPR = LimitRule(
    "derived",
    source=lambda key: key.replace(".epsilon_nats_at_", ".tpr_at_"),
    change=lambda figure, tpr: max(
        0.0, float(epsilon_nats(tpr, float(figure.key.rpartition("_at_")[2])))
    ),
)
_DEPENDENT = LimitRule("none", reason="scores are not independent")
_entry = partial(FigureEntry, ties="strict", floor=0.0)
_AT_A_RATE = (
    _entry("tpr_{rate}", "membership.tpr_at_{rate}",
           "fraction recognised at a false alarm rate of {rate}", LimitRule("share"),
           label="TPR at FPR", unit="share", ceiling=1.0),
    _entry("fpr_{rate}", "membership.realised_fpr_at_{rate}",
           "realised false alarm rate for {rate}", label="FPR reached for", unit="share"),
    _entry("epsilon_{rate}", "membership.epsilon_nats_at_{rate}",
           "log-ratio of the two, nats", _OF_TPR, label="ε̂ at FPR", unit="nats"),
    _entry("epsilon_low_{rate}", "membership.epsilon_lower_nats_at_{rate}",
           "lower bound of the mechanism's epsilon, nats", label="ε lower bound at FPR",
           unit="nats"),
    _entry("epsilon_mirrored_{rate}", "membership.epsilon_lower_mirrored_nats_at_{rate}",
           "the same if low scores are matches", label="mirrored ε bound at FPR", unit="nats"),
    _entry("tpr_half_{rate}", "membership.half_trials_tpr_at_{rate}",
           "tpr_{rate} on half of the scores", _DEPENDENT, label="TPR, half the trials, at FPR",
           unit="share", ceiling=1.0),
    _entry("epsilon_half_{rate}", "membership.half_trials_epsilon_nats_at_{rate}",
           "epsilon_{rate} on half of the scores", _DEPENDENT,
           label="ε̂, half the trials, at FPR", unit="nats"),
)  # fmt: skip

FAMILY = Family(
    key="membership",
    position=90,
    title="At few false positives (VoxGuard)",
    caveat="A true positive rate at 1e-4 needs at least ten thousand non-mated scores, and ties "
    "change the realised rate. The epsilon is a lower bound on the leakage: a small one proves "
    "nothing.",
    needs=("pool",),
    figures=tuple(
        entry.fill_in(rate=rate) for rate in ("1e-2", "1e-3", "1e-4") for entry in _AT_A_RATE
    ),
    compute=_compute,
    main=("membership.tpr_at_1e-3", "membership.epsilon_lower_nats_at_1e-3"),
    meaning=_meaning,
)
