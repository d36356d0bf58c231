"""Measurement, in bits, of how much a voice discloses about who speaks, while it is heard.

The examples below stand in a folder with ``talk.npz`` (a recording) and ``voices/`` (a folder a
speaker, a file a session). Any audio file does as well: frames are audio that was heard before
(``--frames``).

Measure a recording:

>>> from monitor import measure
>>> found = measure("talk.npz", features=["f0"])
>>> f"{found.speech:.0f} s of speech, {found.bits:.1f} of {found.ceiling:.1f} bits"
'... s of speech, ... of 5.6 bits'
>>> found.plot("talk.png")  # and ``found.readings.to_pandas()``

Attach a microphone: `sources.Microphone`, or a queue that your own audio callback fills; a
`Monitor` gives readings as they come:

>>> import numpy as np
>>> from monitor import Monitor, Population, sources
>>> queue = sources.AudioQueue(rate=16_000)
>>> queue.put(np.zeros(32_000)); queue.stop()
>>> [reading.seconds for reading in Monitor(Population.reference(), ["f0"]).stream(queue)]
[1.0, 2.0]

Enrol your people:

>>> from monitor import corpus, enrol
>>> recordings = corpus.find("voices")
>>> enrolled = enrol(recordings, features=["f0"], seconds=30)
>>> len(enrolled.population), enrolled.population.common_seconds
(12, 30.0)

Calibrate: what a rank among people of yours means:

>>> from monitor import calibrate
>>> from monitor.training import CalibrationSettings
>>> settings = CalibrationSettings(lengths=[1, 10], template_lengths=[30], trials=4)
>>> made = calibrate(enrolled, settings=settings)
>>> people = enrolled.population.calibrated(made)
>>> people.save("us.npz")

Evaluate an anonymiser: score recordings that it made against the people, by every metric. There is
no anonymiser here, so the recordings that were enrolled stand in for its: ``allow_overlap`` lets
them, and the figures say no more than that. Leave it out for recordings of your own:

>>> from monitor import evaluate, score
>>> scores = score(recordings, people, seconds=10, allow_overlap=True).matrices["f0"]
>>> report = evaluate(scores)
>>> round(report["srd.mean_bits"].value, 1), round(report.ceiling_bits, 1)
(..., 3.6)

Alert: a run asks rules of every reading, and gives actions what they say:

>>> from monitor import Run, alerts
>>> from monitor.alerts.actions import Bell
>>> rule = alerts.Threshold("bits", 1.0, hold_seconds=0.0)
>>> with Run("talk.npz", Monitor(people, ["f0"]), rules=[rule], actions=[Bell()]) as run:
...     said = [event for event in run if event.type == "alert"]
>>> said[0].state, run.totals.alerts
('raised', 1)

Tables: what a monitor or a run says as a data frame, CSV or Parquet (extra ``tables``):

>>> from monitor import Readings
>>> readings = Readings(Monitor(people, ["f0"], step_seconds=10).stream("talk.npz"))
>>> readings.to_pandas()[["seconds", "f0.gain_bits"]].shape[1]
2

Write a feature: say what its frames look like, and give frames, or make them of audio or of timed
words as `protocols.Feature` says (examples/12_a_feature_of_your_own.py does, in one file):

>>> from monitor import FeatureSpec, Track, kinds, write_frames
>>> codes = FeatureSpec("codes", kinds.HISTOGRAM, size=64, frame_seconds=0.04)
>>> track = Track(ticks=4 * np.arange(1, 251), values=np.arange(250) % codes.size)
>>> write_frames("me.npz", np.ones(1000, bool), {"codes": track}, {"codes": 64}, {"codes": 0.04})
>>> str(enrol(corpus.find("me.npz", speaker="me"), seconds=10).population.features["codes"].spec)
'histogram of size 64'

Rooms, each `monitor.NAME` after ``import monitor``: `alerts` (rules, and `alerts.actions`),
`corpus` (who speaks where), `crowds`, `events` (what a run writes), `features` (by name), `kinds`
(of features), `lab` (metrics, attacks, audits, experiments), `ledger` (many sessions of one voice),
`maths`, `plots`, `population` (templates and rank models), `anonymisers` (by name),
`protocols` (what parts of your own must offer), `run`, `sinks`, `sources`, `stream`, `tables`,
`training` (enrol, calibrate), `transcripts`, `types`, `errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily
from monitor.version import __version__

if TYPE_CHECKING:
    from monitor import (
        alerts,
        anonymisers,
        corpus,
        crowds,
        errors,
        events,
        features,
        kinds,
        lab,
        ledger,
        maths,
        population,
        protocols,
        run,
        sinks,
        sources,
        stream,
        tables,
        training,
        types,
    )
    from monitor.errors import MonitorError
    from monitor.events.reading import Reading
    from monitor.kinds import FeatureSpec
    from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
    from monitor.lab.scoring import score
    from monitor.population import Population
    from monitor.run import Measurement, Run, measure
    from monitor.sources import read_frames, write_frames
    from monitor.stream.monitor import Monitor, MonitorSettings
    from monitor.tables import Readings
    from monitor.training import calibrate, collect, enrol
    from monitor.types import Block, Frames, Gap, Track

__all__ = [
    "Block",
    "EvaluationSettings",
    "FeatureSpec",
    "Frames",
    "Gap",
    "Measurement",
    "Monitor",
    "MonitorError",
    "MonitorSettings",
    "Population",
    "Reading",
    "Readings",
    "Run",
    "ScoreMatrix",
    "Track",
    "__version__",
    "alerts",
    "anonymisers",
    "calibrate",
    "collect",
    "corpus",
    "crowds",
    "enrol",
    "errors",
    "evaluate",
    "events",
    "features",
    "kinds",
    "lab",
    "ledger",
    "maths",
    "measure",
    "population",
    "protocols",
    "read_frames",
    "run",
    "score",
    "sinks",
    "sources",
    "stream",
    "tables",
    "training",
    "types",
    "write_frames",
]

_HOMES = {
    "errors": "MonitorError",
    "events.reading": "Reading",
    "kinds": "FeatureSpec",
    "lab.evaluation": "EvaluationSettings ScoreMatrix evaluate",
    "lab.scoring": "score",
    "population": "Population",
    "run": "Measurement Run measure",
    "sources": "read_frames write_frames",
    "stream.monitor": "Monitor MonitorSettings",
    "tables": "Readings",
    "training": "calibrate collect enrol",
    "types": "Block Frames Gap Track",
}
_ROOMS = (
    *("alerts", "anonymisers", "corpus", "crowds", "errors", "events", "features", "kinds", "lab"),
    *("ledger", "maths", "plots", "population", "protocols", "run", "sinks", "sources"),
    *("stream", "tables", "training", "transcripts", "types"),
)
__getattr__, __dir__ = lazily(__name__, _HOMES, _ROOMS)
"""Nothing heavy is loaded by ``import monitor``: a name is imported when it is first used."""
