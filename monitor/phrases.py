"""The wording of figures for people, one place for every view (the page's is ``words.js``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "STRANGER",
    "STYLE_CAVEAT",
    "VOICED",
    "another_voice",
    "clock_time",
    "closed_set",
    "enrolment",
    "is_headline",
    "is_stranger",
    "length_in_words",
    "odds",
    "of_evidence",
    "one_in",
    "others_in_words",
    "percent",
    "plural",
    "usable_in_words",
    "verdict",
    "voice_since",
    "weaker_together",
]

STRANGER = "probably nobody enrolled"
NOBODY = 0.2
"""Below this probability of being enrolled the views say so: four to one against."""
FEWEST = 1.95
"""From so many people on "1 in k" is said; below, "1 in 1.4" would help nobody."""
VOICED = ("f0", "f0_robust")
"""Features that use voiced speech alone, a part of all speech (usable seconds are fewer)."""
ONE = 1.1
MOST_PEOPLE = 1e9
MISLED_BITS = -0.05

STYLE_CAVEAT = (
    "style tells who chose the words: of what is read aloud that is its author, not the reader"
)
"""Said wherever a figure of the feature ``style`` is shown, or one that it has a part in."""


def clock_time(seconds: float) -> str:
    """Seconds as a clock shows them.

    Examples:
        >>> clock_time(61.5), clock_time(3600)
        ('1:01', '1:00:00')
    """
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    Examples:
        >>> plural(1, "speaker"), plural(0, "speaker"), plural(1200, "trial")
        ('1 speaker', '0 speakers', '1,200 trials')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def length_in_words(seconds: float) -> str:
    """A length of time, in minutes where it is a whole number of them.

    Examples:
        >>> length_in_words(600.0), length_in_words(60), length_in_words(90), length_in_words(0.5)
        ('10 minutes', '1 minute', '90 seconds', '0.5 seconds')
    """
    if seconds >= 60 and seconds % 60 == 0:
        return plural(round(seconds / 60), "minute")
    return f"{seconds:,g} second{'' if seconds == 1 else 's'}"


def one_in(probability: float) -> str:
    """A probability of one person, as "1 in k".

    Examples:
        >>> one_in(1 / 30), one_in(0.97), one_in(0.0004)
        ('1 in 30', '97 % sure', '1 in 2,500')
    """
    if probability * FEWEST > 1:
        return f"{probability:.0%} sure".replace("%", " %")
    return f"1 in {_count(1 / max(probability, 1e-15))}"


def percent(share: float) -> str:
    """A share of one.

    Examples:
        >>> percent(0.05), percent(0.125), percent(0.001)
        ('5 %', '12.5 %', '0.1 %')
    """
    return f"{100 * share:.4g} %"


def others_in_words(alarms: Mapping[str, Any]) -> str:
    """How often others set an alert off, of what the alert quotes.

    Examples:
        >>> quote = {"share": 0.05, "horizon_seconds": 600.0, "speakers": 22, "repeated": 0}
        >>> print(others_in_words(quote))
        of a hundred other people's streams of 10 minutes at most 5 set it off, by 22 speakers
        >>> others_in_words({**quote, "share": 0.125, "repeated": 20}).partition("at most ")[2]
        '125 set it off, by 22 speakers (20 of whom said less and were heard again)'
    """
    many, name = next(
        ((n, name) for n, name in _CROWDS if abs(alarms["share"] * n % 1) < 1e-9), _CROWDS[-1]
    )
    again = alarms.get("repeated")
    shorter = f" ({again} of whom said less and were heard again)" if again else ""
    streams = f"other people's streams of {length_in_words(alarms['horizon_seconds'])}"
    by = plural(alarms["speakers"], "speaker")
    return f"of {name} {streams} at most {alarms['share'] * many:g} set it off, by {by}{shorter}"


_CROWDS = ((100, "a hundred"), (1000, "a thousand"), (100_000, "a hundred thousand"))


def odds(bits: float, ceiling: float, *, assumed: bool = False) -> str:
    """What bits mean, in a few words.

    The bits of a watched speaker are a probability, ``2^(bits - ceiling)``; the confidence of an
    attacker where nobody is watched is a number of equally likely people, ``2^(ceiling - bits)``.

    Args:
        bits: the headline.
        ceiling: log2 N.
        assumed: nobody is watched: the speaker is assumed to be one of the N.

    Examples:
        >>> odds(2.06, 5.64), odds(0.0, 5.64), odds(5.58, 5.64), odds(5.64, 5.64)
        ('1 in 12', '1 in 50', '96 % sure', 'over 99 % sure')
        >>> odds(2.06, 5.64, assumed=True), odds(5.2, 5.64, assumed=True)
        ('1 in 12', '1 or 2 left')
    """
    k = _people(ceiling - bits)
    if k >= FEWEST:
        return f"1 in {_count(k)}"
    if assumed:
        return "1 or 2 left" if k >= ONE else "only 1 left"
    return "over 99 % sure" if k < 1 / 0.995 else f"{1 / k:.0%} sure".replace("%", " %")


def verdict(bits: float, ceiling: float, watch: str | None) -> str:
    """What an attacker thinks, in one clause.

    Args:
        bits: the headline.
        ceiling: log2 N.
        watch: the watched speaker; None where nobody is.

    Examples:
        >>> verdict(2.06, 5.64, "ann")
        'an attacker gives ann a chance of 1 in 12'
        >>> verdict(5.58, 5.64, "ann")
        'an attacker is 96 % sure that it is ann'
        >>> verdict(-1.0, 5.64, "ann")
        'an attacker is misled: ann seems less likely (1 in 100) than by guessing (1 in 50)'
        >>> verdict(2.06, 5.64, None)
        'an attacker thinks that about 12 of 50 people are left'
        >>> verdict(5.58, 5.64, None)
        'an attacker has hardly any doubt which of 50 people it is'
    """
    k, said = _people(ceiling - bits), odds(bits, ceiling)
    if watch is None:
        people = f"{_count(_people(ceiling))} people"
        if k < ONE:
            return f"an attacker has hardly any doubt which of {people} it is"
        left = f"about {_count(k)}" if k >= FEWEST else "1 or 2"
        return f"an attacker thinks that {left} of {people} are left"
    if k < FEWEST:
        return f"an attacker is {said} that it is {watch}"
    if bits < MISLED_BITS:
        less = f"{watch} seems less likely ({said}) than by guessing ({odds(0.0, ceiling)})"
        return f"an attacker is misled: {less}"
    return f"an attacker gives {watch} a chance of {said}"


def of_evidence(reading: Mapping[str, Any]) -> bool:
    """Whether the headline of a reading is evidence; else it is the closed-set figure.

    Examples:
        >>> of_evidence({"bits": 8.3, "headline": "evidence"}), of_evidence({"bits": 2.1})
        (True, False)
    """
    return reading.get("headline") == "evidence"


def is_headline(field: str, reading: Mapping[str, Any]) -> bool:
    """Whether a field of a reading, or of a ``start``, is the headline under either of its names.

    Examples:
        >>> is_headline("bits", {}), is_headline("evidence_bits", {"headline": "evidence"})
        (True, True)
        >>> is_headline("closed_set_bits", {"headline": "evidence"})
        False
    """
    return field in ("bits", "evidence_bits" if of_evidence(reading) else "closed_set_bits")


def closed_set(reading: Mapping[str, Any], end: str = "") -> float | None:
    """Bits of a reading among the N enrolled; with ``"_low"`` or ``"_high"`` a limit of them.

    Examples:
        >>> closed_set({"bits": 8.3, "headline": "evidence", "closed_set_bits": 5.6})
        5.6
        >>> closed_set({"bits": 2.1})
        2.1
    """
    return reading.get(f"{'closed_set_' if of_evidence(reading) else ''}bits{end}")


def voice_since(change: Mapping[str, Any]) -> str:
    """What a change noticed, and since when.

    Examples:
        >>> voice_since({"since_seconds": 107.0, "features": ["f0", "channel"]})
        'another voice since 1:47'
        >>> voice_since({"since_seconds": 107.0, "features": ["channel"]})
        'another channel or voice since 1:47'
        >>> voice_since({"since_seconds": 153.0, "features": ["f0"], "back": True})
        'the first voice is back since 2:33'
    """
    since = f"since {clock_time(change.get('since_seconds') or 0.0)}"
    if change.get("back"):
        return f"the first voice is back {since}"
    channel = list(change.get("features") or ()) == ["channel"]
    what = "another channel or voice" if channel else "another voice"
    return f"{what} {since}"


def another_voice(reading: Mapping[str, Any], watch: str | None) -> str:
    """Whose bits these may not be, while a change is open in a reading; else empty.

    Examples:
        >>> change = {"since_seconds": 107.0, "features": ["f0"]}
        >>> another_voice({"change": change}, "ann")
        "another voice since 1:47: these bits may not be ann's"
        >>> another_voice({"change": change, "excluded_seconds": 12.4}, "ann")
        "another voice since 1:47: 12 s of speech are left out of ann's bits"
        >>> another_voice({"change": change}, None), another_voice({}, "ann")
        ('another voice since 1:47: these bits may be of more than one', '')
    """
    change = reading.get("change")
    if change is None:
        return ""
    if watch is not None and (left_out := reading.get("excluded_seconds")):
        return f"{voice_since(change)}: {left_out:.0f} s of speech are left out of {watch}'s bits"
    whose = "may be of more than one" if watch is None else f"may not be {watch}'s"
    return f"{voice_since(change)}: these bits {whose}"


def is_stranger(reading: Mapping[str, Any]) -> bool:
    """True where the open-set figure is four to one against anybody enrolled.

    Examples:
        >>> is_stranger({"enrolled": 0.1}), is_stranger({"enrolled": None}), is_stranger({})
        (True, False, False)
    """
    enrolled = reading.get("enrolled")
    return enrolled is not None and enrolled < NOBODY


def enrolment(reading: Mapping[str, Any]) -> str:
    """Whether anybody enrolled speaks at all, in a few words; empty where nothing was heard.

    Where it is improbable it says in one sentence how that goes with whom the voice is most like,
    whose probability assumes that one of them speaks.

    Examples:
        >>> enrolment({"enrolled": 0.97}), enrolment({"enrolled": 0.1}), enrolment({})
        ('97 % likely', '10 % likely: probably nobody enrolled', '')
        >>> enrolment({"enrolled": 0.998})
        'over 99 % likely'
        >>> enrolment({"enrolled": None, "enrolled_withheld": "f0 cannot tell; needs an embedding"})
        'not known: needs an embedding'
        >>> enrolment({"enrolled": 0.1, "ceiling": 5.64, "top": [["me", 0.97], ["ann", 0.01]]})
        'of the 50 enrolled it is most like me (97 % if it is one of them), but it is probably \
nobody enrolled (10 % that it is one of them)'
    """
    enrolled = reading.get("enrolled")
    if enrolled is None:
        withheld = reading.get("enrolled_withheld")
        return f"not known: {withheld.rpartition('; ')[2]}" if withheld else ""
    likely = f"{_percent(enrolled)} likely"
    if not is_stranger(reading):
        return likely
    top, ceiling = reading.get("top"), reading.get("ceiling")
    if not top or not ceiling:
        return f"{likely}: {STRANGER}"
    name, share = top[0]
    return (
        f"of the {round(2**ceiling):,} enrolled it is most like {name} ({_percent(share)} if it is "
        f"one of them), but it is {STRANGER} ({_percent(enrolled)} that it is one of them)"
    )


def _percent(share: float) -> str:
    return "over 99 %" if share > 0.995 else f"{100 * share:.0f} %"


def usable_in_words(feature: str, seconds: float) -> str:
    """How much of the speech a feature could use, and what that is where it is much less.

    Examples:
        >>> usable_in_words("f0", 8.8), usable_in_words("voice", 144.0)
        ('8.8 s voiced', '144 s usable')
    """
    length = f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:.0f}"
    return f"{length} s {'voiced' if feature in VOICED else 'usable'}"


def weaker_together(together: float, alone: Mapping[str, float], name: str = "joint") -> str:
    """That one feature gives more than all of them weighed together; empty where none does.

    Args:
        together: bits of all features, as they were weighed.
        alone: bits of each by itself.
        name: what all of them together are called.

    Examples:
        >>> weaker_together(2.94, {"f0": 1.2, "voice": 3.24})
        'joint gives 2.94 bits, voice alone 3.24: go by voice, as an attacker would'
        >>> weaker_together(3.3, {"f0": 1.2, "voice": 3.24}), weaker_together(3.0, {})
        ('', '')
    """
    best = max(alone, key=alone.__getitem__, default=None)
    if best is None or round(alone[best] - together, 2) <= 0:
        return ""
    return (
        f"{name} gives {together:.2f} bits, {best} alone {alone[best]:.2f}: go by {best}, as an "
        "attacker would"
    )


def _people(bits: float) -> float:
    """How many people so many bits tell apart."""
    return float(2.0 ** min(max(bits, -1000.0), 1000.0))


def _count(k: float) -> str:
    if k > MOST_PEOPLE:
        return "over a billion"
    return f"{k:,.0f}" if k >= 9.95 else f"{k:.1f}".removesuffix(".0")
