"""Settings of an experiment, its speakers, and its lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from monitor.errors import CorpusError, UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.maths.statistics import REPLICATES
from monitor.types import BoolArray

# ---------------------------------------------------------------------------------------- settings

FEWEST_REPLICATES = 20
"""With fewer dealings nothing is ever told from no evidence."""
SESSIONS = ("cross", "same")


@dataclass(frozen=True)
class ExperimentSettings:
    """Settings of an experiment; None is left to the corpus.

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
        if unknown := sorted(set(self.sessions) - set(SESSIONS)):
            raise UsageError(f"sessions={unknown[0]!r} must be of {', '.join(SESSIONS)}")

    def get_trainers(self, system: str, features: tuple[str, ...]) -> frozenset[str]:
        """Return who trained a network of a system: a feature, or the joint of these."""
        names = features if system == "joint" else (system,)
        return frozenset().union(*(self.trained.get(name, frozenset()) for name in names))

    def plain(self) -> dict[str, Any]:
        """Return settings for JSON; of those who trained a network their number."""
        trained = {name: len(names) for name, names in sorted(self.trained.items())}
        return {**vars(self), "trained": trained}


# ------------------------------------------------------------------------------------------ panels
# Who takes part in an experiment, and at which lengths: the same people in all of its cells.
#
# A cell has a test length T and a template length D. Were everybody taken who can fill a cell, long
# cells would be of fewer and other people than short ones, and their difference would not be one of
# length. So every cell of a panel is of the same speakers.

LENGTHS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0)
"""T that are offered, speech seconds."""
TEMPLATE_LENGTHS = (3.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""D that are offered, likewise."""
TABLES_SECONDS = 30.0
"""T and D of the tables, where the speech is enough: SRD's unit of speech."""
_START_SECONDS = 10.0
_FEWEST = 2

Fills: TypeAlias = Callable[[str, float, float], tuple[Sequence[str], Sequence[str]]]
"""From session, T and D to the speakers who have a template, and those of them who have tests."""


@dataclass(frozen=True)
class Panel:
    """Speakers who take part in a number of cells, all in each.

    Attributes:
        purpose: ``"tables"``, one cell; or ``"sweep"``, all pairs of lengths.
        session: ``"cross"`` or ``"same"``.
        speakers: who has a template: the N whom each trial is compared with.
        tested: those of them who have tests.
        lengths, template_lengths: T and D, speech seconds.
    """

    purpose: str
    session: str
    speakers: tuple[str, ...]
    tested: tuple[str, ...]
    lengths: tuple[float, ...]
    template_lengths: tuple[float, ...]

    @property
    def cells(self) -> list[tuple[float, float]]:
        """T and D of each cell."""
        return list(product(self.lengths, self.template_lengths))

    def plain(self) -> dict[str, Any]:
        """Return the panel for JSON; of the speakers their number."""
        return {**asdict(self), "speakers": len(self.speakers), "tested": len(self.tested)}


def choose_panels(
    fills: Fills,
    offered: tuple[Sequence[float], Sequence[float]],
    sessions: Sequence[str],
    lengths: Sequence[float] | None = None,
    template_lengths: Sequence[float] | None = None,
    tables_at: tuple[float, float] | None = None,
) -> list[Panel]:
    """Choose the panels of tables and sweep, for each kind of session.

    The sweep goes as far as half of those speak who can be tested at 10 s with a template of 10 s;
    the tables are at 30 s and 30 s, or at the longest that the sweep reaches. T and D are chosen
    from those offered, where they are not given.

    Raises:
        CorpusError: nobody can be tested.

    Example:
        >>> spoken = {"ann": 50, "bob": 70, "cid": 300}
        >>> def fills(session, test, template):
        ...     found = [name for name in spoken if spoken[name] >= test + template]
        ...     return found, found
        >>> tables, sweep = choose_panels(fills, (LENGTHS, TEMPLATE_LENGTHS), ["same"])
        >>> tables.lengths, tables.speakers, sweep.lengths[-1], sweep.speakers
        ((30.0,), ('bob', 'cid'), 30.0, ('bob', 'cid'))
    """
    panels, tables = [], tables_at is None
    for session in sessions:
        corners = _list_corners(lengths or offered[0], template_lengths or offered[1])
        tested = {corner: len(fills(session, *corner)[1]) for corner in corners}
        fixed = lengths is not None and template_lengths is not None
        widest = corners[-1] if fixed else _find_widest(tested)
        if widest is None or tested[widest] < _FEWEST:
            continue
        at = tables_at or max(c for c in corners if max(c) <= TABLES_SECONDS or c == corners[0])
        if tables_at is None and sum(at) > sum(widest):
            at = widest
        if len(fills(session, *at)[1]) >= _FEWEST:
            tables = True
            panels.append(_make_panel(fills, "tables", session, at, (at[0],), (at[1],)))
        tests = tuple(t for t in lengths or offered[0] if t <= widest[0])
        templates = tuple(d for d in template_lengths or offered[1] if d <= widest[1])
        panels.append(_make_panel(fills, "sweep", session, widest, tests, templates))
    if not panels or not tables:
        kinds = " or ".join(f"{session} session" for session in sessions)
        lengths_of = "--tables-at" if panels else "--lengths and --template-lengths"
        raise CorpusError(
            f"fewer than two speakers have enough speech for a test and a template ({kinds}): "
            f"give more speech, or shorter {lengths_of}"
        )
    return panels


def _list_corners(
    lengths: Sequence[float], templates: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the longest cells of squares that grow."""
    corners = {
        (
            max((t for t in lengths if t <= side), default=min(lengths)),
            max((d for d in templates if d <= side), default=min(templates)),
        )
        for side in (*lengths, *templates)
    }
    return sorted(corners)


def _find_widest(tested: dict[tuple[float, float], int]) -> tuple[float, float] | None:
    """Return the end of the sweep; None where nobody can be tested."""
    filled = [corner for corner, count in tested.items() if count >= _FEWEST]
    if not filled:
        return None
    start = next((corner for corner in filled if min(corner) >= _START_SECONDS), filled[-1])
    return [corner for corner in filled if 2 * tested[corner] >= tested[start]][-1]


def _make_panel(
    fills: Fills, purpose: str, session: str, widest: tuple[float, float],
    lengths: tuple[float, ...], templates: tuple[float, ...],
) -> Panel:  # fmt: skip
    speakers, tested = fills(session, *widest)
    return Panel(purpose, session, tuple(speakers), tuple(tested), lengths, templates)


# -------------------------------------------------------------------------------------------- rows
# Some of the trials of a score matrix, or some of its speakers.


def select_rows(matrix: ScoreMatrix, rows: BoolArray) -> ScoreMatrix:
    """Select the trials where ``rows``, shape (T,), is true."""
    if rows.all():
        return matrix
    names = tuple(np.array(matrix.trial_names)[rows].tolist()) if matrix.trial_names else ()
    scores, target = matrix.scores[rows], matrix.target[rows]
    return ScoreMatrix(scores, target, matrix.speakers, matrix.name, names)


def exclude_speakers(matrix: ScoreMatrix, names: frozenset[str]) -> ScoreMatrix | None:
    """Exclude these speakers' trials; they stay candidates. None where nobody else is."""
    rows = np.array([matrix.speakers[column] not in names for column in matrix.target])
    return select_rows(matrix, rows) if rows.any() else None


def select_speakers(
    matrix: ScoreMatrix, speakers: Sequence[str], tested: Sequence[str]
) -> ScoreMatrix:
    """Select trials of those tested, compared with these speakers alone, in this order.

    Example:
        >>> matrix = ScoreMatrix(np.eye(3), np.arange(3), ("a", "b", "c"))
        >>> select_speakers(matrix, ("c", "a"), ("a",)).scores.tolist()
        [[0.0, 1.0]]
    """
    column = {name: i for i, name in enumerate(matrix.speakers)}
    chosen, columns_tested = [column[name] for name in speakers], {column[name] for name in tested}
    selected = select_rows(matrix, np.isin(matrix.target, sorted(columns_tested)))
    positions = np.full(matrix.population, -1)
    positions[chosen] = np.arange(len(chosen))
    return ScoreMatrix(
        np.asarray(selected.scores)[:, chosen], positions[selected.target], tuple(speakers),
        selected.name, selected.trial_names,
    )  # fmt: skip
