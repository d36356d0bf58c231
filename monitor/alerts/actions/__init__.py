"""What an alert does: rings, runs a command, posts to an address, notifies.

`Bell` is an action by itself. `Command`, `Webhook` and `Notify` are receivers: a `Courier` takes
alerts to one of them from a thread of its own, so that the stream never waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.alerts.actions.bell import Bell
    from monitor.alerts.actions.command import Command
    from monitor.alerts.actions.courier import Courier, DeliveryError
    from monitor.alerts.actions.notify import Notify
    from monitor.alerts.actions.webhook import Webhook

__all__ = ["Bell", "Command", "Courier", "DeliveryError", "Notify", "Webhook"]

_HOMES = {
    "Bell": "bell",
    "Command": "command",
    "Courier": "courier",
    "DeliveryError": "courier",
    "Notify": "notify",
    "Webhook": "webhook",
}

# http and ssl are slow to load
__getattr__, __dir__ = lazily(__name__, _HOMES)
