"""Readings, alerts and changes in the words of a terminal: one short line each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from monitor.condition_words import caveat_of
from monitor.crowds import best_match, bits_or_more, left_of, narrowed_sentence
from monitor.phrases import (
    STRANGER,
    clock_time,
    closed_set,
    is_stranger,
    length_in_words,
    odds,
    of_evidence,
    one_in,
    voice_since,
)
from monitor.protected_words import attacker_of, fewer_in_words, protected_figure
from monitor.safe_text import printable

__all__ = [
    "alert_in_words",
    "also_narrowed_down",
    "among_enrolled",
    "bits_now",
    "clean",
    "in_a_crowd",
    "limits_in_words",
    "number",
    "protected_now",
    "speed_text",
]

SHOWN_BYSTANDERS = 3


def alert_in_words(record: Mapping[str, Any]) -> str:
    """An alert or a warning, raised or over, in one line.

    Examples:
        >>> alert = {"type": "alert", "seconds": 41.0, "rule": "bits>3 for 5 s", "field": "bits",
        ...     "threshold": 3.0, "level": "alert", "state": "raised", "value": 3.42}
        >>> alert_in_words(alert)
        'alert at 0:41: bits>3 for 5 s (now 3.4)'
        >>> alert_in_words({**alert, "state": "cleared"})
        'alert over at 0:41: bits>3 for 5 s'
        >>> change = {"since_seconds": 33.0, "features": ["f0"]}
        >>> alert_in_words({**alert, "state": "cleared", "change": change})
        'alert over at 0:41: bits>3 for 5 s (another voice since 0:33)'
        >>> soon = {"level": "warning", "rule": "bits>3 within 30 s", "value": 2.1}
        >>> alert_in_words({**alert, **soon, "seconds_left": 28.2})
        'warning at 0:41: 3 bits in about 28 s (bits>3 within 30 s, now 2.1)'
        >>> late = {"false_alarms": {"horizon_seconds": 30.0, "beyond": True}}
        >>> alert_in_words({**alert, **late})
        'alert at 0:41: bits>3 for 5 s (now 3.4; later than the 30 seconds this is known for)'
    """
    at, rule = clock_time(record.get("seconds") or 0.0), clean(record.get("rule"), 60)
    level = clean(record.get("level", "alert"), 10)
    if record.get("state") != "raised":
        why = f" ({voice_since(record['change'])})" if record.get("change") else ""
        return f"{level} over at {at}: {rule}{why}"
    now, left = number(record.get("value")), record.get("seconds_left")
    if left is None:
        return f"{level} at {at}: {rule} (now {now}{beyond_in_words(record)})"
    soon = f"{record['threshold']:g} bits in about {max(1, round(left))} s"
    return f"{level} at {at}: {soon} ({rule}, now {now})"


def beyond_in_words(record: Mapping[str, Any]) -> str:
    """That an alert came later than its false alarms are known for; empty where it did not."""
    alarms = record.get("false_alarms") or {}
    if not alarms.get("beyond"):
        return ""
    return f"; later than the {length_in_words(alarms['horizon_seconds'])} this is known for"


def also_narrowed_down(bystanders: Sequence[Mapping[str, Any]] | None) -> str:
    """Who else became more probable; empty where nobody did.

    Examples:
        >>> also_narrowed_down([{"name": "bob", "probability": 1 / 30, "people": 10000}])
        'also narrowed down: bob, 1 in 30'
        >>> also_narrowed_down([])
        ''
    """
    found = list(bystanders or ())
    if not found:
        return ""
    shown = [f"{clean(each['name'], 20)}, {one_in(each['probability'])}" for each in found]
    more = f"; and {len(found) - SHOWN_BYSTANDERS} more" if len(found) > SHOWN_BYSTANDERS else ""
    return f"also narrowed down: {'; '.join(shown[:SHOWN_BYSTANDERS])}{more}"


def bits_now(reading: Mapping[str, Any]) -> str:
    """The headline of a reading, or why there is none.

    Examples:
        >>> among = [{"people": 50, "bits": 5.6}, {"people": 1e6, "bits": 11.3}]
        >>> bits_now({"bits": 11.3, "headline": "evidence", "among": among})
        '11.3 bits, about 400 in a million'
        >>> bits_now({"bits": 2.06, "ceiling": 5.64}), bits_now({"bits": None})
        ('2.1 of 5.6 bits, 1 in 12', 'no figure yet')
        >>> print(bits_now({"bits": -1.0, "ceiling": 5.64, "differs": ["clipping"]}))
        -1.0 of 5.6 bits, 1 in 100 (low bits are no safety here)
    """
    bits, care = reading.get("bits"), caveat_of(reading)
    beside = f" ({care})" if care and bits is not None else ""
    if not of_evidence(reading) or bits is None or not math.isfinite(bits):
        return f"{among_enrolled(reading)}{beside}"
    words = bits_or_more(reading, f"{number(bits)} bits")
    if change := reading.get("change"):
        return f"{words}, {voice_since(change)}{beside}"
    return ", ".join(each for each in (words, left_of(reading)) if each) + beside


def limits_in_words(low: float, high: float, *, cut: bool | None = False) -> str:
    """95 % limits of a figure, in brackets.

    Args:
        low: bits.
        high: bits.
        cut: whether the figure was cut to the most that can be told: it has no upper limit then.

    Examples:
        >>> limits_in_words(7.04, 8.7), limits_in_words(8.7, 8.7, cut=True)
        ('(7.0 to 8.7)', '(8.7 or more)')
    """
    return f"({number(low)} or more)" if cut else f"({number(low)} to {number(high)})"


def in_a_crowd(reading: Mapping[str, Any], watch: str | None, enrolled: int) -> str:
    """What the evidence means in the largest crowd; empty where there is none to speak of.

    While a change is open it may be of somebody else, and claims nothing.
    """
    if reading.get("change"):
        return ""
    return best_match(reading, enrolled) if watch is None else narrowed_sentence(reading, watch)


def among_enrolled(reading: Mapping[str, Any]) -> str:
    """The closed-set figure of a reading, or why there is none.

    Examples:
        >>> among_enrolled({"bits": 2.06, "ceiling": 5.64}), among_enrolled({"bits": None})
        ('2.1 of 5.6 bits, 1 in 12', 'no figure yet')
        >>> among_enrolled({"bits": 5.58, "ceiling": 5.64})
        '5.6 of 5.6 bits, 96 % sure'
        >>> change = {"since_seconds": 107.0, "features": ["f0"]}
        >>> among_enrolled({"bits": 2.06, "ceiling": 5.64, "change": change})
        '2.1 of 5.6 bits, another voice since 1:47'
    """
    bits, ceiling = closed_set(reading), reading.get("ceiling")
    if bits is None or ceiling is None or not math.isfinite(bits):
        withheld = reading.get("withheld")
        return "no figure yet" if withheld is None else f"withheld: {clean(withheld, 40)}"
    words = f"{number(bits)} of {number(ceiling)} bits"
    if change := reading.get("change"):  # it claims nothing about anybody
        return f"{words}, {voice_since(change)}"
    said = odds(bits, ceiling, assumed=bool(reading.get("assumes_enrolled")))
    words = f"{words}, {said}"
    return f"{words} if it is one of them, {STRANGER}" if is_stranger(reading) else words


def protected_now(reading: Mapping[str, Any]) -> str:
    """What a reading says of the protected side, and to which attacker.

    Examples:
        >>> tried = {"ignorant": {}, "lazy-informed": {}}
        >>> side = {"bits": 0.9, "by": "lazy-informed", "attackers": tried}
        >>> protected_now({"bits": 2.1, "protected": side}).partition(", to ")[0]
        'protected 0.9 bits, 1.2 fewer'
        >>> side = {"bits": -14.7, "by": "ignorant", "attackers": {"ignorant": {}}}
        >>> protected_now({"bits": 2.1, "protected": side})  # doctest: +NORMALIZE_WHITESPACE
        'protected -14.7 bits, to an attacker who does not know the anonymiser: no measure of
        protection'
        >>> protected_now({"bits": 2.1})
        'protected: no figure yet'
    """
    figure = protected_figure(reading)
    if figure is None:
        return "protected: no figure yet"
    bits = bits_or_more(reading["protected"], f"{number(figure[0])} bits")
    parts = [f"protected {bits}", fewer_in_words(reading), f"to {attacker_of(reading)}"]
    return ", ".join(part for part in parts if part)


def number(value: float | None) -> str:
    """One decimal, no negative zero; a question mark for nothing."""
    text = "?" if value is None else f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def speed_text(speed: float) -> str:
    """A multiple of real time."""
    return f"{speed:.1f}" if speed < 10 else f"{speed:,.0f}"


def clean(value: object, longest: int) -> str:
    """A name or reason that cannot steer the terminal, shortened."""
    text = printable(value)
    return text if len(text) <= longest else text[: longest - 1] + "~"
