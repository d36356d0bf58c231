"""Everything that an experiment found, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.atomic import atomic_write, not_written
from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.cells.measuring import MEAN
from monitor.experiment.findings.answer import CorpusAnswer
from monitor.experiment.findings.questions import QUESTIONS, summary
from monitor.experiment.panels import Panel
from monitor.experiment.settings import ExperimentSettings
from monitor.features.registry import caveats
from monitor.phrases import weaker_together
from monitor.version import __version__

__all__ = ["KIND", "Experiment", "save_results"]

KIND = "experiment"
_SCHEMA = 1
_WORKING = ("resampled", "left_out")
"""What only limits are made of."""


@dataclass(frozen=True)
class Experiment:
    """What an experiment found.

    Attributes:
        name: of the corpus.
        settings: what was asked for.
        panels: who took part.
        cells: what was measured, those of the tables first.
        findings: what it says in words.
        frame_counts: by feature how often each bin was heard.
        problems: a line for what could not be used.
        heard: speech was compared here; else the scores are somebody's.
        noise: what had been added to the embeddings of tests and templates; mostly empty.
    """

    name: str
    settings: ExperimentSettings
    panels: Sequence[Panel]
    cells: Sequence[MeasuredCell]
    findings: Sequence[CorpusAnswer]
    frame_counts: Mapping[str, Sequence[int]]
    problems: tuple[str, ...] = ()
    heard: bool = True
    noise: str = ""

    @property
    def tables(self) -> list[MeasuredCell]:
        """The cells of the tables."""
        return [c for c in self.cells if c.panel.purpose == "tables" and c.systems]

    @property
    def systems(self) -> list[str]:
        """All systems, in the order of their colours."""
        return list(dict.fromkeys(name for cell in self.cells for name in cell.systems))

    @property
    def warnings(self) -> list[str]:
        """What makes the figures doubtful, all or those of a system, each once."""
        every = (
            f"{name}: {warning}"
            for cell in self.cells
            for name, found in cell.systems.items()
            for warning in found["warnings"]
        )
        told = [f"{each[:1].upper()}{each[1:]}." for each in caveats(self.systems)]
        noisy = [self.noisy] if self.noise else []
        return [*noisy, *told, *dict.fromkeys(every), *self._weaker_joints()]

    def _weaker_joints(self) -> Iterator[str]:
        """Cells of the tables of which one feature discloses more than all of them together."""
        for cell in self.tables:
            bits = {
                name: value
                for name, found in cell.systems.items()
                if (value := found["figures"][MEAN]["value"]) is not None
            }
            joint = bits.pop("joint", None)
            told = "" if joint is None else weaker_together(joint, bits)
            if told:
                yield (
                    f"{told} (T = {cell.test_seconds:g} s, D = {cell.template_seconds:g} s, "
                    f"{cell.panel.session} session)."
                )

    @property
    def noisy(self) -> str:
        """That templates with noise understate what an attacker learns, and what to do instead."""
        return (
            f"These frames have noise ({self.noise}), and so have the templates here: clear "
            "templates learn more, up to many times as much. For an attacker who has clear speech "
            "of everybody: monitor enroll CLEAR_FRAMES -o clear.npz; monitor score NOISY_FRAMES "
            "-p clear.npz -o scores.npz; monitor experiment scores.npz -o DIR. One who weighs by "
            "the law of the noise learns still more."
        )

    def about(self, question: str) -> list[CorpusAnswer]:
        """The findings about a question."""
        return [each for each in self.findings if each.question == question]

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": _SCHEMA,
            "kind": KIND,
            "program": __version__,
            "corpus": self.name,
            "problems": list(self.problems),
            "warnings": self.warnings,
            "settings": self.settings.plain(),
            "panels": [panel.plain() for panel in self.panels],
            "answers": {
                question.key: {
                    "question": question.text,
                    "paper": question.paper,
                    "corpus": summary(self.about(question.key)),
                }
                for question in QUESTIONS
            },
            "findings": [each.plain() for each in self.findings],
            "cells": [_plain(cell) for cell in self.cells],
            "frame_counts": {name: list(each) for name, each in self.frame_counts.items()},
        }


def save_results(found: Experiment, path: Path) -> None:
    """Write everything as JSON (mode 0600), at once or not at all.

    Raises:
        StoreError: the place cannot be written.
    """
    try:
        with atomic_write(path) as file:
            file.write(json.dumps(found.plain(), allow_nan=False, indent=1).encode())
    except OSError as error:
        raise not_written(path, error) from error


def _plain(cell: MeasuredCell) -> dict[str, Any]:
    return {
        "purpose": cell.panel.purpose,
        "session": cell.panel.session,
        "T": cell.test_seconds,
        "D": cell.template_seconds,
        "systems": {
            name: {key: value for key, value in found.items() if key not in _WORKING}
            for name, found in cell.systems.items()
        },
    }
