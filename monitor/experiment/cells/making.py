"""All cells of an experiment, each made once: by several processes, and kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.experiment.cells.joint import joint_of
from monitor.experiment.cells.measuring import measure
from monitor.experiment.cells.rows import without
from monitor.experiment.material.protocol import Material
from monitor.experiment.panels import Panel
from monitor.experiment.settings import ExperimentSettings
from monitor.result_cache import ResultCache, code_mark, result_key
from monitor.workers import each_in_order

__all__ = ["CellOrder", "MeasuredCell", "make_cells", "orders_of"]

_CODE = (
    "monitor.evaluation",
    "monitor.experiment.cells",
    "monitor.experiment.material",
    "monitor.kinds",
    "monitor.maths",
    "monitor.training",
)
"""What a result depends on beside its input."""


@dataclass(frozen=True)
class CellOrder:
    """A cell to be made.

    Attributes:
        panel: who takes part.
        test_seconds, template_seconds: T and D, of speech.
        key: under which it is kept.
    """

    panel: Panel
    test_seconds: float
    template_seconds: float
    key: str


@dataclass(frozen=True)
class MeasuredCell:
    """A cell that was made.

    Attributes:
        panel: who takes part.
        test_seconds, template_seconds: T and D, of speech.
        systems: by system what `measure` says of it.
    """

    panel: Panel
    test_seconds: float
    template_seconds: float
    systems: dict[str, dict[str, Any]]


def orders_of(
    panels: Sequence[Panel], material: Material, settings: ExperimentSettings
) -> list[CellOrder]:
    """Every cell of the panels, with a hash of all that it depends on."""
    code = code_mark(*_CODE)
    made = []
    for panel in panels:
        given = {
            "code": code,
            "content": material.content(panel),
            "panel": [panel.purpose, panel.session, panel.speakers, panel.tested],
            "resamples": [settings.replicates, settings.seed],
            "trained": {f: sorted(names) for f, names in settings.trained.items()},
        }
        for test, template in panel.cells:
            key = result_key({**given, "T": test, "D": template})
            made.append(CellOrder(panel, test, template, key))
    return made


def make_cells(
    orders: Sequence[CellOrder],
    material: Material,
    settings: ExperimentSettings,
    cache: ResultCache,
    jobs: int = 1,
    progress: Callable[[CellOrder], object] = lambda _: None,
) -> list[MeasuredCell]:
    """Make what is not kept, and read what is; every cell is kept as soon as it is made.

    Args:
        orders: from `orders_of`.
        material: of the experiment.
        settings: likewise.
        cache: where cells are kept.
        jobs: processes.
        progress: called with each cell that is done.

    Raises:
        MonitorError: a process was ended from outside.
        StoreError: the cache cannot be written.
    """
    found = {order.key: _read(cache, order.key) for order in orders}
    missing = list({order.key: order for order in orders if found[order.key] is None}.values())
    for order in orders:
        if found[order.key] is not None:
            progress(order)
    todo = {order.key: order for order in missing}

    def arrived(result: tuple[str, dict[str, Any]]) -> None:
        key, systems = result
        cache.write(key, json.dumps(systems, allow_nan=False).encode())
        found[key] = systems
        progress(todo[key])

    work = partial(_make, material, settings)
    with closing(each_in_order(work, missing, jobs, arrived=arrived)) as made:
        for _ in made:
            pass
    return [
        MeasuredCell(each.panel, each.test_seconds, each.template_seconds, found[each.key] or {})
        for each in orders
    ]


def _make(
    material: Material, settings: ExperimentSettings, order: CellOrder
) -> tuple[str, dict[str, Any]]:
    """One cell, with the key under which it is kept."""
    matrices = material.matrices(order.panel, order.test_seconds, order.template_seconds)
    systems = {
        name: measure(matrix, settings.replicates, settings.seed, order.panel.purpose == "tables")
        for name, matrix in _judged(matrices, material, settings)
    }
    return order.key, systems


def _judged(
    matrices: dict[str, ScoreMatrix], material: Material, settings: ExperimentSettings
) -> Iterator[tuple[str, ScoreMatrix]]:
    """Each system with the trials of those who trained none of its networks, and the joint.

    A system is left out of cells in which it heard nothing yet, such as an embedding of 3 s windows
    in tests of 1 s: there it has no scores, which are not scores that tell nothing.
    """
    features = tuple(matrices)
    for name, matrix in matrices.items():
        some = without(matrix, settings.knowing(name, features))
        if some is not None and _heard(some):
            yield name, some
    if not material.joins:
        return
    knowing = settings.knowing("joint", features)
    parts = {name: without(matrix, knowing) for name, matrix in matrices.items()}
    kept = {name: matrix for name, matrix in parts.items() if matrix is not None}
    joint = joint_of(kept) if kept else None
    if joint is not None:
        yield "joint", joint


def _heard(matrix: ScoreMatrix) -> bool:
    """Whether any trial has a score: without a frame, it is zero for everybody."""
    return bool(np.any(matrix.scores))


def _read(cache: ResultCache, key: str) -> dict[str, Any] | None:
    kept = cache.read(key)
    return None if kept is None else dict(json.loads(kept))
