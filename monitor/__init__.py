"""Measure in bits how much a voice discloses about the speaker, during speech.

The examples below run in a folder with ``talk.npz`` (a recording) and ``voices/`` (one folder per
speaker, one file per session). These files are extracted frames. Audio files work as well.

Measure a recording:

>>> from monitor import measure
>>> talk = measure("talk.npz", features=["f0"])
>>> f"{talk.speech:.0f} s of speech, {talk.bits:.1f} of {talk.ceiling:.1f} bits"
'... s of speech, ... of 5.6 bits'
>>> talk.plot("talk.png")  # and ``talk.readings.to_pandas()``

Attach a microphone with `sources.Microphone`, or a queue that your audio callback fills. A
`Monitor` yields readings during the stream:

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

Calibrate the meaning of a rank among your people:

>>> from monitor import calibrate
>>> from monitor.training import CalibrationSettings
>>> settings = CalibrationSettings(lengths=[1, 10], template_lengths=[30], trials=4)
>>> calibration = calibrate(enrolled, settings=settings)
>>> calibration.save("us.npz")
>>> people = calibration.population

Evaluate an anonymiser by scoring its recordings against the people, with every metric. This example
has no anonymiser and uses the enrolled recordings instead. ``allow_overlap`` permits this, and the
figures are therefore only a demonstration. Omit it for your own recordings:

>>> from monitor import evaluate, score
>>> scores = score("voices", people, seconds=10, allow_overlap=True).matrices["f0"]
>>> report = evaluate(scores)  # or a file of scores, an array with ``labels=``, a data frame
>>> round(report.srd.mean_bits.value, 1), round(report.ceiling_bits, 1)
(..., 3.6)

``monitor.attack("voices", ["mcadams:0.8"])`` tests attackers who know the anonymiser.

Alert: a run checks rules on every reading, and passes alerts to actions:

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

Write a feature: declare its frames and supply them, or compute them from audio or timed words as in
`protocols.Feature` (examples/12_a_feature_of_your_own.py):

>>> from monitor import corpus, kinds
>>> from monitor.sources import write_frames
>>> from monitor.types import Track
>>> codes = kinds.FeatureSpec("codes", kinds.HISTOGRAM, size=64, frame_seconds=0.04)
>>> track = Track(ticks=4 * np.arange(1, 251), values=np.arange(250) % codes.size)
>>> write_frames("me.npz", np.ones(1000, bool), {"codes": track}, {"codes": 64}, {"codes": 0.04})
>>> str(enrol(corpus.find("me.npz", speaker="me"), seconds=10).population.features["codes"].spec)
'histogram of size 64'

Other packages are attributes, too. `events` are the records of a run. `lab` has metrics, attacks,
audits and experiments. `ledger` adds up many sessions of one voice. `protocols` are the interfaces
for your own parts. The others are `crowds`, `maths`, `plots`, `run`, `sinks`, `stream`, `tables`,
`training` and `transcripts`.
"""

from __future__ import annotations

from monitor.lazy import lazily
from monitor.version import __version__

__all__ = [
    "Measurement",
    "Monitor",
    "MonitorError",
    "MonitorSettings",
    "Pool",
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
    "run": "Measurement Pool Run measure",
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
