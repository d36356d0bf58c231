"""Anonymisers change audio so that it discloses less about the speaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.anonymisers.filters import McAdams, Noise, Unchanged, Utterance
    from monitor.anonymisers.laplace import Laplace
    from monitor.anonymisers.program import Program
    from monitor.anonymisers.recording import protect
    from monitor.anonymisers.registry import make, register
    from monitor.anonymisers.usc import Usc
    from monitor.anonymisers.vocoder import Vocoder

__all__ = [
    "Laplace",
    "McAdams",
    "Noise",
    "Program",
    "Unchanged",
    "Usc",
    "Utterance",
    "Vocoder",
    "make",
    "protect",
    "register",
]

# scipy and soundfile are slow to load
__getattr__, __dir__ = lazily(__name__)
