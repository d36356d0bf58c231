"""The null band of MeanD: what it reads where trials are dealt to random speakers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from math import perm
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.errors import UsageError
from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.settled import settled_order
from monitor.evaluation.srd.replicates import fit_laws
from monitor.maths.allranks import all_rank_bounds
from monitor.maths.quantiles import limits
from monitor.maths.ranks import placed, rank_histograms
from monitor.types import FloatArray, IntArray

__all__ = ["PERMUTATIONS", "NullBand", "no_evidence", "null_band"]

PERMUTATIONS = 200
_RANKS = 1 << 26
"""Most permuted ranks held at once: 512 MB."""
_FEWEST = 20
_ENOUGH = 20
"""Arrangements of which the truth is 5 % at most."""
_WHOLE = "permutations of whole speakers against the templates"
_ROUNDING = 1e-9
_Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class NullBand:
    """What no evidence would read.

    Attributes:
        mean_bits: shape (P,), the plug-in MeanD of each dealing.
        model_bits: shape (P,), the law's MeanD of each dealing.
        chance: one-sided p-value of the trials themselves: how often no evidence reads a model
            MeanD as high while the right speaker comes first as often as by guessing or more.
        dealt: what was dealt, in words.
    """

    mean_bits: FloatArray
    model_bits: FloatArray
    chance: float
    dealt: str

    @property
    def limits(self) -> tuple[float, float]:
        """2.5 and 97.5 percentiles of the plug-in MeanD."""
        return limits(self.mean_bits)

    @property
    def model_limits(self) -> tuple[float, float]:
        """2.5 and 97.5 percentiles of the law's MeanD."""
        return limits(self.model_bits)


@dataclass(frozen=True)
class _Dealing:
    """Which template each trial is asked about: column ``places[p, who[t]]``.

    Attributes:
        places: shape (P, .).
        who: shape (T,).
        complete: every arrangement stands in it once, the truth as well.
        words: for a note.
    """

    places: IntArray
    who: IntArray
    complete: bool
    words: str


def null_band(
    matrix: ScoreMatrix,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    ties: str = "spread",
) -> NullBand:
    """Deal the speakers to other templates and read the disclosure that is left.

    The trials of a speaker stay together: they are alike, and the usual formula
    ``(N - 1) / (2 n ln 2)`` holds for independent trials only. Whole speakers are permuted against
    the templates, in all ways where those are 200 or less. Fewer than 20 ways are
    no null: the truth is one of them, and could never be rare. Three speakers then draw a template
    each, whoever has drawn it as well: 27 ways. Two speakers (of four or fewer) can do neither, so
    that their trials are permuted: those of one speaker then count as independent, which scores of
    two speakers cannot disprove.

    Args:
        matrix: the trials; its rows are sorted once, a block at a time.
        permutations: P, at most: of more than 335 000 trials fewer than 200 are taken.
        seed: of the permutations.
        ties: one of `TIE_RULES`.

    Returns:
        the readings of every dealing, and how often one reads as much as the truth, which is
        counted among them.

    Raises:
        UsageError: no permutation, or an unknown rule.

    Example:
        >>> perfect = ScoreMatrix(np.eye(3)[[0, 0, 1, 1, 2, 2]], np.array([0, 0, 1, 1, 2, 2]))
        >>> band = null_band(perfect)
        >>> round(band.chance, 3), band.dealt
        (0.037, 'all 27 ways in which each speaker can draw a template')
    """
    if permutations < 1:
        raise UsageError("a null band needs at least one permutation")
    most = max(_FEWEST, _RANKS // matrix.trials)
    dealing = _deal(matrix, min(permutations, most), most, np.random.default_rng(seed))
    first, width = np.empty((2, len(dealing.places) + 1, matrix.trials), dtype=np.int32)
    first[0], width[0] = placed(matrix.better, matrix.tied, ties)
    for part, scores in matrix.blocks():
        better, tied = placed(*all_rank_bounds(scores), ties)
        column = dealing.places[:, dealing.who[part]]
        row = np.arange(len(scores))
        first[1:, part], width[1:, part] = better[row, column], tied[row, column]
    once = np.ones((1, matrix.trials))
    histograms = np.concatenate(
        [
            rank_histograms(start, wide, matrix.population, once)
            for start, wide in zip(first, width, strict=True)
        ]
    )
    bits = fit_laws(histograms).mean_bits
    guessed = histograms[:, 0] * matrix.population >= matrix.trials * (1 - _ROUNDING)
    signed = np.where(guessed, bits, -bits)
    among = signed[1:] if dealing.complete else signed
    return NullBand(
        _plug_in_bits(histograms[1:]),
        bits[1:],
        float((among >= signed[0] - _ROUNDING).mean()),
        dealing.words,
    )


def _deal(
    matrix: ScoreMatrix, permutations: int, most: int, generator: np.random.Generator
) -> _Dealing:
    speakers, tested = matrix.population, len(matrix.tested)
    ways = perm(speakers, tested)
    if ways > min(PERMUTATIONS, most):
        places = generator.permuted(np.tile(np.arange(speakers), (permutations, 1)), axis=1)
        named = np.argsort(matrix.by_name)  # the order of the columns does not matter
        return _Dealing(
            matrix.by_name[places], named[matrix.target], False, f"{permutations} {_WHOLE}"
        )
    if ways >= _ENOUGH:
        every = np.array(list(itertools.permutations(range(speakers), tested)))
        return _Dealing(every, matrix.owner, True, f"all {ways} {_WHOLE}")
    ways = speakers**tested
    if ways >= _ENOUGH:
        drawn = np.array(list(itertools.product(range(speakers), repeat=tested)))
        words = f"all {ways} ways in which each speaker can draw a template"
        return _Dealing(drawn, matrix.owner, True, words)
    order = settled_order(matrix)
    trials = generator.permuted(np.tile(matrix.target[order], (permutations, 1)), axis=1)
    words = (
        f"{permutations} permutations of trials: too few speakers ({tested}) to be "
        "permuted "
        "themselves, so that trials of one speaker are taken as independent"
    )
    return _Dealing(trials, np.argsort(order), False, words)


def _plug_in_bits(histograms: _Doubles) -> _Doubles:
    p = histograms / histograms.sum(axis=1, keepdims=True)
    bits = np.log2(histograms.shape[1] * np.where(p > 0, p, 1.0))
    return np.asarray(np.maximum((p * bits).sum(axis=1), 0.0))


def no_evidence(figures: Iterable[Figure]) -> bool:
    """Whether permuted speakers read as much: the law's MeanD lies within its null band.

    Args:
        figures: of SRD.
    """
    found = {figure.key: figure for figure in figures}
    own, band = found.get("srd.mean_bits_model"), found.get("srd.null_model_bits")
    if own is None or own.value is None or band is None or band.high is None:
        return False
    return own.value <= band.high
