"""Marks that tell which network made a feature; what two networks make is never compared.

A feature, its frames, templates, laws and sums are marked with the sha256 of the network's weights.
No mark: no network, or nobody noted which.
"""

from __future__ import annotations

import re

__all__ = ["is_mark", "unlike_networks"]

_SHA256 = re.compile("[0-9a-f]{64}")
_SHOWN = 12


def is_mark(value: object) -> bool:
    """Whether something read from a file is a mark, or none.

    Example:
        >>> is_mark(None), is_mark("a" * 64), is_mark("A" * 64), is_mark(3)
        (True, True, False, False)
    """
    return value is None or (isinstance(value, str) and _SHA256.fullmatch(value) is not None)


def unlike_networks(name: str, one: str, mine: str | None, other: str, theirs: str | None) -> str:
    r"""What is said where two marks differ.

    Args:
        name: of the feature.
        one: whose the first mark is.
        mine: the mark.
        other: whose the second one is.
        theirs: the mark.

    Example:
        >>> unlike_networks("voice", "a.npz", "ab" * 32, "b.npz", "cd" * 32)[:63]
        'voice of a.npz is by network abababababab, that of b.npz by net'
        >>> "\x1b" in unlike_networks("voice", "a", "\x1b[2J", "b", None)  # a file's word
        False
    """
    return (
        f"{name} of {one} is by {_by(mine)}, that of {other} by {_by(theirs)}: they cannot be "
        "compared"
    )


def _by(mark: str | None) -> str:
    if mark is None:
        return "no network that is noted"
    return f"network {mark[:_SHOWN]}" if is_mark(mark) else "an unknown network"
