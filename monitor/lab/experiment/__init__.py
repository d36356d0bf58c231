"""SRD's experiments on any corpus: its sweeps, tables and figures, and one page that tells them."""

from monitor.lab.experiment.material import ExperimentSettings
from monitor.lab.experiment.report import Experiment, experiment

__all__ = ["Experiment", "ExperimentSettings", "experiment"]
