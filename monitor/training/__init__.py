"""Enrolment of a corpus, and calibration of the rank models that turn ranks into bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.population.population import Calibration
    from monitor.training.calibrating import CalibrationSettings, calibrate
    from monitor.training.enrolling import Enrolment, enrol
    from monitor.training.voices import SpeakerSpeech, collect

__all__ = [
    "Calibration",
    "CalibrationSettings",
    "Enrolment",
    "SpeakerSpeech",
    "calibrate",
    "collect",
    "enrol",
]

__getattr__, __dir__ = lazily(__name__)
