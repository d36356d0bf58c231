"""Families of metrics: their context, their declaration, and the limits of their figures.

Each module in `MODULES` declares one `Family` as ``FAMILY``. Reports, pages, ``--figures`` and
limits use only these declarations, through `families`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np

from monitor import crowds
from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import Comparisons, Roles, ScoreMatrix
from monitor.lab.evaluation.counts import ScoreCounts
from monitor.lab.evaluation.curves import Drawing
from monitor.lab.evaluation.resampling import (
    Sample,
    find_resamples,
    leaving_out,
    pooled_leaving_out,
    pooled_resamples,
    resamples,
)
from monitor.lab.report.model import Figure
from monitor.maths.composition import DELTA
from monitor.maths.statistics import REPLICATES, Estimate
from monitor.types import FloatArray


def finite_value(figure: Figure | None) -> float | None:
    """Return the value of a figure; None if missing or infinite."""
    value = None if figure is None else figure.value
    return value if value is not None and math.isfinite(value) else None


def share_aloud(value: float) -> str:
    """Format a share for reading aloud.

    Example:
        >>> [share_aloud(value) for value in (0.279, 0.01, 0.998, 0.00012, 0.0, 1.0)]
        ['28 %', '1 %', '99.8 %', '0.012 %', '0 %', '100 %']
    """
    percent = 100 * value
    if 0 < percent < 10 or 99 < percent < 100:
        digits = 2 if percent < 10 else 3
        return f"{percent:.{digits}g} %"
    return f"{percent:.0f} %"


Need: TypeAlias = Literal["matrix", "pool", "among", "epsilon"]
"""Requirement of a family: complete trials, any scores, crowd sizes, or a declared epsilon."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class EvaluationSettings:
    """Settings of an evaluation.

    Attributes:
        replicates: number B of resamples of speakers, for intervals; 0 for no intervals.
        seed: seed of the resamples. Systems with the same seed and speakers are compared in pairs.
        ties: SRD's rule for equal scores, one of `monitor.maths.ranks.TIE_RULES`.
        roles: whether trials and enrolled speech were anonymised.
        epsilon: epsilon declared for one trial, in nats. It adds the total over several trials to
            the report.
        delta: probability with which bounds on epsilon may fail.
        among: crowd sizes for which IdR and MeanD are added (`monitor.lab.evaluation.among`).
        only: keys of the families to compute, such as ``"srd"``; None for all.

    Raises:
        UsageError: if a value is invalid.
    """

    replicates: int = REPLICATES
    seed: int = 0
    ties: str = "spread"
    roles: Roles | None = None
    epsilon: float | None = None
    delta: float = DELTA
    among: Collection[float] = ()
    only: Collection[str] | None = None

    def __post_init__(self) -> None:
        if self.replicates < 0:
            raise UsageError(f"replicates={self.replicates}: give 0 or more")
        if unknown := sorted(set(self.only or ()) - {family.key for family in families()}):
            raise UsageError(f"only={unknown[0]!r}: unknown family of metrics")
        if self.among:
            object.__setattr__(self, "among", crowds.sizes(self.among))


@dataclass(frozen=True)
class EvaluationContext:
    """The scores of one system, how they are resampled, and the settings of the evaluation."""

    comparisons: Comparisons
    # trials compared with every enrolled speaker, for ranks; None without such trials
    matrix: ScoreMatrix | None
    pool: Comparisons | ScoreMatrix  # all mated and non-mated scores
    # weights of the speakers with trials in the matrix, shape (B + J, S): B bootstrap replicates,
    # then J that leave some out. None without resampling.
    weights: FloatArray | None = None
    pool_weights: FloatArray | None = None  # the same for the people of the pool
    dev: ScoreMatrix | None = None  # scores of other speakers, to calibrate on
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    nothing: bool = False  # whether a family found the scores indistinguishable from no evidence
    _shared: dict[object, object] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_scores(
        cls,
        scores: ScoreMatrix | Comparisons,
        settings: EvaluationSettings,
        dev: ScoreMatrix | None = None,
    ) -> EvaluationContext:
        """Resample the speakers of comparisons of any kind."""
        every = Comparisons.all_of(scores) if isinstance(scores, ScoreMatrix) else scores
        matrix, pool = every.matrix, every if every.incomplete else every.matrix or every
        weights = pool_weights = None
        replicates, seed = settings.replicates, settings.seed
        if replicates > 0 and np.unique(pool.owner).size > 1:
            resampled = pooled_resamples(pool, replicates, seed)
            pool_weights = np.concatenate([resampled, pooled_leaving_out(pool)])
        if replicates > 0 and matrix is not None and len(matrix.tested) > 1:
            resampled = resamples(matrix, replicates, seed)
            weights = np.concatenate([resampled, leaving_out(matrix.people)])
        return cls(every, matrix, pool, weights, pool_weights, dev, settings)

    def has(self, need: Need) -> bool:
        """Return whether a family's requirement is met."""
        return {
            "matrix": self.matrix is not None,
            "pool": True,
            "among": bool(self.settings.among),
            "epsilon": self.settings.epsilon is not None,
        }[need]

    def once(self, make: Callable[[EvaluationContext], _T]) -> _T:
        """Compute a result that families share, when the first family needs it."""
        if make not in self._shared:
            self._shared[make] = make(self)
        return cast("_T", self._shared[make])

    @property
    def ranked(self) -> ScoreMatrix:
        """`matrix`, for families that need one."""
        assert self.matrix is not None
        return self.matrix

    @property
    def counts(self) -> ScoreCounts:
        """Counts of the pool, and of its resamples."""
        return self.once(_counts)

    def sample(self, pooled: bool) -> Sample:
        """Return the resampled speakers of figures of the pool, or of ranks."""
        if pooled:
            units, trials = np.unique(self.pool.owner).size, self.pool.mated.size
            return Sample(self.pool_weights, units, trials, self.nothing)
        matrix = self.ranked
        return Sample(self.weights, len(matrix.tested), matrix.trials, self.nothing)


def _counts(context: EvaluationContext) -> ScoreCounts:
    return ScoreCounts.from_scores(context.pool, context.pool_weights)


_VALUES = {"form": "[a-z][a-z_]*"}
"""Patterns of the names in braces in a key; a number or ``all`` by default."""
_NUMBER = r"(?:\d[\d.e+-]*|all)"


@dataclass(frozen=True)
class LimitRule:
    """Rule that finds the limits of a figure, as simulation supports (docs/limits.md)."""

    # ``"share"`` is for a fraction of its range. ``"fitted"`` also removes the bias of a
    # fit to the same scores. ``"signed"`` is for a figure that can be negative. The others are
    # ``"t"``, ``"given"`` by its family, ``"derived"`` from another figure, and ``"none"``.
    method: Literal["share", "fitted", "signed", "t", "given", "derived", "none"]
    # upper end of the range, by default the figure's ceiling; the lower end is 0
    maximum: float | None = None
    neutral: float | None = None  # value without evidence, by default the figure's floor
    minimum: float | None = None  # lowest possible lower limit
    reason: str = ""  # reason for missing limits
    quiet: str = ""  # reason for missing limits without evidence
    # key of the figure that limits are derived from, by key
    source: Callable[[str], str] | None = None
    # computes a limit from the figure and a limit of the other figure
    change: Callable[[Figure, float], float] | None = None
    # whether a few speakers determine it, so that systems are not compared by it
    few_decide: bool = False


@dataclass(frozen=True)
class FigureEntry:
    """Declaration of a figure.

    Example:
        >>> entry = FigureEntry("tpr_{rate}", "membership.tpr_at_{rate}", "share found at {rate}")
        >>> entry.fill_in(rate="1e-3").key, entry.matches("membership.tpr_at_0.25")
        ('membership.tpr_at_1e-3', True)
    """

    name: str  # short name, for ``--figures`` and tables
    key: str  # of the `Figure`; names in braces are numbers, as in ``tpr_at_{rate}``
    says: str  # description for readers who have not read the papers
    limits: LimitRule | None = None  # rule for its limits; without one, a resampled figure has none
    needs: tuple[Need, ...] | None = None  # requirements, by default those of its family
    # label, unit, ties, ceiling, floor: of the `Figure`, if independent of the scores
    label: str = ""
    unit: str = ""
    ties: str = ""
    ceiling: float | None = None
    floor: float | None = None
    like: str = ""  # the key with its names in braces

    def fill_in(self, **values: str | int) -> FigureEntry:
        """Return the entry with its names in braces spelt out."""
        texts = {text: getattr(self, text).format(**values) for text in ("name", "key", "says")}
        return replace(self, **texts, like=self.like or self.key)

    def matches(self, key: str) -> bool:
        """Return whether a key is this figure's, for any numbers."""
        return self._pattern.fullmatch(key) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.like or self.key)
        parts[::2] = map(re.escape, parts[::2])
        parts[1::2] = (_VALUES.get(name, _NUMBER) for name in parts[1::2])
        return re.compile("".join(parts))


@dataclass(frozen=True)
class FamilyResult:
    """Figures of a family in table order, with notes, conclusions and curves.

    Conclusions follow the notes of all families. Curves are by attribute of
    `monitor.lab.evaluation.curves.Curves`.
    """

    figures: Iterable[Figure]
    notes: tuple[str, ...] = ()
    conclusions: tuple[str, ...] = ()
    curves: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """A family of metrics."""

    key: str  # first part of the keys of its figures
    position: int  # position among the families, ascending
    title: str  # title in tables
    caveat: str  # how it misleads, in a few sentences
    needs: tuple[Need, ...]  # requirements; without them the family is left out
    figures: tuple[FigureEntry, ...]  # all its figures, at the usual numbers
    # figures of an evaluation, with replicates but without limits
    compute: Callable[[EvaluationContext], FamilyResult]
    main: tuple[str, ...] = ()  # keys of the most important figures
    # the option of ``monitor evaluate`` that enables it, if its keys contain the option's numbers
    option: str = ""
    finds_limits: bool = False  # whether `compute` also computes limits
    drawings: tuple[Drawing, ...] = ()
    # paragraphs for lay readers, from figures by key and the number of speakers N
    meaning: Callable[[Mapping[str, Figure], int], Iterable[str]] | None = None
    # whether its figures show no evidence. If so, limits of this and all later families include the
    # values of no evidence.
    no_evidence: Callable[[Iterable[Figure]], bool] | None = None

    def figure(
        self, name: str, value: float | None, replicates: FloatArray | None = None, note: str = "",
        **overrides: Any,
    ) -> Figure:  # fmt: skip
        """Make the figure ``KEY.name`` as declared, with overrides."""
        entry = self.entry(key := f"{self.key}.{name}")
        assert entry is not None, name
        declared = {attribute: getattr(entry, attribute) for attribute in ("label", "unit", "ties")}
        declared |= {"ceiling": entry.ceiling, "floor": entry.floor} | overrides
        return Figure(key, value=value, replicates=replicates, note=note, **declared)

    def entry(self, key: str) -> FigureEntry | None:
        """Find the declaration of a figure; None if undeclared."""
        exact = next((entry for entry in self.figures if entry.key == key), None)
        return exact or next((entry for entry in self.figures if entry.matches(key)), None)

    def pooled(self, key: str) -> bool:
        """Return whether a figure uses the pool of all scores, not ranks."""
        entry = self.entry(key)
        needs = self.needs if entry is None or entry.needs is None else entry.needs
        return "pool" in needs


MODULES = "srd lid longitudinal among zebra verification linkage membership anonymity accounting"
"""Modules of `monitor.lab.evaluation` that each declare one family, ``FAMILY``."""


@cache
def families() -> tuple[Family, ...]:
    """List every family, in the order of reports."""
    modules = (import_module(f"monitor.lab.evaluation.{name}") for name in MODULES.split())
    return tuple(sorted((module.FAMILY for module in modules), key=lambda family: family.position))


def family_of(key: str) -> Family | None:
    """Find the family of a figure's key, or by its own key; None if unknown."""
    stem = key.split(".")[0]
    return next((family for family in families() if family.key == stem), None)


def rule_of(key: str) -> LimitRule | None:
    """Find the rule for the limits of a figure; None without a rule."""
    family = family_of(key)
    entry = None if family is None else family.entry(key)
    return None if entry is None else entry.limits


# Limits follow docs/method.md section 12; benchmarks/results/coverage.md has their coverage. A
# figure without a rule has none. If ranks look like those of permuted speakers, limits include the
# value of no evidence.
_GIVEN = LimitRule("given")
_UNKNOWN = LimitRule("none", reason="its coverage was not measured")


def add_limits(figures: Iterable[Figure], sample: Sample) -> tuple[Figure, ...]:
    """Add limits to the figures of a family, or the reason for missing ones.

    `Figure.replicates` has one value per row of the sample's weights. Bootstrap values stay there,
    the others move to `Figure.left_out`. Without weights nothing changes.
    """
    if sample.weights is None:
        return tuple(figures)
    is_resample = find_resamples(sample.weights)
    by_key = {}
    for figure in figures:
        if (draws := figure.replicates) is not None:
            figure = replace(figure, replicates=draws[is_resample], left_out=draws[~is_resample])
        by_key[figure.key] = _limit(figure, sample)
    return tuple(_derive_limits(figure, by_key) for figure in by_key.values())


def _limit(figure: Figure, sample: Sample) -> Figure:
    rule = rule_of(figure.key) or (_GIVEN if figure.replicates is None else _UNKNOWN)
    reason = rule.reason or (rule.quiet if sample.nothing else "")
    if reason and figure.value is not None:
        prefix = f"{figure.note.rstrip('.')}; " if figure.note else ""
        return replace(figure, low=None, high=None, note=f"{prefix}no interval: {reason}")
    if figure.value is None or figure.replicates is None or figure.left_out is None:
        return figure
    low, high = figure.low, figure.high
    if rule.method not in ("given", "derived", "none"):
        estimate = Estimate(
            figure.value, figure.replicates, figure.left_out, sample.units, sample.trials
        )
        if not estimate.exists:
            return figure
        if sample.nothing:  # without evidence no speaker stands out
            estimate = replace(estimate, left_out=estimate.left_out[:0])
        maximum = rule.maximum or figure.ceiling
        if rule.method == "t" or maximum is None or maximum <= 0:
            low, high = estimate.t_limits()
        elif rule.method == "signed":
            low, high = estimate.signed_limits(maximum)
        else:
            low, high = estimate.share_limits(0.0, maximum, fitted=rule.method == "fitted")
        if rule.minimum is not None:
            low = max(low, rule.minimum)
        neutral = figure.floor if rule.neutral is None else rule.neutral
        if sample.nothing and neutral is not None and not np.isnan(neutral):
            low, high = min(low, neutral), max(high, neutral)
    if low is None or high is None:
        return figure
    return replace(figure, low=min(low, figure.value), high=max(high, figure.value))


def _derive_limits(figure: Figure, by_key: Mapping[str, Figure]) -> Figure:
    """Derive limits of a function of another figure from that figure's limits."""
    rule = rule_of(figure.key)
    if figure.value is None or rule is None or rule.source is None or rule.change is None:
        return figure
    low, high = by_key[rule.source(figure.key)].limits
    if low is None or high is None:
        return figure
    low, high = rule.change(figure, low), rule.change(figure, high)
    return replace(figure, low=min(low, figure.value), high=max(high, figure.value))
