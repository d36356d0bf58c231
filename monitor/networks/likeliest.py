"""Decodes CTC posteriors into the likeliest phones, with a trigram of them.

A trigram of phones beside the posteriors (shallow fusion, as in A. Graves, N. Jaitly, "Towards
end-to-end speech recognition with recurrent neural networks", ICML 2014): the one best way by
Viterbi's search, whose states are the last two phones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.types import FloatArray

__all__ = ["Trigram", "likeliest"]

_LEAST = -7.0
"""Log posterior below which a phone does not begin in a frame."""
_BEHIND = 15.0
"""Nats behind the best way at which none goes on to a further phone."""
_NEVER = np.float32(-1e9)


@dataclass(frozen=True, slots=True)
class Trigram:
    """A trigram: how likely each class follows two others.

    Attributes:
        logs: shape (n, n, n): natural logarithm of the probability of the third after the first
            two; class 0 is the silence before the first and after the last.
        weight: of these logarithms beside the posteriors'.
        bonus: nats for each phone, since a way of few phones has few factors.
    """

    logs: FloatArray
    weight: float
    bonus: float


def likeliest(log_posteriors: FloatArray, trigram: Trigram) -> list[tuple[int, int]]:
    """Classes, and the frame in which each begins, of the likeliest way through a stretch.

    The score of a way is its log posteriors summed, and for each of its phones `Trigram.weight`
    times the trigram's logarithm and `Trigram.bonus`.

    Args:
        log_posteriors: shape (k, n), class 0 the blank of CTC (Graves et al., ICML 2006).
        trigram: of n classes.

    Example:
        >>> heard = np.log([[0.1, 0.5, 0.4], [0.8, 0.1, 0.1], [0.1, 0.5, 0.4]])
        >>> never_twice = np.log(np.full((3, 3, 3), 1 / 3))
        >>> never_twice[:, 1, 1] = never_twice[:, 2, 2] = -9
        >>> likeliest(heard, Trigram(never_twice, 1.0, 1.0))
        [(1, 0), (2, 2)]
    """
    classes = log_posteriors.shape[1]
    steps = np.float32(trigram.weight) * trigram.logs.astype(np.float32)
    ending, steps = steps[:, :, 0], steps + np.float32(trigram.bonus)
    # scores of ways that end in [last but one, last], with a blank or within the last phone
    blank = np.full((classes, classes), _NEVER)
    within = blank.copy()
    blank[0, 0] = 0
    # the way itself: a row of `made`, which names the row before
    to_blank, to_within = np.full((2, classes, classes), -1)
    made: list[tuple[int, int, int]] = []
    every = np.arange(classes)
    for frame, heard in enumerate(np.asarray(log_posteriors, np.float32)):
        better = blank >= within
        best, to_best = np.where(better, blank, within), np.where(better, to_blank, to_within)
        worst = best.max() - _BEHIND
        stay, to_stay = within + heard, to_within.copy()
        for phone in (np.flatnonzero(heard[1:] > _LEAST) + 1).tolist():
            begun = best + steps[:, :, phone]
            begun[:, phone] = blank[:, phone] + steps[:, phone, phone]  # twice: by a blank
            first = begun.argmax(axis=0)
            score = begun[first, every] + heard[phone]
            for last in np.flatnonzero((score > stay[:, phone]) & (score > worst)):
                before = to_blank if last == phone else to_best
                stay[last, phone], to_stay[last, phone] = score[last], len(made)
                made.append((int(before[first[last], last]), phone, frame))
        blank, to_blank, within, to_within = best + heard[0], to_best, stay, to_stay
    score = np.maximum(blank, within) + ending
    row = int(np.where(blank >= within, to_blank, to_within).flat[score.argmax()])
    found: list[tuple[int, int]] = []
    while row >= 0:
        row, phone, frame = made[row]
        found.append((phone, frame))
    return found[::-1]
