"""The newest reading as Prometheus metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from monitor.web.hub import Hub

__all__ = ["CONTENT_TYPE", "exposition"]

CONTENT_TYPE = CONTENT_TYPE_LATEST

# metric, key of a reading, help
READING = (
    ("disclosure_bits", "bits", "Headline: evidence of the watched speaker, else closed-set"),
    ("disclosure_bits_low", "bits_low", "Lower 95 % limit of the headline"),
    ("disclosure_bits_high", "bits_high", "Upper 95 % limit of the headline"),
    ("closed_set_bits", "closed_set_bits", "Among the candidates alone, at most the ceiling"),
    ("closed_set_bits_low", "closed_set_bits_low", "Lower 95 % limit of the closed-set figure"),
    ("closed_set_bits_high", "closed_set_bits_high", "Upper 95 % limit of the closed-set figure"),
    ("evidence_bits", "evidence_bits", "Evidence that it is the watched speaker, in any crowd"),
    ("evidence_bits_low", "evidence_bits_low", "Lower 95 % limit of the evidence"),
    ("evidence_bits_high", "evidence_bits_high", "Upper 95 % limit of the evidence"),
    ("support_bits", "support_bits", "The most bits of evidence that calibration supports"),
    ("gain_bits", "gain_bits", "Attacker's confidence, assuming that the speaker is enrolled"),
    ("expected_bits", "expected_bits", "What a voice of this length discloses on average"),
    ("peak_bits", "peak_bits", "Largest headline so far"),
    ("ceiling_bits", "ceiling", "log2 of the number of candidates"),
    ("plateau_bits", "plateau", "Largest expected bits over all lengths"),
    ("enrolled_probability", "enrolled", "Probability that the speaker is enrolled at all"),
    ("stream_seconds", "seconds", "Audio heard"),
    ("speech_seconds", "speech", "Speech among it"),
    ("lag_seconds", "lag", "From speech to its reading, where it is live"),
)
PROTECTED = (
    ("protected_disclosure_bits", "bits", "The headline through the protector, by attacker"),
)
FEATURE = (
    ("feature_rank", "rank", "Rank of the watched speaker, 1 the most similar"),
    ("feature_rank_bits", "rank_bits", "What the rank alone discloses"),
    ("feature_local_bits", "local_bits", "Local bits of the watched speaker"),
    ("feature_gain_bits", "gain_bits", "Attacker's confidence"),
    ("feature_expected_bits", "expected_bits", "Average disclosure at this length"),
    ("feature_usable_seconds", "usable", "What the feature could use of the audio"),
)
COUNTERS = (
    ("readings", "reading", "Readings so far"),
    ("alerts", "raised", "Alerts raised so far"),
    ("warnings", "warned", "Warnings raised so far"),
    ("gaps", "gap", "Losses of audio so far"),
    ("changes", "change", "Changes of speaker or channel so far"),
)


class _Collector:
    def __init__(self, hub: Hub, clients: int, age: float | None) -> None:
        self._hub = hub
        self._clients = clients
        self._age = age

    def collect(self) -> Iterator[Metric]:
        state = self._hub.state()
        reading: Mapping[str, Any] = state["latest"].get("reading", {})
        stream = str(reading.get("stream", 1))
        for name, key, text in READING:
            yield _gauge(name, text, ("stream",), {(stream,): reading.get(key)})
        crowds = {
            (stream, f"{each['people']:g}"): each.get("bits") for each in reading.get("among") or ()
        }
        yield _gauge("among_bits", "What that means among so many", ("stream", "people"), crowds)
        attackers = (reading.get("protected") or {}).get("attackers") or {}
        for name, key, text in PROTECTED:
            values = {(stream, attacker): row.get(key) for attacker, row in attackers.items()}
            yield _gauge(name, text, ("stream", "attacker"), values)
        features = reading.get("features") or {}
        for name, key, text in FEATURE:
            values = {(stream, feature): row.get(key) for feature, row in features.items()}
            yield _gauge(name, text, ("stream", "feature"), values)
        text = "Largest local bits of the feature so far; gain bits where nobody is watched"
        yield _gauge("feature_peak_bits", text, ("stream", "feature"), state["peaks"])
        ceilings = {(stream, feature): reading.get("ceiling") for feature in features}
        text = "log2 of the number of candidates"
        yield _gauge("feature_ceiling_bits", text, ("stream", "feature"), ceilings)
        for name, key, text in COUNTERS:
            yield CounterMetricFamily(f"monitor_{name}", text, value=state["counts"].get(key, 0))
        yield CounterMetricFamily(
            "monitor_lost_seconds", "Audio lost, as far as known", value=state["lost_seconds"]
        )
        raised = {(rule,): float(on) for rule, on in state["raised"].items()}
        yield _gauge("alert_raised", "1 while the alert, or warning, is raised", ("rule",), raised)
        text = "1 while a noted change is open: the bits may be of another voice"
        yield _gauge("change_open", text, (), {(): float(reading.get("change") is not None)})
        left = {(e["field"], f"{e['threshold']:g}"): e["seconds_left"] for e in state["forecast"]}
        text = "Stream seconds until the threshold at this rate; absent where not in sight"
        yield _gauge("threshold_seconds_left", text, ("field", "threshold_bits"), left)
        yield _gauge("reading_age_seconds", "Since the newest reading", (), {(): self._age})
        yield _gauge("page_clients", "Pages that follow the run", (), {(): self._clients})
        yield _gauge("ended", "1 once the run is over", (), {(): float("end" in state["latest"])})


def _gauge(
    name: str,
    text: str,
    labels: tuple[str, ...],
    values: Mapping[Any, float | None],
) -> Metric:
    """A gauge without those of its samples that are withheld."""
    made = GaugeMetricFamily(f"monitor_{name}", text, labels=labels)
    for key, value in values.items():
        if value is not None:
            made.add_metric(key, value)
    return made


def exposition(hub: Hub, clients: int = 0, clock: Callable[[], float] = time.monotonic) -> bytes:
    """The text that Prometheus scrapes. It names no speaker.

    Example:
        >>> hub = Hub()
        >>> hub.write({"type": "reading", "seconds": 3.0, "speech": 2.0, "bits": 1.5})
        >>> [line for line in exposition(hub).decode().splitlines() if "_bits{" in line]
        ['monitor_disclosure_bits{stream="1"} 1.5']
    """
    registry = CollectorRegistry(auto_describe=False)
    age = None if hub.heard is None else clock() - hub.heard
    registry.register(_Collector(hub, clients, age))
    return generate_latest(registry)
