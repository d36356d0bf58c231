"""What an experiment is made of: something that has trials x speakers at several lengths."""

from __future__ import annotations

from typing import TypeAlias

from monitor.experiment.material.score_file import ScoresAtLengths
from monitor.experiment.material.speech import Speech

__all__ = ["Material"]

Material: TypeAlias = Speech | ScoresAtLengths
"""Speech that was heard, or scores that somebody made of it; small when it is pickled. Both say
alike who there is, at which lengths, and what the scores of a panel are."""
