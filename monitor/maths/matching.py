"""Who is who: voices matched to enrolled people, one to one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.types import FloatArray

_LEAST = 1e-300


class Match(NamedTuple):
    """Whom a voice is matched to.

    Attributes:
        person: the place of the person; None for nobody of them.
        probability: that it is so, given that the other voices are matched rightly.
    """

    person: int | None
    probability: float


def one_to_one(shares: FloatArray) -> list[Match]:
    """The likeliest match of voices to people, each person to one voice at most.

    The product of the probabilities is the largest (the assignment problem; H. W. Kuhn, Naval
    Research Logistics Quarterly 1955, as `scipy.optimize.linear_sum_assignment` solves it); any
    number of voices may be nobody's.

    Args:
        shares: shape (L, N), the probability that voice l is person j; what a row lacks of 1 is
            that it is nobody of them.

    Example:
        >>> found = one_to_one(np.array([[0.8, 0.1], [0.7, 0.2], [0.1, 0.0]]))
        >>> [(match.person, round(match.probability, 2)) for match in found]
        [(0, 0.89), (1, 0.67), (None, 1.0)]
    """
    from scipy.optimize import linear_sum_assignment

    voices, people = shares.shape
    nobody = np.clip(1.0 - shares.sum(axis=1), 0.0, 1.0)
    cost = np.full((voices, people + voices), -np.log(_LEAST) * (voices + 1.0))
    cost[:, :people] = -np.log(np.maximum(shares, _LEAST))
    cost[np.arange(voices), people + np.arange(voices)] = -np.log(np.maximum(nobody, _LEAST))
    chosen = linear_sum_assignment(cost)[1]
    taken = np.zeros(people, np.bool_)
    taken[chosen[chosen < people]] = True
    found = []
    for voice, place in enumerate(chosen.tolist()):
        own = place < people
        free = ~taken
        if own:
            free[place] = True
        of_all = float(shares[voice, free].sum() + nobody[voice])
        share = float(shares[voice, place] if own else nobody[voice])
        found.append(Match(place if own else None, share / of_all if of_all > 0 else 0.0))
    return found
