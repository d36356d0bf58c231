"""Score files of speakers whose ranks follow a rank model that is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.input.score_file import ScoreCell, write_score_file

Law = tuple[float, float]
RankModels = Mapping[tuple[float, float], Law | None]
"""By T and D the (alpha, beta) of the ranks; None for scores that tell nothing."""

NAMES = 40


def matrix(
    rank_model: Law | None, speakers: int, trials: int, generator, name="made"
) -> ScoreMatrix:
    """Scores in which the true speaker has a rank drawn from the rank model; None: any rank."""
    target = np.repeat(np.arange(speakers), trials)
    if rank_model is None:
        scores = generator.normal(size=(target.size, speakers))
    else:
        beaten = generator.binomial(speakers - 1, generator.beta(*rank_model, size=target.size))
        order = generator.permuted(np.tile(np.arange(speakers - 1.0), (target.size, 1)), axis=1)
        scores = np.empty((target.size, speakers))
        own = np.arange(speakers) == target[:, None]
        scores[~own] = -order.ravel()
        scores[own] = -beaten + 0.5  # behind so many of 0, -1, -2, ...
    names = tuple(f"who{i:03d}" for i in range(speakers))
    return ScoreMatrix(scores, target, names, name, tuple(f"t{i}" for i in range(target.size)))


def score_file(
    path: Path,
    systems: Mapping[str, RankModels],
    sessions: Sequence[str] = ("same",),
    speakers: int = NAMES,
    trials: int = 20,
    seed: int = 0,
) -> Path:
    """A file as `monitor score` makes it, of systems that share lengths."""
    generator = np.random.default_rng(seed)
    places = list(next(iter(systems.values())))
    cells = [
        ScoreCell(
            session,
            test,
            template,
            {
                name: matrix(rank_models[test, template], speakers, trials, generator, name)
                for name, rank_models in systems.items()
            },
            ("1",) * speakers * trials,
            np.zeros(speakers * trials),
        )
        for session in sessions
        for test, template in places
    ]
    write_score_file(path, cells)
    return path
