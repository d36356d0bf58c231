"""The templates of one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.types import AnyArray

__all__ = ["FeatureTemplates", "plain"]


@dataclass(frozen=True, slots=True)
class FeatureTemplates:
    """The templates of one feature, in slices of 5 speech seconds.

    Attributes:
        kind, size, frame_seconds: as the feature has them.
        slices: shape (S, M): the sketch of each slice, speaker after speaker.
        network: sha256 of the network that made the frames; None where none did.
    """

    kind: str
    size: int
    frame_seconds: float
    slices: AnyArray
    network: str | None = None


def plain(templates: FeatureTemplates) -> dict[str, Any]:
    """All of it but the numbers, for a header; no mark where there is no network."""
    marked = () if templates.network is None else ("network",)
    kept = ("kind", "size", "frame_seconds", *marked)
    return {name: getattr(templates, name) for name in kept}
