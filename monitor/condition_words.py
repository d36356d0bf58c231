"""The wording of conditions: what a sound is like, and that it is not like the templates'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["CAVEAT", "caveat_of", "condition_in_words", "mismatch_in_words", "poor_in_words"]

CAVEAT = "low bits are no safety here"
"""Stands beside the headline where the sound is not that of the templates, or is bad."""

_TELEPHONE_HZ = 4200.0
_WIDE_HZ = 7500.0
_LOUD_DB = 30.0
_DRY_SECONDS = 0.25
_CLIPPED = 0.0005
_INFORMED = "an attacker with templates of such sound knows more than these bits"
_BETTER = "a better attacker may know more than these bits"


def caveat_of(reading: Mapping[str, Any]) -> str:
    """What stands beside the headline of a reading of such a sound; empty of any other.

    Examples:
        >>> caveat_of({"bits": -1.0, "differs": ["clipping"]})
        'low bits are no safety here'
        >>> caveat_of({"bits": -1.0})
        ''
    """
    return CAVEAT if reading.get("differs") else ""


def condition_in_words(condition: Mapping[str, Any] | None) -> str:
    """What is known of a sound, of a record's ``conditions``; empty where nothing is.

    Examples:
        >>> print(condition_in_words({"bandwidth_hz": 3600.0, "snr_db": 14.2,
        ...     "reverberation_seconds": 0.15, "clipping": 0.0, "level_db": -26.0}))
        telephone band, 14 dB above noise, dry
        >>> condition_in_words({"bandwidth_hz": 8000.0, "clipping": 0.02})
        'wide band, 2 % clipped'
        >>> condition_in_words(None)
        ''
    """
    told = []
    for name, words in _WORDS.items():
        value = (condition or {}).get(name)
        if value is not None and (said := words(value)):
            told.append(said)
    return ", ".join(told)


def _band(hertz: float) -> str:
    if hertz < _TELEPHONE_HZ:
        return "telephone band"
    return "wide band" if hertz >= _WIDE_HZ else f"band up to {hertz / 1000:.1f} kHz"


def _noise(decibels: float) -> str:
    return "little noise" if decibels >= _LOUD_DB else f"{decibels:.0f} dB above noise"


def _echo(seconds: float) -> str:
    return "dry" if seconds < _DRY_SECONDS else f"an echo of {seconds:.1f} s"


def _clipping(share: float) -> str:
    return f"{100 * share:.2g} % clipped" if share >= _CLIPPED else ""


_WORDS: Mapping[str, Callable[[float], str]] = {
    "bandwidth_hz": _band,
    "snr_db": _noise,
    "reverberation_seconds": _echo,
    "clipping": _clipping,
}


def mismatch_in_words(
    which: Sequence[str], stream: Mapping[str, Any], templates: Mapping[str, Any]
) -> str:
    """That a stream does not sound as the templates do, and what follows.

    Args:
        which: keys of the figures that differ.
        stream: its ``conditions``.
        templates: theirs.

    Example:
        >>> print(mismatch_in_words(["bandwidth_hz"], {"bandwidth_hz": 3600.0, "snr_db": 40.0},
        ...     {"bandwidth_hz": 8000.0}))
        telephone band, the templates: wide band; an attacker with templates of such sound knows \
more than these bits: low bits are no safety here
    """
    mine, theirs = (
        condition_in_words({name: each[name] for name in which}) or "not clipped"
        for each in (stream, templates)
    )
    return f"{mine}, the templates: {theirs}; {_INFORMED}: {CAVEAT}"


def poor_in_words(which: Sequence[str], stream: Mapping[str, Any]) -> str:
    """That a stream sounds bad, and what follows.

    Example:
        >>> poor_in_words(["snr_db"], {"snr_db": 1.2})
        '1 dB above noise; a better attacker may know more than these bits: low bits are no safety \
here'
    """
    return f"{condition_in_words({name: stream[name] for name in which})}; {_BETTER}: {CAVEAT}"
