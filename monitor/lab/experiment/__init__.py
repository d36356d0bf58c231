"""SRD's experiments on any corpus: its sweeps, tables and figures, and one page that tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.lab.experiment.report import Experiment
    from monitor.lab.experiment.running import experiment
    from monitor.lab.experiment.settings import ExperimentSettings

__all__ = ["Experiment", "ExperimentSettings", "experiment"]

_HOMES = {"report": "Experiment", "running": "experiment", "settings": "ExperimentSettings"}

__getattr__, __dir__ = lazily(__name__, _HOMES)
