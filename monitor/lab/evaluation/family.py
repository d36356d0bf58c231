"""Declarations of families of metrics, and limits of their figures."""

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
    """Return the value of a figure; None where there is none, or it is infinite."""
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


# ----------------------------------------------------------------------------------------- context
# What all families of one evaluation share: the scores, their resamples and what was asked for.

Need: TypeAlias = Literal["matrix", "pool", "among", "epsilon"]
"""What a family cannot do without: trials that met every speaker, scores of any comparisons,
numbers of people, or a declared epsilon."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class EvaluationSettings:
    """Settings of an evaluation.

    Attributes:
        replicates: B, the resamples of speakers behind the limits; 0 for none.
        seed: of the resamples; systems that share it and their speakers compare in pairs.
        ties: how SRD ranks equal scores, one of `monitor.maths.ranks.TIE_RULES`; each figure says
            what was done.
        roles: what was anonymised.
        epsilon: declared for one trial, nats: adds what several amount to.
        delta: chance with which bounds on epsilon may fail.
        among: numbers of people: adds IdR and MeanD among so many, see
            `monitor.lab.evaluation.among`.
        only: keys of families, such as ``"srd"``, where not all are wanted: it takes less time.

    Raises:
        UsageError: a value makes no sense.
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
            raise UsageError(f"only={unknown[0]!r}: there is no such family of metrics")
        if self.among:
            object.__setattr__(self, "among", crowds.sizes(self.among))


@dataclass(frozen=True)
class EvaluationContext:
    """The scores of one system, how they are resampled, and the settings of the evaluation.

    Attributes:
        comparisons: everything that was compared.
        matrix: the trials that met every enrolled speaker, which ranks stand on, if there are any.
        pool: all mated and non-mated scores: the matrix itself where nothing is beside it.
        weights: shape (B + J, S), of the speakers with trials in the matrix: B bootstrap
            replicates, then J with some left out; None where nothing is resampled.
        pool_weights: the same for the people of the pool.
        dev: scores of other speakers, to calibrate on.
        nothing: a family found that scores are not told from no evidence.
    """

    comparisons: Comparisons
    matrix: ScoreMatrix | None
    pool: Comparisons | ScoreMatrix
    weights: FloatArray | None = None
    pool_weights: FloatArray | None = None
    dev: ScoreMatrix | None = None
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    nothing: bool = False
    _shared: dict[object, object] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        scores: ScoreMatrix | Comparisons,
        settings: EvaluationSettings,
        dev: ScoreMatrix | None = None,
    ) -> EvaluationContext:
        """Resample the speakers of comparisons of any kind."""
        every = Comparisons.all_of(scores) if isinstance(scores, ScoreMatrix) else scores
        matrix, pool = every.matrix, every if every.rest else every.matrix or every
        weights = pool_weights = None
        replicates, seed = settings.replicates, settings.seed
        if replicates > 0 and np.unique(pool.owner).size > 1:
            drawn = pooled_resamples(pool, replicates, seed)
            pool_weights = np.concatenate([drawn, pooled_leaving_out(pool)])
        if replicates > 0 and matrix is not None and len(matrix.tested) > 1:
            drawn = resamples(matrix, replicates, seed)
            weights = np.concatenate([drawn, leaving_out(matrix.people)])
        return cls(every, matrix, pool, weights, pool_weights, dev, settings)

    def has(self, need: Need) -> bool:
        """Return whether there is what a family needs."""
        return {
            "matrix": self.matrix is not None,
            "pool": True,
            "among": bool(self.settings.among),
            "epsilon": self.settings.epsilon is not None,
        }[need]

    def once(self, make: Callable[[EvaluationContext], _T]) -> _T:
        """Compute what families share when the first of them asks for it."""
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
        """Return what figures of the pool, or of ranks, were resampled over."""
        if pooled:
            units, trials = np.unique(self.pool.owner).size, self.pool.mated.size
            return Sample(self.pool_weights, units, trials, self.nothing)
        matrix = self.ranked
        return Sample(self.weights, len(matrix.tested), matrix.trials, self.nothing)


def _counts(context: EvaluationContext) -> ScoreCounts:
    return ScoreCounts.of(context.pool, context.pool_weights)


# ------------------------------------------------------------------------------------------ family
# A family is a module of `monitor.lab.evaluation` whose value ``FAMILY`` is a `Family`. Reports,
# tables, pages, ``--figures``, the limits and the tests of properties read nothing else; they find
# it through `families`.

_VALUES = {"form": "[a-z][a-z_]*"}
"""What may stand for a name in braces in a key; a number, or ``all``, where nothing is said."""
_NUMBER = r"(?:\d[\d.e+-]*|all)"


@dataclass(frozen=True)
class LimitRule:
    """Rule that finds the limits of a figure, as simulation supports (docs/limits.md).

    Attributes:
        how: ``"share"`` of its range; ``"fitted"``, likewise, less the bias of what is fitted to
            the scores it judges; ``"signed"``, of a figure that can be negative; ``"t"``;
            ``"given"`` by its family; ``"derived"`` from another figure; ``"none"``.
        most: the upper end of the range, where it is not the figure's ceiling; the lower is 0.
        rest: the value of no evidence, where it is not the figure's floor.
        least: what no lower limit goes below.
        why: there are no limits.
        quiet: likewise, where there is no evidence.
        source: from the figure's key to that of the figure that its limits are derived from.
        change: from the figure itself and an end of the other's limits to its own end.
        few_decide: few speakers decide it, so that systems are not told apart by it.
    """

    how: Literal["share", "fitted", "signed", "t", "given", "derived", "none"]
    most: float | None = None
    rest: float | None = None
    least: float | None = None
    why: str = ""
    quiet: str = ""
    source: Callable[[str], str] | None = None
    change: Callable[[Figure, float], float] | None = None
    few_decide: bool = False


@dataclass(frozen=True)
class FigureEntry:
    """Declaration of a figure, whatever its value.

    Attributes:
        name: short, for ``--figures`` and for the tables of others.
        key: of the `Figure`. Names in braces stand for numbers: ``"membership.tpr_at_{rate}"``.
        says: what it says, for who has not read the papers.
        limits: how they are found; None where no rule was made: what is resampled then has none.
        needs: what it stands on, where that is not what its family needs.
        label, unit, ties, ceiling, floor: of the `Figure`, where they are the same whatever the
            scores.
        like: the key before its names in braces were spelt out.

    Example:
        >>> entry = FigureEntry("tpr_{rate}", "membership.tpr_at_{rate}", "share found at {rate}")
        >>> entry.at(rate="1e-3").key, entry.fits("membership.tpr_at_0.25")
        ('membership.tpr_at_1e-3', True)
    """

    name: str
    key: str
    says: str
    limits: LimitRule | None = None
    needs: tuple[Need, ...] | None = None
    label: str = ""
    unit: str = ""
    ties: str = ""
    ceiling: float | None = None
    floor: float | None = None
    like: str = ""

    def at(self, **values: str | int) -> FigureEntry:
        """Return the entry with its names in braces spelt out."""
        texts = {part: getattr(self, part).format(**values) for part in ("name", "key", "says")}
        return replace(self, **texts, like=self.like or self.key)

    def fits(self, key: str) -> bool:
        """Return whether a key is this figure's, at whatever numbers."""
        return self._pattern.fullmatch(key) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.like or self.key)
        parts[::2] = map(re.escape, parts[::2])
        parts[1::2] = (_VALUES.get(name, _NUMBER) for name in parts[1::2])
        return re.compile("".join(parts))


@dataclass(frozen=True)
class FamilyResult:
    """The figures that a family found, in the order of the tables, and a sentence each on them.

    Conclusions are said after the notes of all families. Curves are drawn, by the name of an
    attribute of `monitor.lab.evaluation.curves.Curves` or of a `Drawing` of the family.
    """

    figures: Iterable[Figure]
    notes: tuple[str, ...] = ()
    conclusions: tuple[str, ...] = ()
    curves: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Extremes:
    """Expected values of a family's figures whatever the scores; tests hold it to that.

    Texts are beginnings of keys, without the family's own name: ``"eer"``.
    """

    monotone: tuple[str, ...] = ()  # they only compare scores over all rows
    rowwise: tuple[str, ...] = ()  # they only compare scores within a row
    at_ceiling: tuple[str, ...] = ()  # perfect scores bring them to their ceiling
    at_floor: tuple[str, ...] = ()  # chance leaves them at their floor
    flat_at_floor: tuple[str, ...] = ()  # constant scores leave them there
    scaled: tuple[str, ...] = ()  # they change with the scale of the scores
    speakers: int = 1  # with fewer tested speakers the family refuses
    dev: bool = False  # it is calibrated on a dev matrix, whose speakers are resampled as well
    near: tuple[str, ...] = ()  # replicates come only near the value where all are drawn once
    rounding: float = 1e-9  # how far iterative fits of the same numbers may lie apart
    # figures of a matrix and weights, where `Family.compute` does not find them
    compute: Callable[[ScoreMatrix, FloatArray | None], Iterable[Figure]] | None = None


@dataclass(frozen=True)
class Family:
    """A family of metrics.

    Attributes:
        key: the first part of the keys of its figures.
        place: its place among the families, ascending.
        title: what tables call it.
        caveat: where it misleads, in a few sentences.
        needs: what there must be, or the family is left out.
        figures: every figure that it can give, at the usual numbers.
        compute: the figures of an evaluation, with replicates but without limits.
        main: keys of the figures to look at first.
        option: the option of ``monitor evaluate`` that asks for it, where its keys depend on the
            option's numbers: they have open names in braces.
        finds_limits: `compute` gives limits as well.
        drawings: its pictures.
        meaning: figures by key and the number of speakers N to paragraphs for people who know none
            of the metrics.
        no_evidence: of its figures, whether they are what no evidence reads. Limits of this family
            and of those that follow then reach to what no evidence reads.
        extremes: what tests of properties hold it to; None where it has tests of its own only.
    """

    key: str
    place: int
    title: str
    caveat: str
    needs: tuple[Need, ...]
    figures: tuple[FigureEntry, ...]
    compute: Callable[[EvaluationContext], FamilyResult]
    main: tuple[str, ...] = ()
    option: str = ""
    finds_limits: bool = False
    drawings: tuple[Drawing, ...] = ()
    meaning: Callable[[Mapping[str, Figure], int], Iterable[str]] | None = None
    no_evidence: Callable[[Iterable[Figure]], bool] | None = None
    extremes: Extremes | None = None

    def figure(
        self, name: str, value: float | None, replicates: FloatArray | None = None, note: str = "",
        **overrides: Any,
    ) -> Figure:  # fmt: skip
        """Make the figure ``KEY.name`` as declared, with overrides."""
        entry = self.entry(f"{self.key}.{name}")
        assert entry is not None, name
        declared = {part: getattr(entry, part) for part in ("label", "unit", "ties")}
        declared |= {"ceiling": entry.ceiling, "floor": entry.floor} | overrides
        return Figure(
            f"{self.key}.{name}", value=value, replicates=replicates, note=note, **declared
        )

    def entry(self, key: str) -> FigureEntry | None:
        """Find the declaration of a figure, at whatever numbers; None where there is none."""
        exact = next((entry for entry in self.figures if entry.key == key), None)
        return exact or next((entry for entry in self.figures if entry.fits(key)), None)

    def pooled(self, key: str) -> bool:
        """Return whether a figure stands on the pool of all scores, and not on ranks."""
        entry = self.entry(key)
        needs = self.needs if entry is None or entry.needs is None else entry.needs
        return "pool" in needs


# ------------------------------------------------------------------------------------- all families

MODULES = (
    *("srd", "lid", "longitudinal", "among", "zebra", "verification", "linkage", "membership"),
    *("anonymity", "accounting"),
)
"""Of `monitor.lab.evaluation`: each declares one family, ``FAMILY``."""


def families() -> tuple[Family, ...]:
    """List every family, in the order of reports."""
    return _load(MODULES)


@cache
def _load(modules: tuple[str, ...]) -> tuple[Family, ...]:
    families = [import_module(f"monitor.lab.evaluation.{module}").FAMILY for module in modules]
    return tuple(sorted(families, key=lambda family: family.place))


def family_of(key: str) -> Family | None:
    """Find the family of a figure's key, or of its own; None where there is none."""
    stem = key.split(".")[0]
    return next((family for family in families() if family.key == stem), None)


def rule_of(key: str) -> LimitRule | None:
    """Find the rule for the limits of a figure; None where none was made."""
    family = family_of(key)
    entry = None if family is None else family.entry(key)
    return None if entry is None else entry.limits


# ------------------------------------------------------------------------------------------ limits
# Limits are those of docs/method.md section 12; how often they hold stands in
# benchmarks/results/coverage.md. A figure that no rule names gets none. Where ranks cannot be told
# from those of permuted speakers, limits reach to what no evidence reads.

_GIVEN = LimitRule("given")
_UNKNOWN = LimitRule("none", why="how often they hold was not measured")


def add_limits(figures: Iterable[Figure], sample: Sample) -> tuple[Figure, ...]:
    """Give the figures of a family their limits, which hold the value, or say why they have none.

    `Figure.replicates` has one for each row of the sample's weights, without which nothing changes:
    those of the bootstrap stay there, the others go to `Figure.left_out`.
    """
    if sample.weights is None:
        return tuple(figures)
    is_resample = find_resamples(sample.weights)
    by_key = {}
    for figure in figures:
        if figure.replicates is not None:
            figure = replace(
                figure,
                replicates=figure.replicates[is_resample],
                left_out=figure.replicates[~is_resample],
            )
        by_key[figure.key] = _limit(figure, sample)
    return tuple(_derive_limits(figure, by_key) for figure in by_key.values())


def _limit(figure: Figure, sample: Sample) -> Figure:
    rule = rule_of(figure.key) or (_GIVEN if figure.replicates is None else _UNKNOWN)
    why = rule.why or (rule.quiet if sample.nothing else "")
    if why and figure.value is not None:
        prefix = f"{figure.note.rstrip('.')}; " if figure.note else ""
        return replace(figure, low=None, high=None, note=f"{prefix}no limits: {why}")
    if figure.value is None or figure.replicates is None or figure.left_out is None:
        return figure
    low, high = figure.low, figure.high
    if rule.how not in ("given", "derived", "none"):
        estimate = Estimate(
            figure.value, figure.replicates, figure.left_out, sample.units, sample.trials
        )
        if not estimate.exists:
            return figure
        if sample.nothing:  # where ranks tell nobody apart, nobody decides a figure
            estimate = replace(estimate, left_out=estimate.left_out[:0])
        maximum = rule.most or figure.ceiling
        if rule.how == "t" or maximum is None or maximum <= 0:
            low, high = estimate.t_limits()
        elif rule.how == "signed":
            low, high = estimate.signed_limits(maximum)
        else:
            low, high = estimate.share_limits(0.0, maximum, fitted=rule.how == "fitted")
        if rule.least is not None:
            low = max(low, rule.least)
        rest = figure.floor if rule.rest is None else rule.rest
        if sample.nothing and rest is not None and not np.isnan(rest):
            low, high = min(low, rest), max(high, rest)
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
