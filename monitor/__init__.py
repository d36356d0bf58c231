"""How many bits of identity a voice discloses, measured while it is heard.

The examples below stand in a folder with ``talk.npz`` (a recording) and ``voices/`` (a folder a
speaker, a file a session). Any audio file does as well: frames are audio that was heard before
(``monitor hear``).

Measure a recording:

>>> from monitor import Monitor, Population, sources
>>> with sources.open_source("talk.npz") as talk:
...     *_, last = Monitor(Population.reference(), ["f0"]).stream(talk)
>>> f"{last.speech:.0f} s of speech, {last.bits:.1f} of {last.ceiling:.1f} bits"
'... s of speech, ... of 5.6 bits'

Attach a microphone: `sources.Microphone`, or a queue that your own audio callback fills:

>>> import numpy as np
>>> queue = sources.AudioQueue(rate=16_000)
>>> queue.put(np.zeros(32_000)); queue.stop()
>>> [reading.seconds for reading in Monitor(Population.reference(), ["f0"]).stream(queue)]
[1.0, 2.0]

Enrol your people:

>>> from monitor import corpus, enrol
>>> recordings = corpus.find("voices")
>>> people = enrol(recordings, features=["f0"], seconds=30).population
>>> len(people), people.common_seconds
(12, 30.0)

Calibrate: what a rank among people of yours means:

>>> from monitor import calibrate, collect
>>> voices, specs, _ = collect(recordings, features=["f0"])
>>> made = calibrate(voices, specs, lengths=[1, 10], template_lengths=[30], trials=4, alarms=people)
>>> people = people.calibrated(made)
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
...     said = [record for record in run if record["type"] == "alert"]
>>> said[0]["state"], run.totals.alerts
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

Rooms: `alerts` (rules, and `alerts.actions`), `corpus` (who speaks where), `crowds`,
`evaluation` (the papers' metrics), `features` (by name), `kinds` (of features), `ledger` (many
sessions of one voice), `population` (templates and laws), `protocols` (what parts of your own must
offer), `records` (what a run writes), `sinks`, `sources`, `training` (enrol, calibrate, score),
`types`, `errors`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from monitor.lazy import lazily
from monitor.version import __version__

if TYPE_CHECKING:
    from monitor import (
        alerts,
        corpus,
        crowds,
        errors,
        evaluation,
        features,
        kinds,
        ledger,
        population,
        protocols,
        records,
        sinks,
        sources,
        training,
        types,
    )
    from monitor.errors import MonitorError
    from monitor.evaluation import ScoreMatrix, evaluate
    from monitor.kinds import FeatureSpec
    from monitor.population import Population
    from monitor.run import Run
    from monitor.sources import read_frames, write_frames
    from monitor.stream.monitor import Monitor
    from monitor.stream.reading import Reading
    from monitor.tables import Readings
    from monitor.training import calibrate, collect, enrol, score
    from monitor.types import Block, Frames, Gap, Track

__all__ = [
    "Block",
    "FeatureSpec",
    "Frames",
    "Gap",
    "Monitor",
    "MonitorError",
    "Population",
    "Reading",
    "Readings",
    "Run",
    "ScoreMatrix",
    "Track",
    "__version__",
    "alerts",
    "calibrate",
    "collect",
    "corpus",
    "crowds",
    "enrol",
    "errors",
    "evaluate",
    "evaluation",
    "features",
    "kinds",
    "ledger",
    "population",
    "protocols",
    "read_frames",
    "records",
    "score",
    "sinks",
    "sources",
    "training",
    "types",
    "write_frames",
]

_HOMES = {
    "Block": "types",
    "FeatureSpec": "kinds",
    "Frames": "types",
    "Gap": "types",
    "Monitor": "stream.monitor",
    "MonitorError": "errors",
    "Population": "population",
    "Reading": "stream.reading",
    "Readings": "tables",
    "Run": "run",
    "ScoreMatrix": "evaluation",
    "Track": "types",
    "calibrate": "training",
    "collect": "training",
    "enrol": "training",
    "evaluate": "evaluation",
    "read_frames": "sources",
    "score": "training",
    "write_frames": "sources",
}
_ROOMS = (
    *("alerts", "corpus", "crowds", "errors", "evaluation", "features", "kinds", "ledger"),
    *("population", "protocols"),
    *("records", "sinks", "sources", "training", "types"),
)
_find, _names = lazily(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Import on first use: nothing heavy is loaded by ``import monitor``."""
    return import_module(f"monitor.{name}") if name in _ROOMS else _find(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *_ROOMS})
