"""The kinds of feature there are, and all that differs between them.

A kind says how its frames are counted, compared, checked, stored and followed for changes; nothing
outside this folder asks which kind a feature is of. A `FeatureSpec` is what one feature's frames
look like.
"""

from __future__ import annotations

from monitor.errors import UsageError
from monitor.kinds.base import Kind
from monitor.kinds.embedding import EMBEDDING
from monitor.kinds.histogram import HISTOGRAM
from monitor.kinds.levels import LEVELS
from monitor.kinds.spec import FeatureSpec, comparable_features

__all__ = [
    "EMBEDDING",
    "HISTOGRAM",
    "KINDS",
    "LEVELS",
    "SIMILARITIES",
    "FeatureSpec",
    "Kind",
    "comparable_features",
    "kind",
]

KINDS: dict[str, Kind] = {each.name: each for each in (HISTOGRAM, EMBEDDING, LEVELS)}
"""Every kind, by the name that it has in stores."""

SIMILARITIES = {name: how for each in KINDS.values() for name, how in each.similarities.items()}
"""Every way to compare a stream with templates, by name."""


def kind(name: str) -> Kind:
    """The kind of that name.

    Raises:
        UsageError: there is none.

    Example:
        >>> kind("histogram") is HISTOGRAM
        True
    """
    found = KINDS.get(name) if isinstance(name, str) else None
    if found is None:
        raise UsageError(f"kind={name!r} must be one of {', '.join(KINDS)}")
    return found
