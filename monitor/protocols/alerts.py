"""What an alert takes: an `AlertRule` raises it, an `AlertAction` or `AlertReceiver` acts on it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from monitor.protocols.records import Sink, Stateful

__all__ = ["AlertAction", "AlertReceiver", "AlertRule", "ThresholdForecast"]


class AlertRule(Stateful, Protocol):
    """Decides from the records of a run when to raise an alert, and when to clear it."""

    def update(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take the next record of the run.

        Returns:
            the ``alert`` records that it gives rise to, none as a rule.
        """


class AlertAction(Sink, Protocol):
    """A sink that does something with a run, and may fail at it: nothing is stopped by that.

    ``write`` must not keep the stream waiting: hand slow work to a thread, as
    `monitor.alerts.actions.courier.Courier` does for an `AlertReceiver`.
    """

    def settle(self) -> Sequence[str]:
        """The stream is over: finish, and tell what could not be done, a line each."""


class AlertReceiver(Protocol):
    """Where a `monitor.alerts.actions.courier.Courier` takes alerts, from a thread of its own.

    Attributes:
        label: what to call it in front of a person; holds no address with a secret.
    """

    label: str

    def deliver(self, record: Mapping[str, Any], hurry: threading.Event) -> None:
        """Hand one alert over; may take its time until ``hurry`` is set.

        Raises:
            monitor.alerts.actions.courier.DeliveryError: it was not taken; the message says why,
                in a few words and without secrets.
        """


class ThresholdForecast(Protocol):
    """Knows how long a threshold is away, as `monitor.alerts.Forecast` does.

    Attributes:
        threshold_bits: the threshold.
        field: of the readings, which it is a threshold of.
    """

    threshold_bits: float
    field: str

    def update(self, record: Mapping[str, Any]) -> None:
        """Take the next record of the run."""

    @property
    def seconds_left(self) -> float | None:
        """Stream seconds until then; 0 where it is reached; None where nobody can tell."""
