"""SRD's experiments on any corpus, with its sweeps, tables and figures on one page."""

from monitor.lab.experiment.material import ExperimentSettings
from monitor.lab.experiment.report import Experiment
from monitor.lab.experiment.running import experiment

__all__ = ["Experiment", "ExperimentSettings", "experiment"]
