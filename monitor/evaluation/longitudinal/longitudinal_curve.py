"""Bits disclosed after 1, 2 ... K trials of a speaker, by each rule of adding evidence up.

Log-likelihood ratios of a speaker's trials are summed, in the order of the rows or in one that no
order of rows changes, and divided by a temperature T: 1 (``sum``, trials taken as independent), k
(``average``), one number fitted on development speakers (``temperature``), ``tau (1 + rho (k -
1))`` (``count``), and with embeddings ``tau (1 + rho R)``, ``R = (2 / k) sum_{i<j} clip(cos, 0,
1)`` (``embedding``). ``rank`` multiplies the rank posteriors instead, ``gamma = (h + 1) / (n + N)``
of the development ranks; where those were taken among another number of speakers, the law fitted to
them gives h at N.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.lid.calibration import (
    FOLDS,
    CrossCalibration,
    LidCalibration,
    LidStyle,
    calibrate,
    cross_calibrate,
)
from monitor.evaluation.longitudinal.speaker_sums import SpeakerSums
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.speaker_bootstrap import resampled
from monitor.maths.composition import guides
from monitor.maths.estimate import Estimate
from monitor.phrases import plural
from monitor.types import FloatArray, IntArray

__all__ = ["LONGEST", "AgainstTrials", "LongitudinalCurve", "against_trials", "longitudinal"]

LONGEST = 100
"""Most trials of a speaker that a curve goes through."""


@dataclass(frozen=True)
class LongitudinalCurve:
    """Disclosure after 1, 2 ... K trials of each speaker.

    Attributes:
        trials: 1 to K, shape (K,).
        tested: index into `ScoreMatrix.tested` of the speakers with K trials or more, shape (S',).
        bits: by rule, ``log2(N p)`` of each speaker after k trials, shape (S', K).
        ceiling_bits: log2 N.
        temperature: of the rule of that name; the mean over folds where cross-fitted.
        tau: of ``count``, as temperature.
        rho: of ``count``, as temperature: how alike the trials of one speaker are.
        note: one sentence where the fit needs it.
    """

    trials: IntArray
    tested: IntArray
    bits: Mapping[str, FloatArray]
    ceiling_bits: float
    temperature: float
    tau: float
    rho: float
    note: str = ""

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that were followed."""
        return tuple(self.bits)

    @property
    def effective_trials(self) -> FloatArray:
        """``k / (1 + rho (k - 1))``: independent trials that k of a speaker amount to."""
        return np.asarray(self.trials / (1.0 + self.rho * (self.trials - 1)))

    def mean_bits(self, rule: str = "count") -> FloatArray:
        """Mean over speakers after each number of trials, shape (K,).

        Raises:
            UsageError: the rule was not followed.
        """
        return np.asarray(self._of(rule).mean(axis=0))

    def replicates(self, weights: FloatArray, rule: str = "count") -> FloatArray:
        """`mean_bits` of resamples.

        Args:
            weights: shape (B, S), from `resamples`.
            rule: one of `rules`.

        Returns:
            shape (B, K); NaN where none of the curve's speakers was drawn.
        """
        chosen = weights[:, self.tested]
        with np.errstate(invalid="ignore"):
            return np.asarray(chosen @ self._of(rule) / chosen.sum(axis=1, keepdims=True))

    def against_trials(
        self, rule: str = "count", weights: FloatArray | None = None
    ) -> AgainstTrials:
        """The curve of a rule beside its guides, as `against_trials`."""
        bits = self.mean_bits(rule)
        start = max(float(bits[0]), 0.0)
        linear, root = guides(self.trials, 1.0, start, self.ceiling_bits)
        low = high = None
        if weights is not None:
            low, high = self._limits(weights, rule)
        return AgainstTrials(self.trials, bits, low, high, linear, root, self.ceiling_bits, rule)

    def _limits(self, weights: FloatArray, rule: str) -> FloatArray:
        """Of each point of the curve, as of the figures: shape (2, K)."""
        replicates, whole = self.replicates(weights, rule), resampled(weights)
        points = zip(self.mean_bits(rule).tolist(), replicates.T, self.trials.tolist(), strict=True)
        found = []
        for value, each, trials in points:
            speakers = len(self.tested)
            estimate = Estimate(value, each[whole], each[~whole], speakers, speakers * trials)
            low, high = estimate.signed_limits(self.ceiling_bits)
            found.append((min(low, value), max(high, value)))
        return np.array(found).T

    def _of(self, rule: str) -> FloatArray:
        if rule not in self.bits:
            raise UsageError(f"no rule {rule!r} in this curve: take one of {', '.join(self.bits)}")
        return self.bits[rule]


@dataclass(frozen=True)
class AgainstTrials:
    """A curve beside the guides of composition (SRD fig. 8): guides, not guarantees.

    Attributes:
        trials: shape (K,).
        bits: mean over speakers, shape (K,).
        low: lower 95 % limit, shape (K,); None without resamples.
        high: upper limit, as low.
        linear: ``D(1) k``, as basic composition grows; capped at the ceiling.
        root: ``D(1) sqrt(k)``, as advanced composition grows; capped likewise.
        ceiling_bits: log2 N.
        rule: how trials were put together.
    """

    trials: IntArray
    bits: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    linear: FloatArray
    root: FloatArray
    ceiling_bits: float
    rule: str


def longitudinal(
    matrix: ScoreMatrix,
    dev: ScoreMatrix | None = None,
    style: str | LidStyle = "paper",
    longest: int | None = None,
    embeddings: FloatArray | None = None,
    dev_embeddings: FloatArray | None = None,
    folds: int = FOLDS,
    calibration: LidCalibration | CrossCalibration | None = None,
    as_rows: bool = True,
) -> LongitudinalCurve:
    """What a speaker's first k trials disclose together.

    Args:
        matrix: the trials.
        dev: development trials: calibration, temperatures and the rank law come from them. Without
            it they come from the speakers of the other folds.
        style: as `calibrate`.
        longest: K; the median number of trials (at most 100) where not given. Speakers with fewer
            are left out, so that the same speakers stand behind every k.
        embeddings: shape (T, d), of the trials, for the rule ``embedding``.
        dev_embeddings: of the development trials; needed where `dev` and `embeddings` are given.
        folds: without `dev`.
        calibration: by `style`, of `dev` or across the speakers, where it was made already.
        as_rows: rows stand in the order of the streams they come from; else each speaker's trials
            are taken in an order drawn at random, which no order of the rows changes.

    Returns:
        the curve under every rule.

    Raises:
        UsageError: embeddings that do not fit, no speaker with K trials, or trials of one speaker
            and no `dev`.

    Example:
        >>> random = np.random.default_rng(0)
        >>> target = np.repeat(np.arange(20), 8)
        >>> scores = random.normal(size=(160, 20)) + 1.5 * (target[:, None] == np.arange(20))
        >>> curve = longitudinal(ScoreMatrix(scores, target))
        >>> curve.mean_bits("sum")[[0, -1]].round(1)
        array([1.4, 4.3])
    """
    if dev is not None and (embeddings is None) != (dev_embeddings is None):
        raise UsageError("give embeddings of the trials and of the development trials, or of none")
    sums = SpeakerSums.of(matrix, longest, LONGEST, embeddings, as_rows)
    if dev is not None:
        if not isinstance(calibration, LidCalibration):
            calibration = calibrate(dev, style)
        learnt = SpeakerSums.of(dev, None, LONGEST, dev_embeddings, as_rows)
        learners = np.ones(len(learnt.tested), dtype=bool)
        tempering = learnt.temper(calibration.row_weight(dev.population), learners)
        everyone = np.ones(len(sums.tested), dtype=bool)
        bits = sums.bits(calibration.row_weight(matrix.population), tempering, everyone)
        return _curve(sums, bits, [tempering.constant], [tempering.tau], [tempering.rho], "")
    crossed = (
        calibration
        if isinstance(calibration, CrossCalibration)
        else cross_calibrate(matrix, style, folds)
    )
    fold = crossed.fold[sums.rows[:, 0]]
    bits, found = {}, []
    for index, one in enumerate(crossed.calibrations):
        inside = fold == index
        if not inside.any():
            continue
        if inside.all():
            raise UsageError(
                f"{matrix.name}: only one fold of speakers has "
                f"{plural(len(sums.trials), 'trial')} each: "
                "give a dev matrix or a shorter curve"
            )
        weight = one.row_weight(matrix.population)
        tempering = sums.temper(weight, ~inside)
        found.append(tempering)
        for rule, values in sums.bits(weight, tempering, inside).items():
            bits.setdefault(rule, np.empty(sums.rows.shape))[inside] = values
    return _curve(
        sums,
        bits,
        [each.constant for each in found],
        [each.tau for each in found],
        [each.rho for each in found],
        f"cross-fitted over speakers, {plural(len(found), 'fold')}",
    )


def against_trials(
    matrix: ScoreMatrix,
    dev: ScoreMatrix | None = None,
    style: str | LidStyle = "paper",
    rule: str = "count",
    weights: FloatArray | None = None,
    longest: int | None = None,
) -> AgainstTrials:
    """Disclosure against the number of trials, beside straight and square-root growth.

    Args:
        matrix: the trials.
        dev: as `longitudinal`.
        style: as `calibrate`.
        rule: how trials are put together; ``count`` is calibrated at every k.
        weights: shape (B, S), from `resamples`, for limits.
        longest: as `longitudinal`.

    Returns:
        the curve; the guides start from its first point, and from 0 where that is negative.

    Raises:
        UsageError: as `longitudinal`, or an unknown rule.
    """
    return longitudinal(matrix, dev, style, longest).against_trials(rule, weights)


def _curve(
    sums: SpeakerSums,
    bits: Mapping[str, FloatArray],
    constant: list[float],
    tau: list[float],
    rho: list[float],
    note: str,
) -> LongitudinalCurve:
    return LongitudinalCurve(
        trials=sums.trials,
        tested=sums.tested,
        bits=bits,
        ceiling_bits=sums.matrix.ceiling_bits,
        temperature=float(np.mean(constant)),
        tau=float(np.mean(tau)),
        rho=float(np.mean(rho)),
        note=note,
    )
