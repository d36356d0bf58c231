"""The wording of a protected side: to which attacker, how much less, how many seconds bought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.phrases import clock_time, of_evidence

__all__ = [
    "IGNORANT",
    "NO_MEASURE",
    "attacker_in_words",
    "attacker_of",
    "bought_cells",
    "bought_in_words",
    "crossing_in_words",
    "fewer_in_words",
    "level_in_words",
    "protected_figure",
    "uninformed",
]

IGNORANT = "ignorant"
NO_MEASURE = "no measure of protection"
_KNOWS = {
    IGNORANT: "an attacker who does not know the anonymiser",
    "lazy-informed": "an attacker who has enrolled protected speech",
}


def attacker_in_words(name: str | None) -> str:
    """Who a protected figure is of: it is nothing without.

    Examples:
        >>> attacker_in_words("ignorant")
        'an attacker who does not know the anonymiser'
    """
    return _KNOWS.get(name or "", f"the attacker {name}")


def protected_figure(reading: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """The headline of the protected side with its limits; None where there is none.

    Examples:
        >>> side = {"bits": 1.5, "bits_low": 1.0, "bits_high": 2.0}
        >>> protected_figure({"protected": side})
        (1.5, 1.0, 2.0)
        >>> protected_figure({})
    """
    side = reading.get("protected") or {}
    value = side.get("bits")
    if value is None:
        return None
    return value, side.get("bits_low", value), side.get("bits_high", value)


def attacker_of(reading: Mapping[str, Any]) -> str:
    """Whose the figure of the protected side is, in words; empty where there is none.

    Of an attacker who does not know the anonymiser, where no other was tried, it says what that is
    worth.

    Examples:
        >>> known = {"bits": 1.5, "by": "ignorant", "attackers": {"ignorant": {}}}
        >>> attacker_of({"protected": known})
        'an attacker who does not know the anonymiser: no measure of protection'
        >>> both = {**known, "attackers": {"ignorant": {}, "lazy-informed": {}}}
        >>> attacker_of({"protected": {**both, "by": "lazy-informed"}})
        'the strongest attacker tried, who has enrolled protected speech'
    """
    side = reading.get("protected") or {}
    name = side.get("by")
    if name is None:
        return ""
    if uninformed(reading):
        return f"{_KNOWS[IGNORANT]}: {NO_MEASURE}"
    if len(side.get("attackers") or ()) < 2:
        return attacker_in_words(name)
    return f"the strongest attacker tried, {attacker_in_words(name).removeprefix('an attacker ')}"


def uninformed(reading: Mapping[str, Any]) -> bool:
    """Whether nobody was tried but who does not know the anonymiser.

    Examples:
        >>> uninformed({"protected": {"attackers": {"ignorant": {}}}}), uninformed({})
        (True, False)
    """
    side = reading.get("protected")
    return side is not None and set(side.get("attackers") or ()) <= {IGNORANT}


def fewer_in_words(reading: Mapping[str, Any]) -> str:
    """By how much the protected figure lies below the clear one; empty where one is missing.

    A figure that was cut to what calibration supports may be more: then no difference is known. And
    what an attacker loses who does not know the anonymiser is no merit of it: nothing is said.

    Examples:
        >>> side = {"bits": 1.25, "attackers": {"ignorant": {}, "lazy-informed": {}}}
        >>> fewer_in_words({"bits": 3.0, "protected": side})
        '1.8 fewer'
        >>> fewer_in_words({"bits": 1.0, "protected": side})
        '0.2 more'
        >>> cut = {"bits": 3.0, "headline": "evidence", "at_least": True, "protected": side}
        >>> fewer_in_words(cut)
        'at least 1.8 fewer'
        >>> fewer_in_words({"bits": 3.0, "protected": {**side, "attackers": {"ignorant": {}}}})
        ''
    """
    clear, found = reading.get("bits"), protected_figure(reading)
    if clear is None or found is None or uninformed(reading):
        return ""
    if reading["protected"].get("at_least"):
        return ""
    cut = of_evidence(reading) and reading.get("at_least")
    least = "at least " if cut and clear >= found[0] else ""
    apart = clear - found[0]
    return f"{least}{abs(apart):.1f} {'fewer' if apart >= 0 else 'more'}"


def level_in_words(bits: float) -> str:
    """A level of the headline.

    Examples:
        >>> level_in_words(3.0), level_in_words(1.0)
        ('3 bits', '1 bit')
    """
    return f"{bits:g} bit{'' if bits == 1 else 's'}"


def crossing_in_words(record: Mapping[str, Any]) -> str:
    """A crossing, in one line.

    Examples:
        >>> crossing = {"bits": 3.0, "side": "clear", "since_seconds": 4.0}
        >>> crossing_in_words({**crossing, "bought_seconds": None})
        '3 bits were reached at 0:04'
        >>> later = {**crossing, "side": "protected", "since_seconds": 19.0}
        >>> crossing_in_words({**later, "bought_seconds": 15.0})
        '3 bits were reached through the protector at 0:19: 15 s bought'
    """
    level = level_in_words(record.get("bits") or 0.0)
    through = " through the protector" if record.get("side") == "protected" else ""
    bought = record.get("bought_seconds")
    more = "" if bought is None else f": {bought:.3g} s bought"
    was = "was" if record.get("bits") == 1 else "were"
    at = clock_time(record.get("since_seconds") or 0.0)
    return f"{level} {was} reached{through} at {at}{more}"


def bought_in_words(row: Mapping[str, Any]) -> str:
    """What a row of the ``end`` record's table says was bought.

    Examples:
        >>> row = {"clear": {"crossed": True}, "bought_seconds": 15.0, "at_least": False}
        >>> bought_in_words(row), bought_in_words({**row, "at_least": True})
        ('15 s', 'at least 15 s')
        >>> bought_in_words({**row, "bought_seconds": -2.0})
        '-2 s'
        >>> missed = {"clear": {"crossed": False}, "bought_seconds": None, "at_least": False}
        >>> bought_in_words({**missed, "protected": {"crossed": False}})
        'not known'
    """
    bought = row.get("bought_seconds")
    if bought is None:
        return "not known"
    return f"{'at least ' if row.get('at_least') else ''}{bought:.3g} s"


def bought_cells(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """A row of the ``end`` record's table: level, when on either side, and what was bought.

    Examples:
        >>> clear, safe = {"seconds": 4.0, "crossed": True}, {"seconds": 60.0, "crossed": False}
        >>> bought_cells({"bits": 2.0, "clear": clear, "protected": safe,
        ...               "bought_seconds": 56.0, "at_least": True})
        ('2 bits', '0:04', 'not by 1:00', 'at least 56 s')
    """
    level = level_in_words(row.get("bits") or 0.0)
    clear, protected = _when(row.get("clear") or {}), _when(row.get("protected") or {})
    return level, clear, protected, bought_in_words(row)


def _when(crossing: Mapping[str, Any]) -> str:
    at = clock_time(crossing.get("seconds") or 0.0)
    return at if crossing.get("crossed") else f"not by {at}"
