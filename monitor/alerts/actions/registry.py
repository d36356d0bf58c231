"""The options by which alerts get a receiver: `--on-alert`, `--webhook`, `--notify`.

Every command that hears a stream offers them. One more is an entry here, and a class of its own
that is an `monitor.protocols.AlertReceiver`; it is imported when the option is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monitor.protocols import AlertReceiver

__all__ = ["ACTION_OPTIONS", "ActionOption"]


@dataclass(frozen=True, slots=True)
class ActionOption:
    """One option; it may be given several times, each time for one receiver.

    Attributes:
        name: as it is typed.
        metavar: what follows it, for ``--help``.
        help: what it does.
        opens: what was given to the receiver.
        environment: the variable that it may come from as well, since it often holds a secret:
            then ``@FILE`` stands for the lines of a file. Empty where it cannot.
    """

    name: str
    metavar: str
    help: str
    opens: Callable[[str], AlertReceiver]
    environment: str = ""

    @property
    def parameter(self) -> str:
        """As Python writes it.

        Example:
            >>> [option.parameter for option in ACTION_OPTIONS]
            ['on_alert', 'webhook', 'notify']
        """
        return self.name.removeprefix("--").replace("-", "_")


def _command(line: str) -> AlertReceiver:
    from monitor.alerts.actions.receivers import Command

    return Command(line)


def _webhook(url: str) -> AlertReceiver:
    from monitor.alerts.actions.receivers import Webhook  # brings http and ssl

    return Webhook(url)


def _notify(url: str) -> AlertReceiver:
    from monitor.alerts.actions.receivers import Notify

    return Notify(url)


ACTION_OPTIONS = (
    ActionOption(
        "--on-alert",
        "COMMAND",
        "Run this for every alert and warning, raised or cleared, with the record as JSON on its "
        "standard input; may be repeated. What it prints goes to stderr.",
        _command,
    ),
    ActionOption(
        "--webhook",
        "URL|@FILE",
        "Post them there as JSON; may be repeated. Redirects are not followed. An address with a "
        "secret is better kept in a @FILE, or in MONITOR_WEBHOOK: arguments can be seen by others.",
        _webhook,
        "MONITOR_WEBHOOK",
    ),
    ActionOption(
        "--notify",
        "URL|@FILE",
        "Notify through this apprise address, such as ntfy://topic (extra 'notify'); may be "
        "repeated. Secrets: as for --webhook, in a @FILE or in MONITOR_NOTIFY.",
        _notify,
        "MONITOR_NOTIFY",
    ),
)
"""All of them, in the order of ``--help``."""
