"""What an experiment is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from monitor.errors import UsageError
from monitor.maths.bootstrap import REPLICATES

__all__ = ["FEWEST_REPLICATES", "SESSIONS", "ExperimentSettings"]

FEWEST_REPLICATES = 20
"""With fewer dealings nothing is ever told from no evidence."""
SESSIONS = ("cross", "same")


@dataclass(frozen=True)
class ExperimentSettings:
    """What an experiment is asked for; None is left to the corpus (`monitor.experiment.panels`).

    Attributes:
        features: that are scored; None for all that were heard.
        lengths: T of the sweep, speech seconds.
        template_lengths: D of the sweep, likewise.
        tables_at: T and D of the tables and of figures 5 to 7.
        sessions: of ``"cross"`` and ``"same"``.
        trials: tests of each speaker in each cell.
        replicates: resamples of speakers behind the limits.
        seed: of the resamples.
        trained: by feature, names of those on whose speech its network was trained: no test of
            theirs counts for it.
    """

    features: tuple[str, ...] | None = None
    lengths: tuple[float, ...] | None = None
    template_lengths: tuple[float, ...] | None = None
    tables_at: tuple[float, float] | None = None
    sessions: tuple[str, ...] = SESSIONS
    trials: int = 20
    replicates: int = REPLICATES
    seed: int = 0
    trained: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.trials < 1 or self.replicates < FEWEST_REPLICATES:
            raise UsageError(
                f"an experiment takes a trial and {FEWEST_REPLICATES} resamples at least"
            )
        if strange := sorted(set(self.sessions) - set(SESSIONS)):
            raise UsageError(f"sessions={strange[0]!r} must be of {', '.join(SESSIONS)}")

    def knowing(self, system: str, features: tuple[str, ...]) -> frozenset[str]:
        """Who trained a network of a system: a feature, or the joint of these features."""
        behind = features if system == "joint" else (system,)
        return frozenset().union(*(self.trained.get(name, frozenset()) for name in behind))

    def plain(self) -> dict[str, Any]:
        """As JSON; of those who trained a network their number."""
        trained = {name: len(names) for name, names in sorted(self.trained.items())}
        return {**vars(self), "trained": trained}
