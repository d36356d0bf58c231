"""Actions on alerts: ring, run a command, post to an address, notify.

`Bell` is an action. `Command`, `Webhook` and `Notify` are receivers. A `BackgroundDelivery` is an
action that sends alerts to a receiver from its own thread, so that the stream never waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.alerts.actions.receivers import Bell, Command, Notify, Webhook
    from monitor.alerts.actions.registry import BackgroundDelivery

__all__ = ["BackgroundDelivery", "Bell", "Command", "Notify", "Webhook"]

# http and ssl are slow to load
__getattr__, __dir__ = lazily(__name__)
