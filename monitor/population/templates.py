"""The templates of one feature."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.kinds import FeatureSpec
from monitor.types import AnyArray

__all__ = ["FeatureTemplates"]


@dataclass(frozen=True, slots=True)
class FeatureTemplates:
    """The templates of one feature, in slices of 5 speech seconds.

    Attributes:
        spec: of the feature.
        slices: shape (S, M): the sketch of each slice, speaker after speaker.
    """

    spec: FeatureSpec
    slices: AnyArray
