"""Edit distance: how many phones have to be changed to turn one sequence into another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["edits"]


def edits(found: Sequence[str], said: Sequence[str]) -> int:
    """Insertions, deletions and substitutions, as few as will do (Levenshtein, 1966).

    Example:
        >>> edits("KAETS", "KAET"), edits(["T", "IY"], ["S", "IY"]), edits([], "abc")
        (1, 1, 3)
    """
    numbers: dict[str, int] = {}
    one, other = (
        np.array([numbers.setdefault(each, len(numbers)) for each in sequence], np.int64)
        for sequence in (found, said)
    )
    places = np.arange(other.size + 1)
    row = places.copy()
    for i, each in enumerate(one.tolist(), 1):
        either = np.minimum(row[1:] + 1, row[:-1] + (other != each))
        row = np.minimum.accumulate(np.append(i, either) - places) + places
    return int(row[-1])
