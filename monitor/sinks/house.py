"""A voice, or a page of several, as a device of Home Assistant."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from monitor.events.phrases import caveat_of
from monitor.events.reading import Reading
from monitor.events.run import Alert, RunStart
from monitor.log_lines import utc_time
from monitor.protocols import CLEAR, MUTED
from monitor.sinks.mqtt import Broker, Entities, HouseDevice

if TYPE_CHECKING:
    from monitor.events.declaration import Event
    from monitor.protocols import RelayControl
    from monitor.types import Record

NAME = "voice"
ON, OFF = b"ON", b"OFF"
CALM: Mapping[str, object] = {"state": "OFF", "raised": []}
_JSON = "{{ value_json.%s }}"
ENTITIES: Mapping[str, Mapping[str, object]] = {
    "bits": {
        "platform": "sensor",
        "name": "Bits",
        "unit_of_measurement": "bit",
        "state_class": "measurement",
        "suggested_display_precision": 1,
        "icon": "mdi:account-voice",
        "state_topic": "reading",
        "value_template": _JSON % "bits",
        "json_attributes_topic": "reading",
        "json_attributes_template": _JSON % "attributes | tojson",
    },
    "one_in": {
        "platform": "sensor",
        "name": "One in",
        "unit_of_measurement": "people",
        "state_class": "measurement",
        "suggested_display_precision": 0,
        "icon": "mdi:account-search",
        "state_topic": "reading",
        "value_template": _JSON % "one_in",
    },
    "alert": {
        "platform": "binary_sensor",
        "name": "Alert",
        "device_class": "problem",
        "state_topic": "alert",
        "value_template": _JSON % "state",
        "json_attributes_topic": "alert",
    },
    "mute": {
        "platform": "switch",
        "name": "Mute",
        "icon": "mdi:microphone-off",
        "state_topic": "mute",
        "value_template": _JSON % "state",
        "json_attributes_topic": "mute",
        "command_topic": "mute/set",
    },
}
"""Sensors of bits and of their odds (one in this many people), alert and switch."""


class VoiceDevice:
    """An action that shows a run's voice in Home Assistant, without name, audio or template.

    With several people, the one with the most bits is shown. The alert entity is on while any alert
    is raised. It exists only with a rule, since it could never be on otherwise. With a relay there
    is a switch, which is on while nothing is sent. UsageError if the broker refuses user or
    password, or its certificate is not trusted.
    """

    def __init__(
        self,
        broker: Broker,  # the broker
        name: str = NAME,  # displayed name of the device
        *,
        relay: RelayControl | None = None,  # the relay to mute
        # called with a line if the broker is not available yet
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._relay, self._way = relay, ""
        self._readings: dict[tuple[str | None, str | None], Reading] = {}
        self._raised: dict[tuple[str, str | None, str | None], Alert] = {}
        self._begun = self._has_rules = False
        commands = {} if relay is None else {"mute/set": self._mute}
        self._device = HouseDevice(broker, name, commands=commands, look=self._look, report=report)

    def write(self, event: Event) -> None:
        """Take one event of the run; returns at once."""
        if isinstance(event, RunStart):
            self._begin(event)
        elif isinstance(event, Reading):
            self._readings[event.label, event.watch] = event
            self._device.show("reading", self._record())
        elif isinstance(event, Alert) and event.level == "alert":
            key = event.rule, event.label, event.watch
            if event.state == "raised":
                self._raised[key] = event
            else:
                self._raised.pop(key, None)
            self._device.tell("alert", self._alert_record(event))

    def drain(self) -> Sequence[str]:
        """Wait briefly for pending messages; report those not delivered."""
        return self._device.drain()

    def close(self) -> None:
        """Mark the device as offline, and clear retained states about the voice."""
        final_states = {"alert": CALM} if self._has_rules else {}
        self._device.close(
            final_states if self._relay is None else {**final_states, "mute": _output(MUTED)}
        )

    def _begin(self, start: RunStart) -> None:
        relay = self._relay
        self._has_rules = bool(start.alerts or start.alarms) or (
            relay is not None and relay.budget_bits is not None
        )
        present = {"alert": self._has_rules, "mute": relay is not None}
        self._device.announce(
            {
                key: entity if present.get(key, True) else {"platform": entity["platform"]}
                for key, entity in ENTITIES.items()
            }
        )
        if self._has_rules:
            self._device.tell("alert", CALM)
        self._begun = True

    def _record(self) -> Record:
        """Return the figures of the voice, or of the voice with most bits."""
        readings = self._readings.values()
        reading = max(readings, key=lambda r: -math.inf if r.bits is None else r.bits)
        bits = reading.bits
        one_in = None if bits is None else float(f"{2.0 ** max(0.0, min(bits, 1000.0)):.3g}")
        attributes = {
            "low": _rounded(reading.bits_low),
            "high": _rounded(reading.bits_high),
            "peak": max(_rounded(r.peak_bits) or 0.0 for r in readings),
            "at_least": bool(reading.at_least),
            "headline": reading.headline,
            "other_voice": reading.change is not None,
            "caveat": caveat_of(reading),
        }
        return {"bits": _rounded(bits), "one_in": one_in, "attributes": attributes}

    def _alert_record(self, alert: Alert) -> Record:
        return {
            "state": "ON" if self._raised else "OFF",
            "raised": sorted({rule for rule, *_ in self._raised}),
            "last": alert.state,
            "rule": alert.rule,
            "field": alert.field,
            "value": _rounded(alert.value),
            "threshold": alert.threshold,
            "seconds": round(alert.seconds, 2),
            "time": utc_time("milliseconds"),
        }

    # Called from the device's threads.

    def _mute(self, command: bytes) -> None:
        if self._relay is not None and command in (ON, OFF):
            self._relay.muted = command == ON
            self._way = ""  # repeat the state: a spent budget cannot be unmuted

    def _look(self) -> None:
        """Publish the relay's way if it has changed, since a page can mute, too."""
        if self._relay is None or not self._begun or (way := self._relay.way) == self._way:
            return
        self._way = way
        self._device.tell("mute", _output(way))


def _output(way: str) -> Record:
    output = way if way in (CLEAR, MUTED) else "protected"
    return {"state": "ON" if way == MUTED else "OFF", "output": output}


def _rounded(bits: float | None) -> float | None:
    return None if bits is None or not math.isfinite(bits) else round(bits, 2)


PAGE_NAME = "voice page"
_NOBODY: Mapping[str, object] = {"state": "OFF", "listening": 0}
_PAGE_ENTITIES: Entities = {
    "listening": {
        "platform": "sensor",
        "name": "Listening",
        "unit_of_measurement": "people",
        "state_class": "measurement",
        "icon": "mdi:account-voice",
        "state_topic": "alert",
        "value_template": _JSON % "listening",
    },
    "alert": {
        "platform": "binary_sensor",
        "name": "Alert",
        "device_class": "problem",
        "state_topic": "alert",
        "value_template": _JSON % "state",
    },
}


class PageDevice(HouseDevice):
    """A page in Home Assistant: number of visitors who agreed, and whether one has an alert.

    Visitors are shown and counted only after they agree. Visitors who withdraw disappear
    immediately. Their figures are never published.
    """

    def __init__(
        self,
        broker: Broker,
        name: str = PAGE_NAME,
        *,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._visitors: set[PageVisitor] = set()
        self._lock, self._said = threading.Lock(), _NOBODY
        super().__init__(broker, name, report=report)
        self.announce(_PAGE_ENTITIES)
        self.tell("alert", _NOBODY)

    def update(self, visitor: PageVisitor, *, shown: bool) -> None:
        """Show or hide a visitor, and publish the state if it has changed."""
        with self._lock:
            (self._visitors.add if shown else self._visitors.discard)(visitor)
            raised = any(visitor.raised for visitor in self._visitors)
            state = {"state": "ON" if raised else "OFF", "listening": len(self._visitors)}
            if state != self._said:
                self._said = state
                self.tell("alert", state)

    def close(self, final_states: Mapping[str, Mapping[str, object]] | None = None) -> None:
        """Mark the device as offline."""
        super().close(final_states or {"alert": _NOBODY})


class PageVisitor:
    """An action of a visitor's run, which is shown in Home Assistant while they agree."""

    def __init__(self, device: PageDevice) -> None:
        self._device = device
        self._agrees = self._over = self.raised = False  # raised: whether an alert is raised

    def agree(self, agrees: bool) -> None:
        """Record whether the visitor agrees; thread-safe."""
        self._agrees = agrees
        self._update()

    def write(self, event: Event) -> None:
        """Take one event of the run; returns at once."""
        if isinstance(event, Alert) and event.level == "alert":
            self.raised = event.state == "raised"
            self._update()

    def drain(self) -> Sequence[str]:
        """Return nothing, since no delivery is pending."""
        return ()

    def close(self) -> None:
        """End the visitor's run."""
        self._over = True
        self._update()

    def _update(self) -> None:
        self._device.update(self, shown=self._agrees and not self._over)
