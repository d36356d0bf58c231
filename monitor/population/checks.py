"""Refusals of what no calibration gives.

A store may be malicious or damaged. A NaN would end a run in the middle, and a far too large
number would show nothing disclosed.
"""

from __future__ import annotations

from collections.abc import Mapping

from monitor.errors import StoreError
from monitor.safe_text import is_name


def require(holds: object, message: str) -> None:
    """Raise StoreError with the message unless the condition holds."""
    if not holds:
        raise StoreError(message)


def refuse_invalid(of: str, valid: Mapping[str, object]) -> None:
    """Refuse what has a part that is not valid, and name those parts."""
    if wrong := [name for name, is_valid in valid.items() if not is_valid]:
        raise StoreError(f"{', '.join(wrong)} of {of}: no calibration gives that")


def are_names(names: object) -> bool:
    """Return whether a value is a tuple of names."""
    return isinstance(names, tuple) and all(map(is_name, names))


def is_number(value: object) -> bool:
    """Return whether a value is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
