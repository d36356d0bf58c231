"""Score matrices made by hand, and what may be done to them without changing what they say."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from monitor.lab.evaluation import linkage
from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix
from monitor.lab.evaluation.counts import ScoreCounts
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings, add_limits
from monitor.lab.evaluation.resampling import Sample, leaving_out, resamples
from monitor.lab.evaluation.srd import no_evidence
from monitor.lab.report.model import Figure
from monitor.types import AnyArray, FloatArray, IntArray

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def matrices(draw, largest: int = 8) -> ScoreMatrix:
    """Few speakers, of whom some have no trial; with many ties, few, or none."""
    generator = np.random.default_rng(draw(SEEDS))
    speakers, trials = draw(st.integers(2, largest)), draw(st.integers(1, 30))
    target = generator.integers(0, speakers, trials)
    levels = draw(st.sampled_from([1, 2, 4, 30, None]))
    strength = draw(st.sampled_from([0.0, 1.0, 4.0]))
    scores = generator.normal(0, 2, (trials, speakers))
    if levels:
        scores = generator.integers(0, levels, (trials, speakers)).astype(float)
    scores[np.arange(trials), target] += strength
    return ScoreMatrix(scores, target)


def ranked_second(share: float, speakers: int = 30, trials: int = 8) -> ScoreMatrix:
    """Make scores that rank this share of the trials second, and the others anywhere."""
    generator = np.random.default_rng(0)
    target = np.repeat(np.arange(speakers), trials)
    rank = generator.integers(0, speakers, target.size)
    rank[generator.random(target.size) < share] = 1
    scores = generator.random((target.size, speakers))
    for row, own, place in zip(scores, target, rank, strict=True):
        other = np.argsort(-row)[place]
        row[[own, other]] = row[[other, own]]
    return ScoreMatrix(scores, target)


def linkage_figures(matrix: ScoreMatrix, weights: FloatArray | None = None) -> tuple[Figure, ...]:
    """D_sys, pi_link among 2, 10 (from N = 11) and all speakers, and pi_sing."""
    ranked = *linkage.link_figures(matrix, weights), linkage.sing_figure(matrix, weights)
    return linkage.d_sys_figure(matrix, weights, ScoreCounts.from_scores(matrix)), *ranked


def perfect(speakers: int = 10, tests: int = 5) -> ScoreMatrix:
    """Every speaker is told from all others: 1 against 0."""
    target = np.repeat(np.arange(speakers), tests)
    return ScoreMatrix(np.eye(speakers)[target], target, name="perfect")


def separated(speakers: int = 10, tests: int = 5, seed: int = 0) -> ScoreMatrix:
    """Likewise, and no two scores are equal."""
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(speakers), tests)
    scores = generator.uniform(0.0, 0.4, (target.size, speakers))
    scores[np.arange(target.size), target] = generator.uniform(0.6, 1.0, target.size)
    return ScoreMatrix(scores, target, name="separated")


def leading(
    speakers: int = 30, tests: int = 6, lead: float = 1.0, seed: int = 0, name: str = ""
) -> ScoreMatrix:
    """Normal scores, of which the speakers' own are higher by so many deviations."""
    target = np.repeat(np.arange(speakers), tests)
    own = target[:, None] == np.arange(speakers)
    scores = np.random.default_rng(seed).normal(size=own.shape) + lead * own
    return ScoreMatrix(scores, target, name=name)


def chance(speakers: int = 40, tests: int = 25, seed: int = 0) -> ScoreMatrix:
    """Scores that know nothing."""
    target = np.repeat(np.arange(speakers), tests)
    scores = np.random.default_rng(seed).normal(size=(target.size, speakers))
    return ScoreMatrix(scores, target, name="chance")


def constant(speakers: int = 10, tests: int = 5) -> ScoreMatrix:
    """All scores equal."""
    target = np.repeat(np.arange(speakers), tests)
    return ScoreMatrix(np.full((target.size, speakers), 0.5), target, name="constant")


def other_columns(matrix: ScoreMatrix, order: IntArray) -> ScoreMatrix:
    """The same speakers in another order: new column j is the old column ``order[j]``."""
    target = np.argsort(order)[matrix.target]
    names = tuple(matrix.speakers[column] for column in order)
    return ScoreMatrix(matrix.scores[:, order], target, names)


def other_rows(matrix: ScoreMatrix, order: IntArray) -> ScoreMatrix:
    """The same trials in another order."""
    return ScoreMatrix(matrix.scores[order], matrix.target[order], matrix.speakers)


def rescored(matrix: ScoreMatrix, change: Callable[[AnyArray], AnyArray]) -> ScoreMatrix:
    """The same trials after a change of all scores."""
    return ScoreMatrix(change(matrix.scores), matrix.target, matrix.speakers)


def pools(matrix: ScoreMatrix | Comparisons) -> tuple[FloatArray, FloatArray]:
    """Its mated scores, and all others."""
    return matrix.mated, np.concatenate([block.ravel() for _, block in matrix.non_mated_blocks()])


def drawn(matrix: ScoreMatrix, weights: FloatArray) -> ScoreMatrix:
    """The trials of a resample, written out."""
    rows = np.repeat(np.arange(matrix.trials), weights.astype(int)[matrix.owner])
    return ScoreMatrix(matrix.scores[rows], matrix.target[rows])


def report_of(matrix: Any, dev: ScoreMatrix | None = None, /, **settings: Any) -> Any:
    """What `evaluate` makes of it, with few resamples or none."""
    return evaluate(matrix, dev, settings=EvaluationSettings(**{"replicates": 0} | settings))


def by_key(made: Iterable[Figure]) -> dict[str, Any]:
    """Figures by their keys; a test knows which of their numbers there are."""
    return {figure.key: figure for figure in made}


def with_limits(
    make: Callable[[ScoreMatrix, FloatArray], Iterable[Figure]],
    matrix: ScoreMatrix,
    replicates: int = 200,
) -> dict[str, Any]:
    """The figures of a family with their limits, by key."""
    names = [matrix.speakers[column] for column in matrix.tested.tolist()]
    weights = np.concatenate([resamples(matrix, replicates), leaving_out(names)])
    made = tuple(make(matrix, weights))
    sample = Sample(weights, len(names), matrix.trials, no_evidence(made))
    return by_key(add_limits(made, sample))


def ends(figure: Figure) -> tuple[float, float]:
    """Its limits, where it must have them."""
    low, high = figure.limits
    assert low is not None, figure.key
    assert high is not None, figure.key
    return low, high
