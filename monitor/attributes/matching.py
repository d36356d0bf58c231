"""Speakers who differ in one attribute and are matched in the others (VoxGuard's strict case)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

__all__ = ["matched"]


def matched(
    speakers: Iterable[str],
    has: Mapping[str, bool],
    others: Sequence[Mapping[str, str]],
    seed: int = 0,
) -> tuple[str, ...]:
    """As many speakers with the attribute as without it, for each value of the other attributes.

    Definition 2 of VoxGuard changes one attribute and holds the others. Nobody can be recorded at
    another gender or age, so speakers are matched: of each combination of the others as many stay
    of the one group as there are of the other, drawn at random. Where an attribute then tells
    something, it is not the others that tell it.

    Args:
        speakers: to choose from; of whom one of the attributes is unknown are left out.
        has: whether each has the attribute in question.
        others: the value of each other attribute, by speaker.
        seed: of the draw.

    Returns:
        those who stay, in order.

    Example:
        >>> has = {"a": True, "b": True, "c": False, "d": False, "e": False}
        >>> age = {"a": "old", "b": "young", "c": "old", "d": "old", "e": "old"}
        >>> len(matched("abcde", has, [age]))
        2
    """
    cells: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    for who in sorted(speakers):
        if who in has and all(who in other for other in others):
            cell = cells.setdefault(tuple(other[who] for other in others), ([], []))
            cell[has[who]].append(who)
    generator = np.random.default_rng(seed)
    kept: list[str] = []
    for _, (without, having) in sorted(cells.items()):
        count = min(len(without), len(having))
        for group in (without, having):
            kept += [group[i] for i in generator.permutation(len(group))[:count]]
    return tuple(sorted(kept))
