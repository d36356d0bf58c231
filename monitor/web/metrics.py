"""The newest reading as Prometheus metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from monitor.events.reading import Reading
from monitor.web.hub import Hub

CONTENT_TYPE = CONTENT_TYPE_LATEST
# metric, key of a reading, help
READING = (
    (
        "disclosure_bits",
        "bits",
        "Headline: evidence of the watched speaker, otherwise closed-set bits",
    ),
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
    ("expected_bits", "expected_bits", "Average bits at this length"),
    ("peak_bits", "peak_bits", "Largest headline so far"),
    ("ceiling_bits", "ceiling", "log2 of the number of candidates"),
    ("plateau_bits", "plateau", "Largest expected bits over all lengths"),
    ("enrolled_probability", "enrolled", "Probability that the speaker is enrolled at all"),
    ("stream_seconds", "seconds", "Audio processed"),
    ("speech_seconds", "speech", "Speech in that audio"),
    ("lag_seconds", "lag", "Delay from speech to its reading, in a live run"),
)
FEATURE = (
    ("feature_rank", "rank", "Rank of the watched speaker, 1 the most similar"),
    ("feature_rank_bits", "rank_bits", "Bits that the rank alone discloses"),
    ("feature_local_bits", "local_bits", "Local bits of the watched speaker"),
    ("feature_gain_bits", "gain_bits", "Attacker's confidence"),
    ("feature_expected_bits", "expected_bits", "Average disclosure at this length"),
    ("feature_usable_seconds", "usable", "Audio that the feature could use"),
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
        reading = state.reading or Reading.from_record({})
        stream = str(reading.stream)
        if state.people:  # the newest reading per label and watched speaker
            for name, key, text in READING:
                values = {voice: getattr(r, key) for voice, r in state.people.items()}
                yield _gauge(name, text, ("label", "watch"), values)
            reading = Reading.from_record({})  # the following metrics are for one voice
        for name, key, text in READING if not state.people else ():
            yield _gauge(name, text, ("stream",), {(stream,): getattr(reading, key)})
        crowds = {(stream, f"{crowd.people:g}"): crowd.bits for crowd in reading.among or ()}
        yield _gauge(
            "among_bits", "Bits in a crowd of this many people", ("stream", "people"), crowds
        )
        attackers = {} if reading.protected is None else reading.protected.attackers or {}
        bits = {(stream, attacker): row.bits for attacker, row in attackers.items()}
        yield _gauge(
            "protected_disclosure_bits", "The headline through the anonymiser, by attacker",
            ("stream", "attacker"), bits,
        )  # fmt: skip
        features = reading.features or {}
        for name, key, text in FEATURE:
            values = {(stream, feature): getattr(row, key) for feature, row in features.items()}
            yield _gauge(name, text, ("stream", "feature"), values)
        text = "Largest local bits of the feature so far, or gain bits without a watched speaker"
        yield _gauge("feature_peak_bits", text, ("stream", "feature"), state.peaks)
        ceilings = {(stream, feature): reading.ceiling for feature in features}
        text = "log2 of the number of candidates"
        yield _gauge("feature_ceiling_bits", text, ("stream", "feature"), ceilings)
        for name, key, text in COUNTERS:
            yield CounterMetricFamily(f"monitor_{name}", text, value=state.counts.get(key, 0))
        yield CounterMetricFamily(
            "monitor_lost_seconds", "Audio lost, as far as known", value=state.lost_seconds
        )
        raised = {(rule,): float(on) for rule, on in state.raised.items()}
        yield _gauge("alert_raised", "1 while the alert, or warning, is raised", ("rule",), raised)
        text = "1 during a noted change, when the bits may be another voice's"
        yield _gauge("change_open", text, (), {(): float(reading.change is not None)})
        seconds_left = {(f.field, f"{f.threshold:g}"): f.seconds_left for f in state.forecast}
        text = "Stream seconds until the threshold at this rate; absent if out of reach"
        yield _gauge("threshold_seconds_left", text, ("field", "threshold_bits"), seconds_left)
        yield _gauge("reading_age_seconds", "Time since the newest reading", (), {(): self._age})
        yield _gauge("page_clients", "Pages that follow the run", (), {(): self._clients})
        yield _gauge("ended", "1 once the run is over", (), {(): float("end" in state.counts)})


def _gauge(
    name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, float | None]
) -> Metric:
    """Make a gauge without withheld samples."""
    gauge = GaugeMetricFamily(f"monitor_{name}", text, labels=labels)
    for key, value in values.items():
        if value is not None:
            gauge.add_metric(key, value)
    return gauge


def exposition(hub: Hub, clients: int = 0) -> bytes:
    """Format the text that Prometheus scrapes. It names no speaker."""
    registry = CollectorRegistry(auto_describe=False)
    age = None if hub.read_at is None else time.monotonic() - hub.read_at
    registry.register(_Collector(hub, clients, age))
    return generate_latest(registry)
