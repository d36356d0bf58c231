"""Bits of evidence in crowds of people, in words.

k bits leave one person in ``2^k``, in a crowd of any size: a voice with 11 bits leaves some 500
people of a million, all of whom match as well as the one it is of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from monitor.errors import UsageError
from monitor.phrases import is_evidence

if TYPE_CHECKING:
    from monitor.types import Record

__all__ = [
    "SCALE",
    "Crowd",
    "axis_top",
    "best_match",
    "crowd_of",
    "format_matches",
    "format_probability",
    "narrowed_sentence",
    "people",
    "rounded",
    "select_largest_crowd",
    "sizes",
    "with_article",
]

FEWEST, MOST = 2, 10**10
NOTHING_BITS = 0.05
WIDE_BITS = 2.0  # limits further apart are a range of people: one number would promise too much
NEARLY_ONE = 1.5
NEAR_BITS = 2.5
AGAINST_BITS = -2.0
CHANGED = "another voice, or a changed one; who knows the change may recognise it"
"""What a voice is whose evidence `speaks_against` the watched speaker."""
YOU = ("me", "myself")  # who is watched by one of these names is the one who reads


class Crowd(NamedTuple):
    """A size of crowd that everybody can picture; one up to ``upto`` people is still called so."""

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

_ROUND = {
    1e3: "a thousand", 1e4: "ten thousand", 1e5: "a hundred thousand", 1e6: "a million",
    1e7: "ten million", 1e8: "a hundred million", 1e9: "a billion", 1e10: "ten billion",
}  # fmt: skip
_LARGE = ((1e9, "billion"), (1e6, "million"))


def sizes(requests: Iterable[float]) -> tuple[int, ...]:
    """Return sizes of crowds, smallest first, each once; UsageError where one is none."""
    counts = list(requests)
    for count in counts:
        if not (FEWEST <= count <= MOST and count == int(count)):
            raise UsageError(
                f"{count:g} is no size of a crowd: give whole numbers of people from {FEWEST} to "
                f"{MOST:g}, such as 1e4,1e6"
            )
    if not counts:
        raise UsageError("name at least one size of a crowd, such as 1e6")
    return tuple(sorted({int(count) for count in counts}))


def people(count: float) -> str:
    """Format a number of people as it is said: ``ten thousand``, ``2.5 million``."""
    if count in _ROUND:
        return _ROUND[count]
    for unit, name in _LARGE:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:,.0f}"


def with_article(name: str) -> str:
    """Format the name of a crowd with its article."""
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def rounded(count: float) -> str:
    """Format a rough number of people: no more digits than it deserves.

    Example:
        >>> [rounded(n) for n in (1.2, 14.4, 238, 1234, 96_000, 3.2e6)]
        ['1', '14', '240', '1,200', 'a hundred thousand', '3 million']
    """
    if count < 10:
        return f"{max(1, round(count))}"
    unit = 10.0 ** math.floor(math.log10(count))
    # two digits where the first is 1 or 2: one would be off by a quarter
    step = unit / 10 if count < 2.95 * unit else unit
    return people(float(round(count / step) * step))


def crowd_of(count: float, enrolled: float | None = None) -> str:
    """Format so many people as a crowd; N, the ``enrolled``, are not just any crowd.

    Example:
        >>> crowd_of(120), crowd_of(1e6), crowd_of(50, enrolled=50)
        ('an office of 120', 'a city of a million', 'the 50 enrolled')
    """
    if count == enrolled:
        return f"the {people(count)} enrolled"
    name = next(crowd.name for crowd in SCALE if count < crowd.upto)
    return f"{with_article(name)} of {people(count)}"


def select_largest_crowd(reading: Record) -> Record | None:
    """Return the entry of the largest crowd that was asked for; None where there is none."""
    entries = [entry for entry in reading.get("among") or () if entry.get("bits") is not None]
    return max(entries, key=lambda entry: float(entry["people"]), default=None)


def bits_or_more(reading: Record, bits: str) -> str:
    """Format bits of evidence, which may be more than the data can tell."""
    return f"at least {bits}" if reading.get("at_least") else bits


def format_matches(reading: Record) -> str:
    """Format how many people of the largest crowd match, in very few words.

    Example:
        >>> reading = {"among": [{"people": 1e6, "bits": 11.3}]}
        >>> format_matches(reading), format_matches({**reading, "at_least": True})
        ('about 400 in a million', 'at most 400 in a million')
    """
    entry = select_largest_crowd(reading)
    if entry is None:
        return ""
    bits = float(entry["bits"])
    if abs(bits) < NOTHING_BITS:
        return "nothing yet"
    if bits < 0:
        return "evidence against"
    fitting = _count_matches(entry, bits)
    if fitting < NEARLY_ONE:
        return f"hardly anybody else in {people(entry['people'])}"
    roughly = "at most" if reading.get("at_least") else "about"
    return f"{roughly} {rounded(fitting)} in {people(entry['people'])}"


def _describe_matches(entry: Record, clipped: bool) -> str:
    """Describe the people of a crowd who match."""
    bits, low, high = float(entry["bits"]), entry.get("bits_low"), entry.get("bits_high")
    fitting = _count_matches(entry, bits)
    if low is None or high is None or high - low <= WIDE_BITS or clipped:
        return f"about {rounded(fitting)} people{' or fewer' if clipped else ''}"
    minimum, maximum = _count_matches(entry, high), _count_matches(entry, low)
    if maximum >= entry["people"]:
        return f"about {rounded(fitting)} people, perhaps all,"
    return f"between {rounded(minimum)} and {rounded(maximum)} people"


def axis_top(bits: float) -> float:
    """Return up to where to draw bits of evidence: the next crowd is seen, where it is near."""
    ahead = next((crowd.bits for crowd in SCALE if crowd.bits >= bits), bits)
    return ahead if ahead - bits <= NEAR_BITS else bits


def narrowed_sentence(reading: Record, watch: str, *, fit: bool = True) -> str:
    """Format what the evidence of a reading means in the largest crowd; empty without any.

    Without ``fit`` it is left unsaid as well as whom these people match.

    Example:
        >>> def sentence(bits, watch="ann", people=1e6):
        ...     entry = {"people": people, "bits": bits}
        ...     reading = {"bits": bits, "headline": "evidence", "among": [entry]}
        ...     return narrowed_sentence(reading, watch)
        >>> sentence(11.3)
        'about 400 people in a city of a million match as well as ann'
        >>> sentence(13.1, "me", 1e4)
        'hardly anybody but you matches in a town of ten thousand'
        >>> sentence(0.01)
        'no evidence yet: anybody in a city of a million matches as well as ann'
        >>> sentence(-1.0)
        'this voice is evidence against ann'
    """
    entry = select_largest_crowd(reading)
    evidence = reading.get("bits") if is_evidence(reading) else None
    if entry is None or evidence is None:
        return ""
    person, crowd = "you" if watch.lower() in YOU else watch, crowd_of(entry["people"])
    if abs(evidence) < NOTHING_BITS:
        return f"no evidence yet: anybody in {crowd} matches as well as {person}"
    if evidence < 0:
        reason = f": {CHANGED}" if speaks_against(reading) else ""
        return f"this voice is evidence against {person}{reason}"
    if _count_matches(entry, float(entry["bits"])) < NEARLY_ONE:
        return f"hardly anybody but {person} matches in {crowd}"
    matches = _describe_matches(entry, bool(reading.get("at_least")))
    return f"{matches} in {crowd} match{f' as well as {person}' if fit else ''}"


def speaks_against(reading: Record) -> bool:
    """Return whether the evidence of a reading is strongly against the watched speaker."""
    bits = reading.get("bits")
    return is_evidence(reading) and bits is not None and bits <= AGAINST_BITS


def best_match(reading: Record, enrolled: int) -> str:
    """Format whom the voice fits best where nobody is watched, and how likely it is in a crowd.

    The chance counts everybody who is not enrolled: to be the best match of a few is no evidence.
    """
    entry = select_largest_crowd(reading)
    if entry is None or not entry.get("favourite"):
        return ""
    name, probability = entry["favourite"]
    one_in = entry.get("favourite_one_in")
    probability = 1 / one_in if one_in else probability
    match = f"that it is {name}, the best match of the {people(enrolled)} enrolled"
    return f"in {crowd_of(entry['people'])}: {format_probability(probability)} {match}"


def format_probability(probability: float) -> str:
    """Format a probability as people say it: ``1 in 400``, ``97 %``."""
    if probability < 1e-9:
        return "next to no chance"
    if probability <= 0.4:
        return f"1 in {rounded(1 / probability)}"
    return "over 99 %" if probability > 0.995 else f"{round(100 * probability)} %"


def _count_matches(entry: Record, bits: float) -> float:
    """Count people of the crowd who would fit as well, the one included."""
    return float(entry["people"] * 2.0 ** -min(max(bits, -1000.0), 1000.0))
