"""From a corpus: templates of its speakers, what a rank among them means, and scores of trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.population.population import Calibration
    from monitor.training.calibrating import calibrate
    from monitor.training.enrolling import Enrolment, enrol
    from monitor.training.scoring import CorpusScores, score
    from monitor.training.voices import SpeakerSpeech, collect

__all__ = [
    "Calibration",
    "CorpusScores",
    "Enrolment",
    "SpeakerSpeech",
    "calibrate",
    "collect",
    "enrol",
    "score",
]

_HOMES = {
    "calibrating": "Calibration calibrate",
    "enrolling": "Enrolment enrol",
    "scoring": "CorpusScores score",
    "voices": "SpeakerSpeech collect",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
