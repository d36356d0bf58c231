"""What each exchangeable part of the monitor must offer: one structural type a role.

Nothing has to be inherited and nothing registered: an object with these attributes and methods
fits. `Source`, `Feature`, `Sketch`, `Sink` and `Protector` can be checked with ``isinstance``;
every implementation of them is held to their laws by ``tests/test_contracts.py``, of the last by
``tests/protectors/test_laws.py``.
"""

from monitor.protocols.alerts import AlertAction, AlertReceiver, AlertRule, ThresholdForecast
from monitor.protocols.features import CodeStream, Embedder, Feature, Sketch
from monitor.protocols.protectors import Protector
from monitor.protocols.records import Recordable, RunLog, Sink, Stateful
from monitor.protocols.scores import ScoredComparisons
from monitor.protocols.sources import AudioDevice, LiveSource, Source

__all__ = [
    "AlertAction",
    "AlertReceiver",
    "AlertRule",
    "AudioDevice",
    "CodeStream",
    "Embedder",
    "Feature",
    "LiveSource",
    "Protector",
    "Recordable",
    "RunLog",
    "ScoredComparisons",
    "Sink",
    "Sketch",
    "Source",
    "Stateful",
    "ThresholdForecast",
]
