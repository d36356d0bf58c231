"""Identification among more people than were scored: four forms, and the bracket over them.

Measures: IdR and MeanD among M people, extrapolated from the rates among subsets of the N enrolled.
The bracket spans all forms and their limits over speakers, and is supported or not.

Source: docs/method.md section 10. Accuracy: benchmarks/results/crowd.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from monitor.crowds import MOST
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.curves import CrowdRates, Drawing, Line, paint_crowd
from monitor.lab.evaluation.family import (
    EvaluationContext,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
    add_limits,
    share_aloud,
)
from monitor.lab.evaluation.linkage import link_table
from monitor.lab.evaluation.resampling import Sample, find_resamples
from monitor.lab.evaluation.srd import resampled_histograms
from monitor.lab.report.model import Figure
from monitor.maths.identification import FORMS, beta_mass, fit_rates, mean_bits, probit_mass
from monitor.maths.rank_models import fit_many, mean_bits_of
from monitor.maths.ranks import rank_histogram
from monitor.maths.statistics import Estimate, limits_of_each
from monitor.phrases import plural
from monitor.types import BoolArray, FloatArray

# Rates among random subsets of the N enrolled follow from the ranks (hypergeometric), without
# draws. Each form is fitted to them, and again for every bootstrap replicate of speakers.
FAR = 10  # multiple of N up to which a bracket is always supported (docs/method.md section 10)
NARROW: Mapping[str, float] = {"share": 0.1, "bits": 1.0}
"""Maximum width of a supported bracket beyond that, by unit."""
FEWEST = 10
"""Minimum speakers with a miss. Without misses the rate does not fall, and all forms agree."""
RANKED = {"beta_binomial": beta_mass, "probit": probit_mass}
"""Forms that model all ranks and so MeanD. The others model rank 1 only."""
_REACH = 50
"""Forms are fitted among at least N / 50 people, because small crowds predict large ones badly."""
_SIZES = 16  # number of subset sizes that the forms are fitted to
_STEPS = 8  # steps per decade in the search for the largest supported crowd
_EDGE = 1e-12


@dataclass(frozen=True)
class Extrapolation:
    """The four forms, fitted to the ranks of some trials.

    Example:
        >>> ranks = np.array([60.0, 12, 8, 5, 4, 3, 3, 2, 2, 1])
        >>> found = Extrapolation(ranks, 30, Sample(None, 40, 100)).rates(np.array([1000.0]))
        >>> [round(float(rate[0]), 2) for rate in found.values()]
        [0.22, 0.09, 0.08, 0.17]
    """

    histogram: FloatArray  # counts of ranks, shape (N,); index 0 is rank 1
    missed: int  # number of speakers who do not rank first in some trial
    sample: Sample  # the resampled speakers
    # the histogram of each resample, shape (B, N); None without resamples
    replicates: FloatArray | None = None
    _points: dict[str, tuple[FloatArray, FloatArray | None]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def from_matrix(
        cls, matrix: ScoreMatrix, sample: Sample, ties: str = "spread"
    ) -> Extrapolation:
        """Fit the ranks of a matrix, by one of `monitor.maths.ranks.TIE_RULES`."""
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
        """Sizes of the subsets of the N to which forms are fitted, shape (K,)."""
        smallest = max(2.0, self.speakers / _REACH)
        return np.unique(np.rint(np.geomspace(smallest, self.speakers, _SIZES)))

    def measured(self, sizes: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Compute expected IdR in random subsets of the N, (K,), and on resamples, (B, K)."""
        table = self._table(sizes)
        estimate = _share(self.histogram @ table / self.histogram.sum())
        if self.replicates is None:
            return estimate, None
        replicates = self.replicates @ table / self.replicates.sum(axis=1, keepdims=True)
        return estimate, _share(replicates)

    def _table(self, sizes: FloatArray) -> FloatArray:
        """Compute IdR in subsets, by rank among the N, shape (N, K)."""
        return link_table(np.arange(self.speakers), self.speakers, sizes.astype(np.intp))

    def fitted(self, name: str) -> tuple[FloatArray, FloatArray | None]:
        """Fit a form: parameters of shape (1, 2), and (B, 2) for the resamples."""
        if name not in self._points:
            form, (estimate, replicates) = FORMS[name], self.measured(self.sizes)
            point = fit_rates(form, self.sizes, estimate[None])
            again = None if replicates is None else fit_rates(form, self.sizes, replicates, point)
            self._points[name] = point, again
        return self._points[name]

    def rates(self, sizes: FloatArray) -> dict[str, FloatArray]:
        """Compute IdR by each form in crowds of these sizes, shape (K,)."""
        return {name: form.rate(self.fitted(name)[0], sizes)[0] for name, form in FORMS.items()}

    def limits(self, name: str, sizes: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Compute the interval of IdR by a form, (K,) each; None without resamples.

        It is Student's on the logit scale, and at least as wide as percentiles, which reflect fits
        at an end of their range.
        """
        from scipy.special import expit, logit

        points, weights = self.fitted(name)[1], self.sample.weights
        if points is None or weights is None:
            return None
        limits_at_n = self._limits_at_n
        rates, replicates = self.rates(sizes)[name], FORMS[name].rate(points, sizes)
        on_logit = [logit(np.clip(estimate, _EDGE, 1 - _EDGE)) for estimate in (rates, replicates)]
        low, high = expit([estimate.t_limits() for estimate in self._estimates(*on_logit)]).T
        lowest, highest = limits_of_each(replicates[find_resamples(weights)].T).T
        low = np.minimum(np.minimum(low, lowest), limits_at_n[0])
        high = np.minimum(np.maximum(high, highest), limits_at_n[1])
        if not self.seen_to_fall:
            low = np.minimum(low, FORMS[name].rate(self.steepest[name], sizes)[0])
        if self.sample.nothing:
            low, high = np.minimum(low, 1 / sizes), np.maximum(high, 1 / sizes)
        return np.minimum(low, rates), np.maximum(high, rates)

    @cached_property
    def steepest(self) -> dict[str, FloatArray]:
        """Each form, (1, 2), fitted to the lower limit of IdR with all misses at rank 2."""
        low, _ = self._limits_at_n
        ranks = np.zeros(self.speakers)
        ranks[:2] = low, 1.0 - low
        rates = _share(ranks @ self._table(self.sizes))
        return {name: fit_rates(form, self.sizes, rates[None]) for name, form in FORMS.items()}

    @cached_property
    def _limits_at_n(self) -> tuple[float, float]:
        """Interval of IdR among the N, over speakers."""
        rates, replicates = self.measured(np.array([float(self.speakers)]))
        assert replicates is not None
        (limits,) = self.measured_limits(rates, replicates)
        return limits

    def measured_limits(
        self, rates: FloatArray, replicates: FloatArray
    ) -> list[tuple[float, float]]:
        """Compute intervals over speakers from the result of `measured`, (K,) and (B, K)."""
        return [estimate.share_limits(0.0, 1.0) for estimate in self._estimates(rates, replicates)]

    def _estimates(self, values: FloatArray, replicate_rows: FloatArray) -> Iterator[Estimate]:
        assert self.sample.weights is not None
        is_resample = find_resamples(self.sample.weights)
        for value, replicates in zip(values.tolist(), replicate_rows.T, strict=True):
            yield Estimate(
                value, replicates[is_resample], replicates[~is_resample], self.sample.units,
                self.sample.trials,
            )  # fmt: skip

    def bracket(self, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the lowest and highest IdR of all forms and their limits, shape (K,) each."""
        ends = [self.limits(name, sizes) or (idr, idr) for name, idr in self.rates(sizes).items()]
        low, high = (np.array(limits) for limits in zip(*ends, strict=True))
        return low.min(axis=0), high.max(axis=0)

    @cached_property
    def supported(self) -> int:
        """Largest crowd for which N supports the bracket of IdR (`FAR`, `NARROW`, `FEWEST`)."""
        minimum = min(FAR * self.speakers, MOST)
        if not self.narrows:
            return minimum
        steps = int(np.ceil(np.log10(MOST / minimum) * _STEPS))
        sizes = np.rint(np.geomspace(minimum, MOST, steps + 1))
        low, high = self.bracket(sizes)
        wide = np.flatnonzero(high - low > NARROW["share"])
        return int(sizes[wide[0] - 1]) if wide.size and wide[0] else minimum if wide.size else MOST

    @property
    def falls(self) -> bool:
        """True if there are two sizes between which rates can fall; not for N = 2."""
        return self.sizes.size > 1

    @property
    def seen_to_fall(self) -> bool:
        """True if enough speakers missed to show how steeply rates fall (`FEWEST`)."""
        return self.missed >= FEWEST

    @property
    def narrows(self) -> bool:
        """True if a narrow bracket is evidence: it has limits, and the rate falls."""
        return self.replicates is not None and self.seen_to_fall

    def mean_bits(self, name: str, people: int) -> tuple[float, FloatArray | None]:
        """Compute MeanD among M: the rank model's at N, plus the gain by a form of `RANKED`."""
        estimate, replicates = self.at_n(self.speakers)
        point, points = self.fitted(name)
        total = estimate + float(self.gained(name, point, people)[0])
        if replicates is None or points is None:
            return total, None
        return total, replicates + self.gained(name, points, people)

    def gained(self, name: str, points: FloatArray, people: int) -> FloatArray:
        """Compute bits gained from N to M people, at most ``log2(M / N)``."""
        mass = RANKED[name](points)
        gained = mean_bits(mass, people) - mean_bits(mass, self.speakers)
        return np.clip(gained, 0.0, np.log2(people / self.speakers))

    def at_n(self, people: int) -> tuple[float, FloatArray | None]:
        """Compute MeanD of the fitted rank model at M up to N, and on resamples, (B,)."""
        estimate = float(mean_bits_of(*fit_many(self.histogram[None]), people)[0])
        if self.replicates is None:
            return estimate, None
        return estimate, mean_bits_of(*self._rank_models, people)

    @cached_property
    def _rank_models(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        assert self.replicates is not None
        return fit_many(self.replicates)


def _share(rates: FloatArray) -> FloatArray:
    return np.clip(rates, 0.0, 1.0)  # removes rounding errors


_LABELS = {"idr": "IdR", "meand": "MeanD"}
_FORMS = {"idr": tuple(FORMS), "meand": tuple(RANKED)}


def keys(among: Iterable[int]) -> tuple[str, ...]:
    """Return the keys of all figures for these numbers of people."""
    figure_keys = ["among.supported"]
    for people in among:
        for kind, forms in _FORMS.items():
            names = (kind, *(f"{kind}_{form}" for form in forms))
            figure_keys += [f"among.{name}_{people}" for name in names]
    return tuple(figure_keys)


def figures(
    forecast: Extrapolation, among: Iterable[int], ties: str = "spread"
) -> Iterator[Figure]:
    """Compute IdR and MeanD among M people, with limits: by each form, and the bracket over all.

    MeanD among M is that of the rank model at N, plus a form's gain from N to M. The bracket of
    each M has limits and the text ``supported`` or ``unsupported``, but no value.
    """
    sizes = [people for people in among if people <= forecast.speakers or forecast.falls]
    if any(people > forecast.speakers for people in sizes):
        note = f"{FAR} times the enrolled, or more while the bracket of IdR stays narrow"
        yield FAMILY.figure("supported", float(forecast.supported), note=note, ties=ties)
    for people in sizes:
        compute = _measured if people <= forecast.speakers else _extrapolated
        yield from compute(forecast, people, ties)


def _measured(forecast: Extrapolation, people: int, ties: str) -> Iterator[Figure]:
    (rate,), rates = forecast.measured(np.array([float(people)]))
    bits, more = forecast.at_n(people)
    replicates = None if rates is None else rates[:, 0]
    idr = _figure("idr", "", people, float(rate), replicates, ties)
    idr = replace(idr, note="expected in a random subset of the enrolled; not extrapolated")
    meand = _figure("meand", "", people, bits, more, ties)
    meand = replace(meand, note="from the rank model fitted to the ranks; not extrapolated")
    yield from add_limits([idr, meand], forecast.sample)


def _extrapolated(forecast: Extrapolation, people: int, ties: str) -> Iterator[Figure]:
    at = np.array([float(people)])
    idr: list[Figure] = []
    for name, form in FORMS.items():
        points, ends = forecast.fitted(name)[1], forecast.limits(name, at)
        replicates = None if points is None else form.rate(points, at)[:, 0]
        figure = _figure("idr", name, people, float(forecast.rates(at)[name][0]), replicates, ties)
        if ends is not None:
            figure = replace(figure, low=float(ends[0][0]), high=float(ends[1][0]))
        idr.append(figure)
    meand = [
        _figure("meand", name, people, *forecast.mean_bits(name, people), ties) for name in RANKED
    ]
    for kind, forms in (("idr", idr), ("meand", meand)):
        with_limits = add_limits(forms, forecast.sample)
        if kind == "meand" and forecast.replicates is not None and not forecast.seen_to_fall:
            with_limits = tuple(_steepest(forecast, people, figure) for figure in with_limits)
        yield (bracket := _bracket(forecast, kind, people, with_limits))
        alone = "" if bracket.text == "supported" else "one of several forms: quote the bracket"
        for bounded in with_limits:
            yield replace(bounded, note="; ".join(filter(None, (bounded.note, alone))))


def _steepest(forecast: Extrapolation, people: int, figure: Figure) -> Figure:
    """Lower the limit of MeanD, for a rate that is not seen to fall."""
    bits, replicates = forecast.at_n(forecast.speakers)
    at_n = _figure("meand", "", forecast.speakers, bits, replicates, "")
    (measured,) = add_limits([at_n], forecast.sample)
    form = figure.key.removeprefix("among.meand_").rsplit("_", 1)[0]
    if measured.low is None or figure.low is None:
        return figure
    lower_limit = measured.low + float(forecast.gained(form, forecast.steepest[form], people)[0])
    return replace(figure, low=min(figure.low, lower_limit))


def _figure(
    kind: str, form: str, people: int, value: float | None, replicates: FloatArray | None, ties: str
) -> Figure:
    ends = (1.0, 1 / people) if kind == "idr" else (float(np.log2(people)), 0.0)
    return FAMILY.figure(
        "_".join(filter(None, (kind, form, str(people)))), value, replicates,
        label=f"{_LABELS[kind]} among {people:,}" + (f", {FORMS[form].label}" if form else ""),
        ceiling=ends[0], floor=ends[1], ties=ties,
    )  # fmt: skip


def _bracket(forecast: Extrapolation, kind: str, people: int, forms: Sequence[Figure]) -> Figure:
    """Make the bracket from the lowest to the highest value or limit of the forms."""
    low = min(end for form in forms for end in (form.low, form.value) if end is not None)
    high = max(end for form in forms for end in (form.high, form.value) if end is not None)
    bracket = _figure(kind, "", people, None, None, forms[0].ties)
    wide = high - low > NARROW[bracket.unit]
    if kind == "idr":
        holds = people <= forecast.supported
    else:
        holds = people <= FAR * forecast.speakers or (forecast.narrows and not wide)
    included = ", including their intervals" if forecast.replicates is not None else ""
    note = f"bracket over {len(forms)} forms{included}"
    if not holds:
        note += (
            f"; not supported by {forecast.speakers:,} enrolled people (the crowd is more than "
            f"{FAR} times as large"
        )
        note += f", and {_why(forecast, bracket.unit)})"
    text = "supported" if holds else "unsupported"
    return replace(bracket, note=note, low=low, high=high, text=text)


def _why(forecast: Extrapolation, unit: str) -> str:
    if forecast.replicates is None:
        return "there are no resamples"
    if forecast.missed < FEWEST:
        return f"only {plural(forecast.missed, 'speaker')} ever missed, and {FEWEST} are needed"
    if unit == "share":
        return (
            f"the bracket of a smaller crowd is already wider than {100 * NARROW[unit]:.0f} "
            "percentage points"
        )
    return f"the bracket is wider than {NARROW[unit]:g} bit"


def curve(forecast: Extrapolation, among: Iterable[int]) -> CrowdRates | None:
    """Compute the curve of IdR by the number of people; None if no crowd exceeds N."""
    largest = max(among, default=0)
    if largest <= forecast.speakers or not forecast.falls:
        return None
    people = np.rint(np.geomspace(forecast.sizes[0], largest, 60))
    people = np.unique(np.append(people, float(forecast.speakers)))
    beyond = people[people >= forecast.speakers]
    rates, (low, high) = forecast.rates(people), forecast.bracket(beyond)
    measured, replicates = forecast.measured(forecast.sizes)
    ends = (None, None)
    if replicates is not None:
        ends = tuple(np.array(forecast.measured_limits(measured, replicates)).T)
    return CrowdRates(
        Line(forecast.sizes, measured, *ends),
        {FORMS[name].label: Line(people, rate) for name, rate in rates.items()},
        Line(beyond, np.sqrt(low * high), low, high),
        float(forecast.speakers),
        float(forecast.supported),
    )


def notes(forecast: Extrapolation, among: Iterable[int]) -> Iterator[str]:
    """Explain how to read the figures, one sentence each."""
    if max(among, default=0) <= forecast.speakers:
        return
    if not forecast.falls:
        yield (
            f"N = {forecast.speakers} is too small to extrapolate, because it cannot show how "
            "rates fall."
        )
        return
    yield (
        f"For crowds larger than the {forecast.speakers:,} enrolled, four forms are fitted to "
        f"the rates among {forecast.sizes[0]:.0f} to {forecast.speakers:,} of them. If they "
        "differ, quote the bracket, never one form."
    )


def _compute(context: EvaluationContext) -> FamilyResult:
    ties, sizes = context.settings.ties, tuple(map(int, context.settings.among))
    forecast = Extrapolation.from_matrix(context.ranked, context.sample(pooled=False), ties)
    entries, lines = tuple(figures(forecast, sizes, ties)), {"crowd": curve(forecast, sizes)}
    return FamilyResult(entries, tuple(notes(forecast, sizes)), curves=lines)


def _meaning(figures_by_key: Mapping[str, Figure], speakers: int) -> Iterator[str]:
    """Describe first ranks in the largest requested crowd."""
    keys = [key for key in figures_by_key if _IDR.matches(key)]
    if not keys or not (figure := figures_by_key[keys[-1]]).text:
        return
    low, high = figure.limits
    if low is None or high is None:
        return
    caution = f" {speakers:,} enrolled people do not support a crowd of this size."
    yield (
        f"Among {int(keys[-1].rsplit('_', 1)[1]):,} people, the correct one would rank first in "
        f"{share_aloud(low)} to {share_aloud(high)} of the trials, by four extrapolations."
        + caution
        * (figure.text == "unsupported")
    )


_IDR = FigureEntry(
    "among.idr_M", "among.idr_{people}",
    "fraction of trials in which the correct one of M people ranks first (bracket)",
    LimitRule("share"), unit="share",
)  # fmt: skip

FAMILY = Family(
    key="among",
    position=80,
    title="Among more people than were scored",
    caveat="The data cannot decide between the forms for crowds far larger than the scored one. "
           "Quote the bracket and whether it is supported, never one form. Intervals assume "
           "speakers like these. Relatives, or people with one accent or microphone, are not a "
           "random crowd.",
    needs=("matrix", "among"),
    figures=(
        FigureEntry("among.supported", "among.supported",
                    "largest crowd for which the bracket of idr is supported", LimitRule("given"),
                    label="largest crowd supported for IdR", unit="count"),
        _IDR,
        FigureEntry("among.idr_FORM_M", "among.idr_{form}_{people}",
                    "the same by one form: beta_binomial, probit, logit or pitman_yor",
                    LimitRule("given"), unit="share"),
        FigureEntry("among.meand_M", "among.meand_{people}",
                    "bits that a trial discloses among M people (bracket)", LimitRule("share"),
                    unit="bits"),
        FigureEntry("among.meand_FORM_M", "among.meand_{form}_{people}",
                    "the same by one form: beta_binomial or probit", LimitRule("share"),
                    unit="bits"),
    ),
    compute=_compute,
    main=("among.supported", "among.idr_{people}", "among.meand_{people}"),
    option="--among M",
    finds_limits=True,
    drawings=(
        Drawing("crowd", "Among more people than were scored",
                "Dots are measured among random subsets of the enrolled. Lines are four forms "
                "fitted to the dots, which diverge in large crowds. The shaded bracket spans "
                "them with 95 % intervals over speakers. Beyond the vertical line it is pale and "
                "unsupported.", paint_crowd),
    ),
    meaning=_meaning,
)  # fmt: skip
