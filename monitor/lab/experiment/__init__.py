"""SRD's experiments on any corpus: its sweeps, tables and figures, and one page that tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.lab.experiment.material import ExperimentSettings
    from monitor.lab.experiment.report import Experiment, experiment

__all__ = ["Experiment", "ExperimentSettings", "experiment"]

_HOMES = {"material": "ExperimentSettings", "report": "Experiment experiment"}

__getattr__, __dir__ = lazily(__name__, _HOMES)
