"""An alert as a notification: desktop, mail, chat and a hundred other services, by apprise."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from monitor.alerts.actions.courier import DeliveryError
from monitor.errors import UsageError
from monitor.sinks.in_words import alert_in_words

__all__ = ["Notify"]


class Notify:
    """Notifies through one apprise address, such as ``ntfy://topic`` or ``mailto://...``.

    Redirects are not followed, unless the address itself says ``redirect=yes``.

    Args:
        url: as apprise writes them; it often holds a secret and is never shown.

    Raises:
        UsageError: the extra is not installed, or apprise does not know the address.
    """

    def __init__(self, url: str) -> None:
        try:
            import apprise
        except ImportError:
            raise UsageError(
                "--notify needs the extra 'notify': "
                "pip install 'speaker-disclosure-monitor[notify]'"
            ) from None
        logging.getLogger("apprise").addHandler(logging.NullHandler())  # it shows addresses
        scheme, there, _ = url.partition("://")
        # an alert goes where it was told to go, and nowhere else
        self._to = apprise.Apprise(asset=apprise.AppriseAsset(http_redirects=False))
        with warnings.catch_warnings():  # its services load here, some with old libraries
            warnings.simplefilter("ignore")
            known = bool(there) and self._to.add(url)
        if not known:
            raise UsageError(
                "--notify needs an address that apprise knows, such as ntfy://topic "
                "(its list: https://github.com/caronc/apprise/wiki)"
            )
        self.label = f"notify {scheme}"

    def deliver(self, record: Mapping[str, Any], hurry: threading.Event) -> None:  # noqa: ARG002
        """Notify once.

        Raises:
            DeliveryError: the service did not take it.
        """
        who = record.get("watch")
        title = "Disclosure monitor" if who is None else f"Disclosure of {who}"
        if not self._to.notify(title=title, body=alert_in_words(record)):
            raise DeliveryError("the service did not take it")
