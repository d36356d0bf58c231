"""Features: from blocks of audio to usable frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.features.registry import FEATURES, make, register

__all__ = ["FEATURES", "make", "register"]

_HOMES = {"FEATURES": "registry", "make": "registry", "register": "registry"}

__getattr__, __dir__ = lazily(__name__, _HOMES)
