"""Learn rank laws from a corpus (METHOD sections 3 to 5)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from monitor.errors import CalibrationError, UsageError
from monitor.maths.bootstrap import DRAWS, speaker_weights
from monitor.maths.scores import default_similarity, similarity
from monitor.population.law import Laws, RankLaw
from monitor.training.cells import Plan, plans
from monitor.training.fitted import FittedCell, fit_cell
from monitor.training.listening import Shape
from monitor.training.voices import UNITS_PER_SECOND, Voice
from monitor.types import FloatArray

__all__ = ["FEWEST_SPEAKERS", "LENGTHS", "TEMPLATE_LENGTHS", "TRIALS", "Calibration", "calibrate"]

LENGTHS = (0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Test lengths T, speech seconds."""
TEMPLATE_LENGTHS = (10.0, 30.0, 60.0, 120.0, 300.0)
"""Template lengths D, speech seconds."""
FEWEST_SPEAKERS = 10
TRIALS = 20
"""Tests of each speaker in a cell; fewer where the speakers are thousands."""
_MOST_TRIALS = 30_000
_MOST_SETS = 3
"""Features of which every set gets a law; of more there would be too many."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Laws, and the rows of the table that explain them."""

    laws: Laws
    rows: tuple[Mapping[str, Any], ...]


def calibrate(
    voices: Sequence[Voice],
    shapes: Mapping[str, Shape],
    *,
    lengths: Sequence[float] = LENGTHS,
    template_lengths: Sequence[float] = TEMPLATE_LENGTHS,
    similarities: Mapping[str, str] | None = None,
    draws: int = DRAWS,
    trials: int = TRIALS,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Calibration:
    """Fit a law for every feature, and for features together, on the grid of lengths.

    Of up to three features every set gets a law of its own, of more only each and all. In a joint
    law a feature that brings nothing new at a length has no say there.

    Args:
        voices: calibration speech, from ``collect``.
        shapes: what the features look like, from ``collect``.
        lengths: T, speech seconds.
        template_lengths: D, speech seconds.
        similarities: by feature; the default of its kind where left out.
        draws: resamples of speakers kept with the law.
        trials: tests of each speaker in each cell.
        seed: of resamples and permutations.
        progress: called with cells done and cells in all.

    Raises:
        CalibrationError: fewer than 10 speakers, or too little speech of theirs for any cell.
        UsageError: a length is no multiple of 0.1 s, or a similarity is unknown.
    """
    lengths, template_lengths = _grid(lengths), _grid(template_lengths)
    if len(voices) < FEWEST_SPEAKERS:
        raise CalibrationError(
            f"too few speakers ({len(voices)}) to learn a rank law; "
            f"at least {FEWEST_SPEAKERS} are needed"
        )
    chosen = dict(similarities or {})
    if strange := sorted(chosen.keys() - shapes.keys()):
        raise UsageError(f"no similarity for {strange[0]!r}: calibrating {', '.join(shapes)}")
    scorers = {
        name: similarity(chosen.get(name, default_similarity(shape.kind)), shape.kind)
        for name, shape in shapes.items()
    }
    sizes = range(1, len(scorers) + 1) if len(scorers) <= _MOST_SETS else (1, len(scorers))
    sets = [names for size in sizes for names in combinations(scorers, size)]
    axes = [[list(scorers).index(name) for name in features] for features in sets]
    additive = np.array([scorer.additive for scorer in scorers.values()])
    weights = speaker_weights(len(voices), draws, seed)
    shifts = int(np.clip(_MOST_TRIALS // len(voices), 1, trials))
    found: dict[tuple[tuple[str, ...], str], dict[tuple[int, int], FittedCell]] = {}
    cells = list(plans(voices, lengths, template_lengths, shifts))

    def work(place: tuple[str, int, int, Plan]) -> list[FittedCell | None]:
        _, t, d, plan = place
        if plan.mated.size < FEWEST_SPEAKERS:
            return []
        units = [round(x * UNITS_PER_SECOND) for x in (lengths[t], template_lengths[d])]
        cell = plan.run(scorers, *units)
        return [fit_cell(cell, axis, weights, additive[axis], seed) for axis in axes]

    # numpy works outside the interpreter's lock, so that threads do
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, ((session, t, d, _), each) in enumerate(
            zip(cells, pool.map(work, cells), strict=True)
        ):
            for features, fitted in zip(sets, each, strict=False):
                if fitted is not None:
                    found.setdefault((features, session), {})[t, d] = fitted
            progress(done + 1, len(cells))
    if not found:
        raise CalibrationError(
            f"fewer than {FEWEST_SPEAKERS} speakers have a test of {lengths[0]:g} s and a template "
            f"of {template_lengths[0]:g} s of speech: add speech or ask for shorter lengths"
        )
    laws: list[RankLaw] = []
    rows: list[Mapping[str, Any]] = []
    for (features, session), fits in found.items():
        names = tuple(scorers[name].name for name in features)
        law = _assemble(features, session, names, lengths, template_lengths, fits, draws)
        laws.append(law)
        rows.extend(law.rows)
    return Calibration(Laws(laws), tuple(rows))


def _grid(lengths: Sequence[float]) -> list[float]:
    """Lengths in order, each once."""
    for length in lengths:
        units = length * UNITS_PER_SECOND
        if not 0 < length < np.inf or abs(units - round(units)) > 1e-6:
            raise UsageError(f"a length of {length:g} s must be a positive multiple of 0.1 s")
    if not lengths:
        raise UsageError("a grid of lengths needs at least one")
    return sorted(set(lengths))


def _assemble(
    features: tuple[str, ...],
    session: str,
    similarities: tuple[str, ...],
    lengths: Sequence[float],
    template_lengths: Sequence[float],
    fits: Mapping[tuple[int, int], FittedCell],
    draws: int,
) -> RankLaw:
    """Put fitted cells on the grid; lengths that nobody reached are dropped."""
    used_t = sorted({t for t, _ in fits})
    used_d = sorted({d for _, d in fits})
    grid = (draws + 1, len(used_t), len(used_d))

    def arrange(pick: Callable[[FittedCell], FloatArray], *more: int) -> FloatArray:
        values = np.full((*grid, *more), np.nan)
        for (t, d), fitted in fits.items():
            values[:, used_t.index(t), used_d.index(d)] = pick(fitted)
        return values

    rows = tuple(
        {
            "feature": "+".join(features),
            "session": session,
            "T": lengths[t],
            "D": template_lengths[d],
            **fitted.row,
        }
        for (t, d), fitted in sorted(fits.items(), key=lambda item: (item[0][1], item[0][0]))
    )
    return RankLaw(
        features,
        session,
        similarities,
        np.asarray([lengths[t] for t in used_t]),
        np.asarray([template_lengths[d] for d in used_d]),
        arrange(lambda cell: cell.alpha),
        arrange(lambda cell: cell.beta),
        arrange(lambda cell: cell.binomial.astype(float)) == 1.0,
        _heard(arrange(lambda cell: cell.weights, len(features))),
        arrange(lambda cell: cell.floor),
        arrange(lambda cell: cell.open_set[None], 1 + len(features))[0],
        rows,
        max(int(row["speakers"]) for row in rows),
        max(int(row["candidates"]) for row in rows),
    )


def _heard(weights: FloatArray) -> FloatArray:
    """Lambda, shape (1 + B, nT, nD, F), where a feature had no frame yet: the next longer test's.

    So that it is right from the first frame on.
    """
    for t in range(weights.shape[1] - 2, -1, -1):
        missing = np.isnan(weights[:, t])
        weights[:, t][missing] = weights[:, t + 1][missing]
    return weights
