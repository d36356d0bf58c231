"""Voices matched to enrolled people, one to one."""

from __future__ import annotations

import numpy as np

from monitor.types import FloatArray

_LEAST = 1e-300


def one_to_one(shares: FloatArray) -> list[tuple[int | None, float]]:
    """Find the likeliest match of voices to people, each person to at most one voice.

    The product of the probabilities is the largest (the assignment problem; H. W. Kuhn, Naval
    Research Logistics Quarterly 1955). Any number of voices may match no person.

    ``shares``, (L, N), are the probabilities that voice l is person j; the rest of a row to 1, that
    it is another person. Returns for each voice its person, or None for no match, and the
    probability that this is right, given that the other matches are.

    Example:
        >>> matches = one_to_one(np.array([[0.8, 0.1], [0.7, 0.2], [0.1, 0.0]]))
        >>> [(person, round(probability, 2)) for person, probability in matches]
        [(0, 0.89), (1, 0.67), (None, 1.0)]
    """
    from scipy.optimize import linear_sum_assignment

    voices, people = shares.shape
    nobody = np.clip(1.0 - shares.sum(axis=1), 0.0, 1.0)
    cost = np.full((voices, people + voices), -np.log(_LEAST) * (voices + 1.0))
    cost[:, :people] = -np.log(np.maximum(shares, _LEAST))
    cost[np.arange(voices), people + np.arange(voices)] = -np.log(np.maximum(nobody, _LEAST))
    chosen = linear_sum_assignment(cost)[1]
    is_matched = np.zeros(people, np.bool_)
    is_matched[chosen[chosen < people]] = True
    matches: list[tuple[int | None, float]] = []
    for voice, column in enumerate(chosen.tolist()):
        is_enrolled = column < people
        free = ~is_matched
        if is_enrolled:
            free[column] = True
        of_all = float(shares[voice, free].sum() + nobody[voice])
        probability = float(shares[voice, column] if is_enrolled else nobody[voice])
        matches.append(
            (column if is_enrolled else None, probability / of_all if of_all > 0 else 0.0)
        )
    return matches
