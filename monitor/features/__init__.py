"""Features, which turn audio or words into frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.features.registry import FEATURES, FeatureSetup, make, register
    from monitor.features.style import Style, StyleWords, read_style_words

__all__ = [
    "FEATURES",
    "FeatureSetup",
    "Style",
    "StyleWords",
    "make",
    "read_style_words",
    "register",
]

__getattr__, __dir__ = lazily(__name__, rooms=("phones",))
