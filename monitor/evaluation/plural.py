"""A number and what is counted."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, word: str) -> str:
    """A number and what is counted, in the plural where there are several.

    Example:
        >>> counted(1, "trial"), counted(1200, "trial")
        ('1 trial', '1,200 trials')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"
