"""Delivery of alerts from a separate thread, and the options that choose receivers."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from monitor.errors import DeliveryError
from monitor.log_lines import utc_time

if TYPE_CHECKING:
    from monitor.events.declaration import Event
    from monitor.events.run import Alert
    from monitor.protocols import AlertReceiver


MOST_WAITING = 100
PATIENCE_SECONDS = 10.0
LAST_SECONDS = 0.5  # for the outcome of the last attempt


class BackgroundDelivery:
    """Action that sends a run's alerts to one receiver, from its own thread.

    Alerts are sent with the time of day (``time``) and the watched speaker (``watch``). At most 100
    alerts wait. Beyond this number, the oldest is dropped.
    """

    def __init__(
        self,
        receiver: AlertReceiver,
        *,
        most_waiting: int = MOST_WAITING,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._receiver, self._patience = receiver, patience_seconds
        self._waiting: deque[Alert] = deque(maxlen=most_waiting)
        self._changed = threading.Condition()
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._watch: str | None = None
        self._busy = False
        self._taken = self._failed = 0
        self._reason = ""

    def write(self, event: Event) -> None:
        """Take one event of the run; returns at once."""
        from monitor.events.run import Alert, RunStart  # not needed for help

        if isinstance(event, RunStart):
            self._watch = event.watch
        if not isinstance(event, Alert):
            return
        with self._changed:
            self._taken += 1
            if len(self._waiting) == self._waiting.maxlen:
                self._give_up(1, "too many alerts at once")
            watch = self._watch if event.watch is None else event.watch
            self._waiting.append(replace(event, time=utc_time("milliseconds"), watch=watch))
            self._changed.notify_all()
        if self._thread is None:
            name = f"alerts to {self._receiver.label}"
            self._thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._thread.start()

    def drain(self) -> list[str]:
        """Wait briefly for pending alerts; report the undelivered ones in a line."""
        with self._changed:
            if not self._changed.wait_for(self._idle, self._patience):
                self._cancel.set()  # no more retries
                self._changed.wait_for(lambda: not self._busy, LAST_SECONDS)
            pending = len(self._waiting) + self._busy
            if pending:
                self._give_up(pending, self._reason or "no answer before the end")
                self._waiting.clear()
            if not self._failed:
                return []
            s = "" if self._taken == 1 else "s"
            return [
                f"{self._receiver.label}: {self._failed} of {self._taken} alert{s} not delivered "
                f"({self._reason})"
            ]

    def close(self) -> None:
        """Release the thread. Pending alerts are not delivered."""
        self._cancel.set()
        with self._changed:
            self._waiting.clear()
            self._changed.notify_all()

    def _idle(self) -> bool:
        return not self._waiting and not self._busy

    def _give_up(self, count: int, reason: str) -> None:
        self._failed, self._reason = self._failed + count, reason

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._cancel.is_set())
                if self._cancel.is_set():
                    return
                alert, self._busy = self._waiting.popleft(), True
            reason = ""
            try:
                self._receiver.deliver(alert, self._cancel)
            except DeliveryError as error:
                reason = str(error)
            except Exception as error:  # a faulty receiver must not stop the run
                reason = f"unexpected {type(error).__name__}"
            with self._changed:
                if self._busy and reason:
                    self._give_up(1, reason)
                self._busy = False
                self._changed.notify_all()


# Every command that measures a stream offers them. To add one, add an entry here and a class that
# is a `monitor.protocols.AlertReceiver`. It is imported when the option is given.


@dataclass(frozen=True, slots=True)
class ActionOption:
    """One option of the command line. Each use adds one receiver."""

    name: str  # as on the command line
    metavar: str  # metavariable for ``--help``
    help: str  # text of ``--help``
    receiver: str  # class in `monitor.alerts.actions.receivers`
    # environment variable for a value that often has a secret; ``@FILE`` then stands for the lines
    # of a file. Empty if there is no variable.
    environment: str = ""

    @property
    def parameter(self) -> str:
        """Name as a Python identifier."""
        return self.name.removeprefix("--").replace("-", "_")

    def opens(self, text: str) -> AlertReceiver:
        """Create the receiver from the option's value."""
        from monitor.alerts.actions import receivers  # brings http and ssl

        receiver: AlertReceiver = getattr(receivers, self.receiver)(text)
        return receiver


ACTION_OPTIONS = (
    ActionOption(
        "--on-alert",
        "COMMAND",
        "Run COMMAND at every alert and warning, raised or cleared, with its JSON record on "
        "standard input; may be repeated. Its output goes to stderr.",
        "Command",
    ),
    ActionOption(
        "--webhook",
        "URL|@FILE",
        "Post alerts and warnings to this URL as JSON; may be repeated. Redirects are not "
        "followed. Keep an address with a secret in @FILE or MONITOR_WEBHOOK: others can see the "
        "command line.",
        "Webhook",
        "MONITOR_WEBHOOK",
    ),
    ActionOption(
        "--notify",
        "URL|@FILE",
        "Send alerts and warnings to this apprise address, such as ntfy://topic (extra "
        "'notify'); may be repeated. Keep an address with a secret in @FILE or MONITOR_NOTIFY.",
        "Notify",
        "MONITOR_NOTIFY",
    ),
)
"""All action options, in the order of ``--help``."""
