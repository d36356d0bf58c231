"""Sinks receive the events of a run: a file of JSON lines, a terminal, or memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.sinks.buffer import RunBuffer
    from monitor.sinks.jsonl import JsonLines
    from monitor.sinks.live import LiveView
    from monitor.sinks.progress import ReplayProgress

__all__ = ["JsonLines", "LiveView", "ReplayProgress", "RunBuffer"]

# rich is slow to load
__getattr__, __dir__ = lazily(__name__)
