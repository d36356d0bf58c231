"""SRD and LID one trial at a time, as river metrics: in `river.evaluate` or in any loop.

Both take a trial's true speaker and the scores of all speakers, a dictionary as from river's
``predict_proba_one`` or a row of a matrix. They read what `monitor.lab.evaluation.srd` and
`monitor.lab.evaluation.lid` read on the same trials; two that heard different trials add up.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from river.metrics.base import MultiClassMetric

from monitor.errors import UsageError
from monitor.lab.evaluation.lid import LidCalibration, LidStatistics
from monitor.lab.evaluation.srd import FittedRankModel
from monitor.maths.rank_models import fit
from monitor.maths.ranks import TIE_RULES, rank_histogram, rank_statistics
from monitor.types import FloatArray

_Scores: TypeAlias = Mapping[Any, float] | Sequence[float] | FloatArray
_SRD = ("mean_bits", "mean_bits_model", "idr")
_LID = ("alid_bits", "pdr", "ndr", "positive_bits", "negative_bits", "max_bits")
_LEAST = 1e-15
"""Least probability, as in river's own metrics: who says 0 is not off by infinitely many bits."""


class _Online(MultiClassMetric):  # type: ignore[misc]
    """Shared part of both: who is enrolled, and how a trial is read."""

    _fmt = ",.6f"

    def __init__(self, speakers: Iterable[Hashable] | None) -> None:
        self.speakers = None if speakers is None else tuple(speakers)
        self._known: dict[Hashable, None] = dict.fromkeys(self.speakers or ())

    @property
    def requires_labels(self) -> bool:
        """Not labels but probabilities of all speakers."""
        return False

    @property
    def bigger_is_better(self) -> bool:
        """More disclosure is less privacy."""
        return False

    @property
    def population(self) -> int:
        """N: the speakers given, or all that a trial has named so far."""
        return len(self._known)

    def __add__(self, other: object) -> Any:
        """Add the trials of both; beside another kind of metric, put both side by side."""
        if type(other) is not type(self):
            return super().__add__(other)
        assert isinstance(other, _Online)
        if self._get_params() != other._get_params():
            raise UsageError("metrics add up where they were made alike: same speakers and figure")
        both = copy.deepcopy(self)
        both._known.update(other._known)
        both._merge(other)
        return both

    def _merge(self, other: Any) -> None:
        raise NotImplementedError

    def _read(self, y_true: Hashable, y_pred: _Scores) -> tuple[FloatArray, int | None]:
        """Return the scores that were given, and which of them is the true speaker's."""
        if isinstance(y_pred, Mapping):
            names: Sequence[Hashable] = tuple(y_pred)
            scores = np.array(list(y_pred.values()), dtype=np.float64)
        else:
            scores = np.asarray(y_pred, dtype=np.float64)
            names = self.speakers or range(scores.size)
            if scores.shape != (len(names),):
                raise UsageError(f"a trial is a row of {len(names)} scores, or a dictionary")
        if not np.isfinite(scores).all():
            raise UsageError("a score is not a finite number: drop that trial")
        named = dict.fromkeys([*names, y_true])
        if self.speakers is None:
            self._known.update(named)
        elif not named.keys() <= self._known.keys():
            raise UsageError("a trial names a speaker who is not among those given")
        return scores, names.index(y_true) if y_true in names else None


class OnlineSRD(_Online):
    """Similarity rank disclosure as trials come in.

    Speakers that a model does not score yet share the last ranks.

    Args:
        speakers: names of all who are enrolled; without it, all that trials have named so far.
        ties: how a shared score is ranked: ``"spread"``, ``"optimistic"``, ``"pessimistic"`` or
            ``"mid"``.
        figure: what `get` gives: ``"mean_bits"`` (plug-in: biased up while trials are few),
            ``"mean_bits_model"`` (of the rank model) or ``"idr"``.

    Example:
        >>> metric = OnlineSRD(["ann", "bob", "cy", "dee"])
        >>> metric.update("ann", {"ann": 0.7, "bob": 0.1, "cy": 0.1, "dee": 0.1})
        >>> metric.update("cy", {"ann": 0.5, "bob": 0.2, "cy": 0.3, "dee": 0.0})
        >>> metric
        OnlineSRD: 1.
        >>> metric.histogram
        array([1., 1., 0., 0.])
    """

    def __init__(
        self,
        speakers: Iterable[Hashable] | None = None,
        ties: str = "spread",
        figure: str = "mean_bits",
    ) -> None:
        if ties not in TIE_RULES:
            raise UsageError(f"no tie rule {ties!r}: take one of {', '.join(TIE_RULES)}")
        super().__init__(speakers)
        self.ties, self.figure = ties, _chosen(figure, _SRD)
        # (better, tied); tied is 0 where the speaker was not scored, since N may still grow
        self._ranks: Counter[tuple[int, int]] = Counter()

    def update(self, y_true: Hashable, y_pred: _Scores, w: float = 1.0) -> None:
        """Take a trial: its speaker and everybody's score, which counts w times."""
        rank = self._rank(y_true, y_pred)
        self._ranks[rank] += w  # type: ignore[assignment]

    def revert(self, y_true: Hashable, y_pred: _Scores, w: float = 1.0) -> None:
        """Forget a trial that was taken, as river's rolling windows do."""
        rank = self._rank(y_true, y_pred)
        self._ranks[rank] -= w  # type: ignore[assignment]
        if self._ranks[rank] <= 0:
            del self._ranks[rank]

    @property
    def trials(self) -> float:
        """Count the trials taken."""
        return float(sum(self._ranks.values()))

    @property
    def histogram(self) -> FloatArray:
        """Ranks of the true speakers, shape (N,), index 0 is rank 1."""
        ranks = np.array(list(self._ranks), dtype=np.intp).reshape(-1, 2)
        tied = np.where(ranks[:, 1] > 0, ranks[:, 1], self.population - ranks[:, 0])
        counts = np.array(list(self._ranks.values()), dtype=np.float64)
        return rank_histogram(ranks[:, 0], tied, self.population, self.ties, counts)

    def rank_model(self) -> FittedRankModel:
        """Histogram, statistics and rank model of the trials so far."""
        histogram = self.histogram
        rank_model, trials = fit(histogram), self.trials
        return FittedRankModel(
            histogram, round(trials), self.ties, rank_statistics(histogram, trials), rank_model
        )

    def get(self) -> float:
        """Return the chosen figure; 0 before the first trial and among fewer than two speakers."""
        if not self._ranks or self.population < 2:
            return 0.0
        if self.figure == "mean_bits_model":
            return fit(self.histogram).mean_disclosure_bits(self.population)
        of = rank_statistics(self.histogram, self.trials)
        return of.mean_bits if self.figure == "mean_bits" else of.identification_rate

    def _rank(self, y_true: Hashable, y_pred: _Scores) -> tuple[int, int]:
        scores, place = self._read(y_true, y_pred)
        if place is None:
            return len(scores), 0
        own = scores[place]
        return int(np.count_nonzero(scores > own)), int(np.count_nonzero(scores == own))

    def _merge(self, other: OnlineSRD) -> None:
        self._ranks.update(other._ranks)


class OnlineLID(_Online):
    """Local information disclosure as trials come in.

    With a calibration the scores may be of any kind; a speaker who was not scored takes the lowest
    score of the row. Without one they are probabilities, as river's classifiers give them, and
    LID is ``log2(N p)`` with p at least 1e-15.

    Args:
        calibration: as from `monitor.lab.evaluation.lid.calibrate`; None for probabilities.
        speakers: as `OnlineSRD`.
        figure: what `get` gives: ``"alid_bits"``, ``"pdr"``, ``"ndr"``, ``"positive_bits"``,
            ``"negative_bits"`` or ``"max_bits"``.

    Example:
        >>> metric = OnlineLID(speakers=["ann", "bob"])
        >>> metric.update("ann", {"ann": 1.0, "bob": 0.0})
        >>> metric.update("bob", {"ann": 0.75, "bob": 0.25})
        >>> metric.statistics().positive, metric.statistics().negative
        (1.0, -1.0)
    """

    def __init__(
        self,
        calibration: LidCalibration | None = None,
        speakers: Iterable[Hashable] | None = None,
        figure: str = "alid_bits",
    ) -> None:
        super().__init__(speakers)
        self.calibration, self.figure = calibration, _chosen(figure, _LID)
        self._above = self._below = self._gained = self._lost = 0.0
        self._largest = -math.inf

    def update(self, y_true: Hashable, y_pred: _Scores, w: float = 1.0) -> None:
        """Take a trial: its speaker and everybody's score, which counts w times."""
        bits = self._bits(y_true, y_pred)
        self._count(bits, w)
        self._largest = max(bits, self._largest)

    def revert(self, y_true: Hashable, y_pred: _Scores, w: float = 1.0) -> None:
        """Forget a trial that was taken; LIDmax is then unknown where it was the largest."""
        bits = self._bits(y_true, y_pred)
        self._count(bits, -w)
        if bits >= self._largest:
            self._largest = math.nan

    def statistics(self) -> LidStatistics:
        """Compute `monitor.lab.evaluation.lid.statistics` of the trials so far."""
        trials = self._above + self._below
        if trials <= 0:
            raise UsageError("there is no trial to summarise")
        share = self._above / trials
        return LidStatistics(
            trials=round(trials),
            alid=(self._gained + self._lost) / trials,
            pdr=share,
            ndr=1.0 - share,
            positive=self._gained / self._above if self._above > 0 else None,
            negative=self._lost / self._below if self._below > 0 else None,
            largest=self._largest,
        )

    def get(self) -> float:
        """Return the chosen figure; 0 before the first trial, NaN where it does not exist."""
        if self._above + self._below <= 0:
            return 0.0
        figure_value = getattr(self.statistics(), _STATISTIC.get(self.figure, self.figure))
        return math.nan if figure_value is None else float(figure_value)

    def _bits(self, y_true: Hashable, y_pred: _Scores) -> float:
        scores, place = self._read(y_true, y_pred)
        if self.population < 2:
            return 0.0
        if self.calibration is None:
            total = float(scores.sum())
            if scores.size and (scores.min() < 0 or total > 1.0 + 1e-6):
                raise UsageError("these are no probabilities: give a calibration for such scores")
            own = 0.0 if place is None else float(scores[place])
            return math.log2(self.population * max(own, _LEAST))
        lowest = scores.min() if scores.size else 0.0
        row = np.concatenate([scores, np.full(self.population - scores.size, lowest)])
        column = scores.size if place is None else place
        return float(self.calibration.bits(row[None], np.array([column]))[0])

    def _count(self, bits: float, w: float) -> None:
        if bits > 0:
            self._above, self._gained = self._above + w, self._gained + w * bits
        else:
            self._below, self._lost = self._below + w, self._lost + w * bits

    def _merge(self, other: OnlineLID) -> None:
        self._above, self._below = self._above + other._above, self._below + other._below
        self._gained, self._lost = self._gained + other._gained, self._lost + other._lost
        largest = self._largest, other._largest
        self._largest = math.nan if math.isnan(sum(largest)) else max(largest)


_STATISTIC = {
    "alid_bits": "alid",
    "positive_bits": "positive",
    "negative_bits": "negative",
    "max_bits": "largest",
}


def _chosen(figure: str, among: tuple[str, ...]) -> str:
    if figure not in among:
        raise UsageError(f"no figure {figure!r}: take one of {', '.join(among)}")
    return figure
