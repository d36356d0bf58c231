"""What a family of metrics declares of itself, once: its words, its figures, how it is computed.

A family is a folder with a module ``family`` in it, whose value ``FAMILY`` is a `Family`. Reports,
tables, pages, ``--figures``, the limits and the tests of properties read nothing else; they find it
through `monitor.evaluation.families`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from monitor.evaluation.context import EvaluationContext, Need
from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.plots.evaluation import Drawing
from monitor.types import FloatArray

__all__ = ["Derived", "Extremes", "Family", "FamilyResult", "FigureEntry", "LimitRule"]

_VALUES = {"form": "[a-z][a-z_]*"}
"""What may stand for a name in braces in a key; a number, or ``all``, where nothing is said."""
_NUMBER = r"(?:\d[\d.e+-]*|all)"


@dataclass(frozen=True)
class Derived:
    """Limits of a figure that is a function of another one.

    Attributes:
        source: from the figure's key to that of the other.
        change: from the figure itself and an end of the other's limits to its own end.
    """

    source: Callable[[str], str]
    change: Callable[[Figure, float], float]


@dataclass(frozen=True)
class LimitRule:
    """How the limits of a figure are found, as simulation bears out (docs/coverage.md).

    Attributes:
        how: ``"share"`` of its range; ``"fitted"``, likewise, less the bias of what is fitted to
            the scores it judges; ``"signed"``, of a figure that can be negative; ``"t"``;
            ``"given"`` by its family; ``"derived"`` from another figure; ``"none"``.
        most: the upper end of the range, where it is not the figure's ceiling; the lower is 0.
        rest: the value of no evidence, where it is not the figure's floor.
        least: what no lower limit goes below.
        why: there are no limits.
        quiet: likewise, where there is no evidence.
        derived: from what, and how.
        few_decide: few speakers decide it, so that systems are not told apart by it.
    """

    how: Literal["share", "fitted", "signed", "t", "given", "derived", "none"]
    most: float | None = None
    rest: float | None = None
    least: float | None = None
    why: str = ""
    quiet: str = ""
    derived: Derived | None = None
    few_decide: bool = False


@dataclass(frozen=True)
class FigureEntry:
    """A figure as ``--figures help`` lists it.

    Attributes:
        name: short, for ``--figures`` and for the tables of others.
        key: of the `Figure`. Names in braces stand for numbers: ``"membership.tpr_at_{rate}"``.
        says: what it says, for who has not read the papers.
        limits: how they are found; None where no rule was made: what is resampled then has none.
        needs: what it stands on, where that is not what its family needs.
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
    like: str = ""

    def at(self, **values: str | int) -> FigureEntry:
        """The entry with its names in braces spelt out."""
        name, key, says = (text.format(**values) for text in (self.name, self.key, self.says))
        return replace(self, name=name, key=key, says=says, like=self.like or self.key)

    def named(self, name: str, says: str) -> FigureEntry:
        """The entry by another name, in other words."""
        return replace(self, name=name, says=says)

    def fits(self, key: str) -> bool:
        """Whether a key is this figure's, at whatever numbers."""
        return self._pattern.fullmatch(key) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.like or self.key)
        parts[::2] = map(re.escape, parts[::2])
        parts[1::2] = (_VALUES.get(name, _NUMBER) for name in parts[1::2])
        return re.compile("".join(parts))


@dataclass(frozen=True)
class FamilyResult:
    """What a family found.

    Attributes:
        figures: in the order of the tables.
        notes: what to say of them, one sentence each.
        conclusions: likewise, said after the notes of all families.
        curves: what is drawn, by the name of an attribute of `monitor.plots.evaluation.Curves` or
            of a `Drawing` of the family.
    """

    figures: Iterable[Figure]
    notes: tuple[str, ...] = ()
    conclusions: tuple[str, ...] = ()
    curves: Mapping[str, Any] = field(default_factory=dict)


Made: TypeAlias = Callable[[ScoreMatrix, FloatArray | None], Iterable[Figure]]


@dataclass(frozen=True)
class Extremes:
    """What may be expected of a family's figures whatever the scores; tests hold it to that.

    Beginnings of keys stand without the family's own name: ``"eer"``.

    Attributes:
        monotone: beginnings of keys that only compare scores over all rows.
        rowwise: beginnings of keys that only compare scores within a row.
        at_ceiling: beginnings of keys that perfect scores bring to their ceiling.
        at_floor: beginnings of keys that chance leaves at their floor.
        flat_at_floor: beginnings of keys that constant scores leave there.
        scaled: beginnings of keys that change with the scale of the scores.
        speakers: with fewer tested speakers it refuses.
        dev: it is calibrated on a dev matrix, whose speakers are resampled as well.
        near: beginnings of keys whose replicates only come near the value where every speaker is
            drawn once.
        rounding: how far iterative fits of the same numbers may lie apart.
        made: of a matrix and weights, where it is not what `Family.compute` finds on them.
    """

    monotone: tuple[str, ...] = ()
    rowwise: tuple[str, ...] = ()
    at_ceiling: tuple[str, ...] = ()
    at_floor: tuple[str, ...] = ()
    flat_at_floor: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()
    speakers: int = 1
    dev: bool = False
    near: tuple[str, ...] = ()
    rounding: float = 1e-9
    made: Made | None = None


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

    def entry(self, key: str) -> FigureEntry | None:
        """What is declared of a figure, at whatever numbers its key has; None where nothing is."""
        exact = next((entry for entry in self.figures if entry.key == key), None)
        return exact or next((entry for entry in self.figures if entry.fits(key)), None)

    def pooled(self, key: str) -> bool:
        """Whether a figure stands on the pool of all scores, and not on ranks."""
        entry = self.entry(key)
        needs = self.needs if entry is None or entry.needs is None else entry.needs
        return "pool" in needs
