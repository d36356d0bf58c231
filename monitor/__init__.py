"""Measurement, in bits, of how much a voice discloses about who speaks, while it speaks.

The examples below stand in a folder with ``talk.npz`` (a recording) and ``voices/`` (a folder a
speaker, a file a session). Any audio file does as well: these frames were extracted before.

Measure a recording:

>>> from monitor import measure
>>> talk = measure("talk.npz", features=["f0"])
>>> f"{talk.speech:.0f} s of speech, {talk.bits:.1f} of {talk.ceiling:.1f} bits"
'... s of speech, ... of 5.6 bits'
>>> talk.plot("talk.png")  # and ``talk.readings.to_pandas()``

Attach a microphone: `sources.Microphone`, or a queue that your own audio callback fills; a
`Monitor` gives readings as they come:

>>> import numpy as np
>>> from monitor import Monitor, Population, sources
>>> queue = sources.AudioQueue(rate=16_000)
>>> queue.put(np.zeros(32_000)); queue.stop()
>>> [reading.seconds for reading in Monitor(Population.reference(), ["f0"]).stream(queue)]
[1.0, 2.0]

Enrol your people:

>>> from monitor import enrol
>>> enrolled = enrol("voices", features=["f0"], seconds=30)
>>> len(enrolled.population), enrolled.population.common_seconds
(12, 30.0)

Calibrate: what a rank among people of yours means:

>>> from monitor import calibrate
>>> from monitor.training import CalibrationSettings
>>> settings = CalibrationSettings(lengths=[1, 10], template_lengths=[30], trials=4)
>>> calibration = calibrate(enrolled, settings=settings)
>>> calibration.save("us.npz")
>>> people = calibration.population

Evaluate an anonymiser: score recordings that it made against the people, by every metric. There is
no anonymiser here, so the recordings that were enrolled stand in for its: ``allow_overlap`` lets
them, and the figures say no more than that. Leave it out for recordings of your own:

>>> from monitor import evaluate, score
>>> scores = score("voices", people, seconds=10, allow_overlap=True).matrices["f0"]
>>> report = evaluate(scores)  # or a file of scores, an array with ``labels=``, a data frame
>>> round(report.srd.mean_bits.value, 1), round(report.ceiling_bits, 1)
(..., 3.6)

``monitor.attack("voices", ["mcadams:0.8"])`` tries attackers who know the anonymiser.

Alert: a run asks rules of every reading, and gives actions their alerts:

>>> from monitor import Run, alerts
>>> from monitor.alerts.actions import Bell
>>> rule = alerts.Threshold("bits", 1.0, hold_seconds=0.0)
>>> with Run("talk.npz", Monitor(people, ["f0"]), rules=[rule], actions=[Bell()]) as run:
...     alert, *_ = [event for event in run if event.type == "alert"]
>>> alert.state, run.totals.alerts
('raised', 1)

Tables: readings of a monitor or a run as a data frame, CSV or Parquet (extra ``tables``):

>>> from monitor import Readings
>>> readings = Readings(Monitor(people, ["f0"], step_seconds=10).stream("talk.npz"))
>>> readings.to_pandas()[["seconds", "f0.gain_bits"]].shape[1]
2

Write a feature: declare what its frames look like, and give frames, or compute them from audio or
from timed words as `protocols.Feature` says (examples/12_a_feature_of_your_own.py does):

>>> from monitor import corpus, kinds
>>> from monitor.sources import write_frames
>>> from monitor.types import Track
>>> codes = kinds.FeatureSpec("codes", kinds.HISTOGRAM, size=64, frame_seconds=0.04)
>>> track = Track(ticks=4 * np.arange(1, 251), values=np.arange(250) % codes.size)
>>> write_frames("me.npz", np.ones(1000, bool), {"codes": track}, {"codes": 64}, {"codes": 0.04})
>>> str(enrol(corpus.find("me.npz", speaker="me"), seconds=10).population.features["codes"].spec)
'histogram of size 64'

Other rooms are attributes too: `crowds`, `events` (what a run writes), `lab` (metrics, attacks,
audits, experiments), `ledger` (many sessions of one voice), `maths`, `plots`, `protocols` (what
parts of your own must offer), `run`, `sinks`, `stream`, `tables`, `training`, `transcripts`.
"""

from __future__ import annotations

from monitor.lazy import lazily
from monitor.version import __version__

__all__ = [
    "Measurement",
    "Monitor",
    "MonitorError",
    "MonitorSettings",
    "Population",
    "Reading",
    "Readings",
    "Run",
    "__version__",
    "alerts",
    "anonymisers",
    "attack",
    "calibrate",
    "corpus",
    "enrol",
    "errors",
    "evaluate",
    "features",
    "kinds",
    "measure",
    "population",
    "protocols",
    "score",
    "sources",
    "types",
]

_HOMES = {
    "errors": "MonitorError",
    "events.reading": "Reading",
    "lab.attacks": "attack",
    "lab.evaluation": "evaluate",
    "lab.scoring": "score",
    "population": "Population",
    "run": "Measurement Run measure",
    "stream.monitor": "Monitor",
    "stream.plan": "MonitorSettings",
    "tables": "Readings",
    "training": "calibrate enrol",
}
_ROOMS = (
    *("alerts", "anonymisers", "corpus", "crowds", "errors", "events", "features", "kinds", "lab"),
    *("ledger", "maths", "plots", "population", "protocols", "run", "sinks", "sources", "stream"),
    *("tables", "training", "transcripts", "types"),
)
__getattr__, __dir__ = lazily(__name__, _HOMES, _ROOMS)
"""Nothing heavy is loaded by ``import monitor``: a name is imported when it is first used."""
