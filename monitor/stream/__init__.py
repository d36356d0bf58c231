"""Measurement of one stream, which adds up a voice's frames and makes a reading every second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.stream.monitor import Monitor
    from monitor.stream.people import MultiSpeakerMonitor, Person
    from monitor.stream.plan import MonitorSettings

__all__ = ["Monitor", "MonitorSettings", "MultiSpeakerMonitor", "Person"]

__getattr__, __dir__ = lazily(__name__, rooms=("people",))
