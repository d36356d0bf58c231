"""Bits of evidence among so many people, in words.

Bits of evidence hold in a crowd of any size: k bits leave one person in ``2^k``. So a voice with 11
bits leaves some 500 people of a million, all of whom would fit as well as the one it is of.
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
    """A size of crowd that everybody can picture.

    Attributes:
        name: without an article.
        size: people in a typical one.
        upto: the largest crowd that is still called so.
    """

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
    """Return sizes of crowds, smallest first, each once.

    Raises:
        UsageError: one of them is no number of people.

    Examples:
        >>> sizes([1e6, 50, 1e6])
        (50, 1000000)
    """
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
    """Format a number of people as it is said.

    Examples:
        >>> [people(n) for n in (1, 50, 1e4, 250_000, 1e6, 2.5e6, 8e9)]
        ['1', '50', 'ten thousand', '250,000', 'a million', '2.5 million', '8 billion']
    """
    if count in _ROUND:
        return _ROUND[count]
    for unit, name in _LARGE:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:,.0f}"


def with_article(name: str) -> str:
    """Format the name of a crowd with its article.

    Examples:
        >>> with_article("office"), with_article("town")
        ('an office', 'a town')
    """
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def rounded(count: float) -> str:
    """Format a rough number of people: no more digits than it deserves.

    Examples:
        >>> [rounded(n) for n in (1.2, 3.4, 14.4, 238, 396.6, 1234, 96_000, 999_999, 3.2e6)]
        ['1', '3', '14', '240', '400', '1,200', 'a hundred thousand', 'a million', '3 million']
    """
    if count < 10:
        return f"{max(1, round(count))}"
    unit = 10.0 ** math.floor(math.log10(count))
    # two digits where the first is 1 or 2: one would be off by a quarter
    step = unit / 10 if count < 2.95 * unit else unit
    return people(float(round(count / step) * step))


def crowd_of(count: float, enrolled: float | None = None) -> str:
    """Format so many people as a crowd.

    Args:
        count: of people.
        enrolled: N; so many are not just any crowd.

    Examples:
        >>> [crowd_of(n) for n in (4, 120, 1e4, 1e6, 8e7)]
        ['a household of 4', 'an office of 120', 'a town of ten thousand', 'a city of a million', \
'a country of 80 million']
        >>> crowd_of(50, enrolled=50)
        'the 50 enrolled'
    """
    if count == enrolled:
        return f"the {people(count)} enrolled"
    name = next(crowd.name for crowd in SCALE if count < crowd.upto)
    return f"{with_article(name)} of {people(count)}"


def select_largest_crowd(reading: Record) -> Record | None:
    """Return the entry of the largest crowd that was asked for; None where there is none.

    Examples:
        >>> office, town = {"people": 50, "bits": 5.6}, {"people": 10000, "bits": 11.0}
        >>> select_largest_crowd({"among": [office, town]})
        {'people': 10000, 'bits': 11.0}
        >>> select_largest_crowd({"among": None})
    """
    entries = [entry for entry in reading.get("among") or () if entry.get("bits") is not None]
    return max(entries, key=lambda entry: float(entry["people"]), default=None)


def bits_or_more(reading: Record, bits: str) -> str:
    """Format bits of evidence, which may be more than the data can tell.

    Examples:
        >>> bits_or_more({"at_least": True}, "14.2 bits"), bits_or_more({}, "11.3 bits")
        ('at least 14.2 bits', '11.3 bits')
    """
    return f"at least {bits}" if reading.get("at_least") else bits


def format_matches(reading: Record) -> str:
    """Format how many people of the largest crowd match, in very few words.

    Examples:
        >>> reading = {"among": [{"people": 1e6, "bits": 11.3}]}
        >>> format_matches(reading), format_matches({**reading, "at_least": True})
        ('about 400 in a million', 'at most 400 in a million')
        >>> format_matches({"among": [{"people": 1e4, "bits": 13.2}]})
        'hardly anybody else in ten thousand'
        >>> format_matches({"among": [{"people": 1e6, "bits": 0.0}]})
        'nothing yet'
        >>> format_matches({"among": [{"people": 1e6, "bits": -1.0}]})
        'points away'
    """
    entry = select_largest_crowd(reading)
    if entry is None:
        return ""
    bits = float(entry["bits"])
    if abs(bits) < NOTHING_BITS:
        return "nothing yet"
    if bits < 0:
        return "points away"
    fitting = _count_matches(entry, bits)
    if fitting < NEARLY_ONE:
        return f"hardly anybody else in {people(entry['people'])}"
    roughly = "at most" if reading.get("at_least") else "about"
    return f"{roughly} {rounded(fitting)} in {people(entry['people'])}"


def _describe_matches(entry: Record, person: str, clipped: bool) -> tuple[str, bool]:
    """Describe who matches in a crowd, and whether that is people of whom more can be said."""
    bits, low, high = float(entry["bits"]), entry.get("bits_low"), entry.get("bits_high")
    fitting = _count_matches(entry, bits)
    if fitting < NEARLY_ONE:
        return f"hardly anybody but {person}", False
    if low is None or high is None or high - low <= WIDE_BITS or clipped:
        return f"about {rounded(fitting)} people{' or fewer' if clipped else ''}", True
    minimum, maximum = _count_matches(entry, high), _count_matches(entry, low)
    if maximum >= entry["people"]:
        return f"about {rounded(fitting)} people, and perhaps not at all", False
    return f"somewhere between {rounded(minimum)} and {rounded(maximum)} people", True


def axis_top(bits: float) -> float:
    """Return up to where to draw bits of evidence: the next crowd is seen, where it is near.

    Examples:
        >>> axis_top(8.2).__round__(2), axis_top(14.0)
        (9.97, 14.0)
    """
    ahead = next((crowd.bits for crowd in SCALE if crowd.bits >= bits), bits)
    return ahead if ahead - bits <= NEAR_BITS else bits


def narrowed_sentence(
    reading: Record, watch: str, *, subject: bool = True, fit: bool = True
) -> str:
    """Format what the evidence of a reading means in the largest crowd; empty without any.

    Where there is little room its ``subject``, and that the people left would ``fit``, go unsaid.

    Examples:
        >>> def said(bits, watch="ann", people=1e6):
        ...     entry = {"people": people, "bits": bits}
        ...     reading = {"bits": bits, "headline": "evidence", "among": [entry]}
        ...     return narrowed_sentence(reading, watch)
        >>> said(11.3)
        'this voice narrows a city of a million down to about 400 people who would fit as ann does'
        >>> said(11.3, "me")
        'your voice narrows a city of a million down to about 400 people who would fit as you do'
        >>> said(13.1, "me", 1e4)
        'your voice narrows a town of ten thousand down to hardly anybody but you'
        >>> said(0.01)
        'this voice says nothing yet: anybody in a city of a million would fit as ann does'
        >>> said(-1.0)
        'this voice points away from ann: it would fit most others better'
        >>> print(said(-6.5))
        this voice points away from ann: another voice, or a changed one; who knows the change \
may recognise it
    """
    entry, evidence = (
        select_largest_crowd(reading),
        reading.get("bits") if is_evidence(reading) else None,
    )
    if entry is None or evidence is None:
        return ""
    you = watch.lower() in YOU
    person, does = ("you", "you do") if you else (watch, f"{watch} does")
    voice = f"{'your' if you else 'this'} voice " if subject else ""
    crowd = crowd_of(entry["people"])
    if abs(evidence) < NOTHING_BITS:
        return f"{voice}says nothing yet: anybody in {crowd} would fit as {does}"
    if evidence < 0:
        reason = CHANGED if speaks_against(reading) else "it would fit most others better"
        return f"{voice}points away from {person}: {reason}"
    matches, people_left = _describe_matches(entry, person, bool(reading.get("at_least")))
    suffix = f" who would fit as {does}" if fit and people_left else ""
    return f"{voice}narrows {crowd} down to {matches}{suffix}"


def speaks_against(reading: Record) -> bool:
    """Return whether the evidence of a reading is strongly against the watched speaker.

    Examples:
        >>> speaks_against({"bits": -6.5, "headline": "evidence"}), speaks_against({"bits": -6.5})
        (True, False)
    """
    bits = reading.get("bits")
    return is_evidence(reading) and bits is not None and bits <= AGAINST_BITS


def best_match(reading: Record, enrolled: int) -> str:
    """Format whom the voice fits best where nobody is watched, and how likely it is in a crowd.

    The chance counts everybody who is not enrolled: to be the best match of a few is no evidence.

    Examples:
        >>> among = [{"people": 1e6, "bits": 0.1, "favourite": ["1272", 0.0024]}]
        >>> best_match({"among": among}, 50)
        'in a city of a million: 1 in 400 that it is 1272, the best match of the 50 enrolled'
        >>> among = [{"people": 1e3, "bits": 9.1, "favourite": ["1272", 0.97]}]
        >>> best_match({"among": among}, 50)
        'in a village of a thousand: 97 % that it is 1272, the best match of the 50 enrolled'
        >>> best_match({}, 50)
        ''
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
    """Format a probability as people say it.

    Examples:
        >>> [format_probability(p) for p in (0.0, 1e-12, 0.0024, 0.31, 0.97, 0.999)]
        ['next to no chance', 'next to no chance', '1 in 400', '1 in 3', '97 %', 'over 99 %']
    """
    if probability < 1e-9:
        return "next to no chance"
    if probability <= 0.4:
        return f"1 in {rounded(1 / probability)}"
    return "over 99 %" if probability > 0.995 else f"{round(100 * probability)} %"


def _count_matches(entry: Record, bits: float) -> float:
    """Count people of the crowd who would fit as well, the one included."""
    return float(entry["people"] * 2.0 ** -min(max(bits, -1000.0), 1000.0))
