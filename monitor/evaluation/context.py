"""What all families of one evaluation share: the scores, their resamples and what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from monitor.evaluation.scores.comparisons import (
    Comparisons,
    pooled_leaving_out,
    pooled_resamples,
)
from monitor.evaluation.scores.counts import ScoreCounts
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.roles import Roles
from monitor.evaluation.scores.speaker_bootstrap import Sample, leaving_out, resamples
from monitor.maths.privacyloss import DELTA
from monitor.types import FloatArray

__all__ = ["EvaluationContext", "Need"]

Need: TypeAlias = Literal["matrix", "pool", "among", "epsilon"]
"""What a family cannot do without: trials that met every speaker, scores of any comparisons,
numbers of people, or a declared epsilon."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class EvaluationContext:
    """The scores of one system, how they are resampled, and the options of the evaluation.

    Attributes:
        comparisons: everything that was compared.
        matrix: the trials that met every enrolled speaker, which ranks stand on; None where there
            is none.
        pool: all mated and non-mated scores: the matrix itself where nothing is beside it.
        weights: shape (B + J, S), of the speakers with trials in the matrix: B bootstrap
            replicates, then J with some left out; None where nothing is resampled.
        pool_weights: the same for the people of the pool.
        dev: scores of other speakers, to calibrate on.
        replicates: B, as asked for; 0 for no limits.
        seed: of the resamples.
        ties: how ranks treat equal scores.
        roles: what was anonymised.
        epsilon: declared for one trial, nats.
        delta: chance with which bounds on epsilon may fail.
        among: numbers of people, ascending.
        nothing: a family found that scores are not told from no evidence.

    Example:
        >>> context = EvaluationContext.of(ScoreMatrix(np.eye(3), np.arange(3)), replicates=20)
        >>> context.weights.shape, context.has("matrix"), context.has("epsilon")
        ((23, 3), True, False)
    """

    comparisons: Comparisons
    matrix: ScoreMatrix | None
    pool: Comparisons | ScoreMatrix
    weights: FloatArray | None = None
    pool_weights: FloatArray | None = None
    dev: ScoreMatrix | None = None
    replicates: int = 0
    seed: int = 0
    ties: str = "spread"
    roles: Roles | None = None
    epsilon: float | None = None
    delta: float = DELTA
    among: tuple[int, ...] = ()
    nothing: bool = False
    _shared: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls, scores: ScoreMatrix | Comparisons, replicates: int = 0, seed: int = 0, **options: Any
    ) -> EvaluationContext:
        """Resample the speakers of a matrix, or of comparisons of any kind.

        Args:
            scores: the trials.
            replicates: B.
            seed: of the resamples.
            options: further attributes.
        """
        every = Comparisons.all_of(scores) if isinstance(scores, ScoreMatrix) else scores
        matrix, pool = every.matrix, every if every.rest else every.matrix or every
        weights = pool_weights = None
        if replicates > 0 and np.unique(pool.owner).size > 1:
            drawn = pooled_resamples(pool, replicates, seed)
            pool_weights = np.concatenate([drawn, pooled_leaving_out(pool)])
        if replicates > 0 and matrix is not None and len(matrix.tested) > 1:
            names = [matrix.speakers[column] for column in matrix.tested.tolist()]
            weights = np.concatenate([resamples(matrix, replicates, seed), leaving_out(names)])
        return cls(
            every, matrix, pool, weights, pool_weights, replicates=replicates, seed=seed, **options
        )

    def has(self, need: Need) -> bool:
        """Whether there is what a family needs."""
        return {
            "matrix": self.matrix is not None,
            "pool": True,
            "among": bool(self.among),
            "epsilon": self.epsilon is not None,
        }[need]

    def once(self, make: Callable[[EvaluationContext], _T]) -> _T:
        """What a function makes of this context, made the first time that a family asks for it."""
        if make not in self._shared:
            self._shared[make] = make(self)
        made: _T = self._shared[make]
        return made

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
        """What figures of the pool, or of ranks, were resampled over."""
        if pooled:
            units, trials = np.unique(self.pool.owner).size, self.pool.mated.size
            return Sample(self.pool_weights, units, trials, self.nothing)
        matrix = self.ranked
        return Sample(self.weights, len(matrix.tested), matrix.trials, self.nothing)


def _counts(context: EvaluationContext) -> ScoreCounts:
    return ScoreCounts.of(context.pool, context.pool_weights)
