"""Bits of evidence in crowds of people, in words.

With k bits, one person in ``2^k`` matches, in a crowd of any size. A voice with 11 bits leaves
about 500 people in a million. They all match as well as the speaker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from monitor.errors import UsageError

__all__ = [
    *("SCALE", "Crowd", "crowd_of", "format_probability", "people", "rounded"),
    *("one_of", "rounded_count", "sizes", "with_article"),
]

FEWEST, MOST = 2, 10**10
NEARLY_ONE = 1.5
YOU = ("me", "myself")  # names by which readers refer to themselves


class Crowd(NamedTuple):
    """A familiar size of crowd. Its name is used for up to ``upto`` people."""

    name: str
    size: float
    upto: float

    @property
    def bits(self) -> float:
        """Evidence, in bits, that leaves one match in this crowd."""
        return math.log2(self.size)


SCALE = (
    Crowd("household", 4, 10),
    Crowd("office", 50, 200),
    Crowd("village", 1e3, 2e3),
    Crowd("town", 1e4, 2e5),
    Crowd("city", 1e6, 2e7),
    Crowd("country", 5e7, 2e9),
    Crowd("world", 8e9, math.inf),
)
"""Crowds that people can picture, the smallest first."""

LEVELS = (0, 1, 3, 6, 10, 13, 17, 20, 23, 26, 30, 33)
"""Bits that plots explain in words at their right edge."""

_ROUND = {
    1e3: "a thousand", 1e4: "ten thousand", 1e5: "a hundred thousand", 1e6: "a million",
    1e7: "ten million", 1e8: "a hundred million", 1e9: "a billion", 1e10: "ten billion",
}  # fmt: skip
_LARGE = ((1e9, "billion"), (1e6, "million"))


def sizes(requests: Iterable[float]) -> tuple[int, ...]:
    """Return distinct crowd sizes, smallest first; UsageError for an invalid one."""
    counts = list(requests)
    for count in counts:
        if not (FEWEST <= count <= MOST and count == int(count)):
            raise UsageError(
                f"{count:g} is not a size of a crowd: use whole numbers of people from {FEWEST} to "
                f"{MOST:g}, such as 1e4,1e6"
            )
    if not counts:
        raise UsageError("give at least one size of a crowd, such as 1e6")
    return tuple(sorted({int(count) for count in counts}))


def people(count: float) -> str:
    """Format a number of people in words: ``ten thousand``, ``2.5 million``."""
    return _ROUND.get(count) or _in_digits(count)


def _in_digits(count: float) -> str:
    for unit, name in _LARGE:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:,.0f}"


def with_article(name: str) -> str:
    """Format the name of a crowd with its article."""
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def rounded(count: float) -> str:
    """Format a rough number of people, with one or two significant digits.

    Example:
        >>> [rounded(n) for n in (1.2, 14.4, 238, 1234, 96_000, 1e6, 3.2e6)]
        ['1', '14', '240', '1,200', '100,000', '1 million', '3 million']
    """
    return _in_digits(rounded_count(count))


def rounded_count(count: float) -> float:
    """Round a number of people to one or two significant digits; at least 1."""
    if count < 10:
        return max(1.0, float(round(count)))
    unit = 10.0 ** math.floor(math.log10(count))
    # two digits if the first is 1 or 2: one digit would be off by a quarter
    step = unit / 10 if count < 2.95 * unit else unit
    return float(round(count / step) * step)


def one_of(bits: float) -> str:
    """Format bits of evidence as odds, such as ``1 in 64``.

    Example:
        >>> one_of(1), one_of(6), one_of(10), one_of(13)
        ('1 in 2', '1 in 64', '1 in 1,000', '1 in 8,000')
    """
    count = 2.0**bits
    return f"1 in {_in_digits(count if count < 100 else rounded_count(count))}"


def crowd_of(count: float, enrolled: float | None = None) -> str:
    """Format a number of people as a crowd, or as the enrolled if it equals ``enrolled``.

    Example:
        >>> crowd_of(120), crowd_of(1e6), crowd_of(50, enrolled=50)
        ('an office of 120', 'a city of a million', 'the 50 enrolled')
    """
    if count == enrolled:
        return f"the {people(count)} enrolled"
    name = next(crowd.name for crowd in SCALE if count < crowd.upto)
    return f"{with_article(name)} of {people(count)}"


def format_probability(probability: float) -> str:
    """Format a probability for readers: ``1 in 400``, ``97 %``."""
    if probability < 1e-9:
        return "next to no chance"
    if probability <= 0.4:
        return f"1 in {rounded(1 / probability)}"
    return "over 99 %" if probability > 0.995 else f"{round(100 * probability)} %"
