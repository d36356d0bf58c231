"""Division of a recording at its pauses, and the choice of stretches to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from monitor.types import TICKS_PER_SECOND, BoolArray, find_runs

_PAUSE_TICKS = 20
"""Minimum pause for a cut."""
_LEAST_SPEECH, _MOST_SPEECH = 0.6, 3.0  # seconds per stretch, if pauses allow it
SINGLES = 2  # searches that start from a single stretch


@dataclass(frozen=True, slots=True)
class CutStretch:
    """Part of a recording between two pauses."""

    start: float  # seconds; equal to the end of the previous stretch
    end: float
    speech: float  # seconds of speech in it
    is_kept: bool = True  # whether it is published unchanged


def divide_at_pauses(speech: BoolArray) -> list[CutStretch]:
    """Divide a recording, given its speech decisions (ticks,), in the middle of its pauses.

    Stretches with less than 0.6 s of speech are joined with the next. Stretches with more than 3 s
    are divided at their longest shorter pause, or in the middle if they have no pause.

    Example:
        >>> speech = np.repeat([True, False, True, False, True], [200, 60, 30, 40, 150])
        >>> [(cut.start, cut.end, cut.speech) for cut in divide_at_pauses(speech)]
        [(0.0, 2.3, 2.0), (2.3, 4.8, 1.8)]
    """
    ticks = len(speech)
    counts = np.concatenate([[0], np.cumsum(speech)])

    def count_seconds(start: int, end: int) -> float:
        return float(counts[end] - counts[start]) / TICKS_PER_SECOND

    cuts = [0, *((a + b) // 2 for a, b in _pauses(speech, _PAUSE_TICKS)), ticks]
    joined = [0]
    for cut in cuts[1:-1]:
        enough = count_seconds(joined[-1], cut) >= _LEAST_SPEECH
        if enough and count_seconds(cut, ticks) >= _LEAST_SPEECH:
            joined.append(cut)
    stretches = []
    for start, end in zip(joined, [*joined[1:], ticks], strict=True):
        for a, b in pairwise(_divide(speech, start, end, count_seconds)):
            seconds = count_seconds(a, b)
            stretches.append(CutStretch(a / TICKS_PER_SECOND, b / TICKS_PER_SECOND, seconds))
    return stretches


def _pauses(speech: BoolArray, minimum: int) -> list[tuple[int, int]]:
    """Return runs without speech within the recording, of at least this many ticks."""
    return [(a, b) for a, b in find_runs(~speech) if a > 0 and b < len(speech) and b - a >= minimum]


def _divide(
    speech: BoolArray, start: int, end: int, count_seconds: Callable[[int, int], float]
) -> list[int]:
    if count_seconds(start, end) <= _MOST_SPEECH:
        return [start, end]
    inside = [
        (b - a, start + (a + b) // 2)
        for a, b in _pauses(speech[start:end], 1)
        if min(count_seconds(start, start + a), count_seconds(start + b, end)) >= _LEAST_SPEECH
    ]
    spoken = np.cumsum(speech[start:end])
    middle = max(inside)[1] if inside else start + int(np.searchsorted(spoken, spoken[-1] / 2))
    first = _divide(speech, start, middle, count_seconds)
    return [*first[:-1], *_divide(speech, middle, end, count_seconds)]


def choose_kept(
    speech: Sequence[float],
    order: Sequence[int],
    is_allowed: Callable[[frozenset[int]], bool],
    tries: int,
) -> frozenset[int]:
    """Choose allowed stretches with as much speech as possible; empty if none is allowed.

    The search starts from the longest allowed part of ``order``, found by halving, and from the
    longest stretches that are allowed alone. To each start, it tries to add up to ``tries`` others,
    in order. The choice with most speech wins.

    Example:
        >>> cost = [5, 1, 1, 3]
        >>> def is_allowed(choice):
        ...     return sum(cost[i] for i in choice) <= 5
        >>> sorted(choose_kept([4.0, 2.0, 2.0, 3.0], [1, 2, 0, 3], is_allowed, 9))
        [1, 2, 3]
    """
    if is_allowed(frozenset(order)):
        return frozenset(order)
    low, high = 0, len(order)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_allowed(frozenset(order[:middle])) else (low, middle)
    longest = sorted(order, key=lambda i: -speech[i])
    alone = (frozenset({i}) for i in longest[:tries] if is_allowed(frozenset({i})))
    best: frozenset[int] = frozenset()
    for choice in dict.fromkeys([frozenset(order[:low]), *islice(alone, SINGLES)]):
        for stretch in [i for i in order if i not in choice][:tries]:
            if is_allowed(choice | {stretch}):
                choice |= {stretch}
        best = max(best, choice, key=lambda stretches: sum(speech[i] for i in stretches))
    return best
