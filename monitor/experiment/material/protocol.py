"""What an experiment is made of: something that has trials x speakers at several lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.experiment.panels import Panel

__all__ = ["Material"]


class Material(Protocol):
    """Speech that was heard, or scores that somebody made of it; small when it is pickled."""

    @property
    def joins(self) -> bool:
        """Whether the experiment makes the joint of its systems; else they are all there is."""
        ...

    @property
    def systems(self) -> Sequence[str]:
        """What is measured, but for a joint that the experiment makes."""
        ...

    @property
    def speakers(self) -> Sequence[str]:
        """Everybody there is."""
        ...

    @property
    def offered(self) -> tuple[Sequence[float], Sequence[float]]:
        """T and D to choose from, speech seconds, ascending."""
        ...

    def fills(
        self, session: str, test: float, template: float
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Who has a template of D, and who of them has tests of T."""
        ...

    def matrices(self, panel: Panel, test: float, template: float) -> dict[str, ScoreMatrix]:
        """Scores by system; columns are the panel's speakers, rows trials of those it tests."""
        ...

    def content(self, panel: Panel) -> Any:
        """What its scores depend on, as JSON: hashes."""
        ...

    def frame_counts(self, speakers: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Of features that are counted, how often each bin was heard; empty where nobody knows."""
        ...
