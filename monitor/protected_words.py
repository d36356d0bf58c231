"""The wording of a protected side: to which attacker, how much less, how many seconds bought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.phrases import clock_time

__all__ = [
    "attacker_in_words",
    "attacker_of",
    "bought_cells",
    "bought_in_words",
    "crossing_in_words",
    "fewer_in_words",
    "level_in_words",
    "protected_figure",
]

_KNOWS = {
    "ignorant": "an attacker who has not enrolled protected speech",
    "lazy-informed": "an attacker who has enrolled protected speech",
}


def attacker_in_words(name: str | None) -> str:
    """Who a protected figure is of: it is nothing without.

    Examples:
        >>> attacker_in_words("ignorant")
        'an attacker who has not enrolled protected speech'
    """
    return _KNOWS.get(name or "", f"the attacker {name}")


def protected_figure(
    reading: Mapping[str, Any], field: str
) -> tuple[float, float | None, float | None] | None:
    """A figure of the protected side with its limits; None where there is none.

    Args:
        reading: of a run.
        field: ``bits`` or ``evidence_bits``.

    Examples:
        >>> side = {"bits": 1.5, "bits_low": 1.0, "bits_high": 2.0}
        >>> protected_figure({"protected": side}, "bits")
        (1.5, 1.0, 2.0)
        >>> protected_figure({}, "bits")
    """
    side = reading.get("protected") or {}
    value = side.get(field)
    return None if value is None else (value, side.get(f"{field}_low"), side.get(f"{field}_high"))


def attacker_of(reading: Mapping[str, Any], field: str) -> str:
    """Whose the figure of the protected side is, in words; empty where there is none.

    Examples:
        >>> attacker_of({"protected": {"bits": 1.5, "bits_by": "lazy-informed"}}, "bits")
        'an attacker who has enrolled protected speech'
    """
    side = reading.get("protected") or {}
    name = side.get("evidence_by" if field == "evidence_bits" else "bits_by")
    return "" if name is None else attacker_in_words(name)


def fewer_in_words(reading: Mapping[str, Any], field: str) -> str:
    """By how much the protected figure lies below the clear one; empty where one is missing.

    A figure that was cut to what calibration supports may be more: then no difference is known.

    Examples:
        >>> fewer_in_words({"bits": 3.0, "protected": {"bits": 1.25}}, "bits")
        '1.8 fewer'
        >>> fewer_in_words({"bits": 1.0, "protected": {"bits": 1.25}}, "bits")
        '0.2 more'
        >>> cut = {"evidence_bits": 3.0, "at_least": True, "protected": {"evidence_bits": 1.0}}
        >>> fewer_in_words(cut, "evidence_bits")
        'at least 2.0 fewer'
    """
    clear, found = reading.get(field), protected_figure(reading, field)
    if clear is None or found is None:
        return ""
    cut = field == "evidence_bits"
    if cut and (reading.get("protected") or {}).get("at_least"):
        return ""
    least = "at least " if cut and reading.get("at_least") and clear >= found[0] else ""
    apart = clear - found[0]
    return f"{least}{abs(apart):.1f} {'fewer' if apart >= 0 else 'more'}"


def level_in_words(field: str, bits: float) -> str:
    """A level of bits.

    Examples:
        >>> level_in_words("evidence_bits", 3.0), level_in_words("bits", 1.0)
        ('3 bits of evidence', '1 bit among the enrolled')
    """
    of = "of evidence" if field == "evidence_bits" else "among the enrolled"
    return f"{bits:g} bit{'' if bits == 1 else 's'} {of}"


def crossing_in_words(record: Mapping[str, Any]) -> str:
    """A crossing, in one line.

    Examples:
        >>> crossing = {"field": "bits", "bits": 3.0, "side": "clear", "since_seconds": 4.0}
        >>> crossing_in_words({**crossing, "bought_seconds": None})
        '3 bits among the enrolled were reached at 0:04'
        >>> later = {**crossing, "side": "protected", "since_seconds": 19.0}
        >>> crossing_in_words({**later, "bought_seconds": 15.0})
        '3 bits among the enrolled were reached through the protector at 0:19: 15 s bought'
    """
    level = level_in_words(str(record.get("field")), record.get("bits") or 0.0)
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
        >>> bought_cells({"field": "bits", "bits": 2.0, "clear": clear, "protected": safe,
        ...               "bought_seconds": 56.0, "at_least": True})
        ('2 bits among the enrolled', '0:04', 'not by 1:00', 'at least 56 s')
    """
    level = level_in_words(str(row.get("field")), row.get("bits") or 0.0)
    clear, protected = _when(row.get("clear") or {}), _when(row.get("protected") or {})
    return level, clear, protected, bought_in_words(row)


def _when(crossing: Mapping[str, Any]) -> str:
    at = clock_time(crossing.get("seconds") or 0.0)
    return at if crossing.get("crossed") else f"not by {at}"
