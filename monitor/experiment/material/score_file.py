"""A score file as the material of an experiment: scores that anybody's recogniser made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from monitor.errors import UsageError
from monitor.evaluation.input.score_file import ScoreEntry, ScoreFile
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.experiment.cells.rows import among
from monitor.experiment.panels import Panel
from monitor.sources.fingerprints import file_hash

__all__ = ["ScoresAtLengths"]


@dataclass(frozen=True)
class ScoresAtLengths:
    """The matrices of a score file, by their lengths; its joint is as it is there.

    Attributes:
        path: of the file, as `monitor score` writes it.
        features: systems that are measured; None for all.
    """

    path: Path
    features: tuple[str, ...] | None = None
    joins: bool = False
    noise: str = ""

    @property
    def entries(self) -> tuple[ScoreEntry, ...]:
        """Its matrices.

        Raises:
            UsageError: it is no score file, or has none of these systems.
        """
        found = _file(self.path).entries
        chosen = [each for each in found if not self.features or each.system in self.features]
        if not chosen:
            raise UsageError(f"{self.path.name}: no scores of {', '.join(self.features or ())}")
        return tuple(chosen)

    @property
    def systems(self) -> Sequence[str]:
        """Whatever has scores."""
        return list(dict.fromkeys(entry.system for entry in self.entries))

    @property
    def speakers(self) -> Sequence[str]:
        """Everybody who is compared with in any matrix."""
        found = (_file(self.path).matrix(entry, entry.system) for entry in self.entries)
        return list(dict.fromkeys(name for each in found for name in each.speakers))

    @property
    def offered(self) -> tuple[Sequence[float], Sequence[float]]:
        """T and D to choose from."""
        return (
            sorted({entry.test_seconds for entry in self.entries}),
            sorted({entry.template_seconds for entry in self.entries}),
        )

    def fills(
        self, session: str, test: float, template: float
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Those who are in all shorter cells as well, so that a panel finds everybody in each."""
        some = [
            entry
            for entry in self.entries
            if entry.session == session
            and entry.test_seconds <= test
            and entry.template_seconds <= template
        ]
        if not any((e.test_seconds, e.template_seconds) == (test, template) for e in some):
            return [], []
        found = [_file(self.path).matrix(entry, entry.system) for entry in some]
        names = [name for name in found[0].speakers if all(name in each.speakers for each in found)]
        tested = [{each.speakers[column] for column in each.tested} for each in found]
        return names, [name for name in names if all(name in each for each in tested)]

    def matrices(self, panel: Panel, test: float, template: float) -> dict[str, ScoreMatrix]:
        """Scores by system."""
        lengths = panel.session, test, template
        return {
            entry.system: among(
                _file(self.path).matrix(entry, entry.system), panel.speakers, panel.tested
            )
            for entry in self.entries
            if (entry.session, entry.test_seconds, entry.template_seconds) == lengths
        }

    def content(self, panel: Panel) -> Any:
        """What the scores depend on."""
        del panel
        return {"file": file_hash(self.path), "systems": self.features}

    def frame_counts(self, speakers: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """How often each bin was heard, by feature."""
        del speakers
        return {}


@lru_cache(maxsize=1)
def _file(path: Path) -> ScoreFile:
    found = ScoreFile.at(path)
    if found is None:
        raise UsageError(f"{path.name} is no score file; monitor score makes one")
    return found
