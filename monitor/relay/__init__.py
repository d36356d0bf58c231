"""Relay of your voice to other programs, within a budget of bits."""

from monitor.protocols import CLEAR, MUTED
from monitor.relay.gate import Gate, RelayPath
from monitor.relay.outlet import OutputDevice
from monitor.relay.relay import DELAY_SECONDS, MUTE, Relay, RelaySettings

__all__ = [
    "CLEAR",
    "DELAY_SECONDS",
    "MUTE",
    "MUTED",
    "Gate",
    "OutputDevice",
    "Relay",
    "RelayPath",
    "RelaySettings",
]
