"""The wording of a declared epsilon: what is promised of a voice, beside what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["allowed_in_words", "composed_in_words", "declared_in_words", "promise_now"]


def declared_in_words(declared: Mapping[str, Any]) -> str:
    """What a mechanism declares, as the ``start`` record has it.

    Example:
        >>> declared_in_words({"mechanism": "usc:15", "epsilon_nats": 15.0, "window_seconds": 0.04,
        ...                    "empty_after": 2})
        'usc:15 promises epsilon 15 in each 0.04 s; after 2 of them, 0.08 s, the promise is empty'
    """
    after, seconds = declared["empty_after"], declared["window_seconds"]
    return (
        f"{declared['mechanism']} promises epsilon {declared['epsilon_nats']:g} in each "
        f"{seconds:g} s; after {after:,} of them, {_short(after * seconds)} s, the promise is empty"
    )


def promise_now(reading: Mapping[str, Any]) -> str:
    """What is promised of all that was heard so far; empty where nothing declares anything.

    Examples:
        >>> promise = {"windows": 25, "most_bits": 541.0, "optimal_nats": 374.0, "empty": True}
        >>> promise_now({"declared": promise})
        'promise empty: allows 541 bits, and 33 tell one from all alive'
        >>> promise_now({"declared": {**promise, "most_bits": 3.6, "empty": False}})
        'promised: no attacker has more than 3.6 bits'
        >>> promise_now({})
        ''
    """
    promise = reading.get("declared")
    if not promise:
        return ""
    allowed = allowed_in_words(promise["most_bits"])
    if promise["empty"]:
        return f"promise empty: allows {allowed}, and 33 tell one from all alive"
    return f"promised: no attacker has more than {allowed}"


def composed_in_words(start: Mapping[str, Any], reading: Mapping[str, Any]) -> str:
    """What the declared epsilons come to together; empty where nothing declares any.

    Example:
        >>> start = {"declared": {"epsilon_nats": 0.1, "window_seconds": 0.04, "delta": 1e-4}}
        >>> promise = {"windows": 250, "basic_nats": 25.0, "optimal_nats": 6.27}
        >>> composed_in_words(start, {"declared": {**promise, "advanced_nats": 9.41}})
        '250 times epsilon 0.1 are 25 together, 9.41 by advanced and 6.27 by optimal composition \
(delta 0.0001)'
        >>> composed_in_words(start, {"declared": {**promise, "advanced_nats": None}})
        '250 times epsilon 0.1 are 25 together, 6.27 by optimal composition (delta 0.0001)'
    """
    said, promise = start.get("declared"), reading.get("declared")
    if not said or not promise:
        return ""
    advanced = promise.get("advanced_nats")
    better = "" if advanced is None else f"{_short(advanced)} by advanced and "
    whole, least = _short(promise["basic_nats"]), _short(promise["optimal_nats"])
    return (
        f"{promise['windows']:,} times epsilon {said['epsilon_nats']:g} are {whole} together, "
        f"{better}{least} by optimal composition (delta {said['delta']:g})"
    )


def allowed_in_words(bits: float) -> str:
    """Bits of evidence that a promise leaves room for.

    Example:
        >>> allowed_in_words(3.61), allowed_in_words(1.0), allowed_in_words(54100.7)
        ('3.6 bits', '1 bit', '54,101 bits')
    """
    text = f"{bits:,.0f}" if bits >= 100 else f"{bits:.1f}".removesuffix(".0")
    return f"{text} bit{'' if text == '1' else 's'}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
