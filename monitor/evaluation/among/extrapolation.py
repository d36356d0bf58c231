"""Four forms of how identification falls with the number of people, fitted to ranks.

Rates among random parts of the N enrolled follow from the ranks without a draw: which strangers are
left is hypergeometric. Each form is fitted to them, over again for every bootstrap replicate of
speakers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from monitor.crowds import MOST
from monitor.evaluation.linkage.figures import link_table
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.speaker_bootstrap import Sample, resampled
from monitor.evaluation.srd.replicates import resampled_histograms
from monitor.maths.estimate import Estimate
from monitor.maths.fitting import fit_many, mean_bits_of
from monitor.maths.identification import FORMS, fit_rates
from monitor.maths.quantiles import limits_of_each
from monitor.maths.ranks import rank_histogram
from monitor.maths.strangers import beta_mass, mean_bits, probit_mass
from monitor.types import BoolArray, FloatArray

__all__ = ["FAR", "FEWEST", "NARROW", "RANKED", "Extrapolation"]

FAR = 10
"""Times N that a bracket is supported at, however wide it is (docs/method.md section 10)."""
NARROW: Mapping[str, float] = {"share": 0.1, "bits": 1.0}
"""Farther off it is supported as long as it is no wider than this, by unit."""
FEWEST = 10
"""... and where so many speakers were missed at least once: without misses nothing falls, all forms
agree, and none of them knows better."""
RANKED = {"beta_binomial": beta_mass, "probit": probit_mass}
"""The forms that say where all ranks lie, and so what MeanD is; the others are of rank 1 alone."""
_REACH = 50
"""Forms are fitted among N / 50 people and more: what happens among few says little about many."""
_SIZES = 16
"""Of the parts of the N that they are fitted among."""
_STEPS = 8
"""A decade: how finely it is looked up to which crowd N supports a bracket."""
_EDGE = 1e-12


@dataclass(frozen=True)
class Extrapolation:
    """The four forms, fitted to the ranks of some trials.

    Attributes:
        histogram: shape (N,), of ranks, index 0 is rank 1.
        missed: how many speakers have a trial in which they do not come first.
        sample: what was resampled.
        replicates: shape (B, N), the histogram of each resample; None where nothing was.

    Example:
        >>> ranks = np.array([60.0, 12, 8, 5, 4, 3, 3, 2, 2, 1])
        >>> found = Extrapolation(ranks, 30, Sample(None, 40, 100))
        >>> for name, rates in found.rates(np.array([1000.0])).items():
        ...     print(name, rates.round(2))
        beta_binomial [0.22]
        probit [0.09]
        logit [0.08]
        pitman_yor [0.17]
    """

    histogram: FloatArray
    missed: int
    sample: Sample
    replicates: FloatArray | None = None
    _points: dict[str, tuple[FloatArray, FloatArray | None]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, matrix: ScoreMatrix, sample: Sample, ties: str = "spread") -> Extrapolation:
        """Of the ranks of a matrix.

        Args:
            matrix: the trials.
            sample: what they are resampled over.
            ties: one of `monitor.maths.ranks.TIE_RULES`.
        """
        weights = sample.weights
        return cls(
            rank_histogram(matrix.better, matrix.tied, matrix.population, ties),
            np.unique(matrix.owner[matrix.better + matrix.tied > 1]).size,
            sample,
            None if weights is None else resampled_histograms(matrix, weights, ties),
        )

    @property
    def speakers(self) -> int:
        """N."""
        return int(self.histogram.size)

    @cached_property
    def sizes(self) -> FloatArray:
        """Shape (K,): of the random parts of the N that forms are fitted among."""
        least = max(2.0, self.speakers / _REACH)
        return np.unique(np.rint(np.geomspace(least, self.speakers, _SIZES)))

    def measured(self, sizes: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """IdR expected among n people drawn from the N, the right one among them.

        Args:
            sizes: shape (K,), n, whole numbers from 2 to N.

        Returns:
            shape (K,), and (B, K) for the resamples.
        """
        table = self._table(sizes)
        own = self.histogram @ table / self.histogram.sum()
        if self.replicates is None:
            return _share(own), None
        return _share(own), _share(
            self.replicates @ table / self.replicates.sum(axis=1, keepdims=True)
        )

    def _table(self, sizes: FloatArray) -> FloatArray:
        """IdR by rank among the N, shape (N, K)."""
        return link_table(np.arange(self.speakers), self.speakers, sizes.astype(np.intp))

    def fitted(self, name: str) -> tuple[FloatArray, FloatArray | None]:
        """Parameters of a form, shape (1, 2), and (B, 2) for the resamples."""
        if name not in self._points:
            own, drawn = self.measured(self.sizes)
            point = fit_rates(FORMS[name], self.sizes, own[None])
            again = None if drawn is None else fit_rates(FORMS[name], self.sizes, drawn, point)
            self._points[name] = point, again
        return self._points[name]

    def rates(self, sizes: FloatArray) -> dict[str, FloatArray]:
        """IdR by each form.

        Args:
            sizes: shape (K,), n, any number of people.

        Returns:
            shape (K,) each, by name of the form.
        """
        return {name: form.rate(self.fitted(name)[0], sizes)[0] for name, form in FORMS.items()}

    def limits(self, name: str, sizes: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Over speakers, of IdR by a form; shape (K,) each, None where nothing was resampled.

        Student's on the logit scale, and no narrower than percentiles, which see where a fit is
        pushed to an end of its range. As rates fall, neither limit lies above that among the N.
        Where ranks are not told from no evidence, they reach to 1 / n. Where hardly anybody was
        missed, resamples do not vary, and how steeply a rate falls is not seen: the lower limit is
        then no higher than what the form says if as many as its lower limit among the N allows
        were missed, and each by one stranger alone.
        """
        from scipy.special import expit, logit

        points, weights = self.fitted(name)[1], self.sample.weights
        if points is None or weights is None:
            return None
        at, among = self.measured(np.array([float(self.speakers)]))
        assert among is not None
        (known,) = self.measured_limits(at, among)
        own, drawn = self.rates(sizes)[name], FORMS[name].rate(points, sizes)
        on_logit = [logit(np.clip(each, _EDGE, 1 - _EDGE)) for each in (own, drawn)]
        low, high = expit([each.t_limits() for each in self._estimates(*on_logit)]).T
        least, most = limits_of_each(drawn[resampled(weights)].T).T
        low = np.minimum(np.minimum(low, least), known[0])
        high = np.minimum(np.maximum(high, most), known[1])
        if not self.seen_to_fall:
            low = np.minimum(low, FORMS[name].rate(self.steepest(name), sizes)[0])
        if self.sample.nothing:
            low, high = np.minimum(low, 1 / sizes), np.maximum(high, 1 / sizes)
        return np.minimum(low, own), np.maximum(high, own)

    def steepest(self, name: str) -> FloatArray:
        """Parameters of a form, shape (1, 2), if rank 1 became rank 2 as often as limits allow."""
        at, among = self.measured(np.array([float(self.speakers)]))
        assert among is not None
        ((low, _),) = self.measured_limits(at, among)
        ranks = np.zeros(self.speakers)
        ranks[:2] = low, 1.0 - low
        rates = _share(ranks @ self._table(self.sizes))
        return fit_rates(FORMS[name], self.sizes, rates[None])

    def measured_limits(self, rates: FloatArray, drawn: FloatArray) -> list[tuple[float, float]]:
        """Over speakers, of rates that `measured` gives: (K,) and (B, K)."""
        return [each.share_limits(0.0, 1.0) for each in self._estimates(rates, drawn)]

    def _estimates(self, values: FloatArray, drawn: FloatArray) -> Iterator[Estimate]:
        assert self.sample.weights is not None
        whole = resampled(self.sample.weights)
        for value, each in zip(values.tolist(), drawn.T, strict=True):
            yield Estimate(value, each[whole], each[~whole], self.sample.units, self.sample.trials)

    def bracket(self, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """IdR from the lowest to the highest of the forms, with their limits; shape (K,) each."""
        ends = [
            self.limits(name, sizes) or (rate, rate) for name, rate in self.rates(sizes).items()
        ]
        low, high = (np.array(each) for each in zip(*ends, strict=True))
        return low.min(axis=0), high.max(axis=0)

    @cached_property
    def supported(self) -> int:
        """Up to how many people N supports the bracket of IdR: see `FAR`, `NARROW`, `FEWEST`."""
        least = min(FAR * self.speakers, MOST)
        if not self.narrows:
            return least
        steps = int(np.ceil(np.log10(MOST / least) * _STEPS))
        sizes = np.rint(np.geomspace(least, MOST, steps + 1))
        low, high = self.bracket(sizes)
        wide = np.flatnonzero(high - low > NARROW["share"])
        return int(sizes[wide[0] - 1]) if wide.size and wide[0] else least if wide.size else MOST

    @property
    def falls(self) -> bool:
        """Whether there are two sizes to see a rate fall between: not of N = 2."""
        return self.sizes.size > 1

    @property
    def seen_to_fall(self) -> bool:
        """Whether enough were missed to see how steeply a rate falls: see `FEWEST`."""
        return self.missed >= FEWEST

    @property
    def narrows(self) -> bool:
        """Whether a narrow bracket says something: it has limits, and a rate is seen to fall."""
        return self.replicates is not None and self.seen_to_fall

    def mean_bits(self, name: str, people: int) -> tuple[float, FloatArray | None]:
        """MeanD among M by a form: what the law of the ranks says at N, and what the form adds.

        Args:
            name: of `RANKED`.
            people: M.

        Returns:
            bits, and shape (B,) for the resamples.
        """
        own, drawn = self.at_n(self.speakers)
        point, points = self.fitted(name)
        total = own + float(self._gained(name, point, people)[0])
        if drawn is None or points is None:
            return total, None
        return total, drawn + self._gained(name, points, people)

    def least_bits(self, name: str, people: int, low: float) -> float:
        """MeanD among M by a form where rates fall as steeply as limits allow, see `limits`.

        Args:
            name: of `RANKED`.
            people: M.
            low: the lower limit of MeanD among the N.
        """
        return low + float(self._gained(name, self.steepest(name), people)[0])

    def _gained(self, name: str, points: FloatArray, people: int) -> FloatArray:
        """Bits from N to M; more than ``log2(M / N)`` nobody can gain."""
        mass = RANKED[name](points)
        gained = mean_bits(mass, people) - mean_bits(mass, self.speakers)
        return np.clip(gained, 0.0, np.log2(people / self.speakers))

    def at_n(self, people: int) -> tuple[float, FloatArray | None]:
        """MeanD of the law that is fitted to the ranks, at M up to N; likewise."""
        own = mean_bits_of(*fit_many(self.histogram[None]), people)
        return float(own[0]), None if self.replicates is None else mean_bits_of(*self._laws, people)

    @cached_property
    def _laws(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        assert self.replicates is not None
        return fit_many(self.replicates)


def _share(rates: FloatArray) -> FloatArray:
    return np.clip(rates, 0.0, 1.0)  # but for rounding
